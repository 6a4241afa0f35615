"""Forty tricks of a clone, and of a copied checkout: the first prompts and the commands of a day.

Audit hooks inside the real processes, with those that they start, say what was opened for
writing, removed, renamed, started and connected to, and what of the user's own was read; pictures of
that, from before and after, show what LanceDB and git did, in which no audit hook looks.
"""

from __future__ import annotations

import itertools
import json
import os
import stat
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.promises import hostile
from tests.support.commands import run
from tests.support.files import write

AUDIT = '''\
import os, sys, _thread

here = _thread._local()
MINE = "/" + os.environ["AUDIT_PRIVATE"] + "/"
WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND

def places(path, follow):
    """Where a path leads; a relative one from every folder that is open, or else from here."""
    path = os.fsdecode(path)
    if os.path.isabs(path):
        folders = [""]
    else:
        folders = []
        for one in os.listdir("/proc/self/fd"):
            try:
                folder = os.readlink("/proc/self/fd/" + one)
            except OSError:
                continue
            if os.path.isdir(folder) and folder != "/":
                folders.append(folder)
    for folder in folders or [os.getcwd()]:
        whole = os.path.join(folder, path)
        if follow:
            yield os.path.realpath(whole)
        else:
            yield os.path.join(os.path.realpath(os.path.dirname(whole)), os.path.basename(whole))

def note(event, args):
    if event == "subprocess.Popen":
        return [os.fsdecode(args[0] or args[1][0])]
    if event == "os.posix_spawn":
        return [os.fsdecode(args[0])]
    if event in ("os.system", "os.exec", "os.startfile", "pty.spawn"):
        return [repr(args)]
    if event == "open":
        path, _, flags = args
        if not isinstance(path, (str, bytes)):
            return []
        found = places(path, not (flags or 0) & (os.O_NOFOLLOW | os.O_EXCL))
        return found if (flags or 0) & WRITES else [one for one in found if MINE in one + "/"]
    if event == "socket.connect":
        return [] if str(args[1]).endswith("watch.sock") else ["connects to " + repr(args[1])]
    if event in ("os.truncate", "os.chmod", "os.chown", "os.utime"):
        return places(args[0], True) if isinstance(args[0], (str, bytes)) else []
    if event in ("os.remove", "os.rmdir", "os.mkdir"):
        return places(args[0], False)
    if event in ("os.rename", "os.link"):
        return [*places(args[0], False), *places(args[1], False)]
    if event == "os.symlink":
        return places(args[1], False)
    return []

def hook(event, args):
    kind = event.split(".")[0]
    if kind not in ("open", "os", "pty", "socket", "subprocess") or getattr(here, "busy", 0):
        return
    here.busy = 1
    try:
        lines = [event + "\\t" + said.replace("\\n", " ") + "\\n" for said in note(event, args)]
        if lines:
            handle = os.open(os.environ["AUDIT_LOG"], os.O_WRONLY | os.O_APPEND | os.O_CREAT)
            os.write(handle, "".join(lines).encode("utf-8", "replace"))
            os.close(handle)
    finally:
        here.busy = 0

sys.addaudithook(hook)
'''
STARTS = ("subprocess.Popen", "os.system", "os.exec", "os.posix_spawn", "os.startfile", "pty.spawn")
DAY = (
    ("init",),
    ("search", "heap"),
    ("recall", hostile.HEAP),
    ("list",),
    ("show", "heap"),
    ("log", "heap"),
    ("status",),
    ("check",),
    ("sync",),
    ("categories", "rename", "sub", "deeper/sub", "--write"),
    ("show", "--at", "HEAD", "heap"),
    ("index",),
)
IN_ONE_PROCESS = """\
import sys
from click.testing import CliRunner
from vault_index.entrypoints.cli import main

for line in sys.argv[1:]:
    print(CliRunner().invoke(main, line.splitlines()).output)
"""


class World:
    """What there is: the user's own, a program that leaves a mark, what was traced."""

    def __init__(self, tmp_path: Path, home: Path) -> None:
        self.path, self.home = tmp_path, home
        self.decoy = hostile.decoy(tmp_path / "mine")
        self.program = write(
            tmp_path / "bin" / "mark", f"#!/bin/sh\necho $0 >> {self.decoy}/mark\n"
        )
        self.program.chmod(0o755)
        self.scratch = tmp_path / "scratch"
        self.scratch.mkdir()
        self.log = write(tmp_path / "traced" / "audit.log", "")
        site = write(tmp_path / "site" / "sitecustomize.py", AUDIT).parent
        self.env = {
            "PYTHONPATH": str(site),
            "PYTHONDONTWRITEBYTECODE": "1",
            "AUDIT_LOG": str(self.log),
            "AUDIT_PRIVATE": self.decoy.name,
            "TMPDIR": str(self.scratch),
            "LESSONS_DEADLINE_MS": "60000",
        }
        write(
            home / "config.toml",
            'trust = "committed-only"\ntrusted_authors = ["ada"]\nfloor = 0.0\n',
        )

    def day(self, root: Path) -> str:
        """Spend a day in a checkout; return what was printed."""
        said = ""
        for name in ("UserPromptSubmit", "SessionStart", "UserPromptSubmit"):
            event = {"hook_event_name": name, "prompt": hostile.HEAP, "session_id": "s"}
            ran = run("lessons-hook", cwd=root, stdin=json.dumps(event), env=self.env)
            assert ran.err == ""
            said += ran.out
        lines = ("\n".join(words) for words in DAY)
        ran = run(sys.executable, "-Pc", IN_ONE_PROCESS, *lines, cwd=root, env=self.env)
        assert "Traceback" not in ran.err + ran.out, ran.err + ran.out
        return said + ran.out

    def assert_unharmed(self, before: dict[str, object], *roots: Path) -> None:
        """Check that nothing of the user's own changed, and nothing else was written or started."""
        assert picture(self.decoy) == before
        ours = (*roots, self.home, self.scratch, Path(os.devnull))
        allowed = [os.path.realpath(one) for one in ours]
        for line in dict.fromkeys(self.log.read_text("utf-8").splitlines()):
            event, _, said = line.partition("\t")
            if event in STARTS:
                assert Path(said).name == "git" or Path(said).name.startswith("python"), line
            else:
                assert any(said == one or said.startswith(f"{one}/") for one in allowed), line


