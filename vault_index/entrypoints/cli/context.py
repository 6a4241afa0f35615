"""Asking for a command: notes go to stderr, and progress becomes a bar where that is a terminal."""

from __future__ import annotations

import contextlib
import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import click

from vault_index import api, client
from vault_index.entrypoints.cli import output
from vault_index.errors import VaultError, WriteError
from vault_index.text.words import meant, nearest

if TYPE_CHECKING:
    from vault_index.retrieval.hit import Entry, WholeEntry
    from vault_index.vault import Vault

LONG_STEPS = 1000  # which take seconds
MAX_LINKS = 1000  # of a vault that are remembered


def note(message: str) -> None:
    """Print a line beside the answer, on stderr."""
    output.say(message, err=True)


def note_once(message: str) -> None:
    """Print it unless the command has printed the same while it worked."""
    if message not in Console.noted:
        note(message)


def note_nothing(message: str) -> None:
    """Note that nothing is kept, and why it may seem so: the database cannot be opened, or is new."""
    from vault_index import config, state

    note(message)
    for problem, fix in state.notes(config.home_folder()):
        if fix:
            note(f"warning: {problem}")


def _was_said_today(warning: str) -> bool:
    """Whether a warning is about a link, and was said on this day. If not, it is noted as said."""
    from vault_index.vault import LINK

    if not warning.endswith(f": {LINK}"):
        return False
    from vault_index import config, state

    home, today = config.home_folder(), date.today().isoformat()
    root = client.open_vault(place()).root
    noted = state.fact(home, name := f"links {state.vault_of(root)}") or {}
    warnings = noted.get("said", []) if noted.get("day") == today else []
    if warning in warnings:
        return True
    with contextlib.suppress(WriteError):
        state.keep_fact(home, name, {"day": today, "said": [*warnings, warning][-MAX_LINKS:]})
    return False


class Console(contextlib.ExitStack):
    """The output of a command while it works: one bar at a time, and notes between bars."""

    _label = ""
    _bar: Any = None
    noted: ClassVar[set[str]] = set()  # of this command, which may ask several questions

    def note(self, message: str) -> None:
        """Print a note once; a bar ends before it."""
        if message in self.noted:
            return
        self.noted.add(message)
        if message.startswith("warning: ") and _was_said_today(message):
            return
        self._end_bar()
        note(message)

    def progress(self, label: str, done: int, of: int) -> None:
        """Draw how much is done; nothing in a pipe, or where a terminal takes no escapes.

        The log of a git hook gets a line when something long begins, and when it ends.
        """
        if not sys.stderr.isatty() or output.color() is False:
            if os.environ.get(output.HOOK_FD) and of >= LONG_STEPS and done in (0, of):
                note(f"lessons: {label}: {done:,} of {of:,}")
            return
        if label != self._label:
            self._end_bar()
            self._label, self._bar = label, self.enter_context(output.progress(label))
        self._bar.length = max(1, of)
        self._bar.update(done - self._bar.pos)

    def after_bar(self, take: Callable[[Any], None]) -> Callable[[Any], None]:
        """Return a callback that ends the bar before it passes on what it takes."""

        def pass_on(part: Any) -> None:
            self._end_bar()
            take(part)

        return pass_on

    def _end_bar(self) -> None:
        self._label = ""
        self.close()


def is_typed() -> bool:
    """Whether a person at a terminal can answer."""
    return sys.stdin.isatty() and sys.stderr.isatty() and not output.is_for_agent()


def place() -> Any:
    """Return the vault or index that an option names; None: the vault around the current folder."""
    return click.get_current_context().obj


def vault() -> Vault:
    """Open the vault that the command is about. Raises VaultError."""
    return client.open_vault(place())


def name_in_vault(lesson: str) -> str:
    """Return the name of a lesson; of a path as a shell completes it, the one from the vault's root."""
    return client.name_in_vault(place(), lesson)


