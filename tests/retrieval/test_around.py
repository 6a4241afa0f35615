"""The surroundings of a lesson: the nearest others, and its own prompts."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.files import MakeVault, lesson_text
from vault_index import api
from vault_index.api import codec
from vault_index.vault import Vault

HEAP = """\
---
title: Heap
fires_on: ["raise the heap of the build", "bananas and oranges"]
silent_on: ["raise the heap of the build", "zebra one, mole three, migrations wait for a lock"]
---
Raise the heap of the node build, it runs out of memory.
"""
SECRET = "AWS_SECRET_ACCESS_KEY=q8Lr2Vn0XsT5uKd9Zb3EwYcAf7HgJp1MoRi6NtQe, heap of the node build"


@pytest.fixture
def vault(make_vault: MakeVault, text_only: None) -> Vault:
    return make_vault(
        {
            "heap.md": HEAP,
            "memory.md": lesson_text("Memory", "The node build is out of memory: raise the heap."),
            "lock.md": lesson_text("Lock", "Migrations wait for a lock on the table."),
            "leaked.md": lesson_text("Heap key", SECRET),
        },
        words=True,
        indexed=True,
    )


def asked(vault: Vault, question: api.Question[Any]) -> Any:
    return codec.to_json(question.answer(vault))


def test_the_nearest_lessons_come_first_and_no_withheld_one(vault: Vault) -> None:
    lessons = asked(vault, api.lesson.nearest(id="heap", most=2))
    assert lessons[0]["id"] == "memory"
    assert 0.5 < lessons[0]["likeness"] <= 1
    assert {"heap", "leaked"}.isdisjoint(each["id"] for each in lessons)


@pytest.mark.slow
def test_each_prompt_of_a_lesson_passes_or_fails(vault: Vault) -> None:
    prompts = asked(vault, api.lesson.prompts(id="heap"))["prompts"]
    passed = {(each["prompt"], each["is_silent"]): each["passes"] for each in prompts}
    assert (
        passed["raise the heap of the build", False] != passed["raise the heap of the build", True]
    )
    assert passed["zebra one, mole three, migrations wait for a lock", True]
