"""Vaults that pages show: of a user with a home of its own, without a model."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.support.commands import Ran, run
from tests.support.files import write
from tests.support.homes import at_home, make_home
from vault_index.edit import init
from vault_index.journal.record import private_id
from vault_index.proposals import draft, review
from vault_index.vault import Vault, open_vault

TEXT_ONLY = {"LESSONS_EMBEDDER": "none"}
HOSTILE = '<img src=x onerror="document.title=1"><script>document.title=2</script>'


@dataclass(frozen=True)
class ShownVault:
    """A vault with the home of its user."""

    root: Path
    home: Path

    @property
    def env(self) -> dict[str, str]:
        """The environment of its user's commands."""
        return {**at_home(self.home), "HOME": str(self.home), **TEXT_ONLY}

    @property
    def vault(self) -> Vault:
        return open_vault(self.root, environ=self.env)

    def run(self, *words: str, stdin: str = "") -> Ran:
        """Run `lessons` in it."""
        return run("lessons", *words, cwd=self.root, stdin=stdin, env=self.env)

    def propose(self, title: str, text: str, **more: object) -> str:
        """Propose what a session taught; return its id."""
        given: dict[str, Any] = {"category_path": "ops", "session": private_id("b7c1"), **more}
        proposed = review.propose(self.vault, draft.create(title, text, **given))
        assert proposed["status"] == review.WAITING, proposed["status"]
        return str(proposed["id"])


def shown_vault(folder: Path, files: Mapping[str, str]) -> ShownVault:
    """Make a vault in a new folder, with a home beside it."""
    root = folder / "team"
    home = make_home(folder / "home")
    init(root)
    for path, content in files.items():
        write(root / "lessons" / path, content)
    return ShownVault(root, home)
