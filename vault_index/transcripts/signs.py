"""Signs of what happened in a turn: it was corrected, and a call failed, changed or committed."""

from __future__ import annotations

import re

from vault_index.transcripts import events, tools, vocabulary
from vault_index.transcripts.turns import Call, Turn

GO_ON = 20  # characters; after an interruption a shorter prompt ("continue") corrects nothing
_EXIT_CODE = re.compile(r"Exit code \d+")
_WRONG = re.compile(r"\b(?:error|fatal|panic|exception|undefined|cannot|FAIL)\b", re.IGNORECASE)
_ABSENT = re.compile(r"\b(?:not found|no such|denied|failed|unable|refused)\b", re.IGNORECASE)


def is_done_edit(call: Call) -> bool:
    """Whether a call changed a file: neither refused nor failed."""
    return call.kind == tools.EDIT and call.is_done and not call.is_error


def is_change(call: Call) -> bool:
    """Whether a call changed something of the work: a file, not the agent's own plan."""
    if call.kind == tools.SHELL:
        return call.is_done and not call.is_error and tools.is_change(call.command)
    own = ("/.claude/plans/", "/.claude/projects/")
    return is_done_edit(call) and not any(folder in path for path in files(call) for folder in own)


def failed(call: Call) -> bool:
    """Whether a command failed, by its status or, of a check behind a pipe, by what it printed."""
    if call.is_error:
        return not vocabulary.is_mundane_error(call.text)
    return bool(call.text) and tools.is_check(call.command) and tools.says_failed(call.text)


def commits(call: Call) -> list[str]:
    """Return the subjects of the commits that a call made."""
    if call.is_error or not call.is_done:
        return []
    return tools.subjects(call.command, call.text)


def files(call: Call) -> list[str]:
    """Return the paths of files that a call reads or changes."""
    if call.kind in (tools.EDIT, tools.READ):
        return tools.files_of(call.input)
    return tools.reads(call.command)


def is_correction(turn: Turn) -> bool:
    """Whether a turn begins with the user correcting the agent, or refusing what it was about to do."""
    prompt = turn.prompt
    return prompt is not None and (
        prompt.kind == events.REFUSAL
        or corrects(prompt.text, turn.context, prompt.kind, is_interruption=turn.is_interruption)
    )


def corrects(prompt: str, answers: str, origin: str, *, is_interruption: bool = False) -> bool:
    """Whether a typed prompt says that what the agent had said, or was doing, is wrong."""
    if origin not in events.TYPED or not answers:
        return False
    return vocabulary.corrects(prompt) or (is_interruption and len(prompt) > GO_ON)


def has_error(text: str) -> bool:
    """Whether a text names an error."""
    return bool(_WRONG.search(text) or _ABSENT.search(text))


def error_line(text: str) -> str:
    """Return the line of an output that says best what went wrong."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    lines = [line for line in lines if not _EXIT_CODE.fullmatch(line)] or [""]
    return next(filter(_WRONG.search, lines), lines[0])
