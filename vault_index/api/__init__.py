"""Every question and command of the product: a function each, by the module of its subject.

    client.ask(vault, api.search.find(query=Query("heap")))  ->  an answer with its hits

The command line, the hook, MCP and HTTP only translate to these. A question reads the index as it
is, and the watcher may answer it; a command changes files, or reads what no watcher keeps. A module loads
at its first use. One with questions loads what answers them inside its functions: who asks the watcher
does not wait for that. Nothing here prints; errors are VaultError.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from vault_index.api import codec
from vault_index.api.question import Answer, Caller, Form, Progress, Question, silent
from vault_index.errors import VaultError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from vault_index.api import (
        asking,
        document,
        edit,
        injection,
        journal,
        learn,
        lesson,
        proposal,
        search,
        share,
        skill,
        state,
        tending,
    )
    from vault_index.journal.journal import Journal
    from vault_index.vault import Vault

MODULES = (
    "asking", "document", "edit", "injection", "journal", "learn", "lesson", "proposal", "search",
    "share", "skill", "state", "tending",
)  # fmt: skip

__all__ = [
    "MODULES", "Answer", "Caller", "Progress", "Question", "answer_on_wire", "asking", "document",
    "edit", "injection", "journal", "learn", "lesson", "proposal", "search", "share", "silent",
    "skill", "state", "tending",
]  # fmt: skip

if not TYPE_CHECKING:  # it knows them all

    def __getattr__(name):
        if name not in MODULES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        return importlib.import_module(f"{__name__}.{name}")


def answer_on_wire(about: Vault | Journal, request: Mapping[str, Any]) -> dict[str, Any]:
    """Answer a question `{"ask": name, "with": {...}}`, as `codec.to_wire` spells the answer.

    Raises VaultError, for an unknown question and a command, too.
    """
    name = str(request["ask"])
    module, _, function = name.partition(".")
    form = None
    if module in MODULES:
        form = getattr(importlib.import_module(f"{__name__}.{module}"), function, None)
    if not isinstance(form, Form) or form.name != name or form.is_command:
        raise VaultError(f"there is no {name!r} here", "see the modules of `vault_index.api`")
    values = codec.arguments(form.function, request.get("with") or {})
    return codec.to_wire(form.function(about, **values))
