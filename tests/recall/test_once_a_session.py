"""A session gets a lesson once, in whatever form: at a failure the next one is tried."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tests.recall.test_lines import with_floors
from tests.support.commands import run
from tests.support.files import MakeVault, lesson_text, write
from tests.support.floors import USUAL, keep_floors
from tests.support.given import records
from vault_index.hotpath import hook_event
from vault_index.hotpath.hook_event import Event
from vault_index.recall.respond import respond
from vault_index.retrieval.floor import Floors, OfEmbedder
from vault_index.store import delivery
from vault_index.store.delivery import Delivery
from vault_index.vault import Vault, open_vault

pytestmark = pytest.mark.slow

NEVER = 9.0  # a floor that no lesson reaches
PROMPT = "postgres migrations wait for a lock on alter table"
LOCK = "ERROR: alter table waits for a lock and blocks the migrations"
OTHER = "ERROR: alter table blocks: no lock for migrations of the table orders"
FILES = {
    "lock.md": lesson_text(
        "Postgres alter table", "Alter table waits for a lock and blocks the migrations."
    ),
    "timeout.md": lesson_text("Lock timeout", "A lock of a table has a timeout: set lock_timeout."),
    "heap.md": lesson_text("Heap", "The node build runs out of memory: raise the heap limit."),
    "vpn.md": lesson_text("VPN", "Staging deploys hang without the VPN."),
}


def vault_with(make_vault: MakeVault, whole: float, at_failures: float, **files: str) -> Vault:
    """Return a vault where a prompt gets a lesson from `whole` on, and a failure from `at_failures`.

    From .01 on both get at least its line.
    """
    named = {name.replace("_", "."): text for name, text in files.items()}
    vault = with_floors(make_vault(FILES | named), whole, 0.01)
    both = OfEmbedder(Floors(whole, 0.01), Floors(at_failures, 0.01), USUAL.skills)
    keep_floors(vault, both)
    return vault


def prompted(vault: Vault, prompt: str = PROMPT) -> Delivery:
    return _answered(vault, hook_event.PROMPT, prompt=prompt)


def failed(vault: Vault, error: str = LOCK, command: str = "psql", **values: Any) -> Delivery:
    return _answered(vault, hook_event.FAILURE, command=command, error=error, **values)


def _answered(vault: Vault, name: str, **values: Any) -> Delivery:
    respond(vault, Event(name, "s1", cwd=str(vault.root), **values), by="process", ms=0.0)
    return records(vault)[-1]


def forms(record: Delivery) -> dict[str, str]:
    return {each.lesson: each.form for each in record.given}


@pytest.mark.parametrize(("at_failures", "form"), [(0.01, "whole"), (NEVER, "line")])
def test_what_came_whole_at_the_prompt_comes_at_no_failure_and_the_next_one_does(
    make_vault: MakeVault, at_failures: float, form: str
) -> None:
    vault = vault_with(make_vault, 0.01, at_failures)
    keep_floors(vault, OfEmbedder(Floors(0.2, 0.2), Floors(at_failures, 0.01), USUAL.skills))
    write(vault.lessons_dir / "vault.toml", "prompt_lessons = 1\n")
    vault.config = open_vault(vault.root).config
    assert forms(failed(vault)) == {"lock": form}
    delivery.forget_given(vault.config.home, vault.root, "s1")
    assert forms(prompted(vault, "postgres migrations alter")) == {"lock": "whole"}
    assert forms(failed(vault, OTHER)) == {"timeout": form}


def test_a_line_that_the_session_had_hides_no_lesson_behind_it(make_vault: MakeVault) -> None:
    vault = vault_with(make_vault, NEVER, NEVER)
    assert forms(failed(vault)) == {"lock": "line"}
    assert forms(failed(vault, OTHER)) == {"timeout": "line"}


def test_after_a_line_the_lesson_may_come_whole(make_vault: MakeVault) -> None:
    vault = vault_with(make_vault, NEVER, 0.01)
    assert forms(prompted(vault))["lock"] == "line"
    assert forms(failed(vault)) == {"lock": "whole"}


TAUGHT = f"---\ntitle: Gate\nfires_on: [{PROMPT}]\nfires_on_error: [gate shut]\n---\nRun tide.\n"


def test_a_silence_says_that_the_session_has_it(make_vault: MakeVault) -> None:
    vault = vault_with(make_vault, NEVER, NEVER, gate_md=TAUGHT)
    vault.config = replace(vault.config, pointers=False)
    assert forms(prompted(vault)) == {"gate": "whole"}
    silence = failed(vault, "Error: gate shut")
    assert silence.silent == "the session has it already"
    assert silence.near
    assert silence.near.lesson == "gate"
    said = run("lessons", "last", "-n", "1", cwd=vault.root).out
    assert "silent: the session has it already" in said
    assert failed(vault, "Error: the heap of the build").silent == "nothing above the floor"


def test_a_lesson_for_one_failure_comes_at_no_other(make_vault: MakeVault) -> None:
    vault = vault_with(make_vault, NEVER, NEVER, gate_md=TAUGHT)
    vault.config = replace(vault.config, pointers=False)
    assert forms(failed(vault, "Error: gate shut")) == {"gate": "whole"}
    assert failed(vault, "Error: no tide: gate shut").lessons == []


def test_at_the_same_failure_it_comes_once_more_and_no_other_says_so(make_vault: MakeVault) -> None:
    vault = vault_with(make_vault, NEVER, NEVER, gate_md=TAUGHT)
    vault.config = replace(vault.config, pointers=False)
    event = Event(hook_event.FAILURE, "s1", cwd=str(vault.root), error="Error: gate shut")
    said = [
        str(respond(vault, replace(event, tool_use_id=call), by="process", ms=0.0))
        for call in ("t1", "t2", "t3")
    ]
    assert ["Run tide." in each for each in said] == [True, True, False]
    assert ["The same failure as before" in each for each in said] == [False, True, False]
    assert records(vault)[-1].silent == "given twice already"


def test_a_subagent_has_what_it_was_given_itself(make_vault: MakeVault) -> None:
    vault = vault_with(make_vault, NEVER, NEVER, gate_md=TAUGHT)
    vault.config = replace(vault.config, pointers=False)
    assert prompted(vault).lessons == ["gate"]
    assert failed(vault, "Error: gate shut", agent_id="a1").lessons == ["gate"]


@pytest.mark.parametrize(
    ("settings", "gate", "why"),
    [
        ({"trust": "committed-only"}, TAUGHT, "your settings do not trust the lesson"),
        ({}, TAUGHT.replace("fires_on_error", "silent_on_error"), "silent_on_error of gate"),
    ],
)
def test_behind_a_lesson_that_may_not_come_the_next_is_tried(
    make_vault: MakeVault, settings: dict[str, Any], gate: str, why: str
) -> None:
    gate = gate.replace("Run tide.", LOCK)
    vault = vault_with(make_vault, NEVER, 0.01, gate_md=gate)
    vault.config = replace(vault.config, **settings)
    error = f"{LOCK}: gate shut"
    if settings:  # no lesson of this vault is committed
        assert failed(vault, error).silent.startswith(why)
    else:
        assert forms(failed(vault, error)) == {"lock": "whole"}
