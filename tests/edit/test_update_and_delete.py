"""Changing and deleting lessons in their files: nothing else in them moves."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.commands import run
from tests.support.files import MakeVault, lesson_text
from tests.support.indexed import swap
from vault_index.edit import remove, update
from vault_index.errors import VaultError
from vault_index.index import reconcile
from vault_index.lesson import edits
from vault_index.lesson.parse import parse_file
from vault_index.retrieval import entries
from vault_index.vault import Vault

FILE = b"""---
title: Deploys   # of all kinds
---
Read this first.

## Lesson: Staging needs the VPN

Set VPN=1.

```md
## Lesson: not one
```

## Lesson: Roll back by tag

Never by branch.
"""


@pytest.fixture
def deploys(make_vault: MakeVault) -> Vault:
    return make_vault(
        {"ops/deploys.md": FILE, "ops/heap.md": lesson_text("Heap", "Raise it.")}, indexed=True
    )


def content(vault: Vault, path: str = "ops/deploys.md") -> bytes:
    return (vault.lessons_dir / path).read_bytes()


def test_the_text_of_a_section(deploys: Vault) -> None:
    update.write(deploys, "deploys#roll-back-by-tag", text="Always by tag.\n\nAlways.")
    assert content(deploys) == FILE.replace(b"Never by branch.", b"Always by tag.\n\nAlways.")
    update.write(deploys, "deploys#staging-needs-the-vpn", text="Set VPN=2.")
    assert b"## Lesson: Staging needs the VPN\n\nSet VPN=2.\n\n## Lesson: Roll" in content(deploys)


def test_the_text_before_the_first_section_and_its_title(deploys: Vault) -> None:
    update.write(deploys, "ops/deploys", text="Read that first.", title="All deploys")
    changed = FILE.replace(b"Read this first.", b"Read that first.")
    assert content(deploys) == changed.replace(b"title: Deploys ", b"title: All deploys ")


@pytest.mark.slow
def test_the_title_of_a_section_makes_its_id(deploys: Vault) -> None:
    update.write(deploys, "deploys#roll-back-by-tag", title="Roll back by digest")
    reconcile.sync(deploys)
    assert entries.entry(deploys, "deploys#roll-back-by-digest").text == "Never by branch."
    update.write(deploys, "deploys#roll-back-by-digest", title="By digest", fires_on=["undo it"])
    reconcile.sync(deploys)
    assert entries.entry(deploys, "deploys#by-digest").fires_on == ("undo it",)


@pytest.mark.parametrize("title", ["Why C#", "Two\nlines", "# marks #", "`code`: and: colons"])
def test_a_title_reads_back_as_it_was_given(deploys: Vault, title: str) -> None:
    for name in ("deploys#roll-back-by-tag", "ops/deploys", "ops/heap"):
        path = update.write(deploys, name, title=title)
        titles = [one.title for one in parse_file(path.read_bytes(), "x.md")]
        documents = [one.document for one in parse_file(path.read_bytes(), "x.md")]
        assert " ".join(title.split()) in titles + documents


def test_line_ends_are_those_of_the_file(make_vault: MakeVault) -> None:
    vault = make_vault({"a.md": "# T\r\n\r\nold", "b.md": "# T\n\nold\n"}, indexed=True)
    update.write(vault, "a", text="new\r\nlines\r\n")
    update.write(vault, "b", text="new\r\nlines\r\n")
    assert content(vault, "a.md") == b"# T\r\n\r\nnew\r\nlines\r\n"
    assert content(vault, "b.md") == b"# T\n\nnew\nlines\n"


def test_only_what_is_named_is_touched(make_vault: MakeVault) -> None:
    vault = make_vault({"a.md": "no newline at the end"}, indexed=True)
    update.write(vault, "a", confidence=5)
    assert content(vault, "a.md") == b"---\nconfidence: 5\n---\nno newline at the end"


@pytest.mark.slow
def test_frontmatter_keys(deploys: Vault) -> None:
    update.write(deploys, "heap", categories=["a", "b/c"], tags=["x"], type="bug_fix", confidence=5)
    reconcile.sync(deploys)
    entry = entries.entry(deploys, "heap")
    assert (entry.categories, entry.tags) == (("a", "b/c"), ("x",))
    assert (entry.type, entry.confidence, entry.filed_by) == ("bug_fix", 5, "author")
    update.write(deploys, "heap", categories=[], tags=[], type="")
    assert b"categories" not in content(deploys, "ops/heap.md")


def test_what_is_the_same_is_not_written(deploys: Vault) -> None:
    before = (deploys.lessons_dir / "ops/heap.md").stat().st_mtime_ns
    update.write(deploys, "heap", text="Raise it.")
    assert (deploys.lessons_dir / "ops/heap.md").stat().st_mtime_ns == before


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"text": "  \n"}, "needs some text"),
        ({"type": "opinion"}, "no type"),
        ({"confidence": 9}, "confidence is 1 to 5"),
        ({"title": " \n"}, "needs a title"),
        ({"text": "run:\n```\nfoo"}, "would not stay one lesson"),
        ({"text": "x\n\n## Lesson: y\n"}, "would not stay one lesson"),
    ],
)
def test_what_cannot_be_is_refused(deploys: Vault, changes: dict[str, Any], said: str) -> None:
    before = content(deploys)
    with pytest.raises(VaultError, match=said):
        update.write(deploys, "deploys#staging-needs-the-vpn", **changes)
    assert content(deploys) == before


lines = st.sampled_from(
    ["Text.", "", "- item", "```\n## Lesson: code\n```", "# Heading", "   indented", "## Other"]
    + ["ü🔥", "---"]
)
texts = st.lists(lines, min_size=1, max_size=6).map("\n".join)


@given(st.lists(texts, min_size=1, max_size=4), st.data(), st.sampled_from(["\n", "\r\n"]))
def test_only_the_section_that_is_meant_changes(
    sections: list[str], data: st.DataObject, newline: str
) -> None:
    body = "\n".join(f"## Lesson: Part {n}\n\n{text}\n" for n, text in enumerate(sections))
    file = f"---\ntitle: T\n---\n{body}".replace("\n", newline).encode()
    before = {one.id: one for one in parse_file(file, "f.md")}
    chosen = data.draw(st.sampled_from([one for one in before if "#" in one]))
    slug = chosen.partition("#")[2]

    after = {
        one.id: one
        for one in parse_file(edits.set_text(file, slug, "Something new.", None, "f.md"), "f.md")
    }
    assert after[chosen].text == "Something new."
    assert {**after, chosen: before[chosen]} == before

    left = edits.without(file, slug, "f.md")
    kept = {one.id: one for one in parse_file(left, "f.md")} if left else {}
    assert kept == {key: one for key, one in before.items() if key != chosen}


@pytest.mark.slow
def test_deleting_a_section_leaves_the_others_to_the_byte(deploys: Vault) -> None:
    remove.delete(deploys, "deploys#staging-needs-the-vpn")
    start, end = FILE.index(b"## Lesson: Staging"), FILE.index(b"## Lesson: Roll")
    assert content(deploys) == FILE[:start] + FILE[end:]
    reconcile.sync(deploys)
    assert [one.id for one in entries.entries(deploys)] == [
        "ops/deploys",
        "ops/deploys#roll-back-by-tag",
        "ops/heap",
    ]


def test_with_its_last_lesson_a_file_goes_and_an_empty_folder(make_vault: MakeVault) -> None:
    vault = make_vault({"a/b/c.md": "# All\n\n## Lesson: One\n\nText.\n"}, indexed=True)
    remove.delete(vault, "a/b/c#one")
    assert not (vault.lessons_dir / "a").exists()


@pytest.mark.slow
def test_what_was_shown_is_what_is_deleted(make_vault: MakeVault) -> None:
    """Two files that are swapped by rename between the look and the deed."""
    vault = make_vault(
        {"one.md": lesson_text("One", "1."), "two.md": lesson_text("Two", "2.")}, indexed=True
    )
    shown = entries.entry(vault, "two")
    swap(vault.lessons_dir / "one.md", vault.lessons_dir / "two.md")
    with pytest.raises(VaultError, match="changed; two is not what it was"):
        remove.delete(vault, "two")
    with pytest.raises(VaultError, match="changed; two is not what it was"):
        update.write(vault, "two", text="Other.")
    reconcile.sync(vault)
    with pytest.raises(VaultError, match="is not what it was"):
        remove.delete(vault, "two", shown)
    assert remove.delete(vault, "two", entries.entry(vault, "two")) == vault.lessons_dir / "two.md"


def test_what_an_editor_left_is_checked_and_its_failure_told(deploys: Vault) -> None:
    broken = run("lessons", "edit", "heap", cwd=deploys.root, env={"VISUAL": "sed -i 2s/.*/a:[/"})
    assert "warning: ops/heap" in broken.err or "warning: lessons/ops/heap.md" in broken.err
    failed = run("lessons", "edit", "heap", cwd=deploys.root, env={"VISUAL": "false"}, check=False)
    assert failed.code == 1
    assert failed.err.endswith("Error: the editor 'false' ended with 1\n")
