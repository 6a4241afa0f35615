"""`lessons learn --pr`: threads of a review that led to a change become proposals; bots' words never."""

from __future__ import annotations

import json
import os
import re
import time
from pathlib import Path
from typing import Any

import pytest

from tests.support.commands import run
from tests.support.files import MakeVault, commit, write
from vault_index.learn import by_rule, pull_request, timeline
from vault_index.learn.timeline import Moment
from vault_index.share import github
from vault_index.vault import Vault

URL = "https://github.com/team/app/pull/12"
FILE = "store/upload.py"
LOCK = (
    "Please always take the lock before you write the manifest, because two uploads at once"
    " truncate it.\n\n```suggestion\nwith lock:\n```\n> @ada said so"
)
RETRY = "The client must never retry a 409, because the server has taken the upload already."
ON_PURPOSE = (
    "This is on purpose: the manifest is never cached, because readers must see each upload."
)
DISMISSED = "We never block a release for the style of the changelog, because a robot rewrites it."


def person(name: str) -> dict[str, str]:
    return {"login": name, "type": "User"}


ADA, BOB, BOT = person("ada"), person("bob"), {"login": "reviewer[bot]", "type": "Bot"}


def said(number: int, who: Any, body: str, line: str, **more: Any) -> dict[str, Any]:
    """Return a comment on a line of the pull request's file, as GitHub has it."""
    about = {"id": number, "user": who, "body": body, "path": FILE, "original_line": 4, **more}
    about |= {"created_at": f"2026-10-02T10:{number:02}:00Z", "html_url": f"{URL}#r{number}"}
    return {"diff_hunk": f"@@ -1,3 +1,4 @@\n def put(name):\n+{line}", **about}


def committed(sha: str, when: str, patch: str) -> dict[str, Any]:
    about = {"message": "x", "committer": {"date": when}}
    return {"sha": sha * 40, "commit": about, "files": [{"filename": FILE, "patch": patch}]}


ANSWERS: dict[str, Any] = {
    "pull": {
        "title": "Upload in parts", "html_url": URL, "user": BOB, "created_at": "2026-10-01T09:00:00Z",
        "merged_at": "2026-10-03T09:00:00Z", "base": {"repo": {"name": "app"}},
    },
    "comments": [
        said(1, ADA, LOCK, "    write_manifest(name)"),
        said(2, BOB, "Good point, done.", "", in_reply_to_id=1),
        said(3, BOT, "You must always add a docstring, because readers need it.", "    send(name)"),
        said(4, ADA, "We should never name it put, because HTTP has one.", "def unchanged():"),
        said(5, BOT, "Consider a cache: never read the manifest twice.", "    manifest = load()"),
        said(6, BOB, ON_PURPOSE, "", in_reply_to_id=5),
        said(7, ADA, "nit: typo", "    send(name)"),
        said(8, BOB, "I always wanted to note this, because I forget.", "    send(name)"),
        said(9, ADA, RETRY, "    send(name)"),
    ],
    "commits": [
        committed("a", "2026-10-01T09:00:00Z", "@@ -1 +1,2 @@\n def put(name):\n+    send(name)"),
        committed(
            "b",
            "2026-10-02T12:00:00Z",
            "@@ -1,5 +1,6 @@\n def put(name):\n-    write_manifest(name)\n+    with lock:\n"
            "+        write_manifest(name)\n \n@@ -20,3 +21,4 @@\n     send(name)\n"
            "+    if status == 409:\n+        return",
        ),
    ],
    "events": [
        {"event": "labeled", "actor": ADA},
        {
            "event": "review_dismissed", "actor": ADA,
            "dismissed_review": {"state": "changes_requested", "dismissal_message": DISMISSED},
        },
    ],
}  # fmt: skip


@pytest.fixture
def team(make_vault: MakeVault, monkeypatch: pytest.MonkeyPatch) -> Vault:
    monkeypatch.setenv("LESSONS_EMBEDDER", "none")
    vault = make_vault({"ops/logs.md": "---\ntitle: Logs\n---\nRotate the logs each night.\n"})
    commit(vault.root, "a vault")
    return vault


def test_threads_that_led_to_a_change_come_first_and_no_words_of_a_bot() -> None:
    threads = pull_request.threads(ANSWERS)
    assert [(each.url[-2:], each.who, each.commit[:1]) for each in threads] == [
        ("r1", "ada", "b"),
        ("r7", "ada", "b"),  # too short for a lesson, which the rules see
        ("r9", "ada", "b"),
        ("", "ada", ""),
        ("r6", "bob", ""),
    ]
    first = threads[0]
    assert first.text.startswith("Please always take the lock")
    assert "suggestion" not in first.text
    assert "said so" not in first.text
    assert first.change == (
        "-    write_manifest(name)\n+    with lock:\n+        write_manifest(name)"
    )
    assert threads[-1].by_bot


