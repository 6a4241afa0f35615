"""Entries of a model on points of real sessions are accepted, and committed without a refusal."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

from tests.learn.materials import an_entry, good_answer
from tests.learn.projects import taken
from tests.support.commands import run
from tests.support.conversations import Conversation
from tests.support.files import lesson_text, write
from tests.support.model_server import ModelServer
from tests.support.places import REPO
from vault_index import api, client
from vault_index.learn import gate
from vault_index.vault import Vault, open_vault

POINTS: list[list[str]] = [
    point
    for of_session in json.loads((REPO / "benchmarks/learning_points.json").read_text()).values()
    for point in of_session
]
A_SESSION = 20  # points, as many as a model may answer


@pytest.fixture
def team(tmp_path: Path, own_world: Path, monkeypatch: pytest.MonkeyPatch) -> Vault:
    monkeypatch.setenv("LESSONS_EMBEDDER", "none")
    settings = f'[learn]\nmodel = "ollama:small"\nmax_entries = {A_SESSION}\ntokens = 60000\n'
    (own_world / "config.toml").write_text(settings)
    root = tmp_path / "team"
    root.mkdir()
    run("git", "init", "-q", "-b", "main", cwd=root)
    run("lessons", "init", cwd=root)
    write(root / "lessons/devops/heap.md", lesson_text("Raise the heap in CI", "Set it to 4096."))
    run("git", "add", "-A", cwd=root)
    run("git", "commit", "-q", "-m", "Begin", cwd=root)
    assert (root / ".githooks/pre-commit").exists()
    return open_vault(root)


def entry(point: str, keys: list[str]) -> dict[str, Any]:
    """Return what a model would write of a point, of which the person said these words."""
    words = point.split()
    title = " ".join(words[:10] if len(words) >= 5 else [*words, "as", "it", "was", "said"][:8])
    return an_entry(
        type="project_rule",
        title=title,
        summary=f"{point}: `{keys[0]}` in this project.",
        explanation=f"Seen with {' and '.join(f'`{key}`' for key in keys)}.",
        problem="",
        category="learned/from sessions",
        fires_on=[f"What do we do about {' '.join(words[:9])}?", said(point, keys)],
        silent_on=["Write a friendly welcome mail for new customers"],
        quotes=[said(point, keys)],
    )


def said(point: str, keys: list[str]) -> str:
    return f"Remember this for later: {point}, {' / '.join(keys)}"


def saying(text: str) -> Callable[[dict[str, Any]], str]:
    return lambda _body: text


def in_sessions() -> Iterator[list[list[str]]]:
    there = iter(POINTS)
    while some := list(islice(there, A_SESSION)):
        yield some


@pytest.mark.slow
def test_all_points_become_lessons_and_the_hook_refuses_none(
    team: Vault, monkeypatch: pytest.MonkeyPatch
) -> None:
    reasons: dict[str, str] = {}
    with ModelServer() as server:
        monkeypatch.setenv("OLLAMA_HOST", server.url)
        team = open_vault(team.root)
        for number, points in enumerate(in_sessions()):
            talk = Conversation(team.root, f"session {number}")
            for point, *keys in points:
                talk.asks(said(point, keys)).says("I noted that.")
            entries = [entry(point, keys) for point, *keys in points]
            server.answer = saying(json.dumps(good_answer("entries", *entries)))
            asked = api.learn.learn(scope="session", target=taken(talk), folder=str(team.root))
            answer = client.ask(team, asked)
            reasons |= {each["title"]: each["reason"] for each in answer["dropped"]}
            copied = [why for each in answer["proposals"] for _, why in each["left_out"]]
            assert gate.COPIED in copied
    proposals = client.ask(team, api.proposal.select())
    assert len(proposals) + len(reasons) == len(POINTS) == 99
    assert len(proposals) >= 0.95 * len(POINTS), reasons
    for each in proposals:
        client.ask(team, api.proposal.accept(id=each.id))
    run("git", "add", "-A", cwd=team.root)
    committed = run("git", "commit", "-m", "What we learned", cwd=team.root, check=False)
    assert committed.code == 0, committed.err
    written = list((team.lessons_dir / "learned/from-sessions").rglob("*.md"))
    assert len(written) == len(proposals)
