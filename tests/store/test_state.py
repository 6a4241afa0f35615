"""The database of what this machine remembers: whole after kills, for many processes, on bad disks."""

from __future__ import annotations

import gc
import os
import random
import resource
import signal
import sqlite3
import threading
import time
import traceback
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, closing
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.support import disks
from tests.support.commands import BIN, run
from tests.support.files import MakeVault
from vault_index import state
from vault_index.errors import StateError, WriteError


@dataclass(frozen=True)
class Pair:
    one: int
    other: int


@pytest.fixture(autouse=True)
def tables(monkeypatch: pytest.MonkeyPatch) -> None:
    """Begin without the tables of the product: their changes have tests of their own."""
    monkeypatch.setattr(state, "MIGRATIONS", [])
    monkeypatch.setattr(state, "_here", threading.local())

    @state.migration
    def pairs(db: sqlite3.Connection) -> None:
        db.execute("CREATE TABLE pair (one INTEGER, other INTEGER)")


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "home" / ".lessons"


def in_a_fork(do: Callable[[], None]) -> int:
    """Start a process, and return its id; it ends with status 1 if an error leaves it."""
    if pid := os.fork():
        return pid
    try:
        do()
    except BaseException:  # noqa: BLE001  # a fork ends here, and runs no other test
        traceback.print_exc()
        os._exit(1)
    os._exit(0)


def add(home: Path, number: int) -> None:
    with state.writing(home) as db:
        state.insert(db, "pair", Pair(number, -1))
        db.execute("UPDATE pair SET other = ? WHERE one = ?", (number, number))


def pairs(home: Path) -> list[Pair]:
    with state.reading(home) as db:
        return state.select(db, "pair", Pair, "ORDER BY rowid")


def test_what_is_written_is_read_by_another_process_and_only_by_its_user(home: Path) -> None:
    assert pairs(home) == []
    assert not home.exists()  # a read writes nothing
    add(home, 7)
    assert pairs(home) == [Pair(7, 7)]
    assert os.waitpid(in_a_fork(lambda: add(home, 8)), 0)[1] == 0
    assert pairs(home) == [Pair(7, 7), Pair(8, 8)]
    assert {file.stat().st_mode & 0o777 for file in home.iterdir()} == {0o600}
    assert home.stat().st_mode & 0o777 == 0o700


class Call(NamedTuple):
    name: str
    times: int


@dataclass(frozen=True)
class Counted:
    calls: tuple[Call, ...]
    names: tuple[str, ...]
    totals: Mapping[str, int]
    is_done: bool
    cost: float | None


def test_59_2_a_column_becomes_what_its_field_is_annotated_with(home: Path) -> None:
    counted = Counted((Call("ls", 2),), ("a", "b"), {"a": 1}, is_done=True, cost=None)
    with state.writing(home) as db:
        db.execute("CREATE TABLE counted (calls, names, totals, is_done, cost)")
        state.insert(db, "counted", counted)
        (found,) = state.select(db, "counted", Counted)
    assert found == counted
    assert (type(found.calls[0]), type(found.is_done)) == (Call, bool)


@dataclass(frozen=True)
class Dated:
    id: int
    at: datetime


def test_59_2_a_field_of_a_type_without_a_column_is_named(home: Path) -> None:
    with state.writing(home) as db:
        db.execute("CREATE TABLE dated (id, at)")
        with pytest.raises(TypeError, match=r"Dated\.at: no column has the type .*datetime"):
            state.select(db, "dated", Dated)


