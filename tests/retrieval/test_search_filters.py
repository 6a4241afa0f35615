"""Searches narrowed to tags, a type, a time; and what comes first when a session starts."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import pytest

from tests.support.commands import run
from tests.support.files import MakeVault, commit, lesson_text, write
from tests.support.indexed import full_text_vault, with_words
from vault_index.api import codec
from vault_index.edit import init
from vault_index.errors import VaultError
from vault_index.index import reconcile
from vault_index.recall import select
from vault_index.retrieval import documents, query
from vault_index.retrieval.hit import Query
from vault_index.store import filters, times
from vault_index.store.filters import Filter
from vault_index.vault import Vault, open_vault

OLD, NEW = "2020-05-01T12:00:00Z", "2024-05-01T12:00:00Z"
FILES = {
    "old.md": f"---\ntitle: Old\ntags: [CI, node's]\ntype: bug_fix\ncreated: {OLD}\n---\nThe heap.",
    "new.md": f"---\ntitle: New\ntags: [ci-cd]\ntype: project_rule\ncreated: {NEW}\n---\nThe heap.",
    "now.md": "---\ntitle: Now\ntags: [memory]\n---\nThe heap.",
}
LONG_AGO = {"GIT_AUTHOR_DATE": "2019-01-01T00:00:00Z", "GIT_COMMITTER_DATE": "2019-01-01T00:00:00Z"}
QUERY = "the heap"


@pytest.fixture(scope="module")
def shelf(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A vault of which one lesson is not committed, and so new."""
    root = full_text_vault(tmp_path_factory.mktemp("shelf") / "team", FILES)
    run("git", "add", "lessons/old.md", "lessons/new.md", cwd=root)
    run("git", "commit", "-q", "--no-verify", "-m", "Long ago", cwd=root, env=LONG_AGO)
    run("lessons", "index", cwd=root, env={"LESSONS_EMBEDDER": "none"})
    return root


@pytest.fixture
def team(shelf: Path, text_only: None) -> Vault:
    """The one vault of all of these tests, which only read it."""
    return open_vault(shelf)


def day(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


@pytest.mark.parametrize(
    ("only", "found"),
    [
        (Filter(), "new now old"),
        (Filter(tags=["ci"]), "old"),
        (Filter(tags=["CI-cd", "memory"]), "new now"),
        (Filter(tags=["node's"]), "old"),
        (Filter(tags=["c"]), ""),
        (Filter(tags=["ci|ci-cd", "%", "') OR ('a'='a"]), ""),
        (Filter(type="bug_fix"), "old"),
        (Filter(type="bug' OR '1'='1"), ""),
        (Filter(since=day("2024-05-01")), "new now"),
        (Filter(since=datetime.now(UTC) + timedelta(days=9)), ""),
        (Filter(until=day("2024-05-01")), "old"),
        (Filter(until=day("2024-05-02")), "new old"),
        (Filter(until=datetime.now(UTC) + timedelta(days=9)), "new now old"),
        (Filter(since=day("2020-01-01"), until=day("2021-01-01")), "old"),
        (Filter(tags=["ci"], type="project_rule"), ""),
        (Filter(since=day("0001-01-01")), "new now old"),
    ],
)
def test_only_what_the_filter_says_is_searched(team: Vault, only: Filter, found: str) -> None:
    hits = query.run(team, Query(QUERY, 9, filters=only)).hits
    assert " ".join(sorted(hit.lesson_id for hit in hits)) == found


def test_the_last_commit_counts_as_a_change(team: Vault) -> None:
    """What `list --since` counts, too: the later of what the author says and of the last commit."""
    only = Filter(since=day("2020-05-01"), until=day("2020-05-02"))
    assert "created_at >= " in " ".join(only.where())
    assert "updated_at < " in " ".join(only.where())


@pytest.mark.parametrize("text", ["", "soon", "2026-13-01", "30", "d", "9999-12-31", "-3d"])
def test_what_is_no_date_is_refused(text: str) -> None:
    with pytest.raises(VaultError, match="no date"):
        times.until(text)


def test_a_day_is_searched_to_its_end() -> None:
    assert times.since("2026-03-31") == "2026-03-31T00:00:00+00:00"
    assert times.until("2026-03-31") == "2026-04-01T00:00:00+00:00"
    assert times.until("2026-03-31T10:00") == "2026-03-31T10:00:00+00:00"
    assert times.until("2026-03-31T10:00+02:00") == "2026-03-31T08:00:00+00:00"
    since = times.since("2w")
    assert codec.from_json(filters.Filter, {"since": since}).since == datetime.fromisoformat(since)


def test_skills_have_no_such_filters(team: Vault) -> None:
    words = ("lessons", "search", "--kind", "skills", "--tag", "x", "review this")
    ran = run(*words, cwd=team.root, check=False)
    assert (ran.code, ran.out) == (2, "")
    assert "are for lessons" in ran.err


def test_lessons_of_the_last_thirty_days_are_counted(
    make_vault: MakeVault, text_only: None
) -> None:
    days = ("0001-01-01", "2026-10-23", "2026-10-24", "2026-11-23", "9999-12-31", "")
    files = {f"of-{day}.md": f"---\ncreated: {day}\n---\nText of {day}.\n" for day in days}
    vault = make_vault(files, indexed=True)
    assert documents.count(vault, date(2026, 11, 23)).lately == 2


@pytest.mark.slow
def test_a_session_begins_with_the_rules_of_the_project(tmp_path: Path) -> None:
    root = tmp_path / "team"
    init(root)
    text = "Postgres migrations wait for a review of their lock_timeout."
    write(root / "lessons/rule.md", f"---\ntitle: Rule\ntype: project_rule\n---\n{text}")
    foreign = "---\ntitle: Frontend\ntype: project_rule\n---\nButtons have rounded corners."
    write(root / "lessons/foreign.md", foreign)
    for number in range(9):
        text = f"Postgres migrations: set lock_timeout before alter table {number}."
        write(root / f"lessons/m{number}.md", lesson_text(f"Lock {number}", text))
    (root / "lessons/vault.toml").write_text("floor = 0.3\nsession_lessons = 20\n")
    vault = open_vault(root)
    with_words(vault)
    reconcile.sync(vault)
    project = tmp_path / "project"
    write(project / "db.py", "x = 1\n")
    run("git", "init", "-q", cwd=project)
    commit(project, "Postgres migrations: set lock_timeout before alter table, review")
    given = select.for_session(vault, project).hits
    assert [hit.lesson_id for hit in given[:2]] == ["foreign", "rule"]  # whatever the work is
    assert len(given) == 11
    prompt = "postgres migrations: set lock_timeout before alter table"
    assert select.for_prompt(vault, prompt).hits[0].lesson_id != "rule"
