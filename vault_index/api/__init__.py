"""Every question and command of the product: a function each, by the module of its subject.

    client.ask(vault, api.search.find(query=Query("heap")))  ->  an answer with its hits

The command line, the hook, MCP and HTTP only translate to these. A question reads the index as it
is, and the watcher may answer it; a command changes files, or reads what no watcher keeps. Modules
load by name, when they are needed. Nothing here prints; errors are VaultError.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from vault_index.api import codec
from vault_index.api.question import Answer, Caller, Form, Progress, Question
from vault_index.errors import VaultError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

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
    )
    from vault_index.edit import InitResult
    from vault_index.journal.journal import Journal
    from vault_index.share.git_hooks import HooksResult
    from vault_index.store.manifest import Problem
    from vault_index.vault import Vault

MODULES = (
    "asking", "document", "edit", "injection", "journal", "learn", "lesson", "proposal", "search",
    "share", "skill", "state",
)  # fmt: skip

# what changes files, or reads what no watcher keeps; the others are questions
COMMANDS = frozenset(
    "asking.ask edit.accept edit.add_lesson edit.delete_lesson edit.import_from edit.ingest "
    "edit.move_lesson edit.rename edit.update_lesson injection.confirm injection.useful "
    "injection.stale_lessons injection.teach_lesson journal.erase "
    "journal.import_transcripts learn.learn learn.material learn.propose learn.trigger lesson.diff "
    "lesson.history proposal.accept proposal.cards proposal.edit proposal.merge proposal.reject "
    "proposal.select search.recall_failure share.check_files share.log "
    "share.sync share.touched share.vaults skill.build_ready skill.deploy_built "
    "skill.withdraw_built state.index state.measure state.publish_index state.report "
    "state.settings".split()
)  # fmt: skip

FROM_NO_INDEX = frozenset({"lesson.tally", "injection.select"})  # questions about what agents got

__all__ = [
    "COMMANDS", "FROM_NO_INDEX", "Answer", "Caller", "Progress", "Question", "answer",
    "answer_on_wire", "asking", "document", "edit", "forms", "init", "injection", "is_command",
    "journal", "learn", "lesson", "proposal", "run", "search", "share", "skill", "state", "warning",
]  # fmt: skip


class _Module:
    """A module of this folder by its name: its forms make questions, and it is not loaded."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, function: str) -> Form[..., Any]:
        return Form(f"{self._name}.{function}")


def __getattr__(name: str) -> Any:
    if name not in MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return _Module(name)


def answer(vault: Vault | Journal, question: Question[Answer]) -> Answer:
    """Answer a question from the index as it is.

    Raises VaultError, for an unknown question too, and TypeError for values it does not take.
    """
    answered: Answer = _function(question.name, commands=False)(vault, **question.values)
    return answered


def answer_on_wire(vault: Vault | Journal, asked: Mapping[str, Any]) -> dict[str, Any]:
    """Answer a question `{"ask": name, "with": {...}}`, as `codec.to_wire` spells the answer."""
    function = _function(str(asked["ask"]), commands=False)
    values = codec.arguments(function, asked.get("with") or {})
    return codec.to_wire(function(vault, **values))


def run(vault: Vault | Journal, caller: Caller, command: Question[Answer]) -> Answer:
    """Carry out a command. Raises as `answer` does."""
    answered: Answer = _function(command.name, commands=True)(vault, caller, **command.values)
    return answered


def is_command(question: Question[Any]) -> bool:
    """Whether it is a command, and not a question."""
    return question.name in COMMANDS


def forms() -> Iterator[Form[..., Any]]:
    """Yield every question and command; all modules load."""
    for name in MODULES:
        for form in vars(importlib.import_module(f"{__name__}.{name}")).values():
            if isinstance(form, Form) and form.name.startswith(f"{name}."):
                yield form


def warning(problem: Problem) -> str:
    """Return the line that tells people of a file that the index has not as it is."""
    return f"warning: {problem.path}:{problem.line}: {problem.message}"


def init(folder: str) -> tuple[InitResult, HooksResult]:
    """Make a vault in a folder: see `state.make_vault`."""
    made: tuple[InitResult, HooksResult] = importlib.import_module(f"{__name__}.state").make_vault(
        folder
    )
    return made


def _function(name: str, *, commands: bool) -> Any:
    module, _, function = name.partition(".")
    if module in MODULES and not function.startswith("_"):
        form = getattr(importlib.import_module(f"{__name__}.{module}"), function, None)
        if isinstance(form, Form) and form.name == name and form.commands == commands:
            return form.function
    raise VaultError(f"there is no {name!r} here", "see the modules of `vault_index.api`")
