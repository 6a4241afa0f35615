"""Write accepted categories into lesson files."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from vault_index import files
from vault_index.edit import update
from vault_index.errors import ChangedError, VaultError, WriteError
from vault_index.index.classifier import MAX_CATEGORIES, ProbableCategories
from vault_index.lesson import edits
from vault_index.lesson.category import UNCATEGORIZED, CategoryPath
from vault_index.lesson.file import hash_of_file
from vault_index.vault import Vault


def write(
    vault: Vault, proposals: Iterable[ProbableCategories], *, preview: bool = False
) -> tuple[dict[str, list[CategoryPath]], list[str]]:
    """Write proposals into the frontmatter of their files; return the categories of each changed file.

    Also return why others are left as they are: they have categories by now, cannot be edited or
    read, were saved meanwhile, or are in a repository of their own. A `preview` writes nothing. Raises
    WriteError.
    """
    by_path: dict[str, list[ProbableCategories]] = {}
    for proposal in proposals:
        if proposal.categories != (UNCATEGORIZED,):
            by_path.setdefault(proposal.path, []).append(proposal)
    written: dict[str, list[CategoryPath]] = {}
    failed: list[str] = []
    for path, several in sorted(by_path.items()):
        try:
            before, after = _filed_under(vault, path, several)
            if not preview:
                files.change_file(vault.root / path, after, expected=before, within=vault.root)
            categories = (category for proposal in several for category in proposal.categories)
            written[path] = list(dict.fromkeys(categories))
        except VaultError as error:
            if isinstance(error, WriteError) and not isinstance(error, ChangedError):
                if written:
                    error.message += f"; written before that: {', '.join(written)}"
                raise
            failed.append(error.message)
    return written, failed


def _filed_under(
    vault: Vault, path: str, proposals: Sequence[ProbableCategories]
) -> tuple[bytes, bytes]:
    """Return a file as it is and with the proposals in it. Raises VaultError for why not."""
    file = vault.root / path
    before = after = files.read_file(file)
    metadata = edits.keys_of(before, path)
    for key in ("categories", "category"):
        if metadata.get(key):
            raise VaultError(f"{path} has {key} already: {metadata[key]!r:.60}")
    hashes = {proposal.file_hash for proposal in proposals}
    if any(hash and hash != hash_of_file(before) for hash in hashes):
        raise ChangedError(
            f"{path} changed since this was proposed", "run `lessons categories propose` again"
        )
    files.refuse_other_repository(file.parent, vault.lessons_dir)
    for proposal in proposals:
        slug = proposal.lesson_id.partition("#")[2]
        keys = {"categories": list(proposal.categories[:MAX_CATEGORIES])}
        after = update.with_keys(after, slug, keys, path)
    return before, after
