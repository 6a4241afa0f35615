"""Conversations: by unguessable ids in memory, by names in private files for those who want it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.files import MakeVault
from vault_index.ask import conversations
from vault_index.ask.conversations import Exchange, turns
from vault_index.features import AskTable
from vault_index.vault import Vault, open_vault

SECRET = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"


def recording(vault: Vault) -> Vault:
    return open_vault(vault.root, ask_record=True, journal_retention_days=365)


def is_written(home: Path, text: str) -> bool:
    """Whether a text is anywhere in the database."""
    return any(text.encode() in file.read_bytes() for file in home.glob("state.sqlite*"))


def another_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """Forget what this process has in memory."""
    monkeypatch.setattr(conversations, "_in_memory", type(conversations._in_memory)())


def test_the_last_exchanges_are_kept_by_id(make_vault: MakeVault, own_world: Path) -> None:
    vault = make_vault()
    begun = conversations.open_(vault)
    assert len(begun.id) >= 30
    conversations.add(vault, begun, Exchange("question 0", "answer 0"))
    for number in range(1, 4):
        current = conversations.open_(vault, begun.id)
        conversations.add(vault, current, Exchange(f"question {number}", f"answer {number}"))
    kept = conversations.open_(vault, begun.id)
    assert [each.question for each in kept.exchanges] == ["question 2", "question 3"]
    assert not is_written(own_world, "answer 3")


@pytest.mark.parametrize("guess", ["", "nobody-knows-this-id", "../../etc/passwd", "a" * 10_000])
def test_an_id_that_nobody_knows_begins_a_new_conversation(
    make_vault: MakeVault, guess: str
) -> None:
    vault = make_vault()
    for place in (vault, recording(vault)):
        opened = conversations.open_(place, guess)
        assert opened.exchanges == ()
        assert opened.id not in ("", guess)


def test_an_id_that_a_client_chose_is_its_own(
    make_vault: MakeVault, own_world: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for vault in (make_vault(name="one"), recording(make_vault(name="other"))):
        begun = conversations.open_(vault, "run-7", owner="a client")
        conversations.add(vault, begun, Exchange("q", "a"))
        if vault.config[AskTable].record:
            another_process(monkeypatch)
            assert not is_written(own_world, "run-7")
        again = conversations.open_(vault, "run-7", owner="a client")
        assert [each.question for each in again.exchanges] == ["q"]
        assert conversations.open_(vault, "run-7", owner="another").exchanges == ()
        assert conversations.open_(vault, "run-7").exchanges == ()


def test_a_recorded_conversation_goes_on_in_another_process(
    make_vault: MakeVault, own_world: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    vault = recording(make_vault())
    begun = conversations.open_(vault, name="rollback")
    conversations.add(vault, begun, Exchange(f"is {SECRET} ours?", "Yes."))
    another_process(monkeypatch)
    assert conversations.open_(vault, begun.id).name == "rollback"
    again = conversations.open_(vault, name="rollback")
    assert (again.id, len(again.exchanges)) == (begun.id, 1)
    assert conversations.open_(vault, "rollback").id != begun.id  # a name is no id
    assert is_written(own_world, "rollback")
    assert not is_written(own_world, SECRET)


def test_numbers_of_earlier_answers_are_not_sent_again() -> None:
    sent = turns([Exchange("how?", "Raise it [1][2]. So [3].")])
    assert [turn.text for turn in sent] == ["how?", "Raise it. So."]
