"""Teaching: a prompt goes into the lesson's file, acts at the next prompt, and goes out of it again."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.commands import run
from tests.support.files import lesson_text, write
from tests.support.given import given_to
from vault_index import api, client
from vault_index.api.injection import TeachResult
from vault_index.errors import VaultError
from vault_index.index import reconcile
from vault_index.retrieval import entries
from vault_index.store import delivery, injections
from vault_index.vault import Vault

BATTERY = "the phone app runs out of battery"
FILE = (
    b"\xef\xbb\xbf---\r\ntags: [node]   # of the build\r\nsilent_on: ['a flat tyre']\r\n"
    b'title: Heap\r\nfires_on: ["the build is out of heap"]\r\n---\r\nRaise the heap.\r\n'
)

FILES = {"ops/heap.md": FILE, "ops/lock.md": lesson_text("Lock", "It waits.")}


def say(vault: Vault, **values: Any) -> TeachResult:
    given = {"name": "heap", "kind": "silent_on", **values}
    return client.ask(vault, api.injection.teach_lesson(**given))


def injected(vault: Vault, prompt: str) -> list[str]:
    answer = client.ask(vault, api.search.recall(query=prompt))
    return [hit.lesson_id for hit in answer.hits]


def content(vault: Vault) -> bytes:
    return (vault.lessons_dir / "ops/heap.md").read_bytes()


@pytest.mark.slow
def test_only_the_one_line_changes_and_once(team: Vault) -> None:
    done = say(team, prompt=f"  {BATTERY}\n")
    written = FILE.replace(b"['a flat tyre']", f"[a flat tyre, {BATTERY}]".encode())
    assert content(team) == written
    assert (done.prompt, done.changed, done.acts) == (BATTERY, True, True)
    again = say(team, prompt=BATTERY.upper())
    assert (content(team), again.changed) == (written, False)
    assert say(team, prompt=BATTERY, undo=True).changed
    assert content(team) == FILE.replace(b"['a flat tyre']", b"[a flat tyre]")
    assert not say(team, prompt=BATTERY, undo=True).changed


@pytest.mark.slow
def test_a_taught_prompt_acts_at_once_and_above_any_floor(team: Vault) -> None:
    prompt = "run the whole thing please"
    assert injected(team, prompt) == []
    done = say(team, kind="fires_on", prompt=prompt)
    assert (done.id, done.acts, done.changed) == ("ops/heap", True, True)
    assert injected(team, "Run the  WHOLE thing please") == ["ops/heap"]
    assert say(team, kind="fires_on", prompt=prompt, undo=True).changed
    assert injected(team, prompt) == []


@pytest.mark.slow
def test_what_is_taught_last_counts_and_undo_restores_what_was(team: Vault) -> None:
    prompt = "the build is out of heap"
    assert injected(team, prompt) == ["ops/heap"]
    done = say(team, prompt=prompt)
    assert done.acts
    assert injected(team, prompt) == []
    lesson = entries.entry(team, "heap")
    assert (lesson.fires_on, lesson.silent_on) == ((), ("a flat tyre", prompt))
    say(team, prompt=prompt, undo=True)
    lesson = entries.entry(team, "heap")
    assert (lesson.fires_on, lesson.silent_on) == ((prompt,), ("a flat tyre",))
    assert injected(team, prompt) == ["ops/heap"]


@pytest.mark.parametrize(
    ("prompt", "said"),
    [
        ("thanks, looks good", "hooks never search for this prompt"),
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


@pytest.mark.slow
def test_a_mark_is_of_one_injection_and_survives_a_rename(team: Vault) -> None:
    key = delivery.key_of("some prompt")
    for session in ("s1", "s2"):
        given_to(team, ("ops/heap",), session=session, prompt="some prompt")
    say(team, prompt=BATTERY, session="s1", key=key)
    injections.rename(team.config.home, team.root, {"ops/heap": "ops/node"})
    (team.lessons_dir / "ops/heap.md").rename(team.lessons_dir / "ops/node.md")
    reconcile.sync(team)

    def marked() -> dict[str, bool]:
        answer = client.ask(team, api.injection.select())
        assert answer.totals.marked == sum(
            each.lessons[0].taught == "silent_on" for each in answer.records
        )
        assert {each.lessons[0].id for each in answer.records} == {"ops/node"}
        return {each.session: each.lessons[0].taught == "silent_on" for each in answer.records}

    assert marked() == {"s1": True, "s2": False}
    say(team, name="ops/node", session="s1", key=key, undo=True)
    assert marked() == {"s1": False, "s2": False}
    assert b"battery" not in (team.lessons_dir / "ops/node.md").read_bytes()


# lines of failures, at the command line


@pytest.mark.slow
def test_a_line_that_any_failure_has_is_refused(team: Vault) -> None:
    words = ("lessons", "teach", "--error", "command failed", "--fires", "ops/lock")
    refused = run(*words, cwd=team.root, check=False)
    assert refused.code == 1
    assert "many failures say this" in refused.err
    text = lesson_text("Lock", "It waits.").replace(
        "---\n", "---\nfires_on_error: [command failed]\n", 1
    )
    write(team.lessons_dir / "ops/lock.md", text)
    checked = run("lessons", "check", cwd=team.root, check=False)
    assert checked.code == 1
    assert "many failures say 'command failed'" in checked.out
