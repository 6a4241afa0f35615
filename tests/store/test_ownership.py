"""An index is believed only if this user made it, on this machine, for this checkout."""

from __future__ import annotations

import errno
import json
import os
import pwd
import shlex
import shutil
import stat
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.promises.hostile import KINDS
from tests.support.commands import run
from tests.support.files import MakeVault, commit, lesson_text, write
from vault_index import files
from vault_index.errors import ForeignIndexError, IndexStateError, VaultError
from vault_index.index import reconcile
from vault_index.retrieval import entries
from vault_index.store import manifest, ownership
from vault_index.vault import Vault, open_vault

HEAP = lesson_text("Heap", "Raise the heap when the build runs out of memory.")
PLANTED = lesson_text("Heap", "Planted text that stands in no lesson.")


@pytest.fixture
def team(make_vault: MakeVault) -> Vault:
    vault = make_vault({"heap.md": HEAP})
    commit(vault.root)
    reconcile.sync(vault)
    return vault


def texts(vault: Vault) -> list[str]:
    rows = open_vault(vault.root).open_index().store.rows(["text"])
    return [str(row["text"]) for row in rows]


def planted(tmp_path: Path, make_vault: MakeVault) -> Path:
    """An index of other text whose manifest names the hash of the real file."""
    other = make_vault({"heap.md": PLANTED}, name="other", indexed=True)
    found = manifest.current(other.index_dir)
    assert found is not None
    known = manifest.load(found)
    other.lessons_dir.joinpath("heap.md").write_text(HEAP)
    from vault_index.lesson.file import hash_of

    known.files["heap.md"].hash = hash_of(HEAP)
    stat_now = (other.lessons_dir / "heap.md").stat()
    known.files["heap.md"].stamp = list(files.stamp_of(stat_now))
    manifest.save(found, known)
    return other.index_dir


@pytest.mark.slow
def test_an_index_without_the_key_is_never_read(
    team: Vault, tmp_path: Path, make_vault: MakeVault
) -> None:
    """It is a cache: who copied one, or has one of an older version, need do nothing."""
    shutil.rmtree(team.index_dir)
    shutil.copytree(planted(tmp_path, make_vault), team.index_dir, copy_function=shutil.copy2)
    again = open_vault(team.root)
    with pytest.raises(IndexStateError):
        again.open_index()
    assert reconcile.sync(again).rebuilt == "first index"
    assert texts(again) == ["Raise the heap when the build runs out of memory."]


@pytest.mark.slow
@pytest.mark.parametrize("how", ["pulled", "cloned"])
def test_a_tracked_index_is_refused(
    team: Vault, tmp_path: Path, make_vault: MakeVault, how: str, own_world: Path
) -> None:
    evil = planted(tmp_path, make_vault)
    author = tmp_path / "author"
    run("git", "clone", "-q", team.root, author, cwd=tmp_path)
    shutil.copytree(evil, author / ".vault_index")
    run("git", "add", "-f", ".vault_index", cwd=author)
    run("git", "commit", "-q", "--no-verify", "-m", "an index", cwd=author)
    root = team.root
    if how == "pulled":
        run("git", "pull", "-q", author, "HEAD", cwd=root)
    else:
        root = tmp_path / "clone"
        run("git", "clone", "-q", author, root, cwd=tmp_path)
    before = snapshot(root / ".vault_index")
    for words in (("search", "heap"), ("list",), ("index",), ("sync",)):
        ran = run("lessons", *words, cwd=root, check=False)
        assert (ran.code, ran.out) == (1, "")
        assert "is tracked by git" in ran.err
        assert "rm -r -q -f .vault_index" in ran.err
        assert "Planted" not in ran.err
    assert "is tracked by git" in run("lessons", "status", cwd=root).out
    event = {"hook_event_name": "UserPromptSubmit", "prompt": "the build runs out of memory"}
    done = run("lessons-hook", cwd=root, stdin=json.dumps(event))
    assert (done.code, done.out, done.err) == (0, "", "")
    assert "is tracked by git" in (own_world / "hook.log").read_text()
    assert snapshot(root / ".vault_index") == before
    run("git", "rm", "-r", "-q", "-f", ".vault_index", cwd=root)
    assert "Raise the heap" in run("lessons", "search", "heap", cwd=root).out


def snapshot(folder: Path) -> dict[str, tuple[int, bytes]]:
    """Return what each name below a folder is, without following links."""
    found = {}
    for path in [folder, *sorted(folder.rglob("*"))]:
        mode = path.lstat().st_mode
        data = path.read_bytes() if stat.S_ISREG(mode) else b""
        data = os.fsencode(path.readlink()) if stat.S_ISLNK(mode) else data
        found[str(path)] = (stat.S_IFMT(mode), data)
    return found


