"""Find the troubles of a vault on this machine, and the command that fixes each. Changes nothing."""

from __future__ import annotations

import os
import shlex
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

from vault_index import check, errors, features, git, status
from vault_index.check.finding import MAX_SHOWN, Trouble, from_here, to_edit
from vault_index.embed import download, languages
from vault_index.entrypoints import agents
from vault_index.entrypoints.agents import hook_settings
from vault_index.entrypoints.agents.hook_settings import HookSettings
from vault_index.errors import VaultError
from vault_index.hotpath import index_files
from vault_index.hotpath.log import HOOK_LOG, NO_INDEX
from vault_index.lesson.file import hash_of_file
from vault_index.recall import ratings
from vault_index.recall.silence import OTHER_LANGUAGE
from vault_index.retrieval import entries, floor
from vault_index.share import git_hooks
from vault_index.state import notes
from vault_index.store import injections, manifest, ownership, times
from vault_index.store.manifest import FileEntry
from vault_index.text.words import count
from vault_index.vault import OTHER_ENDINGS, Vault, open_vault
from vault_index.watch import launch
from vault_index.watch.events import INSTANCES, WATCHES

DAY_SECONDS = 86_400.0
MAX_PROMPTS = 200  # the last, of which some may be in a language that the model does not know


@dataclass(frozen=True, slots=True)
class Hooks:
    """The settings of agents that run the hooks, those agents, and the last errors."""

    installed: Sequence[str]
    agents: Sequence[str]
    last_errors: Sequence[Mapping[str, Any]]


def hooks(vault: Vault) -> Hooks:
    """Look for the hooks of a vault."""
    wired = [each for each in agents.wired(vault.root) if each[0].runs_hooks(each[2])]
    plugin = plugin_there(vault.root)
    names = {agent.name for agent, _, _ in wired} | {agents.AGENT for _ in plugin}
    installed = [*(str(file) for _, _, file in wired), *plugin]
    errors = injections.complaints_of(vault.root, vault.config.home)[-3:]
    return Hooks(installed, sorted(names), errors)


def watcher(vault: Vault) -> Mapping[str, Any] | None:
    """Return the state of a watcher as it says itself; None if it is not running."""
    try:
        return launch.status(vault.root)
    except VaultError as error:
        return {"trouble": f"{error.message}; {error.hint}"}


def plugin_there(project: Path | None) -> list[str]:
    """Return the plugin, whose hooks are all of ours, where it is enabled."""
    settings = agents.enabled_by(project)
    return [agents.shown(settings)] if settings else []


_HINTS = {  # what an error's hint says in words, as a command
    "run `lessons index`": "lessons index",
    "run `lessons index --rebuild`": "lessons index --rebuild",
}


def examine(named: str | None, *, whole: bool = True) -> list[Trouble]:
    """Return the troubles, the gravest first. Nothing is raised for a broken vault.

    Unless `whole`, the words of a lesson are not searched again if the index found nothing in them, and
    an index that nobody needed yet is nothing wrong.
    """
    try:
        vault = open_vault(named)
    except errors.SettingsError as error:
        file = Path(error.message.partition(": ")[0])
        return [Trouble("settings", error.message, to_edit(file) if file.is_file() else error.hint)]
    except VaultError as error:
        return [Trouble("vault", error.message, "lessons init")]
    parts: list[tuple[str, Callable[[Vault], Iterable[Trouble]]]] = [
        ("settings", _settings),
        ("state", _state),
        ("index", _index if whole else _index_if_made),
        ("lessons", _lessons if whole else _lessons_since),
        ("wrong", _wrong),
        ("model", _model),
        ("agent", _agent),
        *((feature.name, feature.troubles) for feature in features.FEATURES),
        ("watcher", _watcher),
        ("git", _git),
    ]
    return [trouble for name, part in parts for trouble in _guarded(name, part, vault)]


def _guarded(name: str, part: Callable[[Vault], Iterable[Trouble]], vault: Vault) -> list[Trouble]:
    troubles: list[Trouble] = []
    try:
        troubles.extend(part(vault))
    except VaultError as error:
        hint = _HINTS.get(error.hint, error.hint)
        troubles.append(Trouble(name, error.message, hint or "lessons status"))
    return troubles


def _settings(vault: Vault) -> Iterator[Trouble]:
    of_vault = f"{index_files.FOLDER}/{index_files.SETTINGS}"
    for each in vault.config.unknown_keys:
        file = vault.root / each.file if each.file == of_vault else Path(each.file)
        yield Trouble("settings", str(each), to_edit(file))


