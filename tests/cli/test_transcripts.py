"""What is typed and what is printed, a file per command: `tests/transcripts/*.txt`.

A line that begins with `$ ` is typed in the vault of `FILES`; the lines below it are what comes back:
stdout as it is, stderr after `! `, then the exit status if it is not 0. What differs from run to run
(hashes, sizes, ages) is replaced. After a change of the output, rewrite the files and read the diff:

    pytest tests/cli/test_transcripts.py --rewrite-transcripts
"""

from __future__ import annotations

import os
import re
from datetime import UTC, datetime, timedelta
from pathlib import Path

import click
import pytest

from tests.support.commands import BIN, typed
from tests.support.conversations import about_redirects, about_retries
from tests.support.files import MakeVault, commit, lesson_text, write
from tests.support.indexed import kept_on
from tests.support.places import TESTS
from vault_index.entrypoints.cli import main
from vault_index.vault import Vault

TRANSCRIPTS = TESTS / "transcripts"
PARTS = {  # of a command, each with a file of its own
    "accept": "review accept",
    "classify": "categories propose",
    "confirm": "check --confirm",
    "doctor": "status --check",
    "mv": "categories rename",
    "proposals": "review list",
    "reject": "review reject",
    "stale": "check --stale",
}
COMMANDS = [*main.list_commands(click.Context(main)), *PARTS]
FILES = {
    "devops/ci-cd/heap.md": "---\ntitle: Raise the heap\ntags: [node, ci]\ntype: bug_fix\n---\n"
    "When the build dies with heap out of memory, set NODE_OPTIONS=--max-old-space-size=4096.\n",
    "devops/docker/limits.md": lesson_text("Container limits", "Set a memory limit of 2 GB."),
    "conventions.md": "## Lesson: Dates are UTC\nStore dates in UTC.\n\n"
    "## Lesson: Ids are opaque\nDo not parse an id.\n",
}
SKILL = "---\nname: review-pr\ndescription: Review a pull request\n---\nRead the diff first.\n"
# their transcripts begin where there is no index
NOT_INDEXED = ("categories", "doctor", "index", "list", "show", "status")
REPLACED = (
    (r"\b(?=[a-f]*\d)[0-9a-f]{7,40}\b", "HASH"),
    (r"[\d,]*\d(\.\d+)? (MB|KB|bytes)\b", "SIZE"),
    (r"\bSIZE of \d+ files\b", "SIZE of N files"),
    (r"\d+ (second|minute)s? ago", "AGE ago"),
    (r"\b\d+(\.\d+)? m?s\b", "TIME"),
    (r"\b0\.\d{3,}\b|(?<=\"score\": )0\.\d+", "0.NNN"),
    (r"\b\d{1,2}\.\d% *", "N.N% "),
    (r'"session_id": "[\w-]{32}"', '"session_id": "ID"'),
    (r"\(\d+%\)", "(NN%)"),
    (r"\b20\d\d-\d\d-\d\d(T[\d:.]+(Z|\+00:00)| \d\d:\d\d\b)?", "DATE"),
)


@pytest.fixture
def team(
    make_vault: MakeVault,
    monkeypatch: pytest.MonkeyPatch,
    shelves: Path,
    tmp_path: Path,
    request: pytest.FixtureRequest,
) -> Vault:
    """A committed vault of four lessons and a skill, and two sessions that an agent kept."""
    monkeypatch.setenv("PATH", f"{BIN}:{os.environ['PATH']}")
    monkeypatch.delenv("VIRTUAL_ENV", raising=False)  # `install` warns of an active environment
    for name in ("GIT_AUTHOR_DATE", "GIT_COMMITTER_DATE"):
        monkeypatch.setenv(name, "2026-01-05T10:00:00Z")

    def make(name: str = "first") -> Vault:
        vault = make_vault(FILES, name=name)
        write(vault.root / "skills" / "review-pr" / "SKILL.md", SKILL)
        commit(vault.root, "What the heap taught us")
        return vault

    is_fresh = request.node.callspec.params["name"] in NOT_INDEXED
    vault = make("team") if is_fresh else kept_on(shelves / "typed", make, tmp_path / "team")
    began = datetime(2026, 1, 5, 10, tzinfo=UTC)
    about_redirects(vault.root, began=began)
    about_retries(vault.root, began=began + timedelta(hours=2))
    return vault


def printed(command: str, vault: Vault) -> str:
    """Return what a command line prints in the vault, with what differs from run to run replaced."""
    ran = typed(command, cwd=vault.root, check=False)
    lines = ran.out.splitlines() + [f"! {line}" for line in ran.err.splitlines()]
    if ran.code:
        lines.append(f"[exit status {ran.code}]")
    text = "".join(f"{line}\n" for line in lines)
    text = text.replace(str(vault.root), "~/team").replace(str(vault.root.parent), "~")
    text = text.replace(str(BIN), "BIN")
    for pattern, word in REPLACED:
        text = re.sub(pattern, word, text)
    return text


@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    COMMANDS,
)
def test_a_command_prints_what_its_transcript_says(
    team: Vault, name: str, request: pytest.FixtureRequest
) -> None:
    file = TRANSCRIPTS / f"{name}.txt"
    before = file.read_text("utf-8")
    commands = re.findall(r"(?m)^\$ (.+)$", before)
    assert any(f"lessons {PARTS.get(name, name)}" in command for command in commands)
    after = "".join(f"$ {command}\n{printed(command, team)}" for command in commands)
    if request.config.getoption("--rewrite-transcripts"):
        file.write_text(after, "utf-8")
    else:
        assert after == before


def test_each_transcript_is_of_a_command() -> None:
    assert {file.stem for file in TRANSCRIPTS.glob("*.txt")} == set(COMMANDS)
