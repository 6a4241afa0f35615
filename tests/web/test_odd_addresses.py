"""What people type into an address, or a program sends, is refused in one line, or shows nothing."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.injected import a_vault
from tests.support.serving import Answering, answering

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def team(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Answering]:
    root, home = a_vault(tmp_path_factory.mktemp("odd"))
    with answering(root, home, LESSONS_EMBEDDER="none") as served:
        yield served
        assert served.notes == []  # which would name a bug


@pytest.mark.parametrize("day", ["0001-01-01", "0001-03-25", "9999-12-31", "2026-02-30"])
def test_a_day_at_the_end_of_the_calendar(team: Answering, day: str) -> None:
    for part in ("days", "day"):
        answer = team.ask("GET", f"/page/private/journal/{part}?day={day}")
        assert answer.status_code == (422 if day == "2026-02-30" else 200), answer.text


@pytest.mark.parametrize("anchor", ["0001-01-01", "9999-12-31", "99999999999 weeks ago"])
def test_a_moment_that_no_calendar_has(team: Answering, anchor: str) -> None:
    for address in ("/api/journal/timeline", "/page/private/journal/around"):
        answer = team.ask("GET", address, params={"anchor": anchor})
        assert answer.status_code in (200, 404), answer.text


@pytest.mark.parametrize(
    ("address", "status"),
    [
        *(("/nothing-here", 404), ("/journal?day=tomorrow", 422), ("/agents?only=some", 422)),
        ("/new?id=%00", 422),
        ("/journal?query=" + "x" * 1001, 413),
    ],
)
def test_in_a_browser_a_refusal_is_a_page_and_for_a_program_json(
    team: Answering, address: str, status: int
) -> None:
    seen = team.ask("GET", address, headers={"accept": "text/html,*/*;q=0.8"}, token=False)
    assert (seen.status_code, seen.headers["content-type"]) == (status, "text/html; charset=utf-8")
    assert "This page cannot be shown" in seen.text
    assert "default-src 'none'" in seen.headers["content-security-policy"]
    asked = team.ask("GET", address, token=False)
    assert (asked.status_code, set(asked.json())) == (status, {"error", "hint"})
