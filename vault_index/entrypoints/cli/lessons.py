"""The commands for lessons: new, add, list, show, edit, move, rm, last, teach, useful, log."""

from __future__ import annotations

import os
import re
import shlex
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from vault_index import api
from vault_index.api import codec
from vault_index.entrypoints.cli import completion, context, options, output
from vault_index.entrypoints.cli.output import from_here
from vault_index.errors import GitError, UnreadableError, VaultError
from vault_index.retrieval.hit import strength_of
from vault_index.text.blocks import composed, shorten_line
from vault_index.text.words import ago, count

if TYPE_CHECKING:
    from vault_index.api.injection import Injection, Rated, TeachResult
    from vault_index.api.lesson import Tally
    from vault_index.retrieval.hit import Entry, Relation, WholeEntry
    from vault_index.vault import Vault

SESSIONS = 5  # of the journal, in which the last failure is looked for


def _head(command: Any) -> Any:
    for option in (
        click.option("--text", default="", help="The text, instead of a file."),
        options.categories("Where it belongs; repeatable."),
        options.tags("A tag; repeatable."),
        options.lesson_type("", default=""),
        click.option("--confidence", type=click.IntRange(1, 5), help="How sure it is, 1 to 5."),
        click.option(
            "--prompts", multiple=True, metavar="PROMPT", help="It answers this; repeatable."
        ),
        click.option(
            "--fires-on", multiple=True, metavar="PROMPT", help="It comes here; repeatable."
        ),
        click.option(
            "--silent-on", multiple=True, metavar="PROMPT", help="It stays out; repeatable."
        ),
        click.option("--applies-to", multiple=True, metavar="GLOB", help="Its files; repeatable."),
        options.flag("--commit", "Commit its file, and no other."),
    )[::-1]:
        command = option(command)
    return command


@options.command("new", 'lessons new "Staging deploys need the VPN" -c devops/deployment')
@click.argument("title", nargs=-1)
@_head
def new_command(title: tuple[str, ...], text: str, as_json: bool, **head: Any) -> None:
    """Write a lesson in your editor, from a title and a category.

    Without TITLE and category it asks for them. With --text it opens no editor; outside a terminal it
    opens $VISUAL or $EDITOR, and asks for nothing.
    """
    head["title"] = " ".join(title)
    if text:
        _write(os.fsencode(text), as_json, **head)
        return
    if not context.is_typed() and not (head["title"] and context.named_editor()):
        raise click.UsageError("pass --text, name an EDITOR and a TITLE, or type it at a terminal")
    _write_typed(as_json, **head)


@options.command(
    "add", 'lessons add "Set VPN=1 in the job: staging deploys need the VPN." -c devops'
)
@click.argument("source", required=False, metavar="[FILE|-|TEXT]")
@click.option("--title", default="", help="The title; without, the first sentence.")
@_head
def add_command(source: str | None, text: str, as_json: bool, **head: Any) -> None:
    """Put a lesson into the vault and print its path.

    FILE is markdown; `-` reads stdin; words that are no file are the text. Without any of them,
    `lessons new` goes on at a terminal.
    """
    if not (source or text) and context.is_typed():
        _write_typed(as_json, **head)
    else:
        _write(_source(source, head["title"], text), as_json, **head)


def _write(data: bytes, as_json: bool, **head: Any) -> None:
    vault = context.vault()
    text = data.decode("utf-8", "surrogateescape")
    context.note_new_categories(head["categories"])
    path = context.ask(api.edit.add_lesson(text=text, **head)).path
    if as_json:
        output.json(context.entry(path))
    else:
        output.say(from_here(Path(path), vault.root))


_TEMPLATE = """\

<!-- The symptom, as somebody would type it; what to do; why. Ten lines are plenty. -->
"""


