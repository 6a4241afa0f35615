"""With the real agent: the plugin, installed from this repository's marketplace, does what it says.

The CLI comes from npm; its model is a stub on loopback, so nothing leaves the machine.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.claude_code import OpenSession, environment, install_plugin, run_in
from tests.support.commands import BIN, run
from tests.support.files import commit, lesson_text, write
from tests.support.messages_api import MessagesApi, model_that_calls, results_of
from tests.support.places import PLUGIN, REPO
from vault_index.entrypoints import wording
from vault_index.proposals import draft
from vault_index.vault import Vault
from vault_index.watch import launch

pytestmark = [pytest.mark.claude_code, pytest.mark.timeout(900)]

HEAP = "our build dies with heap out of memory"
LAYERS = "docker rebuilds every layer for one source file"

FILES = {
    "devops/ci-cd/node-heap.md": lesson_text("Node needs a heap", f"{HEAP}: NODE_OPTIONS=4096."),
    "devops/docker/layers.md": lesson_text("Layers", f"{LAYERS}: copy the lock file first."),
    "conventions/dates.md": lesson_text("Dates are UTC", "Store dates in UTC, show local ones."),
}
SERVER = "mcp__plugin_lessons_lessons"
SEARCH, PROPOSE = f"{SERVER}__learn_search", f"{SERVER}__propose"
ASKED = "Why does the uploader send the batch twice?"
CORRECTED = "No, never retry ERR_UPLOAD_409 in upload_batch(), the server has the batch already"
FAILS = "echo 'FATAL: ERR_UPLOAD_409 from upload_batch' >&2; exit 3"


def entry(title: str, do: str, quote: str) -> dict[str, Any]:
    return {"title": title, "type": "bug_fix", "what_to_do": do, "quotes": [quote]}


ENTRIES = [
    entry("Never retry ERR_UPLOAD_409 in upload_batch()",
          "Leave a 409 of `upload_batch()` alone, since the server has taken the batch already.",
          CORRECTED),
    entry("Set UPLOAD_SEED for a batch that repeats itself",
          "Run the uploader with `UPLOAD_SEED=1`, so that two batches never share their number.",
          "Why does the uploader send a batch twice?"),
    entry("Read ERR_UPLOAD_409 as a success in the log",
          "Count `ERR_UPLOAD_409` among the successes of `upload.log` when you look for failures.",
          "FATAL: ERR_UPLOAD_409 from upload_batch"),
]  # fmt: skip


@pytest.fixture
def team(team: Vault) -> Iterator[Vault]:
    write(team.lessons_dir / "vault.toml", "session_sources = []\n")  # so that prompts get all
    yield team
    launch.stop()  # the hooks started a watcher, as they should


@pytest.fixture
def world(api: MessagesApi, own_world: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """What the agent sees of the world."""
    monkeypatch.setenv(
        "LESSONS_EMBEDDER", "none"
    )  # and so in this process, which finds the watcher
    return environment(api, own_world) | {"LESSONS_EMBEDDER": "none"}


def session(claude: Path, folder: Path, world: dict[str, str]) -> OpenSession:
    """Open a session in which the server's tools need no permission."""
    return OpenSession(claude, folder, world, "ToolSearch", SERVER)


def asked(api: MessagesApi, prompt: str) -> dict[str, Any]:
    """Return the first request of a prompt."""
    return next(one for one in api.requests if prompt in json.dumps(one["messages"]))


def injections(request: dict[str, Any]) -> int:
    """Return how many blocks of lessons hooks have put into a conversation."""
    return json.dumps(request["messages"]).count("hook additional context: <lessons>")


@pytest.mark.parametrize("place", [REPO, PLUGIN], ids=["marketplace", "plugin"])
def test_the_agents_own_validator_has_no_complaint(
    claude: Path, api: MessagesApi, own_world: Path, tmp_path: Path, place: Path
) -> None:
    ran = run_in(
        environment(api, own_world), claude, "plugin", "validate", place, "--strict", cwd=tmp_path
    )
    assert "Validation passed" in ran.out


def test_installed_from_the_marketplace_it_injects_serves_and_is_removed(
    claude: Path, api: MessagesApi, team: Vault, world: dict[str, str], own_world: Path
) -> None:
    api.answer = model_that_calls({HEAP: [(SEARCH, {"query": LAYERS})]})
    install_plugin(claude, world, team.root)
    with session(claude, team.root, world) as opened:
        opened.say(HEAP)
        assert opened.answer() == "ok"
        opened.say("/lessons:search the time zone of dates")
        assert opened.answer() == "ok"
    first = asked(api, HEAP)
    assert injections(first) == 1
    assert "NODE_OPTIONS=4096" in json.dumps(first["messages"])
    (read,) = results_of(api.requests, SEARCH)  # as text, and not as JSON
    assert read.startswith("<lessons>\n")
    assert "lessons/devops/docker/layers.md" in read
    assert "copy the lock file first" in read
    assert asked(api, "Search the team's lessons for: the time zone of dates")
    init = next(one for one in opened.records if one.get("subtype") == "init")
    names = {"lessons:search", "lessons:learn", "lessons:review", "lessons:skill"}
    names |= {"lessons:tend"}
    assert names <= set(init["slash_commands"])
    assert "lessons:lessons" in init["skills"]
    assert (
        run("lessons", "status", "--check", cwd=team.root, check=False).out.count("no agent runs")
        == 0
    )

    run_in(world, claude, "plugin", "uninstall", "lessons@lessons-vault", cwd=team.root)
    run_in(world, claude, "plugin", "marketplace", "remove", "lessons-vault", cwd=team.root)
    settings = (own_world / ".claude" / "settings.json").read_text()
    assert "lessons-vault" not in settings


