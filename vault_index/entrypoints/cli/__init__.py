"""The command line. Every command calls one verb and renders what it gives.

Only click and the standard library load here; verbs load inside the commands, so that `--help`
answers in under a tenth of a second.
"""

from __future__ import annotations

import errno
import importlib
import os
import sys
import threading
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import Any

import click

import vault_index
from vault_index.entrypoints.cli import output
from vault_index.errors import VaultError, hint_for
from vault_index.features import FEATURES
from vault_index.text.words import nearest

# More would be no quicker here, and spin for 20 ms after each product on a core others need: with
# one the watcher's answer takes a third of the processor time. Before numpy is loaded.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")


# those that a person meets: `lessons --help`
SECTIONS = {
    "Lessons": "new add search show edit move rm",
    "Agents": "install teach last useful",
    "Sessions": "",
    "Team": "check sync",
    "Vault": "init status config",
}
# the others: `lessons help --all`
MORE = {
    "Lessons and categories": "list log import categories recall eval",
    "For agents and programs": "uninstall hook mcp",
    "This machine": "index watch model help",
}
HIDDEN = ["merge-driver"]
# words of other programs
SYNONYMS = {
    **dict.fromkeys(("find", "grep", "query"), "search"),
    **dict.fromkeys(("delete", "remove", "del"), "rm"),
    **dict.fromkeys(("create", "write"), "new"),
    **dict.fromkeys(("ls", "all"), "list"),
    **dict.fromkeys(("web", "ui", "page"), "open"),
    **dict.fromkeys(("cat", "view", "get"), "show"),
    **dict.fromkeys(("mv", "rename"), "move"),
    "doctor": "status --check",
}
# command -> the module that has it; the others have a module of their name
HOMES = {
    command: module
    for module, commands in {
        "help": "help",
        "install": "uninstall hook",
        "lessons": "new add list show edit move rm last teach useful log",
        "organise": "import categories",
        "search": "recall eval",
        "servers": "mcp",
        "sharing": "sync check merge-driver",
        "vault": "init status config index watch model",
    }.items()
    for command in commands.split()
}
for _feature in FEATURES:
    for _section, _module, _names in _feature.commands:
        _sections = SECTIONS if _section in SECTIONS else MORE
        _sections[_section] = f"{_sections[_section]} {_names}".strip()
        HOMES |= dict.fromkeys(_names.split(), _module)
_WHOLE = 1000  # characters of a summary: it goes on in the next line rather than being cut off


class _Group(click.Group):
    """Commands, a module each, that end in one line on stderr and exit 1 when a verb raises."""

    def list_commands(self, _ctx: click.Context) -> list[str]:
        return " ".join([*SECTIONS.values(), *MORE.values()]).split() + HIDDEN

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        """Return a command; its module is imported now, since a call needs no other."""
        if name not in self.list_commands(ctx):
            return None
        module = importlib.import_module(f"{__name__}.{HOMES.get(name, name)}")
        function = f"{name.replace('-', '_')}_command"  # of a module with several commands
        command = getattr(module, function, None) or module.command
        if not isinstance(command, click.Command):
            raise TypeError(name)
        return command

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Take `--vault` and `--json` in any place; refuse a word that is no text, and no file."""
        for word in args:
            if word != word.encode("utf-8", "replace").decode() and not os.path.lexists(word):
                ctx.fail(f"{word!r} is not text in UTF-8")
        front, rest = [], []
        words = iter(args)
        for word in words:
            if word == "--":
                rest += [word, *words]
            elif word == "--vault":
                front += [word, *islice(words, 1)]
            else:
                (front if word.startswith("--vault=") else rest).append(word)
        if rest[:1] == ["--json"]:
            rest = [*rest[1:], "--json"]
        return super().parse_args(ctx, front + rest)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the command that is meant; an unknown one is refused with the nearest."""
        name = args[0]
        if name not in self.list_commands(ctx) and not name.startswith("-"):
            hint = SYNONYMS.get(name) or nearest(name, self.list_commands(ctx))
            near = f": did you mean {hint}?" if hint else ""
            ctx.fail(f"No such command {name!r}{near}")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        self.format_sections(ctx, formatter)
        formatter.write_paragraph()
        formatter.write_text("`lessons help --all` lists all others.")

    def format_sections(
        self, ctx: click.Context, formatter: click.HelpFormatter, *, show_all: bool = False
    ) -> None:
        """List commands in sections, each with the whole first sentence of its help."""
        sections = SECTIONS | MORE if show_all else SECTIONS
        width = max(len(name) for names in sections.values() for name in names.split())
        for section, names in sections.items():
            if not names:
                continue
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
        threading.excepthook = lambda raised: _say_bug(raised.exc_value)
        try:
            ended = super().main(*args, **{**extra, "standalone_mode": False})
        except click.ClickException as error:
            output.usage(error)
            sys.exit(error.exit_code)
        except click.Abort:
            output.say("Aborted!", err=True)
            sys.exit(1)
        except Exception as error:  # noqa: BLE001  # a bug
            _say_bug(error)
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
        except OSError as error:  # no command said what it could not do
            if error.errno == errno.ENOSPC:
                output.error(f"the output cannot be written: {error.strerror}", "free some space")
            elif hint := hint_for(error, ""):
                output.error(f"{error.filename or 'a file'}: {error.strerror}", hint)
            elif _has_folder():
                raise
            else:
                output.error("the current folder is gone", "cd to another one")
            ctx.exit(1)


def refuse_stranger(packages: Path) -> None:
    """Raise VaultError where `packages` also has the registry's `vault-index`, another project.

    Both are the module `vault_index`, so each writes over files of the other.
    """
    for info in packages.glob("vault_index-*.dist-info"):
        raise VaultError(
            f"{info.stem}, another project of the same module name, is in {packages}",
            "run `pip uninstall vault-index`, then install lessons-vault again",
        )


def _has_folder() -> bool:
    try:
        return bool(Path.cwd())
    except OSError:
        return False


def _say_bug(error: BaseException | None) -> None:
    from vault_index.entrypoints import bug

    caught = bug.caught(error or SystemError())
    output.error(caught.message, caught.hint)


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
    invoke_without_command=True,
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
    if ctx.invoked_subcommand is None:
        from vault_index.entrypoints.cli import help

        help.show_next_step()
    ctx.color = output.color()
