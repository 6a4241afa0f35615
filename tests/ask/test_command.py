"""`lessons ask`, through the real command line and a real server that streams."""

from __future__ import annotations

import contextlib
import os
import pty
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.chat_server import ChatServer
from tests.support.commands import BIN, run
from tests.support.files import lesson_text
from vault_index.ask import sentences
from vault_index.vault import Vault

ROLLBACK = "Staging is a copy. Roll back a staging deploy with `make rollback`. It takes a minute."
FILES = {
    "devops/rollback.md": lesson_text("Staging rollbacks", ROLLBACK),
    "devops/heap.md": lesson_text("Heap", "Raise the heap when the build runs out of memory."),
}
ASKED = "how do we roll back a staging deploy?"


@pytest.fixture
def chat(own_world: Path) -> Iterator[ChatServer]:
    with ChatServer() as server:
        server.configure(own_world)
        yield server


def stopped_at(word: str, *words: str, cwd: Path) -> tuple[int, str]:
    """Run a command at a terminal and stop it as Ctrl-C does, once it shows a word."""
    ours, theirs = pty.openpty()
    before = signal.signal(signal.SIGINT, signal.SIG_DFL)  # tests in the background ignore it
    try:
        running = subprocess.Popen(
            [BIN / "lessons", *words], cwd=cwd, stdin=theirs, stdout=theirs, stderr=theirs
        )
    finally:
        signal.signal(signal.SIGINT, before)
    os.close(theirs)
    shown = ""
    with contextlib.suppress(OSError):  # the other end is closed
        while part := os.read(ours, 65536).decode("utf-8", "replace"):
            shown += part
            if word in shown:
                running.send_signal(signal.SIGINT)
                word = "nothing more"
    os.close(ours)
    return running.wait(60), shown


@pytest.mark.slow
def test_an_answer_comes_with_its_sources(team: Vault, chat: ChatServer) -> None:
    chat.words = lambda _: ["Run ", "`make rollback` [1]", ", says nobody [99]."]
    ran = run("lessons", "ask", ASKED, cwd=team.root)
    assert ran.out.startswith(
        "Run `make rollback` [1], says nobody.\n\n[1] Staging rollbacks\n"
        "    lessons/devops/rollback.md:4\n"
    )
    assert "99" not in ran.out
    assert "Heap" not in ran.out
    answer = run("lessons", "ask", ASKED, "--json", cwd=team.root).json
    assert [source["id"] for source in answer["sources"]] == ["devops/rollback"]


@pytest.mark.slow
def test_at_a_terminal_it_is_printed_as_it_is_written_until_ctrl_c(
    team: Vault, chat: ChatServer
) -> None:
    chat.release.clear()  # the last words never come
    chat.words = lambda _: ["Run \x1b[31m", "`make rollback` [1]. ", "Then ", "tell them."]
    code, shown = stopped_at("[1]", "ask", ASKED, cwd=team.root)
    assert "Run \\x1b[31m`make rollback` [1]" in shown
    assert "\x1b[31m" not in shown
    assert "tell them" not in shown
    assert shown.endswith("\r\nAborted!\r\n")
    assert code == 1
    assert "Traceback" not in shown


@pytest.mark.slow
def test_a_model_that_fails_ends_with_1_and_the_passages(team: Vault, chat: ChatServer) -> None:
    chat.status = 400
    ran = run("lessons", "ask", ASKED, cwd=team.root, check=False)
    assert ran.code == 1
    assert "[1] Staging rollbacks" in ran.out
    assert "make rollback" in ran.out
    assert ran.err.startswith("warning: openai:scripted")
    assert "\nTry: " in ran.err
    other = run("lessons", "ask", "--model", "nobody:x", ASKED, cwd=team.root, check=False)
    assert (other.code, "no language model 'nobody:x'" in other.err) == (1, True)


def test_sentences_are_set_off_wherever_their_lines_break() -> None:
    text = "One. Two\nthree. Four."
    runs = sentences.runs(text, ["Two three.", "One", ""])
    assert [run for run, is_best in runs if is_best] == ["One", "Two\nthree."]
    assert "".join(run for run, _ in runs) == text
    assert sentences.runs("", ["a"]) == []
