"""The git hooks of a vault, and the merge driver for its files: what `lessons init` puts in place.

Hooks are programs, and a vault comes from anyone. So hooks that are there and are not exactly ours
are never switched on, and never overwritten.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from vault_index import files, git
from vault_index.errors import WriteError

FOLDER = ".githooks"
ATTRIBUTES = "lessons/**/*.md merge=lessons"
# on a machine without this package git's own merge, which leaves ordinary markers
DRIVER = (
    "if command -v lessons >/dev/null 2>&1; then lessons merge-driver %O %A %B;"
    " else git merge-file %A %O %B; fi"
)
_CHECK = """\
#!/bin/sh
# vault-index: checks the lessons of the commit. Without it, once: git commit --no-verify
command -v lessons >/dev/null 2>&1 || exit 0
exec lessons --vault "${0%/*}/.." check --staged
"""
_TELL = """\
#!/bin/sh
# vault-index: tells the watcher that lessons may have changed; waits for nothing, never fails
command -v lessons-hook >/dev/null 2>&1 || exit 0
(lessons-hook git "${0%/*}/.." </dev/null >/dev/null 2>&1 &)
exit 0
"""
HOOKS = {
    "pre-commit": _CHECK,
    "post-checkout": _TELL,
    "post-commit": _TELL,
    "post-merge": _TELL,
    "post-rewrite": _TELL,
}


@dataclass(frozen=True, slots=True)
class SetUp:
    """What was done; `chain` tells how to call ours from hooks that are there already."""

    hooks: bool = False
    driver: bool = False
    chain: str = ""


def set_up(root: Path) -> SetUp:
    """Put hooks and merge driver of the vault at `root` in place; a second run changes nothing.

    Raises WriteError, GitError.
    """
    folder = root / FOLDER
    files.refuse_links(folder, root)
    driver = _set_up_driver(root)
    wanted = os.path.relpath(folder, git.top(root))
    configured = git.setting(root, "core.hooksPath")
    if configured and configured != wanted:
        return SetUp(driver=driver, chain=_chain(configured))
    foreign = [name for name in HOOKS if _is_foreign(folder / name, HOOKS[name])]
    active = git.active_hooks(root) if not configured else []
    if foreign or active:
        return SetUp(driver=driver, chain=_chain(FOLDER if foreign else active[0]))
    made = not configured
    with files.writing(folder):
        folder.mkdir(exist_ok=True)
        for name, text in HOOKS.items():
            made |= files.create_file(folder / name, text.encode(), within=root)
            (folder / name).chmod(0o755)
    git.configure(root, "core.hooksPath", wanted)
    return SetUp(made, driver)


def _set_up_driver(root: Path) -> bool:
    git.configure(root, "merge.lessons.name", "lesson files: frontmatter by key, body by section")
    changed = git.configure(root, "merge.lessons.driver", DRIVER)
    return files.add_line(root / ".gitattributes", ATTRIBUTES) or changed


def _is_foreign(file: Path, ours: str) -> bool:
    try:
        return files.read_if_any(file) not in (None, ours.encode())
    except WriteError:  # a link, a pipe
        return True


def _chain(where: str) -> str:
    return (
        f"git hooks are in {where} already; to add ours, call `lessons check --staged` in pre-commit"
        " and `lessons-hook git . &` in post-commit, post-merge, post-checkout and post-rewrite"
    )
