"""The database of what this machine remembers about its user: SQLite, `~/.lessons/state.sqlite`.

Standard library only. A thread keeps its connection open, so a record costs a millisecond. Readers never
wait for the writer (WAL), except on a network file system. A missing file reads as empty; one that is
there and cannot be read is an error. On a read-only or full disk it is read all the same. A damaged one
is set aside, which is said once, and a new one begins. Nothing else in this process may open the file:
closing it there takes away SQLite's locks.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import functools
import json
import os
import shlex
import sqlite3
import threading
import time
import tomllib
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any, TypeVar, get_args, get_origin, get_type_hints

from vault_index.errors import StateError, VaultError, WriteError, hint_for

FILE = "state.sqlite"
DAMAGED = ".damaged-"  # before the time at which it was set aside
LOGS = ("-wal", "-shm")  # the ends of the names of SQLite's files beside it
WAIT_SECONDS = 5.0  # for another writer
_AGAIN_SECONDS = 0.01  # between two tries at what SQLite itself does not wait for
MOUNTS = Path("/proc/mounts")
NETWORKS = frozenset(
    "9p afs beegfs ceph cifs drvfs glusterfs gpfs lustre ncpfs nfs nfs4 smb2 smb3 smbfs vboxsf "
    "virtiofs fuse.glusterfs fuse.rclone fuse.s3fs fuse.smbnetfs fuse.sshfs".split()
)
_DAMAGE = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)
_BUSY = (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)
_FULL = (sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR_SHMSIZE)  # the second: of the file beside it

T = TypeVar("T")
Migration = Callable[[sqlite3.Connection], None]
MIGRATIONS: list[Migration] = []  # in the order in which they apply; `user_version` counts them


def migration(change: Migration) -> Migration:
    """Add a change of the tables as the last one. One that was released is never edited."""
    MIGRATIONS.append(change)
    return change


class _Connection(sqlite3.Connection):
    def __del__(self) -> None:
        with contextlib.suppress(sqlite3.ProgrammingError):  # it was never opened
            self.close()


# `held`: what is open in this thread; `empty`: a database without a row; `unwritable`: what is open while
# it is read
_here = threading.local()
_of_parents: list[sqlite3.Connection] = []  # a fork may not use them, and closing would drop locks


@contextlib.contextmanager
def writing(home: Path, wait: float = WAIT_SECONDS) -> Iterator[sqlite3.Connection]:
    """Open the database for one transaction, which is undone if an error leaves it.

    `wait` is how many seconds to wait for another writer. A `writing` inside another one joins its
    transaction. Raises WriteError.
    """
    with _named_errors(home / FILE, WriteError):
        db = _connection(home)
        if db.in_transaction:
            yield db
            return
        db.execute(f"PRAGMA busy_timeout = {int(wait * 1000)}")
        with _transaction(db, "BEGIN IMMEDIATE"):
            yield db


@contextlib.contextmanager
def reading(home: Path) -> Iterator[sqlite3.Connection]:
    """Open the database as it is now; an empty one if it is missing.

    Raises StateError if it is there and cannot be read, and where it is found to be damaged; after that
    the next one reads an empty one.
    """
    with _named_errors(home / FILE, StateError), contextlib.ExitStack() as until_read:
        db = _readable(home, until_read) if _is_there(home / FILE) else _empty()
        if db.in_transaction:
            yield db
            return
        with _transaction(db, "BEGIN"):
            yield db


def _is_there(file: Path) -> bool:
    """Whether there is a file. Raises StateError if that cannot be seen, as behind a dead link."""
    try:
        file.stat()
    except FileNotFoundError:
        for path in (file, file.parent):
            if path.is_symlink() and not path.exists():
                raise StateError(
                    f"{file} cannot be read: {path} is a link that leads nowhere",
                    "remove the link, or mount the disk that it leads to",
                ) from None
        return False
    except OSError as error:
        raise _error(file, error, StateError) from None
    return True


def _readable(home: Path, until_read: contextlib.ExitStack) -> sqlite3.Connection:
    """Return a connection that reads; one to a database that cannot be written lasts `until_read`."""
    outer: tuple[Path, sqlite3.Connection] | None = getattr(_here, "unwritable", None)
    if outer is not None and outer[0] == home:
        return outer[1]
    try:
        return _connection(home)
    except (WriteError, sqlite3.Error) as error:
        db = None
        if not (isinstance(error, sqlite3.Error) and _is_damage(error)):
            db = _unwritable(home / FILE)
        if db is None:
            raise
    until_read.callback(db.close)
    until_read.callback(setattr, _here, "unwritable", None)
    _here.unwritable = home, db
    return db


def _unwritable(file: Path) -> sqlite3.Connection | None:
    """Open a database for reading in a folder where nothing can be written; None if no way leads to it.

    SQLite makes two files beside one in WAL mode, also to read it, unless it has the database for itself
    or is told that nothing changes. That would hide what is in a log.
    """
    ways = [("mode=ro", "NORMAL")]
    if os.access(file, os.W_OK):  # the disk is full
        ways.append(("mode=rw", "EXCLUSIVE"))
    has_log = any(_size(f"{file}{end}") for end in ("-wal", "-journal"))
    if not has_log and not os.access(file.parent, os.W_OK):
        ways.append(("mode=ro&immutable=1", "NORMAL"))
    for mode, locking in ways:
        db = sqlite3.connect(
            f"{file.absolute().as_uri()}?{mode}", uri=True, isolation_level=None,
            check_same_thread=False, factory=_Connection,
        )  # fmt: skip
        try:
            db.execute(f"PRAGMA locking_mode = {locking}")
            db.execute("PRAGMA query_only = ON")
            if _version(db, file) < len(MIGRATIONS):
                problem = f"{file} is of an older version of lessons, and cannot be written"
                raise StateError(problem, "make it writable, and free some space")
            return db
        except sqlite3.Error:
            db.close()
        except StateError:
            db.close()
            raise
    return None


def _size(file: str) -> int:
    try:
        return os.stat(file).st_size  # noqa: PTH116  # its name is made of text
    except FileNotFoundError:
        return 0


@contextlib.contextmanager
def _transaction(db: sqlite3.Connection, begin: str) -> Iterator[None]:
    db.execute(begin)
    try:
        yield
        db.execute("COMMIT")
    finally:
        if db.in_transaction:
            db.execute("ROLLBACK")


def select(
    db: sqlite3.Connection, table: str, kind: type[T], rest: str = "", values: Sequence[Any] = ()
) -> list[T]:
    """Return rows as dataclasses of a kind; `rest` is what follows the name of the table."""
    found = db.execute(f"SELECT {_columns(kind)} FROM {table} {rest}", values)
    readers = _readers(kind)  # type: ignore[arg-type]  # a class is hashable
    return [kind(*(read(each) for read, each in zip(readers, row, strict=True))) for row in found]


@functools.cache
def _readers(kind: Any) -> tuple[Callable[[Any], Any], ...]:
    """Return the makers of the value of each field of a column. Raises TypeError, naming a field."""
    types = get_type_hints(kind)
    return tuple(_reader(kind, field.name, types[field.name]) for field in fields(kind))


def _reader(kind: type, name: str, type: Any) -> Callable[[Any], Any]:
    if type in _PLAIN:
        return _as_it_is
    if type is bool:
        return bool
    origin, inner = get_origin(type), get_args(type)  # `insert` writes what has parts as JSON
    if origin is Mapping:
        return json.loads
    if origin is tuple and inner[0] in _PLAIN:
        return lambda column: tuple(json.loads(column))
    if origin is tuple and hasattr(inner[0], "_make"):  # named tuples
        return lambda column: tuple(map(inner[0]._make, json.loads(column)))
    raise TypeError(f"{kind.__name__}.{name}: no column has the type {type}")


_PLAIN = (str, int, float, float | None)  # as SQLite has them


def _as_it_is(column: Any) -> Any:
    return column


def insert(db: sqlite3.Connection, table: str, row: Any, **more: Any) -> int:
    """Insert a dataclass as a row, with `more` columns, and return its number."""
    parts = (getattr(row, field.name) for field in fields(row))
    values = [json.dumps(each) if isinstance(each, (tuple, Mapping)) else each for each in parts]
    columns = f"{_columns(type(row))}{''.join(f', {name}' for name in more)}"
    values += more.values()
    cursor = db.execute(f"INSERT INTO {table} ({columns}) VALUES ({slots(values)})", values)
    return cursor.lastrowid or 0


@functools.lru_cache(maxsize=64)
def vault_of(root: Path) -> str:
    """Return the name that a vault has in the database: its real path."""
    return os.path.realpath(root)


def slots(values: Collection[Any]) -> str:
    """Return the place of each value in a list of SQL: `?, ?`."""
    return ", ".join("?" * len(values))


def _columns(kind: Any) -> str:
    return ", ".join(f'"{field.name}"' for field in fields(kind))


def fact(home: Path, name: str) -> Any:
    """Return a small thing that was kept by its name, a JSON value; None without it.

    Raises StateError.
    """
    with reading(home) as db:
        found = db.execute("SELECT value FROM fact WHERE name = ?", [name]).fetchone()
    return json.loads(found[0]) if found else None


def keep_fact(home: Path, name: str, value: Any) -> None:
    """Keep a small thing by its name; None takes it away. Raises StateError, WriteError."""
    if value is None and fact(home, name) is None:
        return
    with writing(home) as db:
        db.execute("DELETE FROM fact WHERE name = ?", [name])
        if value is not None:
            db.execute("INSERT INTO fact VALUES (?, ?)", [name, json.dumps(value)])


def shrink(home: Path) -> None:
    """Rewrite the file without deleted data, and empty its log. Raises WriteError."""
    with _named_errors(home / FILE, WriteError):
        db = _connection(home)
        db.execute(f"PRAGMA busy_timeout = {int(WAIT_SECONDS * 1000)}")
        db.execute("VACUUM")
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)")


def notes(home: Path) -> list[tuple[str, str]]:
    """Return notices about the database as (message, fix); the fix may be ""."""
    messages = [
        (
            f"{home / FILE} was damaged, so it is now {file.name}, and a new one began",
            f"rm {shlex.quote(str(file))}*",
        )
        for file in sorted(home.glob(f"{FILE}{DAMAGED}*Z"))
    ]
    try:
        if _is_there(home / FILE):
            with _named_errors(home / FILE, WriteError):
                _connection(home)
    except VaultError as error:
        messages.append((error.message, error.hint))
    if kind := network_of(home):
        messages.append(
            (f"{home} is on a network file system ({kind}), where memory is slower", "")
        )
    return messages


def network_of(folder: Path) -> str:
    """Return the type of the network file system that a folder is on; "" for a local one."""
    whole = f"{os.path.realpath(folder)}/"
    kind, longest = "", 0
    with contextlib.suppress(OSError):
        for line in MOUNTS.read_text("utf-8", "replace").splitlines():
            _, point, type, *_ = [*line.split(" "), "", "", ""]
            point = point.replace("\\040", " ").rstrip("/") + "/"
            if whole.startswith(point) and len(point) >= longest:
                kind, longest = type, len(point)
    return kind if kind in NETWORKS else ""


def _connection(home: Path) -> sqlite3.Connection:
    """Return this thread's connection; a file that is missing is made."""
    file = home / FILE
    held: tuple[tuple[Any, ...], sqlite3.Connection] | None = getattr(_here, "held", None)
    identity = _identity(file)
    if held and identity and held[0] == (os.getpid(), str(file), *identity):
        return held[1]
    if held:
        _here.held = None
        held[1].close() if held[0][0] == os.getpid() else _of_parents.append(held[1])
    db = _open(file)
    _here.held = (os.getpid(), str(file), *(_identity(file) or ())), db
    return db


