"""A lesson that may help comes as its line; of lessons that say the same the newest comes."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import Any

import pytest

from tests.support.embedders import WordEmbedder
from tests.support.files import MakeVault, lesson_text
from tests.support.floors import set_floors
from tests.support.given import records
from tests.support.hits import LESSON
from vault_index.entrypoints.wording import hits
from vault_index.hotpath.hook_event import Event
from vault_index.index import reconcile
from vault_index.recall import block, select
from vault_index.recall.respond import Received, for_failure, respond
from vault_index.retrieval import duplicates, floor, query
from vault_index.store.delivery import Delivery
from vault_index.text import blocks, failure
from vault_index.vault import Vault

PROMPT = "postgres migrations block on alter table"
LOCK = "Alter table waits for a lock and blocks the migrations. Set lock_timeout first."
FILES = {
    "lock.md": lesson_text("Postgres alter table", LOCK),
    "heap.md": lesson_text("Heap", "The node build runs out of memory: raise the heap limit."),
    "vpn.md": lesson_text("VPN", "Staging deploys hang without the VPN."),
}
LINE = "- Postgres alter table: Alter table waits for a lock and blocks the migrations. (ID lock)\n"


def with_floors(vault: Vault, whole: float, line: float) -> Vault:
    """Index a vault with word vectors, and say from which evidence on a lesson comes, and its line."""
    vault.embedder = WordEmbedder(dimension=512)
    set_floors(vault, whole, line)
    reconcile.sync(vault)
    return vault


def prompted(vault: Vault, session: str = "s1") -> tuple[dict[str, Any], Delivery]:
    """Answer the prompt as a hook does; return the answer and the record of it."""
    event = Event("UserPromptSubmit", session, prompt=PROMPT, cwd=str(vault.root))
    answer = respond(vault, event, by="process", ms=0.0)
    return answer or {}, records(vault)[-1]


def test_between_the_floors_a_line_comes_once_and_the_lesson_may_follow(
    make_vault: MakeVault,
) -> None:
    vault = with_floors(make_vault(FILES), 9.0, 0.1)
    answer, record = prompted(vault)
    text = answer["hookSpecificOutput"]["additionalContext"]
    assert LINE in text
    assert "`learn_get`, or `lessons show ID`" in text
    assert "lock_timeout" not in text
    assert answer["systemMessage"] == "lessons to read: Postgres alter table"
    assert [(each.lesson, each.form) for each in record.given] == [("lock", "line")]
    answer, record = prompted(vault)
    assert (answer, record.silent) == ({}, "the session has it already")
    with_floors(vault, 0.1, 0.1)
    answer, record = prompted(vault)
    assert "lock_timeout" in answer["hookSpecificOutput"]["additionalContext"]
    assert answer["systemMessage"] == "lessons: Postgres alter table"
    assert [(each.lesson, each.form) for each in record.given] == [("lock", "whole")]
    assert prompted(vault)[0] == {}


WEAK = {
    "wait.md": lesson_text("Waiting", "Some migrations block for an hour; others ask for a coffee.")
}


def test_above_the_lower_floor_a_lesson_keeps_its_line_beside_a_better_one(
    make_vault: MakeVault,
) -> None:
    """Issue 57: a whole lesson pushed out the line of the right one."""
    vault = with_floors(make_vault(FILES | WEAK), 0.1, 0.05)
    best, weak = query.find(vault, PROMPT, k=2)
    assert (best.lesson_id, weak.lesson_id) == ("lock", "wait")
    assert weak.score < floor.COMPANION_SHARE * best.score
    set_floors(vault, (best.reason + weak.reason) / 2, weak.reason / 2)
    for whole in ((best.reason + weak.reason) / 2, weak.reason / 2):
        set_floors(vault, whole, weak.reason / 2)
        given = select.for_prompt(vault, PROMPT)
        forms = [(hit.lesson_id, hit.as_line) for hit in given.hits]
        assert forms == [("lock", False), ("wait", True)]


def test_a_name_that_no_lesson_has_takes_no_sibling_away(make_vault: MakeVault) -> None:
    """Issue 57: `./migrate_all.py` in a prompt left the second of two close lessons out."""
    near = lesson_text("Alter table", "Postgres migrations block: set a lock limit first.")
    vault = with_floors(make_vault(FILES | {"near.md": near}), 9.0, 0.1)
    for prompt in (PROMPT, f"{PROMPT} in migrate_all.py"):
        first, second = query.find(vault, prompt, k=2)
        assert second.score >= floor.COMPANION_SHARE * first.score
        set_floors(vault, 9.0, (first.reason + second.reason) / 2 + floor.MOST_LOWER)
        given = select.for_prompt(vault, prompt)
        assert {hit.lesson_id for hit in given.hits} == {"lock", "near"}, prompt


def test_whoever_wants_no_whole_lessons_gets_lines(make_vault: MakeVault) -> None:
    vault = with_floors(make_vault(FILES | {"vault.toml": "prompt_lessons = 0\n"}), 0.1, 0.1)
    answer, record = prompted(vault)
    assert LINE in answer["hookSpecificOutput"]["additionalContext"]
    assert [(each.lesson, each.form) for each in record.given] == [("lock", "line")]


def test_at_a_failure_one_line_comes(make_vault: MakeVault) -> None:
    vault = with_floors(make_vault(FILES), 9.0, 0.1)
    failed = failure.read("psql", "ERROR: alter table waits for a lock and blocks")
    given = for_failure(vault, failed)
    assert [(hit.lesson_id, hit.as_line) for hit in given.hits] == [("lock", True)]
    assert LINE in given.text
    assert not for_failure(vault, failed, received=Received(pointed=["lock"])).text


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("ferry (Ida's conflicted copy 2026-10-02).md", ""),  # P11
        ("ferry.sync-conflict-20261002-231502-K4M2QRS.md", "twenty"),
        ("ferry 2.md", "Bring a coat."),
        ("other.md", "A ferry at night"),
        ("elsewhere.md", "The night ferry will not wait"),
        ("fe\u0301rry.md", ""),
    ],
)
def test_of_copies_a_prompt_gets_the_newest_and_check_names_both(
    make_vault: MakeVault, name: str, text: str
) -> None:
    said = "The night ferry leaves at ten past one and waits for nobody; after a late shift take a taxi."
    title = "The night ferry does not wait"
    copy = said.replace("ten", text) if text == "twenty" else said + text * text.endswith(".")
    copy = copy.replace("a taxi", "the taxi") if name == "elsewhere.md" else copy
    files = {
        "ferry.md": lesson_text(title, said),
        name: lesson_text(text if text[:2] in ("A ", "Th") else title, copy),
        "belt.md": lesson_text("The belt of the ferry", "A late belt waits for the night shift."),
    }
    vault = make_vault(files)
    for age, each in enumerate(("ferry.md", name)):
        os.utime(vault.lessons_dir / each, (1_700_000_000 + age, 1_700_000_000 + age))
    vault = with_floors(vault, 0.01, 0.01)
    paths = [
        hit.path for hit in select.for_prompt(vault, "late shift: does the night ferry wait").hits
    ]
    assert len(set(paths) & {"lessons/ferry.md", f"lessons/{name}"}) == 1
    assert f"lessons/{name}" in paths
    assert "lessons/belt.md" in paths
    older, newer = duplicates.against_index(vault, ["ferry.md", name]).findings
    assert (name in older.message, "ferry.md" in newer.message) == (True, True)


def test_what_supersedes_a_lesson_takes_its_place_though_no_prompt_finds_it(
    make_vault: MakeVault,
) -> None:
    newer = lesson_text(
        "Lock timeouts", "We use another tool now.\n\n## Related\n\n- supersedes: lock\n"
    )
    vault = with_floors(make_vault(FILES | {"newer.md": newer}), 0.1, 0.1)
    (hit,) = select.for_prompt(vault, PROMPT).hits
    assert (hit.lesson_id, hit.title) == ("newer", "Lock timeouts")
    assert not select.for_prompt(vault, PROMPT, given=["newer"]).hits


@pytest.mark.parametrize(
    ("title", "text"),
    [
        ("Postgres alter table", f"{LOCK} Tell the owner."),
        ("Alter table of Postgres", LOCK.replace("first", "at first")),
    ],
)
def test_a_near_copy_of_a_superseded_lesson_is_superseded(
    make_vault: MakeVault, title: str, text: str
) -> None:
    """Issue 57, 2: only the name of the newest look-alike was asked for."""
    newer = lesson_text(
        "Lock timeouts", "We use another tool now.\n\n## Related\n\n- supersedes: lock\n"
    )
    vault = make_vault(FILES | {"newer.md": newer, "copy.md": lesson_text(title, text)})
    os.utime(vault.lessons_dir / "lock.md", (1_700_000_000, 1_700_000_000))
    vault = with_floors(vault, 0.1, 0.1)
    assert [hit.lesson_id for hit in select.for_prompt(vault, PROMPT).hits] == ["newer"]


def test_a_pointer_does_not_say_its_title_twice() -> None:
    """Issue 55, row 15: of a lesson without a title it is the first sentence."""
    title = "Staging deploys need the VPN"
    hit = replace(LESSON, title=title, text=f"{title}. Set VPN=1 in the job.")
    line = replace(hit, as_line=True)
    for shown in (block.injection([line], 600), block.at_edit(hit), *hits.lines(hit, 1)[2:]):
        assert shown.count(title) == ("<lessons>" in shown)
        assert "Set VPN=1 in the job." in shown
    alone = block.injection([replace(line, text=f"{title}.")], 600)
    assert f"- {title} (ID " in alone


def test_a_sentence_that_begins_as_the_title_stays() -> None:
    text = "Staging deploys need the VPN since May. Set it."
    assert blocks.after_title(text, "Staging deploys need the VPN") == text