def test_an_error_undoes_the_whole(home: Path) -> None:
    def write() -> None:
        with state.writing(home) as db:
            state.insert(db, "pair", Pair(1, 1))
            with state.writing(home) as again:
                state.insert(again, "pair", Pair(1 // 0, 1))

    with pytest.raises(ZeroDivisionError):
        write()
    assert pairs(home) == []


def test_changes_of_tables_come_once_and_in_order(home: Path) -> None:
    add(home, 1)

    @state.migration
    def third(db: sqlite3.Connection) -> None:
        db.execute("ALTER TABLE pair ADD COLUMN note TEXT DEFAULT 'old'")

    assert pairs(home) == [Pair(1, 1)]  # a connection that is open is not asked again
    opened = threading.Thread(target=add, args=(home, 2))
    opened.start()
    opened.join()
    with state.reading(home) as db:
        assert db.execute("SELECT note FROM pair").fetchall() == [("old",), ("old",)]
    state.MIGRATIONS.pop()
    opened = threading.Thread(target=lambda: said.append(failure(lambda: add(home, 3))))
    said: list[str] = []
    opened.start()
    opened.join()
    assert "a newer version" in said[0]


def failure(do: Callable[[], object]) -> str:
    """Return the message of the error that comes, and "" for none."""
    try:
        do()
    except (StateError, WriteError) as error:
        return f"{error.message}; {error.hint}"
    return ""


def test_twelve_processes_begin_at_once(home: Path) -> None:
    def write() -> None:
        for number in range(20):
            add(home, number)

    processes = [in_a_fork(write) for _ in range(12)]
    assert [os.waitpid(pid, 0)[1] for pid in processes] == [0] * 12
    assert len(pairs(home)) == 240
    assert all(pair.one == pair.other for pair in pairs(home))


@pytest.mark.slow
def test_kills_at_any_moment(home: Path) -> None:
    """A kill loses no finished write and leaves no half."""
    chance = random.Random(45)
    known = 0
    for _ in range(200):
        reading, writing = os.pipe()

        def write(end: int = writing, first: int = known) -> None:
            for number in range(first, first + 1000):
                add(home, number)
                os.write(end, b".")

        pid = in_a_fork(write)
        os.close(writing)
        time.sleep(chance.random() * 0.02)
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        with os.fdopen(reading, "rb") as said:
            committed = len(said.read())
        there = pairs(home)
        assert all(pair.one == pair.other for pair in there)
        assert len(there) - known in (committed, committed + 1)
        known = len(there)
    with state.reading(home) as db:
        assert db.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    assert state.notes(home) == []


def test_a_full_disk_is_one_line_and_nothing_is_lost(home: Path) -> None:
    add(home, 1)

    def fill() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (60_000, 60_000))
        for number in range(10_000):
            if said := failure(partial(add, home, number)):
                assert said.startswith(f"cannot write {home}/state.sqlite: ")
                assert pairs(home)[0] == Pair(1, 1)
                return
        raise AssertionError("the limit was never met")

    assert os.waitpid(in_a_fork(fill), 0)[1] == 0
    add(home, 2)
    assert pairs(home)[-1] == Pair(2, 2)


def test_a_database_that_is_missing_is_empty_and_one_that_cannot_be_opened_is_an_error(
    home: Path,
) -> None:
    assert pairs(Path("/proc/nobody/.lessons")) == []
    assert failure(partial(add, Path("/proc/nobody/.lessons"), 1)).startswith("cannot write /proc/")
    (home / state.FILE).mkdir(parents=True)
    assert failure(partial(pairs, home)).startswith(f"{home}/state.sqlite cannot be read: Is a dir")
    assert failure(partial(add, home, 1)).startswith(f"cannot write {home}/state.sqlite: Is a dir")
    (home / state.FILE).rmdir()
    (home / state.FILE).symlink_to(home / "unmounted" / "state.sqlite")
    assert "is a link that leads nowhere; remove the link" in failure(partial(pairs, home))
    home.rename(home.with_name("aside"))
    home.symlink_to(home.with_name("unmounted"))
    assert "is a link that leads nowhere" in failure(partial(pairs, home))


def test_a_database_of_another_user_is_an_error(home: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root can become somebody else")
    add(home, 1)

    def use() -> None:
        os.setuid(65534)
        state._here.__dict__.clear()
        assert failure(partial(pairs, home)).startswith(f"{home}/state.sqlite cannot be read: Perm")

    assert os.waitpid(in_a_fork(use), 0)[1] == 0


def test_a_database_of_a_newer_version_is_an_error_to_read_and_to_write(home: Path) -> None:
    add(home, 1)

    def use() -> None:
        state._here.__dict__.clear()
        state.MIGRATIONS.pop()
        for do in (partial(pairs, home), partial(add, home, 2)):
            assert failure(do) == (
                f"{home}/state.sqlite was written by a newer version of lessons; upgrade this one"
            )

    assert os.waitpid(in_a_fork(use), 0)[1] == 0


def test_too_many_open_files_are_named_as_the_cause(home: Path) -> None:
    assert os.waitpid(in_a_fork(partial(add, home, 1)), 0)[1] == 0  # SQLite keeps files open

    def use() -> None:
        state._here.__dict__.clear()
        gc.collect()  # connections of other tests, whose files would be free again
        resource.setrlimit(resource.RLIMIT_NOFILE, (32, 4096))
        while True:
            try:
                os.open(os.devnull, os.O_RDONLY)
            except OSError:
                break
        for do in (partial(pairs, home), partial(add, home, 2)):
            assert "Too many open files; close some programs, or raise" in failure(do)

    assert os.waitpid(in_a_fork(use), 0)[1] == 0


def killed_after_adding(home: Path, number: int) -> None:
    """Leave a pair in the log of the database, and the files that SQLite has beside it."""

    def add_and_die() -> None:
        state._here.__dict__.clear()
        add(home, number)
        os.kill(os.getpid(), signal.SIGKILL)

    os.waitpid(in_a_fork(add_and_die), 0)
    assert (home / "state.sqlite-wal").stat().st_size


@pytest.mark.parametrize("disk", [disks.read_only, disks.full])
@pytest.mark.parametrize("ended", ["closed", "killed"])
def test_a_read_only_home_and_a_full_disk_are_read(
    home: Path, disk: Callable[[Path], AbstractContextManager[None]], ended: str
) -> None:
    assert os.waitpid(in_a_fork(partial(add, home, 1)), 0)[1] == 0
    with closing(sqlite3.connect(home / state.FILE)) as db:
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)")  # and the last to close it removes its files
    assert [each.name for each in home.iterdir()] == ["state.sqlite"]
    if ended == "killed":
        killed_after_adding(home, 2)
    kept = [Pair(1, 1), Pair(2, 2)][: 1 + (ended == "killed")]

    def use() -> None:
        state._here.__dict__.clear()  # as a new process
        with state.reading(home) as db, state.reading(home) as again:
            assert again is db
        assert pairs(home) == kept
        assert failure(partial(write_much, home)).startswith(f"cannot write {home}/state.sqlite: ")
        assert pairs(home) == kept

    with disk(home):
        assert os.waitpid(in_a_fork(use), 0)[1] == 0
    assert pairs(home) == kept


def write_much(home: Path) -> None:
    """Write more than fits into what a log has left."""
    with state.writing(home) as db:
        db.executemany("INSERT INTO pair VALUES (?, ?)", [(n, n) for n in range(100_000)])


def test_a_log_that_cannot_be_read_is_not_left_out(home: Path) -> None:
    killed_after_adding(home, 1)
    (home / "state.sqlite-shm").unlink()  # as a backup leaves it out

    def use() -> None:
        state._here.__dict__.clear()
        assert failure(partial(pairs, home)).startswith(f"{home}/state.sqlite cannot be read: ")

    with disks.read_only(home):
        assert os.waitpid(in_a_fork(use), 0)[1] == 0
    assert pairs(home) == [Pair(1, 1)]


def test_an_older_database_on_a_read_only_disk_is_an_error(home: Path) -> None:
    assert os.waitpid(in_a_fork(partial(add, home, 1)), 0)[1] == 0

    @state.migration
    def second(db: sqlite3.Connection) -> None:
        db.execute("CREATE TABLE more (one INTEGER)")

    def use() -> None:
        state._here.__dict__.clear()
        assert "is of an older version of lessons, and cannot be written" in failure(
            partial(pairs, home)
        )

    with disks.read_only(home):
        assert os.waitpid(in_a_fork(use), 0)[1] == 0


@pytest.mark.parametrize("end", ["", "header", "middle"])
def test_a_damaged_database_is_set_aside_once_and_the_product_goes_on(home: Path, end: str) -> None:
    for number in range(300):
        add(home, number)
    state.shrink(home)
    file = home / "state.sqlite"
    data = bytearray(file.read_bytes())
    first = 0 if end == "header" else 4096
    data[first : len(data)] = os.urandom(len(data) - first)
    file.write_bytes(data[:100] if end == "" else data)

    def go_on() -> None:
        state._here.__dict__.clear()  # as a new process
        for number in range(3):  # at the first, the damage may show
            failure(partial(add, home, number))
            failure(lambda: pairs(home))
        add(home, 3)
        assert Pair(3, 3) in pairs(home)

    processes = [in_a_fork(go_on) for _ in range(4)]
    assert [os.waitpid(pid, 0)[1] for pid in processes] == [0] * 4
    aside = [each for each in home.iterdir() if each.name.endswith("Z")]
    assert len(aside) == 1
    assert [fix for _, fix in state.notes(home)] == [f"rm {aside[0]}*"]
    add(home, 9)
    assert Pair(9, 9) in pairs(home)


def test_a_writer_that_waits_too_long_says_so(home: Path) -> None:
    add(home, 1)
    with state.writing(home):
        said: list[str] = []

        def wait() -> None:
            with state.writing(home, wait=0.01):
                pass

        other = threading.Thread(target=lambda: said.append(failure(wait)))
        other.start()
        other.join()
    assert said == [f"another process writes to {home}/state.sqlite; wait until it is done"]


def test_what_was_deleted_is_in_no_byte(home: Path) -> None:
    with state.writing(home) as db:
        db.execute("CREATE TABLE said (text TEXT)")
        db.executemany("INSERT INTO said VALUES (?)", [(f"secret {n} " * 50,) for n in range(99)])
    with state.writing(home) as db:
        db.execute("DELETE FROM said")
    state.shrink(home)
    assert not any(b"secret" in file.read_bytes() for file in home.iterdir())


@pytest.mark.parametrize("kind", ["nfs4", "ext4", "fuse.sshfs"])
def test_no_wal_on_a_network(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    mounts = tmp_path / "mounts"
    mounts.write_text(f"/dev/vda / ext4 rw 0 0\nfiles:/u {home.parent} {kind} rw 0 0\n")
    monkeypatch.setattr(state, "MOUNTS", mounts)
    add(home, 1)
    is_network = kind != "ext4"
    with state.reading(home) as db:
        mode = db.execute("PRAGMA journal_mode").fetchone()[0]
    assert (mode == "delete") is is_network
    assert bool(state.notes(home)) is is_network


@pytest.mark.slow
def test_status_names_what_was_set_aside_and_goes_on(
    make_vault: MakeVault, own_world: Path
) -> None:
    team = make_vault({})
    for log in own_world.glob("state.sqlite-*"):
        log.unlink()
    (own_world / "state.sqlite").write_bytes(b"no database" * 99)
    command = BIN / "lessons"  # a process of its own: this one may have had the file open
    first = run(command, "last", cwd=team.root, check=False)
    assert (first.code, first.err.splitlines()) == (
        1, [f"Error: {own_world}/state.sqlite was damaged and is set aside", "Try: run it again"]
    )  # fmt: skip
    assert "no agent has asked yet" in run(command, "last", cwd=team.root).out
    (aside,) = own_world.glob("state.sqlite.damaged-*")
    assert run(command, "status", cwd=team.root).out.count(f"so it is now {aside.name}") == 1
    checked = run("lessons", "status", "--check", cwd=team.root, check=False).out
    assert f"rm {aside}*" in checked


@pytest.mark.skipif(not Path("/proc/self/fd").is_dir(), reason="the system lists no open files")
def test_a_thread_that_closes_its_connection_leaves_no_open_log(home: Path) -> None:
    """A watcher closes the vaults that nobody asks for; each had a thread, and its connection."""

    def add(number: int) -> None:
        with state.writing(home) as db:
            state.insert(db, "pair", Pair(number, number))

    def use() -> None:
        add(2)
        state.close()

    def open_logs() -> int:
        own = (home / f"{state.FILE}-wal").resolve()  # other tests of this process have theirs
        return sum(each.resolve() == own for each in Path("/proc/self/fd").iterdir())

    add(1)  # this thread's stays open
    before = open_logs()
    for _ in range(5):
        thread = threading.Thread(target=use)
        thread.start()
        thread.join()
    assert open_logs() == before == 1