def close() -> None:
    """Close this thread's connection: it is part of a cycle, and would stay open after the thread."""
    held, _here.held = getattr(_here, "held", None), None
    if held is not None:
        held[1].close() if held[0][0] == os.getpid() else _of_parents.append(held[1])


def _identity(file: Path) -> tuple[int, int] | None:
    try:
        now = file.stat()
    except OSError:
        return None
    return now.st_dev, now.st_ino


def _open(file: Path) -> sqlite3.Connection:
    try:
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        os.close(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
    except FileExistsError:
        pass
    except OSError as error:
        raise _error(file, error, WriteError) from None
    # a thread that ends leaves its connection to whoever collects it
    db = sqlite3.connect(file, isolation_level=None, check_same_thread=False, factory=_Connection)
    try:
        db.execute("PRAGMA foreign_keys = ON")
        db.execute("PRAGMA secure_delete = ON")
        _choose_journal(db, "delete" if network_of(file.parent) else "wal")
        _migrate(db, file)
    except BaseException:
        db.close()  # it holds locks
        raise
    return db


def _choose_journal(db: sqlite3.Connection, mode: str) -> None:
    until = time.monotonic() + WAIT_SECONDS
    while db.execute("PRAGMA journal_mode").fetchone()[0] != mode:
        try:
            db.execute(f"PRAGMA journal_mode = {mode}")
            break  # or SQLite has no other here
        except sqlite3.OperationalError as error:
            is_busy = _code(error) & 0xFF in _BUSY  # another process opens it, too
            if not is_busy or time.monotonic() > until:
                raise
            time.sleep(_AGAIN_SECONDS)
    if mode == "wal":
        db.execute("PRAGMA synchronous = NORMAL")


def _migrate(db: sqlite3.Connection, file: Path | None = None) -> None:
    if _version(db, file) < len(MIGRATIONS):
        with _transaction(db, "BEGIN IMMEDIATE"):
            for change in MIGRATIONS[_version(db, file) :]:
                change(db)
            db.execute(f"PRAGMA user_version = {len(MIGRATIONS)}")


def _version(db: sqlite3.Connection, file: Path | None) -> int:
    """Return the number of changes to the tables of a database. Raises StateError for too many."""
    version = int(db.execute("PRAGMA user_version").fetchone()[0])
    if version > len(MIGRATIONS):
        raise StateError(f"{file} was written by a newer version of lessons", "upgrade this one")
    return version


def _empty() -> sqlite3.Connection:
    if not hasattr(_here, "empty"):
        db = sqlite3.connect(
            ":memory:", isolation_level=None, check_same_thread=False, factory=_Connection
        )
        _migrate(db)
        db.execute("PRAGMA query_only = ON")
        _here.empty = db
    found: sqlite3.Connection = _here.empty
    return found


@contextlib.contextmanager
def _named_errors(file: Path, kind: type[StateError | WriteError]) -> Iterator[None]:
    """Turn SQLite's errors into one of a kind, and set a damaged file aside."""
    try:
        yield
    except StateError as error:
        if kind is StateError:
            raise
        raise kind(error.message, error.hint) from None
    except sqlite3.ProgrammingError:
        raise
    except sqlite3.DatabaseError as error:
        if not _is_damage(error):
            raise _error(file, error, kind) from None
        if _set_aside(file):
            raise kind(f"{file} was damaged and is set aside", "run it again") from None
        raise kind(f"{file} is damaged", "move it out of its folder") from None


def _error(
    file: Path, error: OSError | sqlite3.Error, kind: type[StateError | WriteError]
) -> StateError | WriteError:
    if isinstance(error, sqlite3.Error) and _code(error) & 0xFF in _BUSY:
        return kind(f"another process writes to {file}", "wait until it is done")
    system = error if isinstance(error, OSError) else _cause(file, error)
    reason = system.strerror or str(error)
    if kind is StateError:
        return kind(f"{file} cannot be read: {reason}", hint_for(system, "make it readable"))
    return kind(f"cannot write {file}: {reason}", hint_for(system, "make it writable"))


def _cause(file: Path, error: sqlite3.Error) -> OSError:
    """Return the system's error below SQLite's, as far as it can be seen."""
    if _code(error) in _FULL:
        return OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    if file.is_dir():
        return OSError(errno.EISDIR, os.strerror(errno.EISDIR))
    try:
        os.close(os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC))  # too many files are open
        file.stat()
    except OSError as refused:
        return refused
    if _code(error) & 0xFF in (sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY):
        if not os.access(file, os.R_OK):
            return OSError(errno.EACCES, os.strerror(errno.EACCES))
        if os.statvfs(file).f_flag & os.ST_RDONLY:
            return OSError(errno.EROFS, os.strerror(errno.EROFS))
    return OSError(errno.EIO if _code(error) & 0xFF == sqlite3.SQLITE_IOERR else 0, str(error))


