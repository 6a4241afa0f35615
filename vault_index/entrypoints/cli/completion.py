"""What a shell completes: ids, categories, types. Read from names of files, so that no table is opened.

The names come from a repository that anyone may have written, and bash puts what is completed into the
line as it is. So a name that a shell would read as more than one word is not offered.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import click
from click.shell_completion import CompletionItem

Parts = Callable[[click.Context, click.Parameter, str], list[CompletionItem]]

MOST_SECTIONED = 100  # files with several lessons that are read for their names
_ONE_WORD = re.compile(r"(?!-)[\w./#+@%,-]+")


def ids(ctx: click.Context, _parameter: click.Parameter, typed: str) -> list[CompletionItem]:
    """Complete the id of a lesson or, where none begins so, the end of one; else a path."""
    known = list(_quietly(_ids, ctx))
    found = _items(known, typed) or _items(_ends(known), typed)
    return found or [CompletionItem(typed, type="file")]


def categories(ctx: click.Context, _parameter: click.Parameter, typed: str) -> list[CompletionItem]:
    """Complete a category that the vault has or its settings name."""
    return _items(_quietly(_categories, ctx), typed)


def types(_ctx: click.Context, _parameter: click.Parameter, typed: str) -> list[CompletionItem]:
    """Complete a type of lessons."""
    from vault_index.lesson import TYPES

    return _items(TYPES, typed)


def lesson(*, required: bool = True) -> Callable[[Any], Any]:
    """Return the argument of a command that names a lesson; one that is not required may be picked."""
    shown = "ID" if required else "[ID]"
    return click.argument("lesson_id", metavar=shown, required=required, shell_complete=ids)


def _ids(named: str | None) -> Iterator[str]:
    """Yield the ids of a vault's lessons, of files with several where an index counted them."""
    from vault_index import lesson as lessons
    from vault_index import manifest
    from vault_index.errors import VaultError
    from vault_index.vault import INDEX, open_vault

    vault = open_vault(named)
    index = manifest.current(vault.root / INDEX)
    counted = manifest.load(index).files if index else {}
    read = 0
    for file in vault.files()[0]:
        entry = counted.get(file.path)
        own = entry.declared if entry and entry.owns_id else ""
        if entry is None or entry.lessons < 2 or read >= MOST_SECTIONED:
            yield own or lessons.id_of(file.path)
            continue
        read += 1
        try:
            data = (vault.folder / file.path).read_bytes()
            yield from (one.id for one in lessons.parse_file(data, file.path))
        except (VaultError, OSError):
            yield own or lessons.id_of(file.path)


def _categories(named: str | None) -> Iterator[str]:
    """Yield the categories that folders and settings name, with those above them."""
    from vault_index import categories as tree
    from vault_index.vault import open_vault

    vault = open_vault(named)
    folders = (tree.from_folder(file.path) for file in vault.files()[0])
    told = {folder for folder in folders if folder and tree.tells_something(folder)}
    config = vault.config
    for category in {*told, *config.taxonomy, *config.keywords.values()}:
        yield from tree.prefixes(category)


def _quietly(read: Callable[[str | None], Iterable[str]], ctx: click.Context) -> list[str]:
    """Read names of the vault that the line names; none where something is wrong, and no message."""
    named = ctx.find_root().params.get("vault")
    try:
        return list(read(named))
    except Exception:  # noqa: BLE001  # the line that somebody types stays as it is
        return []


def _ends(known: Iterable[str]) -> list[str]:
    """Return the last parts of ids that no two share: each means one lesson."""
    ends = Counter(re.split(r"[/#]", id)[-1] for id in known)
    return [end for end, count in ends.items() if count == 1]


def _items(values: Iterable[str], typed: str) -> list[CompletionItem]:
    begins = {one for one in values if one.startswith(typed) and _ONE_WORD.fullmatch(one)}
    return [CompletionItem(one) for one in sorted(begins)]
