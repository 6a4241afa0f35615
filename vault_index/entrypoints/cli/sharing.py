"""The commands that share a vault: sync, vaults, check, and the merge driver."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from vault_index import api, files
from vault_index.entrypoints.cli import completion, context, options, output
from vault_index.errors import VaultError
from vault_index.text.words import count

if TYPE_CHECKING:
    from vault_index.check.finding import Finding
    from vault_index.entrypoints.wording.fired import VaultSnapshot


@options.command("sync", "lessons sync")
def sync_command() -> options.Answers:
    """Fetch, put your commits on top, push, reindex.

    Nothing is forced, a conflict changes nothing here, and uncommitted changes are kept.
    """
    result = context.ask(api.share.sync())
    yield result
    steps = {
        "fetched {}": result.fetched,
        "put {} of yours on top": result.rebased,
        f"dropped {{}} that {result.remote} took back": result.dropped,
        "pushed {}": result.pushed,
    }
    did = [step.format(count(many, "commit")) for step, many in steps.items() if many]
    output.say(
        f"{result.remote}: {', '.join(did) or 'nothing new'}; {count(result.lessons, 'lesson')}"
    )
    if result.uncommitted:
        files_left = count(result.uncommitted, "uncommitted file")
        output.say(f"not shared: {files_left}; git add lessons && git commit, then lessons sync")


def offer_others(folder: Path) -> None:
    """Say that vaults around a new one, or folders that no vault takes, are not searched.

    At a terminal it asks whether prompts search the vaults around it.
    """
    from vault_index.entrypoints.wording import status
    from vault_index.features import VaultsTable
    from vault_index.share import packages
    from vault_index.vault import open_vault

    vault = open_vault(folder)
    if taken_by_none := packages.in_no_vault(vault.root):
        context.note(
            f"note: in no vault: {status.in_no_vault([str(each) for each in taken_by_none])}"
        )
    outer = [str(root) for root in packages.unsearched(vault)]
    if not outer:
        return
    named = vault.config[VaultsTable].above
    command = status.above_command(outer, named)
    what = f"{' and '.join(outer)}: lessons from there come here no longer"
    if not context.is_typed():
        context.note(f"note: {what}; to search both, in all your vaults: {command}")
        return
    context.note(f"{what}.")
    if not output.confirm("search both, here and in all your vaults?", default=True):
        context.note(f"no; later: {command}")
        return
    from vault_index.edit import settings

    file = vault.config.home / "config.toml"
    settings.write(file, "vaults.above", json.dumps([*outer, *named], ensure_ascii=False))
    output.say(f"{file}: vaults.above = {', '.join(outer)}")


@options.command("vaults", "lessons vaults --json")
def vaults_command() -> options.Answers:
    """List the vaults that a prompt searches.

    They are this one and those above it: `vaults.above` in your settings names their folders, nearest
    first. State and size of each are shown.
    """
    rows = context.ask(api.share.vaults())
    yield rows
    width = max(len(row.name) for row in rows)
    for row in rows:
        size = "" if row.lessons is None else f"{count(row.lessons, 'lesson')}, "
        size += "" if row.bytes is None else f"{row.bytes / 1e6:.1f} MB, "
        output.say(f"{row.name:<{width}}  {size}{row.state}  ", row.entry)


@options.command("check", "lessons check --staged", paged=True)
@click.argument("names", metavar="[PATH|ID]...", nargs=-1, shell_complete=completion.ids)
@options.flag("--staged", "What the next commit adds or changes.")
@options.flag("--all everything", "The whole vault (the default).")
@options.flag("--stale", "List lessons whose subject changed or is gone.")
@options.flag("--confirm", "Note in the lessons ID that they hold.")
@options.text("--against", "REV", "What changed since REV, and its effect.")
@options.file("--prompts", "With --against: prompts to try besides the taught ones, a line each.")
@options.file(
    "--comment", "With --against: write a pull request's comment to this file.", exists=False
)
@options.choice(
    "--format form",
    "text github",
    "How findings are printed: github annotates a pull request.",
    default="text",
)
@click.option("--error-status", default=1, hidden=True, help="The exit status for what is wrong.")
def check_command(
    names: tuple[str, ...],
    staged: bool,
    everything: bool,
    stale: bool,
    confirm: bool,
    against: str,
    error_status: int,
    **how: Any,
) -> options.Answers:
    """Check frontmatter, secrets, prompt injection, duplicates.

    Also conflict markers, and prompts of a lesson's own that do not find it. PATHS are lesson or
    SKILL.md files, or folders of them. Exits with status 1 on errors.

    --stale lists lessons whose subject changed: the code of an anchor, or a file that they cite and the
    repository has no more. --confirm writes `confirmed: DATE` into the frontmatter, for a section into
    the file's; --stale then compares with the repository of that day. A lesson that hooks
    hold back, because it reads like orders to an agent, they give again: to your agents, for this text.
    A text that only looks like a secret is noted in the frontmatter as `harmless`, for all to see.

    --against REV checks what changed since the commit that is shared with REV, and says at which prompts
    a changed lesson fires now and did not before, and the other way round: of the taught prompts of both
    states, and of those in a file. It names the other lessons that are about what changed.
    """
    chosen = (bool(names) and not confirm, staged, everything, stale, confirm, bool(against))
    if sum(chosen) > 1:
        choices = "PATHS, --staged, --all, --stale, --confirm and --against"
        raise click.UsageError(f"choose one of {choices}")
    if not against and (how["prompts"] or how["comment"]):
        raise click.UsageError("--prompts and --comment need --against")
    if stale or confirm:
        yield from _confirm(names) if confirm else _list_stale()
        return
    for name in map(files.as_on_disk, names):
        if not os.path.exists(name):  # noqa: PTH110  # Path's raises for long names
            raise click.UsageError(f"Path {name!r} does not exist.")
    with output.of_hook() if staged else nullcontext():
        try:
            if against:
                yield from _check_against(against, **how)
            else:
                yield from _check(names, staged, how["form"], error_status)
        except VaultError as error:
            if error_status == 1:
                raise
            # the hook takes 1 for a program that does not start, as Python ends with it, too
            output.error(error.message)
            raise click.exceptions.Exit(error_status) from None


def _check(paths: tuple[str, ...], staged: bool, form: str, error_status: int) -> options.Answers:
    places = [os.path.abspath(path) for path in paths]  # noqa: PTH100  # Path.absolute keeps `..`
    findings, files = context.ask(api.share.check_files(paths=places, staged=staged))
    errors = _errors(findings)
    yield options.AnswerWithStatus(findings, error_status if errors else 0)
    if findings or not staged:
        _print_findings(findings, files, form)
    if errors and staged:
        context.note("not committed; fix it, or commit without the check: git commit --no-verify")


def _errors(findings: list[Finding]) -> int:
    return sum(finding.severity == "error" for finding in findings)


def _print_findings(findings: list[Finding], files: int, form: str) -> None:
    from vault_index import git
    from vault_index.entrypoints.wording import fired

    printed, errors = list(map(str, findings)), _errors(findings)
    if form == "github":
        root = context.vault().root.resolve()
        below = root.relative_to((git.top_of(root) or root).resolve()).as_posix()
        prefix = "" if below == "." else f"{below}/"
        printed = [fired.annotation(each, prefix) for each in findings]
    for line in printed:
        output.say(line)
    warnings = count(len(printed) - errors, "warning")
    summary = f"{count(files, 'file')} checked: {count(errors, 'error')}, {warnings}"
    output.say(summary, err=True)


MAX_PROMPTS = 1000  # that are tried in both states


def _check_against(
    revision: str,
    *,
    prompts: Path | None,
    comment: Path | None,
    form: str,
) -> options.Answers:
    """Check what changed since a revision, and show its effect."""
    from vault_index import files, git
    from vault_index.entrypoints.wording import fired

    commit = git.fork_point(context.vault().root, revision)
    if not commit:
        hint = "fetch it first, or name a commit, tag or branch"
        raise VaultError(f"no commit {revision!r:.80}", hint)
    findings, count_of_files = context.ask(api.share.check_files(since=commit))
    data = files.read_named(prompts) if prompts else b""
    lines = data.decode("utf-8", "replace").splitlines()
    sample = [each.strip() for each in lines if each.strip() and not each.startswith("#")]
    before, now = _states(commit, sample)
    changed, tried = fired.changes(before, now), len(now.fired)
    seen = {each.id for each in changed if each.state != fired.SAME}
    reasons = context.ask(api.share.touched(since=commit))
    touched = [each for each in reasons if each.lesson not in seen]
    if comment:
        text = fired.comment(changed, tried, _errors(findings), now.text_only, touched)
        comment.write_text(text, "utf-8")
    values = {"commit": commit, "prompts": tried, "lessons": changed, "touched": touched}
    yield options.AnswerWithStatus({**values, "findings": findings}, bool(_errors(findings)))
    _print_findings(findings, count_of_files, form)
    # a runner obeys commands in what is printed, and a pull request chooses the titles
    for line in [] if form == "github" else fired.lines(changed, tried, touched):
        output.say(line)


def _states(commit: str, sample: list[str]) -> tuple[VaultSnapshot, VaultSnapshot]:
    """Return the lessons at a commit and now, and which fire at each taught prompt and a sample."""
    from vault_index import git
    from vault_index.entrypoints.wording.fired import VaultSnapshot

    vault = context.vault()
    before, now = VaultSnapshot(), VaultSnapshot()
    was_there = bool(git.tree(vault.lessons_dir, commit))

    with context.as_of(commit) if was_there else nullcontext() as past:

        def ask(question: api.Question[api.Answer]) -> Iterator[tuple[VaultSnapshot, api.Answer]]:
            yield now, context.ask(question, settled=True)
            if past is not None:
                yield before, past(question)

        for state, lessons in ask(api.search.taught_lessons()):
            state.lessons = {each.id: each for each in lessons}
        all_lessons = [*before.lessons.values(), *now.lessons.values()]
        taught = [prompt for lesson in all_lessons for prompt in lesson.prompts]
        tried = list(dict.fromkeys([*taught, *sample]))[:MAX_PROMPTS]
        for state, answer in ask(api.search.fired(prompts=tried)):
            state.fired, state.text_only = answer.lessons, answer.text_only
    return before, now


MAX_LINE_CHARS = 160  # of a line that looks like a secret


def _list_stale() -> options.Answers:
    answer = context.ask(api.injection.stale_lessons())
    yield answer
    if not answer.reasons:
        output.say("no lesson needs another look")
    for reason in answer.reasons:
        output.say(f"{reason.path}: {reason.why}")
        output.say(f"  {reason.do}")
    if answer.reasons:
        context.note("if it still holds: lessons check --confirm ID")


def _confirm(lesson_ids: tuple[str, ...]) -> options.Answers:
    if not lesson_ids:
        raise click.UsageError("name the lessons: lessons check --confirm ID")
    names = [context.name_in_vault(lesson_id) for lesson_id in lesson_ids]
    if context.is_typed():
        _ask_about_secrets(names)
    answer = context.ask(api.injection.confirm(names=names, by=context.speaker()))
    yield options.AnswerWithStatus(answer, bool(answer.failed))
    for lesson in answer.confirmed:
        verb = "confirmed" if lesson.changed else "was confirmed today already:"
        output.say(f"{verb} {lesson.id}")
        for line in lesson.harmless:
            output.say(f"noted as no secret: line {line} of {lesson.path}")
        if lesson.released:
            output.say(f"agents get it from now on: {lesson.path}")
    if answer.failed:
        hint = "correct these files, then confirm them again"
        raise VaultError("; ".join(answer.failed), hint)


def _ask_about_secrets(names: Sequence[str]) -> None:
    """Show texts of lessons that look like secrets, and ask about them. Raises VaultError for no."""
    from vault_index.check import harmless

    for name in names:
        if harmless.FINGERPRINT.fullmatch(name):
            continue
        path = context.entry(name).path
        data = files.read_file(context.vault().root / path)
        lines = data.decode("utf-8", "replace").splitlines()
        found = harmless.unsaid(data)
        for each in found:
            text = " ".join(lines[each.line - 1].split())[:MAX_LINE_CHARS]
            output.say(f"{path}:{each.line}: {each.message.partition(':')[0]}: {text}", err=True)
        if found and not output.confirm("is none of it a secret?"):
            raise VaultError(f"{path} was not confirmed", "remove it, then confirm the lesson")


@click.command("merge-driver", hidden=True, epilog="Example: lessons merge-driver %A %B %O")
@click.argument("ours", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.argument("theirs", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.argument("base", type=click.Path(exists=True, dir_okay=False, path_type=Path))
def merge_driver_command(ours: Path, theirs: Path, base: Path) -> None:
    """Put the merged lists of three versions of a lesson file into each of them."""
    from vault_index import files
    from vault_index.lesson import merge

    paths = ours, theirs, base
    before = [files.read_file(path) for path in paths]
    # in this order: a kill between two of them leaves git a conflict, and no loss
    for path, old, new in zip(paths, before, merge.with_merged_lists(*before), strict=True):
        files.change_file(path, new, expected=old, within=path.parent)
