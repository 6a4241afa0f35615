"""The gate: what a reviewer is shown of a proposal, and what accepting, merging and rejecting do."""

from __future__ import annotations

import json
import os
import shutil
import signal
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.support.commands import run
from tests.support.files import MakeVault, commit, lesson_text, write
from tests.support.indexed import kept_on
from vault_index import api, client
from vault_index.api import codec
from vault_index.api.proposal import Card, Target
from vault_index.entrypoints.wording import proposals
from vault_index.errors import VaultError
from vault_index.journal.record import private_id
from vault_index.lesson.parse import parse_file
from vault_index.proposals import draft, review, store
from vault_index.vault import Vault

TEXT = "Rotate the signing key before each release, or the installer refuses the package."
HEAP = "When the build dies with heap out of memory, raise the heap of Node in the runner."
QUOTE = "the installer says: certificate 4711 is not trusted"
SESSION = "b7c1-session-of-the-agent"


@pytest.fixture
def team(make_vault: MakeVault, shelves: Path, tmp_path: Path, text_only: None) -> Vault:
    heap = "---\ntitle: Raise the heap\nfires_on: [heap out of memory]  # seen\n---\n" + HEAP + "\n"
    texts = {"ops/heap.md": heap, "ops/lock.md": lesson_text("Lock", "Wait for it.")}

    def make() -> Vault:
        first = make_vault(texts, name="first")
        commit(first.root)
        return first

    return kept_on(shelves / "reviewed", make, tmp_path / "team")


def ask(vault: Vault, question: api.Question[Any]) -> Any:
    return json.loads(json.dumps(codec.to_json(client.ask(str(vault.root), question))))


def learned(vault: Vault, title: str = "Rotate the key", text: str = TEXT, **more: Any) -> str:
    """Propose what a session taught; return its id."""
    values = {"quotes": (QUOTE,), "session": private_id(SESSION), "why": "failed, then passed"}
    given = {"category_path": "ops", "fires_on": ["the installer refuses it"], **values, **more}
    proposed = review.propose(vault, draft.create(title, text, **given))
    assert proposed["status"] == review.WAITING
    return str(proposed["id"])


KEYLESS = "signature check failed for the package"
ADDED = "- Set a limit in Docker, too."


def change_of_heap(vault: Vault, **more: Any) -> str:
    return learned(vault, "Raise the heap", ADDED, changes="ops/heap", **more)


def lesson(vault: Vault, path: str) -> Any:
    (each,) = parse_file((vault.lessons_dir / path).read_bytes(), path)
    return each


def waiting(vault: Vault) -> list[str]:
    return [each["id"] for each in ask(vault, api.proposal.select())]


# shown


@pytest.mark.slow
def test_a_reviewer_sees_the_evidence_the_nearest_and_what_prompts_find(team: Vault) -> None:
    id = learned(
        team, "More heap", f"{HEAP} Then again.", fires_on=["node heap in the runner dies"]
    )
    (card,) = ask(team, api.proposal.cards(id=id))
    assert (card["why"], card["quotes"]) == ("failed, then passed", [QUOTE])
    assert card["nearest"][:2] == ["ops/heap", "Raise the heap"]
    (prompt,) = card["outlook"]
    assert prompt["now"]["id"] == "ops/heap"
    assert not prompt["finds"], "the lesson that is there says as much"
    assert "proposal:" not in card["source"]


@pytest.mark.slow
def test_a_draft_without_a_category_is_classified(team: Vault) -> None:
    text = "Open a pull request for each change of the signing key."
    id = learned(team, text=text, category_path="")
    (card,) = ask(team, api.proposal.cards(id=id))
    assert card["suggested"] == "workflow/code-review"
    assert "pull request" in card["why_suggested"]


CONFIRMED: dict[str, Any] = {
    "project": "shop",
    "day": "2026-11-20",
    "speakers": ("the agent", "a check"),
}


@pytest.mark.slow
def test_a_card_says_who_confirms_it_and_what_is_in_the_way(team: Vault) -> None:
    quotes = ("I believe that the certificate is old", QUOTE)
    learned(team, quotes=quotes, confidence=2, **CONFIRMED)
    (card,) = run("lessons", "review", "--json", cwd=team.root).json
    assert (card["project"], card["day"]) == ("shop", "2026-11-20")
    assert (card["quote"], card["speaker"]) == (quotes[0], "the agent")
    title, origin, summary, quote, state = run("lessons", "review", cwd=team.root).out.splitlines()
    assert title.startswith("Rotate the key")
    assert origin == "shop · 2026-11-20 · the agent's word · confidence 2 of 5"
    assert summary == TEXT
    assert quote == f"“{quotes[0]}”, the agent"
    assert state == "ready: goes to ops"


