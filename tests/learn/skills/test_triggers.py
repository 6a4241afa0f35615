"""Whether a built skill is suggested for its lessons' prompts, with the real model."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.learn.skills import patterns
from tests.learn.skills.patterns import BY_TAG, HELD_OUT
from tests.support.commands import run
from tests.support.files import MakeVault
from tests.support.given import given_to
from vault_index.recall import select
from vault_index.retrieval import query
from vault_index.retrieval.hit import Query
from vault_index.vault import open_vault


@pytest.mark.slow
def test_each_prompt_of_a_lesson_finds_the_skill_and_no_silent_one_does(
    make_vault: MakeVault, with_model: Path
) -> None:
    """Also prompts that no lesson carries; the figures as measured, with some room."""
    vault = make_vault(dict(patterns.files_of()), indexed=True)
    for tag in BY_TAG:
        for _ in range(2):
            given_to(vault, (*patterns.ids(tag),))
    for command in (["skills", "build"], ["index"]):
        run("lessons", *command, cwd=vault.root)
    vault = open_vault(vault.root)
    for tag, several in BY_TAG.items():
        for *_, first, second, silent in several:
            for prompt in (first, second):
                skills = select.for_prompt(vault, prompt).skills
                assert [hit.title for hit in skills] == [f"learned-{tag}"], prompt
            skills = select.for_prompt(vault, silent).skills
            assert f"learned-{tag}" not in [hit.title for hit in skills], silent
    right = wrong = 0
    for prompt, tag in HELD_OUT:
        names = [hit.title for hit in select.for_prompt(vault, prompt).skills]
        right += bool(tag) and names == [f"learned-{tag}"]
        wrong += bool(names) and names != [f"learned-{tag}"]
    assert right >= 7
    assert wrong == 0
    every = Query(BY_TAG["http-retries"][0][3], 9, explain=True)
    assert query.skills(vault, every).hits[0].title == "learned-http-retries"
    assert query.count_skills(vault) == 2
