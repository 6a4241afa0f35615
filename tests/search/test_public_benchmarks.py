"""The public benchmarks in `benchmarks/` run on a made-up miniature of their format."""

from __future__ import annotations

from pathlib import Path

import httpx
import pytest

from benchmarks import precision_mem

pytestmark = pytest.mark.slow


def test_the_harness_of_precision_mem_bench_is_answered_over_http(
    tmp_path: Path, own_world: Path, text_only: None
) -> None:
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