def _write_typed(as_json: bool, *, title: str, categories: tuple[str, ...], **head: Any) -> None:
    """Ask for the title, the category and the text of a lesson, and write it.

    A refused text stays in a file of the user's, for the command that the hint names. Raises Abort.
    """
    import tempfile

    from vault_index.edit import add

    vault = context.vault()
    title = title or output.ask("title, as a whole phrase:").strip()
    if not title:
        raise click.Abort
    if not categories and context.is_typed():
        counts = list(context.ask(api.lesson.count()).counts)
        for number, category in enumerate(counts[: context.MAX_SHOWN], start=1):
            output.say(f"{number:>3}  {category}", err=True)
        typed = output.ask("category, a number or a name such as devops/ci-cd:").strip()
        is_number = typed.isdecimal() and 1 <= int(typed) <= len(counts)
        categories = (counts[int(typed) - 1] if is_number else typed,) if typed else ()
    add.refuse_existing(vault, add.place_of(vault, b"-", title=title, categories=categories))
    head["prompts"] = head["prompts"] or _typed_prompts()
    text = context.edit_text(_TEMPLATE, vault.root)
    text = re.sub(r"(?s)<!--.*?-->", "", text or "").strip()
    answered = "".join(f" --prompts {shlex.quote(each)}" for each in head["prompts"])
    if not text:
        raise VaultError("nothing was written", f"lessons new {shlex.quote(title)}{answered}")
    try:
        _write(text.encode(), as_json, title=title, categories=categories, **head)
    except VaultError as error:
        with tempfile.NamedTemporaryFile(
            "w", encoding="utf-8", prefix="lesson-", suffix=".md", delete=False
        ) as draft:
            draft.write(f"{text}\n")
        filed = "".join(f" -c {shlex.quote(each)}" for each in categories)
        command = f"lessons add --title {shlex.quote(title)}{answered}{filed} {draft.name}"
        raise VaultError(error.message, f"correct {draft.name}, then: {command}") from None


def _typed_prompts() -> tuple[str, ...]:
    """Ask at a terminal for two prompts that a lesson answers; an empty line ends it."""
    prompts: list[str] = []
    questions = (
        "what a colleague types who needs it, in other words than the title (Enter: nothing):",
        "another:",
    )
    for question in questions if context.is_typed() else ():
        typed = output.ask(question).strip()
        if not typed:
            break
        prompts.append(typed)
    return tuple(prompts)


@options.command("move", "lessons move staging-deploys-need-the-vpn devops/releases")
@options.lesson()
@click.argument("category", shell_complete=completion.categories)
def move_command(lesson_id: str, category: str) -> options.Answers:
    """Move a lesson to a category, with its past and its use."""
    vault = context.vault()
    name = context.name_in_vault(lesson_id)
    context.note_new_categories([category])
    moved = context.ask(api.edit.move_lesson(name=name, category=category))
    yield moved
    output.say(from_here(vault.root / moved.to, vault.root))


def _source(source: str | None, title: str, text: str) -> bytes:
    if text:
        return os.fsencode(text)
    if source and source != "-":
        from vault_index import files

        try:
            return files.read_named(Path(source))
        except UnreadableError as error:
            if len(source.split()) > 1 and not (source.endswith(".md") or os.path.lexists(source)):
                return os.fsencode(source)
            hint = "name a file that is there, or pass a text of several words"
            raise VaultError(error.message, hint) from None
    if source is None and (not title or sys.stdin.isatty()):
        raise click.UsageError("name a FILE, `-` for stdin, or pass a text")
    return sys.stdin.buffer.read()


