"""The page of agents: what was given and why, how fast, and one click for what should not have come."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.support.browser import LOOKS, Visit, nothing_is_in_the_way, visiting
from tests.support.files import MakeVault, lesson_text
from tests.support.injected import FALSE, HEAP, HOSTILE, SILENT, UNKNOWN, a_team
from tests.support.serving import Serving, serving
from vault_index.hotpath import log

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Locator, Page

pytestmark = [pytest.mark.browser, pytest.mark.slow]


@pytest.fixture(scope="module")
def team(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serving]:
    with a_team(tmp_path_factory.mktemp("agents")) as served:
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
        assert sums == "prompts 5 answered 4 silent 1 missed 0 marked false 0".split()
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
    with serving(vault.root, own_world, LESSONS_EMBEDDER="none") as served:
        shown = served.ask("GET", "/page/private/agents/list").text
        assert "<dt>missed</dt><dd>1</dd>" in shown
        assert "<strong>Missed:</strong> no answer in 2000 ms." in shown
        state = served.ask("GET", "/page/private/vault/state").text
        assert "1 answer was missed, at prompts or starts of sessions" in state


def test_filters_are_in_the_address(browser: Browser, team: Serving) -> None:
    with visiting(browser, team) as visit:
        page = opened(visit)
        page.get_by_label("Show").select_option("silent")
        page.get_by_role("textbox", name="Since").fill("1d")
        page.get_by_role("textbox", name="Since").press("Enter")
        page.wait_for_url("**/agents?only=silent&since=1d")
        page.locator(".records > li").wait_for()
        assert page.locator(".records > li").count() == 1
        opened(visit, f"/agents?session={UNKNOWN}")
        assert page.locator(".records > li").count() == 1
        visit.go("/agents?lesson=nobody")
        page.get_by_text("No record is of this kind.").wait_for()


def test_one_click_writes_the_prompt_into_the_lesson_and_another_takes_it_out(
    browser: Browser, team: Serving
) -> None:
    file = team.root / "lessons" / "devops/heap.md"
    before = file.read_bytes()
    with visiting(browser, team) as visit:
        page = opened(visit)
        place = at(page, FALSE).locator(".mark").first
        place.get_by_role("button", name="Should not have fired").click()
        undo = place.get_by_role("button", name="Undo")
        undo.wait_for()
        line = f"silent_on: [{FALSE}]\r\n---\r\nWhen".encode()
        assert file.read_bytes() == before.replace(b"---\r\nWhen", line)
        said = place.locator(".said")
        assert "Written into lessons/devops/heap.md" in said.inner_text()
        assert "The prompt no longer gets" in said.inner_text()
        opened(visit)
        assert "marked false 1" in " ".join(page.locator(".totals").inner_text().split())
        undo.press("Enter")
        place.get_by_role("button", name="Should not have fired").wait_for()
        assert file.read_bytes() == before


@pytest.mark.parametrize("look", LOOKS)
def test_nothing_keeps_people_from_using_it(
    browser: Browser, team: Serving, axe: str, look: str
) -> None:
    with visiting(browser, team, **LOOKS[look]) as visit:
        page = opened(visit)
        page.get_by_role("button", name="Should not have fired").first.click()
        nothing_is_in_the_way(page, axe, f"agents-{look}")
