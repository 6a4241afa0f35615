"""The page of documents: found by half-remembered names, each opened to its lessons."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from tests.support.browser import LOOKS, NARROW, nothing_is_in_the_way, visiting
from tests.support.files import lesson_text, write
from tests.support.places import TESTS
from tests.support.serving import Serving, serving
from tests.support.shown_vaults import HOSTILE, TEXT_ONLY, shown_vault

if TYPE_CHECKING:
    from playwright.sync_api import Browser

pytestmark = [pytest.mark.browser, pytest.mark.slow]
SECTIONS = "## Lesson: Start\n\nHow to begin.\n\n## Lesson: End\n\nHow to end.\n"
HOSTILE_FILE = f"""\
---
title: '{HOSTILE}'
author: {"Nobody" * 60}
description: '{HOSTILE}'
link: javascript:document.title=3
---
## Lesson: {HOSTILE}

[Lesson 1](javascript:document.title=4)

A text.

{SECTIONS}"""


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serving]:
    files = {"ops/heap.md": lesson_text("Heap", "Raise it."), "ops/hostile.md": HOSTILE_FILE}
    files |= {
        f"handbook/{number}.md": f"---\ntitle: Handbook {number:03}\n---\n{SECTIONS}"
        for number in range(120)
    }
    shown = shown_vault(tmp_path_factory.mktemp("documents"), files)
    for name in ("introduction_to_ai", "containers_for_developers"):
        write(shown.root / f"{name}.txt", (TESTS / f"courses/{name}.txt").read_text("utf-8"))
        shown.run("import", f"{name}.txt", "--write")
    with serving(shown.root, shown.home, **TEXT_ONLY) as server:
        yield server


def test_a_misspelt_name_finds_the_course_and_its_lessons(
    browser: Browser, served: Serving
) -> None:
    with visiting(browser, served, key=False) as visit:
        page = visit.go("/documents")
        assert "3 courses, 120 other documents" in page.locator("#documents").inner_text()
        page.get_by_label("Name, as you remember it").type("intoduction to ai")
        page.get_by_text("1 called like this").wait_for()
        assert page.url.endswith("?name=intoduction%20to%20ai")
        page.locator("#documents summary").click()
        lessons = page.locator(".lessons li")
        lessons.first.wait_for()
        assert [line.split("\n")[0] for line in lessons.all_inner_texts()][:2] == [
            "Lesson 0",
            "Lesson 1",
        ]
        chunking = page.get_by_role("link", name="What is chunking", exact=True)
        address = chunking.get_attribute("href") or ""
        assert address.startswith("/lesson/courses/introduction-to-ai%23")
        original = page.get_by_role("link", name="What is chunking: the original")
        assert original.get_attribute("href") == "https://example.com/ai/1"


def test_a_name_is_part_of_the_address_and_of_none_the_nearest_are_shown(
    browser: Browser, served: Serving
) -> None:
    with visiting(browser, served) as visit:
        page = visit.go("/documents?name=containers")
        assert page.locator("summary .name").all_inner_texts() == ["Containers for C# developers"]
        page.get_by_label("Name, as you remember it").fill("quantum cooking")
        page.get_by_text("3 called like this").wait_for()


def test_more_than_a_hundred_are_shown_on_demand(browser: Browser, served: Serving) -> None:
    with visiting(browser, served) as visit:
        page = visit.go("/documents")
        assert page.locator("#documents details").count() == 100
        page.get_by_role("button", name="Show more").press("Enter")
        page.locator("#documents details").nth(122).wait_for()
        assert page.get_by_role("button", name="Show more").count() == 0


def test_what_a_document_says_of_itself_is_text(browser: Browser, served: Serving) -> None:
    with visiting(browser, served, size=NARROW) as visit:
        page = visit.go("/documents?name=onerror")
        page.locator("#documents summary").click()
        page.locator(".lessons li").first.wait_for()
        assert page.title() == "Documents · team"
        assert page.locator("main img, main script").count() == 0
        assert page.locator("main a[href^=javascript]").count() == 0
        assert page.evaluate("document.documentElement.scrollWidth") <= NARROW[0]


@pytest.mark.parametrize("look", LOOKS)
def test_nothing_keeps_people_from_using_it(
    browser: Browser, served: Serving, axe: str, look: str
) -> None:
    with visiting(browser, served, **LOOKS[look]) as visit:
        page = visit.go("/documents?name=intro")
        page.locator("#documents summary").first.focus()
        page.keyboard.press("Enter")
        page.locator(".lessons li").first.wait_for()
        nothing_is_in_the_way(page, axe, f"documents-{look}")


def test_a_vault_without_documents_says_how_to_get_some(
    browser: Browser, tmp_path_factory: pytest.TempPathFactory
) -> None:
    shown = shown_vault(tmp_path_factory.mktemp("empty"), {})
    with (
        serving(shown.root, shown.home, **TEXT_ONLY) as server,
        visiting(browser, server) as visit,
    ):
        page = visit.go("/documents")
        assert "The vault has no documents yet" in page.locator("#documents").inner_text()
        page = visit.go("/vault")
        assert "The vault has no lessons yet" in page.locator("#overview").inner_text()
        page = visit.go("/review")
        assert "Nothing waits for review" in page.locator("#list").inner_text()
