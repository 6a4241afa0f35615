"""Every question and command as plain values: what MCP, HTTP and the command line translate to."""

from __future__ import annotations

import inspect
import json
from collections.abc import Sequence
from dataclasses import dataclass, fields
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import pytest

from tests.support.files import MakeVault, lesson_text
from vault_index import api, client
from vault_index.api import codec
from vault_index.api.question import Form
from vault_index.errors import VaultError
from vault_index.retrieval.hit import HitList, Query
from vault_index.store.filters import Filter
from vault_index.vault import Vault
from vault_index.watch import launch

FILES = {
    "ops/heap.md": lesson_text("Raise the heap", "When the build dies, raise the heap."),
    "ops/lock.md": lesson_text("Lock timeouts", "Migrations wait for a lock."),
}


def ask(vault: Vault, question: api.Question[Any]) -> Any:
    """Ask as a door would: by the path of the vault, and the answer as JSON."""
    return json.loads(json.dumps(codec.to_json(client.ask(str(vault.root), question))))


FORMS = [
    form
    for name in api.MODULES
    for form in vars(getattr(api, name)).values()
    if isinstance(form, Form) and form.name.startswith(f"{name}.")
]


@pytest.mark.parametrize("form", FORMS, ids=lambda form: str(form.name))
def test_each_is_a_documented_function(form: Form[..., Any]) -> None:
    assert inspect.getdoc(form.function)
    parameters = list(inspect.signature(form.function).parameters)
    assert parameters[0] == ("journal" if form.name.startswith("journal.") else "vault")
    assert (parameters[1:2] == ["caller"]) == form.is_command


def test_the_watcher_answers_no_command(team: Vault) -> None:
    for name in ("edit.delete_lesson", "search.sing", "search._found", "sing.sing", "search"):
        with pytest.raises(VaultError, match=f"there is no '{name}' here"):
            api.answer_on_wire(team, {"ask": name, "with": {"name": "heap"}})


def test_a_query_comes_back_from_json_as_it_was() -> None:
    whole = Query(
        "heap", 3, ("ops",), "Intro", ("lessons", "skills"),
        Filter(("ci",), "bug_fix", datetime(2026, 1, 2, tzinfo=UTC), None, 4), 0.25, "/tmp",
        explain=True, text_only=True, for_agent=True, file="a.py", concept="gotcha",
        offset=6, weighted=True, phrases=True, lesson=3, related_to="a",
    )  # fmt: skip
    assert not [f.name for f in fields(Query) if getattr(whole, f.name) == f.default]
    for query in (whole, Query("heap")):
        assert codec.from_json(Query, json.loads(json.dumps(codec.to_json(query)))) == query


@pytest.mark.parametrize(
    "form", [form for form in FORMS if not form.is_command], ids=lambda form: str(form.name)
)
def test_59_2_the_arguments_of_each_question_have_types_that_json_spells(
    form: Form[..., Any],
) -> None:
    assert codec.arguments(form.function, {}) == {}  # or it is a TypeError that names one


def listed(vault: Vault, *, ids: Sequence[str], since: date, folder: Path | None = None) -> None:
    """List lessons."""


def drawn(vault: Vault, *, size: complex) -> None:
    """Draw lessons."""


@dataclass(frozen=True)
class Moment:
    at: date | str


def test_59_2_a_value_has_the_type_of_its_annotation_and_an_unknown_type_is_named() -> None:
    sent = {"ids": ["a"], "since": "2026-01-02", "folder": "/tmp/x", "more": 1}
    found = {"ids": ("a",), "since": date(2026, 1, 2), "folder": Path("/tmp/x"), "more": 1}
    assert codec.arguments(listed, sent) == found
    with pytest.raises(TypeError, match=r"drawn\.size: .*complex.* has no form in JSON"):
        codec.arguments(drawn, {"size": 1})
    with pytest.raises(TypeError, match=r"Moment\.at: .*date \| str has no form in JSON"):
        codec.from_json(Moment, {"at": "2026-01-02"})


@pytest.mark.slow
@pytest.mark.no_arithmetic
def test_a_question_starts_the_watcher_unless_the_settings_say_no(
    make_vault: MakeVault, with_model: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    vault = make_vault()

    def search() -> HitList:
        question = api.search.find(query=Query("heap out of memory"))
        return client.ask(vault, question, client.Options(start=True))

    assert search().hits == ()
    assert not launch.is_running()
    monkeypatch.delenv("LESSONS_WATCH_AUTOSTART")
    try:
        assert search().hits == ()
        assert launch.status(vault.root)
    finally:
        launch.stop()
