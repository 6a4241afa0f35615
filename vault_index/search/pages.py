"""A search page by page. A cursor says where the next page begins, in this search of this index."""

from __future__ import annotations

import base64
import json
from dataclasses import replace
from typing import TYPE_CHECKING

from vault_index.errors import VaultError
from vault_index.lesson.digest import hash_of
from vault_index.search import query
from vault_index.search.query import Results

if TYPE_CHECKING:
    from vault_index.search.options import Query
    from vault_index.vault import Vault

MAX_CURSOR_CHARS = 200
_AGAIN = "begin again with the first page, without a cursor"
_DIGITS = 12  # of a hash: enough to tell two searches apart


def page(vault: Vault, asked: Query, cursor: str = "") -> tuple[Results, str]:
    """Return `asked.k` lessons from where a cursor says, and the cursor of the next page, "" at the end.

    Raises VaultError for a cursor of another search, or of an index that has changed since.
    """
    search = hash_of(json.dumps(asked.to_json(), sort_keys=True))[:_DIGITS]
    version = hash_of(vault.open_index().store.version())[:_DIGITS]
    start = _start(cursor, search, version) if cursor else 0
    results = query.run(vault, replace(asked, offset=start))
    following = json.dumps([start + asked.k, search, version]).encode()
    return results, base64.urlsafe_b64encode(following).decode() if results.has_more else ""


def _start(cursor: str, search: str, version: str) -> int:
    try:
        decoded = json.loads(base64.b64decode(cursor[:MAX_CURSOR_CHARS], b"-_", validate=True))
        start, of_search, of_version = decoded
        start = start if type(start) is int and 0 < start < 2**31 else 0
    except (ValueError, TypeError):
        raise VaultError("that is no cursor of a search", _AGAIN) from None
    if of_search != search or not start:
        hint = "give the search, limit and filters of the first page, or no cursor"
        raise VaultError("the cursor is of another search", hint)
    if of_version != version:
        raise VaultError("the lessons have changed since that page", _AGAIN)
    return start
