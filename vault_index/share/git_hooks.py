"""The git hooks of a vault, and the merge driver for its files: what `lessons init` puts in place.

Hooks are programs, and a vault comes from anyone. So hooks that are there and are not exactly ours
are never switched on, and never overwritten.
"""

from __future__ import annotations

import os
import re
import shlex
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from vault_index import files, git
from vault_index.check.finding import from_here
from vault_index.errors import WriteError

FOLDER = ".githooks"
ATTRIBUTES = "lessons/**/*.md merge=lessons"
REFUSED = 92  # a status that no program ends with by accident, broken, killed or another one
PROGRAM = "lessons.program"  # in the clone's own settings of git: for a shell without our PATH
_LOOK = f"lessons=$(command -v lessons || git config {PROGRAM})"
DRIVER = (
    f'{_LOOK}; [ ! -x "$lessons" ] || "$lessons" merge-driver %A %B %O 2>/dev/null ||'
    ' echo "lessons: warning: lessons ended with status $?; git merges lists by line" >&2;'
    f" {git.MERGE_FILE}"
)
CHECK = f"""\
{_LOOK}
[ -x "$lessons" ] || {{
  echo "lessons: warning: lessons were not checked, for the program is not on the PATH" >&2
  exit 0
}}
vault=${{0%/*}}/..
# what it says comes as it is said; what is captured is of a program that does not run
said=$(LESSONS_HOOK_FD=3 "$lessons" --vault "$vault" check --staged --error-status {REFUSED} 3>&2 2>&1)
status=$?
if [ $status != 0 ] && [ $status != {REFUSED} ]; then
  last=$(printf '%s\\n' "$said" | tail -n 1)
  echo "lessons: warning: lessons were not checked, status $status: $last" >&2
  exit 0
fi
[ -z "$said" ] || printf '%s\\n' "$said" >&2
[ $status = 0 ] || exit 1
"""
_CHECK = f"""\
#!/bin/sh
# lessons: checks the lessons of the commit. Without it, once: git commit --no-verify
{CHECK}"""
_TELL = f"""\
#!/bin/sh
# lessons: tells the watcher that lessons may have changed; waits for nothing, never fails
hook=$(command -v lessons-hook || echo "$(git config {PROGRAM})-hook")
[ -x "$hook" ] || exit 0
("$hook" git "${{0%/*}}/.." </dev/null >/dev/null 2>&1 &)
exit 0
"""
HOOKS = {
    "pre-commit": _CHECK,
    **dict.fromkeys(("post-checkout", "post-commit", "post-merge", "post-rewrite"), _TELL),
}


@dataclass(frozen=True, slots=True)
class HooksResult:
    """The work of `set_up`; `chain` says how to call our hooks from those that exist already."""

    hooks: bool = False
    driver: bool = False
    chain: str = ""


def set_up(root: Path) -> HooksResult:
    """Put hooks and merge driver of the vault at `root` in place; a second run changes nothing.

    Raises WriteError, GitError.
    """
    folder = root / FOLDER
    files.refuse_links(folder, root)
    git.configure(root, "merge.lessons.name", "lesson files: lists as sets, the rest by line")
    driver = git.configure(root, "merge.lessons.driver", DRIVER)
    driver = files.add_line(root / ".gitattributes", ATTRIBUTES) or driver
    # the command that runs, or is beside Python
    beside = (Path(sys.argv[0]).absolute(), Path(sys.executable).parent / "lessons")
    if program := next(
        (path for path in beside if path.name == "lessons" and path.is_file()), None
    ):
        git.configure(root, PROGRAM, str(program))
    top = git.top(root)
    wanted = os.path.relpath(folder, top)
    configured = git.setting(root, "core.hooksPath")
    if configured and configured != wanted:
        return HooksResult(driver=driver, chain=_chain(git.git_path(root, "hooks"), top))
    present = {name: _content(folder / name) for name in HOOKS}
    missing = [name for name in HOOKS if present[name] is None]
    ours = [name for name in HOOKS if present[name] == HOOKS[name]]
    foreign = HOOKS.keys() - {*missing, *ours}
    active = git.active_hooks(root) if not configured else []
    if foreign or active:
        hooks_folder = folder if foreign else Path(active[0]).parent
        switch = f"; to switch them on: {_switch(root)}" if foreign else ""
        return HooksResult(driver=driver, chain=_chain(hooks_folder, top) + switch)
    with files.writing(folder):
        folder.mkdir(exist_ok=True)
        for name, text in HOOKS.items():
            if name in missing:
                files.put_file(folder / name, text.encode(), expected=None, within=root)
            (folder / name).chmod(0o755)
    git.configure(root, "core.hooksPath", wanted)
    return HooksResult(bool(missing) or not configured, driver)


