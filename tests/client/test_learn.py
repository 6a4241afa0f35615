"""What an agent looks up by itself: learn search, learn get, learn status; and what counts as used."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.files import commit, write
from tests.support.given import given_to, records
from vault_index import api, client
from vault_index.api import codec
from vault_index.errors import VaultError
from vault_index.vault import Vault

pytestmark = pytest.mark.slow

KINDS = ("bug_fix", "code_pattern", "")


def lesson(number: int) -> str:
    """A lesson about the heap; higher numbers say less about it."""
    sure = f"confidence: {number % 5 + 1}\n" if number % 2 else ""
    about = f"title: Heap {number}\ntype: {KINDS[number % 3]}\n{sure}"
    return f"---\n{about}---\nThe heap of service {number}. {'More about it. ' * number}\n"


# half of them in `ops` and half below `ops/ci`
FILES = {f"ops/{'ci/' * (number % 2)}heap-{number}.md": lesson(number) for number in range(23)}


def ask(vault: Vault, question: api.Question[Any]) -> Any:
    """Ask as a door would: by the path of the vault, and the answer as JSON."""
    return json.loads(json.dumps(codec.to_json(client.ask(str(vault.root), question))))


def titles(answer: Any) -> list[str]:
    return [hit["title"] for hit in answer["hits"]]


def test_pages_follow_each_other(team: Vault) -> None:
    start, found = "0", list[str]()
    while start:
        page = ask(
            team, api.learn.search(query="heap", limit=5, start=int(start), min_confidence=1)
        )
        start = page["following"]
        found += titles(page)
    assert len(found) == len(set(found)) == 23


def test_a_filter_narrows_before_the_cut(team: Vault) -> None:
    everything: dict[str, Any] = {"query": "heap", "limit": 50}
    sure = ask(team, api.learn.search(**everything, min_confidence=5))
    assert {hit["confidence"] for hit in sure["hits"]} == {5}
    assert ask(team, api.learn.search(query="heap", limit=1, min_confidence=5))["hits"]
    usual = {hit["confidence"] for hit in ask(team, api.learn.search(**everything))["hits"]}
    assert usual == {3, 4, 5}  # a lesson that names none has 3
    below = ask(team, api.learn.search(**everything, min_confidence=1, category="ops/ci"))["hits"]
    assert len(below) == 11
    assert (
        len(ask(team, api.learn.search(**everything, min_confidence=1, category="OPS"))["hits"])
        == 23
    )
    patterns = ask(team, api.learn.search(**everything, min_confidence=1, type="code_pattern"))[
        "hits"
    ]
    assert len(patterns) == 8


def test_use_is_counted_and_is_no_prompt(team: Vault) -> None:
    taught = "---\ntitle: Heap of them all\nfires_on: [which heap is it]\n---\nThe heap.\n"
    write(team.lessons_dir / "ops/all.md", taught)
    ask(team, api.learn.status())
    given_to(team, ())
    before = ask(team, api.state.report())["injections"]
    first = ask(team, api.learn.search(query="which heap is it"))
    assert len(first["hits"]) == 10
    ask(team, api.learn.search(query="which heap is it", start=int(first["following"])))
    ask(team, api.learn.search(query="no word of this matches anything"))
    ask(team, api.learn.get(name="heap-22"))
    ask(team, api.learn.get(name="missing"))
    after = ask(team, api.state.report())["injections"]
    assert (after["prompts"], after["answered"], after["p50_ms"]) == (1, 0, before["p50_ms"])

    searched, *others, got = records(team)[
        1:
    ]  # a search without a hit counts, a next page does not
    assert [searched.event, got.event] == ["LearnSearch", "LearnGet"]
    assert [each.event for each in others] == ["LearnSearch"]
    assert searched.lessons == ["ops/all"], "what is below the floor is not counted"
    assert got.lessons == ["ops/heap-22"]
    assert "heap" not in searched.prompt
    summed = ask(team, api.learn.status())["used"]
    assert ["ops/heap-22", 1] in summed["most_used"] or len(summed["most_used"]) == 5
    assert summed["never_used"] == 22


def test_what_hooks_may_not_inject_no_agent_finds(team: Vault, own_world: Path) -> None:
    commit(team.root)
    write(own_world / "config.toml", 'trust = "committed-only"\n')
    changed = team.lessons_dir / "ops/heap-2.md"
    changed.write_text(changed.read_text() + "Not committed.\n")
    found = titles(ask(team, api.learn.search(query="heap", limit=50)))
    assert "Heap 4" in found
    assert "Heap 2" not in found
    with pytest.raises(VaultError, match="kept from agents"):
        ask(team, api.learn.get(name="ops/heap-2"))
