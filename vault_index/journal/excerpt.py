"""What a language model sees of a session, and what of its answer holds.

It sees the texts that rules made, within a bound: never the transcript. An answer is worse than the
text by rule if it says nothing, or names a file or a record that is not in what it saw.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from vault_index.journal.record import FIELDS, OBSERVATION, PROMPT, SUMMARY, Record, Session
from vault_index.journal.refined import by_rule, with_text

Answer = Mapping[str, Any]  # an object with the KEYS
MAX_CHARS = 12_000
MAX_TITLE, MAX_TEXT = 160, 2_000  # characters of an answer's parts; more is left out
_SIZES = (1500, 800, 400, 200, 100, 50)  # characters of a record, the first that lets all fit
_TEXT = {"type": "string"}
_OBSERVATION = {"id": _TEXT, "title": _TEXT, "narrative": _TEXT}
KEYS: dict[str, Mapping[str, Any]] = {
    **dict.fromkeys(FIELDS, _TEXT),
    "observations": {"type": "array", "items": {"type": "object", "properties": _OBSERVATION}},
}
_ENDINGS = (
    "py|pyi|js|mjs|cjs|ts|tsx|jsx|vue|go|rs|rb|java|kt|swift|c|h|cc|cpp|hpp|cs|php|pl|lua|sh|bash|sql"
    "|html|css|scss|md|rst|txt|json|jsonl|yaml|yml|toml|ini|cfg|conf|lock|xml|csv|env|tf|proto|ipynb"
)
# a path with a slash and an ending, or a name whose ending is one of files
_FILE = re.compile(
    rf"(?<![\w./~@:-])(?:~?\.{{0,2}}/)?(?:[\w.@+-]+/)+[\w@+-][\w.@+-]*\.[A-Za-z]\w{{0,5}}\b"
    rf"|(?<![\w./~@-])(?![A-Z][a-z]+\.js\b)[\w@+-]+(?:\.[\w@+-]+)*\.(?:{_ENDINGS})\b"
)
_RECORD = re.compile(r"\b[0-9a-f]{8}-(?:[po]\d+(?:\.\d+)?|s)\b|\bo\d+\.\d+\b")


def of(session: Session) -> str:
    """Return the excerpts of a session, at most MAX_CHARS long; "" if it has no observation."""
    records = [by_rule(record) for record in session.records]
    if not any(record.kind == OBSERVATION for record in records):
        return ""
    head = f"Project {session.project}, branch {session.branch or '-'}, {session.began[:16]}\n"
    for size in _SIZES:
        parts = [_shown(record, size) for record in records]
        if len(head) + sum(map(len, parts)) <= MAX_CHARS:
            return head + "".join(parts)
    last = parts.pop() if records[-1].kind == SUMMARY else ""
    room = MAX_CHARS - len(head) - len(last) - 100
    begin, end = _fitting(parts, room // 3), _fitting(parts[::-1], room - room // 3)
    left = len(parts) - len(begin) - len(end)
    return head + "".join([*begin, f"\n[{left} records left out]\n", *end[::-1], last])


def _fitting(parts: list[str], room: int) -> list[str]:
    fitting: list[str] = []
    for part in parts:
        room -= len(part)
        if room < 0:
            break
        fitting.append(part)
    return fitting


def _shown(record: Record, size: int) -> str:
    lines = [f"\n## {short_id(record)} {record.type}".rstrip()]
    if record.kind == OBSERVATION and record.title not in record.text:
        lines.append(_cut(record.title, min(size, 200)))
    lines += [_cut(text, size) for text in _texts(record) if text]
    if record.kind == OBSERVATION:
        lines += _details(record, size)
    return "\n".join(lines) + "\n"


def _texts(record: Record) -> list[str]:
    if record.kind == SUMMARY:
        return [f"{name}: {record.fields[name]}" for name in FIELDS if record.fields.get(name)]
    if record.kind == PROMPT and record.context and len(record.text) < 100:
        return [f"(in answer to: {record.context[-300:]})", record.text]
    return [record.text]


def _details(record: Record, size: int) -> Iterator[str]:
    count = max(1, size // 200)
    yield from (f"- {_cut(fact, size // 2)}" for fact in record.facts[:count])
    files = [*record.files_modified, *record.files_read][: 2 * count]
    if files:
        yield f"files: {', '.join(files)}"
    failed = [command for command in record.commands if command.failed]
    for command in failed[:count]:
        yield f"failed: {_cut(command.text, size // 4)}: {_cut(command.output, size // 2)}"


def _cut(text: str, size: int) -> str:
    """Return the beginning and the end of a text that is longer than a size."""
    text = text.strip()
    if len(text) <= size:
        return text
    return f"{text[: 2 * size // 3]} [...] {text[-(size // 3) :]}"


def short_id(record: Record) -> str:
    """Return the id of a record within its session: `o3.2`."""
    return record.id.rpartition("-")[2]


def problem_of(answer: Answer, session: Session, seen: str) -> str:
    """Return why a model's answer is worse than the text by rule, "" if it is not.

    `seen` is what the model was shown.
    """
    observations = answer["observations"]
    if not any(answer[name].strip() for name in ("request", "learned", "completed")):
        return "its answer says nothing"
    ids = {short_id(record) for record in session.records}
    long_ids = {record.id for record in session.records}
    observed = {short_id(r) for r in session.records if r.kind == OBSERVATION}
    for observation in observations:
        if observation["id"].strip().rpartition("-")[2] not in observed:
            return "its answer cites a record that is not there"
    texts = [answer[name] for name in FIELDS]
    texts += [part for o in observations for part in (o["title"], o["narrative"])]
    for text in texts:
        if any(cited not in ids | long_ids for cited in _RECORD.findall(text)):
            return "its answer cites a record that is not there"
    paths = {f for r in session.records for f in (*r.files_read, *r.files_modified)}
    there = "\n".join([seen, *paths])
    for text in texts:
        for file in _FILE.findall(text):
            if not _names(there, file.removeprefix("./")):
                return "its answer names a file that is not there"
    return ""


def _names(there: str, file: str) -> bool:
    """Whether a text has a path or the end of one, as whole names."""
    return re.search(rf"(?<![\w.@+-]){re.escape(file)}(?![\w@+-])", there) is not None


def redacted(answer: Answer, redact: Callable[[str], str]) -> Answer:
    """Return an answer with its texts redacted and within their bounds."""

    def text(value: str, size: int) -> str:
        return redact(value).strip()[:size]

    observations = [
        {
            "id": part["id"].strip().rpartition("-")[2],
            "title": " ".join(text(part["title"], MAX_TITLE).split()),
            "narrative": text(part["narrative"], MAX_TEXT),
        }
        for part in answer["observations"]
    ]
    fields = {name: text(answer[name], MAX_TEXT) for name in FIELDS}
    return {**fields, "observations": observations}


def with_answer(session: Session, answer: Answer, model: str) -> Session:
    """Return a session with what a model says of its records."""
    observed = {part["id"]: part for part in answer["observations"]}
    records = []
    for record in session.records:
        if record.kind == SUMMARY:
            record = with_text(record, {name: answer[name] for name in FIELDS})
        elif record.kind == OBSERVATION and short_id(record) in observed:
            part = observed[short_id(record)]
            record = with_text(record, {"title": part["title"], "text": part["narrative"]})
        records.append(record)
    return replace(session, refined=model, records=tuple(records))