def ask(question: api.Question[api.Answer], *, of: Any = None, **options: Any) -> api.Answer:
    """Ask the vault that the command is about, or the one `of` a place: see `client.Options`."""
    with Console() as console:
        if "event" in options:
            options["event"] = console.after_bar(options["event"])
        all_options = client.Options(note=console.note, progress=console.progress, **options)
        return client.ask(of or place(), question, all_options)


@contextlib.contextmanager
def as_of(revision: str, name: str = "") -> Iterator[Callable[[api.Question[Any]], Any]]:
    """Make the vault as it was at a commit, tag or date; yield a function that asks it.

    With the `name` of a lesson it has only the files that may have this lesson.
    """
    from vault_index.client import local
    from vault_index.share import history

    with history.at(vault(), revision, name) as (past, commit):
        with Console() as console:
            local.bring_up_to_date(past, console.note, console.progress)
        yield lambda question: history.signed(vault(), commit, question.answer(past))


def entry(lesson: str) -> WholeEntry:
    """Return a lesson with its text, by id, by the end of it, or by a path as a shell completes it."""
    return ask(api.lesson.show(name=name_in_vault(lesson)))


def entry_to_read(lesson: str) -> WholeEntry:
    """Return the same for whoever reads it: an agent gets what agents may, and that it read it counts."""
    if not output.is_for_agent():
        return entry(lesson)
    return ask(api.learn.read(name=name_in_vault(lesson)))


def entry_at(lesson: str, revision: str) -> WholeEntry:
    """Return a lesson with its text as it was at a commit, tag or date."""
    name = name_in_vault(lesson)
    question = api.lesson.show(name=name)
    try:
        with as_of(revision, name) as ask_past:
            entry: WholeEntry = ask_past(question)
    except VaultError:
        with as_of(
            revision
        ) as ask_past:  # its file has the name in other letters, or it fails again
            entry = ask_past(question)
    return entry


def project() -> str:
    """Register the skills of the project around the current folder; return the folder."""
    from vault_index.index import skills

    here = Path.cwd()
    skills.register(vault(), here)
    return str(here)


def refuse_unknown(
    categories: Sequence[str] = (), tags: Sequence[str] = (), type: str = ""
) -> None:
    """Raise VaultError for a category, tag or type that no lesson has, with the nearest name."""
    if hasattr(place(), "uri"):  # a published index lists nothing
        return
    from vault_index.lesson.category import normalise
    from vault_index.lesson.parse import TYPES
    from vault_index.text.blocks import composed

    hints = {"category": "see `lessons categories`", "tag": "see `lessons list --json`"}
    hints["type"] = f"choose one of {', '.join(TYPES)}"
    existing = {"category": set(ask(api.lesson.count()).counts), "type": set(TYPES)}
    wanted = [("category", normalise(each)) for each in categories] + [("type", type)] * bool(type)
    if tags:
        lessons = ask(api.lesson.select())
        existing["tag"] = {tag.lower() for lesson in lessons for tag in lesson.tags}
        wanted += [("tag", composed(tag).lower()) for tag in tags]
    for kind, name in wanted:
        if name not in existing[kind]:
            near = meant(name, existing[kind])
            hint = f"run it again with {near}" if near else hints[kind]
            raise VaultError(f"no lesson has the {kind} {name!r}", hint)


def note_new_categories(categories: Sequence[str]) -> None:
    """Note each category that no folder has and that is spelled nearly like a category that is there."""
    from vault_index.lesson.category import normalise

    opened = vault()
    existing, top = set(opened.config.taxonomy), opened.lessons_dir
    existing |= {str(path.relative_to(top)) for path in top.glob("**/") if path != top}
    for path in map(normalise, categories):
        if path and path not in existing and (near := nearest(path, existing, 0.85)):
            note(f"note: {path} is a new category; there is {near}, too")


def speaker() -> str:
    """Return the kind of a command's author, by the environment: person | agent."""
    return "agent" if output.is_for_agent() else "person"


