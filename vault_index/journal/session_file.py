"""A session as a markdown file that a person reads and searches, and back, without loss.

    ---                                       about the session, a `key: value` a line; `read` is for
    session: 3f2a91c0-...                     the reader of the transcript
    ---

    # Fix the login redirect

    <!-- record {"id": "3f2a91c0-p1", ...} -->
    ## Prompt 1 · 14:02: Fix the login redirect

    The text as typed.

    <!-- record {"id": "3f2a91c0-o1.1", ...} -->
    ### Observation · 14:05 · bugfix: The redirect keeps its query

    The narrative, then parts with a label of their own: facts and files as bullets, commands and
    errors in fences, of a prompt also what it answers, of a summary its fields.

Times in headings are UTC. A heading is for the reader: of it only the title, after the colon, is read
back. A line of a text that looks like a part of the file has a backslash in front.

Somebody may edit the file. Their changes of texts stay, and a record that they delete stays away, unless
it is of the last turn that was read: when the session goes on, that turn is read again.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

from vault_index.errors import VaultError
from vault_index.journal.record import (
    FIELDS,
    OBSERVATION,
    PROMPT,
    SUMMARY,
    Command,
    ReadTo,
    Record,
    Session,
)
from vault_index.text.blocks import one_line

_MARK = "<!-- record "
_MARK_END = " -->"
_LABELS = {
    "context": "In answer to",
    "facts": "Facts",
    "files_read": "Files read",
    "files_modified": "Files modified",
    "commands": "Commands",
    "errors": "Errors",
}
_FIELD_LABELS = {name: name.replace("_", " ").capitalize() for name in FIELDS}
_ANY_LABEL = rf"\*\*({'|'.join((*_LABELS.values(), *_FIELD_LABELS.values()))})\*\*"
_LABEL = re.compile(_ANY_LABEL)
# what a line of a text may not look like, with the backslashes that it may have already
_OURS = re.compile(rf"^\\*(?={_MARK}|{_ANY_LABEL}$)", re.MULTILINE)
_ESCAPED = re.compile(rf"^\\(?=\\*(?:{_MARK}|{_ANY_LABEL}$))", re.MULTILINE)
_HEADING = re.compile(r"#{2,3} (?:Prompt|Observation|Summary)\b[^:]*(?::\d\d[^:]*)?(?:: (.*))?")
_TITLE = re.compile(r"[^\s](?:[^\n\r]*[^\s])?")  # one that a heading can carry
_PLAIN = re.compile(r"[A-Za-z0-9/~.][\w/~.@+ -]*(?<! )(?::[\w/~.@+-]+)*")  # needs no quotes
_TICKS = re.compile(r"`{3,}")
_PROMPT_LINE = re.compile(r"^\\*(?=\$ )", re.MULTILINE)
_ESCAPED_PROMPT = re.compile(r"^\\(?=\\*\$ )", re.MULTILINE)
_STATUS = re.compile(r"\[(?:exit (-?\d+)|exit unknown)(, failed)?\]")
# values of a record in its mark, as they are without it
_MARKED: dict[str, Any] = {"id": "", "kind": "", "number": 0}
_MARKED |= dict.fromkeys(("at", "branch", "origin", "type"), "")
_NUMBERS = {"prompts", "tool_calls", "errors", "unread"}
_KEYS = {"session": "id"} | {
    field.name: field.name
    for field in fields(Session)
    if field.name not in ("id", "records", "read")
}
_HINT = "correct the file, or remove it and run lessons journal import"


def dump(session: Session) -> bytes:
    """Return the file of a session, UTF-8. Characters that have no UTF-8 become question marks."""
    values = {key: getattr(session, name) for key, name in _KEYS.items()}
    lines = ["---", *(f"{key}: {_scalar(value)}" for key, value in values.items() if value)]
    lines += [f"read: {json.dumps(asdict(session.read), ensure_ascii=False)}", "---", ""]
    lines += [f"# {one_line(title_of(session), 120)}", ""]
    for record in session.records:
        lines += _record(record)
    return "\n".join(lines).encode("utf-8", "replace")


def parse(data: bytes, where: str | Path) -> Session:
    """Return the session of a file. Raises VaultError, which names `where` and the line."""
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise VaultError(f"{where}:{line}: not UTF-8", _HINT) from None
    lines = text.split("\n")
    values, start = _read_frontmatter(lines, where)
    marks = [number for number in range(start, len(lines)) if lines[number].startswith(_MARK)]
    records = []
    for begin, end in zip(marks, [*marks, len(lines)][1:], strict=True):
        try:
            records.append(_read_record(lines[begin:end]))
        except (ValueError, TypeError, KeyError, RecursionError) as error:
            raise VaultError(f"{where}:{begin + 1}: not a record: {error}", _HINT) from None
    return Session(**values, records=tuple(records))


def title_of(session: Session) -> str:
    """Return what a session is about: the request of its summary, else its first prompt."""
    summaries = [record for record in session.records if record.kind == SUMMARY]
    for record in [*summaries, *session.records]:
        title = record.title or record.fields.get("request", "")
        if title.strip():
            return title
    return session.id


def _scalar(value: str | int) -> str:
    if isinstance(value, int) or (_PLAIN.fullmatch(value) and not value.isdecimal()):
        return str(value)
    return json.dumps(value, ensure_ascii=False)


def scalar_of(written: str) -> str:
    """Return the text that a value of the frontmatter is. Raises ValueError."""
    return str(json.loads(written)) if written[:1] == '"' else written


def _read_frontmatter(lines: Sequence[str], where: str | Path) -> tuple[dict[str, Any], int]:
    """Return the values of a session, and the number of the line after the frontmatter."""
    if lines[0].rstrip() != "---":
        raise VaultError(f"{where}:1: no frontmatter: the first line is not ---", _HINT)
    values: dict[str, Any] = {}
    for number, line in enumerate(lines[1:], start=2):
        if line.rstrip() == "---":
            if not values.get("id"):
                raise VaultError(f"{where}:{number}: the frontmatter names no session", _HINT)
            return {"agent": "", "transcript": ""} | values, number
        key, colon, written = line.partition(":")
        written = written.strip()
        try:
            if key == "read":
                values["read"] = _read_to(json.loads(written))
            elif key in _KEYS:
                value = scalar_of(written)
                values[_KEYS[key]] = int(value) if key in _NUMBERS else value
            elif not colon and line.strip():
                raise ValueError("a line of it is no `key: value`")
        except (ValueError, TypeError, AttributeError, RecursionError) as error:
            raise VaultError(
                f"{where}:{number}: the frontmatter is damaged: {error}", _HINT
            ) from None
    raise VaultError(f"{where}:1: the frontmatter has no end", _HINT)


def _read_to(values: dict[str, Any]) -> ReadTo:
    numbers = {name: int(values.get(name, 0)) for name in ("bytes", "number", "size")}
    state = values.get("state", {})
    if not isinstance(state, dict):
        raise ValueError("the state is no object")
    return ReadTo(**numbers, hash=str(values.get("hash", "")), state=state)


def _record(record: Record) -> Iterator[str]:
    titled = _TITLE.fullmatch(record.title) is not None
    values = {name: getattr(record, name) for name in (*_MARKED, "concepts", "uuids")}
    values["title"] = "" if titled else record.title
    values["fields"] = {
        key: text for key, text in record.fields.items() if key not in _FIELD_LABELS
    }
    mark = json.dumps({key: value for key, value in values.items() if value}, ensure_ascii=False)
    yield _MARK + mark.replace("-->", "--\\u003e") + _MARK_END
    yield _heading(record, titled)
    yield ""
    if record.text:
        yield from (_escaped(record.text), "")
    for name, (write, _) in _FORMS.items():
        if value := getattr(record, name):
            yield from _part(_LABELS[name], write(value))
    for key, label in _FIELD_LABELS.items():
        if key in record.fields:
            yield from _part(label, record.fields[key])


def _heading(record: Record, titled: bool) -> str:
    level = "###" if record.kind == OBSERVATION else "##"
    number = f" {record.number}" if record.kind == PROMPT else ""
    about = [f"{level} {record.kind.capitalize()}{number}"]
    if re.fullmatch(r".{10}T\d\d:\d\d\b.*", record.at):
        about.append(record.at[11:16])
    about += [word for word in (record.type, *record.concepts) if re.fullmatch(r"[\w-]+", word)]
    return " · ".join(about) + (f": {record.title}" if titled else "")


def _part(label: str, text: str) -> tuple[str, str, str]:
    return f"**{label}**", _escaped(text), ""


def _escaped(text: str) -> str:
    return _OURS.sub(r"\\\g<0>", text) if "**" in text or _MARK in text else text


def _bullets(items: Iterable[str]) -> str:
    return "\n".join("- " + item.replace("\n", "\n  ") for item in items)


def _fenced(text: str, language: str) -> str:
    ticks = "`" * max([2, *(len(run) for run in _TICKS.findall(text))]) + "`"
    return f"{ticks}{language}\n{text}\n{ticks}"


def _command(command: Command) -> str:
    status = "unknown" if command.status is None else command.status
    lines = "\n> ".join(command.text.split("\n"))
    shown = f"$ {lines}\n[exit {status}{', failed' if command.failed else ''}]"
    if not command.output:
        return shown
    output = _PROMPT_LINE.sub(r"\\\g<0>", command.output)
    return f"{shown}\n{output}"


def _read_record(lines: Sequence[str]) -> Record:
    """Return a record from its lines, of which the first is its mark. Raises ValueError and such."""
    values = json.loads(lines[0].rstrip()[len(_MARK) : -len(_MARK_END)])
    if not isinstance(values, dict) or "kind" not in values:
        raise ValueError("its mark holds no object with a kind")
    heading = _HEADING.fullmatch(lines[1]) if len(lines) > 1 else None
    body = lines[2:] if heading else lines[1:]
    parts = [("", 0)] + [
        (label[1], number + 1)
        for number, line in enumerate(body)
        if line.startswith("**") and (label := _LABEL.fullmatch(line))
    ]
    ends = [*(start - 1 for _, start in parts[1:]), len(body)]
    texts: dict[str, str] = {}
    for (name, start), end in zip(parts, ends, strict=True):
        some = list(body[start:end])
        if not name and some and not some[0]:
            some = some[1:]  # below the heading
        if some and not some[-1]:
            some.pop()  # the line between two parts
        text = "\n".join(some)
        texts[name] = _ESCAPED.sub("", text) if "\\" in text else text
    read: dict[str, Any] = {
        name: type(default)(values.get(name, default)) for name, default in _MARKED.items()
    }
    read |= {name: tuple(map(str, values.get(name, ()))) for name in ("concepts", "uuids")}
    for name, (_, reader) in _FORMS.items():
        if _LABELS[name] in texts:
            read[name] = reader(texts[_LABELS[name]])
    said = {name: texts[label] for name, label in _FIELD_LABELS.items() if label in texts}
    title = (heading[1] if heading else "") or str(values.get("title", ""))
    return Record(**read, title=title, text=texts[""], fields={**values.get("fields", {}), **said})


def _read_bullets(text: str) -> tuple[str, ...]:
    items: list[list[str]] = []
    for line in text.split("\n"):
        if line.startswith("- "):
            items.append([line[2:]])
        elif items and line:  # an empty one is between two bullets
            items[-1].append(line[2:] if line.startswith("  ") else line)
    return tuple(map("\n".join, items))


def _read_fences(text: str) -> tuple[str, ...]:
    blocks, ticks, inside = list[str](), "", list[str]()
    for line in text.split("\n"):
        if not ticks:
            opening = _TICKS.match(line)
            ticks, inside = (opening[0] if opening else ""), []
        elif line == ticks:
            blocks.append("\n".join(inside))
            ticks = ""
        else:
            inside.append(line)
    if ticks:
        raise ValueError("a fence in it is not closed")
    return tuple(blocks)


def _read_commands(text: str) -> tuple[Command, ...]:
    commands = []
    lines = "\n".join(_read_fences(text)).split("\n")
    starts = [number for number, line in enumerate(lines) if line.startswith("$ ")]
    for start, end in zip(starts, [*starts, len(lines)][1:], strict=True):
        after = start + 1
        while after < end and lines[after].startswith("> "):
            after += 1
        command = [line[2:] for line in lines[start:after]]
        status = _STATUS.fullmatch(lines[after]) if after < end else None
        output = lines[after + 1 if status else after : end]
        commands.append(
            Command(
                text="\n".join(command),
                status=int(status[1]) if status and status[1] else None,
                failed=bool(status and status[2]),
                output=_ESCAPED_PROMPT.sub("", "\n".join(output)),
            )
        )
    return tuple(commands)


# of each part of a record: how it is written, and read
_FORMS: dict[str, tuple[Callable[[Any], str], Callable[[str], Any]]] = {
    "context": (
        lambda text: "> " + text.replace("\n", "\n> "),
        lambda text: re.sub("(?m)^> ", "", text),
    ),
    "facts": (_bullets, _read_bullets),
    "files_read": (_bullets, _read_bullets),
    "files_modified": (_bullets, _read_bullets),
    "commands": (lambda all: _fenced("\n".join(map(_command, all)), "console"), _read_commands),
    "errors": (lambda all: "\n".join(_fenced(each, "text") for each in all), _read_fences),
}