def test_an_agent_proposes_what_its_session_taught_and_a_later_one_gets_it(
    claude: Path, api: MessagesApi, team: Vault, world: dict[str, str]
) -> None:
    corrected = {**ENTRIES[1], "quotes": [ASKED]}
    ids = [draft.id_of(each["title"], each["what_to_do"]) for each in ENTRIES]
    api.answer = model_that_calls(
        {
            CORRECTED: [("Bash", {"command": FAILS}), ("Bash", {"command": "true"})],
            "Propose lessons for the team": [
                (PROPOSE, {"entries": ENTRIES}),
                (PROPOSE, {"entries": [corrected]}),
            ],
            "accept 1 and 3": [
                ("Bash", {"command": f"lessons review accept {ids[0]} {ids[2]} -c ops"})
            ],
        }
    )
    install_plugin(claude, world, team.root)
    with session(claude, team.root, world) as opened:
        for prompt in (ASKED, CORRECTED, "/lessons:learn", "accept 1 and 3"):
            opened.say(prompt)
            assert opened.answer() == "ok"
    first, second = results_of(api.requests, PROPOSE)
    assert f"{ids[0]} waits" in first
    assert f"{ids[2]} waits" in first
    assert f"dropped: {ENTRIES[1]['title']}: none of its quotes is in the session" in first
    assert f"the session has: “{ASKED}”" in first
    assert f"{ids[1]} waits" in second
    told = wording.instructions(wording.LEARN, "")
    assert len(told) + len(first) + len(second) < 4 * 2_000  # some four characters a token
    listed = run("lessons", "review", "list", "--json", cwd=team.root).json
    assert [each["id"] for each in listed] == [ids[1]]
    with session(claude, team.root, world) as opened:
        opened.say("may I retry ERR_UPLOAD_409 of upload_batch()")
        assert opened.answer() == "ok"
    asking = asked(api, "may I retry ERR_UPLOAD_409")
    assert "since the server has taken the batch already" in json.dumps(asking["messages"])


def proposes(api: MessagesApi, proposed: dict[str, Any]) -> None:
    """Have the model of the next sessions propose one entry when it is asked for lessons."""
    api.requests.clear()
    learn = "Propose lessons for the team"
    api.answer = model_that_calls({learn: [(PROPOSE, {"entries": [proposed]})]})


def talked(claude: Path, team: Vault, world: dict[str, str], *said: str, resume: str = "") -> str:
    """Have a session in which a person says this; return its id."""
    options = ("--resume", resume) if resume else ()
    with OpenSession(claude, team.root, world, "ToolSearch", SERVER, *options) as opened:
        for prompt in said:
            opened.say(prompt)
            assert opened.answer() == "ok"
    return str(opened.records[0]["session_id"])


@pytest.mark.parametrize("recorded", [True, False], ids=["recorded", "unrecorded"])
def test_after_a_resume_a_quote_from_before_it_holds(
    claude: Path,
    api: MessagesApi,
    team: Vault,
    world: dict[str, str],
    own_world: Path,
    recorded: bool,
) -> None:
    """Issue 58, must show: `/lessons:learn` in a resumed session, recorded or not."""
    if recorded:
        write(own_world / "journal" / "recorded", "*\n")
    install_plugin(claude, world, team.root)
    proposes(api, ENTRIES[0])
    first = talked(claude, team, world, ASKED, CORRECTED)
    run("lessons", "journal", "import", cwd=team.root)
    talked(claude, team, world, "go on with the uploader", "/lessons:learn", resume=first)
    (answer,) = results_of(api.requests, PROPOSE)
    assert f" waits: {ENTRIES[0]['title']}" in answer
    (card,) = run("lessons", "review", "list", "--json", cwd=team.root).json
    assert card["quotes"] == [CORRECTED]
    assert card["findings"] == [], "it was looked up"


