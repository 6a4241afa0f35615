"""Generic entries are dropped, specific ones are kept: a table of twenty of each."""

from __future__ import annotations

from tests.support.places import labelled
from vault_index.learn import particular

ENTRIES = labelled("entries.jsonl")
GENERIC = [one["text"] for one in ENTRIES if one["generic"]]
SPECIFIC = [one["text"] for one in ENTRIES if not one["generic"]]


def test_the_rule_on_the_tables_it_was_fitted_to() -> None:
    dropped = [text for text in (*GENERIC, *SPECIFIC) if particular.is_generic(text)]
    (missed,) = set(GENERIC) ^ set(dropped)
    assert "`x` or `data`" in missed  # descriptive names: two names


def test_words_of_the_project_count() -> None:
    text = "The ledger rounds each posting before the settlement, so that Postings match the statement."
    assert (
        particular.points(text, {"ledger", "posting", "settlement"}) > particular.points(text) + 1
    )


def test_a_command_of_git_that_every_handbook_has_is_generic() -> None:
    """Issue 58, row 8."""
    plain = "Update a branch with git pull --ff-only\n\nRun `git pull --ff-only` before you begin."
    assert particular.is_generic(plain)
    assert not particular.is_generic(plain.replace("you begin", "`make book` in ledger/main.py"))


PLAIN_RULES = [  # what a person said, and what a lesson makes of it
    ("Fix the test, not the code\n\nIn the reset tests the code is right; expectations are outdated.",
     "fix the test, the code is right"),
    ("Commit only what works\n\nEach commit holds working code, none a broken state.",
     "keep each commit with working code please, no micro-commits of a broken state"),
    ("Where a symptom shows is not its cause\n\nThe stop hook shows it and does not cause it.",
     "we see it on the stop hook, it doesn't mean the stop hook caused it"),
]  # fmt: skip


def test_a_plain_rule_is_particular_by_what_the_person_said() -> None:
    for text, quote in PLAIN_RULES:
        assert particular.is_generic(text) or "stop hook" in text
        assert not particular.is_generic(text, (), [quote])
    elsewhere = ["please push the branch of the mobile team to staging"]
    dropped = sum(particular.is_generic(text, (), elsewhere) for text in GENERIC)
    assert dropped >= 16
