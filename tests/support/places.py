"""Where the tests, their files and the repository are."""

from __future__ import annotations

from pathlib import Path

TESTS = Path(__file__).resolve().parents[1]
REPO = TESTS.parent
PLUGIN = REPO / ".claude-plugin" / "lessons"