@pytest.mark.slow
def test_a_link_is_refused(team: Vault, tmp_path: Path) -> None:
    """`ln -s .. .vault_index`: what is beside the clone was removed."""
    old = write(tmp_path / "old" / "manifest.json", "{}").parent
    os.utime(old / "manifest.json", (1, 1))
    write(tmp_path / "building" / "house.txt", "mine\n")
    shutil.rmtree(team.index_dir)
    team.root.joinpath(".vault_index").symlink_to("..")
    before = snapshot(old) | snapshot(tmp_path / "building")
    for words in (("search", "heap"), ("index", "--rebuild"), ("watch", "--background")):
        ran = run("lessons", *words, cwd=team.root, check=False)
        assert ran.code == 1
        assert f"rm {team.root}/.vault_index" in ran.err
    for name in ("UserPromptSubmit", "SessionStart"):
        event = {"hook_event_name": name, "prompt": "the build runs out of memory"}
        assert run("lessons-hook", cwd=team.root, stdin=json.dumps(event)).out == ""
    assert "is a link" in run("lessons", "status", cwd=team.root).out
    assert snapshot(old) | snapshot(tmp_path / "building") == before
    assert not (tmp_path / ".gitignore").exists()


def give_away(patch: pytest.MonkeyPatch, *paths: Path) -> None:
    """Let paths seem to belong to another user: only root could do it for real."""
    look = Path.lstat

    def lstat(path: Path) -> os.stat_result:
        found = look(path)
        values = [*found]
        values[stat.ST_UID] += path in paths
        return os.stat_result(values)

    patch.setattr(Path, "lstat", lstat)


def to_own(folder: Path) -> str:
    user = pwd.getpwuid(os.geteuid()).pw_name
    return f"{'sudo ' if os.geteuid() else ''}chown -R {user} {folder}"


@pytest.mark.slow
def test_an_index_of_another_user_says_chown(team: Vault, monkeypatch: pytest.MonkeyPatch) -> None:
    """Issue 55, row 2: root wrote it in a container, and the user outside cannot read it."""
    give_away(monkeypatch, team.index_dir)
    for words in (("search", "heap"), ("list",), ("index",), ("index", "--rebuild")):
        ran = run("lessons", *words, cwd=team.root, check=False)
        assert (ran.code, ran.out) == (1, "")
        assert ran.err.endswith(
            f"Error: {team.root}/.vault_index belongs to another user\n"
            f"Try: {to_own(team.root / '.vault_index')}\n"
        )
    assert (
        f"   {to_own(team.root / '.vault_index')}\n" in run("lessons", "status", cwd=team.root).out
    )


def test_without_a_name_chown_gets_the_number(team: Vault, monkeypatch: pytest.MonkeyPatch) -> None:
    def unnamed(number: int) -> None:
        raise KeyError(number)

    give_away(monkeypatch, team.index_dir)
    monkeypatch.setattr(pwd, "getpwuid", unnamed)
    with pytest.raises(ForeignIndexError) as caught:
        _ = open_vault(team.root).index_dir
    assert f"chown -R {os.geteuid()} " in caught.value.hint


@pytest.mark.slow
@pytest.mark.skipif(
    os.geteuid() != 0, reason="only root may change an owner; others run the test above"
)
def test_hooks_are_silent_at_an_index_that_was_given_away(team: Vault, own_world: Path) -> None:
    for path in (team.index_dir, *team.index_dir.rglob("*")):
        os.lchown(path, 65534, 65534)
    event = {"hook_event_name": "UserPromptSubmit", "prompt": "the build runs out of memory"}
    done = run("lessons-hook", cwd=team.root, stdin=json.dumps(event))
    assert (done.code, done.out, done.err) == (0, "", "")
    assert "belongs to another user" in (own_world / "hook.log").read_text()
    ran = run("lessons", "search", "heap", cwd=team.root, check=False)
    assert ran.err.endswith(f"Try: {to_own(team.root / '.vault_index')}\n")
    run(*shlex.split(to_own(team.root / ".vault_index")), cwd=team.root)
    assert "Raise the heap" in run("lessons", "search", "heap", cwd=team.root).out


@pytest.mark.parametrize(
    "inside", ["", "owner", "20261129-100000-abcd", "20261129-100000-abcd/manifest.json"]
)
def test_a_file_of_another_user_in_it_says_so_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, inside: str
) -> None:
    """`sudo lessons` with another home leaves a part that cannot be read."""
    folder = tmp_path / ".vault_index"
    place = write(folder / "20261129-100000-abcd/manifest.json", "{}")
    write(folder / "owner", "")
    read = folder / "owner" if inside == "owner" else place
    refused = PermissionError(errno.EACCES, "Permission denied")
    assert ownership.unreadable_index(read, refused).hint == "make it readable"
    give_away(monkeypatch, folder / inside)
    assert ownership.unreadable_index(read, refused).hint == to_own(folder)
    full = OSError(errno.EIO, "Input/output error")
    assert ownership.unreadable_index(read, full).hint == "check the disk, and mount it again"


