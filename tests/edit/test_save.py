"""A lesson file that is edited in a page: every byte that its author did not touch stays."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.files import MakeVault, write
from vault_index.edit import save
from vault_index.errors import ChangedError, LessonError, VaultError
from vault_index.lesson.file import LessonFile
from vault_index.vault import Vault

PATH = "lessons/heap.md"
SECRET = "Deploy with AWS_SECRET_ACCESS_KEY=q8Lr2Vn0XsT5uKd9Zb3EwYcAf7HgJp1MoRi6NtQe\n"


def saved(vault: Vault, data: bytes, old: str, new: str) -> bytes:
    """Return a file of these bytes as it is after a text in it was replaced in a page."""
    file = write(vault.root / PATH, data)
    seen = save.read(vault, PATH)
    save.write(vault, PATH, seen.replace(old, new), seen)
    return file.read_bytes()


@pytest.mark.parametrize(
    ("data", "after"),
    [
        (b"One.\nTwo.\nThree.\n", b"One.\n2\nb\nThree.\n"),
        (b"One.\r\nTwo.\r\nThree.\r\n", b"One.\r\n2\r\nb\r\nThree.\r\n"),
        (b"\xef\xbb\xbfOne.\r\nTwo.\r\nThree.", b"\xef\xbb\xbfOne.\r\n2\r\nb\r\nThree."),
        (b"One.\nTwo.\r\nThree.\r\n", b"One.\n2\r\nb\r\nThree.\r\n"),
        (b"One.\r\nTwo.\nThree.\nFour.\n", b"One.\r\n2\nb\nThree.\nFour.\n"),
    ],
)
def test_line_ends_stay_as_their_author_has_them(
    make_vault: MakeVault, data: bytes, after: bytes
) -> None:
    assert saved(make_vault(), data, "Two.", "2\nb") == after


LINES = st.lists(st.sampled_from(["a", "b", "", "é", "\x0b", "\u2028"]), max_size=8)


@settings(max_examples=200, deadline=None)
@given(LINES, LINES, st.booleans(), st.sampled_from(["", "\ufeff"]))
def test_what_is_saved_reads_as_it_was_typed(
    old: list[str], new: list[str], is_windows: bool, bom: str
) -> None:
    end = "\r\n" if is_windows else "\n"
    file = LessonFile.of((bom + end.join(old)).encode(), PATH)
    text = "\n".join(new)
    written = save.with_ends_of(file, text)
    assert written.startswith(bom)
    assert written.removeprefix(bom).replace("\r\n", "\n") == text
    assert save.with_ends_of(file, "\n".join(old)) == bom + end.join(old)


def test_a_file_that_changed_since_it_was_seen_stays(make_vault: MakeVault) -> None:
    vault = make_vault({"heap.md": "Ours.\n"})
    seen = save.read(vault, PATH)
    file = write(vault.root / PATH, "Theirs.\n")
    with pytest.raises(ChangedError, match="was saved since"):
        save.write(vault, PATH, "Mine.\n", seen)
    assert file.read_text() == "Theirs.\n"
    assert save.changes(vault, PATH, seen) == ("Theirs.\n", ["@@ -1 +1 @@", "-Ours.", "+Theirs."])
    assert save.changes(vault, PATH, "Theirs.\n") == ("Theirs.\n", [])
    file.unlink()
    with pytest.raises(ChangedError, match="is gone"):
        save.write(vault, PATH, "Mine.\n", seen)
    assert not file.exists()


def test_an_error_is_refused_and_one_that_was_there_is_not(make_vault: MakeVault) -> None:
    vault = make_vault({"heap.md": "Raise it.\n"})
    for text in (f"Raise it.\n{SECRET}", "---\ntitle: [\n---\nx\n", " \n", "a \ud800 b"):
        with pytest.raises(VaultError):
            save.write(vault, PATH, text, "Raise it.\n")
    file = write(vault.root / PATH, SECRET)
    save.write(vault, PATH, f"A second line.\n{SECRET}", SECRET)
    assert file.read_text().startswith("A second line.")


def test_what_a_page_cannot_hold_is_not_edited_in_it(make_vault: MakeVault) -> None:
    vault = make_vault()
    for data in (b"caf\xe9\n", b"a\0b\n", b"a\rb\n", b"x" * 3_000_000):
        write(vault.root / PATH, data)
        with pytest.raises(LessonError):
            save.read(vault, PATH)


@pytest.mark.parametrize(
    "path",
    [
        *("../out.md", "lessons/../../out.md", "lessons/../out.md", "/etc/passwd.md", "out.md"),
        *("lessons/.git/x.md", "lessons/.hidden.md", "lessons//heap.md", "lessons/./heap.md"),
        *("lessons/vault.toml", "lessons/heap.txt", "lessons/.md", "lessons", "lessons/", ""),
        *("lessons/a\0.md", "lessons/a\n.md", "lessons\\heap.md", "lessons/..\\out.md"),
        *("lessons/linked/out.md", "lessons/link.md", "lessons/theirs/x.md", "lessons/pipe.md"),
        *("lessons/folder.md", "LESSONS/heap.md", "./lessons/heap.md", f"lessons/{'a' * 2000}.md"),
    ],
)
def test_nothing_but_a_lesson_file_is_read_or_written(
    make_vault: MakeVault, tmp_path: Path, path: str
) -> None:
    import os

    vault = make_vault({"heap.md": "Raise it.\n", "theirs/x.md": "Theirs.\n"})
    outside = write(tmp_path / "out.md", "Raise it.\n")
    (vault.lessons_dir / "linked").symlink_to(tmp_path)
    (vault.lessons_dir / "link.md").symlink_to(outside)
    (vault.lessons_dir / "theirs" / ".git").mkdir()
    (vault.lessons_dir / "folder.md").mkdir()
    os.mkfifo(vault.lessons_dir / "pipe.md")
    with pytest.raises(VaultError):
        save.read(vault, path)
    with pytest.raises(VaultError):
        save.write(vault, path, "Mine.\n", "Raise it.\n")
    assert outside.read_text() == "Raise it.\n"
    assert (vault.lessons_dir / "theirs/x.md").read_text() == "Theirs.\n"
