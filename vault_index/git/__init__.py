"""What git knows and does, in three parts: how it is run, what commits say, what is checked out.

A folder that is no repository, or one git refuses to read, is an ordinary case: there is then
nothing to know.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from vault_index.git.checkout import (
        active_hooks,
        activity,
        commit_file,
        configure,
        current_branch,
        editor,
        files,
        git_path,
        ignored,
        reflog,
        root_commit,
        setting,
        staged,
        staged_content,
        start_repository,
        top,
        worktree,
    )
    from vault_index.git.commits import (
        Provenance,
        Voucher,
        archive,
        at_date,
        contents,
        count,
        deleted,
        history,
        last_change,
        messages,
        outgoing,
        resolve,
        tree,
        versions,
        vouchers,
    )
    from vault_index.git.past import (
        Past,
        base_at,
        between,
        difference,
        look_back,
        overwritten_files,
        parent,
    )
    from vault_index.git.plain import (
        branch_of,
        common_folder,
        index_file,
        origin_of,
        top_of,
    )
    from vault_index.git.run import command, head, is_full, is_tracked

__all__ = [
    "Past",
    "Provenance",
    "Voucher",
    "active_hooks",
    "activity",
    "archive",
    "at_date",
    "base_at",
    "between",
    "branch_of",
    "command",
    "commit_file",
    "common_folder",
    "configure",
    "contents",
    "count",
    "current_branch",
    "deleted",
    "difference",
    "editor",
    "files",
    "git_path",
    "head",
    "history",
    "ignored",
    "index_file",
    "is_full",
    "is_tracked",
    "last_change",
    "look_back",
    "messages",
    "origin_of",
    "outgoing",
    "overwritten_files",
    "parent",
    "reflog",
    "resolve",
    "root_commit",
    "setting",
    "staged",
    "staged_content",
    "start_repository",
    "top",
    "top_of",
    "tree",
    "versions",
    "vouchers",
    "worktree",
]

# A part is loaded when something of it is asked for: all of them take half a bare Python's start.
_PARTS = (
    "plain",
    "run",
    "checkout",
    "commits",
    "past",
)


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(name)
    for part in _PARTS:
        module = importlib.import_module(f"{__name__}.{part}")
        if name in vars(module):
            globals()[name] = vars(module)[name]
            return globals()[name]
    raise AttributeError(name)