def _code(error: sqlite3.Error) -> int:
    """Return SQLite's extended code of an error; 0 for one of Python's own."""
    return getattr(error, "sqlite_errorcode", 0)


def _is_damage(error: sqlite3.Error) -> bool:
    is_missing = "no such table" in str(error)  # its log was whole, and the file was not
    return is_missing or _code(error) & 0xFF in _DAMAGE


def _set_aside(file: Path) -> bool:
    """Rename a damaged file, unless another process has; False where that cannot be done."""
    try:
        with file.open("rb") as damaged:
            fcntl.flock(damaged, fcntl.LOCK_EX)
            seen = os.fstat(damaged.fileno())
            if _identity(file) == (seen.st_dev, seen.st_ino):
                aside = f"{file}{DAMAGED}{time.strftime('%Y%m%dT%H%M%SZ', time.gmtime())}"
                for end in ("", *LOGS):
                    with contextlib.suppress(FileNotFoundError):
                        Path(f"{file}{end}").replace(f"{aside}{end}")
    except FileNotFoundError:
        return True
    except OSError:
        return False
    return True


@migration
def _sessions(db: sqlite3.Connection) -> None:
    """Sessions of the journal: see `journal.archive`, `journal.projects` and `journal.importing`."""
    for table in (
        "session (short TEXT PRIMARY KEY, id TEXT, agent TEXT, transcript TEXT UNIQUE, project TEXT,"
        " folder TEXT, branch TEXT, began TEXT, ended TEXT, parent TEXT, version TEXT, prompts INT,"
        " tool_calls INT, errors INT, unread INT, written INT, read TEXT)",
        "moment (session TEXT REFERENCES session ON DELETE CASCADE, place INT, kind TEXT, number INT,"
        " uuid TEXT, data TEXT, PRIMARY KEY (session, place)) WITHOUT ROWID",
        "record (session TEXT REFERENCES session ON DELETE CASCADE, place INT, id TEXT, kind TEXT,"
        " data TEXT, PRIMARY KEY (session, place)) WITHOUT ROWID",
        "forgotten (hash TEXT PRIMARY KEY) WITHOUT ROWID",
        "transcript (hash TEXT PRIMARY KEY, size INT, mtime INT) WITHOUT ROWID",
        "project (name TEXT PRIMARY KEY, root TEXT, folders TEXT)",
    ):
        db.execute(f"CREATE TABLE {table}")
    for index in ("session (id)", "session (began)", "moment (uuid)", "record (id)"):
        name = index.replace(" (", "_").rstrip(")")
        db.execute(f"CREATE INDEX {name} ON {index}")
    home = _home_of(db)
    with contextlib.suppress(OSError, ValueError):  # what was forgotten before stays so
        stones = (home / "journal" / "forgotten").read_text("utf-8").split()
        db.executemany(
            "INSERT OR IGNORE INTO forgotten VALUES (?)", zip(stones[1::2], strict=False)
        )
    for named in sorted(home.glob("proposals/*/project.toml")):
        with contextlib.suppress(OSError, ValueError):  # of the folders of proposals
            values = tomllib.loads(named.read_text("utf-8"))
            row = (named.parent.name, str(values["root"]), json.dumps(values["folders"]))
            db.execute("INSERT INTO project VALUES (?, ?, ?)", row)