def _state(vault: Vault) -> Iterator[Trouble]:
    for what, fix in notes(vault.config.home):
        yield from [Trouble("state", what, fix)] if fix else []


def _index_if_made(vault: Vault) -> Iterator[Trouble]:
    if os.path.lexists(vault.index_dir):  # else the first search makes it
        yield from _index(vault)


def _index(vault: Vault) -> Iterator[Trouble]:
    folder = vault.index_dir  # raises for an index that is not ours
    if folder.is_dir() and not ownership.is_ours(folder):
        what = f"{folder} was not made here by you, so it is not used"
        yield Trouble("index", what, "lessons index")
        return
    try:
        opened = vault.open_index()
        opened.store.rows(("id", "text"))  # damage shows when it is read
        for skip in vault.files()[1]:  # what does not parse is among the errors in lessons
            file = vault.lessons_dir / skip.path
            name = shlex.quote(from_here(file))
            fix = f"rm {name}" if file.is_symlink() else f"chmod -R u+rwX {name}"
            fix = fix if file.exists() or file.is_symlink() else "rename it in UTF-8"
            if file.name.lower().endswith(OTHER_ENDINGS) and not file.name.endswith(".md"):
                fix = f"mv {name} {shlex.quote(from_here(file.with_suffix('.md')))}"
            yield Trouble("index", f"lessons/{skip.path}: {skip.reason}", fix)
        if floor.is_unmeasured(vault):
            what = f"the floors of {opened.embedder} are not measured yet, so words alone decide"
            yield Trouble("index", what, "lessons index")
    except errors.ForeignIndexError:
        raise
    except errors.IndexStateError as error:
        yield Trouble("index", error.message, _HINTS.get(error.hint, "lessons index --rebuild"))


def _lessons_since(vault: Vault) -> Iterator[Trouble]:
    """Look for errors as `_lessons` does, with the index's findings in unchanged files."""
    indexed: Mapping[str, FileEntry] = {}
    with suppress(VaultError):
        if (index := manifest.current(vault.index_dir)) and ownership.is_ours(vault.index_dir):
            indexed = manifest.load(index).files
    yield from _lessons(vault, indexed)


def _lessons(
    vault: Vault, indexed: Mapping[str, FileEntry] = MappingProxyType({})
) -> Iterator[Trouble]:
    """Look for what `check` calls an error: no hook injects such a lesson, no commit takes it."""
    wrong, taxonomy = [], vault.config.taxonomy
    with check.KeptFindings(vault.config.home) as kept:
        for candidate in check.everything(vault):
            entry = indexed.get(candidate.path) if candidate.is_lesson else None
            # the index does not search the words of a file that it could not parse
            is_read = entry and not entry.problem and entry.hash == hash_of_file(candidate.data)
            is_clean = entry and is_read and not entry.withheld
            for finding in check.of_text(candidate, taxonomy, words=not is_clean, kept=kept):
                is_named = finding.rule in (check.SETTINGS_RULE, check.SKILL_RULE)
                if finding.severity == check.ERROR and not is_named:
                    wrong.append((str(finding), candidate.shown))
    with suppress(VaultError):
        named = {path for _, path in wrong}
        for path, why in sorted(entries.withheld(vault).items()):
            wrong += [] if path in named else [(f"{path}: hooks leave it out: {why}", path)]
    for what, path in wrong[:MAX_SHOWN]:
        yield Trouble("lessons", what, to_edit(vault.root / path))
    if len(wrong) > MAX_SHOWN:
        yield Trouble(
            "lessons", f"{len(wrong) - MAX_SHOWN} more errors in lessons", "lessons check"
        )


def _wrong(vault: Vault) -> Iterator[Trouble]:
    for each in ratings.reasons(vault):
        yield Trouble("lessons", f"{each.lesson}: {each.why}", each.do)


def _model(vault: Vault) -> Iterator[Trouble]:
    chosen = vault.config
    if chosen.embedder == "none":
        return
    if chosen.is_built_in and not download.is_ready(chosen.home):
        now = download.state(chosen.home)
        what = "the embedding model is not here, so search is by full text only"
        what = str(now).partition(":")[0] if now.state == download.DAMAGED else what
        yield Trouble("model", _degraded(vault, what), "lessons model fetch")
        return
    try:
        embedder = vault.embedder
        if embedder is None:
            return
        if not chosen.is_built_in:
            embedder.embed_queries(["is anybody there"])
    except errors.EmbedderError as error:
        yield Trouble("model", _degraded(vault, error.message), error.hint)
        return
    status.degraded(vault, is_now=False)
    last = injections.records(chosen.home, vault.root, limit=MAX_PROMPTS)
    if number := sum(each.silent == OTHER_LANGUAGE for each in last):
        what = f"{count(number, 'prompt')} in a language that the model does not know got nothing"
        yield Trouble("model", what, languages.SWITCH)
    with suppress(VaultError):  # of an index that is reported already
        built_with = vault.open_index().embedder
        if built_with != embedder.name:
            is_without = built_with == manifest.NO_EMBEDDER
            how = "without vectors" if is_without else f"with {built_with}"
            what = f"the index was built {how}, the embedder is {embedder.name}"
            yield Trouble("model", what, "lessons index")


