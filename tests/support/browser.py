"""A real browser that looks at our pages: no other host is asked, and its console stays empty."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.support.serving import Serving

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page, Playwright, Route

PROGRAMS = ("chromium", "chromium-browser", "google-chrome", "chrome")
WIDE, NARROW = (1280, 900), (360, 740)  # of a laptop, and of a telephone
PICTURES = os.environ.get("LESSONS_SCREENSHOTS")  # read now: tests have none of our settings
PATIENCE_MS = 60_000  # of a busy machine, for each thing that is waited for


def program() -> str:
    """Return the browser of this machine; without one the test is skipped, in CI it fails."""
    named = os.environ.get("CHROMIUM") or next(filter(None, map(shutil.which, PROGRAMS)), None)
    if named is None:
        assert not os.environ.get("CI"), "CI must have a browser: apt-get install chromium"
        pytest.skip("no browser: apt-get install chromium, or name one by CHROMIUM=PATH")
    return named


@contextmanager
def browsing(playwright: Playwright) -> Iterator[Browser]:
    """Start the browser without a window."""
    # its socket is in TMPDIR, and it ends where that path is longer than a socket's may be
    env: dict[str, str | float | bool] = {**os.environ, "TMPDIR": "/tmp"}
    browser = playwright.chromium.launch(
        executable_path=program(),
        args=["--no-sandbox", "--disable-gpu", "--disable-software-rasterizer"],
        env=env,
        timeout=PATIENCE_MS,
    )
    try:
        yield browser
    finally:
        browser.close()


@dataclass
class Visit:
    """A visitor of a server: a page of the browser, and all that went wrong while it was open."""

    page: Page
    served: Serving
    errors: list[str] = field(default_factory=list)  # of the console, and uncaught ones
    elsewhere: list[str] = field(default_factory=list)  # addresses of other hosts that were asked

    def go(self, path: str) -> Page:
        """Open a page of the server and wait until its script has run."""
        self.page.goto(self.served.url + path, wait_until="networkidle")
        self.page.locator("html[data-ready]").wait_for(state="attached")
        return self.page

    @contextmanager
    def early(self, path: str, script: str) -> Iterator[Page]:
        """Open a page of the server, and keep one of its scripts back until the block ends."""
        held: list[Route] = []
        self.page.route(f"**/{script}*", lambda script: held.append(script))
        with self.page.expect_request(f"**/{script}*"):
            self.page.goto(self.served.url + path, wait_until="commit")
        yield self.page
        held[0].continue_()
        self.page.unroute(f"**/{script}*")

    def watch(self) -> None:
        """Note errors and requests from now on."""
        url = self.served.url
        self.page.on("pageerror", lambda error: self.errors.append(str(error)))
        self.page.on("console", self._heard)
        self.page.on(
            "request",
            lambda asked: (
                None
                if asked.url.startswith((url, "data:", "blob:"))
                else self.elsewhere.append(asked.url)
            ),
        )

    def explain(self, error: BaseException) -> None:
        """Add to an error of a test the page's own words, its focus and all that went wrong in it."""
        shown = self.page.locator("body").inner_text(timeout=5000)
        focus = self.page.evaluate("document.activeElement?.outerHTML.slice(0, 300)")
        error.add_note(f"The page {self.page.url} shows:\n{shown}\nFocus: {focus}\n{self.errors}")

    def _heard(self, message: Any) -> None:
        if message.type in ("error", "warning"):
            self.errors.append(f"{message.text} ({message.location.get('url', '')})")


@contextmanager
def visiting(
    browser: Browser,
    served: Serving,
    *,
    key: bool = True,
    size: tuple[int, int] = WIDE,
    scheme: str = "light",
) -> Iterator[Visit]:
    """Visit a server, with the key unless it is left out; at the end nothing may have gone wrong."""
    options: dict[str, Any] = {"color_scheme": scheme, "reduced_motion": "reduce"}
    context = browser.new_context(viewport={"width": size[0], "height": size[1]}, **options)
    context.set_default_timeout(PATIENCE_MS)
    if key:
        context.add_init_script(f"localStorage.setItem('lessons.key', '{served.token}')")
    try:
        visit = Visit(context.new_page(), served)
        visit.watch()
        try:
            yield visit
        except Exception as error:
            with suppress(Exception):  # of a page or a browser that is gone
                visit.explain(error)
            raise
        assert not visit.errors, visit.errors
        assert not visit.elsewhere
    finally:
        context.close()


LOOKS: dict[str, dict[str, Any]] = {
    "light": {"scheme": "light"},
    "dark": {"scheme": "dark"},
    "narrow": {"size": NARROW},
}


def nothing_is_in_the_way(page: Page, axe: str, name: str) -> None:
    """Check that anybody can use a page, and that it fits its window; keep a picture of it."""
    assert barriers(page, axe) == []
    assert page.evaluate("document.documentElement.scrollWidth") <= page.evaluate("innerWidth")
    keep(page, name)


def keep(page: Page, name: str) -> None:
    """Keep a picture of a page, where LESSONS_SCREENSHOTS names a folder for them."""
    if PICTURES:
        Path(PICTURES).mkdir(parents=True, exist_ok=True)
        page.screenshot(path=Path(PICTURES) / f"{name}.png", full_page=True)


def barriers(page: Page, axe: str) -> list[str]:
    """Return the serious findings of axe-core about a page, by WCAG A and AA, with where they are."""
    page.evaluate(axe)
    levels = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "best-practice"]
    found = page.evaluate("levels => axe.run(document, {runOnly: levels})", levels)
    return [
        f"{violation['id']}: {node['target']} {node['failureSummary']}"
        for violation in found["violations"]
        for node in violation["nodes"]
        if violation["impact"] in ("serious", "critical")
    ]
