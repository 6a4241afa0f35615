"""What hooks complained of: the lines of their log that are about a vault."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import Any

from vault_index import locate


def of(root: Path, home: Path, since: float = 0.0) -> list[dict[str, Any]]:
    """Return the lines about a vault, of this time (seconds since 1970) or later, oldest first."""
    try:
        lines = (home / "hook.log").read_text("utf-8", "replace").split("\n")
    except OSError:
        return []
    from_then = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(since))
    entries = [entry for entry in map(_entry, lines) if entry and str(entry["time"]) >= from_then]
    return [entry for entry in entries if _is_about(entry, root)]


def _is_about(entry: dict[str, Any], root: Path) -> bool:
    """Whether a line of the hooks' log is about this vault; what names no folder may be."""
    folder = str(entry.get("cwd") or "")
    vault = str(entry.get("vault") or "") or (folder and locate.walk_up(folder))
    if not folder and not vault:
        return True
    if not vault:  # the hook then went to the user's default vault
        vault = locate.for_hook("/", {**os.environ, "LESSONS_VAULT": ""})
    return vault is not None and os.path.realpath(vault) == os.path.realpath(root)


def _entry(line: str) -> dict[str, Any] | None:
    """Read a line of the hooks' log; None for what is none, such as the half of one."""
    try:
        entry = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return entry if isinstance(entry, dict) and {"time", "event", "message"} <= {*entry} else None
