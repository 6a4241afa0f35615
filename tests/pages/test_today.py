"""The start page: what agents got, what was near, waits, is new and failed; and writing."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.support.browser import LOOKS, barriers, keep, nothing_is_in_the_way, visiting
from tests.support.commands import run
from tests.support.files import MakeVault, commit, lesson_text, write
from tests.support.given import given_to, near, note
from tests.support.serving import Serving, answering
from tests.support.shown_vaults import HOSTILE, TEXT_ONLY, ShownVault, shown_vault
from vault_index.store import injections

if TYPE_CHECKING:
    from playwright.sync_api import Browser

pytestmark = [pytest.mark.browser, pytest.mark.slow]

FULL = f"error: ENOSPC: no space left on device {HOSTILE}"
SLOW = "why does the docker build take so long"


@pytest.fixture(scope="module")
def shown(tmp_path_factory: pytest.TempPathFactory) -> ShownVault:
    heap = lesson_text("Raise the heap", "Set `--max-old-space-size` when node runs out of heap.")
    files = {"ops/heap.md": heap, "ops/cache.md": lesson_text("Mount the cache", "Of docker.")}
    shown = shown_vault(tmp_path_factory.mktemp("today"), files)
    run("git", "config", "user.name", "Ada Lovelace", cwd=shown.root)  # as tests commit
    run("git", "add", "-A", cwd=shown.root)
    bob = "Bob <bob@example.org>"
    run("git", "commit", "-q", "-m", "What Bob knows", "--author", bob, cwd=shown.root)
    write(shown.root / "lessons/ops/own.md", lesson_text("My own", "Of Ada."))
    commit(shown.root)
    shown.run("index")
    asked = partial(note, shown.home, shown.root, floor=0.55)
    asked("ops/heap", prompt="heap")
    asked(prompt=SLOW, said=SLOW, **near("ops/cache", 0.51))
    for _ in range(2):
        asked(event=injections.FAILURE, said=FULL)
    shown.propose("Rotate the key", "Rotate the signing key before each release of the app.")
    return shown


@pytest.mark.parametrize("look", LOOKS)
def test_the_week_is_on_one_page_that_anybody_can_use(
    browser: Browser, served: Serving, axe: str, look: str
) -> None:
    with visiting(browser, served, **LOOKS[look]) as visit:
        page = visit.go("/")
        page.get_by_role("heading", name="Silent, but near").wait_for()
        assert page.title() == "Today · team"
        said = page.locator("#list").inner_text()
        for words in ("2 prompts, 1 with a lesson", "Raise the heap", SLOW, "Rotate the key", FULL):
            assert words in said
        assert "51%, floor 55%" in said
        assert "last today " in said
        assert page.locator("#added .rows li").count() == 2  # of Bob, and not what Ada wrote
        assert page.locator("#added h3").all_inner_texts() == ["New 2"]
        assert page.locator("main img").count() == 0
        box = page.locator("header").bounding_box()
        assert box
        assert box["height"] < 70
        nothing_is_in_the_way(page, axe, f"today-{look}")


def test_without_the_key_only_what_is_shared_is_shown(browser: Browser, served: Serving) -> None:
    with visiting(browser, served, key=False) as visit:
        page = visit.go("/")
        assert "Mount the cache" in page.locator("#added").inner_text()
        assert "lessons serve --open" in page.locator("#list").inner_text()
        visit.errors.clear()  # the console names the refused request
    assert served.ask("GET", "/page/private/today", token=False).status_code == 401


def test_a_failure_becomes_a_lesson(
    browser: Browser, served: Serving, shown: ShownVault, axe: str
) -> None:
    with visiting(browser, served) as visit:
        page = visit.go("/")
        page.get_by_role("link", name="Write one").click()
        page.get_by_label("Comes when a command fails").wait_for()
        assert page.get_by_label("Comes when a command fails").input_value() == FULL
        assert barriers(page, axe) == []
        page.get_by_role("textbox", name="Title").fill("Prune the images of docker")
        page.get_by_label("Categories").fill("ops")
        page.get_by_label("What was learned").fill("Run `docker system prune` **first**.")
        keep(page, "new-light")
        page.get_by_role("button", name="Save").click()
        page.wait_for_url("**/lesson/ops/prune-the-images-of-docker")
        file = shown.root / "lessons/ops/prune-the-images-of-docker.md"
        assert "fires_on_error:" in file.read_text("utf-8")


def test_a_palette_goes_to_lessons_and_pages_and_a_key_lists_the_keys(
    browser: Browser, served: Serving, axe: str
) -> None:
    with visiting(browser, served) as visit:
        page = visit.go("/vault")
        page.keyboard.press("Control+k")
        page.keyboard.type("raise the heap")
        page.get_by_role("dialog").get_by_role("link", name="Raise the heap").wait_for()
        assert barriers(page, axe) == []
        page.keyboard.press("Enter")
        page.wait_for_url("**/lesson/ops/heap")
        page.locator("html[data-ready]").wait_for(state="attached")
        page.keyboard.press("?")
        page.get_by_role("dialog", name="Keys").wait_for()
        page.keyboard.press("Escape")
        page.get_by_role("dialog").wait_for(state="hidden")
        page.keyboard.press("Control+k")
        page.get_by_role("dialog", name="Go to").get_by_role("searchbox").fill("zxqv")
        page.get_by_text("Nothing has these words.").wait_for()


def test_only_what_still_needs_somebody_is_shown(make_vault: MakeVault, own_world: Path) -> None:
    vault = make_vault(
        {
            "ops/cache.md": lesson_text("Mount the cache", "Of docker."),
            "ops/full.md": "---\nfires_on_error: [disk quota reached]\n---\nPrune the disk.\n",
        }
    )
    run("lessons", "index", cwd=vault.root, env=TEXT_ONLY)

    def asked(said: str, *lessons: str, **more: Any) -> None:
        given_to(vault, lessons, prompt=said, said=said, **more)

    for said in ("no space left on device", "connection refused by host", "disk quota reached"):
        for _ in range(2):
            asked(said, event=injections.FAILURE)
    asked("no space left on device", "ops/cache", event=injections.FAILURE)
    for said, score in (("far away", 0.2), ("nearby", 0.4), ("nearby", 0.45), ("taught", 0.4)):
        asked(said, **near("ops/cache", score))
    key = injections.key_of("taught")
    mark = injections.Mark("fires_on", key)
    injections.mark(vault.config.home, vault.root, ("s", key, "ops/cache"), mark)
    with answering(vault.root, own_world, **TEXT_ONLY) as server:
        shown = server.ask("GET", "/page/private/today").text
        assert "connection refused by host" in shown
        assert "no space left on device" not in shown, "its next time had a lesson"
        assert "disk quota reached" not in shown, "a lesson would come now"
        assert shown.count("nearby") == 1, "each prompt once"
        assert "45%, floor 50%" in shown, "as it was last"
        assert "far away" not in shown
        assert "<q>taught" not in shown


def test_what_colleagues_wrote_is_new_or_changed(make_vault: MakeVault, own_world: Path) -> None:
    old = "---\ntitle: Long there\ncreated: 2020-01-01\n---\nOf docker.\n"
    vault = make_vault({"ops/old.md": old, "ops/new.md": lesson_text("Just written", "Of git.")})
    commit(vault.root)
    run("git", "config", "user.name", "Another", cwd=vault.root)
    with answering(vault.root, own_world, **TEXT_ONLY) as server:
        shown = server.ask("GET", "/page/today/added", token=False).text
    new, _, changed = shown.partition("<h3>Changed")
    assert "Just written" in new
    assert "Long there" not in new
    assert "Long there" in changed


def test_a_proposal_links_to_itself(browser: Browser, served: Serving, shown: ShownVault) -> None:
    shown.propose("Rotate the logs", "Rotate the logs of the server each day, before it is full.")
    with visiting(browser, served) as visit:
        for title in ("Rotate the logs", "Rotate the key"):
            visit.go("/").get_by_role("link", name=title).click()
            visit.page.locator("#card-title").get_by_text(title).wait_for()
