"""What git knows and does, in three parts: how it is run, what commits say, what is checked out.

A folder that is no repository, or one git refuses to read, is an ordinary case: there is then
nothing to know.
"""

from vault_index.git.checkout import (
    CHANGED_FILES,
    RECENT_COMMITS,
    Activity,
    Worktree,
    active_hooks,
    activity,
    configure,
    current_branch,
    editor,
    git_path,
    head,
    reflog,
    setting,
    staged,
    staged_content,
    start_repository,
    top,
    worktree,
)
from vault_index.git.commits import (
    Change,
    Provenance,
    Version,
    archive,
    at_date,
    count,
    history,
    last_change,
    outgoing,
    resolve,
    tree,
    versions,
)
from vault_index.git.process import command
from vault_index.git.vouched import Voucher, contents, vouchers

__all__ = [
    "CHANGED_FILES",
    "RECENT_COMMITS",
    "Activity",
    "Change",
    "Provenance",
    "Version",
    "Voucher",
    "Worktree",
    "active_hooks",
    "activity",
    "archive",
    "at_date",
    "command",
    "configure",
    "contents",
    "count",
    "current_branch",
    "editor",
    "git_path",
    "head",
    "history",
    "last_change",
    "outgoing",
    "reflog",
    "resolve",
    "setting",
    "staged",
    "staged_content",
    "start_repository",
    "top",
    "tree",
    "versions",
    "vouchers",
    "worktree",
]
