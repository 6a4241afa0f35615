"""A team whose agents asked: a served vault, a journal of two days, and injections by the real hook."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from tests.support.commands import run
from tests.support.conversations import Conversation, about_retries
from tests.support.files import commit, lesson_text, write
from tests.support.homes import make_home
from tests.support.serving import Serving, serving

HOSTILE = "<img src=x onerror=alert(1)>"
HEAP = "our frontend build dies with heap out of memory in the pipeline"
FALSE = "the build of the phone app dies out of memory and battery as its heap of photos grows"
SILENT = "please draw a cartoon giraffe on roller skates" + " that is very long" * 30
ZEBRAS = f"zebras that eat grass by the river {HOSTILE}"
UNKNOWN = "0a0a0a0a-of-no-journal"
FILES = {
    "devops/heap.md": "---\r\n# why: the pipeline\r\ntitle: Raise the heap of the build\r\n"
    f'fires_on: ["{HEAP}"]  # must find it\r\n---\r\n'
    "When the frontend build dies with heap out of memory, raise the heap.\r\n",
    "devops/limits.md": lesson_text("Container limits", "Set a memory limit of 2 GB in compose."),
    "hostile.md": lesson_text(HOSTILE, f"Zebras {HOSTILE} eat grass by the river at dusk."),
}


@contextmanager
def a_team(folder: Path) -> Iterator[Serving]:
    """Serve `a_vault` in a new folder."""
    root, home = a_vault(folder)
    with serving(root, home, LESSONS_EMBEDDER="none") as served:
        yield served


def a_vault(folder: Path) -> tuple[Path, Path]:
    """Make a vault of three lessons with a home: two of three sessions are in the journal."""
    home, root = make_home(folder / "home"), folder / "team"
    with pytest.MonkeyPatch.context() as patch:
        for name, value in (("HOME", home), ("LESSONS_HOME", home), ("LESSONS_EMBEDDER", "none")):
            patch.setenv(name, str(value))
        patch.setenv("LESSONS_WATCH_AUTOSTART", "false")
        patch.delenv("CLAUDE_CONFIG_DIR", raising=False)
        run("lessons", "init", root, cwd=folder)
        for path, text in FILES.items():
            write(root / "lessons" / path, text)
        commit(root, "What the heap taught us")
        run("lessons", "index", cwd=root)
        began = datetime.now(UTC).replace(hour=10) - timedelta(days=1)  # both on one day
        talk = about_heap(root, began)
        about_retries(root, began=began - timedelta(days=1))
        photos = about_photos(root, began)
        for prompt, session in (
            (HEAP, talk.id),
            (SILENT, talk.id),
            (FALSE, photos.id),
            (ZEBRAS, photos.id),
            (HEAP, UNKNOWN),
        ):
            asks(root, prompt, session)
        run("lessons", "journal", "import", "--since", "all", cwd=root)
    return root, home


def about_heap(root: Path, began: datetime) -> Conversation:
    """A session in which two prompts were typed."""
    talk = Conversation(root, "heap", began=began)
    talk.asks(HEAP).runs("npm run build", "FATAL ERROR: heap out of memory", failed=True)
    talk.edits("build.sh", "node build", "NODE_OPTIONS=--max-old-space-size=4096 node build")
    talk.runs("npm run build", "done").says("The build passes with a heap of 4 GB.")
    return talk.asks(SILENT).says("Here it is: " + "x" * 300)


def about_photos(root: Path, began: datetime) -> Conversation:
    """A session whose prompts and answers hold markup."""
    talk = Conversation(root, "photos", began=began + timedelta(minutes=30))
    talk.asks(FALSE).says("Photos are resized when they are read.")
    return talk.asks(ZEBRAS).says(f"They do, see {HOSTILE}.")


def asks(root: Path, prompt: str, session: str) -> str:
    """Have the real hook answer a prompt; return what it printed."""
    event = {"hook_event_name": "UserPromptSubmit", "prompt": prompt, "session_id": session}
    done = run(
        "lessons-hook",
        cwd=root,
        stdin=json.dumps({**event, "cwd": str(root)}),
    )
    return done.out
