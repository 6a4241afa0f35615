"""Files, vaults and commits as tests write them."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import datetime
from pathlib import Path

from tests.support.commands import run
from vault_index.vault import Vault

LESSON = """\
---
title: {title}
---
{text}
"""


def lesson_text(title: str, text: str) -> str:
    """Return a small lesson file."""
    return LESSON.format(title=json.dumps(title), text=text)


MakeVault = Callable[..., Vault]


def write(path: Path, content: str | bytes) -> Path:
    """Write a file and the folders above it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def commit(root: Path, message: str = "a change", at: datetime | None = None) -> None:
    """Commit everything in a repository, now or at a time."""
    run("git", "add", "-A", cwd=root)
    env = {"GIT_COMMITTER_DATE": at.isoformat()} if at else {}
    run("git", "commit", "-q", "-m", message, cwd=root, env=env)
