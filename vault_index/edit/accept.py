"""Write accepted categories into lesson files."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable
from typing import TYPE_CHECKING

from vault_index import files
from vault_index.errors import ChangedError, VaultError, WriteError
from vault_index.index.classifier import MAX_CATEGORIES, Proposal
from vault_index.lesson import edits
from vault_index.lesson.category import UNCATEGORIZED, CategoryPath
from vault_index.lesson.file import hash_of_file

if TYPE_CHECKING:
    from vault_index.vault import Vault


def write(vault: Vault, proposals: Iterable[Proposal]) -> tuple[list[str], list[str]]:
    """Write proposals into the frontmatter of their files; return the paths of those changed.

    Also return why others are left as they are: they have categories by now, cannot be edited or
    read, were saved meanwhile, or are in a repository of their own. A file of several lessons has
    one frontmatter, which gets the categories that most of them were given. Raises WriteError.
    """
    given, failed = _change_files(vault, proposals, write=True)
    return list(given), failed


def preview(
    vault: Vault, proposals: Iterable[Proposal]
) -> tuple[dict[str, list[CategoryPath]], list[str]]:
    """Return what `write` would give to each file, and why it would leave others as they are."""
    return _change_files(vault, proposals, write=False)


def _change_files(
    vault: Vault, proposals: Iterable[Proposal], *, write: bool
) -> tuple[dict[str, list[CategoryPath]], list[str]]:
    by_path: dict[str, list[Proposal]] = {}
    for proposal in proposals:
        if proposal.categories != (UNCATEGORIZED,):
            by_path.setdefault(proposal.path, []).append(proposal)
    written: dict[str, list[CategoryPath]] = {}
    failed: list[str] = []
    for path, several in sorted(by_path.items()):
        given = Counter(category for proposal in several for category in proposal.categories)
        chosen = [category for category, _ in given.most_common(MAX_CATEGORIES)]
        try:
            before, after = _filed_under(
                vault, path, chosen, {proposal.file_hash for proposal in several}
            )
            if write:
                files.change_file(vault.root / path, after, expected=before, within=vault.root)
            written[path] = chosen
        except ChangedError as error:
            failed.append(error.message)
        except WriteError as error:
            if written:
                error.message += f"; written before that: {', '.join(written)}"
            raise
        except VaultError as error:
            failed.append(error.message)
    return written, failed


def _filed_under(
    vault: Vault, path: str, chosen: list[CategoryPath], hashes: Collection[str]
) -> tuple[bytes, bytes]:
    """Return a file as it is and with categories in its frontmatter. Raises VaultError for why not.

    `hashes` are those of the file as it was when they were proposed.
    """
    file = vault.root / path
    before = files.read_file(file)
    metadata = edits.keys_of(before, path)
    for key in ("categories", "category"):
        if metadata.get(key):
            raise VaultError(f"{path} has {key} already: {metadata[key]!r:.60}")
    if any(hash and hash != hash_of_file(before) for hash in hashes):
        raise ChangedError(
            f"{path} changed since this was proposed", "run `lessons classify` again"
        )
    files.refuse_other_repository(file.parent, vault.lessons_dir)
    return before, edits.set_keys(before, {"categories": chosen}, path)
