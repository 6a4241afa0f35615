"""Why an agent got nothing, as the record, `lessons last` and the pages say it."""

from __future__ import annotations

NOTHING = "nothing above the floor"
ALREADY_GIVEN = "the session has it already"
OTHER_LANGUAGE = "no words in common, and the model does not know the language"
NO_ROOM = "no room for it: raise prompt_tokens"
TAUGHT_OUT = "it was taught to stay out"
SHORT = "so short a prompt gets only a lesson with that very word"
UNTRUSTED = "your settings do not trust the lesson: see `trust` and `trusted_authors`"
LEFT_OUT = "called wrong, or its code is gone: `lessons check --stale`"
CAN_BE_TAUGHT = ("", NOTHING, SHORT, OTHER_LANGUAGE)  # they end when the prompt is taught
_WITHHELD = " is left out: "


def withheld(path: str, why: str) -> str:
    """Return the reason where a lesson is withheld."""
    return f"{path}{_WITHHELD}{why}"


def without_withheld(silent: str) -> str:
    """Return the reason of a silence so that it names no withheld lesson."""
    return NOTHING if _WITHHELD in silent else silent
