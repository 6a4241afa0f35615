"""The material of a session, of commits or of files: redacted, and free of what this product injected."""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any

from vault_index import files as file_access
from vault_index import git
from vault_index.errors import VaultError
from vault_index.hotpath.log import MAX_SESSION_CHARS
from vault_index.journal import archive, capture, projects
from vault_index.journal.journal import Journal
from vault_index.journal.record import Session
from vault_index.journal.redact import Exclude, redact
from vault_index.learn import diff
from vault_index.learn.diff import Diff
from vault_index.learn.material import ADDED, CHANGED, COMMITS, FILES, SESSION, FileChange, Material
from vault_index.learn.material_of import replay
from vault_index.learn.material_of.replay import Replay
from vault_index.store import injections
from vault_index.transcripts import reading
from vault_index.transcripts.reading import Transcript
from vault_index.vault import FOLDER, Vault

# Which session is meant: one that the journal has, or has from now on.

LAST = "last"
_LATEST = 20  # sessions of a project among which is one that no agent started
_SOME = 200  # transcripts, changed last, among which one of a project is looked for


def find_session(journal: Journal, name: str, folder: Path) -> Session:
    """Return a session by its id, the beginning of that, or LAST for the latest in a folder's project.

    New lines of its transcript are captured first. Raises VaultError without such a session.
    """
    session = _latest(journal, folder) if name == LAST else _by_id(journal, name)
    file = Path(session.transcript)
    if file.is_file():
        with contextlib.suppress(VaultError):  # as it was when it was read last
            taken = capture.capture(journal, file, session.agent)
            if taken.file:
                return archive.read(taken.file)
    return session


def _by_id(journal: Journal, name: str) -> Session:
    try:
        return archive.find(journal, name)[1]
    except VaultError:
        there = [one for one in reading.transcripts() if _is_named(one, name)]
        if len(name) < 4 or not there:
            raise
        return _taken(journal, there[-1])


def _is_named(one: Transcript, name: str) -> bool:
    stem = one.path.stem
    return (
        stem.startswith(name) or stem.removeprefix("agent-") == name or stem[-36:].startswith(name)
    )


def _latest(journal: Journal, folder: Path) -> Session:
    project = projects.find_project(journal.folder, str(folder))
    sessions = archive.latest(journal, project, limit=_LATEST) if project else []
    session = next((each for _, each in sessions if not each.parent), None)
    newer = next(_newer(folder, session), None)
    if newer:
        try:
            return _taken(journal, newer)
        except VaultError:
            if session is None:
                raise
    if session is None:
        raise VaultError(
            f"the journal has no session of {folder}",
            "name one of `lessons journal sessions`, or record sessions: `lessons install claude`",
        )
    return session


def _newer(folder: Path, session: Session | None) -> Iterator[Transcript]:
    """Yield transcripts of a folder that the journal does not have, changed last first."""
    for one in [*reading.transcripts()][::-1][:_SOME]:
        if session and str(one.path) == session.transcript:
            return
        if not one.path.name.startswith("agent-") and reading.folder_of(one.path) == str(folder):
            yield one


def _taken(journal: Journal, one: Transcript) -> Session:
    """Take a transcript in. Raises VaultError if its sessions are not recorded."""
    taken = capture.capture(journal, one.path, one.agent)
    if taken.file is None:
        raise VaultError(
            f"session {taken.session or one.path.stem} is not in the journal: {taken.why}",
            "run lessons journal import",
        )
    return archive.read(taken.file)


MAX_NARRATIVE = 400_000  # characters; of a longer one the end is taken
MOST_SUBJECTS = 50
MAX_FILE = 512 * 1024  # bytes of a file that is named
_ELSEWHERE = ("/tmp/", "/var/", "/private/", "/dev/")  # of no project


def session(vault: Vault, name: str, folder: Path | None = None) -> Material:
    """Return the material of a session: by its id, the beginning of that, or "last".

    `folder` is that of the project whose last one is meant. Raises VaultError without one.
    """
    journal = Journal(vault.config)
    chosen = find_session(journal, name, folder or vault.root)
    config = vault.config
    globs = (*config.learn_ignored, *config.journal_left_out)
    played = _replay(chosen)
    parts = (
        replay.of_replay(played, chosen, Exclude(globs)) if played else replay.of_records(chosen)
    )
    changed = _since(vault, chosen) or _by_edits(played, chosen, diff.wanted(globs))
    subjects = [*(played.subjects if played else ()), *map(_subject, changed.messages)]
    given = _injected(vault, chosen.id)
    return _whole(
        Material(
            *(SESSION, chosen.id, chosen.project, chosen.id, chosen.began, chosen.ended),
            prompts=tuple(parts.prompts),
            narrative=_bounded(parts.narrative),
            repairs=tuple(parts.repairs),
            subjects=tuple(dict.fromkeys(subjects))[:MOST_SUBJECTS],
            changes=changed.changes,
            diff=changed.text,
            injected=tuple(given),
            given_at=tuple(given.values()),
            refused=played.refused if played else sum(said.is_refusal for said in parts.prompts),
            novel=changed.novel,
            notes=changed.notes,
        )
    )


