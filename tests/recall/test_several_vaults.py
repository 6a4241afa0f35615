"""A prompt in a project also gets lessons of the vaults above it: the team's, the organisation's."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.support.commands import run
from tests.support.files import commit, lesson_text, write
from tests.support.indexed import full_text_vault
from vault_index.api import learn, search
from vault_index.edit import init
from vault_index.index import reconcile
from vault_index.recall import respond, select
from vault_index.retrieval import above
from vault_index.retrieval.hit import Query
from vault_index.text import failure
from vault_index.vault import Vault, open_vault

HEAP = lesson_text(
    "Heap of the build", "Raise the heap when the frontend build runs out of memory."
)
LOCK = lesson_text("Lock of migrations", "Migrations of postgres wait for a lock on the table.")
CACHE = lesson_text("Cache of the proxy", "The nginx proxy serves a stale cache after a purge.")
PROMPT = "the frontend build runs out of memory, raise the heap"


pytestmark = pytest.mark.usefixtures("text_only")


def vault_at(root: Path, lessons: Mapping[str, str]) -> Vault:
    return open_vault(full_text_vault(root, lessons))


def stand_on(*entries: Path | str) -> None:
    home = Path(os.environ["LESSONS_HOME"])
    home.mkdir(exist_ok=True)
    listed = json.dumps([str(entry) for entry in entries])
    (home / "config.toml").write_text(f"[vaults]\nabove = {listed}\n")


def told(project: Path, prompt: str = PROMPT, already: tuple[str, ...] = ()) -> list[str]:
    given = select.for_prompt(open_vault(project), prompt, given=already)
    return [hit.lesson_id for hit in given.hits]


@pytest.mark.slow
def test_a_prompt_gets_a_lesson_of_the_team_marked_with_its_origin(tmp_path: Path) -> None:
    vault_at(tmp_path / "project", {"db/lock.md": LOCK})
    vault_at(tmp_path / "team", {"ci/heap.md": HEAP})
    assert told(tmp_path / "project") == []
    stand_on(tmp_path / "team")
    injection = select.for_prompt(open_vault(tmp_path / "project"), PROMPT)
    assert [hit.lesson_id for hit in injection.hits] == ["team:ci/heap"]
    assert "\n  team: lessons/ci/heap.md" in injection.text
    assert told(tmp_path / "project", already=("team:ci/heap",)) == []


@pytest.mark.slow
def test_the_nearer_vault_wins_a_near_duplicate(tmp_path: Path) -> None:
    vault_at(tmp_path / "project", {"ci/ours.md": HEAP})
    vault_at(tmp_path / "team", {"ci/heap.md": HEAP, "web/cache.md": CACHE})
    vault_at(tmp_path / "org", {"ci/same.md": HEAP, "db/lock.md": LOCK})
    stand_on(tmp_path / "team", tmp_path / "org")
    assert told(tmp_path / "project") == ["ci/ours"]
    # also where this session was told of it before
    assert told(tmp_path / "project", already=("ci/ours",)) == []
    assert told(tmp_path / "project", "the nginx proxy serves a stale cache") == ["team:web/cache"]


@pytest.mark.slow
def test_a_silent_on_of_the_nearer_vault_holds_for_the_farther(tmp_path: Path) -> None:
    quiet = HEAP.replace("---\n", f"---\nsilent_on: ['{PROMPT}']\n", 1)
    vault_at(tmp_path / "project", {"ci/ours.md": quiet})
    vault_at(tmp_path / "team", {"ci/heap.md": HEAP})
    stand_on(tmp_path / "team")
    assert told(tmp_path / "project") == []


def test_a_vault_that_is_missing_or_has_no_index_changes_nothing(tmp_path: Path) -> None:
    vault_at(tmp_path / "project", {"ci/ours.md": HEAP})
    init(tmp_path / "new")
    stand_on(tmp_path / "nowhere", tmp_path / "new", tmp_path / "more" / "new")
    assert told(tmp_path / "project") == ["ci/ours"]
    states = {row.name: row.state for row in above.listed(open_vault(tmp_path / "project"))}
    assert states == {
        "project": "ready",
        "nowhere": "no vault there",
        "new": "no index: run `lessons sync`",
        "new-2": "no vault there",
    }


@pytest.mark.slow
def test_an_address_is_a_warning_and_the_folders_count(tmp_path: Path) -> None:
    project = tmp_path / "project"
    vault_at(project, {"db/lock.md": LOCK})
    vault_at(tmp_path / "team", {"ci/heap.md": HEAP})
    stand_on(
        "https://me:token@git.example.org/x/lessons.git@v1", "git@host:x.git", tmp_path / "team"
    )
    shown = run("lessons", "vaults", cwd=project)
    assert str(tmp_path / "team") in shown.out
    warning = "an address in vaults.above: clone it yourself, and name the folder"
    assert shown.err.count(warning) == 1
    assert "token" not in shown.err
    assert told(project) == ["team:ci/heap"]


@pytest.mark.slow
def test_a_repository_names_no_vault_above(tmp_path: Path) -> None:
    vault_at(tmp_path / "project", {"db/lock.md": LOCK})
    vault_at(tmp_path / "team", {"ci/heap.md": HEAP})
    settings = tmp_path / "project" / "lessons" / "vault.toml"
    settings.write_text(f'[vaults]\nabove = ["{tmp_path / "team"}"]\n')
    assert told(tmp_path / "project") == []


@pytest.mark.slow
def test_trust_holds_in_each_vault(tmp_path: Path) -> None:
    vault_at(tmp_path / "project", {"db/lock.md": LOCK})
    vault_at(tmp_path / "team", {"ci/heap.md": HEAP})
    stand_on(tmp_path / "team")
    file = Path(os.environ["LESSONS_HOME"]) / "config.toml"
    file.write_text('trust = "committed-only"\n' + file.read_text())
    assert told(tmp_path / "project") == []  # nobody committed it
    commit(tmp_path / "team", "lessons")
    reconcile.sync(open_vault(tmp_path / "team"))
    assert told(tmp_path / "project") == ["team:ci/heap"]


FAILURE = failure.read(
    "npm run build", "FATAL ERROR: Reached heap limit, JavaScript heap out of memory"
)


@pytest.mark.slow
def test_a_failure_gets_the_lesson_of_the_team_unless_ours_is_silent(tmp_path: Path) -> None:
    line = "FATAL ERROR: Reached heap limit"
    fires = HEAP.replace("---\n", f"---\nfires_on_error: ['{line}']\n", 1)
    silent = HEAP.replace("---\n", f"---\nsilent_on_error: ['{line}']\n", 1)
    project = tmp_path / "project"
    vault_at(tmp_path / "team", {"ci/heap.md": fires})
    vault_at(project, {"db/lock.md": LOCK})
    assert not respond.for_failure(open_vault(project), FAILURE).hits
    stand_on(tmp_path / "team")
    told = respond.for_failure(open_vault(project), FAILURE)
    assert [hit.lesson_id for hit in told.hits] == ["team:ci/heap"]
    assert "team: lessons/ci/heap.md" in told.text
    write(project / "lessons" / "ci" / "ours.md", fires)
    reconcile.sync(open_vault(project))
    told = respond.for_failure(open_vault(project), FAILURE)
    assert [hit.lesson_id for hit in told.hits] == ["ci/ours"]
    write(project / "lessons" / "ci" / "ours.md", silent)
    reconcile.sync(open_vault(project))
    assert not respond.for_failure(open_vault(project), FAILURE).hits


@pytest.mark.slow
def test_a_search_of_people_and_of_agents_looks_above(tmp_path: Path) -> None:
    project = tmp_path / "project"
    vault_at(project, {"db/lock.md": LOCK, "ci/ours.md": HEAP})
    vault_at(tmp_path / "team", {"ci/heap.md": HEAP, "web/cache.md": CACHE})
    stand_on(tmp_path / "team")
    asked = Query("the nginx proxy serves a stale cache", 0)
    assert [hit.lesson_id for hit in search.find(query=asked).answer(open_vault(project)).hits] == [
        "team:web/cache"
    ]
    for_agent = learn.search(query=asked.text).answer(open_vault(project))
    assert [hit.lesson_id for hit in for_agent.hits] == ["team:web/cache"]
    ours = search.find(query=Query(PROMPT)).answer(open_vault(project)).hits
    assert [hit.lesson_id for hit in ours] == ["ci/ours"]
    shown = run("lessons", "search", asked.text, cwd=project).out
    assert "team: lessons/web/cache.md" in shown
