"""The record of injections: what it sums up, and what the hooks' log adds to it."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tests.support.files import write
from tests.support.given import note
from vault_index.store import delivery, injections


def test_a_summary(tmp_path: Path) -> None:
    home, root = tmp_path / "home", tmp_path / "team"
    for ms in range(10):
        note(home, root, "a", "b", ms=ms)
    note(home, root, "a", event="SessionStart")
    note(home, root, ms=100)
    note(home, tmp_path / "other", "c")
    summed = injections.summary(home, root, ["a", "b", "c", "d"])
    assert (summed.prompts, summed.answered) == (11, 10)
    assert summed.most_used == [("a", 11), ("b", 10)]
    assert {id for id, _ in summed.last_used} == {"a", "b"}
    assert (summed.never_used, summed.some_never_used) == (2, ["c", "d"])
    assert (summed.p50_ms, summed.p90_ms) == (5, 9)


def test_nothing_noted_yet(tmp_path: Path) -> None:
    summed = injections.summary(tmp_path / "nobody", tmp_path, ["a"])
    assert (summed.prompts, summed.p50_ms, summed.never_used) == (0, None, 1)
    assert not (tmp_path / "nobody").exists()  # whoever only looks writes nothing


def line(root: Path, time: str, ms: int = 2000, **values: object) -> str:
    shared = {"event": "UserPromptSubmit", "session": "s", "prompt": delivery.key_of("a prompt"),
              "cwd": "", "vault": str(root), "message": "late", "missed": True}  # fmt: skip
    return json.dumps({**shared, "time": time, "ms": ms, **values}) + "\n"


def test_a_search_without_an_answer_counts_once(tmp_path: Path) -> None:
    home, root = tmp_path / "home", tmp_path / "team"
    note(home, root, "a", time="2026-03-01T10:00:01Z", ms=100)
    write(home / "hook.log.old", line(root, "2026-03-01T09:00:00Z"))
    lines = [
        line(root, "2026-03-01T09:00:01Z"),  # a second hook of the same prompt
        line(root, "2026-03-01T10:00:02Z"),  # the same, and the first was answered
        line(root, "2026-03-01T10:00:02Z", session="other"),
        line(root, "2026-03-01T11:00:00Z", missed=False),  # the hook went on without the watcher
        line(root, "2026-03-01T11:00:00Z", vault=str(tmp_path / "other")),
        line(root, "2026-03-01T12:00:00Z"),  # typed again
        line(root, "half a time", ms=1, session=3, prompt=None),
        "{half a line\n",
    ]
    write(home / "hook.log", "".join(lines))
    for _ in range(2):
        summed = injections.summary(home, root, ["a"])
        assert (summed.prompts, summed.answered, summed.missed) == (5, 1, 4)
    (home / "hook.log").unlink()
    (home / "hook.log.old").unlink()
    assert injections.summary(home, root, ["a"]).missed == 4  # the log may go
    assert [each.time[11:] for each in injections.records(home, root)][::-1] == [
        *("", "09:00:00Z", "10:00:01Z", "10:00:02Z", "12:00:00Z")
    ]


def test_ten_writers_lose_nothing(tmp_path: Path) -> None:
    with ThreadPoolExecutor(10) as pool:
        list(pool.map(lambda n: note(tmp_path / "home", tmp_path, f"lesson-{n}"), range(50)))
    kept = sorted(one.lessons[0] for one in injections.records(tmp_path / "home", tmp_path))
    assert kept == sorted(f"lesson-{n}" for n in range(50))
