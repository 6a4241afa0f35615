"""The commands that put lessons in order: import, and categories with propose and rename."""

from __future__ import annotations

import os
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

import click

from vault_index import api
from vault_index.entrypoints.cli import completion, context, options, output
from vault_index.lesson.category import UNCATEGORIZED
from vault_index.text.words import count

if TYPE_CHECKING:
    from vault_index.edit.import_lessons import Item
    from vault_index.index.classifier import ProbableCategories


@click.group("categories", cls=options.WithDefault, epilog="Example: lessons categories --json")
def categories_command() -> None:
    """Print the tree of categories; rename and propose them."""


@options.command("tree", "lessons categories tree --json", of=categories_command, paged=True)
def print_tree() -> options.Answers:
    """Print the tree of categories, with counts of lessons."""
    answer = context.ask(api.lesson.count(), settled=True)
    yield answer.counts
    if not answer.counts:
        context.note("no lessons yet")
    for category, lessons in answer.counts.items():
        name = "  " * category.count("/") + category.rpartition("/")[2]
        count_here = answer.own.get(category, 0)
        below = (
            f"  ({count_here} in it, {lessons - count_here} below)"
            if count_here not in (0, lessons)
            else ""
        )
        output.row(f"{lessons:>6}  {name}", output.styled(below, dim=True))


@options.command("rename", "lessons categories rename ci devops/ci --write", of=categories_command)
@click.argument("old", shell_complete=completion.categories)
@click.argument("new", shell_complete=completion.categories)
@options.write()
def rename(old: str, new: str, write: bool) -> options.Answers:
    """Rename the category OLD to NEW in all files in one go.

    Categories below it move along. Folders of that name move, what frontmatter declares is rewritten,
    nothing else in a file is touched. If one file cannot be changed, none is.
    """
    plan, in_settings = context.ask(api.edit.rename(old=old, new=new, write=write))
    changes = output.keys_of(plan.changes, "path", "to", "categories")
    yield {"changes": changes, "skipped": plan.skipped, "written": write}
    for change in plan.changes:
        categories = f"  [{', '.join(change.categories)}]" if change.categories else ""
        is_moved = change.to != change.path
        output.row((f"{change.path} -> {change.to}" if is_moved else change.path) + categories)
    for reason in plan.skipped:
        context.note(f"warning: {reason}: left as it is")
    if in_settings:
        context.note(f"note: lessons/vault.toml names {in_settings}, too: change it there by hand")
    files = count(len(plan.changes), "file")
    output.say(f"{files} changed" if write else f"{files}; nothing is written without --write")


@options.command("propose", "lessons categories propose --write", of=categories_command, paged=True)
@options.write("Write the proposals into the files' frontmatter.")
def propose(write: bool) -> options.Answers:
    """Propose categories for lessons without any, and show why.

    The index finds them under the proposed ones; their files change with --write only. Phrases that
    name a category are in lessons/vault.toml: under [keywords], "GitHub Actions" = "devops/ci-cd".
    """
    proposals = context.ask(api.search.classify(), settled=True)
    command = api.edit.accept(proposals=proposals, write=write)
    files, written, failed = context.ask(command)
    for reason in failed:
        context.note(f"warning: {reason}: left as it is")
    names = ("lesson_id", "path", "title", "categories", "sure", "why")
    rows = output.keys_of(proposals, *names)
    yield {"proposals": rows, "written": written}
    _print_proposals(proposals)
    if not proposals:
        context.note("every lesson has a category")
        return
    if write:
        output.say(f"{count(len(written), 'file')} written")
        return
    sure = [
        proposal
        for proposal in proposals
        if proposal.path in files and _categories(proposal) != UNCATEGORIZED
    ]
    several = f" for {count(len(files), 'file')}" if len(sure) != len(files) else ""
    output.say(f"{count(len(sure), 'proposal')}{several}; nothing is written without --write")


def _print_proposals(proposals: Sequence[ProbableCategories]) -> None:
    for proposal in proposals:
        categories = _categories(proposal)
        is_placed = categories != UNCATEGORIZED
        sure = f" ({proposal.sure:.0%})" if is_placed else ""
        output.row(output.styled(categories, bold=is_placed), f"{sure}: {proposal.title}")
        output.row(output.styled(f"   {proposal.path}: {'; '.join(proposal.why)}", dim=True))


