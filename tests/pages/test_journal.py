"""The page of the journal: the weeks, a day's work, a session's records, a search of all."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.support.browser import LOOKS, Visit, nothing_is_in_the_way, visiting
from tests.support.files import MakeVault
from tests.support.injected import FALSE, HEAP, HOSTILE, a_team
from tests.support.serving import Serving, serving

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

pytestmark = [pytest.mark.browser, pytest.mark.slow]


@pytest.fixture(scope="module")
def team(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serving]:
    with a_team(tmp_path_factory.mktemp("journal")) as served:
        yield served


def opened(visit: Visit, address: str = "/journal") -> Page:
    page = visit.go(address)
    page.locator("#contents h2").first.wait_for()
    return page


def test_from_the_weeks_to_a_day_to_a_session_to_what_agents_were_given(
    browser: Browser, team: Serving
) -> None:
    with visiting(browser, team) as visit:
        page = opened(visit)
        page.locator(".days a").first.focus()  # the day before
        page.keyboard.press("Enter")
        page.get_by_role("link", name="How many times should the uploader retry?").wait_for()
        assert "1 session · 2 prompts · 1 file modified · team" in page.inner_text("#contents")
        assert "store/upload.py" in page.inner_text("#contents")
        page.get_by_label("Days").get_by_role("link").last.click()
        page.get_by_role("link", name=HEAP[:40]).click()
        page.get_by_role("button", name="Open all").click()
        text = page.inner_text("#contents")
        assert "npm run build" in text
        assert "exit" in text or "failed" in text
        assert str(team.root) not in page.content()
        assert text.index(HEAP) < text.index("The build passes with a heap of 4 GB.")
        page.get_by_role("link", name="What agents were given for it").first.click()
        page.locator("#list .named").wait_for()
        assert HEAP in page.inner_text("#list .named")


def test_a_search_and_what_came_before_and_after(browser: Browser, team: Serving) -> None:
    with visiting(browser, team) as visit:
        page = opened(visit)
        page.get_by_text("Narrow it").click()
        page.get_by_label("Kind").select_option("prompt")
        page.get_by_role("searchbox").fill("heap of photos")
        page.get_by_role("searchbox").press("Enter")
        page.wait_for_url("**/journal?query=heap+of+photos&kind=prompt")
        hits = page.locator(".record")
        hits.first.wait_for()
        assert FALSE in hits.first.inner_text()
        assert set(page.locator(".record .tag").all_inner_texts()) == {"prompt"}
        hits.first.locator("summary").press("Enter")
        page.get_by_role("link", name="What came before and after").first.click()
        page.locator(".record[aria-current]").wait_for()
        assert FALSE in page.locator(".record[aria-current]").inner_text()
        assert HOSTILE in page.inner_text("#contents")
        assert page.locator("#contents img").count() == 0
        visit.go("/journal?since=1d")
        page.get_by_text("Type some words to search for").wait_for()


def test_without_a_journal_or_the_key_one_line_says_what_to_do(
    browser: Browser,
    team: Serving,
    make_vault: MakeVault,
    own_world: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with visiting(browser, team, key=False) as visit:
        page = visit.go("/journal")
        page.get_by_text("open the page from a terminal").first.wait_for()
        assert HEAP not in page.content()
        visit.errors.clear()  # the browser's own lines about status 401
    monkeypatch.setenv("LESSONS_EMBEDDER", "none")
    with (
        serving(make_vault().root, own_world, LESSONS_EMBEDDER="none") as without,
        visiting(browser, without) as visit,
    ):
        page = visit.go("/journal")
        page.get_by_text("The journal is off").wait_for()
        visit.go("/agents")
        page.get_by_text("No agent has asked this vault yet").wait_for()


@pytest.mark.parametrize("look", LOOKS)
def test_nothing_keeps_people_from_using_it(
    browser: Browser, team: Serving, axe: str, look: str
) -> None:
    with visiting(browser, team, **LOOKS[look]) as visit:
        page = opened(visit)
        nothing_is_in_the_way(page, axe, f"journal-{look}")
        page.get_by_role("link", name=HEAP[:40]).click()
        page.get_by_role("button", name="Open all").click()
        nothing_is_in_the_way(page, axe, f"journal-session-{look}")
