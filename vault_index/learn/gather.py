"""Gather what a session, commits or files have: redacted, and free of what this product injected.

A session is read from its transcript, since learning needs the inputs of edits and the outputs of checks
that the journal does not keep; from the journal's records where the transcript is gone. A person may have
edited or deleted records, and the settings may exclude paths: what the transcript still has of that is
not taken from there.
"""

from __future__ import annotations

import contextlib
import difflib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path

from vault_index import git
from vault_index.check.redact import redact
from vault_index.errors import VaultError
from vault_index.features import JournalTable, LearnTable
from vault_index.files import read_if_any
from vault_index.hotpath.log import MAX_SESSION_CHARS
from vault_index.journal import archive, capture, projects
from vault_index.journal.exclude import Exclude
from vault_index.journal.journal import Journal
from vault_index.journal.record import OBSERVATION, PROMPT, Command, Record, Session
from vault_index.learn import diff, timeline
from vault_index.learn.diff import Diff
from vault_index.learn.material import ADDED, CHANGED, COMMITS, FILES, SESSION, FileChange, Material
from vault_index.learn.timeline import Moment
from vault_index.store import injections
from vault_index.transcripts import events, reading, tools
from vault_index.transcripts.tools import Edit
from vault_index.transcripts.turns import Turn, Turns, corrects
from vault_index.vault import FOLDER, Vault

LAST = "last"  # the latest session of a project
MAX_SUBJECTS = 50
MAX_FILE = 512 * 1024  # bytes of a file that is named
MAX_LINES = 2_000  # of a text that is compared line by line; a longer one is all new
_COMMITTED_WITHIN = timedelta(hours=1)  # after the end of a session
_LATEST = 20  # sessions of a project among which is one that no agent started
_TRANSCRIPTS = 200  # changed last, among which one of a project is looked for
_ELSEWHERE = ("/tmp/", "/var/", "/private/", "/dev/")  # of no project


def session(vault: Vault, name: str, folder: Path | None = None) -> Material:
    """Return the material of a session: by its id, the beginning of that, or LAST.

    `folder` is that of the project whose last one is meant. Raises VaultError without one.
    """
    config = vault.config
    chosen = _find_session(Journal(config), name, folder or vault.root)
    globs = (*config[LearnTable].exclude, *config[JournalTable].exclude)
    exclude, is_wanted = Exclude(globs), diff.wanted(globs)
    chosen, played = exclude.apply(chosen), None
    with contextlib.suppress(OSError):  # the transcript is gone
        if chosen.transcript:
            played = replay(Path(chosen.transcript), chosen.agent)
    there = _recorded(played, chosen) if played else _of_records(chosen)
    changed = _during(vault, chosen) or _by_edits(played, chosen, is_wanted)
    subjects = [*(played.subjects if played else ()), *map(_subject, changed.messages)]
    return Material(
        *(SESSION, chosen.id, chosen.project),
        session=chosen.id,
        began=chosen.began,
        ended=chosen.ended,
        moments=tuple(_allowed(there, chosen, exclude, is_wanted)),
        subjects=tuple(dict.fromkeys(subjects))[:MAX_SUBJECTS],
        injected=_injected(vault, chosen.id),
        **changed.of_material,
    )


def commits(vault: Vault, revisions: str, folder: Path | None = None) -> Material:
    """Return the material of a commit, `HEAD~1`, or of several, `main..HEAD`. Raises VaultError."""
    place = folder or vault.root
    older, dots, newer = revisions.partition("..")
    until = git.resolve(place, (newer or "HEAD") if dots else older)
    base = git.resolve(place, older or "HEAD") if dots else until and git.parent(place, until)
    if not until or (dots and not base) or newer.startswith("."):
        hint = "name one such as HEAD, or several: main..HEAD"
        raise VaultError(f"{revisions!r:.80} names no commits", hint)
    changed = diff.between(place, base, until, _wanted(vault, place))
    messages = [Moment(timeline.COMMIT, message) for message in changed.messages[:MAX_SUBJECTS]]
    return Material(
        *(COMMITS, revisions, place.name),
        moments=(*messages, *timeline.moments_of_diff(changed.text)),
        subjects=tuple(map(_subject, changed.messages))[:MAX_SUBJECTS],
        **changed.of_material,
    )