def commits(vault: Vault, revisions: str, folder: Path | None = None) -> Material:
    """Return the material of a commit, `HEAD~1`, or of several, `main..HEAD`. Raises VaultError."""
    place = folder or vault.root
    older, dots, newer = revisions.partition("..")
    until = git.resolve(place, (newer or "HEAD") if dots else older)
    base = (
        git.resolve(place, older or "HEAD") if dots else git.parent(place, until) if until else ""
    )
    if not until or (dots and not base) or newer.startswith("."):
        raise VaultError(
            f"{revisions!r:.80} names no commits", "name one such as HEAD, or several: main..HEAD"
        )
    changed = diff.between(place, base, until, _wanted_of(vault, place))
    bodies = [message.partition("\n")[2].strip() for message in changed.messages]
    return _whole(
        Material(
            *(COMMITS, revisions, place.name),
            narrative=tuple(filter(None, bodies)),
            subjects=tuple(map(_subject, changed.messages))[:MOST_SUBJECTS],
            changes=changed.changes,
            diff=changed.text,
            novel=changed.novel,
            notes=changed.notes,
        )
    )


def files(vault: Vault, paths: Sequence[str], folder: Path | None = None) -> Material:
    """Return the material of some files of a project. Raises VaultError for others, and for none."""
    place = (folder or vault.root).resolve()
    top = git.top_of(place) or place
    is_wanted = _wanted_of(vault, place)
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
                "name files that git has, and that [journal] left_out and [learn] ignored allow",
            )
        content = file_access.read_if_any(file)
        if content is None or len(content) > MAX_FILE or b"\0" in content:
            raise VaultError(f"{named} is no text file to learn from", "name files with text")
        lines = content.decode("utf-8", "replace").splitlines()
        changes.append(FileChange(redact(within), CHANGED, len(lines)))
        texts.append(diff.clean("\n".join([f"+++ b/{within}", *(f"+{line}" for line in lines)])))
    if not changes:
        raise VaultError("no file is named", "name files of the project")
    text = "".join(texts)[: diff.MAX_CHARS]
    target = " ".join(paths)
    return _whole(Material(FILES, target, place.name, changes=tuple(changes), diff=text))


def _replay(session: Session) -> Replay | None:
    file = replay.transcript_of(session)
    try:
        return replay.of(file, session.agent, redact) if file else None
    except OSError:
        return None


def _bounded(narrative: Sequence[str]) -> tuple[str, ...]:
    """Return texts of which those before the last MAX_NARRATIVE characters are empty."""
    texts, room = list[str](), MAX_NARRATIVE
    for text in reversed(narrative):
        room -= len(text)
        texts.append(text if room >= 0 else "")  # the numbers of those that stay are as they were
    return tuple(texts[::-1])


def _since(vault: Vault, session: Session) -> Diff | None:
    """Return what changed in a session's project since it began; None without a repository."""
    place = Path(session.folder)
    if not session.folder.startswith("/") or git.top_of(place) is None or not session.began:
        return None
    began = datetime.fromisoformat(session.began).timestamp()
    base, why = git.base_at(place, began)
    changed = diff.between(place, base, "", _wanted_of(vault, place))
    note = f"the diff is from {base[:10]}: {why}" if base else "there was no commit before it began"
    return replace(changed, notes=(note, *changed.notes))


def _wanted_of(vault: Vault, place: Path) -> Callable[[str], bool]:
    """Return which paths of the repository around a folder count: lessons themselves do not."""
    config = vault.config
    top = git.top_of(place) or place
    lessons = vault.lessons_dir.resolve()
    own = [str(lessons.relative_to(top))] if lessons.is_relative_to(top) else [FOLDER]
    return diff.wanted((*config.learn_ignored, *config.journal_left_out), own)


def _by_edits(played: Replay | None, session: Session, is_wanted: Callable[[str], bool]) -> Diff:
    """Return what the agent's edits changed: the repository is not here."""
    if played is None:
        named = [path for record in session.records for path in record.files_modified]
        by_name = [FileChange(path, CHANGED) for path in dict.fromkeys(named) if is_wanted(path)]
        return Diff(tuple(by_name), notes=("by the journal alone: there is no repository",))
    there = [
        (path, edit, lines)
        for path, edit, lines in played.changed
        if is_wanted(path) and not path.startswith(_ELSEWHERE) and "/.claude/" not in f"/{path}"
    ]
    by_path: dict[str, list[str]] = {}
    for path, edit, lines in there:
        text = by_path.setdefault(path, [])
        text += ["@@ the whole file @@" if edit.is_whole else "@@ an edit @@", *lines]
    changes = replay.summed(there)
    kinds = {change.path: change.kind for change in changes}
    room, texts = diff.MAX_CHARS, list[str]()
    for path, lines in by_path.items():
        old = "/dev/null" if kinds[path] == ADDED else f"a/{path}"
        shown = diff.clean("\n".join([f"--- {old}", f"+++ b/{path}", *lines]))
        room -= len(shown)
        texts += [shown] if room >= 0 else []
    notes = ["the diff is of the agent's edits: there is no repository"]
    notes += ["left out of the diff: what is above its bound"] if room < 0 else []
    return Diff(changes, "".join(texts), notes=tuple(notes))


def _subject(message: str) -> str:
    return message.partition("\n")[0].strip()


def _injected(vault: Vault, session: str) -> dict[str, str]:
    """Return the ids of the lessons that a session was given, with the prompt of the first time.

    It is the prompt's hash, "" for the session's start.
    """
    try:
        records = list(injections.records(vault.index_dir))
    except VaultError:
        return {}
    given: dict[str, str] = {}
    for each in records:
        if each.get("session") == session[:MAX_SESSION_CHARS]:
            for lesson in each["lessons"]:
                given.setdefault(str(lesson), _prompt_of(each))
    return given


def _prompt_of(record: Mapping[str, Any]) -> str:
    is_prompt = record.get("event") == injections.PROMPT
    return str(record.get("prompt")) if is_prompt else ""


def _whole(material: Material) -> Material:
    """Return a material with its digest."""
    text = "\0".join(material.texts)
    digest = hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:32]
    return replace(material, digest=digest)
