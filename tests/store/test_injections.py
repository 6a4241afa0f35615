"""The record of injections: what it sums up, what it survives, how much of it is kept."""

from __future__ import annotations

import fcntl
import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from tests.support.files import write
from vault_index.store import injections


def note(folder: Path, *lessons: str, event: str = "UserPromptSubmit", ms: float = 10) -> None:
    hits = [(lesson, 0.9) for lesson in lessons]
    injections.record(folder, event, "s", "a prompt", hits, [], 0.7, ms, "watcher")


def test_a_summary(tmp_path: Path) -> None:
    for ms in range(10):
        note(tmp_path, "a", "b", ms=ms)
    note(tmp_path, "a", event="SessionStart")
    note(tmp_path, ms=100)
    summed = injections.summary(tmp_path, tmp_path, ["a", "b", "c", "d"])
    assert (summed["prompts"], summed["answered"]) == (11, 10)
    assert summed["most_used"] == [("a", 11), ("b", 10)]
    assert {id for id, _ in summed["last_used"]} == {"a", "b"}
    assert (summed["never_used"], summed["some_never_used"]) == (2, ["c", "d"])
    assert (summed["p50_ms"], summed["p90_ms"]) == (5, 9)


def test_nothing_noted_yet(tmp_path: Path) -> None:
    summed = injections.summary(tmp_path, tmp_path, ["a"])
    assert (summed["prompts"], summed["p50_ms"], summed["never_used"]) == (0, None, 1)


def line(folder: Path, time: str, ms: int = 2000, **values: object) -> str:
    shared = {"event": "UserPromptSubmit", "session": "s", "prompt": injections.key_of("a prompt"),
              "cwd": "", "vault": str(folder.parents[1]), "message": "late", "missed": True}  # fmt: skip
    return json.dumps({**shared, "time": time, "ms": ms, **values}) + "\n"


def test_a_search_without_an_answer_counts_once(tmp_path: Path, own_world: Path) -> None:
    folder = tmp_path / "elsewhere" / ".vault_index"
    folder.mkdir(parents=True)
    record = {"event": "UserPromptSubmit", "session": "s", "prompt": injections.key_of("a prompt")}
    write(folder / injections.FILE, json.dumps(
        {**record, "time": "2026-03-01T10:00:01Z", "lessons": ["a"], "ms": 100}) + "\n")  # fmt: skip
    write(own_world / "hook.log.old", line(folder, "2026-03-01T09:00:00Z"))
    write(own_world / "hook.log", "".join([
        line(folder, "2026-03-01T09:00:01Z"),  # a second hook of the same prompt
        line(folder, "2026-03-01T10:00:02Z"),  # the same, and the first was answered
        line(folder, "2026-03-01T10:00:02Z", session="other"),
        line(folder, "2026-03-01T11:00:00Z", missed=False),  # the hook went on without the watcher
        line(folder, "2026-03-01T11:00:00Z", vault=str(tmp_path / "other")),
        line(folder, "2026-03-01T12:00:00Z"),  # typed again
        line(folder, "half a time", ms=1, session=3, prompt=None),
    ]))  # fmt: skip
    merged = injections.with_misses(folder, tmp_path)
    assert [each["time"][11:] for each in merged] == [
        *("09:00:00Z", "10:00:01Z", "10:00:02Z", "12:00:00Z", ""),
    ]
    summed = injections.summary(folder, tmp_path, ["a"])
    assert (summed["prompts"], summed["answered"], summed["missed"]) == (5, 1, 4)


def test_what_is_no_record_is_passed_over(tmp_path: Path) -> None:
    note(tmp_path, "a")
    with (tmp_path / injections.FILE).open("ab") as file:
        file.write(b'\xff\xfe\n{"half": \n[1]\nnull\n{"lessons": 3}\n')
    note(tmp_path, "b")
    assert [one["lessons"] for one in injections.records(tmp_path)] == [["a"], ["b"]]


def test_no_folder_is_no_error(tmp_path: Path) -> None:
    note(tmp_path / "gone", "a")
    assert not (tmp_path / "gone").exists()


@pytest.mark.slow
def test_two_files_at_most_are_kept_and_ten_writers_lose_nothing(tmp_path: Path) -> None:
    folder = tmp_path / ".vault_index"
    folder.mkdir()
    (folder / injections.FILE).write_bytes(b"{}\n" * (injections.MAX_BYTES // 3 + 1))
    with ThreadPoolExecutor(10) as pool:
        list(pool.map(lambda n: note(folder, f"lesson-{n}"), range(200)))
    kept = sorted(one["lessons"][0] for one in injections.records(folder))
    assert kept == sorted(f"lesson-{n}" for n in range(200))
    assert len(list(folder.iterdir())) == 2
    assert (folder / injections.FILE).stat().st_size < injections.MAX_BYTES


@pytest.mark.slow
def test_one_that_waited_while_another_moved_the_full_file_loses_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    full = tmp_path / injections.FILE
    full.write_bytes(b"{}\n" * (injections.MAX_BYTES // 3 + 1))
    lock = fcntl.flock

    def moved_while_waiting(descriptor: int, operation: int) -> None:
        lock(descriptor, operation)
        full.replace(full.with_suffix(".old.jsonl"))

    monkeypatch.setattr(fcntl, "flock", moved_while_waiting)
    note(tmp_path, "late")
    assert [one["lessons"] for one in injections.records(tmp_path)] == [["late"]]


def test_when_lessons_were_used_first_and_last_under_the_names_of_now(tmp_path: Path) -> None:
    lines: list[dict[str, Any]] = [
        {"time": "2026-03-02T10:00:00Z", "event": "UserPromptSubmit", "lessons": ["old"]},
        {"time": "2026-03-03T10:00:00Z", "event": "Rename", "lessons": [], "renamed": {"old": "a"}},
        {"time": "2026-03-05T10:00:00Z", "event": "UserPromptSubmit", "lessons": ["a", "b"]},
    ]
    write(tmp_path / injections.FILE, "".join(f"{json.dumps(each)}\n" for each in lines))
    (tmp_path / injections.FILE).chmod(0o600)
    assert injections.times_of(tmp_path) == {
        "a": ("2026-03-02T10:00:00Z", "2026-03-05T10:00:00Z"),
        "b": ("2026-03-05T10:00:00Z", "2026-03-05T10:00:00Z"),
    }
    assert injections.total(lines, ["a"])["last_used"] == [
        ("b", "2026-03-05T10:00:00Z"),
        ("a", "2026-03-05T10:00:00Z"),
    ]
