"""Skills at a prompt: those that the project has are searched beside its lessons."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from vault_index.check.finding import Trouble, to_edit
from vault_index.index import skills as index
from vault_index.recall import select
from vault_index.search import floor
from vault_index.search.query import Query

if TYPE_CHECKING:
    from vault_index.search.hit import Hit
    from vault_index.vault import Vault


def suggested(
    vault: Vault, prompt: str, project: Path | None, given: Collection[str], text_only: bool
) -> list[Hit]:
    """Return trusted skills that a prompt asks for and that the session has not received."""
    k = vault.config.prompt_skills
    if not k:
        return []
    folder, wanted = str(project or ""), k + len(given)
    asked = Query(prompt, wanted, project=folder, text_only=text_only, for_agent=True)
    hits = floor.skills_above(vault, asked).hits
    trusted = select.only_trusted(vault, [hit for hit in hits if not hit.withheld])
    return [hit for hit in trusted if hit.lesson_id not in given][:k]


def skills(vault: Vault) -> Iterator[Trouble]:
    """Look for files that cannot be used."""
    for problem in index.problems(vault):
        what = f"{problem.path}:{problem.line}: {problem.message}"
        yield Trouble("skills", what, to_edit(Path(problem.path)))