def files(vault: Vault, paths: Sequence[str], folder: Path | None = None) -> Material:
    """Return the material of some files of a project. Raises VaultError for others, and for none."""
    place = (folder or vault.root).resolve()
    top = git.top_of(place) or place
    is_wanted = _wanted(vault, place)
    changes, texts = [], []
    for named in paths:
        file = (place / named).resolve()
        if not file.is_relative_to(top) or ".git" in file.parts:
            raise VaultError(f"{named} is not in {top}", "name files of the project")
        within = str(file.relative_to(top))
        if not is_wanted(within) or git.ignored(top, [within]):
            raise VaultError(
                f"nothing is learned from {named}: it is a lesson, or git ignores it, a setting leaves"
                " it out or a tool made it",
                "name files that git has, and that `exclude` of [journal] and [learn] allows",
            )
        content = read_if_any(file)
        if content is None or len(content) > MAX_FILE or b"\0" in content:
            raise VaultError(f"{named} is no text file to learn from", "name files with text")
        lines = content.decode("utf-8", "replace").splitlines()
        changes.append(FileChange(redact(within), CHANGED, len(lines)))
        texts.append(diff.clean("\n".join([f"+++ b/{within}", *(f"+{line}" for line in lines)])))
    if not changes:
        raise VaultError("no file is named", "name files of the project")
    text = "".join(texts)[: diff.MAX_CHARS]
    target = " ".join(paths)
    there = tuple(timeline.moments_of_diff(text))
    return Material(FILES, target, place.name, there, changes=tuple(changes), diff=text)


def _subject(message: str) -> str:
    return message.partition("\n")[0].strip()


def _injected(vault: Vault, session: str) -> dict[str, str]:
    """Return the ids of the lessons that a session was given, with the prompt of the first time.

    It is the prompt's hash, "" for the session's start.
    """
    given: dict[str, str] = {}
    with contextlib.suppress(VaultError):
        for each in injections.records(vault.index_dir):
            if each.get("session") == session[:MAX_SESSION_CHARS]:
                is_prompt = each.get("event") == injections.PROMPT
                for lesson in each["lessons"]:
                    given.setdefault(str(lesson), str(each.get("prompt")) if is_prompt else "")
    return given


# Which session is meant: one that the journal has, or has from now on.


def _find_session(journal: Journal, name: str, folder: Path) -> Session:
    """Return a session, with what its transcript has more by now. Raises VaultError."""
    chosen = _latest(journal, folder) if name == LAST else _named(journal, name)
    file = Path(chosen.transcript)
    if file.is_file():
        with contextlib.suppress(VaultError):  # as it was when it was read last
            return _captured(journal, file, chosen.agent)
    return chosen


def _named(journal: Journal, name: str) -> Session:
    try:
        return archive.find(journal, name)[1]
    except VaultError:
        for each in reversed([*reading.transcripts()]) if len(name) > 3 else ():
            stem = each.path.stem
            is_it = stem.startswith(name) or stem[-36:].startswith(name)
            if is_it or stem.removeprefix("agent-") == name:
                return _captured(journal, each.path, each.agent)
        raise


def _latest(journal: Journal, folder: Path) -> Session:
    project = projects.find_project(journal.folder, str(folder))
    sessions = archive.latest(journal, project, limit=_LATEST) if project else []
    there = next((each for _, each in sessions if not each.parent), None)
    for each in [*reading.transcripts()][::-1][:_TRANSCRIPTS]:
        path = each.path
        if there and str(path) == there.transcript:
            break
        if not path.name.startswith("agent-") and reading.folder_of(path) == str(folder):
            try:
                return _captured(journal, path, each.agent)
            except VaultError:
                if there is None:
                    raise
            break
    if there is None:
        raise VaultError(
            f"the journal has no session of {folder}",
            "name one of `lessons journal sessions`, or record: `lessons install claude --journal`",
        )
    return there


def _captured(journal: Journal, transcript: Path, agent: str) -> Session:
    """Return the session of a transcript. Raises VaultError if its sessions are not recorded."""
    captured = capture.capture(journal, transcript, agent)
    if captured.file is None:
        raise VaultError(
            f"session {captured.session or transcript.stem} is not in the journal: {captured.why}",
            "run lessons journal import",
        )
    return archive.read(captured.file)


# What changed in the project.