def _categories(proposal: ProbableCategories) -> str:
    return ", ".join(proposal.categories)


MAX_ITEMS = 200  # items of a long table, on a terminal


class Format(options.Choice):
    """An import format: their readers load where a format is named, or this help is shown."""

    def __init__(self) -> None:
        super().__init__(())

    @property
    def choices(self) -> tuple[str, ...]:
        from vault_index.edit import formats

        return formats.FORMATS

    @choices.setter
    def choices(self, _none: tuple[str, ...]) -> None: ...


@options.command("import", "lessons import CLAUDE.md --write")
@click.argument("sources", metavar="FILE|DIR|-...", nargs=-1, required=True)
@click.option("--as", "format", type=Format(), help="The format; without: guessed.")
@options.category("For lessons that name none; without: inbox.")
@options.flag("--update", "Write what was corrected over committed files.")
@options.write()
def import_command(
    sources: Sequence[str],
    update: bool,
    write: bool,
    **asked: str | None,
) -> options.Answers:
    """Bring in lessons from files, after showing what goes where.

    Sources are files and folders, or stdin alone: markdown with or without frontmatter and `## Lesson:`
    sections, JSON lines, a CLAUDE.md or AGENTS.md of bullets, rules of Cursor (`.mdc`) and Copilot
    (`.instructions.md`), an Obsidian folder, a course (`Course Title:`, `Lesson 1:`), and with --as okf
    a bundle of the Open Knowledge Format. Nothing is overwritten, but with --update what an earlier
    import made; near-duplicates, notes of a day, lines that say nothing by themselves and what `check`
    calls an error are left out; a second run changes nothing.
    """
    from vault_index.errors import VaultError

    values: dict[str, Any] = {**asked, "update": update, "write": write}
    values["format"] = values["format"] or ""
    if "-" in sources:
        if len(sources) > 1:
            raise VaultError("stdin is a source by itself", "name only `-`, or only files")
        values["text"] = sys.stdin.buffer.read().decode("utf-8", "surrogateescape")
    else:
        paths = [os.path.expanduser(each) for each in sources]  # noqa: PTH111  # ~nobody is a name
        for source, path in zip(sources, paths, strict=True):
            if not os.path.exists(path):  # noqa: PTH110  # Path's raises for long names
                raise VaultError(f"{source} is not there", "name files, folders, or - for stdin")
        values["sources"] = paths
    plan = context.ask(api.edit.import_from(**values))
    items = output.keys_of(plan.items, "source", "line", "path", "title", "verdict", "why")
    shown = {"items": items, "problems": plan.problems, "empty": plan.empty, "written": write}
    yield options.AnswerWithStatus(shown, bool(plan.problems))
    _as_table(plan.items, write)
    names = {PurePath(each).name.lower() for each in sources}
    if names & {"claude.md", "agents.md"}:
        context.note("note: agents read this file at every prompt already; keep in it what every")
        context.note("      session must know, and take out what is a lesson now")
    for name in plan.empty:
        why = "no text, a template, a listing, or deprecated"
        context.note(f"note: {name}: nothing to import ({why})")
    for problem in plan.problems:
        context.note(f"error: {problem}")


def _as_table(items: Sequence[Item], written: bool) -> None:
    shown = items[:MAX_ITEMS] if sys.stdout.isatty() else items
    width = min(60, max((len(item.path) for item in shown), default=0))
    for item in shown:
        about = " ".join((item.why or item.title).split())
        where = item.path or f"{item.source}:{item.line}"
        line = f"{item.verdict:<10}{where:<{width}}  {about}"
        is_written = item.verdict in ("write", "update")
        output.row(line if is_written else output.styled(line, dim=True))
    if len(shown) < len(items):
        output.say(f"... and {len(items) - len(shown)} more")
    counts = Counter(item.verdict for item in items)
    words = {"write": "written" if written else "to write", "same": "there already"}
    words |= {"update": "updated" if written else "to update", "left out": "left out"}
    words |= {"taken": "whose name is taken", "duplicate": "like another"}
    words |= {"secret": "with a secret", "refused": "with an error"}
    summary = ", ".join(f"{counts[key]} {word}" for key, word in words.items() if counts[key])
    waits = not written and counts["write"] + counts["update"]
    rest = "" if not waits else "; nothing is written without --write"
    output.say(f"{summary or 'no lessons'}{rest}")
