"""Skills: found beside lessons, suggested with their trigger, above a floor of their own."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.commands import run
from tests.support.files import MakeVault, commit, lesson_text, write
from tests.support.indexed import kept_on
from tests.support.serving import answering
from tests.support.watchers import watched
from vault_index import api, client
from vault_index.recall import select
from vault_index.retrieval import query
from vault_index.retrieval.hit import Query
from vault_index.vault import Vault, open_vault

pytestmark = pytest.mark.slow

REVIEW = "Review a GitHub pull request: correctness, tests, naming. Use when asked to review a PR."


def skill_text(name: str, description: str, **keys: object) -> str:
    more = "".join(f"{key}: {json.dumps(value)}\n" for key, value in keys.items())
    return f"---\nname: {name}\ndescription: {json.dumps(description)}\n{more}---\n# Steps\n"


def add_skill(folder: Path, name: str, description: str, **keys: object) -> Path:
    return write(folder / name / "SKILL.md", skill_text(name, description, **keys))


@pytest.fixture
def team(make_vault: MakeVault, with_model: Path, shelves: Path, tmp_path: Path) -> Vault:
    """A vault with a lesson on reviews and a skill for them, the real model."""

    def make() -> Vault:
        about = "When reviewing PRs, always check for missing tests and a changelog line."
        lesson = lesson_text("Reviewing PRs", about)
        first = make_vault({"workflow/code-review/prs.md": lesson}, name="first")
        add_skill(first.root / "skills", "review-pr", REVIEW)
        return first

    return kept_on(shelves / "skills", make, tmp_path / "team")


def test_lessons_and_skills_in_one_answer(team: Vault) -> None:
    """The worked example of the injection, through Python and the command line."""
    hits = query.find(team, "please review this PR", kinds=("lessons", "skills"))
    assert [(hit.kind, hit.title) for hit in hits] == [
        ("lessons", "Reviewing PRs"),
        ("skills", "review-pr"),
    ]
    text = run("lessons", "recall", "please review this PR", cwd=team.root).out
    assert "## Relevant lessons\n- [workflow/code-review] Reviewing PRs (" in text
    assert "## Suggested skills\n- `/review-pr` - Review a GitHub pull request" in text
    assert "%, read skills/review-pr/SKILL.md)\n" in text


def test_the_hook_suggests_a_skill_once_and_notes_it(team: Vault) -> None:
    event = {"hook_event_name": "UserPromptSubmit", "session_id": "s1", "cwd": str(team.root)}
    event["prompt"] = "can you review this pull request for me"
    first = run("lessons-hook", cwd=team.root, stdin=json.dumps(event)).out
    assert "- `/review-pr` - Review a GitHub pull request" in first
    (noted,) = client.ask(team, api.injection.select()).records
    assert [each.name for each in noted.skills] == ["review-pr"]
    assert run("lessons-hook", cwd=team.root, stdin=json.dumps(event)).out == ""


def test_skills_of_the_user_and_of_the_project_at_hand(
    team: Vault, own_world: Path, tmp_path: Path
) -> None:
    add_skill(own_world / ".claude/skills", "rotate-keys", "Rotate the API keys of a service.")
    mine, other = tmp_path / "mine/src", tmp_path / "other"
    mine.mkdir(parents=True)
    add_skill(tmp_path / "mine/.claude/skills", "slim-image", "Make a docker image smaller.")
    add_skill(other / ".claude/skills", "load-test", "Load test an HTTP service with k6.")

    def found(project: Path) -> set[str]:
        command = ("lessons", "--vault", team.root, "search", "--kind", "skills", "--json")
        hits = run(*command, "a docker image, a load test, the api keys", cwd=project).json["hits"]
        return {hit["title"] for hit in hits}

    assert found(mine) == {"review-pr", "rotate-keys", "slim-image"}
    assert found(other) == {"review-pr", "rotate-keys", "load-test"}
    assert found(team.root) == {"review-pr", "rotate-keys"}


def test_the_first_query_after_a_skill_is_saved_finds_it(team: Vault) -> None:
    """Through the hook, the command line, and as HTTP asks while its index is fresh."""
    event = {"hook_event_name": "UserPromptSubmit", "session_id": "", "cwd": str(team.root)}
    with watched(team):
        add_skill(team.root / "skills", "slim-image", "Make a docker image smaller.")
        asked = json.dumps({**event, "prompt": "make this docker image smaller please"})
        out = run("lessons-hook", cwd=team.root, stdin=asked).out
        assert "- `/slim-image` - Make a docker image smaller." in out
        add_skill(team.root / "skills", "bake-bread", "Bake bread from sourdough.")
        command = ("lessons", "search", "--kind", "skills", "bake sourdough bread")
        assert "/bake-bread" in run(*command, cwd=team.root).out
        add_skill(team.root / "skills", "rotate-keys", "Rotate the API keys of a service.")
        question = api.search.find(query=Query("rotate the api keys", kinds=("skills",)))
        answer = client.ask(team.root, question, client.Options(as_is=True))
        assert answer.hits[0].trigger == "/rotate-keys"


def test_trust_holds_for_the_vaults_skills(team: Vault, own_world: Path) -> None:
    prompt = "review this pull request"
    write(own_world / "config.toml", 'trust = "committed-only"\n')
    assert not select.for_prompt(open_vault(team.root), prompt).skills
    commit(team.root)
    assert select.for_prompt(open_vault(team.root), prompt).skills


def test_no_door_gives_the_folder_of_a_skill_as_its_document(team: Vault, own_world: Path) -> None:
    """Issue 55, row 13: `document` was an absolute path of the machine."""
    add_skill(own_world / ".claude/skills", "review-mine", "Review a pull request of mine.")
    asked = {"prompt": "please review this pull request", "collections": ["skills"]}
    with answering(team.root, own_world) as server:
        for token in (True, False):
            found = server.ask("POST", "/api/query", json=asked, token=token).text
            assert '"document":""' in found
            assert str(team.root) not in found
    said = run("lessons", "search", "--kind", "skills", "--json", "review", cwd=team.root).json
    assert {hit["document"] for hit in said["hits"]} == {""}
    assert {hit["title"] for hit in said["hits"]} == {"review-pr", "review-mine"}
