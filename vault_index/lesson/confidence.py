"""How sure a team is of a lesson: 1 to 5, in its frontmatter."""

from __future__ import annotations

DEFAULT_CONFIDENCE = 3  # the middle: neither lifts nor lowers a hit