@migration
def _injections(db: sqlite3.Connection) -> None:
    """Lessons that agents were given, and words on them: see `store.injections` and `recall`."""
    for table in (
        "injection (id INTEGER PRIMARY KEY, vault TEXT, event TEXT, session TEXT, agent TEXT,"
        " prompt TEXT, said TEXT, floor REAL, ms REAL, by TEXT, silent TEXT, missed INT, time TEXT,"
        " is_lost INT DEFAULT 0)",  # lost by a compaction of its session
        "given (injection INT REFERENCES injection ON DELETE CASCADE, place INT, vault TEXT,"
        " lesson TEXT, score REAL, form TEXT, taught INT, PRIMARY KEY (injection, place))"
        " WITHOUT ROWID",
        "mark (vault TEXT, session TEXT, prompt TEXT, lesson TEXT, kind TEXT, written TEXT,"
        " moved INT, PRIMARY KEY (vault, session, prompt, lesson)) WITHOUT ROWID",
        "word (vault TEXT, lesson TEXT, word TEXT, by TEXT, why TEXT, day TEXT, hash TEXT,"
        " PRIMARY KEY (vault, lesson)) WITHOUT ROWID",
        "claim (vault TEXT, session TEXT, event TEXT, at REAL, owner TEXT)",
        "fork (vault TEXT, session TEXT, agent TEXT, heard INT)",
        "note (vault TEXT, session TEXT, agent TEXT, at REAL, told TEXT)",
    ):
        db.execute(f"CREATE TABLE {table}")
    db.execute("CREATE INDEX injection_time ON injection (vault, time)")
    db.execute("CREATE INDEX injection_session ON injection (vault, session, prompt)")
    db.execute("CREATE INDEX given_lesson ON given (vault, lesson, form)")
    db.execute("CREATE INDEX claim_session ON claim (session, event)")
    db.execute("CREATE INDEX claim_at ON claim (at)")


