"""Which lessons hooks may inject, by the user's own settings: never by the vault's.

Everything is there for the command line; this is about what goes into an agent's context unasked.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from vault_index import git

if TYPE_CHECKING:
    from vault_index.hit import Hit
    from vault_index.vault import Vault

MORE = 16  # hits that are looked at beyond those wanted, as some may not be trusted


def is_restricted(vault: Vault) -> bool:
    """Tell whether the user trusts less than everything."""
    config = vault.config
    return bool(config.trust != "all" or config.trusted_authors or config.trusted_keys)


def only_trusted(vault: Vault, hits: Iterable[Hit]) -> list[Hit]:
    """Keep the hits that may be injected.

    `committed-only` takes out files that are not in HEAD as they are on disk. With authors or keys
    also those whose last commit is of nobody among them; who is in no repository is nobody.
    """
    found = list(hits)
    config = vault.config
    shared = [hit for hit in found if hit.kind == "lessons" or hit.type == "vault"]
    if (
        not is_restricted(vault) or not shared
    ):  # skills of the user and of a project are the agent's own
        return found
    paths = list(dict.fromkeys(hit.path for hit in shared))
    refused = git.uncommitted(vault.root, paths)  # nobody signed what is not committed
    if config.trusted_authors or config.trusted_keys:
        refused |= {path for path in paths if path not in refused and not _is_known(vault, path)}
    return [hit for hit in found if hit.path not in refused]


def _is_known(vault: Vault, path: str) -> bool:
    config = vault.config
    change = git.last_change(vault.root, path, signature=bool(config.trusted_keys))
    if change is None:
        return False
    key = _plain(change.key)
    if key and any(_plain(one) in (key, key[-16:]) for one in config.trusted_keys):
        return True
    known = {one.casefold() for one in config.trusted_authors}
    return bool(known & {change.name.casefold(), change.email.casefold()})


def _plain(fingerprint: str) -> str:
    return fingerprint.replace(" ", "").removeprefix("SHA256:").removeprefix("0x")
