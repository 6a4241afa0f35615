"""Activity: what was given and why, one click for what should not have come, and the sessions behind."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.support.browser import visiting
from tests.support.commands import run
from tests.support.files import MakeVault, lesson_text
from tests.support.given import near, note
from tests.support.injected import FALSE, HEAP, HOSTILE, SILENT, UNKNOWN, a_vault
from tests.support.serving import Answering, answering, serving
from vault_index.hotpath import hook_event, log
from vault_index.lesson.parse import parse_file
from vault_index.store.delivery import Given

if TYPE_CHECKING:
    from playwright.sync_api import Browser

pytestmark = pytest.mark.slow

QUIET = "the assembly line of the phone factory stands still"
ENDED = "FATAL ERROR: heap out of memory in the frontend build"
LOST = "error: lostpackets: the gateway wrapper never replied"
LIST = "/page/private/activity/list"
JOURNAL = "/page/private/journal"


@pytest.fixture(scope="module")
def team(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Answering]:
    root, home = a_vault(tmp_path_factory.mktemp("activity"))
    quiet = near("devops/limits", 0.4)
    for kind, said, more in (
        (hook_event.PROMPT, QUIET, quiet),
        (hook_event.FAILURE, ENDED, {"given": (Given("devops/heap", 0.4),)}),
        (hook_event.FAILURE, LOST, quiet),
    ):
        note(home, root, event=kind, session="calls", prompt=said, said=said, **more)
    with answering(root, home, LESSONS_EMBEDDER="none") as served:
        yield served


def words(html: str) -> str:
    return " ".join(re.sub("<[^>]+>", " ", html).split())


def rows(served: Answering, **asked: str) -> dict[str, str]:
    """Return the rows of the list by their titles."""
    parts = re.split(r'<li class="row', served.ask("GET", LIST, params=asked).text)[1:]
    return {
        words(re.findall(r"(?s)data-open[^>]*>(.*?)</button>", each)[0]): each for each in parts
    }


def test_what_was_given_to_whom_and_why(team: Answering) -> None:
    listed = rows(team)
    assert "Raise the heap of the build" in words(listed[HEAP])
    assert "as a line" in words(listed[HEAP]) or "came" in listed[HEAP][:10]
    silent = next(each for title, each in listed.items() if title.startswith(SILENT[:60]))
    assert "no lesson shares a word" in silent
    assert "nearest: Container limits, 40% of 50%" in words(listed[QUIET])
    assert "<img" not in "".join(listed.values())  # a lesson is titled so, and a prompt says it
    assert "A prompt without its text" in rows(team, session=UNKNOWN)
    assert set(rows(team, only="failed")) == {ENDED, LOST}
    assert QUIET in rows(team, only="silent")
    assert QUIET not in rows(team, only="answered")
    assert "Nothing of this kind" in team.ask("GET", LIST, params={"lesson": "nobody"}).text
    assert 'href="/activity?only=failed"' in team.ask("GET", "/activity", token=False).text


def test_prompts_without_text_share_a_row_that_says_how_to_keep_them(
    make_vault: MakeVault, own_world: Path
) -> None:
    vault = make_vault({"heap.md": lesson_text("Heap", "Raise the heap.")})
    for number in range(5):
        note(
            own_world,
            vault.root,
            session="s",
            prompt=f"p{number}",
            silent="nothing above the floor",
        )
    with answering(vault.root, own_world, LESSONS_EMBEDDER="none") as served:
        shown = served.ask("GET", LIST).text
        assert shown.count('<li class="row') == 1
        assert "5 prompts without their text" in shown
        assert "lessons install claude --journal" in shown


@pytest.mark.browser
def test_a_field_searches_the_other_lesson_that_should_come(
    browser: Browser, tmp_path_factory: pytest.TempPathFactory
) -> None:
    root, home = a_vault(tmp_path_factory.mktemp("other"))
    note(home, root, session="calls", prompt=QUIET, said=QUIET)
    with serving(root, home, LESSONS_EMBEDDER="none") as served, visiting(browser, served) as visit:
        page = visit.go("/activity")
        page.get_by_text(QUIET).first.click()
        page.get_by_label("Another lesson should come").first.fill("heap")
        page.locator("#lessons-found option[value='devops/heap']").wait_for(state="attached")


def test_what_missed_its_deadline_is_among_them(make_vault: MakeVault, own_world: Path) -> None:
    vault = make_vault({"heap.md": lesson_text("Heap", "Raise the heap.")})
    event: dict[str, object] = {"hook_event_name": "SessionStart", "vault": str(vault.root)}
    log.log(event, "no answer in 2000 ms", time.monotonic() - 2, missed=True)
    with answering(vault.root, own_world, LESSONS_EMBEDDER="none") as served:
        shown = served.ask("GET", LIST).text
        assert "missed: no answer in 2000 ms" in shown
        assert 'class="row wrong"' in shown
        assert "1 answer was missed" in served.ask("GET", "/page/private/vault/state").text


def test_a_rule_that_no_search_found_has_no_score(make_vault: MakeVault, own_world: Path) -> None:
    vault = make_vault({"heap.md": lesson_text("Heap", "Raise the heap.")})
    run("lessons", "index", cwd=vault.root, env={"LESSONS_EMBEDDER": "none"})
    for event in (hook_event.PROMPT, "SessionStart"):
        note(own_world, vault.root, event=event, session="s", given=(Given("heap", 0.0),))
    assert "Heap (without a search) heap" in run("lessons", "last", cwd=vault.root).out
    with answering(vault.root, own_world, LESSONS_EMBEDDER="none") as served:
        shown = served.ask("GET", LIST).text
        assert shown.count("without a search") == 2
        assert " 0%" not in shown


# the text of a row, the list that it is written into, and what is said
TAUGHT = {
    "a prompt that got it": (FALSE, "silent_on", "stays out from now on"),
    "a silent prompt": (QUIET, "fires_on", "comes from now on"),
    "a failure that got it": (ENDED, "silent_on_error", "stays out from now on"),
    "a silent failure": (LOST, "fires_on_error", "comes from now on"),
}


@pytest.mark.parametrize("row", TAUGHT)
def test_one_click_writes_it_another_takes_it_out(team: Answering, row: str) -> None:
    text, kind, says = TAUGHT[row]
    path = "devops/limits.md" if kind.startswith("fires") else "devops/heap.md"
    file = team.root / "lessons" / path
    before = file.read_bytes()
    form = next(
        each
        for each in re.findall(r"(?s)<form.*?</form>", rows(team)[text])
        if f'value="{kind}"' in each and f'value="{path.removesuffix(".md")}"' in each
    )
    body = dict(re.findall(r'name="(\w+)" value="([^"]*)"', form))
    answer = team.ask("POST", "/page/private/activity/teach", json=body).text
    assert says in answer
    (lesson,) = parse_file(file.read_bytes(), path)
    assert text in getattr(lesson, kind)
    assert "taught: should" in rows(team)[text]
    undo = {**body, "undo": True}
    assert "taken back" in team.ask("POST", "/page/private/activity/teach", json=undo).text
    assert file.read_bytes() == before


@pytest.mark.browser
def test_keys_alone_call_a_lesson_useful_and_teach(
    browser: Browser, team: Answering, tmp_path_factory: pytest.TempPathFactory
) -> None:
    file = team.root / "lessons/devops/limits.md"
    before = file.read_bytes()
    home = team.root.parent / "home"
    with (
        serving(team.root, home, LESSONS_EMBEDDER="none") as served,
        visiting(browser, served) as v,
    ):
        page = v.go("/activity")
        page.get_by_role("button", name=QUIET).focus()
        page.keyboard.press("o")
        page.locator(".row:focus-within").get_by_text("Another lesson").wait_for()
        page.keyboard.press("y")
        page.get_by_text("comes from now on").wait_for()
        assert file.read_bytes() != before
        page.keyboard.press("Enter")  # the focus is on Undo
        page.get_by_text("taken back").wait_for()
        assert file.read_bytes() == before
        page.get_by_role("button", name=ENDED).focus()
        page.keyboard.press("u")
        page.get_by_text("noted: yes").wait_for()


def test_from_a_day_to_a_session_to_what_the_agent_got(team: Answering) -> None:
    day = team.ask("GET", f"{JOURNAL}/day").text
    assert "Yesterday" in day or "Today" in day
    before = re.findall(r"/activity/sessions(\?day=[\d-]+)", day)[0]
    shown = words(team.ask("GET", f"{JOURNAL}/day{before}").text)
    assert "How many times should the uploader retry?" in shown
    assert "team@main, 2 prompts" in shown
    assert "store/upload.py" in shown
    (id,) = re.findall(r'sessions\?session=([^"]+)">our frontend', day)
    text = team.ask("GET", f"{JOURNAL}/session?id={id}").text
    assert "npm run build" in text
    assert "exit" in text or "failed" in text
    assert str(team.root) not in text
    assert text.index(HEAP) < text.index("The build passes with a heap of 4 GB.")
    assert f'href="/activity?session={id}"' in text


def test_a_search_of_sessions_leads_to_the_session(team: Answering) -> None:
    found = team.ask("GET", f"{JOURNAL}/search?query=heap+of+photos").text
    assert FALSE[:60] in words(found).partition("prompt,")[0]
    assert "#" in re.findall(r'href="(/activity/sessions\?session=[^"]+)"', found)[0]
    assert HOSTILE not in found
    assert "build.sh" in team.ask("GET", f"{JOURNAL}/search?file=build.sh").text


def test_without_a_journal_one_line_says_what_to_do(
    team: Answering, make_vault: MakeVault, own_world: Path, text_only: None
) -> None:
    with answering(make_vault().root, own_world, LESSONS_EMBEDDER="none") as without:
        assert "The journal is off" in without.ask("GET", f"{JOURNAL}/day").text
        assert "No agent has asked this vault yet" in without.ask("GET", LIST).text
