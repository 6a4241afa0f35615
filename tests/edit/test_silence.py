"""An injection that should not have been: its prompt goes into the lesson's file, and out of it again."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.support.files import MakeVault, lesson_text
from vault_index import client, files
from vault_index.edit import silence
from vault_index.errors import ChangedError, LessonError, VaultError
from vault_index.index import reconcile
from vault_index.search import entries, floor
from vault_index.store import injections
from vault_index.vault import Vault

BATTERY = "the phone app runs out of battery"
FILE = (
    b"\xef\xbb\xbf---\r\ntags: [node]   # of the build\r\nsilent_on: ['a flat tyre']\r\n"
    b'title: Heap\r\nfires_on: ["the build is out of heap"]\r\n---\r\nRaise the heap.\r\n'
)


@pytest.fixture
def team(make_vault: MakeVault, monkeypatch: pytest.MonkeyPatch) -> Vault:
    monkeypatch.setenv("LESSONS_EMBEDDER", "none")
    vault = make_vault({"ops/heap.md": FILE, "ops/lock.md": lesson_text("Lock", "It waits.")})
    reconcile.sync(vault)
    floor.fit(vault)
    return vault


def say(vault: Vault, **values: Any) -> dict[str, Any]:
    return client.ask(vault, {"ask": "silence", "with": {"name": "heap", **values}})


def content(vault: Vault) -> bytes:
    return (vault.lessons_dir / "ops/heap.md").read_bytes()


def test_only_the_one_line_changes_and_once(team: Vault) -> None:
    done = say(team, prompt=f"  {BATTERY}\n")
    written = FILE.replace(b"['a flat tyre']", f"[a flat tyre, {BATTERY}]".encode())
    assert content(team) == written
    assert (done["prompt"], done["changed"], done["still"]) == (BATTERY, True, False)
    again = say(team, prompt=BATTERY.upper())
    assert (content(team), again["changed"]) == (written, False)
    assert say(team, prompt=BATTERY, undo=True)["changed"]
    assert content(team) == FILE.replace(b"['a flat tyre']", b"[a flat tyre]")
    assert not say(team, prompt=BATTERY, undo=True)["changed"]


def test_it_says_whether_the_prompt_still_finds_the_lesson(team: Vault) -> None:
    assert say(team, prompt="raise the heap of the heap")["still"]


@pytest.mark.parametrize(
    ("prompt", "said"),
    [
        ("The build is out of heap", "names this prompt in fires_on"),
        ("word " * 101, "too long"),
        ("log in with password: hunter2-Xy7Zq", "holds a secret"),
        ("  \n", "was not kept"),
    ],
)
def test_a_prompt_that_does_not_go_into_a_file_is_refused(
    team: Vault, prompt: str, said: str
) -> None:
    with pytest.raises(VaultError, match=said) as raised:
        say(team, prompt=prompt)
    assert raised.value.hint
    assert content(team) == FILE


def test_a_file_that_was_saved_meanwhile_stays(
    team: Vault, monkeypatch: pytest.MonkeyPatch
) -> None:
    file, change = team.lessons_dir / "ops/heap.md", files.change_file

    def change_late(path: Path, data: bytes, **more: Any) -> None:
        file.write_bytes(b"Saved.\n")
        change(path, data, **more)

    monkeypatch.setattr(files, "change_file", change_late)
    with pytest.raises(ChangedError):
        silence.write(team, entries.entry(team, "heap"), BATTERY)
    assert file.read_bytes() == b"Saved.\n"


def test_frontmatter_that_nobody_edits_by_program_is_left(team: Vault) -> None:
    (team.lessons_dir / "ops/lock.md").write_bytes(b"---\n{title: Lock}\n---\nIt waits.\n")
    with pytest.raises(LessonError):
        say(team, name="lock", prompt=BATTERY)


@pytest.mark.slow
def test_a_mark_is_of_one_injection_and_survives_a_rename(team: Vault) -> None:
    folder, key = team.index_dir, injections.key_of("some prompt")
    for session in ("s1", "s2"):
        injections.record(
            folder, "UserPromptSubmit", session, "some prompt", [("ops/heap", 0.9)], [], 0.5, 9.0,
            "process",
        )  # fmt: skip
    say(team, prompt=BATTERY, session="s1", key=key)
    injections.rename(folder, {"ops/heap": "ops/node"})
    (team.lessons_dir / "ops/heap.md").rename(team.lessons_dir / "ops/node.md")
    reconcile.sync(team)

    def marked() -> dict[str, bool]:
        answer = client.ask(team, {"ask": "injections", "with": {}})
        assert answer["totals"]["marked"] == sum(
            each["lessons"][0]["is_marked"] for each in answer["records"]
        )
        assert {each["lessons"][0]["id"] for each in answer["records"]} == {"ops/node"}
        return {each["session"]: each["lessons"][0]["is_marked"] for each in answer["records"]}

    assert marked() == {"s1": True, "s2": False}
    say(team, name="ops/node", session="s1", key=key, undo=True)
    assert marked() == {"s1": False, "s2": False}
    assert b"battery" not in (team.lessons_dir / "ops/node.md").read_bytes()
