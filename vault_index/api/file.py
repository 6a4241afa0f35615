"""Commands about a lesson file as a text: what an editor on a page reads, checks and saves."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from vault_index import api
from vault_index.api import codec
from vault_index.api.question import Caller, command
from vault_index.check import ERROR
from vault_index.edit import save

if TYPE_CHECKING:
    from vault_index.vault import Vault


@command
def read(vault: Vault, caller: Caller, path: str) -> str:
    """Return the text of a lesson file as it is, with line feeds only."""
    del caller
    return save.read(vault, path)


@command
def check(vault: Vault, caller: Caller, path: str, text: str) -> dict[str, Any]:
    """Check a text as `lessons check` would in a lesson file: `findings`, and how many are `errors`."""
    del vault
    known = caller.ask(api.lesson.count())["own"]
    findings = save.findings(path, text, known)
    return {
        "findings": codec.to_json(list(findings)),
        "errors": sum(finding.severity == ERROR for finding in findings),
    }


@command
def write(vault: Vault, caller: Caller, path: str, text: str, seen: str) -> str:
    """Write a lesson file that still says what was `seen`; return its absolute path: `save.write`."""
    del caller
    return str(save.write(vault, path, text, seen))


@command
def diff(vault: Vault, caller: Caller, path: str, seen: str) -> dict[str, Any]:
    """Return the `text` of a lesson file, and the `patch` lines to it from what was `seen`."""
    del caller
    text, lines = save.changes(vault, path, seen)
    return {"text": text, "patch": lines}