@pytest.mark.parametrize(
    ("values", "in_the_way"),
    [
        ({"category": "", "suggested": ""}, "no category: [c]"),
        ({"is_draft": True}, "[e] edits it"),
        (
            {"near": [["ops/heap", "Raise the heap", 0.8]]},
            "80% like ops/heap (Raise the heap): [m]",
        ),
        (
            {"findings": [{"level": "warning", "rule": "vague", "message": "say when"}]},
            "say when: [e]",
        ),
        ({"text": ""}, "[r] rejects it"),
        ({"same": ["ops/heap", "Raise the heap", 1.0]}, "ops/heap says this already: [r]"),
        ({"target": Target(id="ops/heap", is_done=True)}, "ops/heap says this already: [r]"),
    ],
)
def test_each_thing_in_the_way_names_the_key_that_settles_it(
    values: dict[str, Any], in_the_way: str
) -> None:
    card = Card(id="", title="Rotate the key", text=TEXT, category="ops")
    assert proposals.state(card) == (True, "ready: goes to ops")
    is_ready, state = proposals.state(replace(card, **values))
    assert not is_ready
    assert in_the_way in state


# accepted


def test_the_lesson_names_its_source_and_none_of_the_evidence(team: Vault) -> None:
    more: dict[str, Any] = {"type": "bug_fix", "confidence": 4, "silent_on": ("lunch",)}
    id = learned(team, tags=["keys"], fires_on_error=("unsigned package",), **more)
    accepted = ask(team, api.proposal.accept(id=id, commit=True))
    text = (team.root / accepted["path"]).read_text()
    assert "certificate 4711" not in text
    assert "proposal" not in text
    assert SESSION not in text
    written = lesson(team, "ops/rotate-the-key.md")
    assert (written.source, written.type, written.confidence) == ("session", "bug_fix", 4)
    assert (written.tags, written.silent_on) == (("keys",), ("lunch",))
    assert written.fires_on_error == ("unsigned package",)
    assert f"session: {private_id(SESSION)}" in text
    shown = run("git", "log", "-1", "--format=%(trailers:key=Learned-From)", cwd=team.root)
    assert shown.out.strip() == "Learned-From: session"


def test_what_an_agent_remembers_is_of_no_session(team: Vault) -> None:
    id = learned(team, session="")
    accepted = ask(team, api.proposal.accept(id=id, commit=True))
    assert "source" not in (team.root / accepted["path"]).read_text()
    assert "Learned-From" not in run("git", "log", "-1", cwd=team.root).out


def test_a_change_is_written_into_its_lesson(team: Vault) -> None:
    accepted = ask(team, api.proposal.accept(id=change_of_heap(team), commit=True))
    assert accepted == {"id": "ops/heap", "path": "lessons/ops/heap.md"}
    written = lesson(team, "ops/heap.md")
    assert written.text == f"{HEAP}\n\n{ADDED}"
    assert written.fires_on == ("heap out of memory", "the installer refuses it")
    assert waiting(team) == []
    assert run("git", "status", "--short", cwd=team.root).out == ""


def test_a_change_goes_into_its_lesson_as_that_is_by_now(team: Vault) -> None:
    id = change_of_heap(team)
    related = "## Related\n\n- related: lock"
    write(team.lessons_dir / "ops/heap.md", lesson_text("Raise the heap", f"Saved.\n\n{related}"))
    target = ask(team, api.proposal.cards(id=id))[0]["target"]
    changed = [x for x in target["diff"].splitlines()[2:] if x[0] in "+-"]
    assert changed == ["+fires_on: the installer refuses it", f"+{ADDED}", "+"]
    ask(team, api.proposal.accept(id=id))
    assert lesson(team, "ops/heap.md").text == f"Saved.\n\n{ADDED}\n\n{related}"


