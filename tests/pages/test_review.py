"""The page of proposals: what a person sees of each, and that deciding in the browser changes files."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from tests.support.browser import LOOKS, keep, nothing_is_in_the_way, visiting
from tests.support.commands import run
from tests.support.files import commit, lesson_text, write
from tests.support.serving import Serving
from tests.support.shown_vaults import HOSTILE, ShownVault, shown_vault

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

pytestmark = [pytest.mark.browser, pytest.mark.slow]

HEAP = "When the build dies with heap out of memory, raise the heap of Node in the runner."
KEY = "Rotate the signing key before each release, or the installer refuses the package."
QUOTE = "the installer says: certificate 4711 is not trusted"


@pytest.fixture(scope="module")
def shown(tmp_path_factory: pytest.TempPathFactory) -> ShownVault:
    shown = shown_vault(
        tmp_path_factory.mktemp("review"),
        {
            "ops/heap.md": lesson_text("Raise the heap", HEAP),
            "ops/lock.md": lesson_text("Lock", "Wait for the lock of the package manager."),
        },
    )
    run("git", "config", "user.name", "Ada", cwd=shown.root)
    run("git", "config", "user.email", "ada@example.org", cwd=shown.root)
    commit(shown.root)
    return shown


@pytest.fixture(autouse=True)
def nothing_waits(shown: ShownVault) -> Iterator[None]:
    """Leave no proposal to the next test."""
    yield
    for file in (shown.home / "proposals").rglob("*.*"):
        if file.suffix in (".md", ".jsonl"):  # also what recognises those that were rejected
            file.unlink()


def waiting(shown: ShownVault) -> list[str]:
    return [each["id"] for each in shown.run("review", "list", "--json").json]


def is_over(page: Page) -> None:
    page.get_by_text("Nothing waits for review").wait_for()


def test_accepting_in_the_browser_writes_and_commits_the_lesson(
    browser: Browser, served: Serving, shown: ShownVault
) -> None:
    shown.propose("Rotate the key", KEY, fires_on=["the installer refuses it"])
    with visiting(browser, served) as visit:
        page = visit.go("/review")
        assert page.get_by_role("heading", name="Rotate the key").is_visible()
        assert "goes to ops" in page.locator("#state").inner_text()
        assert not page.locator("#card table").is_visible()
        page.keyboard.press("t")
        assert "the installer refuses it" in page.locator("#card table").inner_text()
        page.get_by_label("Category", exact=True).fill("ops/release")
        page.get_by_label("commit it").check()
        page.get_by_role("button", name="Accept").click()
        assert "It becomes a lesson in ops/release" in page.locator("#dialog").inner_text()
        page.get_by_role("button", name="Accept it").click()
        is_over(page)
        path = "lessons/ops/release/rotate-the-key.md"
        assert f"accepted: {path}" in page.locator("#notice").inner_text()
    assert KEY in (shown.root / path).read_text()
    assert "Rotate the key" in run("git", "log", "-1", "--format=%s", cwd=shown.root).out


def test_rejecting_is_confirmed_and_then_it_is_gone_for_good(
    browser: Browser, served: Serving, shown: ShownVault
) -> None:
    id = shown.propose("Restart it", "Restart the staging server after each change of its DNS.")
    with visiting(browser, served) as visit:
        page = visit.go("/review")
        page.get_by_role("button", name="Reject").press("Enter")
        page.get_by_role("button", name="Cancel").click()
        assert waiting(shown) == [id]
        page.keyboard.press("r")
        page.get_by_role("button", name="Reject it").press("Enter")
        is_over(page)
    with pytest.raises(AssertionError, match="rejected before"):
        shown.propose("Restart it", "Restart the staging server after each change of its DNS.")


def test_merging_shows_the_diff_and_then_changes_the_lesson(
    browser: Browser, served: Serving, shown: ShownVault
) -> None:
    shown.propose("More heap", f"{HEAP} Eight gigabytes are enough for every branch.")
    with visiting(browser, served) as visit:
        page = visit.go("/review")
        page.get_by_text("Everything else", exact=True).click()
        assert "Raise the heap" in page.locator("#card dl").inner_text()
        assert page.get_by_label("Or add it to the end of the lesson").input_value() == "ops/heap"
        page.keyboard.press("m")
        diff = page.locator("#dialog-diff .added")
        diff.first.wait_for()
        assert "Eight gigabytes" in "".join(diff.all_inner_texts())
        keep(page, "review-merge")
        before = (shown.root / "lessons/ops/heap.md").read_text()
        write(shown.root / "lessons/ops/heap.md", before.replace("raise", "always raise"))
        page.get_by_role("button", name="Merge it").click()
        page.locator("#trouble").get_by_text("was saved since its change was shown").wait_for()
        assert "Eight" not in (shown.root / "lessons/ops/heap.md").read_text()
        page.get_by_role("button", name="Merge", exact=True).click()
        page.get_by_role("button", name="Merge it").click()
        is_over(page)
        visit.errors.clear()  # the console names the refused request
    assert "Eight gigabytes" in (shown.root / "lessons/ops/heap.md").read_text()
    write(shown.root / "lessons/ops/heap.md", before)


def test_keys_go_from_one_to_the_next_and_can_be_switched_off(
    browser: Browser, served: Serving, shown: ShownVault
) -> None:
    for number in range(3):
        shown.propose(f"Thing {number}", f"{KEY} Number {number} of some things to look at.")
    with visiting(browser, served) as visit:
        page = visit.go("/review")
        page.get_by_role("heading", name="Thing 0").wait_for()
        page.keyboard.press("j")
        page.get_by_role("heading", name="Thing 1").wait_for()
        assert page.evaluate("document.activeElement.id") == "card-title"
        page.keyboard.press("k")
        page.get_by_role("heading", name="Thing 0").wait_for()
        page.keyboard.press("c")
        assert page.evaluate("document.activeElement.id") == "category"
        page.get_by_role("checkbox", name="Keys").uncheck()
        page.keyboard.press("a")
        assert not page.locator("#dialog").is_visible()


@pytest.mark.parametrize("look", LOOKS)
def test_the_evidence_is_shown_as_text_and_nothing_keeps_people_from_it(
    browser: Browser, served: Serving, shown: ShownVault, axe: str, look: str
) -> None:
    shown.propose(
        "Rotate the key twice", f"{KEY} Twice.\n\n{HOSTILE}\n\n" + "long" * 300,
        fires_on=["the installer refuses it"], quotes=(QUOTE, HOSTILE), why="failed, then passed",
    )  # fmt: skip
    shown.propose(HOSTILE, f"{KEY} A hostile title, and a text that is unlike the others.")
    with visiting(browser, served, **LOOKS[look]) as visit:
        page = visit.go("/review")
        page.get_by_role("heading", name="Rotate the key twice").wait_for()
        assert QUOTE in page.locator("#card").inner_text()
        keep(page, f"review-{look}")
        page.keyboard.press("t")
        page.locator("#card").get_by_text("failed, then passed").wait_for()
        assert page.title() == "Review · team"
        assert page.locator("main img, main script").count() == 0
        nothing_is_in_the_way(page, axe, f"review-{look}-everything")
