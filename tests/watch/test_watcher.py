"""The real watcher: what is saved is found, there is one of it, and it ends when it should."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from tests.support.commands import BIN, run
from tests.support.files import MakeVault, lesson_text, write
from tests.support.indexed import kept_on
from tests.support.watchers import (
    assert_same_as_a_rebuild,
    rows,
    save_like_vim,
    soon,
    status,
    watched,
    watchers_of,
)
from vault_index.hotpath import protocol
from vault_index.vault import Vault
from vault_index.watch import launch

FILES = {
    "devops/ci-cd/heap.md": lesson_text("Raise the heap", "When the build dies, raise the heap."),
    "devops/docker/layers.md": lesson_text("Docker layers", "Install before you copy."),
    "conventions/dates.md": lesson_text("Dates are UTC", "Store dates in UTC."),
}


# the system calls with which editors save


def save_like_vs_code(file: Path, text: str) -> None:
    """In place: emptied, then written."""
    with file.open("r+", encoding="utf-8") as out:
        out.truncate(0)
        out.write(text)


def save_like_nano(file: Path, text: str) -> None:
    """In place, beside a lock file."""
    lock = file.parent / f".{file.name}.swp"
    lock.write_text("nano")
    file.write_text(text, "utf-8")
    lock.unlink()


def save_like_sed(file: Path, text: str) -> None:
    """A new file renamed over the old one."""
    beside = file.parent / "sedTEQ8Xb"
    beside.write_text(text, "utf-8")
    beside.replace(file)


def save_like_git(file: Path, text: str) -> None:
    """The old name unlinked, a new file made under it."""
    file.unlink()
    file.write_text(text, "utf-8")


STYLES = [save_like_vim, save_like_vs_code, save_like_nano, save_like_sed, save_like_git]


@pytest.fixture
def team(make_vault: MakeVault, shelves: Path, tmp_path: Path) -> Iterator[Vault]:
    """A vault of three lessons without a model; whatever watches it at the end is ended."""
    vault = kept_on(
        shelves / "watched", partial(make_vault, FILES, name="first"), tmp_path / "team"
    )
    yield vault
    if vault.index_dir.is_dir():
        launch.stop()
    for pid in watchers_of(vault.root):
        os.kill(pid, signal.SIGKILL)


def search(vault: Vault, *words: str) -> list[str]:
    """Search with the real command; give the paths."""
    hits = run("lessons", "search", "--json", *words, cwd=vault.root).json["hits"]
    return [hit["path"] for hit in hits]


def in_the_table(vault: Vault, word: str) -> bool:
    return any(word in row["text"] for row in rows(vault))


def log(vault: Vault) -> str:
    return (launch.folder() / launch.LOG).read_text()


# what is saved is found


@pytest.mark.slow
def test_saves_that_grow_a_vault_are_found_by_the_next_search(
    make_vault: MakeVault, with_model: Path, tmp_path: Path
) -> None:
    """Nothing that follows from the number of lessons holds a save: from 20 to 32 of them."""
    files = {f"old/{at}.md": lesson_text(f"Old {at}", f"Rule {at} of many.") for at in range(20)}
    vault = make_vault(files, indexed=True)
    try:
        with watched(vault):
            for number in range(12):
                word = f"zyzzyva{number}"
                write(vault.lessons_dir / f"new/{number}.md", lesson_text("New", f"Do {word}."))
                found = run("lessons", "search", "--json", word, cwd=vault.root)
                assert [hit["id"] for hit in found.json["hits"]][:1] == [f"new/{number}"]
                assert "another process" not in found.err
    finally:
        launch.stop()


@pytest.mark.slow
def test_what_an_editor_saves_is_indexed_by_itself(team: Vault) -> None:
    with watched(team):
        for number, save in enumerate(STYLES):
            word = f"zyzzyva{number}"
            save(
                team.lessons_dir / "devops/ci-cd/heap.md", lesson_text("Raise the heap", f"{word}.")
            )
            soon(partial(in_the_table, team, word))
        time.sleep(0.5)
    assert_same_as_a_rebuild(team)


@pytest.mark.slow
def test_who_searches_right_after_saving_finds_it(team: Vault) -> None:
    with watched(team):
        for number in range(5):
            write(team.lessons_dir / f"quick/{number}.md", lesson_text("Quick", f"zyzzyva{number}"))
            ran = run("lessons", "search", "--json", f"zyzzyva{number}", cwd=team.root)
            paths = [hit["path"] for hit in ran.json["hits"]]
            assert paths[:1] == [f"lessons/quick/{number}.md"], f"{ran.err}\n{log(team)}"


IMPATIENT = (  # a watcher that asks the system for events each second
    "from vault_index.watch import events; events.RETRY_SECONDS = 1\n"
    "from vault_index.entrypoints.cli import main; main(['watch'])"
)


@pytest.mark.slow
@pytest.mark.parametrize("limit", ["0 > /proc/sys/user/max_inotify_instances",
                                   "3 > /proc/sys/user/max_inotify_watches"])  # fmt: skip
def test_without_file_events_it_looks_by_itself(team: Vault, limit: str) -> None:
    """In a user namespace of its own, in which the system gives too few of them, and then enough."""
    place = limit.split()[-1]
    inner = f"echo {limit} && "
    probe = subprocess.run(["unshare", "-Ur", "sh", "-c", inner + "true"], capture_output=True)
    if probe.returncode:
        pytest.skip("this machine gives no user namespaces")
    inner += f"(while ! [ -e enough ]; do sleep .1; done; echo 8192 > {place}) & "
    process = subprocess.Popen(
        ["unshare", "-Ur", "sh", "-c", f'{inner}exec {sys.executable} -c "$0"', IMPATIENT],
        cwd=team.root,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout
        assert "no file events" in process.stdout.readline()
        write(team.lessons_dir / "quiet.md", lesson_text("Quiet", "Zyzzyva."))
        soon(lambda: len(rows(team)) == 4)
        write(team.lessons_dir / "quiet.md", lesson_text("Quiet", "Xylophone."))
        soon(lambda: any("Xylophone" in row["text"] for row in rows(team)))
        checked = run("lessons", "status", "--check", "--json", cwd=team.root, check=False).json
        (fix,) = (each["fix"] for each in checked["troubles"] if each["about"] == "watcher")
        named = Path(place).name.replace("inotify", "user")
        assert f"fs.inotify.{named}=" in fix
        (team.root / "enough").touch()
        soon(lambda: status(team)["events"] == "events")
        checked = run("lessons", "status", "--check", "--json", cwd=team.root, check=False).json
        assert "watcher" not in [each["about"] for each in checked["troubles"]]
    finally:
        process.terminate()
        out, _ = process.communicate(timeout=60)
    assert "no file events" not in out, "said once"


# the command line asks it


# one of it


@pytest.mark.slow
def test_background_status_and_stop(team: Vault) -> None:
    def watch(*options: str) -> str:
        return run("lessons", "watch", *options, cwd=team.root).out

    assert watch("--stop") == "there was no watcher\n"
    assert watch("--status") == f"{team.root} has no watcher\n"
    assert status(team) == {"running": False}
    piped = ("sh", "-c", '"$0" watch --background 3>&1 | cat', BIN / "lessons")  # until 3 is closed
    started = run(*piped, cwd=team.root, timeout=30).out
    assert started.startswith(f"watching {team.lessons_dir} (pid ")
    assert watch("--background").startswith(f"already watching {team.lessons_dir} (pid ")
    assert run("lessons", "watch", cwd=team.root).err == f"{team.root} has a watcher already\n"
    assert watch("--status").startswith(f"pid {watchers_of(team.root)[0]}, up ")
    assert ", 3 lessons, 0 questions" in watch("--status")
    assert "watcher    pid " in run("lessons", "status", cwd=team.root).out
    assert len(watchers_of(team.root)) == 1
    assert watch("--stop") == "stopped\n"
    assert watchers_of(team.root) == []
    assert "ended: asked to" in log(team)
    assert not any(Path(place).exists() for place in protocol.places())


@pytest.mark.slow
def test_in_the_foreground_it_tells_what_it_does_and_ends_with_ctrl_c(team: Vault) -> None:
    process = subprocess.Popen(
        [BIN / "lessons", "watch"], cwd=team.root, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout
    assert "watching" in process.stdout.readline()
    time.sleep(1)
    write(team.lessons_dir / "new.md", lesson_text("New", "Zyzzyva."))
    lines: list[str] = []
    while "1 added" not in "".join(lines):
        lines.append(process.stdout.readline())
    process.send_signal(signal.SIGINT)
    out, _ = process.communicate(timeout=60)
    assert process.returncode == 0
    assert out.endswith("ended: SIGINT\n")


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_however_it_ends_the_next_one_starts(team: Vault, number: signal.Signals) -> None:
    with watched(team) as first:
        os.kill(first["pid"], number)
        soon(lambda: not launch.is_running())
        assert "Raise the heap" in run("lessons", "search", "heap", cwd=team.root).out
        with watched(team) as second:
            assert second["pid"] != first["pid"]
            assert search(team, "heap")
            assert status(team)["questions"] == 1


@pytest.mark.slow
def test_a_hung_one_can_be_stopped(team: Vault) -> None:
    with watched(team) as state:
        os.kill(state["pid"], signal.SIGSTOP)
        assert run("lessons", "watch", "--stop", cwd=team.root).out == "stopped\n"
    assert watchers_of(team.root) == []


@pytest.mark.slow
@pytest.mark.parametrize("gone", [".vault_index", "."])
def test_it_ends_when_its_vault_or_index_is_gone(team: Vault, gone: str) -> None:
    with watched(team) as state:
        time.sleep(1)
        soon(lambda: not status(team)["indexing"])
        shutil.rmtree(team.root / gone)
        soon(lambda: state["pid"] not in watchers_of(team.root))
    assert not (team.root / gone).exists()


@pytest.mark.slow
def test_it_ends_when_the_package_is_upgraded(team: Vault, tmp_path: Path) -> None:
    site = tmp_path / "site"
    package = Path(sys.modules["vault_index"].__file__ or "").parent
    shutil.copytree(package, site / "vault_index")
    process = subprocess.Popen(
        [sys.executable, "-m", "vault_index", "watch"],
        cwd=team.root,
        env={**os.environ, "PYTHONPATH": str(site)},
        stdout=subprocess.PIPE,
        text=True,
    )
    soon(lambda: status(team)["running"])
    (site / "vault_index" / "search.py").touch()
    out, _ = process.communicate(timeout=60)
    assert out.endswith("ended: another version of lessons-vault was installed\n")
    assert process.returncode == 0


# the socket


def test_the_socket_is_in_the_users_folder_or_where_its_path_is_short(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LESSONS_HOME", "/home/me/.lessons")
    assert protocol.places()[0] == "/home/me/.lessons/watch/socket"
    monkeypatch.setenv("LESSONS_HOME", "/home/me" + "/deep" * 20)
    deep = protocol.places()
    assert [Path(one).parent for one in deep] == [Path(protocol.runtime_folder())]
    (tmp_path / "link").symlink_to("/home/me" + "/deep" * 20)
    monkeypatch.setenv("LESSONS_HOME", f"{tmp_path}/link")
    assert protocol.places() == deep


@pytest.mark.slow
def test_the_socket_is_the_users_own_and_nothing_listens_on_a_port(team: Vault) -> None:
    with watched(team) as state:
        place = Path(state["socket"])
        assert str(place) in protocol.places()
        assert place.stat().st_mode & 0o777 == 0o600
        assert place.parent.stat().st_mode & 0o777 == 0o700
        inodes = {
            link.removeprefix("socket:[").removesuffix("]")
            for file in Path(f"/proc/{state['pid']}/fd").iterdir()
            if (link := str(file.readlink())).startswith("socket:[")
        }
        for table in ("tcp", "tcp6", "udp", "udp6"):
            rows = Path("/proc/net", table).read_text().splitlines()[1:]
            assert not inodes & {row.split()[9] for row in rows}


@pytest.mark.slow
def test_another_user_is_refused(team: Vault) -> None:
    if os.getuid() != 0:
        pytest.skip("only root can be somebody else")
    with watched(team) as state:
        for folder in (team.index_dir, *team.index_dir.parents):
            folder.chmod(folder.stat().st_mode | 0o055)
        Path(state["socket"]).chmod(0o666)
        code = (
            "import os, sys; os.setgid(65534); os.setuid(65534); import socket\n"
            "s = socket.socket(socket.AF_UNIX); s.connect(sys.argv[1])\n"
            's.sendall(b\'{"protocol": 2, "ask": "status"}\\n\'); print(s.recv(100))'
        )
        done = subprocess.run(
            [sys.executable, "-I", "-c", code, state["socket"]],
            capture_output=True,
            text=True,
            cwd="/",
        )
        assert done.stdout in ("b''\n", ""), done
        assert '"pid"' not in done.stdout
        assert status(team)["running"]
