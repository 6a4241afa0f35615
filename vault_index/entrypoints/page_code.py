"""The code that the command line hands to its user's browser, in the address of a page.

Everybody on the machine can read in the list of processes what a browser is started with, so it is no
key: a page exchanges it, once, and at a server of ours alone, which has the token that signed it.
"""

from __future__ import annotations

import hmac
import secrets
import time

from vault_index.hotpath import clock

CODE_SECONDS = 120.0  # from the command line to the page


def new_code(token: str, address: str) -> str:
    """Return a code for the pages of the server at an address."""
    stem = f"{int(time.time())}-{secrets.token_hex(8)}"
    return f"{stem}-{_signed(stem, token, address)}"


def is_good_code(code: str, token: str, address: str) -> bool:
    """Whether a code is for the pages of a server, and new."""
    stem, _, signed = code.rpartition("-")
    is_ours = hmac.compare_digest(signed.encode(), _signed(stem, token, address).encode())
    return is_ours and clock.is_near(int(stem.partition("-")[0]), CODE_SECONDS)


def _signed(stem: str, token: str, address: str) -> str:
    return hmac.new(token.encode(), f"page {address} {stem}".encode(), "sha256").hexdigest()
