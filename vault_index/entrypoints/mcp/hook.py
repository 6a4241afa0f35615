"""The agent's prompt hook, asked through the server it is connected to: no process per prompt.

Claude Code has hooks of type `mcp_tool`; what the tool returns is what a hook would print. The answer
is that of `lessons-hook`, from the same question, so a prompt that both are asked about gets it once.
"""

from __future__ import annotations

import itertools
import json
import os
import time
from functools import partial
from typing import Any

import anyio
import anyio.to_thread

from vault_index import client
from vault_index.entrypoints.hook import client as hook
from vault_index.entrypoints.mcp.agent import Agent
from vault_index.hotpath import chatter, locate, log

_EVENT = "UserPromptSubmit"
_numbers = itertools.count(1)


async def on_prompt(agent: Agent, fields: dict[str, str]) -> str:
    """Return what the hook of a prompt prints, "" for silence; it never fails, and ends in time."""
    event = _event(agent, fields)
    started = time.monotonic()
    seconds = deadline_seconds()
    answer: Any = None
    with anyio.move_on_after(seconds) as scope:
        ask = partial(_answer, agent, event, started, started + seconds)
        answer = await anyio.to_thread.run_sync(ask, abandon_on_cancel=True)
    if scope.cancelled_caught:
        log.log(event, f"no answer in {1000 * seconds:.0f} ms", started, missed=True)
    return json.dumps(answer) if answer else ""


def deadline_seconds() -> float:
    """Return the seconds until a prompt goes on without an answer."""
    named = os.environ.get("LESSONS_DEADLINE_MS", "")
    milliseconds = int(named) if named.isdigit() else hook.DEFAULT_DEADLINE_MS
    return hook.DEADLINE_SHARE * milliseconds / 1000


def _event(agent: Agent, fields: dict[str, str]) -> dict[str, object]:
    """Return the event as the command hook would read it; a placeholder without a value is left out."""
    event: dict[str, object] = {
        name: text[: hook.MAX_FIELD_CHARS] for name, text in fields.items() if not _is_empty(text)
    }
    event["prompt"] = fields["prompt"][: hook.MAX_PROMPT_CHARS]
    event.setdefault("cwd", agent.folder)
    # for `once`: each call is a hook of its own
    event.update(hook_event_name=_EVENT, pid=f"{os.getpid()}.{next(_numbers)}", began=time.time())
    return event


def _is_empty(text: str) -> bool:
    return not text or text.startswith("${")


def _answer(agent: Agent, event: dict[str, object], started: float, until: float) -> Any:
    """Ask the watcher, started if need be; None for silence. Logs whatever goes wrong."""
    try:
        if chatter.why_skipped(str(event["prompt"])):
            return None
        root = locate.find(agent.vault, str(event["cwd"]), os.environ)
        if root is None:
            return None
        event["vault"] = root  # for the log
        asked = {"event": event, "ms": 1000 * (time.monotonic() - started), "until": until}
        question = {"ask": "hook", "with": asked}
        reply = client.ask(root, question, start=True, as_is=True, fetch=False)
        if reply.get("problem"):
            log.log(event, str(reply["problem"]), started, missed=not reply.get("answer"))
        return reply.get("answer")
    except Exception as error:  # noqa: BLE001  # a hook never fails
        log.log(event, f"{type(error).__name__}: {error}", started, missed=True)
        return None
