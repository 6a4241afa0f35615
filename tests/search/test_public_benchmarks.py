"""The public benchmarks in `benchmarks/` run on a made-up miniature of their format."""

from __future__ import annotations

from pathlib import Path

import httpx
import pytest

from benchmarks import brain_bench, precision_mem

pytestmark = pytest.mark.slow


def test_the_harness_of_precision_mem_bench_is_answered_over_http(
    tmp_path: Path, own_world: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LESSONS_EMBEDDER", "none")
    memory = precision_mem.Memory(tmp_path / "vaults")
    beliefs = {
        "heap": "build_heap The build dies with heap out of memory: raise NODE_OPTIONS.",
        "dates": "utc_dates Store dates in UTC and show local ones.",
    }

    def send(method: str, path: str, **values: object) -> object:
        return precision_mem.answer(memory, path, values)

    send("DELETE", "/reset")
    for id, text in beliefs.items():
        about = {"beliefId": id, "scope": "domain:code"}
        send("POST", "/add", text=text, user_id="u", metadata=about)
    asked = {"query": "our build dies with heap out of memory", "user_id": "u", "limit": 20}
    assert send("POST", "/search", **asked, scope="domain:code") == {"results": [{"id": "heap"}]}
    assert send("POST", "/search", **asked, scope="domain:writing") == {"results": []}
    with httpx.Client(trust_env=False, timeout=60) as client, precision_mem.serving(memory) as url:
        answer = client.post(f"{url}/search", json={**asked, "scope": "domain:code"})
        assert answer.json() == {"results": [{"id": "heap"}]}


def test_the_metrics_of_brain_bench(
    tmp_path: Path, own_world: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LESSONS_EMBEDDER", "none")
    heap = "---\ntitle: Heap\n---\nThe build dies with heap out of memory: raise NODE_OPTIONS.\n"
    other = "---\ntitle: Dates\n---\nStore dates in UTC and show local ones.\n"
    prompts = {1: "our build dies with heap out of memory", 2: "and who baked the bread in Lisbon?"}
    fixture = {
        "seed_pages": [
            {"slug": "ops/heap", "content": heap},
            {"slug": "ops/dates", "content": other},
            {"slug": "ops/secret", "content": heap, "source_id": "another"},
        ],
        "turns": [
            {"turn_id": number, "role": "user", "text": text} for number, text in prompts.items()
        ],
    }
    gold = {"turns": {"1": {"should_retrieve": True, "gold_slugs": ["ops/heap"]},
                      "2": {"should_retrieve": False}}}  # fmt: skip
    every = list(brain_bench.turns(fixture, gold, tmp_path / "vault"))
    assert [turn.injected for turn in every] == [("ops/heap",), ()]
    assert brain_bench.know_to_ask(every) == (0, 0)
    assert brain_bench.push(every) == (1, 1)