@pytest.mark.parametrize("how", ["change", "merge"])
def test_prompts_that_must_stay_silent_come_with_it(team: Vault, how: str) -> None:
    heap = team.lessons_dir / "ops/heap.md"
    heap.write_text(heap.read_text().replace("fires_on", "silent_on: [heap sort]\nfires_on"))
    silent_on = ("a heap of stones", "Heap sort", "heap OUT of memory")  # the last one fires
    if how == "change":
        ask(team, api.proposal.accept(id=change_of_heap(team, silent_on=silent_on)))
    else:
        id = learned(team, silent_on=silent_on)
        seen = ask(team, api.proposal.merge(id=id, into="ops/heap"))["before"]
        ask(team, api.proposal.merge(id=id, into="ops/heap", seen=seen, write=True))
    assert lesson(team, "ops/heap.md").silent_on == ("heap sort", "a heap of stones")


def test_a_commit_never_takes_what_its_author_has_not_finished(team: Vault) -> None:
    heap = team.lessons_dir / "ops/heap.md"
    heap.write_text(heap.read_text().replace("fires_on", "tags: [half, done]\nfires_on"))
    unfinished = heap.read_text()
    id = change_of_heap(team)
    with pytest.raises(VaultError, match="changes that are not committed") as refused:
        ask(team, api.proposal.accept(id=id, commit=True))
    assert "without --commit" in refused.value.hint
    assert (heap.read_text(), waiting(team)) == (unfinished, [id])
    ask(team, api.proposal.accept(id=id))
    assert lesson(team, "ops/heap.md").text == f"{HEAP}\n\n{ADDED}"


@pytest.mark.slow
def test_a_commit_takes_a_file_by_its_name_and_not_as_a_pattern(team: Vault) -> None:
    write(team.lessons_dir / "ops/[xy].md", lesson_text("Raise the heap", HEAP))
    commit(team.root)
    write(team.lessons_dir / "ops/x.md", lesson_text("X", "Of somebody, not staged."))
    id = learned(team, "Raise the heap", ADDED, changes="ops/[xy]")
    ask(team, api.proposal.accept(id=id, commit=True))
    assert run("git", "status", "--short", cwd=team.root).out == "?? lessons/ops/x.md\n"


@pytest.mark.parametrize("kind", ["new", "change"])
def test_a_commit_that_failed_is_made_by_the_next_run_with_its_trailer(
    team: Vault, kind: str
) -> None:
    id = learned(team) if kind == "new" else change_of_heap(team)
    with pytest.MonkeyPatch.context() as patch:
        for name in ("GIT_AUTHOR_NAME", "GIT_COMMITTER_NAME"):
            patch.setenv(name, "")
        with pytest.raises(VaultError, match="not accepted: git commit"):
            ask(team, api.proposal.accept(id=id, commit=True))
    assert run("git", "status", "--short", cwd=team.root).out == ""
    ask(team, api.proposal.accept(id=id, commit=True))
    shown = run("git", "log", "-1", "--format=%(trailers:key=Learned-From)", cwd=team.root)
    assert shown.out.strip() == "Learned-From: session"
    assert run("git", "status", "--short", cwd=team.root).out == ""


@pytest.mark.slow
@pytest.mark.parametrize("end", ["before the commit", "after the commit"])
@pytest.mark.parametrize("kind", ["new", "change"])
def test_a_kill_while_committing_leaves_no_commit_without_its_trailer(
    team: Vault, tmp_path: Path, end: str, kind: str
) -> None:
    """A `git` that kills who asked it to commit stands before the real one."""
    id = learned(team) if kind == "new" else change_of_heap(team)
    place = "lessons/ops/rotate-the-key.md" if kind == "new" else "lessons/ops/heap.md"
    real, said = shutil.which("git"), "signing key" if kind == "new" else "in Docker"
    commits = f'"{real}" "$@"; ' if end == "after the commit" else ""
    script = f'#!/bin/sh\ncase " $* " in *" commit "*) {commits}kill -9 $PPID; exit 1;; esac\n'
    write(tmp_path / "bin/git", f'{script}exec "{real}" "$@"\n').chmod(0o755)
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    path = os.environ["PATH"]
    words = ("lessons", "review", "accept", id, "--commit")
    env = {"TMPDIR": str(scratch), "PATH": f"{tmp_path / 'bin'}:{path}"}
    assert run(*words, cwd=team.root, env=env, check=False).code == -signal.SIGKILL
    assert waiting(team) == [id]
    run("git", "commit", "-q", "--allow-empty", "-a", "-m", "Of somebody", cwd=team.root)
    run(*words, cwd=team.root, env={**env, "PATH": path})

    assert waiting(team) == []
    assert said in (team.root / place).read_text()
    assert run("git", "status", "--short", cwd=team.root).out == ""
    assert list(scratch.iterdir()) == []
    form = "--format=%H %(trailers:key=Learned-From,separator=%x2C)"
    made = run("git", "log", f"-S{said}", form, "--", place, cwd=team.root).out.splitlines()
    assert made[0].endswith("Learned-From: session")
    for line in made:
        there = run("git", "show", f"{line[:40]}:{place}", cwd=team.root, check=False).out
        assert said not in there or line.endswith("Learned-From: session")


