"""`lessons journal`: a group of commands, a module each, imported when they are called."""

from __future__ import annotations

import importlib

import click

from vault_index.entrypoints.cli import output

COMMANDS = "search timeline show sessions import status forget".split()
_MODULES = {"import": "import_"}
_PAGED = "search timeline show sessions status".split()


class _Group(click.Group):
    """The commands of the journal; a call imports no other than its own."""

    def list_commands(self, _ctx: click.Context) -> list[str]:
        """Return the names of the commands, the most used first."""
        return COMMANDS

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        """Return a command, imported now."""
        if name not in self.list_commands(ctx):
            return None
        if name not in self.commands:
            module = importlib.import_module(f"{__name__}.{_MODULES.get(name, name)}")
            command: click.Command = module.command
            if name in _PAGED and command.callback:
                command.callback = output.paged()(command.callback)
            self.commands[name] = command
        return self.commands[name]


@click.group(
    "journal", cls=_Group, epilog='Example: lessons journal search "what did we decide on retries"'
)
def command() -> None:
    """Find again what was asked, done and decided here.

    The journal is the private memory of your sessions with coding agents, in ~/.lessons/journal on
    this machine. It is never committed and costs no tokens. Begin with `lessons journal import`; to
    go on by itself: `lessons install claude --journal`.
    """
