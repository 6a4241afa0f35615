"""Commands about a lesson file as a text: what an editor on a page reads, checks and saves."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vault_index import api
from vault_index.api.question import Caller, command
from vault_index.edit import save

if TYPE_CHECKING:
    from vault_index.check.finding import Finding
    from vault_index.vault import Vault


@command
def read(vault: Vault, caller: Caller, path: str) -> str:
    """Return the text of a lesson file as it is, with line feeds only."""
    del caller
    return save.read(vault, path)


@command
def check(vault: Vault, caller: Caller, path: str, text: str) -> list[Finding]:
    """Check a text as `lessons check` would in a lesson file."""
    del vault
    return save.findings(path, text, caller.ask(api.lesson.count())["own"])


@command
def write(vault: Vault, caller: Caller, path: str, text: str, seen: str) -> str:
    """Write a lesson file that still says what was `seen`; return its absolute path: `save.write`."""
    del caller
    return str(save.write(vault, path, text, seen))


@command
def diff(vault: Vault, caller: Caller, path: str, seen: str) -> tuple[str, list[str]]:
    """Return the text of a lesson file, and the lines of a patch to it from what was `seen`."""
    del caller
    return save.changes(vault, path, seen)
