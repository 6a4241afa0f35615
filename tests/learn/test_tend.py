"""Prompts for lessons that have none: handed over, proposed, and accepted as one diff of frontmatter."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.commands import Ran, run
from tests.support.files import MakeVault, commit, write
from tests.support.model_server import ModelServer, Response
from vault_index.lesson.parse import parse_file
from vault_index.vault import Vault

pytestmark = pytest.mark.slow

TEXTS = {
    "ops/heap.md": "---\r\ntitle: Raise the heap   # of ours\r\n---\r\nSet NODE_OPTIONS to 4096.\r\n",
    "ops/bare.md": "# Freeze the clock\n\nTests of dates freeze the clock.\n",
    "ops/many.md": "# Many\n\n## Lesson: Lock\n\nMigrations wait for a lock.\n\n"
    "## Lesson: Pipe\ntags: [io]\n\nA closed pipe raises BrokenPipeError.\n",
    "ops/has.md": "---\ntitle: Dates\nprompts: [which zone has a date]\n---\nStore dates in UTC.\n",
}
HEAP = {
    "lesson": "ops/heap",
    "prompts": ["the bundle step is killed", "why does node die in our pipeline"],
    "failing_lines": ["FATAL ERROR: Reached heap limit", "error"],
}
CLOCK = {"lesson": "ops/bare", "prompts": ["my test fails at midnight only"]}
PIPE = {"lesson": "ops/many#pipe", "prompts": ["head makes our exporter crash"]}


@pytest.fixture
def team(make_vault: MakeVault, monkeypatch: pytest.MonkeyPatch) -> Vault:
    monkeypatch.setenv("LESSONS_EMBEDDER", "none")
    vault = make_vault(TEXTS, indexed=True)
    commit(vault.root)
    return vault


def propose(team: Vault, *answers: dict[str, Any], check: bool = True) -> Ran:
    return run(
        "lessons", "propose", "--json", cwd=team.root, stdin=json.dumps(answers), check=check
    )


def changed(team: Vault) -> str:
    return run("git", "diff", "-U0", cwd=team.root).out


def test_lessons_without_prompts_are_handed_over_as_data(team: Vault) -> None:
    said = run("lessons", "tend", "--list", cwd=team.root).out
    assert "id: ops/heap" in said
    assert "Set NODE_OPTIONS to 4096." in said
    assert "ops/has" not in said
    assert said.startswith("<lessons>")
    assert said.endswith("1 of 5 lessons have prompts.\n")
    listed = run("lessons", "tend", "--list", "--most", "1", "--json", cwd=team.root).json
    assert (len(listed["lessons"]), listed["tended"], listed["all"]) == (1, 1, 5)


def test_a_batch_is_accepted_at_once_and_only_frontmatter_changes(team: Vault) -> None:
    tended = propose(team, HEAP, CLOCK, PIPE).json
    assert [each["changes"] for each in tended["proposals"]] == [
        *("ops/heap", "ops/bare", "ops/many#pipe"),
    ]
    assert tended["proposals"][0]["left_out"] == [["error", "many failures print that"]]
    assert changed(team) == ""
    assert "ops/heap" not in run("lessons", "tend", "--list", cwd=team.root).out, "it waits"
    before = {path: (team.lessons_dir / path).read_bytes() for path in TEXTS}
    run("lessons", "review", "accept", "--batch", tended["batch"], cwd=team.root)
    added = [line[1:] for line in changed(team).splitlines() if line[:1] == "+"]
    removed = [line for line in changed(team).splitlines() if line[:1] == "-" != line[1:2]]
    assert removed == []
    assert {line.split(":")[0].strip() for line in added if not line.startswith("++")} <= {
        *("prompts", "fires_on_error", "---", "- my test fails at midnight only"),
    }
    heap = (team.lessons_dir / "ops/heap.md").read_bytes()
    assert heap.startswith(b"---\r\ntitle: Raise the heap   # of ours\r\n")
    assert heap.endswith(b"\r\n---\r\nSet NODE_OPTIONS to 4096.\r\n")
    assert heap.count(b"\n") == heap.count(b"\r\n")
    for path, data in before.items():
        after = (team.lessons_dir / path).read_bytes()
        assert [each.text for each in parse_file(after, path)] == [
            each.text for each in parse_file(data, path)
        ]
    lessons = {each.id: each for each in parse_file(heap, "ops/heap.md")}
    assert lessons["ops/heap"].prompts == tuple(HEAP["prompts"])
    assert lessons["ops/heap"].fires_on_error == ("FATAL ERROR: Reached heap limit",)
    assert run("lessons", "review", "list", "--json", cwd=team.root).json == []


def test_with_commit_a_batch_is_one_commit(team: Vault) -> None:
    batch = propose(team, HEAP, CLOCK).json["batch"]
    write(team.lessons_dir / "ops/new.md", "# New\n\nNot committed.\n")
    refused = run(
        "lessons", "review", "accept", "--batch", batch, "--commit", cwd=team.root, check=False
    )
    assert "not committed" in refused.err
    commit(team.root)
    run("lessons", "review", "accept", "--batch", batch, "--commit", cwd=team.root)
    log = run("git", "log", "--format=%s", "-2", cwd=team.root).out.splitlines()
    assert log[0] == "Add prompts to 2 lessons"
    assert changed(team) == ""


def test_a_lesson_that_is_gone_keeps_its_proposal_and_the_others_are_accepted(team: Vault) -> None:
    batch = propose(team, HEAP, CLOCK).json["batch"]
    (team.lessons_dir / "ops/bare.md").unlink()
    done = run("lessons", "review", "accept", "--batch", batch, cwd=team.root, check=False)
    assert done.code == 1
    assert "left: ops/bare" in done.err
    assert "heap.md" in done.out
    (left,) = run("lessons", "review", "list", "--json", cwd=team.root).json
    assert left["changes"] == "ops/bare"


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        ({"lesson": "ops/none", "prompts": ["where is it now"]}, "no lesson is called so"),
        ({"lesson": "ops/heap", "prompts": ["heap", "yes please do that"]}, "under three words"),
        (
            {"lesson": "ops/heap", "prompts": ["push with ghp_aBcDeFgHiJkLmNoPqRsTuVwXyZ0123456789"]},
            "it holds a secret",
        ),
        ({"lesson": "ops/has", "prompts": ["Which zone has a date"]}, "the lesson has it"),
    ],
)  # fmt: skip
def test_what_finds_nothing_is_dropped_with_a_word(
    team: Vault, answer: dict[str, Any], why: str
) -> None:
    ran = propose(team, answer, check=False)
    assert ran.code == 1
    (dropped,) = ran.json["dropped"]
    assert why in dropped["reason"]
    assert run("lessons", "review", "list", "--json", cwd=team.root).json == []


def test_more_than_a_person_reads_at_once_is_refused(team: Vault) -> None:
    ran = propose(team, *[HEAP] * 21, check=False)
    assert "more than a person reads at once" in ran.err


def test_status_says_how_many_lessons_have_prompts(team: Vault) -> None:
    assert "found by   1 of 5 lessons have prompts" in run("lessons", "status", cwd=team.root).out


def test_without_a_model_it_says_what_to_do(team: Vault) -> None:
    ran = run("lessons", "tend", cwd=team.root, check=False)
    assert ran.code == 1
    assert "learn.model is not set" in ran.err
    assert "/lessons:tend" in ran.err


# the same by a model, over HTTP


@pytest.fixture
def model(own_world: Path) -> Iterator[ModelServer]:
    with ModelServer() as server:
        settings = f'[llm]\nopenai_url = "{server.url}/v1"\n[learn]\nmodel = "openai:scripted"\n'
        write(own_world / "config.toml", settings)
        yield server


def test_a_dry_run_tells_the_cost_and_sends_nothing(team: Vault, model: ModelServer) -> None:
    said = run("lessons", "tend", "--dry-run", cwd=team.root).out
    assert re.search(r"about [\d,]+ tokens, in 1 call", said)
    assert "openai:scripted" in said
    shown = run("lessons", "tend", "--dry-run", "--show", cwd=team.root).out
    assert "Set NODE_OPTIONS to 4096." in shown
    assert model.requests == []


def test_a_model_writes_prompts_and_a_person_accepts_them(team: Vault, model: ModelServer) -> None:
    stranger = {"lesson": "ops/has", "prompts": ["it was not asked about this"]}
    model.answer = lambda _: json.dumps({"lessons": [whole(HEAP), whole(CLOCK), whole(stranger)]})
    ran = run("lessons", "tend", cwd=team.root)
    assert "sending at most" in ran.err
    assert "prompts for 2 lessons to review" in ran.out
    batch = ran.out.rpartition("--batch ")[2].strip("`\n")
    run("lessons", "review", "accept", "--batch", batch, cwd=team.root)
    assert "the bundle step is killed" in changed(team)
    assert "it was not asked" not in changed(team)


def whole(answer: dict[str, Any]) -> dict[str, Any]:
    return {"failing_lines": [], **answer}


def test_a_model_that_fails_is_told_and_nothing_waits(team: Vault, model: ModelServer) -> None:
    model.judge = lambda _: Response(401, {"error": {"message": "no key"}})
    ran = run("lessons", "tend", cwd=team.root, check=False)
    assert ran.code == 1
    assert ran.err.count("Error:") == 1
    assert run("lessons", "review", "list", "--json", cwd=team.root).json == []
