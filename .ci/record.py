"""Record the README's picture: its quick start, typed for real at a terminal, in an empty home.

    pip install -e '.[docs]' && python .ci/record.py docs/pictures/quick-start.svg

The picture shows one line after the other and then stays.
"""

from __future__ import annotations

import io
import os
import pty
import re
import select
import subprocess
import sys
import tempfile
from pathlib import Path

REPO = Path(__file__).parents[1]
COLUMNS, LINE_SECONDS, TYPED_SECONDS = 100, 0.12, 1.2
WHOLE = 22  # lines of output that a picture shows of one command


def quick_start() -> list[str]:
    """Return the commands of the README's quick start."""
    text = (REPO / "README.md").read_text("utf-8").partition("## Quick start")[2]
    return re.findall(r"(?m)^\$ (.+)$", text)


def seen(command: str, folder: Path) -> str:
    """Return what a command shows at a terminal, with its colours."""
    ours, theirs = pty.openpty()
    env = {**os.environ, "COLUMNS": str(COLUMNS), "TERM": "xterm-256color", "PAGER": "cat"}
    process = subprocess.Popen(
        command, shell=True, cwd=folder, env=env, stdin=theirs, stdout=theirs, stderr=theirs
    )
    os.close(theirs)
    parts = []
    while process.poll() is None or select.select([ours], [], [], 0)[0]:
        if select.select([ours], [], [], 0.1)[0]:
            try:
                parts.append(os.read(ours, 65536))
            except OSError:  # the other end is closed
                break
            if parts[-1].endswith(b"[Y/n]: "):
                os.write(ours, b"y\n")
    process.wait()
    os.close(ours)
    text = b"".join(parts).decode("utf-8", "replace").replace("\r\n", "\n").rstrip()
    text = re.sub(r"\x1b\[(?:\?25[lh]|K)", "", text)
    lines = (line.rpartition("\r")[2] for line in text.split("\n"))  # progress, as it ended
    return "\n".join(lines).replace(str(Path.home()), "~")


def draw(typed: list[tuple[str, str]]) -> str:
    """Return the picture: lines that appear one after the other, commands after a pause."""
    from rich.console import Console
    from rich.text import Text

    console = Console(record=True, width=COLUMNS, file=io.StringIO(), force_terminal=True)
    delays, now = [], 0.0
    for command, output in typed:
        lines = output.splitlines()
        lines = [*lines[:WHOLE], "..."] if len(lines) > WHOLE else lines
        for number, line in enumerate([f"\x1b[1;32m$\x1b[0m {command}", *lines, ""]):
            now += LINE_SECONDS if number else TYPED_SECONDS
            rows = Text.from_ansi(line).wrap(console, COLUMNS)
            delays += [now] * max(1, len(rows))
            console.print(Text.from_ansi(line))
    svg = console.export_svg(title="lessons", unique_id="quick-start")
    svg = re.sub(r"(?s)@font-face {.*?}", "", svg)  # loads nothing from elsewhere
    rules = "".join(
        f'[clip-path="url(#quick-start-line-{number})"]{{animation:show 0s {delay:.2f}s both}}'
        for number, delay in enumerate(delays)
    )
    return svg.replace("</style>", f"@keyframes show{{from{{opacity:0}}}}{rules}</style>", 1)


def main(place: Path) -> None:
    """Write the picture."""
    with tempfile.TemporaryDirectory() as scratch:
        home = Path(os.environ.get("LESSONS_HOME", Path.home() / ".lessons"))
        folder = Path(scratch, "team")
        folder.mkdir()
        os.environ.update(HOME=scratch, LESSONS_HOME=str(Path(scratch, ".lessons")))
        Path(scratch, ".lessons").mkdir()
        if (home / "models").is_dir():
            Path(scratch, ".lessons", "models").symlink_to(home / "models")
        for words in ("init -q", "config user.name Ada", "config user.email ada@example.org"):
            subprocess.run(["git", *words.split()], cwd=folder, check=True)
        typed = []
        for command in quick_start():
            typed.append((command, seen(command, folder)))
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(draw(typed), "utf-8")
        subprocess.run(["lessons", "watch", "--stop"], cwd=folder, check=False)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
