"""Keys that a section has of its own, below its heading: read, written, merged, checked, at each door."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.commands import run
from tests.support.files import MakeVault, write
from vault_index import api, client
from vault_index.lesson import edits
from vault_index.lesson.parse import parse_file
from vault_index.vault import Vault, open_vault

NOTES = """\
---
tags: [shared]
fires_on: [what is in these notes]
---
## Lesson: Redis loses keys

categories: [database/redis]
type: bug_fix
fires_on:
  - redis lost my keys

It forgets without a file.

## Lesson: Cache packages

Cache them in CI.
"""
any_text = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=40)
any_list = st.lists(any_text, max_size=3)
any_key = st.sampled_from(("categories", "tags", "fires_on", "silent_on", "fires_on_error"))


@pytest.fixture
def team(make_vault: MakeVault, text_only: None) -> Vault:
    vault = open_vault(make_vault({"inbox/notes.md": NOTES}).root)
    write(vault.lessons_dir / "vault.toml", '[keywords]\n"packages" = "devops/ci-cd"\n')
    return open_vault(vault.root)


def sections(data: bytes | str) -> dict[str, Any]:
    """Return the lessons of a file by the names of their sections."""
    content = data if isinstance(data, bytes) else data.encode()
    return {each.id.partition("#")[2]: each for each in parse_file(content, "inbox/notes.md")}


def notes(vault: Vault) -> bytes:
    return (vault.lessons_dir / "inbox/notes.md").read_bytes()


def test_a_section_has_keys_of_its_own_and_the_others_of_its_file() -> None:
    redis, ci = sections(NOTES).values()
    assert (redis.categories, redis.type) == (("database/redis",), "bug_fix")
    assert (redis.tags, redis.fires_on) == (("shared",), ("redis lost my keys",))
    assert redis.text == "It forgets without a file."
    assert (ci.categories, ci.tags, ci.fires_on) == ((), ("shared",), ("what is in these notes",))


@pytest.mark.parametrize(
    "text", ["tags: a\nand prose below it", "Type: a note", "- tags: a", "types: a", "    tags: a"]
)
def test_prose_stays_prose(text: str) -> None:
    lesson = sections(f"## Lesson: A\n\n{text}\n")["a"]
    assert (lesson.text, lesson.tags) == (text.strip(), ())


@pytest.mark.slow
@settings(deadline=None)
@given(
    keys=st.dictionaries(any_key, any_list.filter(bool), min_size=1),
    slug=st.sampled_from(("redis-loses-keys", "cache-packages")),
    newline=st.sampled_from(("\n", "\r\n")),
)
def test_what_was_written_is_read_back_and_nothing_else_changed(
    keys: dict[str, list[str]], slug: str, newline: str
) -> None:
    before = NOTES.replace("\n", newline).encode()
    after = edits.set_own_keys(before, slug, keys)
    was, now = sections(before), sections(after)
    for key, texts in keys.items():
        wanted = [" ".join(text.split()) for text in texts]
        assert list(getattr(now[slug], key)) == [text for text in wanted if text]
    other = next(name for name in now if name != slug)
    assert now[other] == was[other]
    assert (now[slug].title, now[slug].text) == (was[slug].title, was[slug].text)
    taken = dict.fromkeys(keys)
    if slug == "cache-packages":  # it had none
        assert edits.set_own_keys(after, slug, taken) == before


@pytest.mark.slow
def test_classify_files_a_section_and_not_its_file(team: Vault) -> None:
    shown = run("lessons", "categories", "propose", "--write", cwd=team.root).out
    assert "devops/ci-cd" in shown
    found = sections(notes(team))
    assert found["cache-packages"].categories == ("devops/ci-cd",)
    assert found["redis-loses-keys"].categories == ("database/redis",)
    assert b"## Lesson: Cache packages\ncategories: [devops/ci-cd]\n\nCache" in notes(team)
    listed = run("lessons", "list", "-c", "database", "--json", cwd=team.root).json
    assert [each["id"] for each in listed] == ["inbox/notes#redis-loses-keys"]


@pytest.mark.slow
def test_an_update_of_a_section_leaves_the_others(team: Vault) -> None:
    """As HTTP and Python put it; an empty list takes out what the file says, too."""
    change: dict[str, Any] = {"tags": ["redis"], "categories": ["cache"], "type": "architecture"}
    before = sections(notes(team))["cache-packages"]
    client.ask(team, api.edit.update_lesson(name="inbox/notes#redis-loses-keys", **change))
    redis = sections(notes(team))["redis-loses-keys"]
    assert (redis.tags, redis.categories, redis.type) == (("redis",), ("cache",), "architecture")
    assert sections(notes(team))["cache-packages"] == before
    client.ask(team, api.edit.update_lesson(name="inbox/notes#redis-loses-keys", tags=[]))
    assert sections(notes(team))["redis-loses-keys"].tags == ()