@migration
def _learning(db: sqlite3.Connection) -> None:
    for table in (
        "run (vault TEXT, scope TEXT, target TEXT, digest TEXT, by TEXT, session TEXT, at TEXT,"
        " status TEXT, points INT, proposals TEXT, dropped TEXT, usage TEXT, trouble TEXT,"
        " asked_by TEXT, pid INT)",
        "rejected (place TEXT, id TEXT, at TEXT, words TEXT, embedder TEXT, vector TEXT,"
        " evidence TEXT, session TEXT, is_draft INT)",  # `place`: the folder of its proposals
        "usage (day TEXT PRIMARY KEY, calls INT, tokens INT)",
        "conversation (vault TEXT, id TEXT, name TEXT, exchanges TEXT, at TEXT,"
        " PRIMARY KEY (vault, id))",
    ):
        db.execute(f"CREATE TABLE {table}")


@migration
def _facts(db: sqlite3.Connection) -> None:
    db.execute("CREATE TABLE fact (name TEXT PRIMARY KEY, value TEXT)")


@migration
def _released(db: sqlite3.Connection) -> None:
    """Texts that the user let agents have: see `store.ownership`. They were empty files."""
    db.execute("CREATE TABLE released (hash TEXT PRIMARY KEY) WITHOUT ROWID")
    with contextlib.suppress(OSError):
        names = [(each.name,) for each in (_home_of(db) / "released").iterdir()]
        db.executemany("INSERT INTO released VALUES (?)", names)


@migration
def _imported(db: sqlite3.Connection) -> None:
    """Add the hashes of files that imports wrote: see `edit.import_lessons`."""
    db.execute("CREATE TABLE imported (hash TEXT PRIMARY KEY) WITHOUT ROWID")


@migration
def _by_words(db: sqlite3.Connection) -> None:
    """Add whether words alone found what an agent was given: see `store.delivery`."""
    db.execute("ALTER TABLE given ADD COLUMN by_words INT DEFAULT 0")


def _home_of(db: sqlite3.Connection) -> Path:
    (_, _, file), *_ = db.execute("PRAGMA database_list")
    return Path(file).parent if file else Path(os.devnull)
