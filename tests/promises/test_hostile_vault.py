"""A vault comes from anyone. Whatever its files say, the tool runs no program of theirs, opens no
address, and reads nothing outside. Audit hooks inside the real processes say what was done."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.support.commands import BIN, run
from tests.support.files import commit, lesson_text, write

AUDIT = """\
import os, sys

def note(event, args):
    if event in ("subprocess.Popen", "os.posix_spawn"):
        words = [os.fsdecode(word) for word in args[1]]
        said = " ".join([os.fsdecode(args[0] or words[0]), *words[1:]])
    elif event == "socket.connect":
        said = repr(args[1])
    elif event == "open" and isinstance(args[0], (str, bytes)):
        said = os.fsdecode(args[0])
    elif event in ("os.system", "os.exec", "ctypes.dlopen.never"):
        said = repr(args)
    else:
        return
    line = (event + "\\t" + said.replace("\\n", " ") + "\\n").encode("utf-8", "replace")
    handle = os.open(os.environ["AUDIT_LOG"], os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.write(handle, line)
    os.close(handle)

busy = False

def hook(event, args):
    global busy
    if not busy:
        busy = True
        try:
            note(event, args)
        finally:
            busy = False

sys.addaudithook(hook)
"""
SETTINGS = """\
embedder = "ollama"
ollama_host = "http://203.0.113.7:11434"
vault = "/etc"
trust = "all"
home = "/tmp/elsewhere"
[keywords]
"$(touch {proof})" = "devops"
[hooks]
command = "touch {proof}"
"""


@pytest.fixture
def hostile(tmp_path: Path) -> Path:
    """A repository that somebody cloned, in which everything tries something."""
    proof, secret = tmp_path / "proof", write(tmp_path / "private" / "secret.md", "xyzzyprivate\n")
    root = tmp_path / "cloned"
    run("git", "init", "-q", root, cwd=tmp_path)
    write(root / "lessons/vault.toml", SETTINGS.replace("{proof}", str(proof)))
    lessons = {
        "tag.md": f"---\ntitle: !!python/object/apply:os.system ['touch {proof}']\n---\nHeap.\n",
        "shell.md": f"---\ntitle: $(touch {proof})\nsource: '`touch {proof}`'\n---\nHeap\n",
        "path.md": "---\nid: ../../../../etc/passwd\ncategories: [../../up, /etc]\n---\nHeap.\n",
        "link.md": "---\ntitle: A\nsource: file:///etc/passwd\n---\nHeap, see http://203.0.113.7/x\n",
        "--output=x.md": lesson_text("Option", "Heap."),
        "good.md": lesson_text("Heap", "Raise the heap when the build runs out of memory."),
    }
    for name, text in lessons.items():
        write(root / "lessons" / name, text)
    (root / "lessons/private.md").symlink_to(secret)
    (root / "lessons/folder").symlink_to(secret.parent)
    write(root / ".gitattributes", "*.md filter=evil diff=evil merge=evil\n")
    write(root / ".githooks/pre-commit", f"#!/bin/sh\ntouch {proof}\n").chmod(0o755)
    write(root / ".vault_index/current", "../../private\n")
    write(root / ".mailmap", "x\n")
    write(root / ".lfsconfig", "[lfs]\nurl = http://203.0.113.7/\n")
    commit(root)
    return root


@pytest.mark.slow
def test_nothing_that_a_vault_says_is_obeyed(hostile: Path, tmp_path: Path) -> None:
    site = write(tmp_path / "site" / "sitecustomize.py", AUDIT).parent
    log = tmp_path / "audit.log"
    env = {"PYTHONPATH": str(site), "AUDIT_LOG": str(log)}
    event = '{"hook_event_name": "UserPromptSubmit", "prompt": "the build runs out of heap memory"}'
    run("lessons", "init", cwd=hostile, env=env)
    for words in (
        ("lessons", "index"),
        ("lessons", "search", "heap"),
        ("lessons", "search", "--at", "HEAD", "heap"),
        ("lessons", "recall", "the build runs out of heap memory"),
        ("lessons", "list"),
        ("lessons", "show", "good"),
        ("lessons", "log", "good"),
        ("lessons", "status"),
        ("lessons", "check"),
        ("lessons-hook", "git"),
    ):
        run(*words, cwd=hostile, env=env, check=False)
    run("lessons-hook", cwd=hostile, stdin=event, env=env)
    done = [line.split("\t", 1) for line in log.read_text("utf-8").splitlines()]

    assert not (tmp_path / "proof").exists()
    starts = ("subprocess.Popen", "os.posix_spawn")
    programs = {said.split(" ")[0] for event, said in done if event in starts}
    ours = {"git", str(BIN / "python"), os.path.realpath(BIN / "python"), "uname"}
    assert {one for one in programs if one not in ours and Path(one).name[:6] != "python"} == set()
    addresses = [said for event, said in done if event == "socket.connect" and ".sock" not in said]
    assert addresses == []
    assert [said for event, said in done if event in ("os.system", "os.exec")] == []
    opened = {said for event, said in done if event == "open"}
    assert any(one.endswith("good.md") for one in opened)
    assert not [
        one for one in opened if "private/" in one or one.endswith(("private", "private.md"))
    ]
    assert "/etc/passwd" not in opened
    assert run("git", "config", "core.hooksPath", cwd=hostile, check=False).out == ""


def test_what_lies_outside_is_in_no_answer(hostile: Path) -> None:
    for words in (("search", "xyzzyprivate"), ("list",)):
        ran = run("lessons", *words, cwd=hostile, check=False)
        assert "xyzzyprivate" not in ran.out
        assert "folder/secret" not in ran.out