def _during(vault: Vault, session: Session) -> Diff | None:
    """Return what changed in a session's project while it went on; None where git has nothing."""
    place = Path(session.folder)
    if not session.folder.startswith("/") or git.top_of(place) is None or not session.began:
        return None
    began = datetime.fromisoformat(session.began).timestamp()
    base = git.base_at(place, began)
    until = _until(vault, session, place)
    if until is None or (until and until == base):
        return None
    return diff.between(place, base, until, _wanted(vault, place))


def _until(vault: Vault, session: Session, place: Path) -> str | None:
    """Return the last commit that may be of a session; "" for all there is now, None without one.

    People commit shortly after: up to the next session of the project, an hour at most.
    """
    if not session.ended:
        return ""
    journal, end = Journal(vault.config), datetime.fromisoformat(session.ended) + _COMMITTED_WITHIN
    until = end.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    latest = partial(archive.latest, journal, session.project, session.ended)
    soon = [each.began for _, each in latest(until) if each.id != session.id]
    end = datetime.fromisoformat(soon[-1]) if soon else end
    if end >= datetime.now(UTC):
        return ""
    commit = git.base_at(place, end.timestamp())
    if commit == git.head(place) and all(each.id == session.id for _, each in latest(limit=2)):
        return ""  # nobody has worked here since
    return commit or None


def recent_changes(vault: Vault) -> str:
    """Return the diff of the repository around a vault: its last commit, and all since."""
    base = git.resolve(vault.root, "HEAD~1") or git.resolve(vault.root, "HEAD")
    return diff.between(vault.root, base, "", _wanted(vault, vault.root)).text if base else ""


def _wanted(vault: Vault, place: Path) -> Callable[[str], bool]:
    """Return which paths of the repository around a folder count: lessons themselves do not."""
    config = vault.config
    top = git.top_of(place) or place
    lessons = vault.lessons_dir.resolve()
    own = [str(lessons.relative_to(top))] if lessons.is_relative_to(top) else [FOLDER]
    return diff.wanted((*config[LearnTable].exclude, *config[JournalTable].exclude), own)


def _by_edits(played: Replay | None, session: Session, is_wanted: Callable[[str], bool]) -> Diff:
    """Return what the agent's edits changed: the repository is not here."""
    if played is None:
        named = [path for record in session.records for path in record.files_modified]
        by_name = [FileChange(path, CHANGED) for path in dict.fromkeys(named) if is_wanted(path)]
        return Diff(tuple(by_name))
    by_path: dict[str, list[tuple[Edit, list[str]]]] = {}
    for path, edit, lines in played.edits:
        if is_wanted(path) and _is_of_project(path):
            by_path.setdefault(path, []).append((edit, lines))
    changes = tuple(_summed(path, edits) for path, edits in by_path.items())
    room, texts = diff.MAX_CHARS, list[str]()
    for change in changes:
        lines = [f"--- {'/dev/null' if change.kind == ADDED else f'a/{change.path}'}"]
        lines.append(f"+++ b/{change.path}")
        for edit, changed in by_path[change.path]:
            lines += ["@@ the whole file @@" if edit.is_whole else "@@ an edit @@", *changed]
        shown = diff.clean("\n".join(lines))
        room -= len(shown)
        texts += [shown] if room >= 0 else []
    return Diff(changes, "".join(texts))


def _summed(path: str, edits: Sequence[tuple[Edit, list[str]]]) -> FileChange:
    """Return the change that edits of a file come to: a whole file has all that was before it."""
    begin = max((at for at, (edit, _) in enumerate(edits) if edit.is_whole), default=0)
    lines = [line for _, changed in edits[begin:] for line in changed]
    added, removed = (sum(line.startswith(sign) for line in lines) for sign in "+-")
    return FileChange(path, ADDED if edits[0][0].is_whole else CHANGED, added, removed)


# A session as its transcript or its records have it.


def _is_of_project(path: str) -> bool:
    return not path.startswith(_ELSEWHERE) and "/.claude/" not in f"/{path}"


@dataclass(slots=True)
class Replay:
    """The course of a session. `edits` are those that were done, each with its path and lines."""

    subjects: list[str] = field(default_factory=list)
    edits: list[tuple[str, Edit, list[str]]] = field(default_factory=list)
    turns: list[tuple[str, list[Moment]]] = field(default_factory=list)  # with the prompt's uuid