def announce_model() -> None:
    """Say, where the built-in model is missing, how it will come here."""
    from vault_index import config
    from vault_index.embed import download
    from vault_index.errors import SettingsError

    with contextlib.suppress(SettingsError):  # a command that needs the settings reports it
        announcement = download.announcement(config.load())
        if announcement:
            note(f"note: {announcement}")


MAX_SHOWN = 20
LINES_BESIDE = 3  # of the screen: what was typed, how many there are, the question


def pick(near: str = "") -> str:
    """Ask for a lesson and return its id, beginning with those nearest to a text.

    Raises UsageError where nobody can answer.
    """
    if not is_typed():
        raise click.UsageError("name a lesson by its ID; `lessons list` shows the ids")
    lessons = ask(api.lesson.select())
    if not lessons:
        raise VaultError("no lessons yet", "add one: lessons add --title ... --text ...")
    words = near
    while True:
        matching = _search(lessons, words) if words else lessons
        if len(matching) == 1 and words and words is not near:
            return matching[0].id
        lines = shutil.get_terminal_size().lines - LINES_BESIDE
        offered = matching[: max(3, min(MAX_SHOWN, lines))]
        for number, lesson in enumerate(offered, start=1):
            id = output.styled(f"  {lesson.id}", dim=True)
            output.say(f"{number:>3}  ", lesson.title, id, err=True)
        if len(matching) > len(offered):
            note(f"     and {len(matching) - len(offered)} more")
        if not matching:
            note(f"no lesson matches {words!r}")
        typed = output.ask("a number, words to search for, or nothing to stop:").strip()
        if not typed:
            raise click.Abort
        if typed.isdecimal() and 1 <= int(typed) <= len(offered):
            return offered[int(typed) - 1].id
        words = typed


def _search(lessons: Sequence[Entry], words: str) -> Sequence[Entry]:
    """Return the lessons whose id or title holds all words or, without any, the hits of a search."""
    from vault_index.retrieval.hit import Query

    named_so = [(f"{lesson.id} {lesson.title}".lower(), lesson) for lesson in lessons]
    wanted = words.lower().split()
    if matching := [each for name, each in named_so if all(word in name for word in wanted)]:
        return matching
    hits = ask(api.search.find(query=Query(words, MAX_SHOWN))).hits
    by_id = {lesson.id: lesson for lesson in lessons}
    return [by_id[hit.lesson_id] for hit in hits if hit.lesson_id in by_id]


def named_editor() -> str:
    """Return the editor that the environment names; "" without one."""
    named = (os.environ.get(name, "").strip() for name in ("VISUAL", "EDITOR"))
    return next(filter(None, named), "")


def _editor(root: Path) -> str:
    from vault_index import git

    chosen = named_editor() or git.editor(root)
    if not chosen and (shutil.which("vi") is None or not sys.stdin.isatty()):
        why = "vi is not installed" if shutil.which("vi") is None else "vi needs a terminal"
        hint = "set EDITOR to your editor, for example: export EDITOR=nano"
        raise VaultError(f"no editor is named and {why}", hint)
    return chosen or "vi"


def edit_file(file: Path, root: Path) -> None:
    """Open a file in the user's editor and wait until that ends. Raises VaultError."""
    chosen = _editor(root)
    try:
        done = subprocess.run([*shlex.split(chosen), str(file)], check=False)
    except (OSError, ValueError) as error:
        raise VaultError(f"cannot run the editor {chosen!r}: {error}", "set EDITOR") from None
    if done.returncode != 0:
        raise VaultError(f"the editor {chosen!r} ended with {done.returncode}")


def edit_text(text: str, root: Path) -> str | None:
    """Return a text as the user saved it in an editor; None if nothing was saved. Raises VaultError."""
    chosen = _editor(root)
    try:
        return click.edit(text, editor=chosen, extension=".md")
    except click.ClickException as error:
        raise VaultError(f"the editor {chosen!r} failed: {error.message}", "set EDITOR") from None
