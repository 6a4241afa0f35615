"""A browser for the tests of pages, one for the tests of this folder in a process."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from tests.support import npm
from tests.support.browser import browsing, program
from tests.support.homes import locked, shared_folder

if TYPE_CHECKING:
    from playwright.sync_api import Browser


@pytest.fixture(scope="package")  # while it is there, this process has an event loop that runs
def browser() -> Iterator[Browser]:
    program()
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright, browsing(playwright) as started:
        yield started


@pytest.fixture(scope="session")
def axe(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The script of axe-core, which finds what keeps people from using a page."""
    folder = shared_folder(tmp_path_factory) / "axe"
    folder.mkdir(exist_ok=True)
    with locked(folder):
        return npm.file("axe-core/axe.min.js", "axe-core@4", folder).read_text("utf-8")
