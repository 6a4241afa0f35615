"""Whatever is wrong with files, disk or index: a clear line, and an answer if there is one."""

from __future__ import annotations

import ctypes
import json
import os
import shutil
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from tests.support.commands import BIN, Ran, run
from tests.support.files import MakeVault, lesson_text, write
from tests.support.indexed import HEAP, LOCK
from vault_index import files
from vault_index.index import reconcile
from vault_index.lesson import parse, passages
from vault_index.retrieval.query import find
from vault_index.store import ownership
from vault_index.vault import INDEX, Vault

pytestmark = pytest.mark.slow

PR_CAPBSET_DROP = 24
CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH = 1, 2


def as_ordinary_user(*command: str, cwd: Path) -> Ran:
    """Run `lessons` so that file permissions count even for root."""

    def obey_permissions() -> None:
        if os.geteuid() == 0:
            libc = ctypes.CDLL(None)
            libc.prctl(PR_CAPBSET_DROP, CAP_DAC_OVERRIDE, 0, 0, 0)
            libc.prctl(PR_CAPBSET_DROP, CAP_DAC_READ_SEARCH, 0, 0, 0)

    done = subprocess.run(
        [BIN / "lessons", *command],
        cwd=cwd,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        preexec_fn=obey_permissions,
        check=False,
        timeout=60,
    )
    return Ran(done.returncode, done.stdout, done.stderr)


def quickly_indexed(make_vault: MakeVault) -> Vault:
    """Make the index of two lessons in this process."""
    return make_vault({"a.md": HEAP, "b.md": LOCK}, indexed=True)


def found(vault: Vault, query: str) -> list[str]:
    """Search from the command line; give the ids."""
    ran = run("lessons", "search", "--json", query, cwd=vault.root)
    return [hit["id"] for hit in ran.json["hits"]]


# files


def test_a_name_that_is_not_utf_8(make_vault: MakeVault) -> None:
    vault = quickly_indexed(make_vault)
    name, folder = os.fsdecode(b"lat\xe9.md"), os.fsdecode(b"caf\xe9")
    write(vault.lessons_dir / "devops" / name, LOCK)
    write(vault.lessons_dir / folder / "c.md", LOCK)
    write(vault.lessons_dir / os.fsdecode(b"\xe9.png"), b"\x89PNG")
    write(vault.lessons_dir / "new.md", lesson_text("Pipe", "A closed pipe."))
    paths = (r"caf\xe9", r"devops/lat\xe9.md")
    said = [f"lessons/{path}:0: the name is not UTF-8" for path in paths]
    ran = run("lessons", "index", cwd=vault.root)
    assert [line for line in ran.out.splitlines() if "UTF-8" in line] == said
    assert found(vault, "pipe") == ["new"]
    for words in (["list"], ["check"]):
        told = run("lessons", *words, cwd=vault.root)
        assert all(line in told.out + told.err for line in said), words
    troubles = run("lessons", "status", "--json", cwd=vault.root).json["troubles"]
    what = [each["what"] for each in troubles if each["about"] == "index"]
    assert {f"lessons/{path}: the name is not UTF-8" for path in paths} <= {*what}


@pytest.mark.parametrize(("module", "name"), [(parse, "parse_file"), (passages, "cut")])
def test_a_file_that_we_fail_at_is_named_and_the_others_are_indexed(
    make_vault: MakeVault, monkeypatch: pytest.MonkeyPatch, module: ModuleType, name: str
) -> None:
    """There is no such file that we know of: one is told from the others by its text."""
    does = getattr(module, name)

    def fails(content: str | bytes, *rest: str) -> Any:
        if "xyzzy" in str(content):
            raise TypeError("no\nwonder")
        return does(content, *rest)

    monkeypatch.setattr(module, name, fails)
    vault = make_vault({"a.md": HEAP, "b.md": LOCK}, indexed=True)
    for path in ("b.md", "c.md"):
        write(vault.lessons_dir / path, lesson_text("Odd", "Nothing but xyzzy."))
    write(vault.lessons_dir / "d.md", lesson_text("Pipe", "A closed pipe."))
    stats = reconcile.sync(vault)
    assert [(one.path, one.message) for one in stats.problems] == [
        ("lessons/b.md", "TypeError: no wonder"),
        ("lessons/c.md", "TypeError: no wonder"),
    ]
    assert [hit.lesson_id for hit in find(vault, "pipe")] == ["d"]
    assert [hit.lesson_id for hit in find(vault, "lock")] == ["b"], "its last good rows"
    write(vault.lessons_dir / "b.md", LOCK)
    (vault.lessons_dir / "c.md").unlink()
    assert reconcile.sync(vault).problems == []


def test_a_file_that_may_not_be_read(make_vault: MakeVault) -> None:
    vault = quickly_indexed(make_vault)
    write(vault.lessons_dir / "a.md", HEAP.replace("Raise", "Always raise")).chmod(0)
    time.sleep(files.RACY_NS / 1e9)  # as on a slow machine: its stat is to be trusted then
    ran = as_ordinary_user("index", cwd=vault.root)
    assert "lessons/a.md:0: cannot be read: Permission denied" in ran.out
    assert found_as_ordinary_user(vault, "heap") == ["a"]  # its last good rows
    (vault.lessons_dir / "a.md").chmod(0o644)
    assert run("lessons", "index", "--json", cwd=vault.root).json["problems"] == []


def found_as_ordinary_user(vault: Vault, query: str) -> list[str]:
    ran = as_ordinary_user("search", "--json", query, cwd=vault.root)
    return [hit["id"] for hit in ran.json["hits"]]


# disks


