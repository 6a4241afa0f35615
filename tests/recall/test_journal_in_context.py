"""The journal is part of a session's start, and of no prompt."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.commands import run
from tests.support.conversations import Conversation, about_redirects, about_retries
from tests.support.files import commit, lesson_text, write
from vault_index import config
from vault_index.journal import recap
from vault_index.vault import Vault


@pytest.fixture
def team(make_vault: Callable[..., Vault], with_model: Path) -> Vault:
    """A vault of one lesson, in whose folder an agent has kept two sessions."""
    vault = make_vault({"devops/heap.md": lesson_text("Heap", "Raise the heap of the build.")})
    run("lessons", "index", cwd=vault.root)
    about_redirects(vault.root)
    about_retries(vault.root)
    Conversation(vault.root, "thanks").asks("thanks a lot").says("You are welcome.")
    Conversation(vault.root, "a word").asks("uploader").says("What about it?")
    return vault


@pytest.mark.slow
def test_a_session_begins_with_lessons_and_with_what_was_done(team: Vault) -> None:
    """Both within the one budget of 2,000 tokens."""
    run("lessons", "journal", "import", cwd=team.root)
    rule = "---\ntype: project_rule\n---\n# Redirects\n\nThe login redirect keeps the query. "
    for number in range(8):
        write(team.lessons_dir / f"rules/redirect-{number}.md", rule + "It always does. " * 200)
    commit(team.root, "Correct the login redirect, which lost the query")
    run("lessons", "index", cwd=team.root)
    event = {"hook_event_name": "SessionStart", "source": "startup", "session_id": "s9"}
    ran = run(
        "lessons-hook",
        cwd=team.root,
        stdin=json.dumps({**event, "cwd": str(team.root)}),
    )
    text = json.loads(ran.out)["hookSpecificOutput"]["additionalContext"]
    assert "## Done here before" in text
    assert "## Last records" in text
    assert "## Relevant lessons" in text
    assert "thanks a lot" not in text
    assert "uploader\n" not in text
    assert "Request: How many times should the uploader retry?\n" in text  # the first of two
    assert len(text) <= 8000
    assert text.count("not instructions") == 1


def test_a_session_begins_with_all_that_was_asked_and_nothing_twice(
    make_vault: Callable[..., Vault], text_only: None
) -> None:
    root = make_vault().root
    about_redirects(root)
    asked = "Look at the uploader. Never retry a 4xx, and use `upload --once` for the nightly job."
    paste = "ERROR it failed\n" * 2_000 + "What is wrong here, and why only at night?"
    talk = Conversation(root, "uploads").asks(asked).edits("up.py", "a", "b").says("Done.")
    talk.asks(paste).says("The clock.").asks("The login redirect loses the query string, too")
    run("lessons", "journal", "import", cwd=root)
    lines = recap.section(config.load(), root, "another").splitlines()
    said = [line.partition("] ")[2] or line.removeprefix("> Request: ") for line in lines]
    assert said.count(asked) == 1
    assert said.count("What is wrong here, and why only at night?") == 1
    assert len(said) == len({*said})
    assert max(map(len, lines)) < 400
