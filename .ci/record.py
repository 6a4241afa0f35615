"""Make the README's pictures from this repository's lessons: a prompt with its lesson, and the page.

    pip install -e '.[docs,test]' && python .ci/record.py docs/pictures

The lesson and its receipt are what the hook prints, and the page is looked at in Chromium. The
agent's answer is an example.
"""

from __future__ import annotations

import io
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

REPO = Path(__file__).parents[1]
PROMPT = "our build dies with heap out of memory"
QUESTION, FOUND = "V8 reached its heap limit", "Node runs out of memory"
ANSWER = """\
That is V8's own limit, not the runner's memory. I raise it for the build step only,
so laptops keep their default:

  .github/workflows/build.yml
  [red]-     - run: npm run build[/]
  [green]+     - run: npm run build[/]
  [green]+       env: {NODE_OPTIONS: --max-old-space-size=4096}[/]"""
COLUMNS, WIDE = 90, {"width": 1280, "height": 620}
PORT, PATIENCE_MS = 7739, 60_000
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "chrome")


def lessons(folder: Path, *words: str, stdin: str = "") -> str:
    """Run a command of this package in a folder, and return what it prints."""
    program = Path(sys.executable).with_name(words[0])
    return subprocess.run(
        [program, *words[1:]], cwd=folder, input=stdin, text=True, check=True, capture_output=True
    ).stdout


def draw_prompt(folder: Path) -> str:
    """Return the picture of a prompt, the receipt that the hook prints for it, and an answer."""
    from rich.console import Console

    event = {"hook_event_name": "UserPromptSubmit", "prompt": PROMPT, "cwd": str(folder)}
    answer = json.loads(lessons(folder, "lessons-hook", stdin=json.dumps(event)))
    assert "NODE_OPTIONS" in answer["hookSpecificOutput"]["additionalContext"]
    console = Console(record=True, width=COLUMNS, file=io.StringIO(), force_terminal=True)
    console.print(f"[bold]> {PROMPT}[/]\n\n  [cyan]{answer['systemMessage']}[/]\n")
    console.print(f"● {ANSWER}".replace("\n", "\n  "), highlight=False)
    svg = console.export_svg(title="a coding agent with lessons", unique_id="agent")
    svg = re.sub(r' clip-path="url\(#agent-line-\d+\)"', "", svg)  # it cuts off underscores
    return re.sub(r"(?s)@font-face {.*?}", "", svg)  # it loads nothing from another host


def photograph_lessons(folder: Path, pictures: Path) -> None:
    """Write the page that searches lessons, light and dark."""
    from playwright.sync_api import Error, sync_playwright

    program = Path(sys.executable).with_name("lessons")
    server = subprocess.Popen([program, "serve", "--port", str(PORT)], cwd=folder)
    try:
        with sync_playwright() as playwright:
            named = os.environ.get("CHROMIUM") or next(filter(None, map(shutil.which, BROWSERS)))
            browser = playwright.chromium.launch(executable_path=named, args=["--no-sandbox"])
            for scheme in ("light", "dark"):
                page = browser.new_page(viewport=WIDE, color_scheme=scheme)
                page.set_default_timeout(PATIENCE_MS)
                for _ in range(PATIENCE_MS // 500):
                    try:
                        page.goto(f"http://127.0.0.1:{PORT}/")
                        break
                    except Error:  # not listening yet
                        page.wait_for_timeout(500)
                page.get_by_role("link", name=re.compile("^(Lessons|Search)$")).first.click()
                page.locator("#q").fill(QUESTION)
                page.get_by_text(FOUND).first.wait_for()
                page.wait_for_load_state("networkidle")
                page.screenshot(path=pictures / f"lessons-{scheme}.png")
            browser.close()
    finally:
        server.terminate()
        server.wait()


def main(pictures: Path) -> None:
    """Write the three pictures into a folder."""
    pictures.mkdir(parents=True, exist_ok=True)
    home = Path(os.environ.get("LESSONS_HOME", Path.home() / ".lessons"))
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch, "team")
        subprocess.run(["git", "clone", "--quiet", REPO, folder], check=True)
        place = Path(scratch, ".lessons")
        os.environ.update(LESSONS_HOME=str(place), LESSONS_DEADLINE_MS="30000")
        os.environ["LESSONS_WATCH_AUTOSTART"] = "false"
        place.mkdir()
        if (home / "models").is_dir():
            (place / "models").symlink_to(home / "models")
        lessons(folder, "lessons", "index")
        (pictures / "agent.svg").write_text(draw_prompt(folder), "utf-8")
        photograph_lessons(folder, pictures)


if __name__ == "__main__":
    main(Path(sys.argv[1]).absolute())