@pytest.mark.parametrize("beside", ["\n" * 65_000, "<!--" * 16_000])
def test_a_comment_as_long_as_github_takes_it_is_read_at_once(beside: str) -> None:
    began = time.process_time()
    there = {**ANSWERS, "comments": [said(1, ADA, RETRY + beside, "    send(name)")]}
    assert pull_request.threads(there)[0].text == RETRY
    assert time.process_time() - began < 6  # hundreds of times what it takes


def test_code_without_an_end_is_no_prose() -> None:
    body = f"{RETRY}\n```python\nwe_must_always(lock)"
    there = {**ANSWERS, "comments": [said(1, ADA, body, "    send(name)")]}
    assert pull_request.threads(there)[0].text == RETRY


@pytest.mark.parametrize("mark", ["[CL Review Agent] ", "**[my-bot]** ", "\U0001f916 "])
def test_words_of_an_agent_under_a_persons_name_are_a_programs(mark: str) -> None:
    there = {**ANSWERS, "events": [], "comments": [said(1, ADA, mark + RETRY, "    send(name)")]}
    assert pull_request.threads(there) == []


@pytest.mark.parametrize(
    ("remark", "title"),
    [
        ("nit: use `send_all` instead of a loop in new code.", "Use `send_all` instead of a loop"),
        (
            "never mock the clock of another module, please",
            "Never mock the clock of another module",
        ),
        ("These two calls are swapped here, as above.", ""),
        ("Not sure that `put` is the best place for the check.", ""),
        ("The order of the three calls should be:", ""),
        ("since `put` returns early, the lock is never taken", ""),
    ],
)
def test_a_remark_teaches_that_reaches_past_its_lines(remark: str, title: str) -> None:
    said = Moment(timeline.PERSON, remark, FILE, is_correction=True)
    drafts = by_rule.of_review([said, Moment(timeline.EDIT, "-a\n+b", FILE)])
    assert [draft.title[: len(title)] for draft in drafts] == ([title] if title else [])


def test_a_change_elsewhere_in_the_file_adopts_nothing() -> None:
    patch = "@@ -40,3 +40,3 @@\n def other():\n-    pass\n+    return None"
    there = {**ANSWERS, "commits": [committed("c", "2026-10-02T12:00:00Z", patch)]}
    assert [each.commit for each in pull_request.threads(there)] == ["", ""]


@pytest.mark.slow
def test_proposals_have_their_thread_as_evidence_and_their_file(
    team: Vault, tmp_path: Path
) -> None:
    recorded = write(tmp_path / "pull.json", json.dumps(ANSWERS))
    answer = run("lessons", "learn", "--pr", recorded, "--json", cwd=team.root).json
    assert len(answer["proposals"]) == 3
    waiting = run("lessons", "review", "list", "--json", cwd=team.root).json
    by_quote = {each["quotes"][0]: each for each in waiting}
    (lock,) = [each for quote, each in by_quote.items() if "take the lock" in quote]
    assert lock["applies_to"] == [FILE]
    assert lock["why"] == f"a review by ada, adopted in {'b' * 10}: {URL}#r1"
    assert lock["speakers"] == ["a person"]
    assert "+    with lock:" in lock["text"]
    everything = json.dumps(waiting)
    assert "docstring" not in everything
    assert "Consider a cache" not in everything
    again = run("lessons", "learn", "--pr", recorded, "--json", cwd=team.root).json
    assert again["status"] == "learned already"


GH = """\
#!/bin/sh
# Stands for gh: it answers from files, by the address without what follows ?.
echo "$@" >> "$GH_FILES/log"
if [ "$1" = pr ]
then printf '%s\\n' "$@" > "$GH_FILES/pull"; echo https://github.com/team/app/pull/13; exit
fi
name=$(echo "${4%%\\?*}" | tr / _)
[ -f "$GH_FILES/$name" ] || { echo "gh: Not Found (HTTP 404)" >&2; exit 1; }
cat "$GH_FILES/$name"
"""