@options.command("list", "lessons list -c devops --sort updated -n 20", paged=True)
@options.category("Only in or below it.", default=None)
@click.option("--tag", help="Only with this tag.", shell_complete=completion.tags)
@options.lesson_type("Only of this type: ")
@options.since_changed
@options.related_to
@options.choice(
    "--sort order",
    "id title created updated confidence",
    "Latest or highest first.",
    default="id",
)
@options.number("-n --limit", None, 1, None, "How many; without: all.")
def list_command(**only: Any) -> options.Answers:
    """List the lessons."""
    entries = context.ask(api.lesson.select(**only))
    if not entries:
        category, tag = only["category"], only["tag"]
        context.refuse_unknown(
            [category] if category else [], [tag] if tag else [], only["type"] or ""
        )
    yield entries
    entries = _told_apart(entries)
    if output.screen_width() is None:
        output.rows((entry.id, output.TAB, entry.title) for entry in entries)
        return
    room = (output.screen_width() or 80) - 24  # a day, and the begin of a category
    longest = max((output.columns(entry.title) for entry in entries), default=0)
    width = min(60, max(room, 12), longest)
    output.rows(_row(entry, width) for entry in entries)


def _told_apart(entries: Sequence[Entry]) -> tuple[Entry, ...]:
    """Return lessons; of two whose ids look the same the titles name the file as the disk has it."""
    shown = Counter(composed(entry.id) for entry in entries)
    return tuple(
        replace(entry, title=f"{entry.title} ({_in_ascii(entry.path)})")
        if shown[composed(entry.id)] > 1
        else entry
        for entry in entries
    )


def _in_ascii(path: str) -> str:
    return path.encode("ascii", "backslashreplace").decode()


def _row(entry: Entry, width: int) -> tuple[output.Styled | str, ...]:
    room = " " * max(0, width - output.columns(entry.title))
    about = output.styled(f"{entry.day:<10}  {', '.join(entry.categories)}", dim=True)
    return (output.clip(entry.title, width), f"{room}  ", about)


@options.command("show", "lessons show devops/ci-cd/node-heap-out-of-memory", paged=True)
@options.lesson(required=False)
@click.option("--at", metavar="REV", help="As it was at a commit, tag or date; deleted ones, too.")
def show_command(lesson_id: str | None, at: str | None) -> options.Answers:
    """Print one lesson, or a document whole.

    ID is its title, its id, its path from here or from the vault, or the end of either. The beginning of
    such an end is enough, if only one lesson has it. Without ID you pick one.
    """
    lesson_id = lesson_id or context.pick()
    if at is None:
        try:
            entry = context.entry_to_read(lesson_id)
        except VaultError as error:
            if parts := _parts_of(lesson_id):
                yield parts
                _show_document(parts)
                return
            raise _as_deleted(lesson_id, error) from None
    else:
        entry = context.entry_at(lesson_id, at)
    used = None if at else context.ask(api.lesson.tally(id=entry.id), as_is=True)
    has_links = not at and "\n## Related\n" in entry.text  # else only the file is read
    links = context.ask(api.lesson.related(id=entry.id)) if has_links else ()
    values = codec.to_json(entry) | codec.to_json(used or {}) | {"related": links}
    yield {key: value for key, value in values.items() if key != "file_hash"}
    if output.is_for_agent():
        from vault_index.entrypoints.wording import for_agents

        remarks = [f"a word on it: {used.word}"] if used and used.word else []
        output.text(for_agents.lesson(entry, links, remarks))
        return
    _print_lesson(entry, used, links)


def _print_lesson(entry: WholeEntry, used: Tally | None, links: Sequence[Relation]) -> None:
    output.say(output.styled(entry.title, bold=True))
    by = entry.author or ("author unknown" if entry.updated_at else "not committed")
    filed = ", ".join(entry.filed_under)
    output.say(", ".join(filter(None, (f"[{filed}] {entry.path} · {by}", entry.day))))
    if entry.applies_to:
        output.say(f"at edits of {', '.join(entry.applies_to)}")
    for link in links:
        if link.id:
            output.say(f"{link.kind}: lessons show {link.id}")
    if used and used.uses:
        output.say(f"given {count(used.uses, 'time')}, last on {used.last_used[:10]}")
    if used and used.word:
        output.say(used.word)
    if entry.withheld:
        context.note(f"warning: hooks leave it out: {entry.withheld}")
    output.say()
    output.text(entry.text)


