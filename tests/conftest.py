"""What tests share: the real model, fetched once as a user's would be, vaults in real git repos, and
the real command line through its entry points."""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.warm import WarmProcess
from vault_index import add
from vault_index.vault import Vault, open_vault

BIN = Path(sys.executable).parent
WARM = WarmProcess()
LESSON = """\
---
title: {title}
---
{text}
"""


def lesson_text(title: str, text: str) -> str:
    """Give a small lesson file."""
    return LESSON.format(title=json.dumps(title), text=text)


@dataclass(frozen=True)
class Ran:
    """What a command printed and how it ended."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


def run(
    *command: str | Path,
    cwd: Path,
    stdin: str = "",
    env: Mapping[str, str] | None = None,
    check: bool = True,
    timeout: float = 120,
) -> Ran:
    """Run a program with a clean environment; `lessons` and `lessons-hook` are the installed ones.

    `lessons` is a fork of a warm process, unless what it does at its start matters to the test.
    """
    words = [str(word) for word in command]
    if words[0] in ("lessons", "lessons-hook"):
        words[0] = str(BIN / words[0])
    environ = {**os.environ, **(env or {})}
    if command[0] == "lessons" and not _needs_own_start(words, env or {}):
        done = WARM.run(words, cwd=cwd, stdin=stdin, env=environ, timeout=timeout)
    else:
        done = subprocess.run(
            words,
            cwd=cwd,
            input=stdin,
            env=environ,
            capture_output=True,
            text=True,
            encoding="utf-8",
            timeout=timeout,
            check=False,
        )
    if check:
        assert done.returncode == 0, f"{words} ended with {done.returncode}: {done.stderr}"
    return Ran(done.returncode, done.stdout, done.stderr)


def _needs_own_start(words: Sequence[str], env: Mapping[str, str]) -> bool:
    """Whether a command stays in the background, or what it reads at its start is another."""
    return "watch" in words or any(
        name == "PATH" or name.startswith(("PYTHON", "LC_", "LANG")) for name in env
    )


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the tests that ask the real model, so that CI can repeat them with other arithmetic."""
    for item in items:
        if "with_model" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.model)


@pytest.fixture(scope="session")
def model_home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A user's folder (`LESSONS_HOME`) with the built-in model, fetched by the command.

    One for all of the processes that run tests side by side.
    """
    folder = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        folder = folder.parent
    home = folder / "home-with-model"
    home.mkdir(exist_ok=True)
    with (folder / "fetching").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        env = {"LESSONS_HOME": str(home), "LESSONS_WATCH_AUTOSTART": "false"}
        run("lessons", "model", "fetch", cwd=home, env=env, timeout=300)
        if not (home / "vectors.sqlite3").exists():  # those of the prompts that no lesson answers
            run("lessons", "init", "vault", cwd=home, env=env)
            run("lessons", "index", cwd=home / "vault", env=env)
    return home


def make_home(home: Path) -> Path:
    """Make a user's folder: the same user in all tests, so that they can share an index."""
    (home / "models").mkdir(parents=True)
    (home / "models" / ".fetch-failed").touch()
    key = home / "index.key"
    key.write_text("5e" * 32)
    key.chmod(0o600)
    return home


@pytest.fixture(scope="session", autouse=True)
def home_of_fixtures(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Keep fixtures that several tests share out of the developer's own home, too."""
    home = make_home(tmp_path_factory.mktemp("shared") / "home")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LESSONS_HOME", str(home))
        patch.setenv("LESSONS_WATCH_AUTOSTART", "false")
        yield home


@pytest.fixture(autouse=True)
def own_world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Keep each test out of the developer's own home, settings and vault: an empty one of its own.

    There is no model in it, and none is fetched: `with_model` gives the real one.
    """
    home = make_home(tmp_path / "home")
    for name in list(os.environ):
        if name.startswith(("LESSONS_", "CLAUDE", "OLLAMA_", "GIT_")):
            monkeypatch.delenv(name)
    monkeypatch.setenv("LESSONS_HOME", str(home))
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("LESSONS_WATCH_AUTOSTART", "false")  # tests of the watcher start their own
    for name, value in (
        ("GIT_CONFIG_NOSYSTEM", "1"),
        ("GIT_AUTHOR_NAME", "Ada Lovelace"),
        ("GIT_AUTHOR_EMAIL", "ada@example.org"),
        ("GIT_COMMITTER_NAME", "Ada Lovelace"),
        ("GIT_COMMITTER_EMAIL", "ada@example.org"),
    ):
        monkeypatch.setenv(name, value)
    return home


@pytest.fixture
def with_model(own_world: Path, model_home: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Let the test's world have the real model. Gives the `LESSONS_HOME` that holds it."""
    (own_world / "models" / ".fetch-failed").unlink()
    (own_world / "models" / "minilm").symlink_to(model_home / "models" / "minilm")
    shutil.copy(model_home / "vectors.sqlite3", own_world)
    return own_world


@pytest.fixture
def make_vault(tmp_path: Path) -> Callable[..., Vault]:
    """Make vaults: `make_vault({"devops/heap.md": "text of the file"}, name="team")`."""

    def make(files: Mapping[str, str | bytes] | None = None, name: str = "team") -> Vault:
        root = tmp_path / name
        add.init(root)
        for path, content in (files or {}).items():
            write(root / "lessons" / path, content)
        return open_vault(root)

    return make


def write(path: Path, content: str | bytes) -> Path:
    """Write a file and the folders above it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def commit(root: Path, message: str = "a change") -> None:
    """Commit everything in a repository."""
    run("git", "add", "-A", cwd=root)
    run("git", "commit", "-q", "-m", message, cwd=root)