@pytest.fixture
def gh(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of a `gh` on the PATH, with what it answers."""
    folder = tmp_path / "gh"
    write(folder / "bin" / "gh", GH).chmod(0o755)
    pull = "repos_team_app_pulls_12"
    write(folder / pull, json.dumps(ANSWERS["pull"]))
    write(
        folder / f"{pull}_comments", json.dumps([ANSWERS["comments"][:3], ANSWERS["comments"][3:]])
    )
    bare = [{name: each[name] for name in ("sha", "commit")} for each in ANSWERS["commits"]]
    write(folder / f"{pull}_commits", json.dumps([bare]))
    write(folder / "repos_team_app_issues_12_events", json.dumps([ANSWERS["events"]]))
    for each in ANSWERS["commits"]:
        write(folder / f"repos_team_app_commits_{each['sha']}", json.dumps(each))
    monkeypatch.setenv("PATH", f"{folder / 'bin'}:{os.environ['PATH']}")
    monkeypatch.setenv("GH_FILES", str(folder))
    return folder


@pytest.mark.slow
def test_accepted_ones_go_on_a_branch_and_into_a_draft_only_when_asked(
    team: Vault, gh: Path, tmp_path: Path
) -> None:
    run("lessons", "learn", "--pr", f"{URL}/files", cwd=team.root)
    assert len((gh / "log").read_text().splitlines()) == 6
    waiting = run("lessons", "review", "list", "--json", cwd=team.root).json
    first, second = (each["id"] for each in waiting[:2])
    before = run("git", "rev-parse", "HEAD", cwd=team.root).out
    run("lessons", "review", "accept", first, "--branch", "lessons/review", cwd=team.root)
    assert run("git", "branch", "--show-current", cwd=team.root).out == "lessons/review\n"
    assert run("git", "rev-parse", "HEAD~", cwd=team.root).out == before
    assert run("git", "status", "--porcelain", cwd=team.root).out == ""
    assert not (gh / "pull").exists()
    run("git", "init", "-q", "--bare", tmp_path / "origin", cwd=tmp_path)
    run("git", "remote", "add", "origin", tmp_path / "origin", cwd=team.root)
    done = run("lessons", "review", "accept", second, "--open-pr", cwd=team.root)
    assert "https://github.com/team/app/pull/13" in done.err
    words = (gh / "pull").read_text()
    assert words.startswith(f"pr\ncreate\n--draft\n--head\nlessons/{second}\n")
    assert URL in words
    assert "\n> " in words
    pushed = run("git", "branch", "--list", cwd=tmp_path / "origin").out
    assert pushed.split() == [f"lessons/{second}"]


def test_nothing_to_accept_makes_no_branch(team: Vault) -> None:
    before = run("git", "branch", cwd=team.root).out
    for words, error in (
        (["--session", "abc"], "no proposal of a session 'abc' waits"),
        ([], "name proposals by their IDs, or a session with --session"),
    ):
        for option in (["--open-pr"], ["--branch", "lessons/mine"]):
            done = run("lessons", "review", "accept", *words, *option, cwd=team.root, check=False)
            assert done.code != 0
            assert error in done.err
            assert run("git", "branch", cwd=team.root).out == before


def test_a_quote_closes_no_issue_and_fetches_no_image() -> None:
    quote = "fixes #12, closes GH-7 and https://github.com/a/b/issues/9 ![x](https://e.example/p)"
    said = github.evidence(
        [{"title": "C# 12", "why": f"see {URL}#discussion_r1", "quotes": [quote]}]
    )
    assert not re.search(r"(?i)#\d|gh-\d|issues/\d|!\[", said)
    assert f"see {URL}#discussion_r1\n" in said


@pytest.mark.slow
def test_a_branch_with_a_secret_is_not_pushed(team: Vault, gh: Path, tmp_path: Path) -> None:
    run("lessons", "learn", "--pr", URL, cwd=team.root)
    write(team.lessons_dir / "ops/key.md", "The key is AKIAIOSFODNN7EXAMQLE of the account.\n")
    commit(team.root, "an accident")
    run("git", "init", "-q", "--bare", tmp_path / "origin", cwd=tmp_path)
    run("git", "remote", "add", "origin", tmp_path / "origin", cwd=team.root)
    first = run("lessons", "review", "list", "--json", cwd=team.root).json[0]["id"]
    done = run("lessons", "review", "accept", first, "--open-pr", cwd=team.root, check=False)
    assert done.code == 1
    assert "Error: not pushed: commit" in done.err
    assert run("git", "branch", "--list", cwd=tmp_path / "origin").out == ""
    assert not (gh / "pull").exists()


def test_what_is_no_pull_request_is_an_error(team: Vault, gh: Path, tmp_path: Path) -> None:
    for target, error in (
        (tmp_path / "nothing.json", "there is no file"),
        (write(tmp_path / "other.json", "[1]"), "holds no recorded pull request"),
        ("https://github.com/team/app/pull/99", "gh: gh: Not Found (HTTP 404)"),
    ):
        done = run("lessons", "learn", "--pr", target, cwd=team.root, check=False)
        assert done.code == 1
        assert error in done.err.splitlines()[0]
