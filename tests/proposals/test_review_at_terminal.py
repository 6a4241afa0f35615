"""A whole review at a terminal: keys, the editor, the diff before a merge, and every way to end it."""

from __future__ import annotations

import os
import pty
import subprocess
from pathlib import Path

import pytest

from tests.proposals.test_review import HEAP, ask, learned, lesson, team, waiting
from tests.support.commands import BIN, run
from tests.support.files import write
from tests.support.terminals import at_terminal
from vault_index import api
from vault_index.vault import Vault

pytestmark = pytest.mark.slow

__all__ = ["team"]

KEYS = "[q]uit"
AGAIN = "any other key"
REJECTS = ("reworded it may come again", "r")


def reviewed(
    team: Vault, *typed: str | tuple[str, str], words: tuple[str, ...] = (), editor: str = "true"
) -> tuple[int, str]:
    """Review at a terminal with these keys, each after the line of keys or what it waits for."""
    pairs = [key if isinstance(key, tuple) else (KEYS, key) for key in typed]
    env = {"EDITOR": editor, "VISUAL": editor}
    return at_terminal(
        "lessons", "review", *words, cwd=team.root, typed=pairs, env=env, size=(40, 100)
    )


def test_each_key_does_what_it_says(team: Vault, tmp_path: Path) -> None:
    learned(team)  # 1: help, another category, accepted
    learned(team, "Heap in Docker", f"{HEAP} And in Docker.")  # 2: merged
    learned(
        team, "Clock", "Freeze the clock in tests.", session=""
    )  # 3: no session; edited, accepted
    learned(team, "Noise", "Nothing that anybody needs to know.")  # 4: rejected
    learned(team, "Later", "Something to think about.")  # 5: skipped
    edit = write(tmp_path / "edit", '#!/bin/sh\nsed -i "s/Freeze/Stop/" "$1"\n')
    edit.chmod(0o755)
    code, shown = reviewed(
        team,
        *("?", "c", ("now ops):", "ops/release\n"), "a"),
        *("m", (AGAIN, "n"), "m", (AGAIN, "y")),
        *("w", "e", "a"),
        *("r", ("reworded it may come again", "n"), "t", "r", REJECTS),
        "s",
        words=("--commit",),
        editor=str(edit),
    )
    assert code == 0, shown
    assert "for the next review" in shown
    assert "1 of 5" in shown
    assert "5 of 5" in shown
    assert "it is from no session" in shown
    assert shown.count("“the installer refuses it”") == 1, "what prompts find comes with t alone"
    assert shown.endswith("2 accepted, 1 merged, 1 rejected, 1 left\n")
    assert lesson(team, "ops/release/rotate-the-key.md").title == "Rotate the key"
    assert lesson(team, "ops/heap.md").text.endswith("And in Docker.")
    assert lesson(team, "ops/clock.md").text == "Stop the clock in tests."
    assert [each["title"] for each in ask(team, api.proposal.select())] == ["Later"]
    subjects = run("git", "log", "--format=%s", "-3", cwd=team.root).out.splitlines()
    assert subjects == [
        "Add lesson: Clock",
        "Add to lesson: Raise the heap",
        "Add lesson: Rotate the key",
    ]


def test_a_prompt_is_struck_by_its_number_and_the_others_are_accepted(team: Vault) -> None:
    learned(team, prompts=("how do I sign a package", "what is the wind"), fires_on=[])
    code, shown = reviewed(team, "p", ("strikes one", "2"), "a")
    assert code == 0, shown
    assert "struck: what is the wind" in shown
    assert lesson(team, "ops/rotate-the-key.md").prompts == ("how do I sign a package",)


def test_a_whole_session_at_once(team: Vault) -> None:
    learned(team, session="0123abcd")
    learned(team, "Other", "Of another session.", session="4567abcd")
    learned(team, "Clock", "Freeze the clock in tests.", session="0123abcd")
    code, shown = reviewed(team, "w", ("all 2", "r"), "w", ("all 1", "x"), "q")
    assert (code, shown.endswith("2 rejected, 1 left\n")) == (0, True), shown
    assert len(waiting(team)) == 1


def test_the_categories_to_choose_from_are_listed_and_no_word_is_cut(team: Vault) -> None:
    """Issue 58, rows 6 and 8."""
    words = " ".join(f"certificate{number}" for number in range(40))
    code = "```\n" + "x" * 150 + "\n```"
    learned(team, text=f"{words}.\n\n{code}")
    _, shown = reviewed(team, "c", ("now ops):", "\n"), "t", "q")
    assert "\nops\ncategory (now ops):" in shown.replace("\r", "")
    whole = " ".join(shown.replace("\r", "").replace(".", "").split())
    assert words in whole
    assert "x" * 150 in shown