@pytest.mark.slow
def test_a_change_of_a_lesson_that_is_gone_is_an_error(team: Vault) -> None:
    id = change_of_heap(team)
    (team.lessons_dir / "ops/heap.md").unlink()
    assert "no lesson" in ask(team, api.proposal.cards(id=id))[0]["target"]["problem"]
    with pytest.raises(VaultError, match="no lesson"):
        ask(team, api.proposal.accept(id=id))


def test_a_merge_adds_to_the_end_and_keeps_the_rest(team: Vault) -> None:
    id = learned(team, "And in containers", "Set a limit, too.\n\n## Problem\n\nNone was set.")
    planned = ask(team, api.proposal.merge(id=id, into="ops/heap"))
    assert "+Set a limit, too." in planned["diff"]
    assert not planned["written"]
    assert waiting(team) == [id]
    before = (team.lessons_dir / "ops/heap.md").read_text()
    ask(team, api.proposal.merge(id=id, into="ops/heap", seen=planned["before"], write=True))
    after = (team.lessons_dir / "ops/heap.md").read_text()
    assert after.replace(", the installer refuses it", "").startswith(before.rstrip())
    assert lesson(team, "ops/heap.md").text == (
        f"{HEAP}\n\n## And in containers\n\nSet a limit, too.\n\n### Problem\n\nNone was set."
    )
    assert waiting(team) == []


def test_a_merge_into_what_was_saved_since_the_diff_is_refused(team: Vault) -> None:
    id = learned(team)
    seen = ask(team, api.proposal.merge(id=id, into="ops/heap"))["before"]
    write(team.lessons_dir / "ops/heap.md", lesson_text("Raise the heap", "Somebody's text."))
    for told in (seen, ""):
        with pytest.raises(VaultError, match="was saved since"):
            ask(team, api.proposal.merge(id=id, into="ops/heap", seen=told, write=True))
    assert lesson(team, "ops/heap.md").text == "Somebody's text."
    assert waiting(team) == [id]