@pytest.mark.slow
def test_where_the_vault_can_be_read_only_anothers_index_is_left_for_one_in_the_home(
    team: Vault, monkeypatch: pytest.MonkeyPatch, own_world: Path
) -> None:
    """An image has a checkout with an index of root: nobody else can give it away, or remove it."""
    give_away(monkeypatch, team.root / ".vault_index")
    access = os.access
    monkeypatch.setattr(os, "access", lambda path, mode: path != team.root and access(path, mode))
    assert "Raise the heap" in run("lessons", "search", "heap", cwd=team.root).out
    assert open_vault(team.root).index_dir.is_relative_to(own_world / ownership.ELSEWHERE)


NAMES = ("watch.lock", "watch.log", "background.log", "lock")


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["link", "dangling", "second name", "pipe", "socket", "folder"])
def test_what_has_our_names_but_is_not_our_file_is_not_opened(
    team: Vault, tmp_path: Path, kind: str
) -> None:
    mine = write(tmp_path / "mine", "mine\n")
    for name in (*NAMES, "current", "owner", ".gitignore"):
        path = team.root / ".vault_index" / name
        path.unlink(missing_ok=True)
        KINDS[kind](path, mine)
        for flags in (os.O_RDONLY, os.O_WRONLY | os.O_CREAT, os.O_RDWR | os.O_CREAT | os.O_APPEND):
            with pytest.raises(OSError, match="Errno"):
                os.close(ownership.open_file(path, flags))
    assert mine.read_text() == "mine\n"
    assert not (tmp_path / "new-mine").exists()
    reconcile.sync(open_vault(team.root))  # the mark is no longer there, so all of them go
    assert [row.id for row in entries.entries(open_vault(team.root))] == ["heap"]
    assert mine.read_text() == "mine\n"
    assert not (tmp_path / "new-mine").exists()


@pytest.mark.parametrize("kind", ["link", "pipe", "socket"])
def test_a_table_with_a_link_in_it_is_not_opened(team: Vault, tmp_path: Path, kind: str) -> None:
    found = manifest.current(team.index_dir)
    assert found is not None
    KINDS[kind](found / "lessons.lance" / "data" / "more", write(tmp_path / "mine", "mine\n"))
    with pytest.raises(VaultError) as raised:
        open_vault(team.root).open_index().store.count()
    assert raised.value.message == (
        f"the index at {found} is damaged: lessons.lance/data/more is a link, "
        "or no file of this user alone: remove it"
    )


@pytest.mark.slow
def test_what_is_not_ours_by_name_stays(team: Vault) -> None:
    folder = team.index_dir
    (folder / "owner").unlink()
    write(folder / "notes" / "mine.txt", "mine\n")
    write(folder / "old" / "manifest.json", "{}")
    reconcile.sync(open_vault(team.root))
    names = {path.name for path in folder.iterdir()}
    assert {"notes", "old", "owner", "current"} <= names
    assert len([name for name in names if ownership.INDEX_NAME.fullmatch(name)]) == 1


@pytest.mark.slow
def test_a_copy_a_move_and_a_worktree_have_an_index_of_their_own(
    team: Vault, tmp_path: Path
) -> None:
    shutil.copytree(team.root, tmp_path / "copy")
    run("git", "worktree", "add", "-q", tmp_path / "tree", cwd=team.root)
    team.root.rename(tmp_path / "moved")
    for name in ("copy", "tree", "moved"):
        vault = open_vault(tmp_path / name)
        assert manifest.current(vault.index_dir) is None
        assert reconcile.sync(vault).rebuilt == "first index"
        assert reconcile.sync(open_vault(vault.root)).rebuilt == ""


def test_without_the_users_folder_the_index_is_built_again(team: Vault, own_world: Path) -> None:
    (own_world / "index.key").unlink()
    with pytest.raises(IndexStateError):
        open_vault(team.root).open_index()
    assert reconcile.sync(open_vault(team.root)).rebuilt == "first index"


def test_the_key_is_made_once_and_is_the_users_alone(own_world: Path, tmp_path: Path) -> None:
    folders = [tmp_path / f"v{number}" / ".vault_index" for number in range(10)]
    for folder in folders:
        folder.parent.mkdir()
    with ThreadPoolExecutor(10) as pool:
        list(pool.map(ownership.claim, folders))
    assert all(map(ownership.is_ours, folders))
    key = own_world / "index.key"
    assert stat.S_IMODE(key.stat().st_mode) == 0o600
    assert len(key.read_bytes()) == 64
