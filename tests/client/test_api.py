"""Every question and command as plain values: what MCP, HTTP and the command line translate to."""

from __future__ import annotations

import importlib
import inspect
import json
import subprocess
import sys
from dataclasses import fields
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from tests.support.files import MakeVault, lesson_text, write
from tests.support.watchers import watched
from vault_index import api, client
from vault_index.errors import VaultError
from vault_index.index import reconcile
from vault_index.search.query import Query
from vault_index.store.filters import Filter
from vault_index.vault import Vault

FILES = {
    "ops/heap.md": lesson_text("Raise the heap", "When the build dies, raise the heap."),
    "ops/lock.md": lesson_text("Lock timeouts", "Migrations wait for a lock."),
}


@pytest.fixture
def team(make_vault: MakeVault, monkeypatch: pytest.MonkeyPatch) -> Vault:
    monkeypatch.setenv("LESSONS_EMBEDDER", "none")
    vault = make_vault(FILES)
    reconcile.sync(vault)
    return vault


def ask(vault: Vault, name: str, /, **values: Any) -> Any:
    """Ask as a door would: by the path of the vault, with JSON both ways."""
    question = json.loads(json.dumps({"ask": name, "with": values}))
    return json.loads(json.dumps(client.ask(str(vault.root), question)))


@pytest.mark.parametrize("name", [*api.QUESTIONS, *api.COMMANDS])
def test_each_is_a_documented_function(name: str) -> None:
    module, _, function = {**api.QUESTIONS, **api.COMMANDS}[name].partition(".")
    found = getattr(importlib.import_module(f"vault_index.api.{module}"), function)
    assert inspect.getdoc(found)
    parameters = list(inspect.signature(found).parameters)
    about = "journal" if api.is_about_journal(name) else "vault"
    assert parameters[0] == about
    assert (parameters[1:2] == ["caller"]) == (name in api.COMMANDS)


def test_the_watcher_answers_no_command(team: Vault) -> None:
    with pytest.raises(VaultError, match="there is no 'delete' here"):
        api.answer(team, {"ask": "delete", "with": {"name": "heap"}})
    with pytest.raises(VaultError, match="there is no 'sing' here"):
        client.ask(team, {"ask": "sing", "with": {}})


@pytest.mark.slow
def test_a_lesson_from_its_making_to_its_end(team: Vault) -> None:
    added = ask(team, "add", text="Set VPN=1 first.", title="Staging", categories=["ops/deploys"])
    assert Path(added["path"]) == team.lessons_dir / "ops/deploys/staging.md"
    assert ask(team, "show", name="staging")["entry"]["text"] == "Set VPN=1 first."
    assert ask(team, "search", text="VPN", k=1)["hits"][0]["title"] == "Staging"

    changed = ask(team, "update", name="staging", text="Set VPN=2 first.", tags=["vpn"])
    assert changed["id"] == "ops/deploys/staging"
    assert ask(team, "show", name="staging")["entry"]["tags"] == ["vpn"]

    planned = ask(team, "rename", old="ops/deploys", new="ops/releases")
    assert planned["changes"][0]["to"] == "ops/releases/staging.md"
    assert Path(added["path"]).exists()
    assert ask(team, "rename", old="ops/deploys", new="ops/releases", write=True)["written"]
    assert not Path(added["path"]).exists()

    assert ask(team, "delete", name="staging")["removed"]
    assert [one["id"] for one in ask(team, "list")["entries"]] == ["ops/heap", "ops/lock"]


def test_what_somebody_agreed_to_delete_is_what_goes(team: Vault) -> None:
    shown = ask(team, "show", name="heap")["entry"]
    write(team.lessons_dir / "ops/heap.md", lesson_text("Another", "Of another title."))
    with pytest.raises(VaultError, match="changed"):
        ask(team, "delete", name="heap", shown=shown)
    assert (team.lessons_dir / "ops/heap.md").exists()


