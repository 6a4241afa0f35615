"""`lessons ask` with a real model behind a real llama.cpp server."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.commands import run
from tests.support.files import MakeVault, lesson_text
from tests.support.homes import shared_folder
from tests.support.llama_server import shared_model

LIMIT = 16  # tokens of an answer
ASKED = "how do we roll back a staging deploy?"


@pytest.mark.language_model
@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_model_that_comes_to_no_end_leaves_the_passages(
    make_vault: MakeVault,
    own_world: Path,
    tmp_path_factory: pytest.TempPathFactory,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("LESSONS_EMBEDDER", "none")
    vault = make_vault({"rollback.md": lesson_text("Rollbacks", "Run `make rollback` on staging.")})
    with shared_model(shared_folder(tmp_path_factory) / "language-model") as url:
        settings = (
            f'[llm]\nopenai_url = "{url}"\nmax_tokens = {LIMIT}\n[ask]\nmodel = "openai:gemma"\n'
        )
        (own_world / "config.toml").write_text(settings)
        asked = run("lessons", "ask", ASKED, "--json", cwd=vault.root, check=False)
    answer = asked.json
    assert (asked.code, answer["status"]) == (1, "failed")
    assert answer["answer"]  # what it wrote until then
    assert answer["trouble"].startswith("openai:gemma did not come to an end in ")
    assert [passage["id"] for passage in answer["passages"]] == ["rollback"]
