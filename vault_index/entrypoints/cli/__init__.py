"""The command line. Every command calls one verb and renders what it gives.

Only click and the standard library load here; verbs load inside the commands, so that `--help`
answers in under a tenth of a second.
"""

from __future__ import annotations

import atexit
import gc
import importlib
import os
import sys
import threading
from contextlib import suppress
from pathlib import Path
from typing import Any

import click

import vault_index
from vault_index.entrypoints.cli import output
from vault_index.errors import VaultError

# More would be no quicker here, and spin for 20 ms after each product on a core others need: with
# one the watcher's answer takes a third of the processor time. Before numpy is loaded.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
# What a command leaves behind needs no search for circles: that takes 10 ms after a list.
atexit.register(gc.freeze)


# as in the README
SECTIONS = {
    "Lessons": "add list show edit rm last teach log stale confirm import",
    "Search": "search ask recall eval",
    "Journal": "journal",
    "Proposals": "learn remember review proposals accept reject",
    "Skills": "skills",
    "Organise": "categories mv classify",
    "Share": "check sync",
    "Agent": "install uninstall hook mcp serve",
    "Vault": "init status doctor config index watch model",
}
HIDDEN = ["merge-driver"]
# command -> the module that has it; the others have a module of their name
HOMES = {
    command: module
    for module, commands in {
        "install": "uninstall hook",
        "lessons": "add list show edit rm last teach log stale confirm",
        "organise": "import categories mv classify",
        "proposals": "learn remember review accept reject",
        "search": "ask recall eval",
        "servers": "mcp serve",
        "sharing": "sync check merge-driver",
        "vault": "init status doctor config index watch model",
    }.items()
    for command in commands.split()
}
_WHOLE = 1000  # characters of a summary: it goes on in the next line rather than being cut off


class _Group(click.Group):
    """Commands, a module each, that end in one line on stderr and exit 1 when a verb raises."""

    def list_commands(self, _ctx: click.Context) -> list[str]:
        """Return the names of all commands, as they follow each other in the sections."""
        return " ".join(SECTIONS.values()).split() + HIDDEN

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        """Return a command; its module is imported now, since a call needs no other."""
        if name not in self.list_commands(ctx):
            return None
        module = importlib.import_module(f"{__name__}.{HOMES.get(name, name)}")
        own = f"{name.replace('-', '_')}_command"  # of a module with several commands
        command = getattr(module, own, None) or module.command
        if not isinstance(command, click.Command):
            raise TypeError(name)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the commands in sections, each with the whole first sentence of its help."""
        width = max(len(name) for names in SECTIONS.values() for name in names.split())
        for section, names in SECTIONS.items():
            with formatter.section(section):
                shown = ((name, self.get_command(ctx, name)) for name in names.split())
                rows = [
                    (f"{name:<{width}}", command.get_short_help_str(_WHOLE))
                    for name, command in shown
                    if command
                ]
                formatter.write_dl(rows)

    def main(self, *args: Any, **extra: Any) -> Any:
        """Run a command; what click says of wrong arguments is printed as all else is."""
        try:
            ended = super().main(*args, **{**extra, "standalone_mode": False})
        except click.ClickException as error:
            output.usage(error)
            sys.exit(error.exit_code)
        except click.Abort:
            output.say("Aborted!", err=True)
            sys.exit(1)
        except Exception:  # noqa: BLE001  # a bug; its traceback may repeat what a file says
            import traceback

            output.text(traceback.format_exc(), err=True)
            sys.exit(1)
        status = ended if isinstance(ended, int) else 0
        if not (args or extra):  # the program, not a test
            _end_with_threads(status)
        sys.exit(status)

    def invoke(self, ctx: click.Context) -> object:
        try:
            return super().invoke(ctx)
        except VaultError as error:
            output.error(error.message, error.hint)
            ctx.exit(1)
        except BrokenPipeError:  # `lessons list | head`
            sys.stderr.close()
            ctx.exit(0)


def refuse_stranger(packages: Path) -> None:
    """Raise VaultError where `packages` also has the registry's `vault-index`, another project.

    Both are the module `vault_index`, so each writes over files of the other.
    """
    for info in packages.glob("vault_index-*.dist-info"):
        try:
            own = "vault_index.entrypoints" in (info / "entry_points.txt").read_text("utf-8")
        except OSError:
            own = False
        if not own:
            raise VaultError(
                f"{info.stem}, another project of the same module name, is in {packages}",
                "run `pip uninstall vault-index`, then install lessons-vault again",
            )


def _end_with_threads(status: int) -> None:
    """End the process at once where daemon threads still work.

    Python would end such a thread inside a library's code, and the library abort the process.
    """
    others = [thread for thread in threading.enumerate() if thread is not threading.main_thread()]
    if others and all(thread.daemon for thread in others):
        with suppress(OSError, ValueError):
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(status)


@click.group(
    cls=_Group,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog='Example: lessons search "our build dies with heap out of memory"',
)
@click.option(
    "--vault", "vault", metavar="PATH", help="The vault; default: found from here upwards."
)
@click.version_option(
    package_name="lessons-vault", message="lessons %(version)s (package %(package)s)"
)
@click.pass_context
def main(ctx: click.Context, vault: str | None) -> None:
    """The memory of a team that works with coding agents: lessons in git, the right one at the prompt."""
    refuse_stranger(Path(vault_index.__file__).parents[1])
    ctx.obj = vault
    ctx.color = output.color()