def picture(folder: Path) -> dict[str, object]:
    """Return all that a folder holds, without following links, with times, modes and names."""
    found: dict[str, object] = {}
    for path in [folder, *sorted(folder.rglob("*"))]:
        there = path.lstat()
        data = path.read_bytes() if stat.S_ISREG(there.st_mode) else b""
        found[str(path)] = (there.st_mode, there.st_mtime_ns, there.st_size, data)
    return found


@pytest.fixture
def world(tmp_path: Path, own_world: Path) -> World:
    return World(tmp_path, own_world)


def kinds(*some: str) -> Iterator[str]:
    return itertools.cycle(some)


def origin(world: World, index: str) -> Path:
    """Commit the tricks that git can carry, and clone them as the user would."""
    author, root = world.path / "author", world.path / f"clone-{index}"
    run("git", "init", "-q", "-b", "main", author, cwd=world.path)
    hostile.lessons(author, world.decoy)
    if index == "link":
        (author / ".vault_index").symlink_to(os.path.relpath(world.decoy, root))
    elif index == "names":
        hostile.names(author / ".vault_index", world.decoy, kinds("link", "dangling"))
    run("git", "add", "-A", "-f", cwd=author)
    run("git", "update-index", "--add", "--cacheinfo", f"160000,{'1' * 40},sub", cwd=author)
    run("git", "commit", "-q", "-m", "tricks", cwd=author)
    run("git", "clone", "-q", "--bare", author, world.path / "team.git", cwd=world.path)
    run("git", "clone", "-q", world.path / "team.git", root, cwd=world.path)
    return root


@pytest.mark.slow
@pytest.mark.parametrize("index", ["link", "names"])
def test_a_clone_whose_index_is_committed(world: World, index: str) -> None:
    root = origin(world, index)
    before, there = picture(world.decoy), picture(root / ".git")
    said = world.day(root)
    world.assert_unharmed(before, root)
    assert "is tracked by git" in said
    assert "xyzzyprivate" not in said
    assert run("git", "config", "core.hooksPath", cwd=root, check=False).out == ""
    assert picture(root / ".git").keys() >= there.keys()


@pytest.mark.slow
def test_a_copied_checkout(world: World) -> None:
    """One that was unpacked or copied: with pipes, sockets and second names."""
    root = origin(world, "none")
    every = kinds("link", "second name", "pipe", "socket", "dangling")
    tricks = hostile.names(root / ".vault_index", world.decoy, every)
    tricks += hostile.lessons(world.path / "count", world.decoy)
    os.mkfifo(root / "lessons" / "pipe.md")
    write(root / "lessons" / "huge.md", "")
    os.truncate(root / "lessons" / "huge.md", 1 << 40)
    assert len(tricks) >= 20
    before = picture(world.decoy)
    said = world.day(root)
    world.assert_unharmed(before, root)
    assert "xyzzyprivate" not in said
    assert "Heap" in said, "what is a lesson of the vault is found all the same"


@pytest.mark.slow
@pytest.mark.parametrize("free", [(), ("lock", "watch.lock")])
def test_an_index_of_our_own_with_something_in_the_place_of_our_names(
    world: World, free: tuple[str, ...]
) -> None:
    """Without the lock little is done; so there is a day with it, too."""
    root = origin(world, "none")
    run("lessons", "index", cwd=root, env=world.env)
    current = next((root / ".vault_index").glob("2???????-??????-????/manifest.json")).parent
    every = kinds("link", "pipe", "second name", "socket", "dangling")
    ours = ("owner", "current", *free)
    hostile.names(root / ".vault_index", world.decoy, every, but=ours)
    inside = ("words.json", "dirty.json") if free else ("words.json", "manifest.json")
    hostile.names(current, world.decoy / hostile.OLD_INDEX, every, some=inside)
    (current / "lessons.lance" / "data" / "more.lance").symlink_to(world.decoy / "authorized_keys")
    before = picture(world.decoy)
    world.day(root)
    world.assert_unharmed(before, root)
