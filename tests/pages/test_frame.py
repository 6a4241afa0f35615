"""The frame of every page: the key, the palette, the keys, old addresses, and who can use them all."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING

import pytest

from tests.support.browser import LOOKS, barriers, nothing_is_in_the_way, visiting
from tests.support.given import near, note
from tests.support.injected import HEAP, HOSTILE, a_team
from tests.support.serving import Serving
from tests.support.shown_vaults import ShownVault
from vault_index.entrypoints import page_code
from vault_index.hotpath import hook_event

if TYPE_CHECKING:
    from playwright.sync_api import Browser

pytestmark = pytest.mark.browser

PAGES = {
    "home": "/",
    "lessons": "/lessons",
    "hits": f"/lessons?q={HEAP.replace(' ', '+')}",
    "lesson": "/lesson/devops/heap",
    "hostile": "/lesson/hostile",
    "new": "/new",
    "activity": "/activity",
    "sessions": "/activity/sessions",
    "ask": "/ask",
    "vault": "/vault",
}


@pytest.fixture(scope="module")
def team(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serving]:
    """A team with something of each kind to do, hostile titles among it."""
    with a_team(tmp_path_factory.mktemp("frame")) as served:
        asked = partial(note, served.root.parent / "home", served.root, session="calls")
        asked(prompt="near", said=f"close {HOSTILE}", **near("devops/limits", 0.4))
        for _ in range(2):
            asked(event=hook_event.FAILURE, prompt="full", said=f"error: no space {HOSTILE}")
        own = ShownVault(served.root, served.root.parent / "home")
        own.propose(f"Rotate {HOSTILE}", f"Rotate the key {HOSTILE} before each " + "long" * 200)
        yield served


@pytest.mark.parametrize("look", LOOKS)
def test_anybody_can_use_each_page_and_what_a_lesson_says_is_text(
    browser: Browser, team: Serving, axe: str, look: str
) -> None:
    with visiting(browser, team, **LOOKS[look]) as visit:
        for name, address in PAGES.items():
            page = visit.go(address)
            for title in page.locator("[data-open].title").all()[:1]:
                title.click()
                page.locator(".more:not([hidden]) *").first.wait_for()
            nothing_is_in_the_way(page, axe, f"{name}-{look}")
            assert page.locator("main img, main script").count() == 0
            assert page.get_by_role("heading", level=1).count() == 1


def test_headings_have_one_left_edge_and_times_one_column(browser: Browser, team: Serving) -> None:
    with visiting(browser, team) as visit:
        lefts = set()
        for address in PAGES.values():
            box = visit.go(address).locator("h1").first.bounding_box()
            assert box
            lefts.add(round(box["x"]))
        assert len(lefts) == 1
        rows = visit.go("/lessons").locator(".row .at").all()
        boxes = [box for row in rows if (box := row.bounding_box())]
        assert len(boxes) > 1
        assert len({round(box["x"] + box["width"]) for box in boxes}) == 1


def test_a_telephone_shows_no_keys_and_the_search_has_the_focus(
    browser: Browser, team: Serving
) -> None:
    with visiting(browser, team, **LOOKS["narrow"]) as visit:
        page = visit.go("/")
        page.locator(".row button").first.wait_for()
        assert not [key for key in page.locator(".row kbd").all() if key.is_visible()]
        visit.go("/lessons")
        assert visit.page.evaluate("document.activeElement.id") == "q"


def test_the_key_comes_by_the_address_once_and_a_stale_one_is_forgotten(
    browser: Browser, team: Serving
) -> None:
    code = page_code.new_code(team.token, team.url)
    key = "localStorage.getItem('lessons.key')"
    thief, user, later = (browser.new_context() for _ in range(3))
    try:
        first, second, third = thief.new_page(), user.new_page(), later.new_page()
        first.goto(f"{team.url}/lessons?q=quokka#once={code}", wait_until="networkidle")
        assert first.url == f"{team.url}/lessons?q=quokka"
        assert len(first.evaluate(key)) > 30
        second.goto(f"{team.url}/#once={code}", wait_until="networkidle")
        assert second.url == f"{team.url}/"
        assert second.evaluate(key) is None
        assert "this address was opened before" in second.locator("#notice").inner_text()
        first.fill("#q", "raise the heap of the build")  # with the key that was taken back
        first.get_by_text("the page's key is no longer good").wait_for()
        assert first.evaluate(key) is None
        first.get_by_role("link", name="Raise the heap").wait_for()
        third.goto(f"{team.url}/#once=somebodysent", wait_until="networkidle")  # a link
        assert third.evaluate(key) is None
        # without a key one card says what to type, and copies it
        assert third.locator("#no-key").count() == 1
        assert third.locator("#no-key button").get_attribute("data-copy") == "lessons open"
    finally:
        for context in (thief, user, later):
            context.close()


def test_a_palette_finds_lessons_pages_and_commands(
    browser: Browser, team: Serving, axe: str
) -> None:
    with visiting(browser, team) as visit:
        page = visit.go("/vault")
        page.keyboard.press("Control+k")
        chosen = page.locator("[aria-selected=true]")
        assert chosen.inner_text() == "Home"
        page.keyboard.press("ArrowDown")
        assert chosen.inner_text() == "Lessons"
        page.keyboard.type("raise the heap")
        page.get_by_role("option", name="Raise the heap").wait_for()
        assert page.locator("dialog .group").all_inner_texts() == ["Lessons"]
        assert barriers(page, axe) == []
        page.keyboard.press("Enter")
        page.wait_for_url("**/lesson/devops/heap")
        page.locator("html[data-ready]").wait_for(state="attached")
        page.keyboard.press("Control+k")
        page.keyboard.type("dark")
        page.locator("[aria-selected=true]", has_text="Dark or light").wait_for()
        page.keyboard.press("Enter")
        assert page.locator("html").get_attribute("data-theme") == "dark"
        page.reload(wait_until="networkidle")
        assert page.locator("html").get_attribute("data-theme") == "dark"
        page.keyboard.press("Control+k")
        page.keyboard.type("zxqv")
        page.get_by_text("Nothing has these words.").wait_for()
        page.keyboard.press("Escape")  # one is enough, whatever is typed
        page.get_by_role("dialog").wait_for(state="hidden")
        page.keyboard.press("?")
        page.get_by_role("dialog", name="Keys").wait_for()
        keys = page.get_by_role("dialog", name="Keys").locator("kbd").all_inner_texts()
        shown = page.locator("main [data-key]").evaluate_all("all => all.map(it => it.dataset.key)")
        assert {*shown, *"jkaemrcynuxw?/"} <= set(keys)


def test_what_is_done_before_a_script_runs_is_done(browser: Browser, team: Serving) -> None:
    with visiting(browser, team, key=False) as visit:
        with visit.early("/lessons", "lessons.js") as page:
            page.fill("#q", HEAP)
        page.locator(".row.came").wait_for()
    with visiting(browser, team) as visit:
        with visit.early("/ask", "ask.js") as page:
            page.fill("#question", HEAP)
            page.click("#ask [type=submit]")
        page.locator(".exchange .source").first.wait_for()
        with visit.early("/lesson/devops/heap", "page.js"):
            page.fill("[name=prompt]", "node is killed at night")
            page.press("[name=prompt]", "Enter")
        page.locator(".taught", has_text="Undo").wait_for()
        with visit.early("/new?id=devops/heap", "new.js"):
            page.fill("[name=title]", "Raise the heap early")
        page.click("#new .main")
        page.get_by_role("heading", level=1, name="Raise the heap early").wait_for()