def _parts_of(name: str) -> list[WholeEntry]:
    """Return the lessons of the document of this title or path, in their order; [] for no document."""
    listed = context.ask(api.lesson.select())
    end = context.name_in_vault(name).removesuffix(".md").removeprefix("lessons/")
    title = name.casefold()
    of_file = [
        each.id
        for each in listed
        if each.id.partition("#")[0] == end or each.document.casefold() == title
    ]
    if len(of_file) < 2:
        return []
    parts = context.ask(api.lesson.page(name=of_file[0])).of_file
    return [context.entry_to_read(part.id) for part in parts]


def _show_document(parts: list[WholeEntry]) -> None:
    if output.is_for_agent():
        from vault_index.entrypoints.wording import for_agents

        output.text("\n".join(map(for_agents.lesson, parts)))
        return
    for number, entry in enumerate(parts):
        if number:
            output.say()
        output.say(output.styled(entry.title, bold=True))
        output.say()
        output.text(entry.text)


def _entry(lesson_id: str) -> WholeEntry:
    try:
        return context.entry(lesson_id)
    except VaultError as error:
        raise _as_deleted(lesson_id, error) from None


def _as_deleted(lesson_id: str, error: VaultError) -> VaultError:
    """Return an error that says in which commit a lesson was deleted, if it was; else the same error."""
    from vault_index.share import history

    if not error.message.startswith("no lesson "):
        return error
    vault = context.vault()
    try:
        deleted = history.deleted(vault, context.name_in_vault(lesson_id))
    except GitError:  # there is none here, and its past is not known
        return error
    if deleted is None:
        return error
    commit, id, path = deleted
    if not commit:
        return VaultError(
            f"the last commit has {id}, and it is no longer here", _way_back(vault, id, path)
        )
    message = f"{id} was deleted in commit {commit[:10]}"
    return VaultError(message, f"lessons show {id} --at {commit[:10]}~")


def _way_back(vault: Vault, id: str, path: str) -> str:
    """Return the command that brings back a lesson which HEAD has; of a section it prints the text."""
    if "#" in id:
        return f"lessons show {id} --at HEAD"
    return f"git checkout HEAD -- {shlex.quote(from_here(vault.root / path, vault.root))}"


@options.command("edit", "lessons edit node-heap-out-of-memory", has_json=False)
@options.lesson(required=False)
def edit_command(lesson_id: str | None) -> None:
    """Open a lesson's file in your editor.

    The editor is $VISUAL, $EDITOR, git's, or vi. Without ID you pick a lesson.
    """
    from vault_index import check, files
    from vault_index.lesson import parse

    vault = context.vault()
    entry = _entry(lesson_id or context.pick())
    file = vault.root / entry.path
    files.refuse_links(file, vault.root)
    context.edit_file(file, vault.root)
    if not os.path.lexists(file):
        context.note(f"{entry.path} is gone")
        return
    try:
        data = files.read_file(file)
        parse.parse_file(data, entry.path)
    except VaultError as error:
        context.note(f"warning: {error}: the index keeps its last good text")
        return
    wrong = check.first_error(entry.path.partition("/")[2], data)
    if wrong:
        context.note(f"warning: {wrong}")


@options.command("rm", "lessons rm staging-deploys-need-the-vpn --yes", has_json=False)
@options.lesson()
@options.yes
def rm_command(lesson_id: str, yes: bool) -> None:
    """Delete a lesson, its file or its section, after asking."""
    from vault_index.retrieval import entries

    entry = _entry(lesson_id)
    if yes and not entries.matches(lesson_id, {entry.id: entry.path}):
        hint = f"lessons rm {entry.id} --yes"
        raise VaultError(f"{lesson_id!r} is only the beginning of a name", hint)
    has_commit, lost = False, ""
    try:
        has_commit = bool(context.ask(api.share.log(name=entry.id)).edits)
        lost = "" if has_commit else ", which no commit has"
    except GitError as failure:
        lost = f", and git does not say whether a commit has it ({failure.message})"
    if not yes:
        if not sys.stdin.isatty():
            raise VaultError(f"{entry.id} is not deleted without asking", "pass --yes")
        if not output.confirm(f"delete {entry.title!r} ({entry.path}){lost}?"):
            context.note("nothing deleted")
            return
    deleted = context.ask(api.edit.delete_lesson(name=entry.id, shown=entry))
    kept = ", with its file" if deleted.removed else ""
    output.say(f"deleted {entry.id}{kept}")
    if has_commit:
        back = _way_back(context.vault(), entry.id, entry.path)
        context.note(f"to get it back: {back}")


