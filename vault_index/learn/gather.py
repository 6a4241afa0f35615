"""Gather the material of a session, commits or files: redacted, and without this product's injections.

A session is its moments in the journal, after its transcript was read on, without what the settings
exclude by now.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path

from vault_index import git
from vault_index.check.redact import redact
from vault_index.errors import GitError, StateError, VaultError
from vault_index.features import JournalTable, LearnTable
from vault_index.files import read_if_any
from vault_index.hotpath import hook_event
from vault_index.hotpath.log import MAX_SESSION_CHARS
from vault_index.journal import archive, capture, projects
from vault_index.journal.excluded import Exclude
from vault_index.journal.journal import Journal
from vault_index.journal.record import Session
from vault_index.learn import diff, timeline
from vault_index.learn.diff import ProjectDiff
from vault_index.learn.material import ADDED, CHANGED, COMMITS, FILES, SESSION, FileChange, Material
from vault_index.store import injections
from vault_index.transcripts import events, reading, tools
from vault_index.transcripts.moments import (
    AGENT,
    CALLED,
    CHANGES,
    NEW_FILE,
    OPEN,
    PERSON,
    RAN,
    Moment,
)
from vault_index.vault import FOLDER, Vault

LAST, BEFORE = "last", "before"  # the latest session of a project, and the one before it
_NOT_KEPT = (capture.NOT_RECORDED, capture.COPY, capture.NO_WORK)
NOBODY = "none"  # no session: what a person writes at a terminal
MAX_SUBJECTS = 50
MAX_FILE = 512 * 1024  # bytes of a file that is named
_COMMITTED_WITHIN = timedelta(hours=1)  # after the end of a session
_LATEST = 20  # sessions of a project among which is one that no agent started
_TRANSCRIPTS = 200  # changed last, among which one of a project is looked for
# what the vault said, and the entries that are proposed, prove nothing
_OURS = re.compile(r"\blessons\S* (?:-\S+ )*(?:propose|search|show|ask|recall|learn|review|list)\b")


def session(
    vault: Vault, name: str, folder: Path | None = None, *, unrecorded: bool = False
) -> Material:
    """Return the material of a session: by its id, the beginning of that, LAST or BEFORE.

    LAST and BEFORE look in the project of `folder`. An `unrecorded` session is read whole, and not kept.
    Raises VaultError without one.
    """
    config = vault.config
    journal = Journal(config)
    chosen, moments = _find_session(journal, name, folder or vault.root, unrecorded)
    globs = (*config[LearnTable].exclude, *config[JournalTable].exclude)
    allowed = Exclude(globs).apply((each for each in moments if not _is_ours(each)), chosen.folder)
    moments = tuple(timeline.of_session(allowed, diff.wanted(globs)))
    changed = _during(vault, chosen) or _by_edits(moments)
    subjects = [subject for each in allowed for subject in each.commits]
    subjects += map(_subject, changed.messages)
    return Material(
        scope=SESSION,
        target=chosen.id,
        project=chosen.project,
        session=chosen.id,
        branch=chosen.branch,
        began=chosen.began,
        ended=chosen.ended,
        moments=moments,
        transcript=_heard(journal, chosen, globs) if unrecorded else (),
        subjects=tuple(dict.fromkeys(subjects))[:MAX_SUBJECTS],
        injected=_injected(vault, chosen.id),
        **changed.of_material,
    )


def at_hand(vault: Vault, name: str, folder: Path) -> Material:
    """Return the material of the session of an agent that works in a folder, by default the latest.

    It has no moments where nobody reads the transcripts of that agent, and for `NOBODY`: a person
    writes an entry of no session. Raises VaultError for a name that no session has.
    """
    try:
        if name == NOBODY:
            raise VaultError("no session")
        return session(vault, name or LAST, folder, unrecorded=True)
    except (StateError, GitError):
        raise
    except VaultError:
        if name not in ("", NOBODY):
            raise
        base = git.resolve(vault.root, "HEAD~1") or git.resolve(vault.root, "HEAD")
        wanted = _wanted(vault, vault.root)
        text = diff.between(vault.root, base, "", wanted).text if base else ""
        return Material(SESSION, "", folder.name, diff=text)


def _heard(journal: Journal, session: Session, globs: Sequence[str]) -> tuple[Moment, ...]:
    """Return the moments of a session's transcript, with the output of calls, and of the journal.

    It is all that its agent had: one that resumes a session goes on in its file, or copies what was said
    before. Raises VaultError if the file cannot be read.
    """
    file = Path(session.transcript)
    recorded = archive.of_transcript(journal, file)
    moments: list[Moment] = []
    if session.transcript and file.is_file():
        agent = session.agent or reading.agent_of(file)
        read = capture.not_forgotten(
            journal, session, capture.read(file, agent, outputs=True).moments
        )
        moments += Exclude(globs).apply(read, session.folder, outputs=True)
    in_journal = archive.moments_of(journal, recorded) if recorded else []
    moments += [each for each in in_journal if each.kind != CALLED]
    return as_heard(moments)


def as_heard(moments: Iterable[Moment]) -> tuple[Moment, ...]:
    """Return the moments in which a quote may stand, each with its speaker; none are this product's."""
    # of a call that did not run: the reason, too
    quotable = (each for each in moments if each.kind != OPEN or each.text)
    return tuple(_as_spoken(each) for each in quotable if not _is_ours(each))


