"""`lessons categories`, `mv`, `classify`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from vault_index.categories import UNCATEGORIZED
from vault_index.entrypoints.cli import completion, output, ready

if TYPE_CHECKING:
    from vault_index.classify import Proposal

_json = click.option("--json", "as_json", is_flag=True, help="Print JSON.")


@click.command(epilog="Example: lessons categories --json")
@_json
@click.pass_obj
def categories(named: str | None, as_json: bool) -> None:
    """Print the tree of categories: how many lessons are in each, and below it."""
    found = ready.ask(named, "categories", settled=True)
    if as_json:
        output.json(found["counts"])
        return
    if not found["counts"]:
        ready.note("no lessons yet")
    for category, count in found["counts"].items():
        name = "  " * category.count("/") + category.rpartition("/")[2]
        own = found["own"].get(category, 0)
        below = f"  ({own} in it, {count - own} below)" if own not in (0, count) else ""
        output.row(f"{count:>6}  {name}", output.styled(below, dim=True))


@click.command(epilog="Example: lessons mv devops/ci-cd devops/pipelines --write")
@click.argument("old", shell_complete=completion.categories)
@click.argument("new", shell_complete=completion.categories)
@click.option("--write", is_flag=True, help="Do it; without, only show what would be done.")
@_json
@click.pass_obj
def mv(named: str | None, old: str, new: str, write: bool, as_json: bool) -> None:
    """Rename the category OLD to NEW, and what is below it, in all files in one go.

    Folders of that name move, what frontmatter declares is rewritten, nothing else in a file is
    touched. If one file cannot be changed, none is.
    """
    from vault_index import move

    vault = ready.open_vault(named)
    planned = move.plan(vault, old, new)
    if write:
        move.carry_out(vault, planned)
    if as_json:
        shown = [{"path": c.path, "to": c.to, "categories": c.categories} for c in planned.changes]
        answer = {"changes": shown, "skipped": planned.skipped, "written": write}
        output.json(answer)
        return
    for change in planned.changes:
        filed = f"  [{', '.join(change.categories)}]" if change.categories else ""
        moved = f"{change.path} -> {change.to}" if change.to != change.path else change.path
        output.row(moved + filed)
    for one in planned.skipped:
        ready.note(f"warning: {one}: left as it is")
    settings = (vault.folder / "vault.toml").read_text("utf-8", "replace")
    if f'"{planned.old}' in settings:
        ready.note(f"note: lessons/vault.toml names {planned.old}, too: change it there by hand")
    _closing(len(planned.changes), "file", "changed" if write else "", write)


@click.command(epilog="Example: lessons classify --write")
@click.option("--write", is_flag=True, help="Write the proposals into the files' frontmatter.")
@_json
@click.pass_obj
def classify(named: str | None, write: bool, as_json: bool) -> None:
    """Propose categories for lessons that have none, and show why.

    The index finds them under what is proposed; their files change with --write only. Phrases that
    name a category stand in lessons/vault.toml: under [keywords], "GitHub Actions" = "devops/ci-cd".
    """
    from vault_index import classify as classifying

    found = ready.ask(named, "classify", settled=True)["proposals"]
    proposals = [classifying.Proposal(**_tuples(one)) for one in found]
    vault = ready.open_vault(named)
    files, failed = classifying.preview(vault, proposals)
    written: list[str] = []
    if write:
        written, failed = classifying.write(vault, proposals)
    for one in failed:
        ready.note(f"warning: {one}: left as it is")
    if as_json:
        for one in found:
            one.pop("file_hash", None)
        output.json({"proposals": found, "written": written})
        return
    _print_proposals(proposals)
    if not found:
        ready.note("every lesson has a category")
        return
    for path, count in Counter(one.path for one in proposals if one.path in files).items():
        if count > 1:
            ready.note(f"note: {path} has one frontmatter for all: {', '.join(files[path])}")
    if write:
        output.say(f"{len(written)} {'file' if len(written) == 1 else 'files'} written")
        return
    count = sum(one.path in files and one.categories != (UNCATEGORIZED,) for one in proposals)
    several = f" for {len(files)} {'file' if len(files) == 1 else 'files'}"
    output.say(
        f"{count} {'proposal' if count == 1 else 'proposals'}{several if count != len(files) else ''}"
        "; nothing is written without --write"
    )


def _print_proposals(proposals: Sequence[Proposal]) -> None:
    for one in proposals:
        filed = ", ".join(one.categories)
        unsure = filed == UNCATEGORIZED
        output.row(output.styled(filed, bold=not unsure), f" ({one.sure:.0%}): {one.title}")
        output.row(output.styled(f"   {one.path}: {'; '.join(one.why)}", dim=True))


def _tuples(values: dict[str, Any]) -> dict[str, Any]:
    return {**values, "categories": tuple(values["categories"]), "why": tuple(values["why"])}


def _closing(count: int, what: str, done: str, written: bool) -> None:
    """Say how much was done, or that nothing was."""
    counted = f"{count} {what}{'' if count == 1 else 's'}"
    output.say(f"{counted} {done}" if written else f"{counted}; nothing is written without --write")
