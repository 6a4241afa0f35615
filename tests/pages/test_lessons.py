"""Lessons: the list by category, hits as one types, the floor among them, keys and saves."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING
from urllib.parse import quote_plus

import pytest

from tests.support.browser import visiting
from tests.support.files import lesson_text, write
from tests.support.serving import Answering, Serving
from tests.support.shown_vaults import ShownVault, shown_vault
from vault_index.entrypoints.web.search import tree_of

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

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
def shown(tmp_path_factory: pytest.TempPathFactory) -> ShownVault:
    """A vault of four lessons and a skill; its user has another skill."""
    shown = shown_vault(tmp_path_factory.mktemp("searched"), LESSONS)
    for place, name in ((shown.root, "ours"), (shown.home / ".claude", "mine")):
        write(place / "skills" / name / "SKILL.md", SKILL.format(name=name))
    for name in ("brew coffee", "tune violins", "feed pigeons", "paint boats"):  # words are rare
        other = f"---\nname: {name[:4]}\ndescription: How to {name}\n---\n{name}.\n"
        write(shown.root / "skills" / name[:4] / "SKILL.md", other)
    return shown


@pytest.mark.slow
def test_the_floor_is_drawn_where_a_hook_falls_silent(answers: Answering) -> None:
    text = answers.ask("GET", f"/lessons?q={HEAP}", token=False).text  # without any script
    above, floor, below = text.partition('<div class="floor">silent below the floor<')
    assert floor
    assert re.sub("<[^>]+>", "", above).count("Node runs out of memory") == 1
    assert "would be injected" in above
    assert "<mark>memory</mark>" in above
    assert re.search(r'title="[^"]*cosine 0%? ?.*full text', above) or "full text" in above
    assert below.count('class="title') >= 1
    assert 'class="excerpt"' not in below  # titles only
    short = answers.ask("GET", "/page/search?q=the+vpn", token=False).text
    assert "An agent gets nothing at this prompt: fewer than 10 characters." in short
    assert "Nothing matches" in answers.ask("GET", "/page/search?q=zebra", token=False).text


def test_a_category_narrows_the_list_and_the_search(answers: Answering) -> None:
    listed = answers.ask("GET", "/lessons?c=devops", token=False).text
    assert "Staging deploys need the VPN" in listed
    assert "onerror" not in listed
    assert 'href="/lessons?c=devops%2Fci-cd"' in listed
    found = answers.ask("GET", "/lessons?q=build&c=devops", token=False).text
    assert "onerror" not in found
    assert 'name="c" value="devops"' in found  # also without a script
    empty = answers.ask("GET", "/lessons?c=nobody", token=False).text
    assert "No lesson is in nobody." in empty


def test_a_tree_is_open_around_what_is_chosen() -> None:
    counts = {"a": 3, "a/b": 2, "a/b/c": 1, "d": 2, "d/e": 1}
    assert [path for path, *_ in tree_of(counts, "")] == ["a", "d"]
    assert [path for path, *_ in tree_of(counts, "a/b")] == ["a", "a/b", "a/b/c", "d"]
    many = {f"c{number}": number for number in range(1000)}
    assert len(tree_of(many, "")) == 100


def test_skills_of_the_user_are_shown_with_the_key_alone(answers: Answering) -> None:
    asked = "search?q=review+the+frontend+build+of+a+pull+request"
    own = answers.ask("GET", f"/page/private/{asked}").text
    shared = answers.ask("GET", f"/page/{asked}", token=False).text
    assert ("/mine" in own, "/ours" in own) == (True, True)
    assert ("/mine" in shared, "/ours" in shared) == (False, True)


def test_addresses_that_people_edit_are_no_error(answers: Answering) -> None:
    for path in (
        "/lessons?n=x&kind=y&q=build",
        "/lessons?c=nobody/has/it",
        "/lessons?q=%00&c=%2F",
        "/lessons?q=" + "x" * 5000,
    ):
        assert answers.ask("GET", path, token=False).status_code == 200
    answer = answers.ask("GET", "/page/search?q=build&c=..%2F..", token=False)
    assert answer.status_code in (200, 422)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("/search?q=heap", "/lessons?q=heap"),
        ("/agents?session=s", "/activity?session=s"),
        ("/journal", "/activity"),
        ("/review", "/"),
    ],
)
def test_a_bookmark_of_an_old_page_leads_to_the_page_of_today(
    answers: Answering, old: str, new: str
) -> None:
    answer = answers.ask("GET", old, token=False, follow_redirects=False)
    assert (answer.status_code, answer.headers["location"]) == (301, new)


def search(page: Page, words: str) -> None:
    """Type words, and wait for what is found by all of them."""
    with page.expect_response(lambda answer: answer.url.endswith(f"?q={quote_plus(words)}")):
        page.keyboard.type(words)
    page.locator(".row.came mark").first.wait_for()


def titles(page: Page) -> list[str]:
    return page.locator("#results .title").all_inner_texts()


@pytest.mark.browser
def test_keys_alone_search_and_open_and_the_address_keeps_the_search(
    browser: Browser, served: Serving
) -> None:
    focused = "document.activeElement.textContent || document.activeElement.id"
    with visiting(browser, served) as visit:
        page = visit.go("/lessons")
        assert page.evaluate(focused) == "q"
        search(page, HEAP)
        page.locator(".row.came mark", has_text=re.compile("^memory$")).first.wait_for()
        assert page.url.endswith("/lessons?q=" + HEAP.replace(" ", "+"))
        page.locator("#said", has_text="would come").wait_for(state="attached")
        before = titles(page)
        page.reload(wait_until="networkidle")
        assert titles(page) == before
        first, second, *_ = before
        page.keyboard.press("ArrowDown")
        assert page.evaluate(focused) == first
        page.keyboard.press("j")
        assert page.evaluate(focused) == second
        page.keyboard.press("ArrowUp")
        page.keyboard.press("ArrowUp")
        assert page.evaluate(focused) == "q"
        page.keyboard.press("Escape")
        page.get_by_role("heading", name="New and changed").wait_for()
        assert page.url == f"{served.url}/lessons"
        search(page, HEAP)
        page.keyboard.press("ArrowDown")
        page.keyboard.press("Enter")
        page.wait_for_url("**/lesson/devops/ci-cd/heap")


@pytest.mark.browser
def test_a_category_keeps_what_is_typed_and_the_back_button_takes_it_back(
    browser: Browser, served: Serving
) -> None:
    with visiting(browser, served) as visit:
        page = visit.go("/lessons")
        page.fill("#q", "build")
        page.locator("#results .row mark", has_text="build").first.wait_for()
        assert "onerror" in page.locator("#results").inner_text()
        page.locator("#tree").get_by_role("link", name="devops").click()
        page.wait_for_url("**/lessons?q=build&c=devops")
        page.locator("#results:has(.lead)", has_not_text="onerror").wait_for()
        page.go_back()
        page.locator("#results", has_text="onerror").wait_for()


@pytest.mark.browser
def test_a_save_in_an_editor_is_seen_without_loading_the_page_again(
    browser: Browser, served: Serving
) -> None:
    with visiting(browser, served) as visit:
        page = visit.go("/lessons?q=elephant")
        page.locator("#results", has_text="Nothing matches").wait_for()
        file = served.root / "lessons" / "zoo" / "elephant.md"
        write(file, lesson_text("Elephants forget nothing", "An elephant remembers."))
        page.get_by_role("link", name="Elephants forget nothing").wait_for()
        file.unlink()
        page.locator("#results", has_text="Nothing matches").wait_for()
