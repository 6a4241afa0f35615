"""The page of agents: what was given and why, how fast, and one click for what should not have come."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.support.browser import LOOKS, Visit, nothing_is_in_the_way, visiting
from tests.support.commands import run
from tests.support.files import MakeVault, lesson_text
from tests.support.given import near, note
from tests.support.injected import FALSE, HEAP, HOSTILE, SILENT, UNKNOWN, a_team
from tests.support.serving import Serving, answering
from vault_index.hotpath import log
from vault_index.lesson.parse import parse_file
from vault_index.store import injections
from vault_index.store.injections import Given

QUIET = "the assembly line of the phone factory stands still"
ENDED = "FATAL ERROR: heap out of memory in the frontend build"
LOST = "error: lostpackets: the gateway wrapper never replied"

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Locator, Page

pytestmark = [pytest.mark.browser, pytest.mark.slow]


@pytest.fixture(scope="module")
def team(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serving]:
    with a_team(tmp_path_factory.mktemp("agents")) as served:
        home, quiet = served.root.parent / "home", near("devops/limits", 0.4)
        for kind, said, more in (
            (injections.PROMPT, QUIET, quiet),
            (injections.FAILURE, ENDED, {"given": (Given("devops/heap", 0.4),)}),
            (injections.FAILURE, LOST, quiet),
        ):
            note(home, served.root, event=kind, session="calls", prompt=said, said=said, **more)
        yield served


def opened(visit: Visit, address: str = "/agents") -> Page:
    page = visit.go(address)
    page.locator("#list .record, #list .session").first.wait_for()
    return page


def at(page: Page, prompt: str) -> Locator:
    """Return the record of a prompt that the journal has."""
    return page.locator(".records > li").filter(has_text=prompt[:60])


def test_what_was_given_to_whom_and_why(browser: Browser, team: Serving) -> None:
    with visiting(browser, team) as visit:
        page = opened(visit)
        sums = page.locator(".totals").inner_text().split()
        assert (
            sums
            == (
                "prompts 6 answered 4 silent 2 missed 0 marked false 0 "
                "failed commands 2 told at one 1 came again after 0"
            ).split()
        )
        assert "Half of the answers came within" in page.locator("#list").inner_text()
        given = at(page, HEAP).first
        assert given.get_by_role("link").inner_text() == "Raise the heap of the build"
        assert "no lesson shares a word" in at(page, SILENT).inner_text()
        unknown = page.locator(".session").filter(has_text=UNKNOWN[:8])
        assert "prompt not kept" in unknown.inner_text()
        assert page.locator("#list img").count() == 0  # a lesson is titled so, and a prompt says it
        assert HOSTILE in page.locator("#list").inner_text()


def test_what_missed_its_deadline_is_among_them(make_vault: MakeVault, own_world: Path) -> None:
    vault = make_vault({"heap.md": lesson_text("Heap", "Raise the heap.")})
    event: dict[str, object] = {"hook_event_name": "SessionStart", "vault": str(vault.root)}
    log.log(event, "no answer in 2000 ms", time.monotonic() - 2, missed=True)
    with answering(vault.root, own_world, LESSONS_EMBEDDER="none") as served:
        shown = served.ask("GET", "/page/private/agents/list").text
        assert "<dt>missed</dt><dd>1</dd>" in shown
        assert "<strong>Missed:</strong> no answer in 2000 ms." in shown
        state = served.ask("GET", "/page/private/vault/state").text
        assert "1 answer was missed, at prompts or starts of sessions" in state


def test_a_rule_that_no_search_found_has_no_score(make_vault: MakeVault, own_world: Path) -> None:
    vault = make_vault({"heap.md": lesson_text("Heap", "Raise the heap.")})
    run("lessons", "index", cwd=vault.root, env={"LESSONS_EMBEDDER": "none"})
    for event in (injections.PROMPT, "SessionStart"):
        note(own_world, vault.root, event=event, session="s", given=(Given("heap", 0.0),))
    assert "Heap (without a search) heap" in run("lessons", "last", cwd=vault.root).out
    with answering(vault.root, own_world, LESSONS_EMBEDDER="none") as served:
        shown = served.ask("GET", "/page/private/agents/list").text
        assert shown.count("without a search") == 2
        assert ">0%<" not in shown


def test_filters_are_in_the_address(browser: Browser, team: Serving) -> None:
    with visiting(browser, team) as visit:
        page = opened(visit)
        page.get_by_label("Show").select_option("silent")
        page.get_by_role("textbox", name="Since").fill("1d")
        page.get_by_role("textbox", name="Since").press("Enter")
        page.wait_for_url("**/agents?only=silent&since=1d")
        page.locator(".records > li").first.wait_for()
        assert page.locator(".records > li").count() == 3
        opened(visit, f"/agents?session={UNKNOWN}")
        assert page.locator(".records > li").count() == 1
        visit.go("/agents?lesson=nobody")
        page.get_by_text("No record is of this kind.").wait_for()


# the text of a row, whether the button says that it should fire, the list, and what the page says
CLICKS = {
    "a prompt that got it": (FALSE, False, "silent_on", "The prompt no longer gets"),
    "a silent prompt": (QUIET, True, "fires_on", "The prompt gets"),
    "a failure that got it": (
        ENDED,
        False,
        "silent_on_error",
        "A command that fails so no longer gets",
    ),
    "a silent failure": (LOST, True, "fires_on_error", "A command that fails so gets"),
}


@pytest.mark.parametrize("row", CLICKS)
def test_one_click_writes_it_another_takes_it_out_and_the_page_says_so(
    browser: Browser, team: Serving, row: str
) -> None:
    text, fires, where, says = CLICKS[row]
    name = "Should have fired" if fires else "Should not have fired"
    path = "devops/limits.md" if fires else "devops/heap.md"
    file = team.root / "lessons" / path
    before = file.read_bytes()
    with visiting(browser, team) as visit:
        page = opened(visit)
        place = at(page, text).locator(".mark").first
        place.get_by_role("button", name=name).click()
        undo = place.get_by_role("button", name="Undo")
        undo.wait_for()
        (lesson,) = parse_file(file.read_bytes(), path)
        assert text in getattr(lesson, where)
        end = " from now on." if fires else "."
        said = place.locator(".said").inner_text().split()
        whole = f"Written into lessons/{path}. {says} “{lesson.title}”{end}"
        assert said == whole.split()
        opened(visit)
        sums = " ".join(page.locator(".totals").inner_text().split())
        assert f"marked false {0 if fires else 1}" in sums
        undo.press("Enter")
        place.get_by_role("button", name=name).wait_for()
        assert file.read_bytes() == before


@pytest.mark.parametrize("look", LOOKS)
def test_nothing_keeps_people_from_using_it(
    browser: Browser, team: Serving, axe: str, look: str
) -> None:
    with visiting(browser, team, **LOOKS[look]) as visit:
        page = opened(visit)
        page.get_by_role("button", name="Should not have fired").first.click()
        nothing_is_in_the_way(page, axe, f"agents-{look}")
