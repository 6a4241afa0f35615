"""A session as rows of the journal's table: a row for each text that is embedded by itself.

Short prompts say little alone ("yes, the second one"), so a prompt has a second row, with the end of what
it answers. Each piece of a narrative, and each fact, has the beginning of its prompt in front.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime

from vault_index.journal.record import FIELDS, OBSERVATION, PROMPT, SUMMARY, Record, Session
from vault_index.lesson.digest import hash_of
from vault_index.store.schema import JournalRow

# Measured on 60 labelled questions over 37 real sessions, right answers among the first five: .85; with
# facts without the beginning of their prompt .80, with 800 characters of what a prompt answers in place
# of 300 .83. Pieces of 600 to 1,200 are the same within one question.
CONTEXT_TAIL = 300  # characters, of what a prompt answers
PROMPT_HEAD = 300  # characters, of the prompt that a narrative belongs to
FACT_HEAD = 100  # characters, of the prompt that a fact belongs to
PIECE = 1200  # characters, about what an embedder reads
LONGEST = 24_000  # characters of a record's text that are searched: a paste has a beginning
MAX_FILES = 200  # of a record, in the filter


def of_session(session: Session, path: str) -> list[tuple[JournalRow, str]]:
    """Make a session's rows, without vectors, each with the text that is embedded.

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
            files=(files := _files(record)),
            touched=[comparable(file) for file in files],
        )
        prompt = prompts.get(record.number) if record.kind == OBSERVATION else None
        for number, (field, text, words, meant) in enumerate(_texts(record, prompt)):
            row = JournalRow(
                id=f"{path}:{record.id}@{number}",
                position=number,
                field=field,
                text=text,
                fulltext=words,
                content_hash=hash_of(meant),
                uuids=list(record.uuids) if number == 0 else [],  # once is enough
            )
            rows.append((shared | row, meant))
    return rows


def _texts(record: Record, prompt: Record | None) -> Iterator[tuple[str, str, str, str]]:
    """Yield (field, text, what full text searches, what is embedded) for each row; at least one."""
    if record.kind == PROMPT:
        pieces = cut(record.text[:LONGEST]) or [record.title]
        for piece in pieces:
            yield record.kind, piece, piece, piece
        if record.context:
            both = f"{record.context[-CONTEXT_TAIL:]}\n\n{record.text[:PROMPT_HEAD]}"
            yield "context", pieces[0], "", both
    elif record.kind == OBSERVATION:
        asked = prompt.text if prompt else record.title
        for piece in cut(record.text[:LONGEST]) or [record.title]:
            both = f"{asked[:PROMPT_HEAD]}\n\n{piece}"
            yield "narrative", piece, both, both
        for fact in record.facts:
            both = f"{asked[:FACT_HEAD]}\n{fact}"
            yield "fact", fact, both, both
    else:
        texts = {name: record.fields[name] for name in FIELDS if record.fields.get(name)}
        for name, text in (texts or {"request": record.title}).items():
            for piece in cut(text[:LONGEST]) or [record.title]:
                yield name, piece, piece, piece


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
    for paragraph in re.split(r"(?<=\n)(?=\s*\n)", text) if "\n" in text else (text,):
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
    return list(dict.fromkeys((*record.files_modified, *record.files_read)))[:MAX_FILES]


def comparable(path: str) -> str:
    """Return a path as the filter compares it: lower-case, and each tail of it begins with a slash."""
    return "/" + path.replace("\\", "/").strip("/").lower()


def _moment(iso: str) -> datetime | None:
    try:
        moment = datetime.fromisoformat(iso)
    except ValueError:
        return None
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment
