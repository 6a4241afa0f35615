"""`lessons learn` and `lessons ask` with a real model behind a real llama.cpp server.

The model is small and says nothing of sense, so this is about what holds whatever a model says.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.llm.llama_server import shared_model
from tests.support.amounts import amount
from tests.support.commands import run
from tests.support.conversations import about_redirects
from tests.support.files import MakeVault, commit, lesson_text
from tests.support.homes import shared_folder
from vault_index.learn import evidence, record
from vault_index.vault import Vault

pytestmark = [pytest.mark.language_model, pytest.mark.slow, pytest.mark.timeout(900)]

MOST = amount(200, 700)  # tokens of an answer: those of this model come to no end
CONTEXT = 6_000  # tokens: the instructions, the schema, the session and an answer
CITED = re.compile(r"\[(\d{1,3})\]")


@pytest.fixture
def team(
    make_vault: MakeVault,
    own_world: Path,
    tmp_path_factory: pytest.TempPathFactory,
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[Vault]:
    monkeypatch.setenv("LESSONS_EMBEDDER", "none")
    vault = make_vault({"store/rollback.md": lesson_text("Rollbacks", "Run `make rollback`.")})
    commit(vault.root)
    with shared_model(shared_folder(tmp_path_factory) / "language-model", CONTEXT) as url:
        (own_world / "config.toml").write_text(
            f'[llm]\nopenai_url = "{url}"\nmax_tokens = {MOST}\n'
            '[learn]\nmodel = "openai:gemma"\ntokens = 3000\n[ask]\nmodel = "openai:gemma"\n'
        )
        yield vault


def proposals(vault: Vault) -> list[dict[str, Any]]:
    listed: list[dict[str, Any]] = run("lessons", "review", "list", "--json", cwd=vault.root).json
    return listed


def test_nothing_that_a_model_invents_becomes_a_proposal(team: Vault) -> None:
    about_redirects(team.root)
    run("lessons", "journal", "import", cwd=team.root)
    sent = run("lessons", "learn", "--dry-run", "--show", cwd=team.root).out
    before = run("git", "status", "--porcelain", cwd=team.root).out
    learned = run("lessons", "learn", "--json", cwd=team.root, check=False)
    answer = learned.json
    assert answer["status"] in (record.PROPOSED, record.NOTHING, record.FAILED)
    assert 1 <= answer["usage"]["calls"] <= 2
    assert answer["usage"]["input_tokens"] > 500
    if answer["status"] == record.FAILED:  # it came to no end
        assert learned.code == 1
        assert answer["trouble"].startswith("entries: openai:gemma ")
    texts = evidence.texts_of([sent])
    for each in proposals(team):
        assert each["quotes"]
        assert all(any(quote in text for text in texts) for quote in each["quotes"])
    assert {each["id"] for each in answer["proposals"]} == {each["id"] for each in proposals(team)}
    assert run("git", "status", "--porcelain", cwd=team.root).out == before


def test_an_answer_cites_what_was_found_and_nothing_else(team: Vault) -> None:
    asked = run("lessons", "ask", "how do we roll back?", "--json", cwd=team.root, check=False)
    answer = asked.json
    assert answer["status"] in ("answered", "unknown", "failed")
    numbers = {str(each["number"]) for each in answer["passages"]}  # none where it did not search
    sources = {str(each["number"]) for each in answer["sources"]}
    assert set(CITED.findall(answer["answer"])) <= sources <= numbers
    if answer["status"] == "failed":
        assert answer["trouble"]
