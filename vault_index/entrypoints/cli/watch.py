"""`lessons watch`."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import click

from vault_index import client
from vault_index.entrypoints.cli import asking, output
from vault_index.entrypoints.cli.options import count
from vault_index.errors import VaultError

if TYPE_CHECKING:
    from vault_index.vault import Vault

START_SECONDS = 30  # to load the model and the tables: one on a quick machine


@click.command("watch", epilog="Example: lessons watch --background")
@click.option("--background", "how", flag_value="background", help="Go on without this terminal.")
@click.option("--stop", "how", flag_value="stop", help="End the watcher, of all vaults.")
@click.option(
    "--status", "how", flag_value="status", help="Show whether the vault is watched, and how."
)
@click.option("--json", "as_json", is_flag=True, help="Print the status as JSON.")
@click.pass_obj
def command(named: str | None, how: str | None, as_json: bool) -> None:
    """Reindex on save, and answer from one warm process.

    It serves all your vaults and your journal. Without an option it runs here, printing what it
    reindexes, until Ctrl-C. Hooks start a watcher by themselves unless lessons/vault.toml has
    `autostart = false` under `[watch]`.
    """
    if how == "stop":  # wherever it is typed
        from vault_index.watch import launch

        output.say("stopped" if launch.stop() else "there was no watcher")
        return
    vault = client.open_vault(named)
    if how == "background":
        _start(vault)
    elif how == "status" or as_json:
        _show(vault, as_json)
    else:
        _run(vault)


def _run(vault: Vault) -> None:
    from vault_index.entrypoints import watcher
    from vault_index.watch import launch

    lock = launch.take_lock()
    if lock is None:  # it watches this vault from now on, if it did not
        launch.open_in_background(vault.root, vault.index_dir)
        asking.note(f"{vault.root} has a watcher already")
        return
    watcher.run(vault.root, lock, _say)


def _say(message: str) -> None:
    stamp = time.strftime("%Y-%m-%d %H:%M:%S")
    for text in message.splitlines():
        output.say(f"{stamp} {text}")


def _start(vault: Vault) -> None:
    from vault_index.watch import launch

    began = time.monotonic()
    started = False
    while time.monotonic() - began < START_SECONDS:
        started = launch.open_in_background(vault.root, vault.index_dir) or started
        state = launch.status(vault.root)
        if state is not None:
            verb = "watching" if started else "already watching"
            output.say(f"{verb} {vault.lessons_dir} (pid {state['pid']})")
            return
        time.sleep(0.1)
    raise VaultError(
        f"the watcher of {vault.root} did not start", f"read {launch.folder() / launch.LOG}"
    )


def _show(vault: Vault, as_json: bool) -> None:
    from vault_index.watch import launch

    state = launch.status(vault.root)
    if as_json:
        shown = {"running": state is not None, **(state or {})}
        output.json(shown)
    else:
        output.say(line(state) if state else f"{vault.root} has no watcher")


def line(state: dict[str, Any] | None) -> str:
    """Return the state of a watcher for people, in a line."""
    if state is None:
        return "not running"
    if "pid" not in state:
        return str(state["trouble"])
    parts = [f"pid {state['pid']}", f"up {state['seconds']} s", count(state["lessons"], "lesson")]
    parts.append(count(state["questions"], "question"))
    parts += ["indexing"] if state["indexing"] else []
    parts += ["looking every few seconds"] if state["events"] == "polling" else []
    parts += [f"last: {state['last']}"] if state["last"] else []
    parts += [f"trouble: {state['trouble']}"] if state["trouble"] else []
    return ", ".join(parts)
