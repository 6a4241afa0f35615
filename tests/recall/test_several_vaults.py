"""A prompt in a project also gets lessons of the vaults above it: the team's, the organisation's."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.support.commands import run
from tests.support.embedders import WordEmbedder
from tests.support.files import commit, lesson_text, write
from tests.support.indexed import full_text_vault, with_words
from vault_index.api import answer, learn, search
from vault_index.ask import passages
from vault_index.edit import init
from vault_index.errors import SettingsError
from vault_index.index import reconcile
from vault_index.recall import calls, select
from vault_index.search import above, failures, floor
from vault_index.search.query import Query
from vault_index.share import clones
from vault_index.text import failure
from vault_index.vault import Vault, open_vault

HEAP = lesson_text(
    "Heap of the build", "Raise the heap when the frontend build runs out of memory."
)
LOCK = lesson_text("Lock of migrations", "Migrations of postgres wait for a lock on the table.")
CACHE = lesson_text("Cache of the proxy", "The nginx proxy serves a stale cache after a purge.")
PROMPT = "the frontend build runs out of memory, raise the heap"


@pytest.fixture(autouse=True)
def _words_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LESSONS_EMBEDDER", "none")


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
def test_an_index_above_that_goes_meanwhile_takes_nothing_along(tmp_path: Path) -> None:
    vault_at(tmp_path / "project", {"ci/ours.md": HEAP})
    vault_at(tmp_path / "team", {"ci/heap.md": HEAP.replace("Raise", "Please raise")})
    stand_on(tmp_path / "team")
    assert told(tmp_path / "project") == ["ci/ours", "team:ci/heap"]
    project = open_vault(tmp_path / "project")
    own = [hit for hit in select.for_prompt(project, PROMPT).hits if hit.lesson_id == "ci/ours"]

    def search(_: above.Above, other: Vault) -> above.Answer:
        shutil.rmtree(other.index_dir)
        return above.Answer(select.for_prompt(other, PROMPT).hits)

    joined = above.joined(project, above.Answer(own), search)
    assert [hit.lesson_id for hit in joined] == ["ci/ours"]


def test_lessons_near_by_their_vectors_come_once(tmp_path: Path) -> None:
    embedder = WordEmbedder()
    other_words = HEAP.replace("Raise", "Please raise")
    vaults = [init_with(tmp_path / name, text) for name, text in (("p", HEAP), ("t", other_words))]
    for vault in vaults:
        with_words(vault, embedder)
        reconcile.sync(vault, rebuild=True)
        floor.fit(vault)
    stand_on(tmp_path / "t")
    project = with_words_of(tmp_path / "p", embedder)
    hits = select.for_prompt(project, PROMPT).hits
    assert [hit.lesson_id for hit in hits] == ["ci/heap"]
    assert embedder.queries.count(PROMPT) == 1
    embedder.queries.clear()
    long = f"{PROMPT} first\n{'and what not ' * 20}\nthen {PROMPT}"
    assert [hit.lesson_id for hit in select.for_prompt(project, long).hits] == ["ci/heap"]
    assert len(embedder.queries) == len(set(embedder.queries)) == 3  # it and both of its ends


def init_with(root: Path, text: str) -> Vault:
    init.init(root)
    write(root / "lessons" / "ci" / "heap.md", text)
    return open_vault(root)


def with_words_of(root: Path, embedder: WordEmbedder) -> Vault:
    vault = open_vault(root)
    with_words(vault, embedder)
    return vault


def test_a_silent_on_of_the_nearer_vault_holds_for_the_farther(tmp_path: Path) -> None:
    quiet = HEAP.replace("---\n", f"---\nsilent_on: ['{PROMPT}']\n", 1)
    vault_at(tmp_path / "project", {"ci/ours.md": quiet})
    vault_at(tmp_path / "team", {"ci/heap.md": HEAP})
    stand_on(tmp_path / "team")
    assert told(tmp_path / "project") == []


def test_a_vault_that_is_missing_or_has_no_index_changes_nothing(tmp_path: Path) -> None:
    vault_at(tmp_path / "project", {"ci/ours.md": HEAP})
    init.init(tmp_path / "new")
    stand_on(tmp_path / "nowhere", tmp_path / "new", "https://git.example.org/x/lessons.git@v1")
    assert told(tmp_path / "project") == ["ci/ours"]
    states = {row["name"]: row["state"] for row in clones.listed(open_vault(tmp_path / "project"))}
    assert states == {
        "project": "ready",
        "nowhere": "no vault there",
        "new": "no index: run `lessons sync`",
        "lessons": "not fetched: run `lessons sync`",
    }


@pytest.mark.slow
def test_a_vault_proposes_and_the_user_accepts_once(tmp_path: Path) -> None:
    project = tmp_path / "project"
    vault_at(project, {"db/lock.md": LOCK})
    vault_at(tmp_path / "team", {"ci/heap.md": HEAP})
    settings = project / "lessons" / "vault.toml"
    settings.write_text(f'[vaults]\nabove = ["{tmp_path / "team"}"]\n')
    assert told(project) == []
    shown = run("lessons", "vaults", cwd=project).out
    assert f"proposed: run `lessons vaults accept`  {tmp_path / 'team'}" in shown
    run("lessons", "vaults", "accept", cwd=project)
    assert told(project) == ["team:ci/heap"]
    settings.write_text(f'[vaults]\nabove = ["{tmp_path / "team"}", "{tmp_path / "other"}"]\n')
    assert told(project) == []  # it is another list


def git_vault(root: Path, lessons: Mapping[str, str]) -> Path:
    init.init(root)
    for path, text in lessons.items():
        write(root / "lessons" / path, text)
    commit(root, "lessons")
    return root


def git(root: Path, *words: str) -> str:
    return run("git", *words, cwd=root).out


@pytest.mark.slow
def test_a_pinned_clone_stays_pinned_and_a_branch_is_followed(tmp_path: Path) -> None:
    project = tmp_path / "project"
    vault_at(project, {"db/lock.md": LOCK})
    team = git_vault(tmp_path / "team", {"ci/heap.md": HEAP})
    git(team, "tag", "v1")
    first = git(team, "rev-parse", "HEAD").strip()
    stand_on(f"file://{team}@v1", f"file://{team}")
    rows = run("lessons", "vaults", "update", "--json", cwd=project).json
    assert [(row["name"], row["lessons"]) for row in rows[1:]] == [("team", 1), ("team-2", 1)]
    write(team / "lessons" / "web" / "cache.md", CACHE)
    commit(team, "more")
    git(team, "tag", "-f", "v1")
    done = run("lessons", "vaults", "update", "--json", cwd=project)
    assert [row["lessons"] for row in done.json[1:]] == [1, 2]
    assert f"warning: team: the tag v1 moved to {git(team, 'rev-parse', 'HEAD')[:7]}" in done.err
    assert f"kept {first[:7]}" in done.err
    again = run("lessons", "vaults", "update", "--json", cwd=project)
    assert [row["lessons"] for row in again.json[1:]] == [1, 2]
    assert told(project, "the nginx proxy serves a stale cache") == ["team-2:web/cache"]


@pytest.mark.slow
def test_a_commit_is_pinned_whatever_is_named_so_and_an_unknown_name_is_a_note(
    tmp_path: Path,
) -> None:
    project = tmp_path / "project"
    vault_at(project, {"db/lock.md": LOCK})
    team = git_vault(tmp_path / "team", {"ci/heap.md": HEAP})
    first = git(team, "rev-parse", "HEAD").strip()
    write(team / "lessons" / "web" / "cache.md", CACHE)
    commit(team, "more")
    for name in (first, first[:12]):
        git(team, "tag", name)  # whoever may push made another thing of that name
        git(team, "branch", name)
    stand_on(f"file://{team}@{first}", f"file://{team}@v9", f"file://{team}@{first[:12]}")
    done = run("lessons", "vaults", "update", cwd=project)
    assert done.out.count("1 lesson, ") == 3
    assert f"file://{team} has no v9" in done.err
    (team / "lessons").rename(tmp_path / "away")  # what was fetched stays
    assert told(project) == ["team:ci/heap"]


def clone_of(project: Path) -> Path:
    (only,) = above.of(open_vault(project))
    return only.root


@pytest.mark.slow
def test_a_clone_never_touches_a_repository_around_it(tmp_path: Path) -> None:
    project, home = tmp_path / "project", Path(os.environ["LESSONS_HOME"])
    vault_at(project, {"db/lock.md": LOCK})
    team = git_vault(tmp_path / "team", {"ci/heap.md": HEAP, "web/cache.md": CACHE})
    stand_on(f"file://{team}")
    run("git", "init", "-q", cwd=home.parent)  # the user's dotfiles
    mine = write(home.parent / "lessons" / "ci" / "heap.md", "mine")
    run("git", "add", "-f", mine, cwd=home.parent)
    assert run("lessons", "vaults", "update", "--json", cwd=project).json[1]["lessons"] == 2
    (clone_of(project) / ".git" / "HEAD").write_text("")
    (team / "lessons" / "web" / "cache.md").unlink()
    commit(team, "less")
    assert run("lessons", "vaults", "update", "--json", cwd=project).json[1]["lessons"] == 1
    assert mine.read_text() == "mine"
    assert git(home.parent, "ls-files").split() == [str(mine.relative_to(home.parent))]


KILLS = """\
#!/bin/sh
# Stands for git: who starts a fetch ends with it, as by a kill.
"{git}" "$@"; status=$?
case " $* " in *" fetch "*) kill -9 $PPID;; esac
exit $status
"""


@pytest.mark.slow
def test_a_killed_update_leaves_the_pin_and_no_lock(tmp_path: Path) -> None:
    project = tmp_path / "project"
    vault_at(project, {"db/lock.md": LOCK})
    team = git_vault(tmp_path / "team", {"ci/heap.md": HEAP})
    git(team, "tag", "v1")
    stand_on(f"file://{team}@v1")
    run("lessons", "vaults", "update", cwd=project)
    write(team / "lessons" / "web" / "cache.md", CACHE)
    commit(team, "more")
    git(team, "tag", "-f", "v1")
    write(tmp_path / "bin" / "git", KILLS.format(git=shutil.which("git"))).chmod(0o755)
    path = f"{tmp_path / 'bin'}:{os.environ['PATH']}"
    run("lessons", "vaults", "update", cwd=project, env={"PATH": path}, check=False)
    done = run("lessons", "vaults", "update", "--json", cwd=project)
    assert done.json[1]["lessons"] == 1
    assert "the tag v1 moved" in done.err


@pytest.mark.slow
def test_a_lock_of_a_killed_git_is_removed(tmp_path: Path) -> None:
    project = tmp_path / "project"
    vault_at(project, {"db/lock.md": LOCK})
    team = git_vault(tmp_path / "team", {"ci/heap.md": HEAP})
    stand_on(f"file://{team}")
    run("lessons", "vaults", "update", cwd=project)
    write(clone_of(project) / ".git" / "index.lock", "")
    write(team / "lessons" / "web" / "cache.md", CACHE)
    commit(team, "more")
    assert run("lessons", "vaults", "update", "--json", cwd=project).json[1]["lessons"] == 2


@pytest.mark.parametrize(
    "entry", ["relative", "ext::sh -c id", "ext://x", "https://me:token@host/x.git"]
)
def test_no_program_and_no_secret_in_an_entry(tmp_path: Path, entry: str) -> None:
    vault_at(tmp_path / "project", {})
    stand_on(entry)
    with pytest.raises(SettingsError):
        open_vault(tmp_path / "project")


@pytest.mark.parametrize(
    ("entry", "name", "url", "ref"),
    [
        ("https://git.example/x/lessons.git@v12", "lessons", "https://git.example/x/lessons.git", "v12"),
        ("git@host.example:team/notes.git", "notes", "git@host.example:team/notes.git", ""),
        ("git@host.example:team/notes.git@main", "notes", "git@host.example:team/notes.git", "main"),
        ("ssh://git@host.example/team/notes", "notes", "ssh://git@host.example/team/notes", ""),
        ("/srv/team@home", "team-home", "", ""),
    ],
)  # fmt: skip
def test_an_entry_is_read(tmp_path: Path, entry: str, name: str, url: str, ref: str) -> None:
    vault_at(tmp_path / "project", {})
    (only,) = above.parsed(open_vault(tmp_path / "project").config, [entry])
    assert (only.name, only.url, only.ref) == (name, url, ref)


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


def prompt_event(project: Path) -> dict[str, Any]:
    return {
        "hook_event_name": "UserPromptSubmit",
        "session_id": "several",
        "cwd": str(project),
        "prompt": PROMPT,
    }


@pytest.mark.slow
def test_the_hook_says_so_too(tmp_path: Path) -> None:
    vault_at(tmp_path / "project", {"db/lock.md": LOCK})
    vault_at(tmp_path / "team", {"ci/heap.md": HEAP})
    stand_on(tmp_path / "team")
    event = json.dumps(prompt_event(tmp_path / "project"))
    answer = run("lessons-hook", cwd=tmp_path / "project", stdin=event).json
    assert "team: lessons/ci/heap.md" in answer["hookSpecificOutput"]["additionalContext"]


RULE = HEAP.replace("---\n", "---\ntype: project_rule\n", 1)


@pytest.mark.slow
def test_a_session_begins_with_the_rules_and_lessons_of_the_team_too(tmp_path: Path) -> None:
    project = tmp_path / "project"
    vault_at(project, {"ci/ours.md": RULE})
    migrations = LOCK.replace("---\n", "---\ntype: project_rule\n", 1)
    vault_at(tmp_path / "team", {"ci/same.md": RULE, "db/lock.md": migrations, "web/c.md": CACHE})
    commit(project, "the nginx proxy serves a stale cache after a purge")
    stand_on(tmp_path / "team")
    wanted = ["ci/ours", "team:db/lock", "team:web/c"]
    begun = select.for_session(open_vault(project), project)
    assert [hit.lesson_id for hit in begun.hits] == wanted
    assert not select.for_session(open_vault(project), project, given=wanted).hits
    again = select.after_compaction(open_vault(project), wanted)
    assert [hit.lesson_id for hit in again.hits] == wanted


FAILURE = failure.read(
    "npm run build", "FATAL ERROR: Reached heap limit, JavaScript heap out of memory"
)


@pytest.mark.slow
def test_a_failure_gets_the_lesson_of_the_team_unless_ours_is_silent(tmp_path: Path) -> None:
    line = "FATAL ERROR: Reached heap limit"
    fires = HEAP.replace("---\n", f"---\nfires_on_error: ['{line}']\n", 1)
    silent = HEAP.replace("---\n", f"---\nsilent_on_error: ['{line}']\n", 1)
    project, team = tmp_path / "project", vault_at(tmp_path / "team", {"ci/heap.md": fires})
    vault_at(project, {"db/lock.md": LOCK})
    assert calls.for_failure(open_vault(project), FAILURE).hits == ()
    stand_on(tmp_path / "team")
    told = calls.for_failure(open_vault(project), FAILURE)
    assert [hit.lesson_id for hit in told.hits] == ["team:ci/heap"]
    assert "team: lessons/ci/heap.md" in told.text
    failures.want(open_vault(project))  # and so the next pass fits its floor
    assert failures.is_stale(team)
    write(project / "lessons" / "ci" / "ours.md", fires)
    reconcile.sync(open_vault(project))
    told = calls.for_failure(open_vault(project), FAILURE)
    assert [hit.lesson_id for hit in told.hits] == ["ci/ours"]
    write(project / "lessons" / "ci" / "ours.md", silent)
    reconcile.sync(open_vault(project))
    failures.fit(open_vault(project))
    assert calls.for_failure(open_vault(project), FAILURE).hits == ()


def test_an_edit_gets_the_lesson_of_the_team_for_the_file(tmp_path: Path) -> None:
    project = tmp_path / "project"
    vault_at(project, {"db/lock.md": LOCK})
    applies = CACHE.replace("---\n", "---\napplies_to: ['*.conf']\n", 1)
    vault_at(tmp_path / "team", {"web/cache.md": applies})
    stand_on(tmp_path / "team")
    event = {"cwd": str(project), "file": str(project / "nginx.conf"), "session_id": "s"}
    told = calls.at_edit(open_vault(project), event)
    assert [hit.lesson_id for hit in told.hits] == ["team:web/cache"]


@pytest.mark.slow
def test_a_search_of_people_and_of_agents_looks_above(tmp_path: Path) -> None:
    project = tmp_path / "project"
    vault_at(project, {"db/lock.md": LOCK, "ci/ours.md": HEAP})
    vault_at(tmp_path / "team", {"ci/heap.md": HEAP, "web/cache.md": CACHE})
    stand_on(tmp_path / "team")
    asked = Query("the nginx proxy serves a stale cache", 0)
    assert [
        hit.lesson_id for hit in answer(open_vault(project), search.find(query=asked)).hits
    ] == ["team:web/cache"]
    for_agent = answer(open_vault(project), learn.search(query=asked.text))
    assert [hit.lesson_id for hit in for_agent.hits] == ["team:web/cache"]
    ours = answer(open_vault(project), search.find(query=Query(PROMPT))).hits
    assert [hit.lesson_id for hit in ours] == ["ci/ours"]
    shown = run("lessons", "search", asked.text, cwd=project).out
    assert "team: lessons/web/cache.md" in shown


def test_a_lesson_of_the_team_is_shown_and_answers_a_question(tmp_path: Path) -> None:
    project = tmp_path / "project"
    vault_at(project, {"db/lock.md": LOCK, "ci/ours.md": HEAP})
    vault_at(tmp_path / "team", {"ci/heap.md": HEAP, "web/cache.md": CACHE})
    stand_on(tmp_path / "team")
    shown = run("lessons", "show", "team:web/cache", cwd=project).out
    assert "team: lessons/web/cache.md" in shown
    assert "The nginx proxy serves a stale cache" in shown
    got = answer(open_vault(project), learn.get(name="team:web/cache"))
    assert (got["entry"]["id"], got["near"]) == ("team:web/cache", [])
    assert run("lessons", "show", "team:web/none", cwd=project, check=False).code == 1
    asked = passages.find(
        open_vault(project), "why does the nginx proxy serve a stale cache", best=True
    )
    assert [each.id for each in asked.passages] == ["team:web/cache"]
    heap = passages.find(open_vault(project), PROMPT, best=True).passages
    assert [each.id for each in heap] == ["ci/ours"]  # the team says the same
    again = [(each.id, *each.span) for each in asked.passages]
    assert "team:web/cache" not in [
        each.id for each in passages.find(open_vault(project), "stale cache", seen=again).passages
    ]
