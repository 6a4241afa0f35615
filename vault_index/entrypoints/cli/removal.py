"""`lessons uninstall --all`: everything that this product put on the machine, listed and then removed."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import NamedTuple

from vault_index import config, files, git
from vault_index.entrypoints import agents, at_login, serving
from vault_index.entrypoints.cli import context, output
from vault_index.errors import GitError, NoVaultError, VaultError
from vault_index.share import git_hooks
from vault_index.vault import INDEX
from vault_index.watch import launch


class Step(NamedTuple):
    """An installed thing: a line about it, and the function that removes it."""

    what: str
    remove: Callable[[], object]


def run(*, purge: bool, yes: bool) -> None:
    """List what is there, ask, and remove it. Lessons stay. Raises VaultError where nobody can answer."""
    steps = [*_agents(), *_machine(), *_vaults()]
    home = config.home_folder()
    if purge and home.is_dir():
        steps.append(Step(f"{home}, with your journal and proposals", lambda: shutil.rmtree(home)))
    if not steps:
        output.say("nothing of this product is here")
    for step in steps:
        output.say(step.what)
    if steps and not yes:
        if not sys.stdin.isatty():
            raise VaultError("nothing is removed without asking", "pass --yes")
        if not output.confirm("remove all of these?"):
            context.note("nothing removed")
            return
    for step in steps:
        try:
            step.remove()
        except (VaultError, OSError) as error:  # of a folder that nobody may write
            context.note(f"warning: left: {step.what}: {error}")
    if steps:
        output.say(f"removed; lessons stay{'' if purge else f', and so does {home} (see --purge)'}")
    if plugin := agents.enabled_by(Path.cwd()):
        context.note(f"note: {agents.shown(plugin)} is removed by Claude Code itself:")
        context.note(f"      claude plugin uninstall {agents.NAME}")
    if steps:
        context.note(
            "note: .githooks, .gitattributes and .gitignore stay: your repository has them"
        )
    context.note("the program itself: pip uninstall lessons-vault (or uv tool, or pipx)")


def _agents() -> Iterator[Step]:
    for agent, _, file in agents.wired(Path.cwd()):
        yield Step(f"{file}: the hooks for {agent.name}", partial(agents.unwire, agent, file))


def _machine() -> Iterator[Step]:
    file = at_login.login_file(Path.home(), 1)
    if file.path.is_file():
        yield Step(f"{file.path}: the page at each login", file.remove)
    if serving.is_running():
        yield Step("the server of `lessons serve --background`", serving.stop)
    if launch.is_running():
        yield Step("the watcher", launch.stop)


def _vaults() -> Iterator[Step]:
    try:
        root = context.vault().root
    except NoVaultError:
        return
    if (root / INDEX).is_dir():
        yield Step(f"{root / INDEX}: the index", lambda: shutil.rmtree(root / INDEX))
    try:
        steps = [*_of_git(root)]
    except GitError as error:
        context.note(f"warning: left: git's settings and hooks for {root}: {error.message}")
        return
    yield from steps


def _of_git(root: Path) -> Iterator[Step]:
    if git.setting(root, git_hooks.PROGRAM):
        unset_program = ("config", "--local", "--unset", git_hooks.PROGRAM)
        yield Step(f"{root}: git's {git_hooks.PROGRAM}", lambda: git.command(root, *unset_program))
    if git.setting(root, "merge.lessons.driver"):
        words = ("config", "--local", "--remove-section", "merge.lessons")
        yield Step(f"{root}: git's merge driver", lambda: git.command(root, *words))
    path = git.setting(root, "core.hooksPath")
    if path and Path(path).name == git_hooks.FOLDER:
        unset = ("config", "--local", "--unset", "core.hooksPath")
        yield Step(f"{root}: git's core.hooksPath", lambda: git.command(root, *unset))
    for name, text in git_hooks.HOOKS.items():
        hook = root / git_hooks.FOLDER / name
        is_ours = (
            hook.is_file() and not hook.is_symlink() and files.read_if_any(hook) == text.encode()
        )
        if is_ours and not git.is_tracked(root, f"{git_hooks.FOLDER}/{name}"):
            yield Step(f"{hook}: a git hook", hook.unlink)
