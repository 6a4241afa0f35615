"""The vault as its settings are now, opened and warm, and what shows that it changed."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable
from pathlib import Path

import vault_index
from vault_index import files
from vault_index.embed import download, fetching
from vault_index.errors import VaultError
from vault_index.hotpath import locate
from vault_index.index import skills
from vault_index.vault import open_vault
from vault_index.watch import warming


class CurrentVault:
    """The loop opens `vault` again when settings change; questions read it in their threads.

    `unusable` is why the settings as they are now are not in force.
    """

    def __init__(self, root: Path, say: Callable[[str], None]) -> None:
        self.root = root
        self.vault = open_vault(root)
        self.unusable: VaultError | None = None
        self._say = say
        self._settings = self._stamp_settings()
        self._warn()

    def warm_up(self, first: Callable[[], object]) -> None:
        """Do something first, while the model loads; then load the tables if there is an index."""
        with contextlib.suppress(VaultError):
            warming.warm_up(self.vault, first)

    def reopen(self) -> None:
        """Open the vault with the settings as they are now; those of before stay if they are broken."""
        self._settings = self._stamp_settings()
        try:
            opened = open_vault(self.root)
        except VaultError as error:
            self.unusable = error
            self._say(f"error: {error.message}")
            return
        self.unusable = None
        with contextlib.suppress(VaultError):  # a server that embeds may be away
            if opened.config == self.vault.config and self.vault.embedder is not None:
                return
            warming.warm_up(opened)
        self.vault = opened
        self._warn()

    def _warn(self) -> None:
        for line in self.vault.config.warnings():
            self._say(line)

    def settings_changed(self) -> bool:
        """Whether a settings file is not the one that was read."""
        return self._stamp_settings() != self._settings

    def model_came(self) -> bool:
        """Whether the built-in model is on disk, but was not when the vault was opened."""
        return self._lacks_model() and download.is_ready(self.vault.config.home)

    def model_is_due(self) -> bool:
        """Whether the built-in model is missing and may be fetched now."""
        return self._lacks_model() and fetching.is_due(self.vault.config)

    def skills_changed(self) -> bool:
        """Whether a SKILL.md was saved: they are few, so comparing all of them will do."""
        with contextlib.suppress(VaultError):
            return skills.differ(self.vault, self.vault.open_index().known_skills)
        return False

    def _lacks_model(self) -> bool:
        return self.vault.config.embedder == "minilm" and self.vault.embedder is None

    def _stamp_settings(self) -> object:
        home = locate.home_folder(os.environ)
        places = self.root / locate.FOLDER / locate.SETTINGS, Path(home) / "config.toml"
        return [stamp(place) for place in places]


def stamp(file: Path) -> tuple[int, ...]:
    """Return a value that differs after any change of a file; () without the file."""
    try:
        return files.stamp_of(file.stat())
    except OSError:
        return ()


def stamp_package() -> list[tuple[str, tuple[int, ...]]]:
    """Return what an upgrade of this package changes: sizes and mtimes. A backup sets ctimes."""
    folder = Path(vault_index.__file__).parent
    return sorted((str(file), stamp(file)[:2]) for file in folder.rglob("*.py"))
