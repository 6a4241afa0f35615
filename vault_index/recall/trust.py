"""Which lessons hooks may inject, by the user's own settings: never by the vault's.

Everything is there for the command line; this is about what goes into an agent's context unasked.
"""

from __future__ import annotations

from collections.abc import Iterable, Set
from typing import TYPE_CHECKING

from vault_index import git
from vault_index.lesson import file

if TYPE_CHECKING:
    from vault_index.search.hit import Hit
    from vault_index.vault import Vault

EXTRA_HITS = 16  # hits that are looked at beyond those wanted, as some may not be trusted


def is_restricted(vault: Vault) -> bool:
    """Whether the user trusts less than everything."""
    config = vault.config
    return bool(config.trust != "all" or config.trusted_authors or config.trusted_keys)


def only_trusted(vault: Vault, hits: Iterable[Hit]) -> list[Hit]:
    """Keep the hits that may be injected.

    With `committed-only` those whose text was read from a file as HEAD has it. With authors or keys
    those whose text was read from the file as somebody among them wrote and committed it last;
    outside a repository nobody did. The disk is not asked: what is injected is the row.
    """
    kept = list(hits)
    # skills of the user and of a project are the agent's own
    shared = [hit for hit in kept if hit.kind == "lessons" or hit.type == "vault"]
    trusted = trusted_files(vault, {(hit.path, hit.file_hash) for hit in shared})
    refused = {id(hit) for hit in shared if (hit.path, hit.file_hash) not in trusted}
    return [hit for hit in kept if id(hit) not in refused]


def trusted_files(vault: Vault, files: Set[tuple[str, str]]) -> Set[tuple[str, str]]:
    """Return the files, as (path, hash of what was read), whose text may go to an agent."""
    if not is_restricted(vault) or not files:
        return files
    paths = sorted({path for path, _ in files})
    if vault.config.trusted_authors or vault.config.trusted_keys:
        authors = {path: _author(vault, path) for path in paths}
        places = {
            path: (voucher.commit, voucher.path) for path, voucher in authors.items() if voucher
        }
        root = git.top(vault.root) if places else vault.root
    else:
        places, root = {path: ("HEAD", path) for path in paths}, vault.root
    hashes = {
        path: {file.hash_of_file(data) for data in (blob, blob.replace(b"\n", b"\r\n"))}
        for path, blob in git.contents(root, places).items()
    }  # git may have checked a file out with other line ends
    return {(path, hash) for path, hash in files if hash in hashes.get(path, ())}


def _author(vault: Vault, path: str) -> git.Voucher | None:
    """Return the commit that a file's text is from, if we trust that and all that renamed it since."""
    vouchers = git.vouchers(vault.root, path, signature=bool(vault.config.trusted_keys))
    return (
        vouchers[-1]
        if vouchers and all(_is_trusted(vault, voucher) for voucher in vouchers)
        else None
    )


def _is_trusted(vault: Vault, voucher: git.Voucher) -> bool:
    config = vault.config
    key = _plain(voucher.key)
    if key and any(_plain(trusted) in (key, key[-16:]) for trusted in config.trusted_keys):
        return True
    trusted = {author.casefold() for author in config.trusted_authors}
    people = (voucher.author, voucher.committer)
    return all(trusted & {name.casefold(), email.casefold()} for name, email in people)


def _plain(fingerprint: str) -> str:
    return fingerprint.replace(" ", "").removeprefix("SHA256:").removeprefix("0x")
