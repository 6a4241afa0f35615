"""A save made while a command rewrites files is never lost, whichever command and whichever moment.

No test sleeps: a hook runs the other program's save when the command makes its temporary file, which
is after the command has read and compared the file.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.support.files import MakeVault, lesson_text, write
from vault_index import files
from vault_index.edit import add, categories, filing, import_lessons, remove, update
from vault_index.errors import ChangedError, VaultError, WriteError
from vault_index.index.classifier import ProbableCategories
from vault_index.vault import Vault, open_vault

Hook = Callable[[str, Callable[[], object]], None]
DECLARED = "---\ncategories: [a]\n---\nText.\n"


def save(path: Path, content: str) -> None:
    """Save as an editor does: a file beside it, renamed into place."""
    beside = path.with_name(f"{path.name}.swp")
    write(beside, content)
    beside.replace(path)


def save_in_place(path: Path, content: str) -> None:
    """Save as other editors do: into the file that is there."""
    path.write_text(content)


@pytest.fixture
def when_writing(monkeypatch: pytest.MonkeyPatch) -> Hook:
    """Run something, once, when a temporary file for a name is made."""

    def hook(name: str, action: Callable[[], object]) -> None:
        make = os.open
        done: list[bool] = []

        def watched(path: Any, *args: Any, **kwargs: Any) -> int:
            made = make(path, *args, **kwargs)
            if name in str(path) and str(path).endswith(files.TEMPORARY) and not done:
                done.append(True)
                action()
            return made

        monkeypatch.setattr(os, "open", watched)

    return hook


@pytest.fixture(params=[save, save_in_place])
def saving(request: pytest.FixtureRequest) -> Callable[[Path, str], None]:
    """The two ways in which editors save."""
    how: Callable[[Path, str], None] = request.param
    return how


def tree_of(folder: Path) -> dict[str, bytes]:
    return {str(f.relative_to(folder)): f.read_bytes() for f in folder.rglob("*") if f.is_file()}


def test_mv_undoes_itself_and_keeps_the_save(
    make_vault: MakeVault, when_writing: Hook, saving: Callable[[Path, str], None]
) -> None:
    vault = make_vault({f"a/{n}.md": DECLARED for n in "xyz"})
    before = tree_of(vault.lessons_dir)
    saved = "---\ncategories: [a]\n---\nA paragraph typed while mv ran.\n"
    planned = categories.plan(vault, "a", "b")
    when_writing("x.md", lambda: saving(vault.lessons_dir / "a/z.md", saved))
    with pytest.raises(WriteError, match=r"a/z\.md has changed meanwhile; nothing was done to it"):
        categories.apply(vault, planned)
    assert tree_of(vault.lessons_dir) == before | {"a/z.md": saved.encode()}
    categories.apply(vault, categories.plan(vault, "a", "b"))
    after = tree_of(vault.lessons_dir)
    assert set(after) == {"b/x.md", "b/y.md", "b/z.md", "vault.toml"}
    assert after["b/z.md"] == saved.replace("[a]", "[b]").encode()


def test_the_file_itself_saved_between_compare_and_replace(
    make_vault: MakeVault, when_writing: Hook, saving: Callable[[Path, str], None]
) -> None:
    vault = make_vault({"x.md": DECLARED})
    file = vault.lessons_dir / "x.md"
    planned = categories.plan(vault, "a", "b")
    when_writing("x.md", lambda: saving(file, "Saved.\n"))
    with pytest.raises(ChangedError) as raised:
        categories.apply(vault, planned)
    assert raised.value.hint
    assert tree_of(vault.lessons_dir).keys() == {"x.md", "vault.toml"}
    assert file.read_text() == "Saved.\n"


def test_classify_leaves_a_file_saved_meanwhile_and_writes_the_others(
    make_vault: MakeVault, when_writing: Hook
) -> None:
    vault = make_vault({f"{n}.md": lesson_text(n, n) for n in "xyz"})
    proposals = [
        ProbableCategories(n, f"lessons/{n}.md", n, ("devops",), 0.9, ("because",)) for n in "xyz"
    ]
    when_writing("y.md", lambda: save(vault.lessons_dir / "y.md", "Saved.\n"))
    written, failed = filing.write(vault, proposals)
    assert list(written) == ["lessons/x.md", "lessons/z.md"]
    assert len(failed) == 1
    assert "y.md has changed meanwhile; nothing was done to it" in failed[0]
    assert (vault.lessons_dir / "y.md").read_text() == "Saved.\n"


def test_import_does_not_overwrite_what_came_meanwhile(
    make_vault: MakeVault, when_writing: Hook
) -> None:
    vault = make_vault(indexed=True)
    line = json.dumps({"title": "Heap", "text": "Raise it.", "category": "a"})
    planned = import_lessons.plan(vault, line.encode(), format="jsonl")
    when_writing("heap.md", lambda: write(vault.lessons_dir / "a/heap.md", "Mine."))
    assert import_lessons.apply(vault, planned) == []
    assert (vault.lessons_dir / "a/heap.md").read_text() == "Mine."


def test_import_that_fails_keeps_what_was_edited_since_it_wrote_it(make_vault: MakeVault) -> None:
    vault = make_vault(indexed=True)
    lines = [{"title": t, "text": f"{t} is this.", "category": c} for t, c in
             (("One", "a"), ("Two", "b"), ("Three", "c"))]  # fmt: skip
    source = "\n".join(map(json.dumps, lines)).encode()
    planned = import_lessons.plan(vault, source, format="jsonl")
    write(vault.lessons_dir / "c", "a file where a folder should be")

    def show(number: int, _: int) -> None:
        if number == 1:
            save(vault.lessons_dir / "a/one.md", "Edited at once.")

    with pytest.raises(WriteError):
        import_lessons.apply(vault, planned, show)
    assert tree_of(vault.lessons_dir).keys() == {"a/one.md", "c", "vault.toml"}


@pytest.mark.parametrize(
    ("file", "error", "change"),
    [
        ("x.md", "changed meanwhile", lambda vault: update.write(vault, "x", text="Changed.")),
        ("x.md", "changed meanwhile", lambda vault: remove.delete(vault, "x#one")),
        ("heap.md", "is there already", lambda vault: add.write(vault, b"Raise it.", title="Heap")),
    ],
)
def test_a_change_of_one_file_leaves_what_was_saved_meanwhile(
    make_vault: MakeVault,
    when_writing: Hook,
    file: str,
    error: str,
    change: Callable[[Vault], object],
) -> None:
    vault = make_vault({"x.md": "# X\n\nText.\n\n## Lesson: One\n\n1\n"}, indexed=True)
    before = tree_of(vault.lessons_dir)
    when_writing(file, lambda: save(vault.lessons_dir / file, "Saved.\n"))
    with pytest.raises(VaultError, match=error):
        change(vault)
    assert tree_of(vault.lessons_dir) == before | {file: b"Saved.\n"}


def test_a_kill_at_any_step_leaves_the_old_or_the_new(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At each call of the system that a change makes, the name leads to a whole file."""
    file = write(tmp_path / "x.md", "old")
    seen: list[str] = []
    for name in ("rename", "replace", "unlink", "link", "fchmod", "open"):
        call = getattr(os, name)

        def look(*args: Any, call: Any = call, **kwargs: Any) -> Any:
            seen.append(file.read_bytes().decode())
            return call(*args, **kwargs)

        monkeypatch.setattr(os, name, look)
    files.change_file(file, b"new", expected=b"old", within=tmp_path)
    monkeypatch.undo()
    assert set(seen) <= {"old", "new"}
    assert "old" in seen
    assert file.read_text() == "new"


def test_after_a_kill_at_any_step_of_mv_running_it_again_completes_it(
    make_vault: MakeVault, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    vault = make_vault({"a/x.md": DECLARED, "a/y.md": lesson_text("Y", "y"), "z.md": DECLARED})
    write(vault.lessons_dir / "a/picture.png", b"\x89PNG")
    states: list[Path] = []
    for name in ("rename", "replace"):
        call = getattr(os, name)

        def kept(old: Any, new: Any, *, call: Any = call, **folders: int) -> None:
            for _ in range(2):  # before the step, and after it
                states.append(tmp_path / f"state{len(states)}")
                shutil.copytree(vault.root, states[-1])
                if len(states) % 2:
                    call(old, new, **folders)

        monkeypatch.setattr(os, name, kept)
    categories.apply(vault, categories.plan(vault, "a", "b"))
    monkeypatch.undo()
    wanted = tree_of(vault.lessons_dir)
    assert len(states) == 10
    for state in states:
        again = open_vault(state)
        with contextlib.suppress(VaultError):  # no lesson is in a: it was done
            categories.apply(again, categories.plan(again, "a", "b"))
        left = tree_of(again.lessons_dir)
        assert {p: d for p, d in left.items() if not Path(p).name.startswith(".")} == wanted
