"""The command line, HTTP and MCP give the same answer to the same question, and the same error."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp import Client

import vault_index
from tests.support.commands import run
from tests.support.conversations import about_redirects, about_retries
from tests.support.files import lesson_text, write
from tests.support.homes import add_model, make_home
from tests.support.mcp_servers import call, refusal
from tests.support.places import TESTS
from tests.support.serving import Answering, answering
from vault_index.edit import init
from vault_index.entrypoints.mcp.agent import ServedAgent
from vault_index.entrypoints.mcp.tools import build
from vault_index.vault import open_vault

pytestmark = pytest.mark.slow
PROXY = (
    "The ingress drops websocket connections after a minute unless the proxy's timeout is raised."
)
NAMES_HEAP = "A runner has 4 GB of memory.\n\n## Related\n\n- prerequisite: Heap\n- related: queues"


@dataclass(frozen=True)
class Doors:
    """A vault with a course, whose user has sessions of two projects in the journal."""

    root: Path
    home: Path
    http: Answering

    def refused(
        self, words: list[str], request: tuple[str, str, Any], tool: str, **given: Any
    ) -> list[str]:
        """Return the error that each door has for a question."""
        done = run("lessons", *words, cwd=self.root, check=False)
        assert done.code == 1, done
        said, hint = done.err.splitlines()[:2]
        answer = self.http.ask(request[0], request[1], json=request[2])
        assert answer.status_code in (404, 422), answer.text
        body = answer.json()

        async def ask() -> str:
            async with Client(build(ServedAgent(str(self.root)))) as client:
                return await refusal(client, tool, **given)

        by_agent = anyio.run(ask).rstrip(".").replace(". Next: ", "\n")
        typed = said.removeprefix("Error: "), hint.removeprefix("Try: ")
        return ["\n".join(typed), f"{body['error']}\n{body['hint']}", by_agent]

    def tool(self, name: str, **given: Any) -> str:
        """Return what a tool answers."""

        async def ask() -> str:
            async with Client(build(ServedAgent(str(self.root)))) as client:
                return await call(client, name, **given)

        return anyio.run(ask)


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory, model_home: Path) -> Iterator[Doors]:
    top = tmp_path_factory.mktemp("doors")
    home, root = make_home(top / "home"), top / "team"
    add_model(home, model_home)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HOME", str(home))
        patch.setenv("LESSONS_HOME", str(home))
        init(root)
        write(root / "lessons/devops/heap.md", lesson_text("Heap", "Raise the heap of the build."))
        write(home / "journal" / "recorded", "*\n")
        other = top / "mailer"
        other.mkdir()
        about_redirects(root)
        about_retries(other)
        write(root / "lessons/devops/memory.md", lesson_text("Memory", NAMES_HEAP))
        write(root / "lessons/ops/misc-7.md", lesson_text("Misc 7", PROXY))
        course = TESTS / "courses" / "introduction_to_ai.txt"
        run("lessons", "import", "--write", course, cwd=root)
        run("lessons", "index", cwd=root)
        run("lessons", "journal", "import", "--since", "all", cwd=root)
        with answering(root, home) as server:
            yield Doors(root, home, server)


@pytest.fixture
def doors(served: Doors, own_world: Path, monkeypatch: pytest.MonkeyPatch) -> Doors:
    monkeypatch.setenv("HOME", str(served.home))
    monkeypatch.setenv("LESSONS_HOME", str(served.home))
    return served


ERRORS: list[tuple[str, tuple[str, str, Any], str, dict[str, Any], str]] = [
    (
        "journal search retry --type bug",
        ("GET", "/api/journal/search?query=retry&type=bug", None),
        "search_observations",
        {"query": "retry", "type": "bug"},
        "no type 'bug'\nchoose one of bugfix, feature, refactor, change, discovery, decision",
    ),
    (
        "journal search retry -p maler",
        ("GET", "/api/journal/search?query=retry&project=maler", None),
        "search_sessions",
        {"query": "retry", "project": "maler"},
        "no project 'maler' in the journal\nname one of mailer, team, or all",
    ),
    (
        "journal timeline 99999999-p1",
        ("GET", "/api/journal/timeline?anchor=99999999-p1", None),
        "get_context_timeline",
        {"anchor": "99999999-p1"},
        "no record or session '99999999-p1' in the journal\nname one as a search shows it, a"
        " time, or a text of several words",
    ),
    (
        "search -c devop heap",
        ("POST", "/api/query", {"prompt": "heap", "categories": ["devop"]}),
        "learn_search",
        {"query": "heap", "category": "devop"},
        "no lesson has the category 'devop'\nrun it again with devops",
    ),
    (
        "search heap --related-to quokka",
        ("POST", "/api/query", {"prompt": "heap", "related_to": "quokka"}),
        "learn_search",
        {"query": "heap", "related_to": "quokka"},
        "no lesson 'quokka'\nsee their ids with `lessons list`",
    ),
]


@pytest.mark.parametrize(("line", "asked", "tool", "given", "error"), ERRORS)
def test_an_error_has_the_same_words_at_each_door(
    doors: Doors,
    line: str,
    asked: tuple[str, str, Any],
    tool: str,
    given: dict[str, Any],
    error: str,
) -> None:
    assert doors.refused(line.split(), asked, tool, **given) == [error] * 3


@pytest.mark.parametrize("narrowed", [[], ["devops"]])
def test_a_search_finds_the_same_lessons_in_the_same_order(
    doors: Doors, narrowed: list[str]
) -> None:
    asked = "raise the heap of the build"
    options = [word for each in narrowed for word in ("-c", each)]
    typed = run("lessons", "search", "--json", *options, asked, cwd=doors.root).json["hits"]
    body = {"prompt": asked, "categories": narrowed, "min_score": -1}
    answer = doors.http.ask("POST", "/api/query", json=body).json()["lessons"]
    said = doors.tool("learn_search", query=asked, limit=5, category="".join(narrowed))
    ids = [hit["id"] for hit in typed]
    assert ids[0] == "devops/heap"
    assert [hit["id"] for hit in answer] == ids
    by_script = vault_index.search(open_vault(doors.root), asked, categories=narrowed)
    assert [hit.id for hit in by_script] == ids
    shape = {*typed[0]} - {"injected"}  # whether a hook of this machine would inject it
    assert shape == {*by_script[0].as_json()} == {*answer[0]} - {"passage", "source_file"}
    above = re.findall(r"  id: (.*)", said)  # what is below the floor is not for an agent
    assert above
    assert above == ids[: len(above)]


@pytest.mark.parametrize(("name", "related"), [("heap", "memory"), ("devops/memory", "heap")])
def test_a_search_follows_relations_both_ways_at_each_door(
    doors: Doors, name: str, related: str
) -> None:
    asked, ids = "the memory of the build", [f"devops/{related}"]
    words = ["search", "--json", "--related-to", name, asked]
    typed = run("lessons", *words, cwd=doors.root).json["hits"]
    assert [hit["id"] for hit in typed] == ids
    body = {"prompt": asked, "related_to": name, "min_score": -1}
    answer = doors.http.ask("POST", "/api/query", json=body).json()["lessons"]
    assert [hit["id"] for hit in answer] == ids
    assert re.findall(
        r"(?m)^(?:  id: |- )(devops/\w+)", doors.tool("learn_search", query=asked, related_to=name)
    ) == ids  # fmt: skip
    listed = run("lessons", "list", "--json", "--related-to", name, cwd=doors.root).json
    assert [each["id"] for each in listed] == ids
    page = doors.http.ask("GET", f"/page/lesson/near?id=devops/{name.rpartition('/')[2]}").text
    assert f'href="/lesson/devops/{related}">' in page.partition("alike")[0]


def test_a_title_is_no_suggested_question(doors: Doors) -> None:
    """Nothing was taught here, so nothing is suggested."""
    page = doors.http.ask("GET", "/page/ask/suggested", token=False).text
    assert re.findall(r"<button[^>]*>(.*?)</button>", page) == []
