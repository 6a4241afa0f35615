"""The commands for what runs: status, watch."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import click

from vault_index import client
from vault_index.entrypoints.cli import asking, output
from vault_index.entrypoints.cli.output import count
from vault_index.errors import VaultError

if TYPE_CHECKING:
    from vault_index.vault import Vault


def lines(state: dict[str, Any]) -> Iterator[str]:
    """Yield the state for people, a line each."""
    yield f"vault      {state['vault']}"
    repository = state["git"]
    if repository:
        changed = repository["uncommitted"]
        dirty = f", {count(changed, 'file')} not committed" if changed else ""
        yield f"git        {repository['branch']} at {repository['head'] or 'no commit yet'}{dirty}"
    else:
        yield "git        not a repository: lessons have no author and no date"
    yield f"embedder   {state['embedder']}"
    built = state["index"]
    if "error" in built:
        yield f"index      {built['error']}"
    else:
        age = built["age_seconds"]
        yield (
            f"index      {count(state['lessons'], 'lesson')} in {count(built['files'], 'file')},"
            f" {built['bytes'] / 1e6:.1f} MB, written {output.ago(age)}"
        )
        least = built["floor"]
        yield "floor      " + (
            "not fitted yet: run `lessons index`" if least is None else f"{least:.3f}"
        )
    for problem in built.get("problems", []):
        yield f"problem    {problem['path']}:{problem['line']}: {problem['message']}"
    for path, why in sorted(state["withheld"].items()):
        yield f"problem    {path}: hooks leave it out: {why}"
    for said in state["ignored_settings"]:
        yield f"problem    {said}"
    for problem in state["skill_problems"]:
        yield f"problem    {problem}"
    yield from _in_force(state["settings"])
    if state["categories"]:
        unfiled = state["unfiled"]
        proposed = f"; {unfiled} lessons are in none: see `lessons classify`" if unfiled else ""
        yield f"categories {len(state['categories'])}{proposed}"
        documents, skills = count(state["documents"], "document"), count(state["skills"], "skill")
        yield f"also       {documents}, {skills}"
    yield from _used(state["injections"])
    yield from _outcomes(state["outcomes"])
    if state["proposals"]:
        yield f"proposals  {count(state['proposals'], 'proposal')} waiting: see `lessons review`"
    yield from _learning(state["learning"])
    yield from _journal(state["journal"])
    hooks = state.get("hooks") or {}
    places = ", ".join(hooks.get("installed", [])) or "not installed: run `lessons install claude`"
    yield f"hooks      {places}"
    for entry in hooks.get("last_errors", []):
        yield f"hook log   {entry['time']} {entry['event']}: {entry['message']}"


def _learning(state: dict[str, Any]) -> Iterator[str]:
    """Yield what was learned from sessions and what it took, and what went wrong in the last run."""
    if not state["runs"] and not state["auto"]:
        return
    usage = state["usage"]
    tokens = usage["input_tokens"] + usage["output_tokens"]
    cost = "" if usage["cost"] is None else f", {usage['cost']:.2f} dollars"
    took = f"; {tokens:,} tokens, {usage['seconds']:.0f} s{cost}" if usage["calls"] else ""
    auto = ", at the end of sessions" if state["auto"] else ""
    runs, made = count(state["runs"], "run"), count(state["proposed"], "proposal")
    yield f"learning   {runs}, {made}{took}{auto}"
    if state["trouble"]:
        yield f"problem    learning: {state['trouble']}"


def _journal(state: dict[str, Any]) -> Iterator[str]:
    """Yield the state of the journal in a line, and its first problems."""
    recorded = ["every project" if folder == "*" else folder for folder in state["recorded"]]
    if not recorded and not state["sessions"]:
        yield "journal    empty: see `lessons journal --help`"
        return
    kept = f"{count(state['sessions'], 'session')}, recorded: {', '.join(recorded) or 'nothing'}"
    unread = f", {count(state['unread'], 'unread line')}" if state["unread"] else ""
    yield f"journal    {kept}{unread}; more: `lessons journal status`"
    for problem in state["problems"][:3]:
        yield f"problem    {problem}"
    for complaint in state["complaints"][-3:]:
        yield f"problem    journal: {complaint}"


def _used(injected: dict[str, Any]) -> Iterator[str]:
    if injected["missed"]:
        yield f"missed     {count(injected['missed'], 'answer')}, at prompts or starts of sessions"
    if not injected["prompts"]:
        yield "prompts    none searched for yet"
        return
    yield (
        f"prompts    {injected['prompts']} searched for since {injected['since']},"
        f" {injected['answered']} answered; p50 {injected['p50_ms']:.0f} ms,"
        f" p90 {injected['p90_ms']:.0f} ms"
    )
    for lesson_id, times in injected["most_used"]:
        yield f"{times:>8}x  {lesson_id}"
    if injected["never_used"]:
        some = ", ".join(injected["some_never_used"][:3])
        yield f"never used {injected['never_used']} lessons, such as {some}"


def outcome_line(tally: dict[str, Any]) -> str:
    """Return what agents did with what they were given, in a line."""
    known = ", ".join(f"{tally[name]} {name}" for name in ("taken", "ignored", "contradicted"))
    return f"injected {count(tally['injected'], 'time')}: {known}, {tally['unknown']} unknown"


def _outcomes(outcomes: dict[str, Any]) -> Iterator[str]:
    if not outcomes["injected"]:
        return
    waiting = outcomes["waiting"]
    later = f"; {count(waiting, 'session')} not judged yet" if waiting else ""
    yield f"outcome    {outcome_line(outcomes)}{later}"
    for tally in outcomes["worst"][:1]:
        yield f"worst      {tally['id']}, {outcome_line(tally)}: see `lessons stale`"


def _in_force(settings: list[dict[str, Any]]) -> Iterator[str]:
    """Yield a line for each setting that somebody set, and one for all the others."""
    from vault_index import config

    of_nobody = [setting for setting in settings if setting["origin"] == config.DEFAULT]
    for setting in settings:
        if setting not in of_nobody:
            yield f"setting    {setting['name']} = {shown_value(setting['value'])} ({setting['origin']})"
    listed = ", ".join(
        f"{setting['name']} = {shown_value(setting['value'])}" for setting in of_nobody
    )
    yield f"defaults   {listed}"


def shown_value(value: Any) -> str:
    """Return a setting's value in a line, as TOML writes it as far as that is short."""
    if value is None:
        return "unset"
    if isinstance(value, dict):
        return f"{len(value)} phrases"
    if isinstance(value, (list, tuple)) and len(value) > 3:
        return f"{len(value)} entries"
    return json.dumps(value, ensure_ascii=False, default=str)