def _as_spoken(moment: Moment) -> Moment:
    """Return a moment that a person said only if one typed it.

    The result of a question has the agent's words, too: the answer alone is a prompt of its own.
    """
    if moment.kind == CALLED and moment.tool == tools.QUESTION:
        return replace(moment, kind=AGENT)
    if moment.kind != PERSON or moment.origin in events.TYPED:
        return moment
    return replace(moment, kind=AGENT if moment.origin == events.PLAN else RAN)


def _is_ours(moment: Moment) -> bool:
    is_server = moment.tool.startswith("mcp__") and "lessons" in moment.tool
    return is_server or (moment.is_call and _OURS.search(moment.about) is not None)


def commits(vault: Vault, revisions: str, folder: Path | None = None) -> Material:
    """Return the material of a commit, `HEAD~1`, or of several, `main..HEAD`. Raises VaultError."""
    repository = folder or vault.root
    older, dots, newer = revisions.partition("..")
    until = git.resolve(repository, (newer or "HEAD") if dots else older)
    base = until and git.resolve(repository, (older or "HEAD") if dots else f"{until}^")
    if not until or (dots and not base) or newer.startswith("."):
        hint = "name one such as HEAD, or several: main..HEAD"
        raise VaultError(f"{revisions!r:.80} names no commits", hint)
    changed = diff.between(repository, base, until, _wanted(vault, repository))
    messages = [Moment(timeline.COMMIT, message) for message in changed.messages[:MAX_SUBJECTS]]
    return Material(
        scope=COMMITS,
        target=revisions,
        project=project_of(vault, repository),
        moments=(*messages, *timeline.moments_of_diff(changed.text)),
        subjects=tuple(map(_subject, changed.messages))[:MAX_SUBJECTS],
        **changed.of_material,
    )


def files(vault: Vault, paths: Sequence[str], folder: Path | None = None) -> Material:
    """Return the material of some files of a project. Raises VaultError for others, and for none."""
    base = (folder or vault.root).resolve()
    top = git.top_of(base) or base
    is_wanted = _wanted(vault, base)
    changes, texts = [], []
    for named in paths:
        file = Path(os.path.realpath(base / named))  # `resolve` raises for links in a circle
        if not file.is_relative_to(top) or ".git" in file.parts:
            raise VaultError(f"{named} is not in {top}", "name files of the project")
        if not file.exists():
            raise VaultError(f"there is no file {named}", f"name files from {base}")
        within = str(file.relative_to(top))
        if not is_wanted(within) or git.ignored(top, [within]):
            raise VaultError(
                f"nothing is learned from {named}: it is a lesson, or git ignores it, a setting leaves"
                " it out or a tool made it",
                "name files that git has, and that `exclude` of [journal] and [learn] allows",
            )
        content = read_if_any(file, MAX_FILE + 1)
        if content is None or len(content) > MAX_FILE or b"\0" in content:
            raise VaultError(f"{named} is no text file to learn from", "name files with text")
        lines = content.decode("utf-8", "replace").splitlines()
        changes.append(FileChange(redact(within), CHANGED, len(lines)))
        texts.append(diff.clean("\n".join([f"+++ b/{within}", *(f"+{line}" for line in lines)])))
    if not changes:
        raise VaultError("no file is named", "name files of the project")
    text = "".join(texts)[: diff.MAX_CHARS]
    target = " ".join(paths)
    moments = tuple(timeline.moments_of_diff(text))
    project = project_of(vault, base)
    return Material(FILES, target, project, moments, changes=tuple(changes), diff=text)


def project_of(vault: Vault, folder: Path) -> str:
    """Return the name of the project of a folder."""
    return projects.name_for(Journal(vault.config), str(folder))


def _subject(message: str) -> str:
    return message.partition("\n")[0].strip()


def _injected(vault: Vault, session: str) -> dict[str, str]:
    """Return the ids of the lessons that a session was given, with the prompt of the first time.

    It is the prompt's hash, "" for the session's start.
    """
    chosen = injections.RecordFilter(session=session[:MAX_SESSION_CHARS])
    return {
        lesson: each.prompt if each.event == hook_event.PROMPT else ""
        for each in injections.records(vault.config.home, vault.root, chosen)  # the first last
        for lesson in each.lessons
    }


def _find_session(
    journal: Journal, name: str, folder: Path, unrecorded: bool
) -> tuple[Session, Sequence[Moment]]:
    is_latest = name in (LAST, BEFORE)
    chosen = _latest(journal, folder, name) if is_latest else [_named(journal, name)]
    why = VaultError(
        f"the journal has no session of {folder}",
        "name one of `lessons journal sessions`, or record: `lessons install claude --journal`",
    )
    for each in chosen:
        file = Path(each.transcript)
        try:
            if not each.id or file.is_file():
                return _captured(journal, file, each.agent, unrecorded)
        except VaultError as error:
            why = error
        if each.id:  # as it was when it was read last
            return each, archive.moments_of(journal, each)
    raise why


