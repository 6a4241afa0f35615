"""Set one setting in a settings file: the line of its key changes, and no other."""

from __future__ import annotations

import json
import re
import tomllib
from codecs import BOM_UTF8
from pathlib import Path
from typing import Any

from vault_index import config, files
from vault_index.errors import SettingsError

_BY_HAND = "change it by hand: lessons config edit"
_TABLE = re.compile(r"\s*\[")


def write(file: Path, name: str, typed: str | None) -> Any:
    """Set the setting `name` (`learn.auto`) of a file, and return its value.

    `typed` is TOML, or a text without quotes; None takes the setting out. A file that is not there is
    made. Raises SettingsError for an unknown name, a wrong value and a file that a line cannot change;
    WriteError.
    """
    if name not in config.SETTINGS:
        raise SettingsError(
            config.unknown_key(name, set(config.SETTINGS)), "see all: lessons config"
        )
    value = None if typed is None else _read(name, typed)
    data = files.read_if_any(file) or b""
    mark = BOM_UTF8 if data.startswith(BOM_UTF8) else b""
    before = data.removeprefix(mark).decode("utf-8", "surrogateescape")
    after = _with_line(before, name, value)
    values, (table, _, key) = _parsed(before, file), name.rpartition(".")
    is_twice = table and f"{table}_{key}" in values  # its other spelling
    own = values.get(table, {}) if table else values
    new = {each: there for each, there in {**own, key: value}.items() if there is not None}
    if table:
        new = values | ({table: new} if new or table in values else {})
    if is_twice or _parsed(after, file) != new:
        raise SettingsError(f"{file} has {name} in more than one line", _BY_HAND)
    file.parent.mkdir(parents=True, exist_ok=True)
    files.replace_file(file, mark + after.encode("utf-8", "surrogateescape"))
    return value


def _read(name: str, typed: str) -> Any:
    try:
        value = tomllib.loads(f"value = {typed}")["value"]
    except tomllib.TOMLDecodeError:
        value = typed
    is_text = not isinstance(value, str) and str(config.SETTINGS[name].type) == "str"
    value = typed if is_text else value
    config.checked(name, value)
    return value


def _with_line(text: str, name: str, value: Any) -> str:
    """Return a TOML text with the line of a key put in place, or added to its table; gone for None."""
    table, _, key = name.rpartition(".")
    line = [] if value is None else [f"{key} = {json.dumps(value, ensure_ascii=False)}"]
    lines = text.splitlines()
    headers = [number for number, each in enumerate(lines) if _TABLE.match(each)]
    start = 0
    if table:
        header = re.compile(rf"\s*\[\s*{table}\s*\]")
        start = next((number + 1 for number in headers if header.match(lines[number])), -1)
        if start < 0:
            new = [*([""] if lines else []), f"[{table}]", *line] if line else []
            return "\n".join([*lines, *new, ""])
    end = next((number for number in headers if number >= start), len(lines))
    for number in range(start, end):
        if re.match(rf"\s*{key}\s*=", lines[number]):
            lines[number : number + 1] = line
            return "\n".join([*lines, ""])
    while end > start and not lines[end - 1].strip():
        end -= 1
    return "\n".join([*lines[:end], *line, *lines[end:], ""])


def _parsed(text: str, file: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise SettingsError(f"{file}: {error}", _BY_HAND) from None