PROMPT_CHARS = 90  # of a prompt in the list
JUST_BELOW = 0.9  # of the floor
NOT_KEPT = "(the text of this prompt was not kept)"


@options.command("last", "lessons last")
@options.number("-n number", 5, 1, 100, "How many.")
def last_command(number: int) -> options.Answers:
    """Show the latest prompts of agents and what each got.

    It says why one got nothing. `lessons teach --last N` takes the same numbers.
    """
    records = latest(number)
    yield records
    if not records:
        output.say("no agent has asked yet: type a prompt in a project with hooks, then look again")
        return
    now = datetime.now(UTC)
    for position, record in enumerate(records, start=1):
        passed = (now - datetime.fromisoformat(record.time)).total_seconds()
        text = shorten_line(record.text, PROMPT_CHARS) if record.text else NOT_KEPT
        did = {"error": "failed: ", "file": "edited: "}.get(record.kind, "")
        output.row(f"{position}. ", output.styled(ago(passed), dim=True), f"  {did}{text}")
        for line in _outcome_lines(record, position):
            output.say(f"   {line}")
    context.note("teach one: lessons teach --last N --fires ID, or --not ID")
    if any(record.lessons for record in records) and context.is_typed() and sys.stdout.isatty():
        _rate(records)


def _rate(records: tuple[Injection, ...]) -> None:
    pressed = output.press("a number says whether its lesson was useful, any other key ends:")
    given = records[int(pressed) - 1 : int(pressed)] if pressed in tuple("123456789") else []
    if given and given[0].lessons:
        key = output.press(f"{given[0].lessons[0].title}: [y]es, [n]o, [w]rong:")
        if word := {"y": "yes", "n": "no", "w": "wrong"}.get(key):
            rated = _note_word(given[0].lessons[0].id, word)
            for line in _after_word(rated, int(pressed)):
                output.say(line)


def latest(number: int) -> tuple[Injection, ...]:
    """Return the records of so many prompts, the latest first. Raises VaultError."""
    question = api.injection.select(limit=number, only_prompts=True)
    return context.ask(question).records


def _outcome_lines(record: Injection, position: int) -> Iterator[str]:
    """Yield the lessons that a prompt got, a line each."""
    for lesson in record.lessons:
        score = "without a search"
        if lesson.score:
            score = strength_of(lesson.score, by_words=lesson.by_words)
        score += ", taught" if lesson.is_taught else ", its line" if lesson.is_line else ""
        taught = f"; taught {lesson.taught}" if lesson.taught else ""
        taught += f"; {lesson.word}" if lesson.word else ""
        title = lesson.title or "no longer there"
        yield f"{title} ({score}) {lesson.id}{taught}"
    if record.came_again is not None:
        yield "the same failure came again" if record.came_again else "it did not come again"
    for other in record.others:
        yield f"taught {other.taught}: {other.title or other.id}"
    for skill in record.skills:
        score = strength_of(skill.score, by_words=skill.by_words)
        yield f"{skill.name} ({score}), a skill"
    if record.missed:
        yield f"missed: {record.silent or 'no reason was kept'}"
    elif not (record.lessons or record.skills):
        from vault_index.entrypoints.wording import hits
        from vault_index.recall.silence import CAN_BE_TAUGHT

        near, floor, reason = record.near, record.floor, record.silent or "no reason was kept"
        if not near or near.score is None or floor is None:
            yield f"silent: {reason}"
            return
        beside = hits.nearest(
            reason, near.id, near.score, floor, near.taught, by_words=near.by_words
        )
        yield f"silent: {reason} {beside}"
        is_near = reason in CAN_BE_TAUGHT and JUST_BELOW * floor <= near.score < floor
        if is_near and not near.taught:
            yield f"just below the floor: lessons teach --last {position} --fires {near.id}"


