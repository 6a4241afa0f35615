"""The search page over 10,000 lessons in a real browser: first paint, hits after a key, weight.

    python -m benchmarks.pages [--rounds 15] [--vault FOLDER]

A vault that is named is served as it is; without one, 10,000 lessons are made as `benchmarks.web` does,
which takes minutes. The first paint is also shown as a ratio to that of a bare page, and hits after a key
as a ratio to a request for a static file: of the same server, in the same rounds, so that a busy machine
slows both.
"""

from __future__ import annotations

import argparse
import os
import statistics
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.instruments import Row, shown
from benchmarks.web import many_lessons, served
from tests.support.browser import browsing
from vault_index.entrypoints.web.render import NAVIGATION, address_of
from vault_index.vault import Vault, open_vault

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

PROMPT = "our build dies with heap out of memory"
WARM_UP = 3  # rounds
MAX_PAINT_MS, MAX_KEY_MS, MAX_WEIGHT_KB = 300, 100, 150

# From a key to hits that are laid out, in the page: the script of the page hears of the key as ever.
TYPE = """async (text) => {
  const box = document.getElementById("q");
  const results = document.getElementById("results");
  const put = new Promise((done) => {
    const watching = new MutationObserver(() => { watching.disconnect(); done(); });
    watching.observe(results, { childList: true });
  });
  const began = performance.now();
  box.value = text;
  box.dispatchEvent(new Event("input", { bubbles: true }));
  await put;
  results.getBoundingClientRect();
  return performance.now() - began;
}"""
FETCH = """async (address) => {
  const began = performance.now();
  await (await fetch(address, { cache: "no-store" })).text();
  return performance.now() - began;
}"""
PAINT = "performance.getEntriesByName('first-contentful-paint')[0]?.startTime ?? null"
BARE = "performance.getEntriesByName('first-paint')[0]?.startTime ?? null"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--vault", type=Path, help="one with an index; default: a new one")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        vault = open_vault(asked.vault) if asked.vault else many_lessons(Path(scratch) / "vault")
        list(shown(measure(vault, asked.rounds)))


def measure(vault: Vault, rounds: int) -> Iterator[Row]:
    """Return the rows of the table."""
    from playwright.sync_api import sync_playwright

    yield "load of the machine before", os.getloadavg()[0], ""
    with served(vault) as port, sync_playwright() as playwright, browsing(playwright) as browser:
        url = f"http://127.0.0.1:{port}"
        yield from _paints(browser, url, rounds)
        yield from _keys(browser, url, rounds)
        for address, name in NAVIGATION:
            weight = _weight(browser, url + address)
            if weight:
                yield f"weight of {name}, first visit (at most {MAX_WEIGHT_KB})", weight, "KB"
    yield "load of the machine after", os.getloadavg()[0], ""


def _paints(browser: Browser, url: str, rounds: int) -> Iterator[Row]:
    """Measure visits with nothing in the browser's cache."""
    times: dict[str, list[float]] = {"bare": [], "home": [], "lessons": [], "hits": []}
    hits = f"/lessons?q={PROMPT.replace(' ', '+')}"
    addresses = {"bare": "/openapi.json", "home": "/", "lessons": "/lessons", "hits": hits}
    for number in range(WARM_UP + rounds):
        for name, address in addresses.items():
            context = browser.new_context()
            page = context.new_page()
            page.goto(url + address, wait_until="load")
            time = _painted(page, BARE if name == "bare" else PAINT)
            context.close()
            if number >= WARM_UP:
                times[name].append(time)
    bare = statistics.median(times["bare"])
    yield "first paint of a bare page (/openapi.json), p50", bare, "ms"
    named = {"home": "Home", "lessons": "Lessons", "hits": "Lessons with hits"}
    for name, text in named.items():
        paint = statistics.median(times[name])
        yield f"first paint of {text}, p50 (at most {MAX_PAINT_MS})", paint, "ms"
        yield "  as a multiple of the bare page", paint / bare, "x"


def _painted(page: Page, entry: str) -> float:
    """Return the milliseconds from the request to the first paint, which may come after loading."""
    for _ in range(100):
        time = page.evaluate(entry)
        if time is not None:
            return float(time)
        page.wait_for_timeout(20)
    raise AssertionError("nothing was painted")


def _keys(browser: Browser, url: str, rounds: int) -> Iterator[Row]:
    """Measure the hits of a prompt as it is typed, a letter at a time."""
    page = browser.new_page()
    page.goto(f"{url}/lessons", wait_until="load")
    page.locator("html[data-ready]").wait_for(state="attached")
    icon, keys = [], []
    for number in range(WARM_UP + rounds):
        text = PROMPT[: 12 + number % (len(PROMPT) - 12)]
        times = (
            page.evaluate(FETCH, address_of("icon.svg")),
            page.evaluate(TYPE, f"{text} {number}"),
        )
        if number >= WARM_UP:
            icon.append(times[0])
            keys.append(times[1])
    page.close()
    static, typed = statistics.median(icon), statistics.median(keys)
    yield "a static file, p50", static, "ms"
    yield f"hits after a key, p50 (at most {MAX_KEY_MS})", typed, "ms"
    yield "  as a multiple of the static file", typed / static, "x"


def _weight(browser: Browser, address: str) -> float:
    """Return the kilobytes of a first visit, headers and all; 0 where there is no such page."""
    context = browser.new_context()
    page = context.new_page()
    sizes: list[int] = []

    def finished(event: dict[str, Any]) -> None:
        sizes.append(int(event["encodedDataLength"]))

    line = context.new_cdp_session(page)
    line.send("Network.enable")
    line.on("Network.loadingFinished", finished)
    answer = page.goto(address, wait_until="networkidle")
    context.close()
    return sum(sizes) / 1000 if answer is not None and answer.ok else 0.0


if __name__ == "__main__":
    main()
