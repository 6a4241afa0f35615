"""The command line. Every command calls one verb and renders what it gives.

Only click and the standard library load here; verbs load inside the commands, so that `--help`
answers in under a tenth of a second.
"""

from __future__ import annotations

import atexit
import gc
import os
import sys
from typing import Any

import click

from vault_index.entrypoints.cli import (
    agents,
    doctor,
    finding,
    importing,
    lessons,
    output,
    sharing,
    tree,
    vaults,
    watch,
)
from vault_index.errors import VaultError

# More would be no quicker here, and spin for 20 ms after each product on a core others need: with
# one the watcher's answer takes a third of the processor time. Before numpy is loaded.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
# What a command leaves behind needs no search for circles: that takes 10 ms after a list.
atexit.register(gc.freeze)


# as in the README; a command that is in none is hidden
SECTIONS = {
    "Lessons": "add list show edit rm log import",
    "Search": "search recall eval",
    "Organise": "categories mv classify",
    "Share": "check sync",
    "Agent": "install uninstall hook",
    "Vault": "init status doctor config index watch model",
}
PAGED = "list show log search recall categories classify check status doctor config".split()
_WHOLE = 1000  # characters of a summary: it goes on in the next line rather than being cut off


class _Group(click.Group):
    """A group whose commands end in one line on stderr and exit 1 when a verb raises."""

    def format_commands(self, _ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the commands in sections, each with the whole first sentence of its help."""
        width = max(len(name) for names in SECTIONS.values() for name in names.split())
        for section, names in SECTIONS.items():
            with formatter.section(section):
                shown = ((name, self.commands[name]) for name in names.split())
                rows = [(f"{name:<{width}}", one.get_short_help_str(_WHOLE)) for name, one in shown]
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
        sys.exit(ended if isinstance(ended, int) else 0)

    def invoke(self, ctx: click.Context) -> object:
        try:
            return super().invoke(ctx)
        except VaultError as error:
            output.say(f"Error: {error.message}", err=True)
            if error.hint:
                output.say(f"Try: {error.hint}", err=True)
            ctx.exit(1)
        except BrokenPipeError:  # `lessons list | head`
            sys.stderr.close()
            ctx.exit(0)


@click.group(
    cls=_Group,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog='Example: lessons search "our build dies with heap out of memory"',
)
@click.option(
    "--vault", "vault", metavar="PATH", help="The vault; default: found from here upwards."
)
@click.version_option(package_name="vault-index", message="lessons %(version)s")
@click.pass_context
def main(ctx: click.Context, vault: str | None) -> None:
    """The memory of a team that works with coding agents: lessons in git, the right one at the prompt."""
    ctx.obj = vault
    ctx.color = output.color()


for _command in (
    vaults.init,
    lessons.add,
    lessons.list_,
    lessons.show,
    lessons.edit,
    lessons.rm,
    lessons.log,
    importing.import_,
    tree.categories,
    tree.mv,
    tree.classify,
    finding.search,
    finding.recall,
    finding.index,
    finding.eval_,
    sharing.check,
    sharing.sync,
    sharing.merge_driver,
    watch.watch,
    vaults.status,
    doctor.doctor,
    doctor.config,
    agents.install,
    agents.uninstall,
    agents.hook,
    vaults.model,
):
    if _command.name in PAGED and _command.callback:
        _command.callback = output.paged()(_command.callback)
    main.add_command(_command)
