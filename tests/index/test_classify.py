"""The classifier: phrases first, then likeness, and silence when it is not sure; files only on demand."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.commands import run
from tests.support.files import MakeVault, lesson_text, write
from tests.support.watchers import assert_same_as_a_rebuild
from vault_index.edit import filing
from vault_index.index import classifier, reconcile
from vault_index.lesson.category import UNCATEGORIZED
from vault_index.retrieval import entries, query
from vault_index.vault import Vault, open_vault

# three subjects, told apart by the real model
FILED = {
    "database": ["Vacuum a table", "Explain a slow query", "Add an index without a lock"],
    "frontend": ["Centre a div", "Memoise a React component", "Lazy load an image"],
    "devops/ci-cd": ["Cache packages in CI", "Retry a flaky job", "Split the pipeline into stages"],
}


def filed_vault(make_vault: MakeVault) -> Vault:
    return make_vault(
        {
            f"{category}/{number}.md": lesson_text(title, f"{title}: this is how we do it here.")
            for category, titles in FILED.items()
            for number, title in enumerate(titles)
        }
    )


@pytest.mark.slow
def test_a_lesson_in_no_telling_folder_is_found_under_what_it_is_like(
    make_vault: MakeVault, with_model: Path
) -> None:
    vault = filed_vault(make_vault)
    text = lesson_text("Slow query after adding an index", "Run ANALYZE on the table again.")
    file = write(vault.lessons_dir / "inbox/new.md", text)
    reconcile.sync(vault)

    entry = entries.entry(vault, "inbox/new")
    assert (entry.categories, entry.filed_by) == (("database",), "classifier")
    hits = query.find(vault, "query slow since the index", 5, ["database"])
    assert "inbox/new" in [hit.lesson_id for hit in hits]
    assert file.read_text() == text  # a proposal never rewrites a file
    assert_same_as_a_rebuild(vault)


@pytest.mark.slow
def test_one_lesson_and_the_names_of_categories_are_enough(
    make_vault: MakeVault, with_model: Path
) -> None:
    """At the command line, in a vault as `init` makes it, and in one with a taxonomy of its own."""
    filed = {"database/a.md": lesson_text("Explain a slow query", "Ask the planner first.")}
    filed["frontend/b.md"] = lesson_text("Centre a div", "Use a grid.")
    filed["inbox/new.md"] = lesson_text("A slow query", "The database query was slow without it.")
    named = {"inbox/new.md": lesson_text("A Kafka consumer lags", "Add partitions to the topic.")}
    for name, files, wanted in (("init", filed, "database"), ("own", named, "messaging/kafka")):
        vault = make_vault(files, name=name)
        if name == "own":
            write(
                vault.lessons_dir / "vault.toml",
                'taxonomy = ["messaging/kafka", "messaging/email", "database"]\n',
            )
        (proposal,) = run("lessons", "categories", "propose", "--json", cwd=vault.root).json[
            "proposals"
        ]
        assert proposal["categories"] == [wanted]


@pytest.mark.slow
def test_what_it_is_like_nothing_stays_uncategorized_and_says_why(
    make_vault: MakeVault, with_model: Path
) -> None:
    vault = filed_vault(make_vault)
    write(vault.lessons_dir / "misc/soup.md", lesson_text("Pea soup", "Soak the peas overnight."))
    reconcile.sync(vault)
    (one,) = classifier.propose(vault)
    assert one.categories == (UNCATEGORIZED,)
    assert one.why[0].endswith(" is nearest, and less likely than not")
    assert one.sure == 0
    shown = run("lessons", "categories", "propose", cwd=vault.root).out
    assert shown.startswith("uncategorized: Pea soup\n")


@pytest.mark.slow
def test_a_phrase_decides_before_likeness(make_vault: MakeVault, with_model: Path) -> None:
    vault = filed_vault(make_vault)
    write(vault.lessons_dir / "vault.toml", '[keywords]\n"heron" = "payments/ledger"\n')
    write(
        vault.lessons_dir / "a.md",
        lesson_text("Heron times out", "The query on the table is slow."),
    )
    vault = open_vault(vault.root)
    reconcile.sync(vault)
    (one,) = classifier.propose(vault)
    assert one.categories == ("payments/ledger",)
    assert one.why == ("payments/ledger: 'heron' is in its title",)


@pytest.mark.slow
def test_a_young_vault_has_the_default_phrases_a_grown_one_its_own_tree(
    make_vault: MakeVault,
) -> None:
    text = lesson_text("GitHub Actions runs twice", "Both push and pull_request trigger it.")
    vault = make_vault({"a.md": text, "vault.toml": "# no taxonomy\n"}, indexed=True)
    assert classifier.propose(vault)[0].categories[0] == "devops/ci-cd"
    for number in range(classifier.YOUNG_VAULT):
        write(vault.lessons_dir / f"kitchen/{number}.md", lesson_text(f"Dish {number}", "Salt it."))
    reconcile.sync(vault)
    assert classifier.propose(vault)[0].categories == (UNCATEGORIZED,)


def test_a_file_that_changed_since_its_proposal_is_left_alone(make_vault: MakeVault) -> None:
    vault = make_vault({"a.md": lesson_text("Terraform state is locked", "Wait.")}, indexed=True)
    proposals = classifier.propose(vault)
    other = lesson_text("Bread", "Bake it.")
    write(vault.lessons_dir / "a.md", other)
    assert filing.write(vault, proposals) == (
        {},
        ["lessons/a.md changed since this was proposed"],
    )
    assert (vault.lessons_dir / "a.md").read_text() == other
