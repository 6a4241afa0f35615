"""The page of searching in a real browser: hits as one types, the floor, filters, keys, saves."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.support.browser import LOOKS, nothing_is_in_the_way, visiting
from tests.support.commands import run
from tests.support.files import lesson_text, write
from tests.support.homes import make_home
from tests.support.serving import Serving, answering, serving
from tests.support.shown_vaults import TEXT_ONLY, shown_vault

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

pytestmark = [pytest.mark.browser, pytest.mark.slow]

HEAP = "the frontend build dies with heap out of memory"
HOSTILE = "<img src=x onerror=alert(1)> \"'&lt; build"
LESSONS = {
    "devops/ci-cd/heap.md": lesson_text(
        "Node runs out of memory in the CI build",
        "When the frontend build dies with heap out of memory, set NODE_OPTIONS.",
    ),
    "devops/deployment/vpn.md": lesson_text(
        "Staging deploys need the VPN", "The deploy job hangs at connecting without the VPN."
    ),
    "development/hostile.md": lesson_text(HOSTILE, "<script>alert(2)</script> build " + "x" * 500),
    "devops/secret.md": lesson_text(
        "The build has a key",
        "build AWS_SECRET_ACCESS_KEY=q8Lr2Vn0XsT5uKd9Zb3EwYcAf7HgJp1MoRi6NtQe",
    ),
}
SKILL = (
    "---\nname: {name}\ndescription: Review the frontend build of a pull request\n---\nRead it.\n"
)


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serving]:
    """A server of a vault of four lessons and a skill; its user has another skill."""
    shown = shown_vault(tmp_path_factory.mktemp("searched"), LESSONS)
    for place, name in ((shown.root, "ours"), (shown.home / ".claude", "mine")):
        write(place / "skills" / name / "SKILL.md", SKILL.format(name=name))
    with serving(shown.root, shown.home, **TEXT_ONLY) as server:
        assert server.ask("GET", "/api/health").status_code == 200
        yield server


def titles(page: Page) -> list[str]:
    return page.locator("#results .title").all_inner_texts()


def hit(page: Page, title: str) -> str:
    """Return all that is shown of a hit."""
    return page.locator(".hit", has_text=title).inner_text()


def test_hits_come_as_one_types_and_the_address_keeps_them(
    browser: Browser, served: Serving
) -> None:
    with visiting(browser, served) as visit:
        page = visit.go("/search")
        assert "Staging deploys need the VPN" in titles(page)  # what is new
        page.keyboard.press("/")
        page.keyboard.type(HEAP)
        page.locator(".hit:has(.injected) mark", has_text=re.compile("^memory$")).first.wait_for()
        assert titles(page)[0].startswith("Node runs out of memory")
        shown = hit(page, "Node runs")
        assert "would be injected" in shown
        assert re.search(r"\d+%", shown)
        assert "cosine" not in shown  # the parts of the score are folded
        page.locator(".hit", has_text="Node runs").locator("summary").click()
        parts = hit(page, "Node runs")
        assert re.search(r"\d+%\s*= cosine 0\.0% \+ full text \d+\.\d%", parts)
        assert "lessons/devops/ci-cd/heap.md" in shown
        assert "memory" in page.locator(".hit").first.locator("mark").all_inner_texts()
        page.locator("#said", has_text="hit").wait_for()
        assert page.url.endswith("/search?q=" + HEAP.replace(" ", "+"))
        before = titles(page)
        page.reload(wait_until="networkidle")
        assert titles(page) == before
        assert page.locator("#q").input_value() == HEAP
        assert (
            visit.go("/search?q=zebra")
            .locator("#results")
            .inner_text()
            .startswith("Nothing matches")
        )


def test_the_floor_is_drawn_where_a_hook_falls_silent(browser: Browser, served: Serving) -> None:
    with visiting(browser, served) as visit:
        page = visit.go("/search?q=" + HEAP.replace(" ", "+"))
        assert page.locator(".hits:not(.below) .hit").count() == 1
        assert page.locator(".below .hit").count() >= 1
        assert re.match(
            r"Floor \d+%: a hook injects no lesson", page.locator(".floor").inner_text()
        )
        page.fill("#q", "build")
        page.get_by_text(
            "A hook stays silent for this prompt: fewer than 10 characters."
        ).wait_for()
        assert page.locator(".hits:not(.below)").count() == 0


def test_categories_filter_and_the_back_button_takes_it_back(
    browser: Browser, served: Serving
) -> None:
    with visiting(browser, served) as visit:
        page = visit.go("/search?q=build")
        everything = titles(page)
        page.get_by_label("devops 3").check()
        page.locator(".hit", has_text="onerror").wait_for(state="detached")
        assert HOSTILE in everything
        assert page.url.endswith("/search?q=build&c=devops")
        assert page.get_by_label("ci-cd 1").is_visible()
        page.go_back()
        page.locator("#results", has_text="onerror").wait_for()
        assert not page.get_by_label("devops 3").is_checked()
        assert titles(page) == everything


def test_skills_of_the_user_are_shown_with_the_key_alone(browser: Browser, served: Serving) -> None:
    for key in (True, False):
        with visiting(browser, served, key=key) as visit:
            page = visit.go("/search?q=review+the+frontend+build")
            page.get_by_label("Skills").check()
            page.locator("#results", has_text="skill of the vault").wait_for()
            assert sorted(titles(page)) == (["/mine", "/ours"] if key else ["/ours"])


def test_keys_move_among_the_hits(browser: Browser, served: Serving) -> None:
    focused = "document.activeElement.textContent || document.activeElement.id"
    with visiting(browser, served) as visit:
        page = visit.go("/search?q=build")
        first, second, *_ = titles(page)
        page.keyboard.press("/")
        page.keyboard.press("ArrowDown")
        assert page.evaluate(focused) == first
        page.keyboard.press("ArrowDown")
        assert page.evaluate(focused) == second
        page.keyboard.press("ArrowUp")
        page.keyboard.press("ArrowUp")
        assert page.evaluate(focused) == "q"
        page.keyboard.press("Escape")
        page.get_by_role("heading", name="New and changed").wait_for()
        assert page.url == f"{served.url}/search"


def test_it_works_without_a_script(browser: Browser, served: Serving) -> None:
    context = browser.new_context(java_script_enabled=False)
    try:
        page = context.new_page()
        page.goto(served.url + "/search")
        page.get_by_label("devops 3").check()
        page.fill("#q", HEAP)
        page.get_by_role("button", name="Search").click()
        page.wait_for_url("**/search?q=*")
        assert "c=devops" in page.url
        assert titles(page)[0].startswith("Node runs out")
        assert page.get_by_label("devops 3").is_checked()
    finally:
        context.close()


def test_a_save_in_an_editor_is_seen_without_loading_the_page_again(
    browser: Browser, served: Serving
) -> None:
    with visiting(browser, served) as visit:
        page = visit.go("/search?q=elephant")
        page.locator("#results", has_text="Nothing matches").wait_for()
        file = served.root / "lessons" / "zoo" / "elephant.md"
        write(file, lesson_text("Elephants forget nothing", "An elephant remembers."))
        page.get_by_role("link", name="Elephants forget nothing").wait_for()
        page.get_by_label("zoo 1").wait_for()
        file.unlink()
        page.locator("#results", has_text="Nothing matches").wait_for()


def test_a_category_that_is_none_and_numbers_that_are_none_are_no_error(served: Serving) -> None:
    for path in (
        "/search?n=x&kind=y&q=build",
        "/search?c=nobody/has/it",
        "/search?q=%00&c=%2F",
        "/search?q=" + "x" * 5000,
    ):
        assert served.ask("GET", path, token=False).status_code == 200
    answer = served.ask("GET", "/page/search?q=build&c=..%2F..", token=False)
    assert answer.status_code in (200, 422)
    assert served.ask("GET", "/page/private/search?q=build", token=False).status_code == 401


@pytest.mark.parametrize("look", LOOKS)
def test_nothing_keeps_people_from_using_it(
    browser: Browser, served: Serving, axe: str, look: str
) -> None:
    with visiting(browser, served, **LOOKS[look]) as visit:
        for name, address in (("search", "?q=build&kind=both"), ("search-empty", "")):
            nothing_is_in_the_way(visit.go(f"/search{address}"), axe, f"{name}-{look}")


def test_the_first_page_of_an_empty_vault_says_what_to_do(tmp_path: Path) -> None:
    run("lessons", "init", tmp_path / "new", cwd=tmp_path)
    home = make_home(tmp_path / "own")
    with answering(tmp_path / "new", home, LESSONS_EMBEDDER="none") as server:
        answer = server.ask("GET", "/search", token=False)
        assert answer.status_code == 200
        assert "lessons add" in answer.text
