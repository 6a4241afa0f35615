"""Events of other agents than Claude Code: made to look like its own, and the answer in their form.

    agent     the prompt                  the start          the answer on stdout
    codex     UserPromptSubmit            SessionStart       as Claude Code's; no other key
    gemini    BeforeAgent                 SessionStart       as Claude Code's, with its own name
    cursor    beforeSubmitPrompt          sessionStart       {"additional_context": ...}
    opencode  sent by our plugin, named as Claude Code's     the block itself
    plain     JSON, or the prompt itself                     the block itself

An answer that an agent cannot use may block its prompt, so each gets exactly its form or nothing. The
hook loads this only with `--agent`.
"""

from __future__ import annotations

from vault_index.hotpath import protocol

PROMPT, START = "UserPromptSubmit", "SessionStart"
# what an agent calls an event, and what Claude Code does; others stay as they are
_EVENTS = {
    "codex": {},
    "gemini": {"BeforeAgent": PROMPT},
    "cursor": {"beforeSubmitPrompt": PROMPT, "sessionStart": START},
    "opencode": {},
    "plain": {},
}
# where an agent keeps what Claude Code has under another name
_FIELDS = {
    "codex": {"prompt_id": "turn_id"},
    "gemini": {"prompt_id": "timestamp"},  # of the event: all of its hooks get the same
    "cursor": {"session_id": "conversation_id", "prompt_id": "generation_id"},
}
AGENTS = tuple(_EVENTS)
# Without a terminal, Gemini CLI puts what was injected at the start before the first prompt.
_GEMINI_OPEN, _GEMINI_CLOSE = "<hook_context>", "</hook_context>"


def normalise(agent: str, text: str) -> dict[str, object]:
    """Return an agent's event with Claude Code's names. Raises ValueError for anything else."""
    if agent not in _EVENTS:
        raise ValueError(f"no agent is called {agent[:40]!r}: {', '.join(AGENTS)}")
    event = _plain(text) if agent == "plain" else protocol.loads(text)
    if not isinstance(event, dict):
        raise ValueError("the event is no JSON object")
    name = event.get("hook_event_name")
    event["hook_event_name"] = _EVENTS[agent].get(str(name), name)
    for ours, theirs in _FIELDS.get(agent, {}).items():
        if event.get(theirs):
            event[ours] = event[theirs]
    if agent == "codex" and event.get("agent_id"):
        event["source"] = "system"  # the prompt of an agent to its subagent
    if agent == "cursor":
        roots = event.get("workspace_roots")
        if not event.get("cwd") and isinstance(roots, list) and roots:
            event["cwd"] = roots[0]
    prompt = event.get("prompt")
    if agent == "gemini" and isinstance(prompt, str) and prompt.startswith(_GEMINI_OPEN):
        event["prompt"] = prompt.partition(_GEMINI_CLOSE)[2]
    return event


def answer(agent: str, name: object, block: str) -> str:
    """Return what to print for the block that a prompt or, by its `name`, a session's start gets."""
    if agent in ("opencode", "plain"):
        return f"{block}\n"
    if agent == "cursor":
        go_on = {"continue": True} if name == PROMPT else {}
        return protocol.dumps({**go_on, "additional_context": block})
    names = {ours: theirs for theirs, ours in _EVENTS[agent].items()}
    output = {"hookEventName": names.get(str(name), name), "additionalContext": block}
    return protocol.dumps({"hookSpecificOutput": output})


def _plain(text: str) -> object:
    """Return an event: JSON with a prompt or the name of an event, else the text is the prompt."""
    if text.lstrip()[:1] == "{":
        try:
            event = protocol.loads(text)
        except (ValueError, RecursionError):
            event = None
        if isinstance(event, dict) and ("prompt" in event or "hook_event_name" in event):
            return {"hook_event_name": PROMPT, **event}
    return {"hook_event_name": PROMPT, "prompt": text}