def replay(file: Path, agent: str) -> Replay:
    """Return a session as its transcript has it. Raises OSError."""
    turns, there, folder = Turns(redact), Replay(), ""
    for event in reading.read_events(file, agent):
        folder = folder or event.folder
        _add(there, turns.take(event), folder)
    _add(there, turns.end(), folder)
    return there


def _add(there: Replay, turn: Turn | None, folder: str) -> None:
    """Add what a turn has, if there is one and this product did not begin it."""
    prompt = turn.prompt if turn else None
    if turn is None or (prompt and events.is_internal(prompt.text)):
        return
    changes: dict[int, list[tuple[str, str]]] = {}
    for call in turn.calls:
        there.subjects += call.commits
        for edit in call.edits:
            path = redact(tools.relative_path(edit.path, folder, call.folder))
            lines = _changed_lines(edit)
            changes.setdefault(id(call), []).append((path, "\n".join(lines)))
            if call.is_done_edit and call.is_change:
                there.edits.append((path, edit, lines))
    there.turns.append((prompt.uuid if prompt else "", [*timeline.moments(turn, changes)]))


def _changed_lines(edit: Edit) -> list[str]:
    """Return the lines of an edit with - and +, redacted, without those that stay."""
    old, new = (redact(events.without_own_text(text)).splitlines() for text in (edit.old, edit.new))
    if len(old) + len(new) > MAX_LINES:
        return [*(f"-{line}" for line in old), *(f"+{line}" for line in new)]
    result = []
    for kind, *ends in difflib.SequenceMatcher(None, old, new).get_opcodes():
        if kind != "equal":
            result += [f"-{line}" for line in old[ends[0] : ends[1]]]
            result += [f"+{line}" for line in new[ends[2] : ends[3]]]
    return result


def _recorded(played: Replay, session: Session) -> Iterator[Moment]:
    """Yield the moments of a transcript as far as the journal's records still have them."""
    prompts = {uuid: each for each in session.records if each.kind == PROMPT for uuid in each.uuids}
    told = "\n\n".join(each.text for each in session.records if each.kind == OBSERVATION)
    for uuid, moments in played.turns:
        record = prompts.get(uuid)
        plan = record.text if record else None  # or a prompt that the agent wrote for itself
        for each in moments if record or not uuid else ():
            if each.kind == timeline.PERSON and record:
                yield replace(each, text=record.text)
            elif each.kind != timeline.AGENT or each.text in told or each.text == plan:
                yield each


def _of_records(session: Session) -> Iterator[Moment]:
    """Yield the moments of a session by the journal's records alone.

    These have no order of edits among commands: they come after the last that failed.
    """
    for record in session.records:
        if record.kind == PROMPT:
            is_refusal, origin = record.origin == events.REFUSAL, record.origin
            is_correction = not is_refusal and corrects(record.text, record.context, origin)
            yield Moment(timeline.PERSON, record.text, origin=origin, is_correction=is_correction)
        elif record.kind == OBSERVATION:
            edits = [Moment(timeline.EDIT, "", path) for path in record.files_modified]
            ran = [
                Moment(timeline.FAILED if each.failed else timeline.RAN, each.output, each.text)
                for each in record.commands
            ]
            failed = [at for at, each in enumerate(record.commands, 1) if each.failed]
            last = max(failed, default=0)
            yield from (*ran[:last], *edits, *ran[last:])
            yield from (Moment(timeline.FAILED, error, "a call") for error in record.errors)
            yield from [Moment(timeline.AGENT, record.text)] if record.text else []


def _allowed(
    there: Iterable[Moment], session: Session, exclude: Exclude, is_wanted: Callable[[str], bool]
) -> Iterator[Moment]:
    """Yield the moments of a session that tell nothing of excluded files."""
    moments, records = [*there], list[Record]()
    for each in moments:
        is_change = each.kind in timeline.CHANGES
        ran = () if is_change or not each.about else (Command(each.about, output=each.text),)
        paths = (each.about,) if is_change else ()
        records.append(Record("", OBSERVATION, 0, "", "", "", files_modified=paths, commands=ran))
    left = exclude.apply(replace(session, records=tuple(records))).records
    for each, record in zip(moments, left, strict=True):
        if record.commands:
            (command,) = record.commands
            yield replace(each, about=command.text, text=command.output)
        elif each.kind in timeline.CHANGES:
            is_allowed = record.files_modified and _is_of_project(each.about)
            yield from [each] if is_allowed and is_wanted(each.about) else []
        else:
            yield each