def test_two_sessions_that_teach_the_same_are_one_card(
    claude: Path, api: MessagesApi, team: Vault, world: dict[str, str]
) -> None:
    """Issue 58, must show: one card, seen in two sessions."""
    install_plugin(claude, world, team.root)
    again = "Again: leave a 409 of upload_batch() alone, as I said last week"
    for said, quoted in ((CORRECTED, CORRECTED), (again, again)):
        proposes(api, {**ENTRIES[0], "quotes": [quoted]})
        talked(claude, team, world, ASKED, said, "/lessons:learn")
        (answer,) = results_of(api.requests, PROPOSE)
    assert "seen in 2 sessions" in answer
    (card,) = run("lessons", "review", "list", "--json", cwd=team.root).json
    assert card["quotes"] == [CORRECTED, again]
    assert "seen in 2 sessions" in run("lessons", "review", cwd=team.root).out


def test_an_agent_writes_prompts_for_twenty_lessons_and_one_accept_is_one_diff(
    claude: Path, api: MessagesApi, team: Vault, world: dict[str, str]
) -> None:
    """A person types `/lessons:tend`, agrees, and git shows nothing but frontmatter."""
    names = [f"area-{number}" for number in range(25)]
    for name in names:
        text = f"When the {name} job stops, restart its queue by hand.\n"
        write(team.lessons_dir / f"jobs/{name}.md", f"---\ntitle: The {name} job\n---\n{text}")
    commit(team.root)
    run("lessons", "index", cwd=team.root, env={"LESSONS_EMBEDDER": "none"})
    handed = run("lessons", "tend", "--list", "--json", cwd=team.root).json["lessons"]
    assert len(handed) == 20
    answers = [
        {"lesson": each["id"], "prompts": [f"nothing moves in {each['id']} since this morning"]}
        for each in handed
    ]
    entries = write(team.root.parent / "prompts.json", json.dumps(answers))
    accept = "lessons review accept --batch $(lessons review list --json | sed -n "
    accept += '\'s/.*"batch": "\\(.*\\)".*/\\1/p\' | head -n 1)'
    api.answer = model_that_calls(
        {
            "that have none, so that they are found": [
                ("Bash", {"command": "lessons tend --list"}),
                ("Bash", {"command": f"lessons propose {entries}"}),
            ],
            "keep all of them": [("Bash", {"command": accept})],
        }
    )
    install_plugin(claude, world, team.root)
    with session(claude, team.root, world) as opened:
        opened.say("/lessons:tend")
        assert opened.answer() == "ok"
        assert run("git", "diff", "--stat", cwd=team.root).out == "", "a person has not agreed yet"
        opened.say("keep all of them")
        assert opened.answer() == "ok"
    listed, proposed, _ = results_of(api.requests, "Bash")
    assert f"id: {handed[0]['id']}" in listed
    assert "more have none: another turn" in listed
    assert "prompts for 20 lessons to review" in proposed
    diff = run("git", "diff", "--unified=0", cwd=team.root).out.splitlines()
    changes = [line for line in diff if line[:1] in "+-" and line[:3] not in ("+++", "---")]
    assert len(changes) == 20
    assert all(line.startswith("+prompts: [nothing moves in ") for line in changes)
    found = run("lessons", "search", "nothing moves since this morning", "--json", cwd=team.root)
    assert found.json


def test_where_the_program_is_missing_the_agent_goes_on_and_is_told_once(
    claude: Path, api: MessagesApi, team: Vault, world: dict[str, str]
) -> None:
    install_plugin(claude, world, team.root)
    without = [place for place in world["PATH"].split(":") if place != str(BIN)]
    world["PATH"] = ":".join(without)
    complaints = []
    for prompt in (HEAP, LAYERS + " and a long text" * 20_000):  # more than a pipe holds
        with session(claude, team.root, world) as opened:
            opened.say(prompt)
            assert opened.answer() == "ok"
        assert injections(asked(api, prompt)) == 0
        complaints += [one for one in opened.records if "is not installed" in json.dumps(one)]
    assert len(complaints) == 1


def test_a_line_at_a_prompt_leads_the_agent_to_the_lesson(
    claude: Path, api: MessagesApi, team: Vault, world: dict[str, str]
) -> None:
    """The agent is told a title, reads the lesson by MCP, and the person sees what came."""
    run("lessons", "index", cwd=team.root, env={"LESSONS_EMBEDDER": "none"})
    with (team.lessons_dir / "vault.toml").open("a") as settings:
        settings.write("\nprompt_lessons = 0\n")
    read = f"{SERVER}__learn_get"
    api.answer = model_that_calls({HEAP: [(read, {"id": "devops/ci-cd/node-heap"})]})
    install_plugin(claude, world, team.root)
    with session(claude, team.root, world) as opened:
        opened.say(HEAP)
        assert opened.answer() == "ok"
    first = json.dumps(asked(api, HEAP)["messages"])
    assert "(ID devops/ci-cd/node-heap)" in first
    assert "NODE_OPTIONS=4096" in "".join(results_of(api.requests, read))
    record = run("lessons", "last", "--json", cwd=team.root).json[0]
    assert [(each["id"], each["is_line"]) for each in record["lessons"]] == [
        ("devops/ci-cd/node-heap", True)
    ]
    assert "Node needs a heap (" in run("lessons", "last", cwd=team.root).out
