"""The tools of the journal, which are there when it is on."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from mcp import Client

from tests.support.commands import run
from tests.support.conversations import about_redirects, about_retries
from tests.support.files import MakeVault, lesson_text, write
from tests.support.mcp_servers import call
from vault_index import state
from vault_index.entrypoints.mcp import texts
from vault_index.entrypoints.mcp.agent import ServedAgent
from vault_index.entrypoints.mcp.tools import build

pytestmark = pytest.mark.anyio
NAMES = ["search_journal"]


@pytest.fixture
def shop(tmp_path: Path, own_world: Path, text_only: None) -> Path:
    """A project without a vault, and two sessions of it in the journal."""
    folder = tmp_path / "shop"
    folder.mkdir()
    about_redirects(folder)
    about_retries(folder)
    run("lessons", "journal", "import", "--since", "all", cwd=folder)
    return folder


@pytest.fixture
async def client(shop: Path) -> AsyncIterator[Client]:
    async with Client(build(ServedAgent(str(shop)))) as client:
        yield client


async def names(folder: Path, tools: str = "usual") -> list[str]:
    async with Client(build(ServedAgent(str(folder)), tools)) as client:
        return [tool.name for tool in (await client.list_tools()).tools]


async def test_they_are_there_when_the_journal_is_on(tmp_path: Path, own_world: Path) -> None:
    lessons = [
        "learn_search",
        "learn_get",
        "learn_status",
        "useful",
        "propose",
        "learn_material",
        "learn_trigger",
    ]
    assert await names(tmp_path) == lessons
    recorded = write(own_world / "journal" / "recorded", "# of whom\n!/private\n")
    assert await names(tmp_path) == lessons
    recorded.write_text("/code/shop\n")
    assert await names(tmp_path) == [*lessons[:4], *NAMES, *lessons[4:]]
    assert await names(tmp_path, "journal") == NAMES
    assert await names(tmp_path, "lessons") == lessons
    others = await names(tmp_path, "all")
    assert others[:9] == [*lessons[:4], *NAMES, "get_context_timeline", *lessons[4:]]
    assert others[9:] == [
        *("search_observations", "find_by_concept", "find_by_file", "find_by_type"),
        *("search_sessions", "search_user_prompts"),
    ]
    recorded.unlink()
    assert await names(tmp_path, "all") == lessons


async def test_all_tools_say_what_they_take_and_can_be_called(shop: Path) -> None:
    async with Client(build(ServedAgent(str(shop)), "all")) as client:
        takes = {
            tool.name: tool.input_schema["properties"] for tool in (await client.list_tools()).tools
        }
        assert {"depth_before", "depth_after"} <= takes["get_context_timeline"].keys()
        assert "kind" in takes["search_journal"]
        assert takes["find_by_file"] == {
            name: about for name, about in takes["search_journal"].items() if name != "kind"
        }
        found = await call(client, "search_user_prompts", query="redirect", since="all")
        assert found.count("[prompt] ") == found.count("\n- ") > 0


# the names by which agents may know a search of the journal


async def test_a_folder_without_sessions_is_told_nothing_of_another_project(
    client: Client, tmp_path: Path
) -> None:
    (tmp_path / "new").mkdir()
    async with Client(build(ServedAgent(str(tmp_path / "new")))) as stranger:
        for tool, given in (
            ("search_sessions", {"query": "redirect", "since": "all"}),
            ("get_context_timeline", {"anchor": "uploader retry"}),
            ("get_context_timeline", {"anchor": "yesterday 14:00"}),
        ):
            said = await call(stranger, tool, **given)
            assert said.startswith("The journal has no session of this project; `all` is every")
        everywhere = await call(stranger, "search_sessions", query="redirect", project="all")
        assert "[summary] " in everywhere


async def test_pages_follow_by_cursor(client: Client) -> None:
    first = await call(
        client, "search_user_prompts", query="uploader redirect", since="all", limit=1
    )
    assert "cursor='1'" in first
    second = await call(
        client, "search_user_prompts", query="uploader redirect", since="all", limit=1, cursor="1"
    )
    assert first.splitlines()[2] != second.splitlines()[2]


@pytest.mark.slow
async def test_lessons_of_a_project_that_the_journal_knows(
    shop: Path, make_vault: MakeVault, tmp_path: Path
) -> None:
    """A name leads to the folder in which the project was seen last, and to the vault around it."""
    make_vault({"a.md": lesson_text("Wombats", "Wombats dig.")}, name="shop")
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    async with Client(build(ServedAgent(str(elsewhere)))) as client:
        assert "Wombats" in await call(client, "learn_search", query="wombats", project="shop")


async def test_answers_are_bounded(client: Client, own_world: Path) -> None:
    with state.writing(own_world) as db:
        long = "pause " + "of seconds " * 9_000
        db.execute("UPDATE record SET data = replace(data, 'pause', ?)", [long])
    full = await call(client, "get_context_timeline", anchor="uploader retry", format="full")
    assert len(full) < texts.MAX_CHARS + 2_000