@pytest.mark.slow
def test_an_import_is_planned_and_then_applied(team: Vault) -> None:
    text = "- Never deploy on a Friday, nobody is there to repair it.\n"
    planned = ask(team, "import", text=text, format="bullets", category="ops")
    assert [item["verdict"] for item in planned["items"]] == ["write"]
    assert not planned["written"]
    file = team.lessons_dir / planned["items"][0]["path"]
    assert not file.exists()
    ask(team, "import", text=text, format="bullets", category="ops", write=True)
    assert file.exists()
    assert len(ask(team, "list")["entries"]) == 3


@pytest.mark.slow
def test_the_rest_answers_in_json(team: Vault) -> None:
    assert ask(team, "categories")["counts"] == {"ops": 2}
    assert ask(team, "classify")["proposals"] == []
    assert ask(team, "accept", proposals=[]) == {"files": {}, "written": [], "failed": []}
    assert ask(team, "recall", query="hi")["silent"]
    assert ask(team, "compare", paths=["ops/heap.md"])["categories"] == ["ops"]
    checked = ask(team, "check")
    assert (checked["errors"], checked["files"] >= 2) == (0, True)
    assert ask(team, "index", rebuild=True)["rebuilt"] == "asked for"
    assert ask(team, "status")["lessons"] == 2
    assert {one["name"] for one in ask(team, "config")["settings"]} >= {"floor", "embedder"}


@pytest.mark.slow
def test_the_watcher_answers_the_same(team: Vault) -> None:
    questions: list[tuple[str, dict[str, Any]]] = [
        ("search", Query("heap", k=2, categories=("ops",), explain=True).to_json()),
        ("list", {"category": "ops"}),
        ("show", {"name": "lock"}),
    ]
    alone = [ask(team, name, **values) for name, values in questions]
    with watched(team):
        answers = [ask(team, name, **values) for name, values in questions]
    for answer in answers:
        assert (answer.pop("notes"), answer.pop("protocol") > 0) == ([], True)
    assert answers == alone


@pytest.mark.slow
def test_notes_go_to_the_callback(team: Vault, capfd: pytest.CaptureFixture[str]) -> None:
    write(team.lessons_dir / "ops/odd.md", "---\ntitle: [\n---\nText.\n")
    notes: list[str] = []
    client.ask(team, {"ask": "search", "with": {"text": "heap"}}, on_note=notes.append)
    assert len(notes) == 1
    assert notes[0].startswith("warning: lessons/ops/odd.md:")
    steps: list[str] = []

    def progress(label: str, _done: int, _of: int) -> None:
        steps.append(label)

    client.ask(team, {"ask": "index", "with": {"rebuild": True}}, on_progress=progress)
    assert "fitting the floor" in steps
    assert capfd.readouterr() == ("", "")


@pytest.mark.slow
def test_no_click_is_loaded(team: Vault) -> None:
    code = "import sys; from vault_index import client; client.ask(sys.argv[1], "
    code += "{'ask': 'search', 'with': {'text': 'heap'}}); assert 'click' not in sys.modules"
    subprocess.run([sys.executable, "-c", code, str(team.root)], check=True)


def test_a_query_comes_back_from_json_as_it_was() -> None:
    whole = Query(
        "heap", 3, ("ops",), "Intro", ("lessons", "skills"),
        Filter(("ci",), "bug_fix", datetime(2026, 1, 2, tzinfo=UTC), None, 4), 0.25, "/tmp",
        explain=True, neighbours=2, text_only=True, for_agent=True, file="a.py", concept="gotcha",
        offset=6, weighted=True, floor=0.4, phrases=True,
    )  # fmt: skip
    assert not [f.name for f in fields(Query) if getattr(whole, f.name) == f.default]
    for query in (whole, Query("heap")):
        assert Query.from_json(json.loads(json.dumps(query.to_json()))) == query
    assert Query("heap").to_json() == {"text": "heap"}


@pytest.mark.parametrize(
    "values", [{"text": "heap", "colour": "red"}, {"k": 3}, {"text": "a", "kinds": ["b"]}]
)
def test_a_query_of_other_options_is_refused(values: dict[str, Any]) -> None:
    with pytest.raises(VaultError):
        Query.from_json(values)
