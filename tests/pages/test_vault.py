"""The page of the vault in numbers: counts, use, health; what is slow comes on demand."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pytest

from tests.support.browser import LOOKS, nothing_is_in_the_way, visiting
from tests.support.commands import run
from tests.support.files import commit, lesson_text
from tests.support.given import note
from tests.support.serving import Serving, serving
from tests.support.shown_vaults import HOSTILE, TEXT_ONLY, ShownVault, shown_vault

if TYPE_CHECKING:
    from playwright.sync_api import Browser

pytestmark = [pytest.mark.browser, pytest.mark.slow]
SECTIONS = "## Lesson: Start\n\nHow to begin.\n\n## Lesson: End\n\nHow to end.\n"


def lesson(title: str, days_ago: int, type: str = "") -> str:
    """Return a lesson that was written so many days ago."""
    created = (datetime.now(UTC) - timedelta(days=days_ago)).strftime("%Y-%m-%d")
    text = f"A text of its own about {title.lower()}, for whoever wonders."
    return f"---\ntitle: '{title}'\ncreated: {created}\ntype: {type}\n---\n{text}\n"


@pytest.fixture(scope="module")
def shown(tmp_path_factory: pytest.TempPathFactory) -> ShownVault:
    files = {
        f"devops/{'docker' if number % 3 else 'ci-cd'}/note-{number}.md": lesson(
            f"Note {number}", 30 * number % 700, "bug_fix" if number % 2 else ""
        )
        for number in range(24)
    }
    files["devops/handbook.md"] = f"---\ntitle: Handbook\n---\n{SECTIONS}"
    files["ops/hostile.md"] = lesson(HOSTILE, 3)
    files["ops/secret.md"] = lesson_text("Log in", "The password for staging is Tr0ub4dor&3x")
    shown = shown_vault(tmp_path_factory.mktemp("vault"), files)
    run("git", "config", "user.name", HOSTILE, cwd=shown.root)
    run("git", "config", "user.email", "ada@example.org", cwd=shown.root)
    commit(shown.root)
    shown.run("index")
    for _ in range(3):
        note(shown.home, shown.root, "devops/ci-cd/note-0", ms=12.0)
    return shown


def test_lessons_are_counted_for_anybody_and_the_rest_needs_the_key(
    browser: Browser, served: Serving
) -> None:
    with visiting(browser, served, key=False) as visit:
        page = visit.go("/vault")
        assert page.locator(".sums").inner_text().split()[:4] == ["28", "lessons", "1", "document"]
        rows = page.locator("section[aria-labelledby=categories-title] tbody tr").all_inner_texts()
        assert [row.split()[:2] for row in rows] == [
            ["devops", "26"],
            ["ci-cd", "8"],
            ["docker", "16"],
            ["ops", "2"],
        ]
        assert "6 new in the last 30 days" in page.locator(".sums").inner_text()
        assert page.locator("#state").inner_text().startswith("this needs the page's key")
        visit.errors.clear()  # the console names the refused request
    for part in ("state", "stale", "check"):
        assert served.ask("GET", f"/page/private/vault/{part}", token=False).status_code == 401


def test_use_and_health_name_what_to_do_and_no_folder_of_the_machine(
    browser: Browser, served: Serving, shown: ShownVault
) -> None:
    with visiting(browser, served) as visit:
        page = visit.go("/vault")
        state = page.locator("#state")
        assert "3 prompts were searched for" in state.inner_text()
        assert state.get_by_role("link", name="devops/ci-cd/note-0").first.is_visible()
        text = state.inner_text()
        assert "not installed: run lessons install claude" in text
        assert "lessons/ops/secret.md:" in text
        assert "empty: see lessons journal --help" in text
        state.get_by_text("Settings in force").click()
        assert "all: lessons config" in state.inner_text()
        assert str(shown.home.parent) not in page.content()


def test_checking_and_looking_for_stale_lessons_come_on_demand(
    browser: Browser, served: Serving
) -> None:
    with visiting(browser, served) as visit:
        page = visit.go("/vault")
        page.get_by_role("button", name="Check the vault").click()
        page.locator("#check").get_by_text("files checked: 1 error").wait_for()
        assert "lessons/ops/secret.md" in page.locator("#check").inner_text()
        page.get_by_role("button", name="Look for stale lessons").press("Enter")
        page.locator("#stale").get_by_text("No lesson needs another look.").wait_for()


@pytest.mark.parametrize("look", LOOKS)
def test_nothing_keeps_people_from_using_it_and_lessons_say_only_text(
    browser: Browser, served: Serving, axe: str, look: str
) -> None:
    with visiting(browser, served, **LOOKS[look]) as visit:
        page = visit.go("/vault")
        page.get_by_role("button", name="Check the vault").click()
        page.locator("#check li").first.wait_for()
        assert page.title() == "Vault · team"
        assert page.locator("main img, main script").count() == 0
        nothing_is_in_the_way(page, axe, f"vault-{look}")


def test_an_empty_vault_says_how_to_begin(
    browser: Browser, tmp_path_factory: pytest.TempPathFactory
) -> None:
    shown = shown_vault(tmp_path_factory.mktemp("empty"), {})
    with (
        serving(shown.root, shown.home, **TEXT_ONLY) as server,
        visiting(browser, server) as visit,
    ):
        page = visit.go("/vault")
        assert "The vault has no lessons yet" in page.locator("#overview").inner_text()
        page = visit.go("/review")
        assert "Nothing waits for review" in page.locator("#list").inner_text()
