"""What people type into an address, or a program sends, is refused in one line, or shows nothing."""

from __future__ import annotations

import pytest

from tests.support.files import lesson_text
from tests.support.serving import Answering

FILES = {"devops/heap.md": lesson_text("Heap", "Raise the heap when the build runs out of memory.")}
AT = "/api/journal/timeline?anchor="


@pytest.mark.parametrize(
    ("address", "status"),
    [
        *(("/nothing-here", 404), ("/new?id=%00", 422), ("/activity?only=some", 422)),
        ("/activity/sessions?day=tomorrow", 422),
        ("/activity/sessions?query=" + "x" * 1001, 413),
    ],
)
def test_in_a_browser_a_refusal_is_a_page_and_for_a_program_json(
    answers: Answering, address: str, status: int
) -> None:
    seen = answers.ask("GET", address, headers={"accept": "text/html,*/*;q=0.8"}, token=False)
    assert (seen.status_code, seen.headers["content-type"]) == (status, "text/html; charset=utf-8")
    assert "This page cannot be shown" in seen.text
    assert "default-src 'none'" in seen.headers["content-security-policy"]
    asked = answers.ask("GET", address, token=False)
    assert (asked.status_code, set(asked.json()) - {"detail"}) == (status, {"error", "hint"})


@pytest.mark.parametrize("anchor", ["0001-01-01", "9999-12-31", "99999999999 weeks ago"])
def test_a_moment_that_no_calendar_has_is_no_bug(answers: Answering, anchor: str) -> None:
    assert answers.ask("GET", f"{AT}{anchor}").status_code in (200, 404)
    assert answers.notes == []
