"""Names that a colleague's disk cannot hold: `check` names them, and no command makes one."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.commands import run
from tests.support.files import MakeVault, commit, lesson_text, write
from vault_index import check
from vault_index.edit import add, categories, ingest
from vault_index.errors import VaultError
from vault_index.lesson import portable
from vault_index.vault import Vault

CLASHES = [
    ("Ops/deploy.md", "ops/deploy.md"),
    ("ops/deploy.md", "ops/Deploy.md"),
    ("ops/STRASSE.md", "ops/straße.md"),
    ("ops/\u00c9tat.md", "ops/e\u0301tat.md"),  # another case, and taken apart
    ("ops/\u00e9tat.md", "ops/e\u0301tat.md"),
]
UNHOLDABLE = [
    *("nul.md", "AUX.md", "com1.md", "lpt9.notes.md", "con/heap.md", "ops/prn .md", "com¹.md"),
    *("a:b.md", 'say "no".md', "what?.md", "a*b.md", "a|b.md", "<a>.md", "back\\slash.md"),
    *("dot..md", "space .md", "ops./heap.md", "git~1/a.md", f"{'deep/' * 36}heap.md"),
]
HOLDABLE = [
    "console.md",
    "auxiliary.md",
    "com10.md",
    "nullable.md",
    ".net.md",
    "c++.md",
    "naïve.md",
]


def found(vault: Vault, *paths: str) -> list[tuple[str, str, str]]:
    among = paths or [file.path for file in vault.files()[0]]
    return [(one.path, one.rule, one.severity) for one in check.of_names(vault, among)]


@pytest.mark.parametrize(("one", "other"), CLASHES)
def test_two_names_that_are_one_on_other_disks_are_an_error(
    make_vault: MakeVault, one: str, other: str
) -> None:
    vault = make_vault({one: lesson_text("A", "One."), other: lesson_text("B", "Two.")})
    ((path, rule, severity),) = found(vault)
    assert (rule, severity) == ("same-name", check.ERROR)
    assert path in (f"lessons/{one}", f"lessons/{other}")
    # whichever of the two a commit or a pull request brings
    for new in (one, other):
        assert found(vault, new) == [(f"lessons/{new}", "same-name", check.ERROR)]


@pytest.mark.parametrize("path", UNHOLDABLE)
def test_a_name_that_windows_refuses_is_a_warning(make_vault: MakeVault, path: str) -> None:
    vault = make_vault({path: lesson_text("A", "Text.")})
    assert found(vault) == [(f"lessons/{path}", "file-name", check.WARNING)]


@pytest.mark.parametrize("path", HOLDABLE)
def test_an_ordinary_name_is_none_of_these(path: str) -> None:
    assert portable.problem(path) == ""
    assert portable.file_name(path.removesuffix(".md")) == path.removesuffix(".md")


@pytest.mark.parametrize(
    "stem", ["aux", "COM1", "nul.txt", "a:b", 'x?"y', "end.", "end ", "git~1", "con. ", "lpt³"]
)
def test_a_name_that_we_make_is_one_that_any_disk_holds(stem: str) -> None:
    assert portable.problem(f"{portable.file_name(stem)}.md") == ""


# No command makes one (case P39).


def test_added_and_sent_lessons_get_names_that_any_disk_holds(make_vault: MakeVault) -> None:
    vault = make_vault()
    added = add.write(vault, b"The aux cable of the pier is red.\n", title="aux")
    assert added.name == "aux-lesson.md"
    id, sent, _ = ingest.ingest(vault, "# Cable\n\nIt is red.", id="ops/nul.txt")
    assert (id, sent.name) == ("ops/nul.txt", "nul-txt-lesson.md")
    with pytest.raises(VaultError, match="con is a device on Windows"):
        add.write(vault, b"Text.\n", title="Heap", categories=["con"])
    with pytest.raises(VaultError, match="prn is a device on Windows"):
        ingest.ingest(vault, "# Heap\n\nText.", id="prn/heap")


def test_a_lesson_is_added_to_the_folder_of_another_case(make_vault: MakeVault) -> None:
    vault = make_vault({"Ops/Deploy.md": lesson_text("Deploy", "Text.")})
    other = add.write(vault, b"Ropes and buckets.\n", title="Ropes", categories=["ops"])
    assert other == vault.lessons_dir / "Ops/ropes.md"
    with pytest.raises(VaultError, match=r"lessons/Ops/Deploy\.md is there already"):
        add.write(vault, b"Something else.\n", title="DEPLOY", categories=["OPS"])


def test_a_move_and_a_rename_make_none(make_vault: MakeVault) -> None:
    vault = make_vault(
        {"ops/nul.md": lesson_text("A", "Text."), "Web/x.md": lesson_text("B", "B.")}
    )
    with pytest.raises(VaultError, match="con is a device"):
        categories.move(vault, "Web/x.md", "con")
    with pytest.raises(VaultError, match="aux is a device"):
        categories.plan(vault, "web", "aux")
    assert categories.move(vault, "ops/nul.md", "web").to == "Web/nul-lesson.md"


@pytest.mark.slow
def test_an_import_makes_none(make_vault: MakeVault, tmp_path: Path, text_only: None) -> None:
    vault = make_vault()
    notes = tmp_path / "notes"
    for name in ("aux", "a:b", "end."):
        write(notes / f"{name}.md", f"# About {name}\n\nThe rope of {name} is red.\n")
    run("lessons", "import", notes, "--write", cwd=vault.root)
    paths = [file.path for file in vault.files()[0]]
    assert len(paths) == 3
    assert [portable.problem(path) for path in paths] == ["", "", ""]


@pytest.mark.slow
def test_a_pull_request_and_a_commit_are_checked(make_vault: MakeVault, text_only: None) -> None:
    vault = make_vault({"ops/deploy.md": lesson_text("Deploy", "With the crane.")})
    commit(vault.root)
    write(vault.lessons_dir / "Ops/deploy.md", lesson_text("Other", "By ship, at noon."))
    write(vault.lessons_dir / "ops/nul.md", lesson_text("Device", "A rope for the pier."))
    run("git", "add", "-A", cwd=vault.root)
    staged = run("lessons", "check", "--staged", cwd=vault.root, check=False)
    against = run("lessons", "check", "--against", "HEAD", cwd=vault.root, check=False)
    for ran in (staged, against):
        assert ran.code == 1
        assert "lessons/Ops/deploy.md:1: same-name: the same name as" in ran.out + ran.err
        assert "lessons/ops/nul.md:1: file-name: warning: nul.md is a device" in ran.out + ran.err
