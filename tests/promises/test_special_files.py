"""A pipe, a device and a huge file hang nothing and fill no memory, wherever others may have put them."""

from __future__ import annotations

import json
import os
import resource
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.support.commands import BIN, Ran, run
from tests.support.conversations import Conversation
from tests.support.files import commit, write
from vault_index.journal import waiting
from vault_index.journal.journal import Journal
from vault_index.vault import Vault

pytestmark = pytest.mark.slow

SECONDS = 30
MORE_BYTES = 2 << 30  # of addresses, beside those that a process has


def a_pipe(place: Path) -> None:
    os.mkfifo(place)


def an_endless_device(place: Path) -> None:
    place.symlink_to("/dev/zero")


def a_huge_file(place: Path) -> None:
    with place.open("wb") as file:
        file.truncate(1 << 40)


def a_folder(place: Path) -> None:
    place.mkdir()


def a_circle(place: Path) -> None:
    place.symlink_to(place.name)


KINDS = [a_pipe, an_endless_device, a_huge_file]
ALL_KINDS = [*KINDS, a_folder, a_circle]
# files that agents, a clone or an archive bring, in the user's home or the project
OF_THE_HOME = (
    *(".claude/settings.json", ".codex/hooks.json", ".codex/config.toml", ".gemini/settings.json"),
    *(".cursor/hooks.json", ".copilot/hooks/lessons.json", ".config/opencode/plugins/lessons.js"),
    *(".claude/skills/made/SKILL.md", ".claude/commands/lessons/learn.md", "config.toml"),
)
OF_THE_PROJECT = (
    *(".claude/settings.json", ".claude/settings.local.json", ".codex/hooks.json"),
    *(".gemini/settings.json", ".cursor/hooks.json", ".github/hooks/lessons.json"),
    *(".mcp.json", "AGENTS.md", "CLAUDE.md", ".gitattributes", ".gitmodules"),
    *("lessons/vault.toml", "lessons/new.md", "lessons/heap.md", "lessons/inbox/x.md"),
    *("skills/made/SKILL.md", "skills/learned-x/SKILL.md", ".claude/skills/made/SKILL.md"),
    *(".githooks/pre-commit", ".git/hooks/pre-commit"),  # for others git itself waits a minute
)
COMMANDS = (
    *("status", "status --check", "list", "search lock", "check", "index", "config", "vaults"),
    *("install claude --project", "install codex", "uninstall claude", "install agents-md"),
    *("skills build --dry-run", "recall what waits for a lock", "init", "log lock"),
    *("import CLAUDE.md", "import . --as markdown", "categories", "check --staged"),
    *("config set prompt_lessons 2", "learn --files CLAUDE.md --dry-run"),
)


@contextmanager
def within_limits() -> Iterator[None]:
    """Fail what waits for a pipe, and what reads without end."""

    def end(*_: object) -> None:
        raise AssertionError(f"it took {SECONDS} s")

    before, (soft, hard) = (
        signal.signal(signal.SIGALRM, end),
        resource.getrlimit(resource.RLIMIT_AS),
    )
    now = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (now + MORE_BYTES, hard))
    signal.alarm(SECONDS)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))


def typed(line: str, folder: Path) -> Ran:
    with within_limits():
        done = run("lessons", *line.split(), cwd=folder, check=False)
    assert done.code in (0, 1, 2), (line, done)
    assert "a bug of lessons" not in done.out + done.err, (line, done)
    assert "MemoryError" not in done.out + done.err, (line, done)
    return done


def put(place: Path, kind: Callable[[Path], None]) -> None:
    place.parent.mkdir(parents=True, exist_ok=True)
    place.unlink(missing_ok=True)
    kind(place)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", OF_THE_HOME)
def test_in_the_home_of_a_user(
    team: Vault, own_world: Path, name: str, kind: Callable[[Path], None]
) -> None:
    run("git", "add", "-A", cwd=team.root)
    put(own_world / name, kind)
    for line in COMMANDS:
        typed(line, team.root)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", OF_THE_PROJECT)
def test_in_a_project(
    team: Vault, own_world: Path, name: str, kind: Callable[[Path], None]
) -> None:
    run("git", "add", "-A", cwd=team.root)
    put(team.root / name, kind)
    for line in COMMANDS:
        typed(line, team.root)


@pytest.mark.parametrize("kind", ALL_KINDS)
def test_settings_of_an_agent_that_are_no_file_are_named(
    team: Vault, own_world: Path, kind: Callable[[Path], None]
) -> None:
    settings = own_world / ".claude/settings.json"
    put(settings, kind)
    for line in ("install claude", "status --check"):
        done = typed(line, team.root)
        assert (done.code, str(settings) in done.out + done.err) == (1, True)


@pytest.mark.parametrize("kind", [a_pipe, an_endless_device, a_folder, a_circle])
def test_a_transcript_that_is_no_file(
    team: Vault, own_world: Path, kind: Callable[[Path], None]
) -> None:
    write(own_world / "journal/recorded", "*\n")
    talk = Conversation(team.root, "hostile").asks("Fix the login of the shop, please")
    talk.file.unlink()
    kind(talk.file)
    with within_limits():
        assert run("lessons-hook", cwd=team.root, stdin=json.dumps(talk.event("Stop"))).out == ""
        said: list[str] = []
        waiting.catch_up(Journal(team.config), said.append)
    assert all("cannot be read" in each for each in said)
    typed("journal import --since all", team.root)
    typed("learn --session last --why", team.root)


@pytest.mark.parametrize("kind", ALL_KINDS)
def test_a_file_of_a_project_that_is_named(team: Vault, kind: Callable[[Path], None]) -> None:
    place = team.root / "CLAUDE.md"
    kind(place)
    for line in ("import CLAUDE.md", "add --title T CLAUDE.md", "eval CLAUDE.md",
                 "learn --files CLAUDE.md --dry-run", "check CLAUDE.md"):  # fmt: skip
        assert typed(line, team.root).code in (1, 2), line


def test_what_a_person_names_may_be_a_pipe_and_ends_at_a_limit(team: Vault) -> None:
    run("git", "init", "-q", cwd=team.root)
    done = run(
        "bash", "-c", f"{BIN}/lessons add --title Emus <(echo 'An emu runs.')", cwd=team.root
    )
    assert done.out.strip().endswith("emus.md")
    commit(team.root)
    for line in ("add --title T /dev/zero", "import /dev/zero", "eval /dev/zero",
                 "check --against HEAD --prompts /dev/zero"):  # fmt: skip
        done = typed(line, team.root)
        assert (done.code, "/dev/zero is larger than 64 MB" in done.err) == (1, True), (line, done)