def test_a_read_only_vault_answers_from_the_index_it_has(make_vault: MakeVault) -> None:
    vault = quickly_indexed(make_vault)
    write(vault.lessons_dir / "c.md", lesson_text("Pipe", "A closed pipe."))
    with_mode(vault.root, writable=False)
    try:
        ran = as_ordinary_user("search", "--json", "heap", cwd=vault.root)
        assert [hit["id"] for hit in ran.json["hits"]] == ["a"]
        assert "searching the index as it is" in ran.err
        assert "Permission denied" in ran.err
    finally:
        with_mode(vault.root, writable=True)
    assert found(vault, "pipe") == ["c"]


def test_a_read_only_vault_has_its_index_in_the_users_folder(
    make_vault: MakeVault, own_world: Path
) -> None:
    vault = make_vault({"a.md": HEAP, "b.md": LOCK})
    with_mode(vault.root, writable=False)
    try:
        for _ in range(2):  # the second reads what the first wrote
            assert found_as_ordinary_user(vault, "heap") == ["a"]
        recalled = as_ordinary_user(
            "recall", "--json", "raise the heap of the build", cwd=vault.root
        )
        assert [hit["id"] for hit in recalled.json["hits"]] == ["a"]
        assert not (vault.root / INDEX).exists()
    finally:
        with_mode(vault.root, writable=True)
    (index,) = (own_world / ownership.ELSEWHERE).iterdir()
    assert index.stat().st_mode & 0o077 == 0
    assert found(vault, "heap") == ["a"]
    assert (vault.root / INDEX).exists()


def with_mode(root: Path, *, writable: bool) -> None:
    for path in (root, *root.rglob("*")):
        if not path.is_symlink():
            path.chmod((0o755 if path.is_dir() else 0o644) & (0o777 if writable else 0o555))


FULL_DISK = """
set -e
mount -t tmpfs -o size=2m none "$1"
cp -r "$2/." "$1"
cd "$1"
dd if=/dev/zero of=ballast bs=1k count=1500 2>/dev/null || true
set +e
"$3" index > "$4/full.out" 2> "$4/full.err"; echo $? > "$4/full.code"
rm ballast
"$3" search --json lock > "$4/then.out" 2> "$4/then.err"; echo $? > "$4/then.code"
cd /
umount "$1"
"""


def test_a_full_disk(make_vault: MakeVault, tmp_path: Path) -> None:
    """The error is one line, and the index goes on where it was once there is room."""
    if not shutil.which("unshare"):
        pytest.skip("no unshare here to mount a small disk with")
    rights = ["--mount"] if os.geteuid() == 0 else ["-rm"]
    mount = ["unshare", *rights, "mount", "-t", "tmpfs", "none", "/mnt"]
    if subprocess.run(mount, check=False).returncode:
        pytest.skip("a small disk cannot be mounted here: neither root nor user namespaces")
    long = "\n\n".join(f"Paragraph {n} about a lock. " * 20 for n in range(200))
    vault = make_vault({"a.md": lesson_text("Lock", long), "b.md": HEAP})
    disk = tmp_path / "disk"
    disk.mkdir()
    run(
        *("unshare", *rights, "sh", "-c", FULL_DISK, "sh"),
        *(disk, vault.root, BIN / "lessons", tmp_path),
        cwd=tmp_path,
    )
    said = (tmp_path / "full.err").read_text()
    assert (tmp_path / "full.code").read_text() == "1\n", said
    (error,) = [line for line in said.splitlines() if line.startswith("Error:")]
    assert "cannot write" in error
    assert "Traceback" not in said
    then = json.loads((tmp_path / "then.out").read_text())
    assert [hit["id"] for hit in then["hits"]] == ["a"], (tmp_path / "then.err").read_text()


# index folders


TABLE = "*/lessons.lance/**/"
DAMAGES: dict[str, tuple[str, Callable[[Path], object]]] = {
    "truncated data": (f"{TABLE}*.lance", lambda file: os.truncate(file, file.stat().st_size // 2)),
    "no data": (f"{TABLE}data/*", Path.unlink),
    "garbled versions": (f"{TABLE}_versions/*", lambda file: file.write_bytes(b"garbage")),
    "no text index": (f"{TABLE}_indices/*/*", Path.unlink),
    "garbled manifest": ("*/manifest.json", lambda file: file.write_bytes(b"{\xff")),
    "garbled current": ("current", lambda file: file.write_bytes(b"\xff\0/../..")),
}


@pytest.mark.parametrize(("pattern", "damage"), DAMAGES.values(), ids=DAMAGES)
def test_a_damaged_index_is_built_anew_by_a_search(
    make_vault: MakeVault, pattern: str, damage: Callable[[Path], object]
) -> None:
    vault = quickly_indexed(make_vault)
    files = [file for file in vault.index_dir.glob(pattern) if file.is_file()]
    assert files, "nothing to damage: LanceDB's layout has changed"
    for file in files:
        damage(file)
    ran = run("lessons", "search", "--json", "heap", cwd=vault.root)
    assert [hit["id"] for hit in ran.json["hits"]] == ["a"]
    assert ran.json["floor"] is not None
    assert "Traceback" not in ran.err


def test_an_index_from_the_future_is_left_alone(make_vault: MakeVault) -> None:
    vault = quickly_indexed(make_vault)
    (file,) = vault.index_dir.glob("*/manifest.json")
    file.write_text(json.dumps({**json.loads(file.read_text()), "schema": 999, "unheard": "of"}))
    before = file.read_bytes()

    ran = run("lessons", "search", "heap", cwd=vault.root, check=False)
    assert ran.code == 1
    assert "Error: the index was written by a newer version (schema 999" in ran.err
    assert "Try: upgrade this installation, or run `lessons index --rebuild`" in ran.err
    assert file.read_bytes() == before

    run("lessons", "index", "--rebuild", cwd=vault.root)
    assert found(vault, "heap") == ["a"]
