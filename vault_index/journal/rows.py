"""A session as rows of the journal's table: a row for each text that is embedded by itself.

Short prompts say little alone ("yes, the second one"), so a prompt has the end of what it answers as
its title, and each piece of a narrative the beginning of its prompt: see `embed.titled`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime

from vault_index.journal.record import FIELDS, OBSERVATION, PROMPT, SUMMARY, Record, Session
from vault_index.lesson.digest import hash_of
from vault_index.store.schema import JournalRow

# Measured on 60 labelled questions over 37 real sessions: what a prompt answers weighs a quarter of
# it, as a title does, and so does a prompt of what was done for it. A row of both in one text is no
# better (.77 against .80 of right answers among the first five), and pieces of 800 are worse (.77).
CONTEXT_TAIL = 800  # characters, of what a prompt answers
PROMPT_HEAD = 300  # characters, of the prompt that a narrative belongs to
NARRATIVE = "narrative"
PIECE = 1200  # characters, about what an embedder reads
LONGEST = 24_000  # characters of a record's text that are searched: a paste has a beginning
MAX_FILES = 200  # of a record, in the filter


def of_session(session: Session, path: str) -> list[tuple[JournalRow, str]]:
    """Make a session's rows, without vectors, each with the text that is embedded as its title.

    `path` is its file's, from the journal's folder.
    """
    prompts = {record.number: record for record in session.records if record.kind == PROMPT}
    rows: list[tuple[JournalRow, str]] = []
    at = session.began
    for place, record in enumerate(session.records):
        at = record.at or at
        shared = JournalRow(
            path=path,
            record=record.id,
            turn=_turn(path, record),
            kind=record.kind,
            session=session.id,
            project=session.project,
            branch=record.branch or session.branch,
            at=_moment(at),
            place=place,
            number=record.number,
            title=record.title,
            type=record.type,
            origin=record.origin,
            concepts=list(record.concepts),
            files=_files(record),
        )
        prompt = prompts.get(record.number) if record.kind == OBSERVATION else None
        for number, (field, text, title) in enumerate(_texts(record, prompt)):
            row = JournalRow(
                id=f"{path}:{record.id}@{number}",
                position=number,
                field=field,
                text=text,
                fulltext=f"{title}\n{text}" if field == NARRATIVE else text,
                content_hash=hash_of(title, text),
                uuids=list(record.uuids) if number == 0 else [],  # once is enough
            )
            rows.append((shared | row, title))
    return rows


def _texts(record: Record, prompt: Record | None) -> Iterator[tuple[str, str, str]]:
    """Yield (field, text, what is embedded as its title) for each row of a record; at least one."""
    if record.kind == PROMPT:
        for number, piece in enumerate(cut(record.text[:LONGEST]) or [record.title]):
            yield record.kind, piece, record.context[-CONTEXT_TAIL:] if number == 0 else ""
    elif record.kind == OBSERVATION:
        head = prompt.text[:PROMPT_HEAD] if prompt else record.title
        for piece in cut(record.text[:LONGEST]) or [record.title]:
            yield NARRATIVE, piece, head
        for fact in record.facts:
            yield "fact", fact, ""
    else:
        said = [(name, record.fields[name]) for name in FIELDS if record.fields.get(name)]
        for name, text in said or [("request", record.title)]:
            for piece in cut(text[:LONGEST]):
                yield name, piece, ""


def cut(text: str, size: int = PIECE) -> list[str]:
    """Cut a text at its paragraphs, then lines, then anywhere, into pieces of about a size."""
    pieces: list[str] = []
    piece = ""
    for part in _parts(text.strip(), size):
        if piece and len(piece) + len(part) > size:
            pieces.append(piece.strip())
            piece = ""
        piece += part
    return [*pieces, piece.strip()] if piece.strip() else pieces


def _parts(text: str, size: int) -> Iterator[str]:
    for paragraph in re.split(r"(?<=\n)(?=\s*\n)", text):
        if len(paragraph) <= size:
            yield paragraph
            continue
        for line in paragraph.splitlines(keepends=True):
            for start in range(0, len(line), size):
                yield line[start : start + size]


def _turn(path: str, record: Record) -> int:
    """Return what a prompt and the observations of its turn share, and no other record: 60 bits."""
    is_of_turn = record.kind != SUMMARY and record.number
    return int(hash_of(path, str(record.number) if is_of_turn else record.id)[:15], 16)


def _files(record: Record) -> list[str]:
    """Return the record's paths as the filter compares them: lower-case, with / before each."""
    both = dict.fromkeys((*record.files_modified, *record.files_read))
    return [comparable(path) for path in both][:MAX_FILES]


def comparable(path: str) -> str:
    """Return a path as `files` has it: tails and folders of it begin with a slash."""
    return "/" + path.replace("\\", "/").strip("/").lower()


def _moment(iso: str) -> datetime | None:
    try:
        moment = datetime.fromisoformat(iso)
    except ValueError:
        return None
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment
