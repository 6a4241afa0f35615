"""Completion for a shell: ids, categories, tags, types. No table is opened for it.

The names come from a repository that anyone may have written, and bash puts what is completed into the
line as it is. So a name that a shell would read as more than one word is not offered.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

    from vault_index.retrieval.hit import Entry
    from vault_index.vault import Vault

_ONE_WORD = re.compile(r"(?!-)[\w./#+@%,-]+")


def ids(ctx: click.Context, _parameter: click.Parameter, typed: str) -> list[CompletionItem]:
    """Complete the id of a lesson or, where none begins so, the end of one; else a path."""
    from click.shell_completion import CompletionItem

    every_id = _quietly(_ids, ctx)
    ends = Counter(re.split(r"[/#]", id)[-1] for id in every_id)
    unique = (end for end, count in ends.items() if count == 1)  # which means one lesson
    return _items(every_id, typed) or _items(unique, typed) or [CompletionItem(typed, type="file")]


def types(_ctx: click.Context, _parameter: click.Parameter, typed: str) -> list[CompletionItem]:
    """Complete a type of lessons."""
    from vault_index.lesson.parse import TYPES

    return _items(TYPES, typed)


def _completion_of(read: Callable[[Vault], Iterable[str]]) -> Callable[..., list[CompletionItem]]:
    return lambda ctx, _parameter, typed: _items(_quietly(read, ctx), typed)


@_completion_of
def proposals(vault: Vault) -> list[str]:
    """Complete the id of a proposal that waits."""
    from vault_index.proposals import store

    return store.ids(store.folder_of(vault))


@_completion_of
def categories(vault: Vault) -> Iterator[str]:
    """Complete a category that lessons have or the settings name, or one above it."""
    from vault_index.lesson.category import UNCATEGORIZED, from_folder, is_category, prefixes

    folders = (from_folder(file.path) for file in vault.files()[0])
    from_folders = {folder for folder in folders if folder and is_category(folder)}
    from_folders |= {category for lesson in _listed(vault) for category in lesson.categories}
    config = vault.config
    for category in {*from_folders, *config.taxonomy, *config.keywords.values()} - {UNCATEGORIZED}:
        yield from prefixes(category)


@_completion_of
def tags(vault: Vault) -> Iterator[str]:
    """Complete a tag that a lesson has."""
    for lesson in _listed(vault):
        yield from lesson.tags


def _ids(vault: Vault) -> list[str]:
    from vault_index.lesson import parse

    listed = _listed(vault)
    paths = {lesson.path.partition("/")[2] for lesson in listed}
    saved = [parse.id_of(file.path) for file in vault.files()[0] if file.path not in paths]
    return [*(lesson.id for lesson in listed), *saved]


def _listed(vault: Vault) -> list[Entry]:
    from vault_index.errors import VaultError
    from vault_index.retrieval import entries

    try:
        return entries.entries(vault)
    except VaultError:
        return []


def _quietly(read: Callable[[Vault], Iterable[str]], ctx: click.Context) -> list[str]:
    """Read names of the vault that the line names; none where something is wrong, and no message."""
    from vault_index.vault import open_vault

    try:
        return list(read(open_vault(ctx.find_root().params.get("vault"))))
    except Exception:  # noqa: BLE001  # the line that somebody types stays as it is
        return []


def _items(values: Iterable[str], typed: str) -> list[CompletionItem]:
    from click.shell_completion import CompletionItem

    begins = {value for value in values if value.startswith(typed) and _ONE_WORD.fullmatch(value)}
    return [CompletionItem(value) for value in sorted(begins)]
