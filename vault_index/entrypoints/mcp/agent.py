"""The folder in which a server's agent works, and the vault and project that it means."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from vault_index import api, client, files
from vault_index.errors import NoVaultError, VaultError
from vault_index.hotpath import index_files
from vault_index.journal.projects import EVERYWHERE


@dataclass(frozen=True, slots=True)
class ServedAgent:
    """The agent of a server: it works in `folder`, and `vault` is what `--vault` named.

    A `project` that a tool is asked for is the name of one in the journal or a folder in it.
    """

    folder: str
    vault: str | None = None

    @classmethod
    def here(cls, vault: str | None = None) -> ServedAgent:
        """Return the agent that started this process: Claude Code says where its project is."""
        named = os.environ.get("CLAUDE_PROJECT_DIR", "")
        folder = named if named and Path(named).is_dir() else str(Path.cwd())
        return cls(folder, vault)

    def ask(self, question: api.Question[api.Answer], project: str = "") -> api.Answer:
        """Ask the vault of a project, by default the agent's own; its watcher is started if need be.

        The watcher does not look through all files first: among 10,000 that takes ten times as long
        as the search, and it has noticed a save before an agent asks. Raises VaultError.
        """
        options = client.Options(start=True, as_is=True, fetch=False)
        return client.ask(self.root(project), question, options)

    def ask_journal(self, question: api.Question[api.Answer]) -> api.Answer:
        """Ask the journal, which is there without a vault. Raises VaultError."""
        folder = self._vault_root() or self.folder
        return client.ask(folder, question, client.Options(start=True, fetch=False))

    def root(self, project: str = "") -> str:
        """Return the root of the vault of a project, by default of the agent's. Raises NoVaultError."""
        if project:
            root = index_files.around(self._folder_of(project))
            if root is None:
                why = f"project {project!r} has no lesson vault"
                raise NoVaultError(why, "name another, or none")
            return root
        root = self._vault_root()
        if root is None:
            hint = "ask the user to make one with `lessons init`"
            raise NoVaultError(f"no lesson vault at or above {self.folder}", hint)
        return root

    def where(self, project: str = "") -> dict[str, str]:
        if not project:
            return {"project": "", "folder": self.folder}
        if _is_folder(project):
            return {"project": "", "folder": _full(project)}
        return {"project": project, "folder": ""}

    def _vault_root(self) -> str | None:
        try:
            return index_files.find(self.vault, self.folder, os.environ)
        except (ValueError, OSError) as error:
            why = f"the user's settings are not readable: {error}"
            raise VaultError(why, "run `lessons status --check`") from None

    def _folder_of(self, project: str) -> str:
        if _is_folder(project):
            return _full(project)
        if project == EVERYWHERE:
            raise VaultError("lessons are of one vault at a time", "name its project, or none")
        latest = self.ask_journal(api.journal.sessions(project=project, limit=1))
        if not latest or not latest[0].folder:
            raise NoVaultError(f"nobody knows the folder of {project!r}", "name it, or none")
        return latest[0].folder


def _full(folder: str) -> str:
    return str(files.expanded(folder).absolute())


def _is_folder(project: str) -> bool:
    return "/" in project or project in (".", "..", "~")
