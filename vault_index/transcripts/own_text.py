"""Text that this product, or a program like it, put into a session: never a part of the journal.

A lesson in a session would be found as if somebody had said it there, and would come back at the next
prompt. A fence is left out wherever it is quoted: in a tool's result, in JSON, behind line numbers.
"""

from __future__ import annotations

import re

from vault_index.transcripts import events

_OPEN, _CLOSE = r"(?:<|\\u003c)", r"(?:>|\\u003e)"
_FENCE = re.compile(
    rf"{_OPEN}lessons{_CLOSE}.*?{_OPEN}\\?/lessons{_CLOSE}"
    # cut off before its end: it fills its line, or is quoted in JSON
    rf"|{_OPEN}lessons{_CLOSE}(?:[ \t]*\n|\\n).*",
    re.DOTALL,
)
_OF_PROGRAMS = re.compile(
    r"<(system-reminder|ide_opened_file|ide_selection|ide_diagnostics)>.*?(?:</\1>|\Z)", re.DOTALL
)


def is_internal(prompt: str) -> bool:
    """Whether a prompt is one that this product sends to an agent."""
    return prompt.lstrip().startswith(events.MARKER)


def left_out(text: str) -> str:
    """Return a text without fences, and without what programs put beside a person's words."""
    if "lessons" in text:
        text = _FENCE.sub("", text)
    if "<system-reminder>" in text or "<ide_" in text:
        text = _OF_PROGRAMS.sub("", text)
    return text
