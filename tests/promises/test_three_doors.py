"""The command line, HTTP and MCP give the same answer to the same question, and the same error."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp import Client

from tests.support.commands import run
from tests.support.conversations import about_redirects, about_retries
from tests.support.files import lesson_text, write
from tests.support.homes import add_model, make_home
from tests.support.mcp_servers import refusal
from tests.support.places import TESTS
from tests.support.serving import Serving, serving
from vault_index.edit import init
from vault_index.entrypoints.mcp.agent import Agent
from vault_index.entrypoints.mcp.tools import build

pytestmark = pytest.mark.slow


@dataclass(frozen=True)
class Doors:
    """A vault with a course, whose user has sessions of two projects in the journal."""

    root: Path
    home: Path
    http: Serving

    def refused(self, words: list[str], path: str, tool: str, **given: Any) -> list[str]:
        """Return the error that each door has for a question."""
        done = run("lessons", *words, cwd=self.root, check=False)
        assert done.code == 1, done
        said, hint = done.err.splitlines()[:2]
        answer = self.http.ask("GET", path)
        assert answer.status_code in (404, 422), answer.text
        body = answer.json()

        async def ask() -> str:
            async with Client(build(Agent(str(self.root)))) as client:
                return await refusal(client, tool, **given)

        by_agent = anyio.run(ask).rstrip(".").replace(". Next: ", "\n")
        typed = said.removeprefix("Error: "), hint.removeprefix("Try: ")
        return ["\n".join(typed), f"{body['error']}\n{body['hint']}", by_agent]


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory, model_home: Path) -> Iterator[Doors]:
    top = tmp_path_factory.mktemp("doors")
    home, root = make_home(top / "home"), top / "team"
    add_model(home, model_home)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HOME", str(home))
        patch.setenv("LESSONS_HOME", str(home))
        init.init(root)
        write(root / "lessons/devops/heap.md", lesson_text("Heap", "Raise the heap of the build."))
        write(home / "journal" / "recorded", "*\n")
        other = top / "mailer"
        other.mkdir()
        about_redirects(root)
        about_retries(other)
        course = TESTS / "courses" / "introduction_to_ai.txt"
        run("lessons", "import", "--write", course, cwd=root)
        run("lessons", "index", cwd=root)
        run("lessons", "journal", "import", "--since", "all", cwd=root)
        with serving(root, home) as server:
            yield Doors(root, home, server)


@pytest.fixture
def doors(served: Doors, own_world: Path, monkeypatch: pytest.MonkeyPatch) -> Doors:
    monkeypatch.setenv("HOME", str(served.home))
    monkeypatch.setenv("LESSONS_HOME", str(served.home))
    return served


SEARCH, TIMELINE = "/api/journal/search?query=retry", "/api/journal/timeline?anchor="


@pytest.mark.parametrize(
    ("words", "path", "tool", "given", "error"),
    [
        (
            ["search", "retry", "--type", "bug"],
            f"{SEARCH}&type=bug",
            "search_observations",
            {"query": "retry", "type": "bug"},
            "no type 'bug'\nchoose one of bugfix, feature, refactor, change, discovery, decision",
        ),
        (
            ["search", "retry", "--concept", "quokka"],
            f"{SEARCH}&concept=quokka",
            "search_observations",
            {"query": "retry", "concept": "quokka"},
            "no concept 'quokka'\nchoose one of how-it-works, why-it-exists, what-changed,"
            " problem-solution, gotcha, pattern, trade-off",
        ),
        (
            ["search", "retry", "-p", "maler"],
            f"{SEARCH}&project=maler",
            "search_sessions",
            {"query": "retry", "project": "maler"},
            "no project 'maler' in the journal\nname one of mailer, team, or all",
        ),
        (
            ["search", "retry", "--since", "next friday"],
            f"{SEARCH}&since=next friday",
            "search_sessions",
            {"query": "retry", "since": "next friday"},
            "no date 'next friday'\nwrite it like 2026-03-31, 30d, 8w, yesterday, last tuesday or"
            " 2 days ago",
        ),
        (
            ["timeline", "next friday"],
            f"{TIMELINE}next friday",
            "get_context_timeline",
            {"anchor": "next friday"},
            "no date 'next friday'\nwrite it like 2026-03-31, 30d, 8w, yesterday, last tuesday or"
            " 2 days ago",
        ),
        (
            ["timeline", "99999999-p1"],
            f"{TIMELINE}99999999-p1",
            "get_context_timeline",
            {"anchor": "99999999-p1"},
            "no record or session '99999999-p1' in the journal\nname one as a search shows it, a"
            " time, or a text of several words",
        ),
    ],
)
def test_an_error_of_the_journal_has_the_same_words_at_each_door(
    doors: Doors, words: list[str], path: str, tool: str, given: dict[str, str], error: str
) -> None:
    assert doors.refused(["journal", *words], path, tool, **given) == [error] * 3