FIRES, SILENT = "fires_on", "silent_on"
WORDS = ("yes", "no", "wrong")


@options.command("teach", 'lessons teach "run the tests please" --fires run-tests')
@click.argument("prompt", nargs=-1)
@options.flag(
    "--error is_error", "A line of a failed command: PROMPT, else stdin, else the last failure."
)
@options.number("--last", None, 1, 100, "The prompt of that number in `lessons last`.")
@options.lesson_named("--fires", "The lesson that should fire.")
@options.lesson_named("--not silent", "The lesson to keep out.")
@options.flag("--undo", "Take back what was taught.")
def teach_command(
    prompt: tuple[str, ...],
    is_error: bool,
    last: int | None,
    fires: str,
    silent: str,
    undo: bool,
) -> options.Answers:
    """Teach a lesson to fire at PROMPT, or to stay out.

    --last N takes the prompt of that number in `lessons last`. Without --fires and --not, choose among
    the nearest lessons at a terminal. The lesson's file gets the prompt under fires_on or silent_on,
    and acts at the next prompt. With --error it gets a line that a failed command prints, under
    fires_on_error or silent_on_error.
    """
    if bool(prompt) is bool(last) and (prompt or not is_error):
        raise click.UsageError("name one prompt: PROMPT, or --last N")
    record = _record_numbered(last) if last else None
    text = " ".join(prompt) or (_line_of_stdin() if is_error and not record else "")
    if is_error and not text and not record:
        record = next((each for each in latest(100) if each.kind == "error"), None)
        text = "" if record else _line_of_journal()
    text = _text_of(record, text)
    if fires and silent:
        raise VaultError("both --fires and --not", "choose one of them")
    lesson, kind = (silent, SILENT) if silent else (fires, FIRES)
    kind = f"{kind}_error" if is_error or (record and record.kind == "error") else kind
    name = context.name_in_vault(lesson) if lesson else context.pick(text)
    session, key = (record.session, record.prompt) if record else ("", "")
    command = api.injection.teach_lesson(
        name=name, kind=kind, prompt=text, session=session, key=key, undo=undo
    )
    result = context.ask(command)
    if undo and not result.changed:
        hint = f"see what is: lessons show --json {result.id}"
        raise VaultError(f"{result.id} was not taught this", hint)
    yield result
    output.say(_taught_line(result, undo))
    if not result.acts:
        context.note(f"it does not act yet: {result.silent}")


def _record_numbered(last: int) -> Injection:
    records = latest(last)
    if len(records) < last:
        raise VaultError(f"no prompt {last} in the record", "see the numbers: lessons last")
    return records[-1]


def _text_of(record: Injection | None, text: str) -> str:
    """Return the prompt to teach: as typed, else as recorded. Raises VaultError."""
    text = text or (record.text if record else "")
    if not text:
        raise VaultError("the text of this prompt was not kept", "type it: lessons teach PROMPT")
    if record and record.kind == "file":
        raise VaultError("this is an edit, and no prompt", "name its file in a lesson's applies_to")
    return text


def _line_of_stdin() -> str:
    """Return the line of stdin that says best why a command failed; "" at a terminal."""
    from vault_index.text import failure

    printed = b"" if sys.stdin.isatty() else sys.stdin.buffer.read()
    return next(iter(failure.read("", printed.decode("utf-8", "replace")).lines), "")


