"""Every question and command of the product as one function of plain values: JSON in, JSON out.

    {"ask": "search", "with": {"text": "heap", "k": 3}}  ->  {"hits": [...], "floor": 0.61, ...}

The command line, the hook, MCP and HTTP only translate to these. A question reads the index as it
is, and the watcher may answer it; a command changes files, or reads what no watcher keeps. The
modules load by name, as a list of lessons needs nothing of what a search needs. Nothing here
prints; errors are VaultError.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from vault_index.errors import VaultError

if TYPE_CHECKING:
    from vault_index.index.stats import Problem, Stats
    from vault_index.journal.journal import Journal
    from vault_index.vault import Vault

# name -> module of this folder and function, called as function(vault, **values); those whose name
# begins with "journal" get the journal in place of a vault
QUESTIONS: Mapping[str, str] = {
    "search": "find.search",
    "recall": "find.recall",
    "typed": "find.typed",
    "compare": "find.compare",
    "classify": "find.classify",
    "hook": "find.hook",
    "list": "lessons.list_",
    "show": "lessons.show",
    "categories": "lessons.categories",
    "outcome": "outcomes.of_lesson",
    "injections": "injections.list_",
    "lesson": "lesson_page.lesson",
    "nearest": "lesson_page.nearest",
    "own prompts": "lesson_page.prompts",
    "filed": "lessons.filed",
    "documents": "documents.list_",
    "contents": "documents.contents",
    "overview": "documents.overview",
    "courses": "documents.courses",
    "suggestions": "asking.suggest",
    "query": "find.for_program",
    "ask search": "asking.search",
    "health": "find.health",
    "learn search": "learn.search",
    "learn get": "learn.get",
    "learn status": "learn.status",
    "skills candidates": "skills.candidates",
    "skills behind": "skills.compare",
    "skills triggers": "skills.rate_triggers",
    "check proposal": "proposals.check",
    "compare proposal": "proposals.compare",
    "outlook of proposal": "proposals.outlook",
    "journal search": "journal.search",
    "journal timeline": "journal.timeline",
    "journal show": "journal.show",
    "journal sessions": "journal.sessions",
    "journal days": "journal.days",
    "journal day": "journal.day",
    "journal status": "journal.status",
}
# the same, called as function(vault, caller, **values)
COMMANDS: Mapping[str, str] = {
    "add": "edit.add_lesson",
    "update": "edit.update_lesson",
    "delete": "edit.delete_lesson",
    "ingest": "edit.ingest_texts",
    "read file": "lesson_page.read_file",
    "check text": "lesson_page.check_text",
    "save file": "lesson_page.save_file",
    "file changes": "lesson_page.file_changes",
    "rename": "edit.rename_category",
    "accept": "edit.accept_categories",
    "confirm": "outcomes.confirm_lessons",
    "teach": "injections.teach_lesson",
    "stale": "outcomes.stale_lessons",
    "import": "edit.import_from",
    "remember": "proposals.remember",
    "proposals": "proposals.list_",
    "review": "proposals.review_",
    "edit proposal": "proposals.edit",
    "merge proposal": "proposals.merge",
    "accept proposal": "proposals.accept",
    "reject proposal": "proposals.reject",
    "skills build": "skills.build_ready",
    "ask": "asking.ask",
    "learn": "learn.learn",
    "learn trigger": "learn.trigger",
    "check": "share.check_files",
    "log": "share.history_of",
    "edits": "lesson_page.edits",
    "patch": "lesson_page.patch",
    "sync": "share.sync_with_others",
    "index": "state.index_vault",
    "status": "state.state_of",
    "config": "state.settings_of",
    "eval": "state.measure",
    "journal import": "journal.import_",
    "journal index": "journal.index_",
    "journal forget": "journal.forget_",
}

Progress = Callable[[str, int, int], None]  # what is being done, how many are done, of how many


@dataclass(frozen=True, slots=True)
class Caller:
    """What a command may ask of its caller while it works: see `client`, which provides it."""

    note: Callable[[str], None]  # takes a line for people: a note, or a warning
    progress: Progress
    event: Callable[[Mapping[str, Any]], None]  # takes a part of the answer before the whole of it
    ask: Callable[..., dict[str, Any]]  # puts another question: `ask("show", name="heap")`
    index: Callable[..., Stats | None]  # brings the index of a vault up to date: `index(vault)`

    def progress_of(self, label: str) -> Callable[[int, int], None]:
        """Return the callback (done, all) for a part of the work."""
        return lambda done, of: self.progress(label, done, of)


def is_about_journal(name: str) -> bool:
    """Whether a question or command is about the journal, and not about a vault."""
    return name.startswith("journal ")


def answer(vault: Vault | Journal, question: Mapping[str, Any]) -> dict[str, Any]:
    """Answer a question `{"ask": name, "with": {...}}` from the index as it is.

    Raises VaultError, for an unknown question too, and TypeError for values it does not take.
    """
    function = _function(QUESTIONS, question["ask"])
    answered: dict[str, Any] = function(vault, **question["with"])
    return answered


def run(vault: Vault | Journal, caller: Caller, command: Mapping[str, Any]) -> dict[str, Any]:
    """Carry out a command `{"ask": name, "with": {...}}`. Raises as `answer` does."""
    function = _function(COMMANDS, command["ask"])
    answered: dict[str, Any] = function(vault, caller, **command["with"])
    return answered


def from_files(
    vault: Vault, question: Mapping[str, Any], *, names_only: bool = False, prompts: bool = True
) -> tuple[dict[str, Any], list[Problem]] | None:
    """Answer a question from the files alone, with the problems in them; None where that fails.

    See `lessons.from_files`. Outcomes and injections are in no table.
    """
    if question["ask"] in ("outcome", "injections"):
        return answer(vault, question), []
    if question["ask"] not in ("show", "list", "categories"):
        return None
    lessons = importlib.import_module(f"{__name__}.lessons")
    answered: tuple[dict[str, Any], list[Problem]] | None = lessons.from_files(
        vault, question, names_only=names_only, prompts=prompts
    )
    return answered


def warning(problem: Problem) -> str:
    """Return the line that tells people of a file that the index has not as it is."""
    return f"warning: {problem.path}:{problem.line}: {problem.message}"


def init(folder: str) -> dict[str, Any]:
    """Make a vault in a folder: see `state.make_vault`."""
    made: dict[str, Any] = importlib.import_module(f"{__name__}.state").make_vault(folder)
    return made


def _function(table: Mapping[str, str], name: str) -> Callable[..., Any]:
    if name not in table:
        raise VaultError(f"there is no {name!r} here", f"choose among {', '.join(table)}")
    module, _, function = table[name].partition(".")
    found: Callable[..., Any] = getattr(importlib.import_module(f"{__name__}.{module}"), function)
    return found
