"""The key of the pages: from the command line into its user's browser, good while this server runs.

    lessons open   opens  /#once=CODE   a code is good once, for two minutes: see `page_code`
    page.js   POST /page/key {"code": CODE}  ->  {"key": KEY}, which the browser keeps

The token never enters the browser. A code that comes a second time takes back the key that it was
exchanged for.
"""

from __future__ import annotations

import hashlib
import secrets
from typing import Annotated

from fastapi import APIRouter, Body, Request

from vault_index.entrypoints import page_code
from vault_index.entrypoints.web.refusal import Refusal

EXCHANGE = "/page/key"
TAKEN_BACK = b"-"  # no hash
_OPEN = "open the page from a terminal: lessons open"

routes = APIRouter(include_in_schema=False)


class PageKeys:
    """The keys of the pages of a server at an address, which has the token."""

    def __init__(self, token: str, address: str) -> None:
        self._signed_for = (token, address)
        self._keys: dict[str, bytes] = {}  # a code that was used -> the hash of its key

    def exchange(self, code: str, key: str) -> str:
        """Return the key for a code; `key` is the one that the page has already, or "".

        Raises Refusal, and takes the key back, where another page exchanged the code before.
        """
        if code not in self._keys:
            if not page_code.is_good_code(code, *self._signed_for):
                raise Refusal(403, "the key of this address is too old", _OPEN)
            new_key = secrets.token_urlsafe(32)
            self._keys[code] = _hash(new_key)
            return new_key
        if self._keys[code] == _hash(key):  # opened again by its page
            return key
        self._keys[code] = TAKEN_BACK
        why = "this address was opened before, so the key that it was good for is taken back"
        raise Refusal(403, why, _OPEN)

    def accepts(self, secret: str) -> bool:
        return _hash(secret) in self._keys.values()


@routes.post(EXCHANGE)
async def exchange(
    request: Request, code: Annotated[str, Body(embed=True, max_length=100)]
) -> dict[str, str]:
    """Exchange a code, as it was in the address, for a key. Raises Refusal."""
    given = request.headers.get("authorization", "").removeprefix("Bearer ").strip()
    return {"key": request.app.state.keys.exchange(code, given)}


def _hash(secret: str) -> bytes:
    return hashlib.sha256(secret.encode("utf-8", "replace")).digest()
