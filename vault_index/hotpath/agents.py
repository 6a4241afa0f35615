"""Events of other agents than Claude Code: made to look like its own, and the answer in their form.

    agent     the prompt           the start      after a command  the answer on stdout
    codex     UserPromptSubmit     SessionStart   PostToolUse      as Claude Code's; no other key
    gemini    BeforeAgent          SessionStart   AfterTool        as Claude Code's, with its own name
    cursor    beforeSubmitPrompt   sessionStart   postToolUse      {"additional_context": ...}
    copilot   UserPromptSubmit     SessionStart   PostToolUse      {"additionalContext": ...}
    opencode  sent by our plugin, named as Claude Code's     the block itself
    plain     JSON, or the prompt itself                     the block itself

Codex notes the status of a command in the session's file, Gemini CLI and Copilot CLI add it to the
output, Cursor has it beside the output. Without a status nothing failed.

An answer that an agent cannot use may block its prompt, so each gets exactly its form or nothing.
"""

from __future__ import annotations

from vault_index.hotpath import index_files, protocol

PROMPT, START, FAILURE = "UserPromptSubmit", "SessionStart", "PostToolUseFailure"
# what an agent calls an event, and what Claude Code does; others stay as they are
_EVENTS = {
    "codex": {"PostToolUse": FAILURE},
    "gemini": {"BeforeAgent": PROMPT, "AfterTool": FAILURE},
    "cursor": {"beforeSubmitPrompt": PROMPT, "sessionStart": START, "postToolUse": FAILURE},
    "copilot": {"PostToolUse": FAILURE},
    "opencode": {},
    "plain": {},
}
# where an agent keeps what Claude Code has under another name
_FIELDS = {
    "codex": {"prompt_id": "turn_id"},
    "gemini": {"prompt_id": "timestamp"},  # of the event: all of its hooks get the same
    "cursor": {"session_id": "conversation_id", "prompt_id": "generation_id"},
    "copilot": {"prompt_id": "timestamp"},
}
AGENTS = tuple(_EVENTS)
# Gemini CLI tells that it compresses a conversation, and reads no answer: a start that only forgets.
_GEMINI_COMPRESSES, EMPTIED = "PreCompress", "emptied"
INTERRUPTED = 130  # the status of a command that somebody stopped
MAX_TAIL = 512 * 1024  # bytes of a session's file: calls that run side by side end in any order
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
    if agent in _ENDED and event["hook_event_name"] == FAILURE:
        try:
            output, status = _ENDED[agent](event)
        except (OSError, ValueError, RecursionError):  # another version's form
            return {}
        if not isinstance(status, int) or status <= 0 or status == INTERRUPTED:
            return {}
        event.update(tool_name="Bash", error=output)
    for ours, theirs in _FIELDS.get(agent, {}).items():
        if event.get(theirs):
            event[ours] = event[theirs]
    if agent == "codex" and event.get("agent_id"):
        event["source"] = "system"  # the prompt of an agent to its subagent
    if agent == "copilot" and event.get("source") == "new":
        event["source"] = "startup"
    if agent == "cursor":
        roots = event.get("workspace_roots")
        if not event.get("cwd") and isinstance(roots, list) and roots:
            event["cwd"] = roots[0]
    prompt = event.get("prompt")
    if agent == "gemini" and name == _GEMINI_COMPRESSES:
        event.update(hook_event_name=START, source=EMPTIED)
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
    if agent == "copilot":
        return protocol.dumps({"additionalContext": block})
    names = {ours: theirs for theirs, ours in _EVENTS[agent].items()}
    output = {"hookEventName": names.get(str(name), name), "additionalContext": block}
    return protocol.dumps({"hookSpecificOutput": output})


def _ended_in_codex(event: dict[str, object]) -> tuple[object, object]:
    """Return the output of a command and its status, which Codex wrote down before it runs the hook."""
    import os

    call = str(event.get("tool_use_id"))
    handle = index_files.open_plain(str(event.get("transcript_path")), follow=True)
    with open(handle, "rb") as file:
        file.seek(max(0, os.fstat(file.fileno()).st_size - MAX_TAIL))
        lines = file.read(MAX_TAIL).splitlines()
    for line in reversed(lines):
        if call.encode() in line and b'"CommandExecution"' in line:
            item = _item(protocol.loads(line.decode("utf-8", "replace")), "payload", "item")
            if _item(item, "id") == call:
                return event.get("tool_response"), _item(item, "exit_code")
    return "", None


def _ended_in_gemini(event: dict[str, object]) -> tuple[object, object]:
    response = event.get("tool_response")
    output, text = _item(response, "returnDisplay"), str(_item(response, "llmContent"))
    if not isinstance(output, str):
        return "", None
    start, after = f"Output: {output}\nExit Code: ", text.partition("\n")[2]
    status = after[len(start) :].partition("\n")[0] if after.startswith(start) else ""
    return output, int(status) if status.isdigit() else None


def _ended_in_cursor(event: dict[str, object]) -> tuple[object, object]:
    values = protocol.loads(str(event.get("tool_output")))
    texts = [_item(values, name) for name in ("stdout", "stderr")]
    return "\n".join(text for text in texts if isinstance(text, str)), _item(values, "exitCode")


def _ended_in_copilot(event: dict[str, object]) -> tuple[object, object]:
    text = str(_item(event, "tool_result", "text_result_for_llm")).rstrip()
    output, _, ended = text.rpartition("<shellId: ")
    status = ended.partition(" completed with exit code ")[2].removesuffix(">")
    return output, int(status) if status.isdigit() else None


_ENDED = {
    "codex": _ended_in_codex,
    "gemini": _ended_in_gemini,
    "cursor": _ended_in_cursor,
    "copilot": _ended_in_copilot,
}


def _item(value: object, *names: str) -> object:
    for name in names:
        value = value.get(name) if isinstance(value, dict) else None
    return value


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