def _degraded(vault: Vault, missing: str) -> str:
    since = times.local(status.degraded(vault, is_now=True))
    return f"degraded since {since}: {missing}"


def _agent(vault: Vault) -> Iterator[Trouble]:
    claude = agents.AGENTS["claude"]
    files = [claude.place(folder) for folder in (None, vault.root)]
    for file in files:
        claude.commands(file)  # says what is wrong with a file that is no JSON
    wired = agents.wired(vault.root)
    has_plugin = agents.enabled_by(vault.root) is not None
    if has_plugin and (why := agents.why_not_found()):
        yield Trouble("plugin", f"{agents.NAME}: {why}", hook_settings.path_command())
    elif not has_plugin and not wired:
        yield Trouble("hooks", "no agent runs the hooks", "lessons install claude")
    for agent, scope, file in wired:
        yield from _hooks(agent, scope, file, has_plugin)
    for file in files:
        is_off = agents.CLAUDE.read(file)[1].get("disableAllHooks") is True
        if is_off and claude.runs_hooks(file):
            yield Trouble("hooks", f'{file}: "disableAllHooks" is true', to_edit(file))
    complaints = injections.complaints_of(vault.root, vault.config.home, DAY_SECONDS)
    failed = [each for each in complaints if each["message"] != NO_INDEX]
    if failed:
        often = count(len(failed), "time")
        what = f"hooks failed {often} in the last 24 hours: {failed[-1]['message']}"
        log = vault.config.home / HOOK_LOG
        yield Trouble("hooks", what, f"tail {shlex.quote(str(log))}")


def _hooks(agent: HookSettings, scope: str, file: Path, has_plugin: bool) -> Iterator[Trouble]:
    words = f"{agent.name} {scope}"
    commands = agent.commands(file)
    if strange := agent.fatal_keys(file):
        what = f"{file}: {agent.name} reads none of it, for its key {strange[0]!r:.60}"
        yield Trouble("hooks", what, to_edit(file))
    missing = sorted(set(agent.events()) - set(commands))
    if missing and not (has_plugin and agent.name == agents.AGENT):  # which brings them
        what = f"{file}: no hook for {', '.join(missing)}"
        yield Trouble("hooks", what, f"lessons install {words}")
    for command in sorted(set(commands.values())):
        if shutil.which(command) is None:
            again = f"lessons uninstall {words}; lessons install {words}"
            yield Trouble("hooks", f"{file}: {command} cannot be run", again)
        elif command == hook_settings.COMMAND and (why := hook_settings.why_not_found(command)):
            yield Trouble("path", why, hook_settings.path_command())


def _watcher(vault: Vault) -> Iterator[Trouble]:
    try:
        state = launch.status(vault.root)
    except VaultError as error:
        yield Trouble("watcher", error.message, "lessons watch --stop")
        return
    if state and state.get("trouble"):
        yield Trouble("watcher", str(state["trouble"]), "lessons watch --stop")
    if state and (limit := state.get("limit")):
        setting = f"{limit}={_ENOUGH[limit]}"
        fix = f"echo {setting} | sudo tee /etc/sysctl.d/60-lessons.conf && sudo sysctl --system"
        what = f"the system gives no more file watches ({limit}), so saves are seen late"
        yield Trouble("watcher", what, fix)


_ENOUGH = {WATCHES: 524_288, INSTANCES: 1024}  # what editors ask for


def _git(vault: Vault) -> Iterator[Trouble]:
    if git.worktree(vault.lessons_dir) is None:
        what = f"{vault.root} is not a git repository: lessons have no author, and nobody gets them"
        yield Trouble("git", what, f"git init {shlex.quote(str(vault.root))} && lessons init")
        return
    lacking = [Trouble("git", what, fix) for what, fix in git_hooks.troubles(vault.root)]
    yield from lacking
    if (
        not lacking
        and (why := hook_settings.why_not_found("lessons"))
        and not os.access(git.setting(vault.root, git_hooks.PROGRAM), os.X_OK)
    ):
        yield Trouble("path", f"{why}: git hooks check nothing then", hook_settings.path_command())
