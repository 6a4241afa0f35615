"""An agent that can be wired up: where it keeps its hooks, and who writes them there."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from vault_index.entrypoints.agents.hook_settings import ALWAYS
from vault_index.errors import SettingsError


class Wiring(Protocol):
    """Our hooks in a file of an agent's settings."""

    def events(self, when: str = ALWAYS) -> list[str]:
        """Return the events at which it runs a hook."""

    def install(self, settings: Path, home: Path, command: str, wanted: Sequence[str] = ()) -> bool:
        """Write our hooks. False if they are there already. Raises SettingsError."""

    def uninstall(self, settings: Path, home: Path) -> bool:
        """Remove our hooks. False if none is there. Raises SettingsError."""

    def commands(self, settings: Path) -> dict[str, str]:
        """Return the program that runs, by event. Raises SettingsError."""


@dataclass(frozen=True)
class Agent:
    """An agent by the name that is typed."""

    name: str
    wiring: Wiring
    file: str  # in a project, and in the user's home
    variable: str = ""  # names the user's own folder of the agent
    own: str = ""  # the file in the user's home, if it is another one
    to_do: str = ""  # left to the user after `install`

    def place(self, project: Path | None) -> Path:
        """Return the file in a project; without one the user's own."""
        if project is not None:
            return project / self.file
        folder, _, file = (self.own or self.file).partition("/")
        named = os.environ.get(self.variable) if self.variable else ""
        return (Path(named) if named else Path.home() / folder) / file

    def runs_hooks(self, place: Path) -> bool:
        """Whether a file runs our hook on prompts."""
        return self.wiring.events()[0] in self.events_in(place)

    def events_in(self, place: Path) -> set[str]:
        """Return the events at which a file runs our hook; none of a file that cannot be read."""
        try:
            return set(self.wiring.commands(place))
        except SettingsError:
            return set()
