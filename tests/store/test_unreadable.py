"""What the system refuses is named as the cause, and is neither damage nor an absence."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.store.tables import DIMENSION, some_rows
from tests.support import disks
from tests.support.commands import BIN, run
from tests.support.files import MakeVault, write
from vault_index import errors
from vault_index.errors import IndexStateError, UnreadableError, VaultError, WriteError
from vault_index.journal import backlog, projects
from vault_index.journal.journal import Journal
from vault_index.proposals import store as proposals
from vault_index.store import injections, manifest, ownership
from vault_index.store.lance import Table, lance_errors
from vault_index.store.reader import Reader
from vault_index.vault import Vault, open_vault

INDEX = Path("/home/ada/team/.vault_index/20261128-100000-abcd")
SOURCE = ", /root/.cargo/registry/src/lance-13.0.0/src/dataset.rs:775:26"
OPENED = f"Generic LocalFileSystem error: Unable to open file {INDEX}/lessons.lance/data/a.lance: "
DAMAGE = (
    f"lance error: Not found: {INDEX}/lessons.lance/data/a.lance",
    f"lance error: Encountered corrupt file {INDEX}/lessons.lance/_versions/1.manifest: Invalid",
    "lance error: LanceError(IO): Generic memory error: Invalid range 0..1304 for object of size 0",
    "lance error: LanceError(IO): Generic LocalFileSystem error: failed to fill whole buffer",
    "lance error: LanceError(IO): file size is too small",
    f'lance error: No such file or directory (os error 2) at path "{INDEX}/lessons.lance/data"',
)
REFUSED = {  # by the system: whose error it is, how its message ends, and its hint
    'LanceError(IO): No such file or directory (os error 2) at path "/gone/tmp/.tmpH64hVC"': (
        *(WriteError, "cannot write /gone/tmp: No such file or directory"),
        "set TMPDIR to a folder that is there and can be written",
    ),
    f"{OPENED}Too many open files (os error 24)": (
        *(UnreadableError, "cannot be read: Too many open files"),
        "close some programs, or raise the limit of `ulimit -n`",
    ),
    f"{OPENED}Stale file handle (os error 116)": (
        *(UnreadableError, "cannot be read: Stale file handle"),
        "check the disk, and mount it again",
    ),
    f"{OPENED}Input/output error (os error 5)": (
        *(UnreadableError, "cannot be read: Input/output error"),
        "check the disk, and mount it again",
    ),
    f"{OPENED}Permission denied (os error 13)": (
        *(UnreadableError, "cannot be read: Permission denied"),
        "make it readable",
    ),
    f'Permission denied (os error 13) at path "{INDEX}/lessons.lance/data/.tmpA"': (
        *(WriteError, f"cannot write {INDEX}: Permission denied"),
        "make the folder writable",
    ),
    f'No space left on device (os error 28) at path "{INDEX}/lessons.lance/data/.tmpA"': (
        *(WriteError, f"cannot write {INDEX}: No space left on device"),
        "free some space",
    ),
}  # fmt: skip


@pytest.mark.parametrize("said", DAMAGE)
def test_damage_is_what_is_missing_or_corrupt_within_the_index(said: str) -> None:
    with pytest.raises(IndexStateError, match="is damaged") as caught, lance_errors(INDEX):
        raise RuntimeError(said + SOURCE)
    assert caught.value.hint == "run `lessons index --rebuild`"


@pytest.mark.parametrize("said", REFUSED)
def test_what_the_system_refuses_is_no_damage(said: str) -> None:
    kind, ends, hint = REFUSED[said]
    with pytest.raises(VaultError) as caught, lance_errors(INDEX):
        raise RuntimeError(f"lance error: {said}{SOURCE}")
    assert type(caught.value) is kind
    assert caught.value.message.endswith(ends)
    assert caught.value.hint == hint


def test_a_module_that_cannot_be_opened_is_no_other_release() -> None:
    with pytest.raises(UnreadableError, match="Too many open files"), lance_errors(INDEX):
        raise ImportError("_lancedb.abi3.so: cannot open shared object file: Too many open files")
    panic = type("PanicException", (BaseException,), {"__module__": "pyo3_runtime"})
    with pytest.raises(UnreadableError, match="Too many open files"), lance_errors(INDEX):
        raise panic(
            'Failed to build tokio runtime: Os { code: 24, message: "Too many open files" }'
        )
    with pytest.raises(IndexStateError, match="is damaged"), lance_errors(INDEX):
        raise panic("index out of bounds: the len is 1 but the index is 3")
    with pytest.raises(KeyboardInterrupt), lance_errors(INDEX):
        raise KeyboardInterrupt


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = Table(tmp_path_factory.mktemp("filled"), DIMENSION)
    made.create()
    made.replace(some_rows(20, 1), [])
    made.fold()
    return made.index


def gone(file: Path) -> None:
    file.unlink()


def empty(file: Path) -> None:
    file.write_bytes(b"")


def cut(file: Path) -> None:
    file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])


def overwritten(file: Path) -> None:
    file.write_bytes(os.urandom(file.stat().st_size))


@pytest.mark.parametrize("breaks", [gone, empty, cut, overwritten])
@pytest.mark.parametrize("files", ["data/*", "_versions/*"])
def test_files_of_a_table_that_broke_are_damage(
    filled: Path, tmp_path: Path, breaks: Callable[[Path], None], files: str
) -> None:
    shutil.copytree(filled, tmp_path / "index")
    for file in (tmp_path / "index/lessons.lance").glob(files):
        breaks(file)
    with pytest.raises(IndexStateError):
        Reader(tmp_path / "index", DIMENSION).rows(["id", "text"])


@pytest.mark.slow
def test_a_missing_TMPDIR_is_named_and_nothing_is_built_again(team: Vault) -> None:
    write(team.root / "lessons/new.md", "# New\n\nA new lesson.\n")
    command = BIN / "lessons"  # the variable is read when a process starts
    for words in (["index"], ["index", "--rebuild"]):
        done = run(command, *words, cwd=team.root, env={"TMPDIR": "/gone/tmp"}, check=False)
        assert done.err.splitlines()[-2:] == [
            "Error: cannot write /gone/tmp: No such file or directory",
            "Try: set TMPDIR to a folder that is there and can be written",
        ]
    assert run(command, "index", cwd=team.root).out.startswith("1 added")


@pytest.mark.slow
@pytest.mark.parametrize("most", [6, 8, 9])
def test_too_many_open_files_are_named_and_nothing_is_built_again(team: Vault, most: int) -> None:
    index = manifest.current(team.index_dir)
    line = f"ulimit -n {most}; exec {BIN / 'lessons'} search lock"
    done = run("sh", "-c", line, cwd=team.root, check=False)
    assert done.code == 1
    assert done.err.splitlines()[-2].endswith("cannot be read: Too many open files")
    assert (
        done.err.splitlines()[-1] == "Try: close some programs, or raise the limit of `ulimit -n`"
    )
    assert manifest.current(team.index_dir) == index


def test_a_disk_that_answers_nothing_is_no_missing_vault(team: Vault) -> None:
    with disks.failing(team.root):
        for words in (["list"], ["search", "lock"], ["status"]):
            done = run("lessons", "--vault", team.root, *words, cwd=team.root.parent, check=False)
            assert done.code == 1
            assert done.err.splitlines() == [
                f"Error: {team.root}/lessons/vault.toml cannot be read: Input/output error",
                "Try: check the disk, and mount it again",
            ]


def test_a_folder_whose_name_is_not_UTF_8_is_named(make_vault: MakeVault, tmp_path: Path) -> None:
    odd = tmp_path / os.fsdecode(b"lat\xe9")
    make_vault().root.rename(odd)
    for words in (["search", "heap"], ["status"], ["init", "other"]):
        done = run("lessons", *words, cwd=odd, check=False)
        assert done.code == 1
        assert "lat\\xe9" in done.err.splitlines()[0]
        assert "is not UTF-8" in done.err.splitlines()[0]
        assert done.err.splitlines()[1] == "Try: rename the folder"


# What this program keeps beside the database: missing is empty, and the rest is an error or a line.


def a_folder(file: Path) -> None:
    file.unlink(missing_ok=True)
    file.mkdir(parents=True)


def a_link(place: Path) -> None:
    place.rename(place.with_name("elsewhere"))
    place.symlink_to(place.with_name("elsewhere"))


def test_proposals_that_cannot_be_listed_are_not_none(team: Vault) -> None:
    with proposals.hold(team) as folder:
        proposals.write(folder, "0123abcd", b"---\ntitle: T\n---\nText.\n")
    assert proposals.ids(proposals.folder_of(team)) == ["0123abcd"]
    shutil.rmtree(folder)
    assert proposals.folder_of(team) is None
    folder.write_text("no folder")
    with pytest.raises(UnreadableError, match="cannot be read: Not a directory"):
        proposals.ids(proposals.folder_of(team))
    folder.unlink()
    a_link(folder.parent)
    done = run("lessons", "review", "list", cwd=team.root, check=False)
    assert (done.code, "is a link" in done.err) == (1, True)


def test_what_is_recorded_is_not_nothing_where_it_cannot_be_read(team: Vault) -> None:
    journal = Journal(team.config)
    assert projects.recorded_folders(journal) == []
    a_folder(journal.folder / "recorded")
    with pytest.raises(UnreadableError, match="recorded cannot be read: it is no ordinary file"):
        projects.recorded_folders(journal)
    done = run("lessons", "journal", "status", cwd=team.root, check=False)
    assert (done.code, "recorded cannot be read" in done.err) == (1, True)


def test_transcripts_that_wait_are_not_none_where_they_cannot_be_listed(team: Vault) -> None:
    journal = Journal(team.config)
    assert backlog.waiting(journal) == []
    write(journal.folder / ".grown", "no folder")
    with pytest.raises(UnreadableError, match=r"\.grown cannot be read: Not a directory"):
        backlog.waiting(journal)


def test_a_log_that_cannot_be_read_is_its_own_last_line(team: Vault, own_world: Path) -> None:
    journal = Journal(team.config)
    a_folder(own_world / "hook.log")
    a_folder(journal.folder / ".grown/log")
    (line,) = injections.complaints_of(team.root, own_world)
    assert line["message"] == f"{own_world}/hook.log cannot be read: it is no ordinary file"
    assert backlog.complaints(journal) == [
        f"{journal.folder}/.grown/log cannot be read: it is no ordinary file"
    ]
    assert "hook.log cannot be read" in run("lessons", "status", cwd=team.root).out


def test_an_index_whose_mark_cannot_be_read_is_not_somebody_elses(team: Vault) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root can become somebody else")
    assert ownership.is_ours(team.index_dir)
    key = team.config.home / "index.key"
    assert os.access(key, os.R_OK)
    if pid := os.fork():
        assert os.waitpid(pid, 0)[1] == 0
        return
    try:
        os.setegid(65534)
        os.seteuid(65534)
        with pytest.raises(UnreadableError, match="Permission denied"):
            ownership.is_ours(team.root / ".vault_index")
        os._exit(0)
    finally:
        os._exit(1)


def test_settings_that_cannot_be_read_are_not_the_defaults(team: Vault, own_world: Path) -> None:
    a_folder(own_world / "config.toml")
    done = run("lessons", "list", cwd=team.root, check=False)
    assert (done.code, "config.toml: cannot be read" in done.err) == (1, True)
    (own_world / "config.toml").rmdir()
    os.mkfifo(own_world / "config.toml")
    with pytest.raises(errors.SettingsError, match="it is no ordinary file"):
        open_vault(team.root)
