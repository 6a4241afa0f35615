"""Set one setting in a settings file: the value of its key changes, and nothing else."""

from __future__ import annotations

import re
import tomllib
from codecs import BOM_UTF8
from pathlib import Path
from typing import Any

import tomlkit
from tomlkit.exceptions import TOMLKitError

from vault_index import config, files
from vault_index.errors import SettingsError

_BY_HAND = "change it by hand: lessons config edit"
_BARE_LINE_FEED = re.compile(r"(?<!\r)\n")


def write(file: Path, name: str, typed: str | None) -> Any:
    """Set the setting `name` (`learn.auto`) of a file, and return its value.

    `typed` is TOML, or a text without quotes; None takes the setting out. A file that is not there is
    made. Raises SettingsError for an unknown name, a wrong value and a file that cannot be changed so;
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
    values, (table, _, key) = _parsed(before, file), name.rpartition(".")
    if not isinstance(values.get(table, {}), dict):
        raise SettingsError(f"{file}: {table} is not a table", _BY_HAND)
    after = _with_value(before, name, value, file)
    is_twice = table and f"{table}_{key}" in values  # its other spelling
    old_values = values.get(table, {}) if table else values
    new = {
        each: setting for each, setting in {**old_values, key: value}.items() if setting is not None
    }
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
    is_text = not isinstance(value, str) and config.annotation_of(name) is str
    value = typed if is_text else value
    config.checked(name, value)
    return value


def _with_value(text: str, name: str, value: Any, file: Path) -> str:
    """Return a TOML text with a value put in place, or added to its table; gone for None."""
    table, _, key = name.rpartition(".")
    try:
        document = tomlkit.parse(text)
        if value is None:
            holder: Any = document.get(table, {}) if table else document
            holder.pop(key, None)
        else:
            holder = document.setdefault(table, tomlkit.table()) if table else document
            holder[key] = value
    except TOMLKitError as error:
        raise SettingsError(f"{file}: {error}", _BY_HAND) from None
    after = tomlkit.dumps(document)
    is_of_windows = "\r\n" in text and not _BARE_LINE_FEED.search(text)
    return _BARE_LINE_FEED.sub("\r\n", after) if is_of_windows else after


def _parsed(text: str, file: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise SettingsError(f"{file}: {error}", _BY_HAND) from None
