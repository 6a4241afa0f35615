"""Lessons that name others under `## Related`: shown, checked, and the superseded stay out of prompts."""

from __future__ import annotations

import pytest

from tests.support.commands import run
from tests.support.files import MakeVault, lesson_text
from tests.support.indexed import with_words
from vault_index.index import reconcile
from vault_index.recall import select
from vault_index.vault import open_vault

OLD = lesson_text("Zebra quota of old", "The zebra quota is 7.")
NEW = lesson_text(
    "Zebra quota",
    "The zebra quota is 9.\n\n## Related\n\n- supersedes: ops/old\n- related: herd\n- supersedes: gone",
)


def test_a_superseded_lesson_stays_out_where_its_successor_comes(make_vault: MakeVault) -> None:
    vault = make_vault({"ops/old.md": OLD, "ops/new.md": NEW, "ops/herd.md": lesson_text("H", "x")})
    vault = open_vault(vault.root, floor=0.2)
    with_words(vault)
    reconcile.sync(vault)
    hits = select.for_prompt(vault, "zebra quota zebra quota").hits
    assert [hit.lesson_id for hit in hits] == ["ops/new"]
    (vault.lessons_dir / "ops/new.md").write_text(
        NEW.replace("supersedes: ops/old", "related: old")
    )
    reconcile.sync(vault)
    hits = select.for_prompt(vault, "zebra quota zebra quota").hits
    assert "ops/old" in {hit.lesson_id for hit in hits}


@pytest.mark.slow
def test_relations_are_shown_and_a_dead_one_is_a_warning(make_vault: MakeVault) -> None:
    vault = make_vault({"ops/old.md": OLD, "ops/new.md": NEW, "ops/herd.md": lesson_text("H", "x")})
    shown = run("lessons", "show", "new", "--json", cwd=vault.root).json["related"]
    assert [(each["kind"], each["name"], each["id"]) for each in shown] == [
        ("supersedes", "ops/old", "ops/old"), ("related", "herd", "ops/herd"), ("supersedes", "gone", ""),
    ]  # fmt: skip
    assert "supersedes: lessons show ops/old\n" in run("lessons", "show", "new", cwd=vault.root).out
    checked = run("lessons", "check", cwd=vault.root, check=False).out
    assert "relation: warning: it supersedes 'gone', and no lesson is called so" in checked
    assert "'ops/old'" not in checked