def _named(journal: Journal, name: str) -> Session:
    """Return a session, one without an id where the journal has it not. Raises VaultError."""
    try:
        return archive.find(journal, name)
    except VaultError:
        for each in reversed([*reading.transcripts()]) if len(name) > 3 else ():
            stem = each.path.stem
            is_it = stem.startswith(name) or stem[-36:].startswith(name)
            if is_it or stem.removeprefix("agent-") == name:
                return Session("", each.agent, str(each.path))
        raise


def _latest(journal: Journal, folder: Path, name: str) -> list[Session]:
    """Return the latest session of a folder's project, before it the session of a newer transcript."""
    project = projects.find_project(journal.home, str(folder))
    sessions = archive.latest(journal, project, limit=_LATEST) if project else []
    main_sessions = [each for each in sessions if not each.parent]
    newest = next(
        (
            each
            for each in [*reading.transcripts()][::-1][:_TRANSCRIPTS]
            if not each.path.name.startswith("agent-")
            and reading.folder_of(each.path) == str(folder)
        ),
        None,
    )
    if newest is None:
        return main_sessions[:1]
    if name == BEFORE:
        return [each for each in main_sessions if each.transcript != str(newest.path)][:1]
    return [Session("", newest.agent, str(newest.path)), *main_sessions[:1]]


def _captured(
    journal: Journal, transcript: Path, agent: str, unrecorded: bool
) -> tuple[Session, Sequence[Moment]]:
    captured = capture.capture(journal, transcript, agent)
    if captured.session:
        return captured.session, archive.moments_of(journal, captured.session)
    if unrecorded and captured.why in _NOT_KEPT:  # whole, whatever the journal has of it
        read = capture.read(transcript, agent)
        moments = capture.not_forgotten(journal, read.session, read.moments)
        project = projects.name_for(journal, read.session.folder)
        return replace(read.session, project=project), moments
    raise VaultError(
        f"session {transcript.stem} is not in the journal: {captured.why}",
        "run lessons journal import",
    )


def _during(vault: Vault, session: Session) -> ProjectDiff | None:
    """Diff a session's project over its time; None where git does not say."""
    folder = Path(session.folder)
    if not session.folder.startswith("/") or git.top_of(folder) is None or not session.began:
        return None
    began = datetime.fromisoformat(session.began).timestamp()
    try:
        base = git.base_at(folder, began)
        until = _until(vault, session, folder)
        if until is None or (until and until == base):
            return None
        return diff.between(folder, base, until, _wanted(vault, folder))
    except GitError:  # the agent's edits are known without it
        return None


def _until(vault: Vault, session: Session, folder: Path) -> str | None:
    """Return the last commit that may be of a session; "" for all there is now, None without one.

    People commit shortly after: up to the next session of the project, an hour at most.
    """
    if not session.ended:
        return ""
    journal, end = Journal(vault.config), datetime.fromisoformat(session.ended) + _COMMITTED_WITHIN
    until = end.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    latest = partial(archive.latest, journal, session.project, session.ended)
    soon = [each.began for each in latest(until) if each.id != session.id]
    end = datetime.fromisoformat(soon[-1]) if soon else end
    if end >= datetime.now(UTC):
        return ""
    commit, head = git.base_at(folder, end.timestamp()), git.resolve(folder, "HEAD")
    if commit and commit == head and all(each.id == session.id for each in latest(limit=2)):
        return ""  # nobody has worked here since
    return commit or None


def _wanted(vault: Vault, folder: Path) -> Callable[[str], bool]:
    """Return a predicate of the paths that count in the repository around a folder: no lessons."""
    config = vault.config
    top = git.top_of(folder) or folder
    lessons = vault.lessons_dir.resolve()
    excluded = [str(lessons.relative_to(top))] if lessons.is_relative_to(top) else [FOLDER]
    return diff.wanted((*config[LearnTable].exclude, *config[JournalTable].exclude), excluded)


def _by_edits(moments: Sequence[Moment]) -> ProjectDiff:
    """Diff the agent's edits: the repository is not here."""
    by_path: dict[str, list[Moment]] = {}
    for each in moments:
        if each.kind in CHANGES:
            by_path.setdefault(each.about, []).append(each)
    return ProjectDiff(tuple(_summed(path, edits) for path, edits in by_path.items()))


def _summed(path: str, edits: Sequence[Moment]) -> FileChange:
    """Return the change that edits of a file come to: a whole file has all that was before it."""
    begin = max((index for index, edit in enumerate(edits) if edit.kind == NEW_FILE), default=0)
    lines = [line for edit in edits[begin:] for line in edit.text.splitlines()]
    added, removed = (sum(line.startswith(sign) for line in lines) for sign in "+-")
    kind = ADDED if edits[0].kind == NEW_FILE else CHANGED
    return FileChange(path, kind, added, removed)
