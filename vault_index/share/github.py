"""Questions to GitHub, by the user's own program `gh`, and only when somebody asks for it."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vault_index import git
from vault_index.errors import VaultError
from vault_index.share import remote
from vault_index.text.quote import clean, visible_line

if TYPE_CHECKING:
    from vault_index.vault import Vault

ORIGIN = "origin"
SECONDS = 60  # for an answer of `gh`
MAX_SAID = 200  # characters of an error
# names, issues that it closes, images
_ACTS = re.compile(r"(?i)@|(?:#|\bgh-|/issues/)(?=\d)|!(?=\[)")


def ask(host: str, path: str, *options: str) -> Any:
    """Return what an address of GitHub's API answers, as JSON values. Raises VaultError."""
    try:
        return json.loads(_run(["api", "--hostname", host, path, *options]))
    except (ValueError, RecursionError):
        raise VaultError(f"gh gives no JSON for {path}", "look at `gh auth status`") from None


def pages(host: str, path: str) -> list[Any]:
    """Return the members of a list that is answered in pages. Raises VaultError."""
    answered = ask(host, f"{path}?per_page=100", "--paginate", "--slurp")
    return [each for page in answered if isinstance(page, list) for each in page]


def open_draft(vault: Vault, branch: str, title: str, body: str) -> str:
    """Push a branch and open a draft pull request of it; return its address.

    Raises VaultError, also for a secret in what would be pushed.
    """
    remote.push(vault, git.top(vault.root), branch, ORIGIN, branch)
    options = ["--draft", "--head", branch, "--title", title, "--body", body]
    return _run(["pr", "create", *options], vault.root).strip()


def evidence(proposals: Sequence[Mapping[str, Any]]) -> str:
    """Return the text of a pull request: each proposal with what it rests on, as data."""
    blocks = []
    for each in proposals:
        said = [f"### {_plain(each['title'])}", _plain(each["why"])]
        said += [f"> {_plain(quote)}" for quote in each["quotes"]]
        blocks.append("\n\n".join(filter(None, said)))
    return "\n\n".join(blocks) + "\n"


def _plain(text: str) -> str:
    """Return a text in a line that calls nobody by name, closes no issue, and is no markup."""
    line = visible_line(" ".join(text.split()))
    return _ACTS.sub("\\g<0>\u200b", line).replace("<", "&lt;")


def _run(arguments: Sequence[str], folder: Path | None = None) -> str:
    try:
        done = subprocess.run(
            ["gh", *arguments],
            cwd=folder,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=SECONDS,
            check=False,
        )
    except FileNotFoundError:
        hint = "install gh and log in: gh auth login"
        raise VaultError("GitHub's program gh is not on the PATH", hint) from None
    except (OSError, subprocess.TimeoutExpired) as error:
        why = error.strerror if isinstance(error, OSError) else f"no answer in {SECONDS} seconds"
        raise VaultError(f"gh: {why}", "look at `gh auth status`") from None
    if done.returncode:
        said = " ".join(clean(done.stderr.decode("utf-8", "replace")).split())[:MAX_SAID]
        raise VaultError(f"gh: {said or 'it failed'}", "look at `gh auth status`")
    return done.stdout.decode("utf-8", "replace")
