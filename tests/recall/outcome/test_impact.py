"""Both sides of a holdout: what followed is counted, compared and exported, and chance is not news."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from benchmarks.impact import simulate
from tests.support.commands import run
from tests.support.conversations import Conversation
from tests.support.files import commit, lesson_text, write
from vault_index.index import reconcile
from vault_index.journal import capture
from vault_index.journal.journal import Journal
from vault_index.recall import holdout, outcome
from vault_index.recall.outcome import impact, story
from vault_index.recall.outcome.impact import Pair
from vault_index.recall.outcome.story import Step
from vault_index.store import injections
from vault_index.text import failure
from vault_index.transcripts import reading
from vault_index.vault import Vault, open_vault

HEAP, PROMPT = "devops/heap", "our frontend build dies, please have a look"
TEXT = (
    "When the build dies with `heap out of memory`, set `NODE_OPTIONS=--max-old-space-size=4096`."
)
DONE = "NODE_OPTIONS=--max-old-space-size=4096 npm run build"
FAILS = "FATAL ERROR: Reached heap limit"
KEY = injections.key_of(failure.read("npm run build", FAILS).signature)


@pytest.fixture
def team(make_vault: Callable[..., Vault], monkeypatch: pytest.MonkeyPatch) -> Vault:
    monkeypatch.setenv("LESSONS_EMBEDDER", "none")
    make_vault({"devops/heap.md": lesson_text("Raise the heap", TEXT)})
    vault = open_vault(Path(os.environ["HOME"]).parent / "team")
    commit(vault.root, "Lessons")
    reconcile.sync(vault)
    return vault


def drawn(vault: Vault, name: str, *, held: bool, days_ago: float = 1.0) -> Conversation:
    """Begin a session with a prompt at which chance gave the lesson or held it back."""
    began = datetime.now(UTC) - timedelta(days=days_ago)
    talk = Conversation(vault.root, name, began=began).asks(PROMPT)
    hits = [] if held else [(HEAP, 0.9)]
    arms = {"held": [HEAP], "held_scores": [0.9]} if held else {"drawn": [HEAP]}
    injections.record(
        vault.index_dir, injections.PROMPT, talk.id, PROMPT, hits, [], 0.5, 9.0, "process",
        arms={**arms, "share": 0.5},
    )  # fmt: skip
    file = vault.index_dir / injections.FILE
    *before, last = file.read_text().splitlines()
    at = (talk._at - timedelta(seconds=1)).strftime("%Y-%m-%dT%H:%M:%SZ")
    record = json.dumps(json.loads(last) | {"time": at})
    file.write_text("".join(f"{line}\n" for line in [*before, record]))
    return talk


def kept(vault: Vault, session: Conversation) -> Path:
    taken = capture.capture(Journal(vault.config), session.file, reading.CLAUDE, force=True)
    assert taken.file, taken
    return taken.file


def values(vault: Vault, session: Conversation) -> dict[str, int | None]:
    """Return what was measured of a session."""
    kept(vault, session)
    (pair,) = [
        each for each in outcome.update(vault, 600).all_pairs() if each.session == session.id
    ]
    return dict(zip(impact.MEASURES, pair.values, strict=True))


@pytest.mark.parametrize("held", [True, False])
def test_what_followed_is_measured_alike_on_both_sides(team: Vault, held: bool) -> None:
    talk = drawn(team, "build", held=held)
    talk.runs("npm run build", FAILS, failed=True).runs("npm run build", FAILS, failed=True)
    talk.says("The heap is too small.").asks("no, that is wrong, use the option of node")
    talk.runs(DONE, "done")
    assert values(team, talk) == {
        impact.DONE: 1,
        impact.AGAIN: 1,
        impact.CORRECTED: 1,
        impact.FAILURES: 2,
        impact.TURNS: 1,
        impact.MINUTES: 1,
        impact.REWORKED: None,
    }


def test_a_session_without_any_of_it(team: Vault) -> None:
    talk = drawn(team, "quiet", held=True).says("It builds here.")
    measured = values(team, talk)
    assert [measured[name] for name in (impact.DONE, impact.AGAIN, impact.FAILURES)] == [0, 0, 0]
    assert [measured[name] for name in (impact.TURNS, impact.MINUTES)] == [None, None]


def test_checks_that_never_pass_count_as_the_most(team: Vault) -> None:
    talk = drawn(team, "red", held=False).runs("pytest", "1 failed", failed=True)
    measured = values(team, talk)
    assert (measured[impact.TURNS], measured[impact.MINUTES]) == (5, 60)


def test_lines_that_a_later_session_takes_out_were_reworked(team: Vault) -> None:
    written = "retries = compute_retries(order)"
    for name, later, expected in (("kept", "other lines = 1", 0), ("gone", written, 1)):
        talk = drawn(team, name, held=True, days_ago=9)
        talk.edits(f"{name}.py", "", written)
        other = Conversation(
            team.root, f"{name}-later", began=datetime.now(UTC) - timedelta(days=6)
        )
        kept(team, other.asks("go on").edits(f"{name}.py", later, "retries = 3"))
        assert values(team, talk)[impact.REWORKED] == expected
    early = drawn(team, "early", held=True, days_ago=3).edits("early.py", "", "limit = of_region()")
    assert values(team, early)[impact.REWORKED] is None  # its week is not over


def test_an_earlier_session_of_the_same_day_reworked_nothing(team: Vault) -> None:
    began = (datetime.now(UTC) - timedelta(days=9)).replace(hour=12, minute=30)
    earlier = Conversation(team.root, "earlier", began=began - timedelta(minutes=10))
    kept(team, earlier.asks("go on").edits("a.py", "retries = compute(order)", "retries = 3"))
    ago = (datetime.now(UTC) - began) / timedelta(days=1)
    talk = drawn(team, "later", held=True, days_ago=ago)
    talk.edits("a.py", "retries = 3", "retries = compute(order)")
    assert values(team, talk)[impact.REWORKED] == 0


def test_what_was_judged_stays_where_the_session_is_forgotten_within_its_week(
    team: Vault, monkeypatch: pytest.MonkeyPatch
) -> None:
    talk = drawn(team, "build", held=False, days_ago=9).runs(DONE, "done")
    file = kept(team, talk)
    with monkeypatch.context() as within_the_week:
        within_the_week.setattr(impact, "WEEK_DAYS", 30)
        judged = outcome.tally(team)
    assert judged[HEAP].taken == 1
    file.unlink()
    assert outcome.tally(team) == judged
    injections.record(
        team.index_dir, injections.PROMPT, talk.id, "more", [(HEAP, 0.9)], [], 0.5, 9.0, "process"
    )  # fmt: skip
    assert outcome.tally(team)[HEAP].taken == 1


def test_an_injection_that_no_session_file_has_is_judged_once(team: Vault) -> None:
    drawn(team, "build", held=False, days_ago=9).file.unlink()
    other = Conversation(team.root, "build", began=datetime.now(UTC) - timedelta(days=8))
    kept(team, other.asks("another thing"))
    (entry,) = outcome.update(team).open.values()
    assert (entry.verdicts, entry.is_final) == (["unknown"], True)


def test_to_undo_by_git_is_rework() -> None:
    wrote = Step(story.WROTE, "a.py", came=frozenset({"a line of code"}))
    assert impact.reworked([wrote, Step(story.RAN, "git checkout -- a.py")], []) == 1
    assert impact.reworked([Step(story.RAN, "git revert HEAD"), wrote], []) == 0
    assert impact.reworked([Step(story.RAN, "ls")], []) is None


def test_the_first_injection_of_a_pair_counts_and_a_week_of_folding_keeps_it(team: Vault) -> None:
    talk = drawn(team, "twice", held=True, days_ago=60)
    kept(team, talk.runs(DONE, "done"))
    injections.record(
        team.index_dir, injections.PROMPT, talk.id, "another", [(HEAP, 0.9)], [], 0.5, 9.0, "process",
        arms={"drawn": [HEAP], "share": 0.5},
    )  # fmt: skip
    for _ in range(2):  # when it is open, and when it is only counted
        (pair,) = outcome.update(team, 600).all_pairs()
        assert pair.is_held
        talk.says("done")
        kept(team, talk)
    injections.rename(team.index_dir, {HEAP: "devops/memory"})
    (pair,) = outcome.update(team, 600).all_pairs()
    assert pair.lesson == "devops/memory"


@pytest.mark.slow
def test_the_commands_compare_export_and_add_up(team: Vault, tmp_path: Path) -> None:
    assert "nothing is measured yet" in run("lessons", "impact", cwd=team.root).out
    for number in range(8):
        talk = drawn(team, f"s{number}", held=number % 2 == 0)
        kept(team, talk.runs(DONE if number % 2 else "npm run build", "done"))
    said = run("lessons", "impact", cwd=team.root).out
    assert "done: 100% told, 0% held out; too few to say, 4 and 4 cases" in said
    assert "done: 100% told, 0% held out" in run("lessons", "status", cwd=team.root).out
    team_folder = tmp_path / "exports"
    team_folder.mkdir()
    for person in ("ada", "bob"):
        run("lessons", "impact", "--export", team_folder / f"{person}.json", cwd=team.root)
    text = (team_folder / "ada.json").read_text()
    assert "heap" not in text
    assert PROMPT not in text
    summed = run("lessons", "impact", team_folder, "--json", cwd=team.root).json
    assert summed["people"] == 2
    assert (summed["measures"][0]["told"], summed["measures"][0]["held"]) == (8, 8)
    assert summed["lessons"] == [
        {"lesson_id": HEAP, "title": "Raise the heap", "told": 8, "held": 8}
    ]
    write(team_folder / "odd.json", '{"version": 1, "cells": {"done": [[2, 1, 1, 1, 1, 1]]}}')
    done = run("lessons", "impact", team_folder, cwd=team.root, check=False)
    assert (done.code, done.err.count("\n")) == (1, 2)
    assert "odd.json: no export" in done.err


def test_a_lesson_of_few_sessions_has_no_name_in_an_export() -> None:
    several = [
        Pair(f"s{number}", "rare" if number < 4 else "often", 0.5, True, _one(1))
        for number in range(20)
    ]
    exported = impact.exported(impact.count(several))
    assert exported["lessons"] == {impact.OTHERS: [0, 4], impact.name_of("often"): [0, 16]}
    assert impact.imported(json.loads(json.dumps(exported))).cells == {
        impact.DONE: impact.count(several).cells[impact.DONE]
    }


@pytest.mark.parametrize(
    "wrong",
    [
        {}, [], None, {"version": 2, "cells": {}, "lessons": {}},
        {"version": 1, "cells": {"done": [[0.1, -1, 0, 0, 0, 1]]}, "lessons": {}},
        {"version": 1, "cells": {"done": [[0.1, 1, 0, 0, 0, 1.5]]}, "lessons": {}},
        {"version": 1, "cells": {}, "lessons": {"a": [1]}},
    ],
)  # fmt: skip
def test_what_is_no_export_is_refused(wrong: Any) -> None:
    with pytest.raises((ValueError, TypeError, KeyError)):
        impact.imported(wrong)


def test_a_changed_share_is_no_effect() -> None:
    """Good weeks with few held back and bad weeks with many differ by the weeks, not by the side."""
    several = []
    for number in range(2_000):
        share, good = (0.1, number % 10 != 0) if number % 2 else (0.8, number % 10 == 0)
        is_held = holdout.is_held(share, f"s{number}", "a")
        several.append(Pair(f"s{number}", "a", share, is_held, _one(int(good))))
    found = impact.difference(impact.DONE, impact.count(several).cells[impact.DONE])
    assert found.says == impact.TOO_FEW
    assert abs(float(found.difference or 0)) < 0.05


def test_small_sides_say_nothing_and_no_side_is_without_doubt() -> None:
    cells = impact.count([Pair(f"s{n}", "a", 0.1, n < 49, _one(n % 2)) for n in range(500)])
    assert impact.difference(impact.DONE, cells.cells[impact.DONE]).interval is None
    never = impact.count(
        [Pair(f"s{n}", "a", 0.5, n % 2 == 0, _one(int(n == 1))) for n in range(200)]
    )
    found = impact.difference(impact.DONE, never.cells[impact.DONE])
    assert found.says == impact.TOO_FEW


@pytest.mark.slow
def test_users_with_a_known_effect_are_told_so_and_no_reader_is_misled() -> None:
    """Read every 50 pairs: `python -m benchmarks.impact` has the figures of many users."""
    for user in range(6):
        nothing = simulate(user, 0.0, 0.5, pairs=1_000)
        assert nothing.is_covered
        assert not nothing.first_claim
    for user in range(6):
        rare = simulate(user, 0.0, 0.1, pairs=1_000, base=0.03)
        assert rare.is_covered
        assert not rare.first_claim
    large = [simulate(user, 0.15, 0.5, pairs=1_000) for user in range(6)]
    assert all(seen.at[100].says in (impact.TOO_FEW, "more") for seen in large)
    assert [seen.at[1_000].says for seen in large] == ["more"] * 6


def _one(done: int) -> list[int | None]:
    return [done, *[None] * (len(impact.MEASURES) - 1)]


def test_sums_of_people_are_the_counts_of_all() -> None:
    several = [Pair(f"s{n}", f"lesson-{n % 3}", 0.5, n % 2 == 0, _one(n % 2)) for n in range(30)]
    whole, halves = impact.count(several), (several[:14], several[14:])
    summed = impact.add([*map(impact.count, halves)])
    assert summed.cells == whole.cells
    assert dict(summed.lessons) == dict(whole.lessons)
