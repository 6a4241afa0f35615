"""`lessons skills`: a group of commands, a module each, imported when they are called."""

from __future__ import annotations

import importlib

import click

from vault_index.entrypoints.cli import output

COMMANDS = "candidates build".split()
_PAGED = ("candidates",)


class _Group(click.Group):
    """The commands for built skills; a call imports no other than its own."""

    def list_commands(self, _ctx: click.Context) -> list[str]:
        """Return the names of the commands."""
        return COMMANDS

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        """Return a command, imported now."""
        if name not in self.list_commands(ctx):
            return None
        if name not in self.commands:
            command: click.Command = importlib.import_module(f"{__name__}.{name}").command
            if name in _PAGED and command.callback:
                command.callback = output.paged()(command.callback)
            self.commands[name] = command
        return self.commands[name]


@click.group("skills", cls=_Group, epilog="Example: lessons skills build --dry-run")
def command() -> None:
    """Build skills from what many accepted lessons say.

    A tag becomes a skill when enough lessons of type code_pattern have it, people are sure of them and
    agents were given them: see [skills] in the settings. `lessons check` says which skill is behind.
    """
