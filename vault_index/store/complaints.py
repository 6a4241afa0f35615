"""The complaints of hooks: the lines of their log that are about a vault."""

from __future__ import annotations

import contextlib
import json
import os
import time
from pathlib import Path
from typing import Any

from vault_index.hotpath import locate
from vault_index.hotpath.log import HOOK_LOG


def of(root: Path, home: Path, since: float = 0.0) -> list[dict[str, Any]]:
    """Return the lines about a vault since a time (seconds since 1970), oldest first."""
    lines: list[str] = []
    for name in (f"{HOOK_LOG}.old", HOOK_LOG):
        with contextlib.suppress(OSError):
            lines += (home / name).read_text("utf-8", "replace").split("\n")
    from_then = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(since))
    entries = [entry for entry in map(_entry, lines) if entry and str(entry["time"]) >= from_then]
    return [entry for entry in entries if _is_about(entry, root)]


def _is_about(entry: dict[str, Any], root: Path) -> bool:
    """Whether a line of the hooks' log is about this vault; a line without a folder may be."""
    folder, vault = str(entry.get("cwd") or ""), entry.get("vault")
    if not folder and not vault:
        return True
    if not vault:  # as the hook finds it: around the folder, else the user's default
        with contextlib.suppress(ValueError, OSError):
            vault = locate.find(None, folder, {**os.environ, "LESSONS_VAULT": ""})
    if not isinstance(vault, str):
        return False
    return os.path.realpath(vault) == os.path.realpath(root)


def _entry(line: str) -> dict[str, Any] | None:
    """Parse a line of the hooks' log; None for anything else, such as half a line."""
    try:
        entry = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return entry if isinstance(entry, dict) and {"time", "event", "message"} <= {*entry} else None