@click.command("status", epilog="Example: lessons status --json")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.pass_obj
def status_command(named: str | None, as_json: bool) -> None:
    """Show the vault, its index, the hooks and their errors."""
    from vault_index.entrypoints import doctor

    state = asking.ask(named, "status")
    vault = client.open_vault(named)
    state |= doctor.state(vault)
    state["journal"] |= doctor.journal_hooks(vault.root)
    if as_json:
        output.json(state)
        return
    for line in lines(state):
        output.say(line, indent=11)
    output.say(f"watcher    {watcher_line(state['watcher'])}", indent=11)


# `lessons watch`.

START_SECONDS = 30  # to load the model and the tables: one on a quick machine


@click.command("watch", epilog="Example: lessons watch --background")
@click.option("--background", "how", flag_value="background", help="Go on without this terminal.")
@click.option("--stop", "how", flag_value="stop", help="End the watcher, of all vaults.")
@click.option(
    "--status", "how", flag_value="status", help="Show whether the vault is watched, and how."
)
@click.option("--json", "as_json", is_flag=True, help="Print the status as JSON.")
@click.pass_obj
def watch_command(named: str | None, how: str | None, as_json: bool) -> None:
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
        output.say(watcher_line(state) if state else f"{vault.root} has no watcher")


def watcher_line(state: dict[str, Any] | None) -> str:
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
