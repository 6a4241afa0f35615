"""An index is believed only if this user made it, on this machine, for this checkout."""

from __future__ import annotations

import json
import os
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
from vault_index.search import entries
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


def test_a_folder_of_another_user_is_refused(team: Vault, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)
    with pytest.raises(ForeignIndexError, match="another user"):
        _ = team.index_dir


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
