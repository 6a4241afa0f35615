"""The commands of the README."""

from __future__ import annotations

import re

from tests.support.places import REPO


def readme_commands() -> list[str]:
    text = (REPO / "README.md").read_text("utf-8")
    return re.findall(r"(?m)^\$ (.+)$", text)
