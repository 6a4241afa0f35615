"""The key of the pages: from the command line into its user's browser, good while this server runs.

    lessons serve --open   opens  /#once=CODE   a code is good once, for two minutes
    page.js   POST /page/key {"code": CODE}  ->  {"key": KEY}, which the browser keeps

The token never enters the browser. What a browser is started with can be read in the list of
processes, by everybody on the machine: so the address holds no key, and a code that comes a second
time takes back the key that it was exchanged for. The fragment of an address is in no request.

Where this server runs already, `lessons serve --open` asks it for a code. It first has it prove that it
has the token, as any program could listen on that port.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import secrets
import time
from contextlib import suppress
from dataclasses import dataclass
from http.client import HTTPConnection, HTTPException
from typing import Annotated, Any
from urllib.parse import urlsplit

from fastapi import APIRouter, Query, Request
from pydantic import BaseModel, Field

from vault_index.entrypoints.guard import Scope
from vault_index.entrypoints.web.refusal import Refusal
from vault_index.errors import VaultError

EXCHANGE, NEW_CODE, PROOF = "/page/key", "/page/code", "/page/proof"
CODE_SECONDS = 120.0  # from the command line to the page
MAX_CODES = 1000  # the oldest goes, and its key
ANSWER_SECONDS = 5.0  # for a server that may be another program
_OPEN = "open the page from a terminal: lessons serve --open"

routes = APIRouter(include_in_schema=False)


@dataclass(slots=True)
class _Code:
    until: float
    key: bytes = b""  # the hash of the key that it was exchanged for


class PageKeys:
    """The codes and keys of one server, as hashes; `root` is the folder of its vault."""

    def __init__(self, token: str, root: str) -> None:
        self.root = root
        self._token = token
        self._codes: dict[bytes, _Code] = {}
        self._keys: set[bytes] = set()

    def new_code(self) -> str:
        """Return a code that a page can exchange for a key."""
        code = secrets.token_urlsafe(24)
        self._codes[_hash(code)] = _Code(time.monotonic() + CODE_SECONDS)
        while len(self._codes) > MAX_CODES:
            oldest = self._codes.pop(next(iter(self._codes)))
            self._keys.discard(oldest.key)
        return code

    def exchange(self, code: str, key: str) -> str:
        """Return the key for a code; `key` is the one that the page has already, or "".

        Raises Refusal, and takes the key back, where another page exchanged the code before.
        """
        entry = self._codes.get(_hash(code))
        if entry is None or (not entry.key and time.monotonic() > entry.until):
            raise Refusal(403, "the key of this address is too old", _OPEN)
        if not entry.key:
            made = secrets.token_urlsafe(32)
            entry.key = _hash(made)
            self._keys.add(entry.key)
            return made
        if key and entry.key == _hash(key) and entry.key in self._keys:  # opened again by its page
            return key
        self._keys.discard(entry.key)
        raise Refusal(
            403,
            "this address was opened before, so the key that it was good for is taken back",
            _OPEN,
        )

    def accepts(self, scope: Scope, secret: str) -> bool:
        """Whether a request may come with a key: any that does not ask for another key."""
        return scope["path"] != NEW_CODE and _hash(secret) in self._keys

    def prove(self, nonce: str, host: str, port: int) -> str:
        """Return what only a holder of the token knows; another address has another proof."""
        return _proof(self._token, nonce, host, port)


class ExchangeBody(BaseModel):
    """A code, as it was in the address."""

    code: Annotated[str, Field(max_length=100)]


@routes.post(EXCHANGE)
async def exchange(request: Request, body: ExchangeBody) -> dict[str, str]:
    """Exchange a code for a key. Raises Refusal."""
    given = request.headers.get("authorization", "").removeprefix("Bearer ").strip()
    return {"key": _keys_of(request).exchange(body.code, given)}


@routes.post(NEW_CODE)
async def new_code(request: Request) -> dict[str, str]:
    """Return a new code, and the folder of the vault: for whoever has the token."""
    keys = _keys_of(request)
    return {"code": keys.new_code(), "root": keys.root}


@routes.get(PROOF)
async def prove(
    request: Request, nonce: Annotated[str, Query(pattern="^[0-9a-f]{32,64}$")]
) -> dict[str, str]:
    """Prove that this server has the token of its user."""
    host, port = request.scope["server"]
    return {"proof": _keys_of(request).prove(nonce, host, port)}


def ask_running(address: str, token: str, root: str) -> str:
    """Return a code of our own server at an address; "" where no such server is.

    Raises VaultError where it serves another vault.
    """
    nonce = secrets.token_hex(16)
    parts = urlsplit(address)
    expected = _proof(token, nonce, parts.hostname or "", parts.port or 80)
    proof = str(_asked(address, "GET", f"{PROOF}?nonce={nonce}").get("proof", ""))
    if not hmac.compare_digest(proof.encode(), expected.encode()):
        return ""
    answer = _asked(address, "POST", NEW_CODE, token)
    if answer.get("root") != root:
        raise VaultError(f"{address} serves {answer.get('root')}", "choose another --port")
    return str(answer["code"])


def _asked(address: str, method: str, path: str, token: str = "") -> dict[str, Any]:
    """Return the JSON object that a server of this machine answers; {} without."""
    parts = urlsplit(address)
    line = HTTPConnection(parts.hostname or "", parts.port or 80, timeout=ANSWER_SECONDS)
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    with suppress(OSError, HTTPException, ValueError):
        try:
            line.request(method, path, headers=headers)
            answer = line.getresponse()
            said = json.loads(answer.read(10_000)) if answer.status == 200 else {}
            return said if isinstance(said, dict) else {}
        finally:
            line.close()
    return {}


def _keys_of(request: Request) -> PageKeys:
    keys: PageKeys = request.app.state.keys
    return keys


def _hash(secret: str) -> bytes:
    return hashlib.sha256(secret.encode("utf-8", "replace")).digest()


def _proof(token: str, nonce: str, host: str, port: int) -> str:
    text = f"the page of lessons serve, {host}, {port}, {nonce}"
    return hmac.new(token.encode(), text.encode(), "sha256").hexdigest()