@pytest.mark.parametrize("how", ["change", "merge"])
def test_a_crash_after_the_lesson_was_written_adds_nothing_twice(
    team: Vault, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    id = change_of_heap(team) if how == "change" else learned(team)
    seen = ask(team, api.proposal.merge(id=id, into="ops/heap"))["before"]

    def decide() -> None:
        if how == "change":
            ask(team, api.proposal.accept(id=id))
        else:
            ask(team, api.proposal.merge(id=id, into="ops/heap", seen=seen, write=True))

    def die(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(store, "remove", die)
        with pytest.raises(KeyboardInterrupt):
            decide()
    assert waiting(team) == [id]
    written = (team.lessons_dir / "ops/heap.md").read_bytes()
    (card,) = ask(team, api.proposal.cards())
    assert card["target"]["is_done"] if how == "change" else card["same"][0] == "ops/heap"
    seen = ask(team, api.proposal.merge(id=id, into="ops/heap"))["before"]
    decide()
    assert (team.lessons_dir / "ops/heap.md").read_bytes() == written
    assert waiting(team) == []


def test_a_crash_before_the_lesson_was_written_is_done_again(
    team: Vault, monkeypatch: pytest.MonkeyPatch
) -> None:
    from vault_index.edit import update

    id = change_of_heap(team)
    with monkeypatch.context() as patch:
        patch.setattr(update, "write", lambda *_, **__: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            ask(team, api.proposal.accept(id=id))
    assert lesson(team, "ops/heap.md").text == HEAP
    ask(team, api.proposal.accept(id=id))
    assert lesson(team, "ops/heap.md").text == f"{HEAP}\n\n{ADDED}"


@pytest.mark.slow
def test_several_and_all_of_a_session_at_once(team: Vault) -> None:
    ids = [learned(team), learned(team, "Freeze the clock", "Tests of time freeze the clock.")]
    ids.append(learned(team, "Other", "Of another session.", session="0123abcd"))
    accepted = run("lessons", "review", "accept", *ids[:2], "--json", cwd=team.root).json
    assert [each["id"] for each in accepted] == ["ops/rotate-the-key", "ops/freeze-the-clock"]
    assert run("lessons", "review", "reject", "--session", "0123", cwd=team.root).out.startswith(
        "rejected"
    )
    assert waiting(team) == []
    for words in (["accept"], ["reject", "3f9a", "--session", "0123"]):
        assert run("lessons", *words, cwd=team.root, check=False).code == 2
    gone = run("lessons", "review", "accept", "--session", "0123", cwd=team.root, check=False)
    assert (gone.code, "no proposal of a session" in gone.err) == (1, True)


# edited


@pytest.mark.slow
def test_an_edit_is_checked_and_keeps_what_a_reviewer_knows(team: Vault) -> None:
    id = learned(team)
    seen = ask(team, api.proposal.cards(id=id))[0]["source"]
    edited = seen.replace("Rotate the signing key", "Renew the signing key")
    changed = ask(team, api.proposal.edit(id=id, text=edited, seen=seen))
    assert (changed["text"][:5], changed["quotes"]) == ("Renew", [QUOTE])
    with pytest.raises(VaultError, match="changed meanwhile"):
        ask(team, api.proposal.edit(id=id, text=edited, seen=seen))
    for wrong, says in (
        ("The key is ghp_" + "A1b2C3d4E5f6" * 3, "secret"),
        ("## Lesson: Second\nText.", "one lesson"),
        ("---\ntitle: [\n---\nText.", "YAML|frontmatter|parse"),
    ):
        text = wrong if wrong.startswith("---") else f"{edited}\n{wrong}\n"
        source = edited_source(team, id)
        with pytest.raises(VaultError, match=says):
            ask(team, api.proposal.edit(id=id, text=text, seen=source))
    assert ask(team, api.proposal.select(id=id))[0]["text"] == changed["text"]


def edited_source(team: Vault, id: str) -> str:
    return str(ask(team, api.proposal.cards(id=id))[0]["source"])


@pytest.mark.parametrize(
    ("text", "fitting"), [(f"{HEAP} And in Docker.", "ops"), ("Zyzzyva.", "devops/ci-cd")]
)
def test_accepting_into_no_category_writes_nothing_and_names_one(
    team: Vault, text: str, fitting: str
) -> None:
    """Issue 58, row 6: it wrote to the root, and then said so."""
    id = learned(team, "Clocks of Docker", text, category_path="")
    done = run("lessons", "review", "accept", id, cwd=team.root, check=False)
    assert (done.code, done.out) == (1, "")
    assert done.err == (
        f"Error: {id} is in no category\n"
        f"Try: name one, such as `-c {fitting}`, or `-c .` for none\n"
    )
    assert waiting(team) == [id]
    assert not (team.lessons_dir / "clocks-of-docker.md").exists()
    done = run("lessons", "review", "accept", id, "-c", ".", cwd=team.root)
    assert done.out == "lessons/clocks-of-docker.md\n"


NEARER = {
    "database": ["Vacuum a table", "Explain a slow query", "Add an index without a lock"],
    "frontend": ["Centre a div", "Memoise a React component", "Lazy load an image"],
    "tooling/git": ["Rebase a branch", "Bisect a regression", "Stash what is not done"],
}


@pytest.mark.slow
def test_a_card_says_which_category_it_is_clearly_nearer_to(
    make_vault: MakeVault, with_model: Path
) -> None:
    """Issue 58, row 6: 14 of 73 proposals were under `development/tooling/git` wrongly."""
    texts = {
        f"{category}/{number}.md": lesson_text(title, f"{title}: this is how we do it here.")
        for category, titles in NEARER.items()
        for number, title in enumerate(titles)
    }
    vault = make_vault(texts, name="nearer", indexed=True)
    slow = (
        "Slow query of the database with an index",
        "Run ANALYZE on the table again after the index.",
    )
    wrong = learned(vault, *slow, category_path="tooling/git")
    right = learned(vault, slow[0], f"{slow[1]} Twice.", category_path="database")
    new = learned(vault, slow[0], f"{slow[1]} Thrice.", category_path="tooling/planner")
    nearer = {each["id"]: each["nearer"] for each in ask(vault, api.proposal.cards())}
    assert nearer == {wrong: "database", right: "", new: ""}
    said = "nearer to lessons of database than of tooling/git: [c] names another"
    assert said in run("lessons", "review", wrong, cwd=vault.root).out
    accepted = ask(vault, api.proposal.accept(id=wrong))
    assert accepted["id"].startswith("tooling/git/"), "it is a suggestion alone"


# rejected


def test_a_rejected_one_is_taken_back_for_a_week_and_then_gone(team: Vault) -> None:
    """Issue 58, row 5."""
    id = learned(team)
    words = ("lessons", "review", "reject")
    run(*words, id, cwd=team.root)
    assert cards_of(team) == []
    printed = run(*words, "--undo", id[:4], cwd=team.root).out
    assert printed == f"waits again {id}: Rotate the key\n"
    assert cards_of(team) == [id]
    run(*words, id, cwd=team.root)  # it is not recognised, and so can be proposed or rejected again
    again = run(*words, "--undo", "ffff", cwd=team.root, check=False)
    assert (again.code, again.err) == (
        1, f"Error: no proposal 'ffff' was rejected lately\nTry: name one of {id}\n"
    )  # fmt: skip
    folder = store.folder_of(team)
    assert folder is not None
    (kept,) = folder.glob("*.rejected")
    os.utime(kept, (0, 0))
    learned(team, "Clock", "Freeze the clock in tests.")
    assert not kept.exists()
    with pytest.raises(VaultError, match="was rejected lately"):
        review.take_back(team, id)


def cards_of(team: Vault) -> list[str]:
    return [each["id"] for each in ask(team, api.proposal.select())]


@pytest.mark.slow
def test_the_same_evidence_is_recognised_in_other_words(team: Vault) -> None:
    ask(team, api.proposal.reject(id=learned(team)))
    reworded = "Before a release exchange the signing key; an old one makes the installer refuse."
    other = "Ask the release captain on the day before you touch anything else in that pipeline."
    for text, session, quotes, status in (
        (reworded, "", (QUOTE,), review.REJECTED),
        (reworded, private_id(SESSION), (), review.REJECTED),
        (reworded, "", (), review.WAITING),
        (other, "", (QUOTE,), review.WAITING),
    ):
        proposal = draft.create("Sign releases again", text, quotes=quotes, session=session)
        assert review.propose(team, proposal)["status"] == status, (text, session, quotes)


def test_prompts_and_lines_are_struck_one_by_one_the_rest_of_the_file_stays(team: Vault) -> None:
    id = learned(team, prompts=("how do I sign it", "who has the key"), fires_on_error=(KEYLESS,))
    before = ask(team, api.proposal.cards(id=id))[0]["source"]
    card = ask(team, api.proposal.strike(id=id, text="who has the key"))
    assert (card["prompts"], card["fires_on_error"]) == (["how do I sign it"], [KEYLESS])
    assert ask(team, api.proposal.strike(id=id, text=KEYLESS))["fires_on_error"] == []
    after = ask(team, api.proposal.cards(id=id))[0]["source"]
    gone = set(before.splitlines()) - set(after.splitlines())
    assert all("prompts" in line or KEYLESS in line for line in gone)
    with pytest.raises(VaultError, match="has no prompt"):
        ask(team, api.proposal.strike(id=id, text="who has the key"))


def test_the_only_prompt_of_a_change_is_not_struck_but_rejected(team: Vault) -> None:
    change = {"changes": "ops/heap", "only_prompts": True, "fires_on": [], "category_path": ""}
    id = learned(team, "Raise the heap", "What it answers.", prompts=("one for all",), **change)
    with pytest.raises(VaultError, match="no other prompt"):
        ask(team, api.proposal.strike(id=id, text="one for all"))


# a lesson that was there and did not come


def test_a_prompt_for_a_lesson_is_shown_in_a_line_and_acts_once_accepted(team: Vault) -> None:
    prompt = "the runner dies while it builds the shop"
    id = learned(
        team,
        "Raise the heap",
        f"It fires at this prompt from now on: {prompt}",
        changes="ops/heap",
        only_prompts=True,
        category_path="",
        fires_on=[prompt],
    )
    (card,) = ask(team, api.proposal.cards(id=id))
    shown = [line for line in card["target"]["diff"].splitlines()[2:] if line[0] in "+-"]
    assert shown == [f"+fires_on: {prompt}"]
    before = lesson(team, "ops/heap.md")
    ask(team, api.proposal.accept(id=id))
    after = lesson(team, "ops/heap.md")
    assert after.fires_on == (*before.fires_on, prompt)
    assert (after.title, after.text) == (before.title, before.text)
    assert [hit["lesson_id"] for hit in ask(team, api.search.recall(query=prompt))["hits"]] == [
        "ops/heap"
    ]
