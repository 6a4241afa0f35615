"""Where things are: the agents' transcripts on this machine, and the session files of the journal."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from stat import S_ISREG

from vault_index import files
from vault_index.hotpath import grown
from vault_index.journal.record import Session, short_id

CLAUDE, CODEX = "claude", "codex"
PROJECT_FILE = grown.PROJECT_FILE
_MONTH = re.compile(r"\d{4}-\d\d")
_DAY = re.compile(r"(\d{4}-\d\d)-(\d\d)")
_NO_DATE = ("0000-00", "00")  # of a session whose transcript has no times
_UNSAFE = re.compile(r"[^A-Za-z0-9_-]+")


@dataclass(frozen=True, slots=True)
class Transcript:
    """An agent's file of a session: `size` in bytes, `mtime` in nanoseconds."""

    path: Path
    agent: str
    size: int
    mtime: int


def transcripts(environ: Mapping[str, str] | None = None) -> Iterator[Transcript]:
    """Yield the transcripts of all agents on this machine, those changed last at the end.

    A folder that cannot be read has none.
    """
    environ = os.environ if environ is None else environ
    there = [*_of_claude(_folder(environ, "CLAUDE_CONFIG_DIR", ".claude") / "projects")]
    there += _of_codex(_folder(environ, "CODEX_HOME", ".codex") / "sessions")
    yield from sorted(there, key=lambda one: (one.mtime, str(one.path)))


def agent_of(file: Path) -> str:
    """Return which agent writes files of such a name."""
    return CODEX if file.name.startswith("rollout-") else CLAUDE


def session_files(folder: Path, project: str = "", named: str = "") -> Iterator[Path]:
    """Yield the session files of a journal, or of one project in it, in order of their names.

    `named` is the beginning of the session's part of the name, see `file_name`: only such files.
    """
    for above in [folder / project] if project else _folders(folder):
        for month in _folders(above):
            if _MONTH.fullmatch(month.name):
                yield from sorted(_sessions_in(month, named))


def months(folder: Path, project: str = "") -> Iterator[list[Path]]:
    """Yield the session files of each month, of a journal or one project in it, the latest first."""
    above = [folder / project] if project else _folders(folder)
    named: dict[str, list[Path]] = {}
    for month in (month for each in above for month in _folders(each)):
        if _MONTH.fullmatch(month.name):
            named.setdefault(month.name, []).append(month)
    for name in sorted(named, reverse=True):
        yield [file for month in named[name] for file in _sessions_in(month)]


def _sessions_in(month: Path, named: str = "") -> list[Path]:
    return [
        Path(entry.path)
        for entry in _entries(month)
        if entry.name.endswith(".md")
        and not entry.name.startswith(".")
        and (not named or entry.name.partition("-")[2].startswith(named))
        and entry.is_file(follow_symlinks=False)
    ]


def stamps(folder: Path) -> Iterator[tuple[str, files.Stamp]]:
    """Yield the path of each session file, from the journal's folder, and its stamp; no links.

    One question a file: of 5,000 it takes 40 ms.
    """
    for project in _folders(folder):
        for month in _folders(project):
            for entry in sorted(_entries(month), key=lambda entry: entry.name):
                if not entry.name.endswith(".md") or entry.name.startswith("."):
                    continue
                try:
                    stat = entry.stat(follow_symlinks=False)
                except OSError:  # removed since it was listed
                    continue
                if S_ISREG(stat.st_mode):
                    yield f"{project.name}/{month.name}/{entry.name}", files.stamp_of(stat)


def place_of(session: Session) -> str:
    """Return the path of a session's file below the journal: `<project>/<year-month>/<day>-<id>.md`."""
    date = _DAY.match(session.began)
    month, day = (date[1], date[2]) if date else _NO_DATE
    return f"{session.project}/{month}/{day}-{file_name(session.id) or 'session'}.md"


def file_name(session: str) -> str:
    """Return what a session's file is called after its day: of a beginning of its id that of the name."""
    return _UNSAFE.sub("-", short_id(session))


def _folder(environ: Mapping[str, str], variable: str, default: str) -> Path:
    named = environ.get(variable)
    return (
        Path(named).expanduser()
        if named
        else Path(environ.get("HOME") or "~").expanduser() / default
    )


def _of_claude(projects: Path) -> Iterator[Transcript]:
    for project in _folders(projects):
        for entry in _entries(project):
            if entry.name.endswith(".jsonl"):
                yield from _transcript(entry, CLAUDE)
            elif entry.is_dir(follow_symlinks=False):
                for agent in _entries(Path(entry.path, "subagents")):
                    if agent.name.startswith("agent-") and agent.name.endswith(".jsonl"):
                        yield from _transcript(agent, CLAUDE)


def _of_codex(folder: Path) -> Iterator[Transcript]:
    for entry in _entries(folder):
        if entry.is_dir(follow_symlinks=False):  # years, months, days
            yield from _of_codex(Path(entry.path))
        elif entry.name.startswith("rollout-") and entry.name.endswith(".jsonl"):
            yield from _transcript(entry, CODEX)


def _transcript(entry: os.DirEntry[str], agent: str) -> Iterator[Transcript]:
    try:
        if entry.is_file(follow_symlinks=False):
            now = entry.stat(follow_symlinks=False)
            yield Transcript(Path(entry.path), agent, now.st_size, now.st_mtime_ns)
    except OSError:  # removed meanwhile
        return


def _folders(folder: Path) -> list[Path]:
    return sorted(
        Path(entry.path)
        for entry in _entries(folder)
        if not entry.name.startswith(".") and entry.is_dir(follow_symlinks=False)
    )


def _entries(folder: Path) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as entries:
            return list(entries)
    except OSError:
        return []