HEAP_TOO = f"{HEAP} And in Docker."


@pytest.mark.parametrize(
    ("answer", "path"),
    [("\n", "ops/"), ("ops/docker\n", "ops/docker/"), (".\n", "")],
    ids=["the fitting one", "another", "none"],
)
def test_accept_asks_for_a_category_before_it_writes(team: Vault, answer: str, path: str) -> None:
    """Issue 58, row 6."""
    id = learned(team, "Heap in Docker", HEAP_TOO, category_path="")
    accept = ("lessons", "review", "accept", id)
    question = "category of 'Heap in Docker'? (Enter for ops, . for none)"
    code, shown = at_terminal(*accept, cwd=team.root, typed=[(question, "\x04")])
    assert (code, waiting(team)) == (1, [id]), shown
    code, shown = at_terminal(*accept, cwd=team.root, typed=[(question, answer)])
    assert (code, waiting(team)) == (0, []), shown
    assert f"lessons/{path}heap-in-docker.md" in shown


def test_a_review_asks_for_a_category_before_it_accepts(team: Vault) -> None:
    """Issue 58, row 6: by `a`, and for each of a session by `w`."""
    learned(team, "Zyzzyva", "Zyzzyva.", category_path="")
    learned(team, "Heap in Docker", HEAP_TOO, category_path="")
    first, second = ("'Zyzzyva'? (. for none)", "\n"), ("'Zyzzyva'? (. for none)", "zoo\n")
    third = ("'Heap in Docker'? (Enter for ops", "\n")
    code, shown = reviewed(team, "w", ("eject all 2", "a"), first, second, third)
    assert (code, waiting(team)) == (0, []), shown
    assert lesson(team, "zoo/zyzzyva.md").title == "Zyzzyva"
    assert lesson(team, "ops/heap-in-docker.md").title == "Heap in Docker"


def test_a_rejection_is_taken_back(team: Vault) -> None:
    """Issue 58, row 5: `r` `r` on the wrong card was for good."""
    learned(team)
    learned(team, "Clock", "Freeze the clock in tests.")
    code, shown = reviewed(team, "u", "r", REJECTS, "u", "s", "a")
    assert code == 0, shown
    assert "nothing was rejected in this review" in shown
    assert "it waits again, at the end: Rotate the key" in shown
    assert shown.endswith("1 accepted, 1 left\n")
    assert lesson(team, "ops/rotate-the-key.md").title == "Rotate the key"


def test_one_that_was_decided_elsewhere_meanwhile_is_left_behind(
    team: Vault, tmp_path: Path
) -> None:
    id = learned(team)
    learned(team, "Clock", "Freeze the clock in tests.")
    elsewhere = write(tmp_path / "edit", f"#!/bin/sh\n{BIN}/lessons review reject {id}\n")
    elsewhere.chmod(0o755)
    _, shown = reviewed(team, "e", "a", "q", editor=str(elsewhere))
    assert "2 of 2" in shown
    assert shown.endswith("\n1 left\n")


def test_an_edit_that_is_refused_is_offered_again(team: Vault, tmp_path: Path) -> None:
    learned(team)
    edit = write(tmp_path / "edit", '#!/bin/sh\necho "## Lesson: Two" >> "$1"\n')
    edit.chmod(0o755)
    _, shown = reviewed(team, "e", (AGAIN, "n"), "q", editor=str(edit))
    assert "is not one lesson" in shown
    assert len(waiting(team)) == 1


def test_every_end_leaves_the_rest_waiting(team: Vault) -> None:
    learned(team)
    learned(team, "Clock", "Freeze the clock in tests.")
    for keys, code, said in (
        (("a", "\x03"), 1, "1 accepted, 1 left"),
        (("\x04",), 0, "1 left"),
        (("q",), 0, "1 left"),
    ):
        ended, shown = reviewed(team, *keys)
        assert (ended, said in shown) == (code, True)
        assert [each["title"] for each in ask(team, api.proposal.select())] == ["Clock"]
    assert lesson(team, "ops/rotate-the-key.md").title == "Rotate the key"


def test_a_terminal_that_is_closed_leaves_all_waiting(team: Vault) -> None:
    id = learned(team)
    ours, theirs = pty.openpty()
    words = [str(BIN / "lessons"), "review"]
    with subprocess.Popen(
        words, cwd=team.root, stdin=theirs, stdout=theirs, stderr=theirs
    ) as running:
        os.close(theirs)
        shown = b""
        while b"[q]uit" not in shown:
            shown += os.read(ours, 65536)
        os.close(ours)
        running.wait(timeout=60)
    assert waiting(team) == [id]
