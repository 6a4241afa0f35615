"""The frame of every page: what it asks for, and what it looks like."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support.browser import NARROW, WIDE, visiting
from tests.support.files import lesson_text
from tests.support.serving import Serving
from vault_index.entrypoints import guard

if TYPE_CHECKING:
    from playwright.sync_api import Browser

pytestmark = [pytest.mark.browser, pytest.mark.slow]

FILES = {"devops/heap.md": lesson_text("Heap", "Raise the heap.")}


@pytest.mark.parametrize("size", [WIDE, NARROW])
def test_a_page_loads_nothing_from_elsewhere_and_fits_its_window(
    browser: Browser, served: Serving, size: tuple[int, int]
) -> None:
    with visiting(browser, served, size=size) as visit:
        page = visit.go("/")
        assert page.get_by_role("heading", level=1).inner_text() == "Today"
        assert page.evaluate("document.documentElement.scrollWidth") <= size[0]
        page.get_by_role("button", name="Dark or light").click()
        assert page.locator("html").get_attribute("data-theme") == "dark"
        page.reload(wait_until="networkidle")
        assert page.locator("html").get_attribute("data-theme") == "dark"


def test_the_key_comes_by_the_address_once_and_a_stale_one_is_forgotten(
    browser: Browser, served: Serving
) -> None:
    code = guard.new_code(served.token, served.url)
    key = "localStorage.getItem('lessons.key')"
    thief, user, later = (browser.new_context() for _ in range(3))
    try:
        first, second, third = thief.new_page(), user.new_page(), later.new_page()
        first.goto(f"{served.url}/search?q=heap#once={code}", wait_until="networkidle")
        assert first.url == f"{served.url}/search?q=heap"
        assert len(first.evaluate(key)) > 30
        second.goto(f"{served.url}/#once={code}", wait_until="networkidle")
        assert second.url == f"{served.url}/"
        assert second.evaluate(key) is None
        notice = second.locator("#notice").inner_text()
        assert notice.startswith("this address was opened before")
        assert notice.endswith("open the page from a terminal: lessons serve --open")
        first.fill("#q", "raise the heap")  # with the key that was taken back
        first.get_by_text("the page's key is no longer good").wait_for()
        assert first.evaluate(key) is None
        first.get_by_role("link", name="Heap").wait_for()
        third.goto(f"{served.url}/#once=somebodysent", wait_until="networkidle")  # a link
        assert third.url == f"{served.url}/"
        assert third.evaluate(key) is None
    finally:
        for context in (thief, user, later):
            context.close()
