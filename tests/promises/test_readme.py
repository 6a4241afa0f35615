"""The README is short, and the story in `docs/learn.md` is what the commands print.

After a change of what they print, rewrite the story and read the diff:

    pytest tests/promises/test_readme.py --rewrite-transcripts
"""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from tests.support.commands import run, typed
from tests.support.conversations import about_retries
from tests.support.places import REPO

README, STORY = REPO / "README.md", REPO / "docs/learn.md"
COMMANDS = (
    ("lessons learn --session last", "lessons review", "lessons review accept {id} -c store"),
    ('lessons recall "how often should the uploader retry"',),
)
DIFFERS = re.compile(r"\b[0-9a-f]{8}\b|\b20\d\d-\d\d-\d\d\b|\(\d+%\)")
BLOCK = re.compile(r"(?ms)^```console\n(.*?)^```$")


def test_the_readme_is_short() -> None:
    assert README.read_text("utf-8").count("\n") <= 110


@pytest.mark.slow
def test_the_story_is_what_is_printed(
    with_model: Path, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    """A correction in a session is proposed, reviewed, and there at the next prompt."""
    shop = tmp_path / "shop"
    shop.mkdir()
    run("git", "init", "-q", cwd=shop)
    run("lessons", "init", cwd=shop)
    about_retries(shop)
    run("lessons", "journal", "import", cwd=shop)
    blocks, proposal = [], ""
    for commands in COMMANDS:
        block = ""
        for command in commands:
            line = command.format(id=proposal)
            out = typed(line, cwd=shop).out.rstrip()
            proposal = proposal or out[:8]
            block += f"$ {line}\n{out}\n"
        blocks.append(block)
    text = STORY.read_text("utf-8")
    head, story, tail = re.split(r"(?s)(<!-- story.*<!-- end of story -->)", text)
    if request.config.getoption("--rewrite-transcripts"):
        new = iter(blocks)
        STORY.write_text(
            head + BLOCK.sub(lambda _: f"```console\n{next(new)}```", story) + tail, "utf-8"
        )
        return
    shown = BLOCK.findall(story)
    assert [DIFFERS.sub("", block) for block in shown] == [DIFFERS.sub("", b) for b in blocks]


def test_the_tests_start_as_many_processes_as_there_are_processors(
    pytestconfig: pytest.Config,
) -> None:
    """The second command of the README names no number."""
    asked = pytestconfig.hook.pytest_xdist_auto_num_workers(config=pytestconfig)
    ours = (
        os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else range(os.cpu_count() or 1)
    )
    assert asked == len(ours)
