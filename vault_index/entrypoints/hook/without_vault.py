"""The start of a session in a project without a vault: what the journal has of it, in this process."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

from vault_index import config
from vault_index.journal.journal import INDEX, Journal
from vault_index.recall import once, select


def answer(event: dict[str, Any]) -> dict[str, Any] | None:
    """Answer the start of a session; None for silence. Anything may be raised."""
    settings = config.load(environ=os.environ)
    if event.get("source", "startup") not in settings.session_sources:
        return None
    session = str(event.get("session_id") or "")
    injection = select.without_vault(settings, Path(str(event.get("cwd") or ".")), session)
    if not injection.text:
        return None
    answered = Journal(settings).folder / INDEX / "sessions" / (session or "unnamed")
    if session and not once.claim(answered, event, float(event.get("began") or time.time())):
        return None
    name = str(event["hook_event_name"])
    return {"hookSpecificOutput": {"hookEventName": name, "additionalContext": injection.text}}
