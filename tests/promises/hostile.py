"""A repository in which everything tries something: forty tricks and more, each with a name."""

from __future__ import annotations

import os
import shutil
import socket
from collections.abc import Callable, Iterator
from pathlib import Path

from tests.git.test_git_door import HOOKS
from tests.support.files import lesson_text, write

HEAP = "our build dies with heap out of memory"
OLD_INDEX = "20260101-000000-abcd"
# all that we make below `.vault_index`
NAMES = (
    *("owner", "current", "lock", "building", "at", "background.log"),
    *(".gitignore", "watch.lock", "watch.log", "watch.log.old", "watch.sock"),
    *(OLD_INDEX, ".current.abcdefgh", "background.log.old"),
)
FOLDERS = ("building", "at", OLD_INDEX)


def decoy(folder: Path) -> Path:
    """Make what is the user's own, outside every vault, and much like what we write and remove."""
    for name in NAMES:
        if name in FOLDERS:
            write(folder / name / "mine.txt", "mine\n")
            os.utime(folder / name / "mine.txt", (1, 1))
        else:
            write(folder / name, f"{name} of mine\n" * 100)
    for name in ("manifest.json", "words.json", "dirty.json"):
        write(folder / OLD_INDEX / name, "{}")
        os.utime(folder / OLD_INDEX / name, (1, 1))
    write(folder / "docs" / "old.txt", "an old letter\n")
    os.utime(folder / "docs" / "old.txt", (1, 1))
    write(folder / "authorized_keys", "ssh-ed25519 AAAA me\n")
    write(folder / "private.md", lesson_text("Private", f"xyzzyprivate: {HEAP}"))
    write(folder / "vault.toml", "floor = 0.0\n")
    return folder


def lessons(root: Path, decoy: Path) -> list[str]:
    """Write a vault whose files try something; return the tricks."""
    program = decoy / "docs" / "never"
    files: dict[str, str | bytes] = {
        "vault.toml": f'embedder = "ollama"\nollama_host = "http://203.0.113.7"\nvault = "{decoy}"\n'
        f'home = "{decoy}"\ntrust = "all"\n[hooks]\ncommand = "touch {program}"\n',
        "heap.md": lesson_text("Heap", f"When {HEAP}, raise the heap."),
        "sub/deep.md": lesson_text("Deep", "Something else altogether."),
        "tag.md": f"---\ntitle: !!python/object/apply:os.system ['touch {program}']\n---\nHeap.\n",
        "shell.md": f"---\ntitle: $(touch {program})\nsource: '`touch {program}`'\n---\nHeap\n",
        "link.md": "---\nsource: file:///etc/passwd\n---\nHeap, see http://203.0.113.7/x\n",
        "id.md": f"---\nid: ../../../..{decoy}/private\ncategories: [../../up, /etc]\n---\nHeap.\n",
        "\x1b]52;c;aGk=\x07.md": lesson_text("Escape", "Heap."),
        "new\nline.md": lesson_text("Line", "Heap."),
        "--output=x.md": lesson_text("Option", "Heap."),
        "-rf.md": lesson_text("Option two", "Heap."),
        "nul.md": b"---\ntitle: a\0b\n---\nHeap\0\n",
        "HEAD": "ref: refs/heads/main\n",
        "objects/.keep": "",
        "refs/.keep": "",
        "config": f"[core]\nfsmonitor = touch {program}\nworktree = {decoy}\nbare = false\n",
    }
    for name, content in files.items():
        write(root / "lessons" / name, content)
    (root / "lessons/private.md").symlink_to(decoy / "private.md")
    (root / "lessons/folder").symlink_to(decoy / "docs")
    (root / "lessons/circle").symlink_to("..")
    (root / "skills").symlink_to(decoy)
    write(root / ".gitattributes", '* filter=evil diff=evil merge=evil\n*.toml filter="e=v.il"\n')
    write(root / ".gitmodules", f'[submodule "s"]\npath = sub\nurl = ext::touch% {program}\n')
    write(root / ".lfsconfig", "[lfs]\nurl = http://203.0.113.7/\n")
    write(root / ".mailmap", "Ada Lovelace <ada@example.org> <mallory@example.org>\n")
    for name in (
        "click.py",
        "vault_index.py",
        "json.py",
        "sitecustomize.py",
    ):  # if we import from here
        write(root / name, f"open({str(program)!r}, 'w')\n")
    for name in HOOKS:
        write(root / ".githooks" / name, f"#!/bin/sh\ntouch {program}\n").chmod(0o755)
    rest = ("a linked lesson", "a linked folder", "a circle", "linked skills", "attributes")
    return [*files, *rest, "a submodule", "lfs", "mailmap", "modules beside us", "committed hooks"]


def names(
    folder: Path,
    decoy: Path,
    kinds: Iterator[str],
    but: tuple[str, ...] = (),
    some: tuple[str, ...] = NAMES,
) -> list[str]:
    """Put links, second names, pipes and sockets in the place of our names; return the tricks."""
    folder.mkdir(exist_ok=True)
    done = []
    for name in some:
        if name in but:
            continue
        kind = next(kinds)
        remove(folder / name)
        KINDS[kind](folder / name, decoy / name)
        done.append(f"{name}: {kind}")
    return done


def remove(path: Path) -> None:
    """Remove what is there, whatever it is."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def _link(path: Path, target: Path) -> None:
    path.symlink_to(os.path.relpath(target, path.parent))


def _dangling(path: Path, target: Path) -> None:
    path.symlink_to(target.parent / f"new-{target.name}")


def _second_name(path: Path, target: Path) -> None:
    if target.is_dir():
        _link(path, target)
    else:
        path.hardlink_to(target)


def _pipe(path: Path, _target: Path) -> None:
    os.mkfifo(path)


def _socket(path: Path, _target: Path) -> None:
    with socket.socket(socket.AF_UNIX) as listening:
        bind(listening, path)


def bind(listening: socket.socket, path: Path) -> None:
    """Bind a socket by its name alone: no system takes over 108 bytes of a path, macOS 104."""
    here = Path.cwd()
    os.chdir(path.parent)
    try:
        listening.bind(path.name)
    finally:
        os.chdir(here)


KINDS: dict[str, Callable[[Path, Path], None]] = {
    "link": _link,
    "dangling": _dangling,
    "second name": _second_name,
    "pipe": _pipe,
    "socket": _socket,
    "folder": lambda path, _: path.mkdir(),
}
