"""Where the tests, their files and the repository are."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

TESTS = Path(__file__).resolve().parents[1]
REPO = TESTS.parent
PLUGIN = REPO / ".claude-plugin" / "lessons"


def labelled(name: str) -> list[dict[str, Any]]:
    """Return the values of a file of labelled texts."""
    return [
        json.loads(line) for line in (TESTS / "labelled" / name).read_text("utf-8").splitlines()
    ]