def _line_of_journal() -> str:
    """Return the line of the last failed command that the journal has of this project."""
    from vault_index.text import failure

    question = api.journal.sessions(folder=str(Path.cwd()), limit=SESSIONS)
    for session in context.ask(question):
        records = context.ask(api.journal.show(name=session.id)).records
        runs = [run for record in reversed(records) for run in reversed(record.commands)]
        for run in runs:
            failed = failure.read(run.text, run.output)
            if run.failed and not failed.is_none:
                return failed.lines[0]
    raise VaultError(
        "no failure in the record and in the journal", "name the line: lessons teach --error LINE"
    )


def _taught_line(result: TeachResult, undo: bool) -> str:
    if undo:
        return f"taken out of {result.id}"
    what = "comes at" if result.kind.startswith(FIRES) else "stays out of"
    again = "" if result.changed else " (as taught before)"
    if result.kind.endswith("_error"):
        return f"{result.id} {what} a failure that prints: {result.prompt}{again}"
    return f"{result.id} {what} this prompt and similar ones{again}"


@options.command("useful", "lessons useful staging-deploys-need-the-vpn wrong the VPN is gone")
@click.argument("arguments", nargs=-1, required=True, metavar="[ID] yes|no|wrong [WHY]...")
@options.number("--last", None, 1, 100, "ID is what the prompt of that number got.")
def useful_command(arguments: tuple[str, ...], last: int | None) -> options.Answers:
    """Say whether a lesson was useful, or is wrong.

    A lesson that you call wrong stays out of hooks, and on `lessons check --stale`, until you say yes or
    no, or its text changes. A word of an agent only puts it on that list. It is kept on this machine.
    """
    if last and arguments[0] in WORDS:
        records = latest(last)
        given = [each.id for each in records[-1].lessons] if len(records) == last else []
        if len(given) != 1:
            message = f"prompt {last} got {len(given)} lessons"
            raise VaultError(message, f"name one: lessons useful ID {arguments[0]}")
        arguments = (given[0], *arguments)
    if len(arguments) < 2 or arguments[1] not in WORDS:
        raise click.UsageError("name a lesson and a word: lessons useful ID yes|no|wrong [WHY]")
    lesson = context.name_in_vault(arguments[0])
    rated = _note_word(lesson, arguments[1], " ".join(arguments[2:]))
    yield rated
    for line in _after_word(rated, last):
        output.say(line)


def _note_word(lesson: str, word: str, why: str = "") -> Rated:
    command = api.injection.useful(name=lesson, word=word, why=why, by=context.speaker())
    return context.ask(command)


def _after_word(rated: Rated, last: int | None) -> Iterator[str]:
    """Yield the noted word and its effect; `last` is the number of the prompt, if known."""
    yield f"noted: {rated.title}: {rated.word}"
    if rated.is_left_out:
        yield f"hooks leave it out; to take that back: lessons useful {rated.id} yes"
    elif rated.word == "wrong":
        yield "an agent's word: it is on the list of `lessons check --stale`"
    elif rated.word == "no" and rated.by == "person":
        for position, each in enumerate(latest(100), start=1) if last is None else ():
            if each.kind != "file" and rated.id in [it.id for it in each.lessons]:
                last = position
                break
        if last:
            yield f"keep it out there: lessons teach --last {last} --not {rated.id}"


@options.command("log", "lessons log devops/ci-cd/node-heap-out-of-memory", paged=True)
@options.lesson()
def log_command(lesson_id: str) -> options.Answers:
    """Show the commits that changed a lesson, newest first."""
    history = context.ask(api.share.log(name=context.name_in_vault(lesson_id)))
    if history.is_deleted:
        when = f"in commit {history.deleted_in[:10]}" if history.deleted_in else "since them"
        context.note(f"note: {history.id} was deleted {when}")
    yield history.edits
    for edit in history.edits:
        commit = output.styled(edit.commit[:10], dim=True)
        output.row(commit, f"  {edit.when[:10]}  {edit.who or 'author unknown'}: {edit.why}")
    if not history.edits:
        context.note(f"{history.path} is not committed")