# Hooks of others, and the files in which programs that write such hooks keep what they run.
_RUN = "lessons check --staged"
_MANAGED = (
    "lefthook.yml .lefthook.yml lefthook.toml .pre-commit-config.yaml .overcommit.yml"
    " .husky/pre-commit".split()
)
_CALLS = re.compile(r"^[^#\n]*\blessons\b[^#\n]*\bcheck\b", re.MULTILINE)


def _to_add(folder: Path, top: Path) -> str:
    """Return the step by which the hooks in a folder check lessons, "" if they do."""
    hook = folder / "pre-commit"
    managed = [file for name in _MANAGED if (file := top / name).is_file()]
    if folder.name == "_":  # of husky, which writes it anew with each install
        managed.insert(0, folder.parent / "pre-commit")
    if any(_CALLS.search(_content(file) or "") for file in (hook, *managed)):
        return "" if os.access(hook, os.X_OK) else f"chmod +x {shlex.quote(from_here(hook))}"
    return f"have {from_here(managed[0] if managed else hook)} run `{_RUN}`"


def troubles(root: Path) -> Iterator[tuple[str, str]]:
    """Yield each difference from `set_up`, with its fix.

    Hooks that somebody chose stay, as long as they check commits.
    """
    folder, configured = git.git_path(root, "hooks"), git.setting(root, "core.hooksPath")
    is_ours = os.path.realpath(folder) == os.path.realpath(root / FOLDER)
    missing = [name for name in HOOKS if is_ours and _content(folder / name) is None]
    if not configured and not git.active_hooks(root):
        is_edited = any(_content(root / FOLDER / name) not in (None, HOOKS[name]) for name in HOOKS)
        yield "the git hooks are not switched on", _switch(root) if is_edited else "lessons init"
    elif missing:
        yield f"{FOLDER} has no {', '.join(missing)}", "lessons init"
    elif to_add := _to_add(folder, git.top(root)):
        yield f"the git hooks in {from_here(folder)} check no lessons", to_add
    elif git.setting(root, "merge.lessons.driver") != DRIVER:
        yield "the merge driver is missing, or from another version", "lessons init"
    if unused := _unused(root, folder) if configured else []:
        names = ", ".join(file.name for file in unused)
        where = from_here(unused[0].parent)
        yield (
            f"{names} in {where} does not run: core.hooksPath is {configured}",
            f"move it to {from_here(folder)}, or call it from there",
        )


def _unused(root: Path, folder: Path) -> list[Path]:
    """Return the hooks in git's own folder that no hook in the folder of hooks calls."""
    texts = [_content(file) or "" for file in folder.glob("*") if file.is_file()]
    hooks = [Path(hook) for hook in git.active_hooks(root, default=True)]
    return [hook for hook in hooks if not any(f"hooks/{hook.name}" in text for text in texts)]


def _content(file: Path) -> str | None:
    try:
        data = files.read_if_any(file)
        return None if data is None else data.decode("utf-8")
    except (WriteError, UnicodeDecodeError):  # a link, a pipe
        return ""


def _chain(folder: Path, top: Path) -> str:
    to_add = _to_add(folder, top)
    ours = f"; to add ours: {to_add}, and" if to_add else " and check lessons;"
    return (
        f"git hooks are in {from_here(folder)} already{ours} call"
        " `lessons-hook git . &` in post-commit, post-merge, post-checkout and post-rewrite there"
    )


def _switch(root: Path) -> str:
    """Return the command that has git run hooks of ours that somebody added to, and has to trust."""
    return f"git config core.hooksPath {shlex.quote(os.path.relpath(root / FOLDER, git.top(root)))}"
