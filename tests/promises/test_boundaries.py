"""What writes stays inside the vault: not through a link out of it, not in another repository in it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.commands import run
from tests.support.files import MakeVault, commit, lesson_text, write
from vault_index.edit import add, filing, import_lessons, init, update
from vault_index.errors import VaultError, WriteError
from vault_index.index import reconcile
from vault_index.index.classifier import ProbableCategories
from vault_index.vault import Vault

DECLARED = "---\ncategories: [devops/ci]\n---\n# {0}\n\n{0} is this.\n"


def everything_in(folder: Path) -> dict[str, bytes]:
    return {str(f.relative_to(folder)): f.read_bytes() for f in folder.rglob("*") if f.is_file()}


@pytest.fixture(params=["nested repository", "submodule"])
def with_repository(request: pytest.FixtureRequest, make_vault: MakeVault, tmp_path: Path) -> Vault:
    """A vault in which devops/shared is a repository of its own, with one lesson."""
    vault = make_vault({"devops/heap.md": lesson_text("Heap", "Raise it.")})
    theirs = tmp_path / "shared"
    run("git", "init", "-q", theirs, cwd=tmp_path)
    write(theirs / "vpn.md", DECLARED.format("VPN"))
    write(theirs / "picture.png", b"\x89PNG")
    commit(theirs)
    if request.param == "submodule":
        words = ("-c", "protocol.file.allow=always", "submodule", "--quiet", "add")
        run("git", *words, theirs, "lessons/devops/shared", cwd=vault.root)
    else:
        run("git", "clone", "-q", theirs, vault.lessons_dir / "devops/shared", cwd=tmp_path)
    return vault


@pytest.mark.parametrize(
    ("old", "new"),
    [("devops", "ops"), ("devops/shared", "vpn"), ("team", "devops/shared/team")],
)
def test_mv_moves_nothing_in_into_or_out_of_another_repository(
    with_repository: Vault, old: str, new: str
) -> None:
    write(with_repository.lessons_dir / "team/x.md", lesson_text("X", "x"))
    before = everything_in(with_repository.lessons_dir)
    ran = run(
        "lessons",
        "categories",
        "rename",
        old,
        new,
        "--write",
        cwd=with_repository.root,
        check=False,
    )
    assert (ran.code, ran.out) == (1, "")
    assert ran.err.splitlines() == [
        "Error: lessons/devops/shared is a git repository of its own, which is left alone",
        "Try: change it there, with git",
    ]
    assert everything_in(with_repository.lessons_dir) == before


def test_add_import_and_classify_leave_another_repository_alone(with_repository: Vault) -> None:
    reconcile.sync(with_repository)
    write(with_repository.lessons_dir / "devops/shared/new.md", "# New\n\nText.\n")
    before = everything_in(with_repository.lessons_dir)
    with pytest.raises(VaultError, match="git repository of its own"):
        add.write(with_repository, b"Text.", title="T", categories=["devops/shared/x"])
    line = json.dumps({"title": "Heap", "text": "Text", "category": "devops/shared"})
    planned = import_lessons.plan(with_repository, line.encode(), format="jsonl")
    assert planned.to_write == []
    assert "git repository of its own" in planned.problems[0]
    path = "lessons/devops/shared/new.md"
    proposal = ProbableCategories("new", path, "New", ("devops",), 0.9, ())
    written, failed = filing.write(with_repository, [proposal])
    assert written == {}
    assert "git repository of its own" in failed[0]
    assert everything_in(with_repository.lessons_dir) == before


@pytest.fixture
def linked(make_vault: MakeVault, tmp_path: Path) -> Vault:
    """A vault with a linked folder, which leads out of it."""
    vault = make_vault({"a/x.md": lesson_text("X", "x"), "y.md": lesson_text("Y", "y")})
    reconcile.sync(vault)
    (tmp_path / "out").mkdir()
    (vault.lessons_dir / "devops").symlink_to(tmp_path / "out")
    return vault


@pytest.mark.parametrize(
    "line",
    [
        *("add --title T --text t -c devops", "add --title T --text t -c devops/x/y"),
        *("import --write -c devops - --json", "categories rename a devops --write"),
    ],
)
def test_nothing_is_written_through_a_linked_folder(
    linked: Vault, tmp_path: Path, line: str
) -> None:
    stdin = json.dumps({"title": "Heap", "text": "Text", "category": "devops"})
    ran = run("lessons", *line.split(), cwd=linked.root, stdin=stdin, check=False)
    assert ran.code == 1
    assert "is a link" in ran.err + ran.out
    assert list((tmp_path / "out").iterdir()) == []


@pytest.mark.parametrize(
    "words",
    [
        ("edit", "a/x"),
        ("rm", "a/x", "--yes"),
        ("edit", "y"),
        ("rm", "y", "--yes"),
    ],
)
def test_what_became_a_link_since_it_was_indexed_is_not_followed(
    linked: Vault, tmp_path: Path, words: tuple[str, ...]
) -> None:
    """The index may be behind, where the link came between question and change."""
    out = write(tmp_path / "out/x.md", (linked.lessons_dir / "a/x.md").read_text())
    other = write(tmp_path / "out/y.md", (linked.lessons_dir / "y.md").read_text())
    before = everything_in(tmp_path / "out")
    (linked.lessons_dir / "a/x.md").unlink()
    (linked.lessons_dir / "a").rmdir()
    (linked.lessons_dir / "a").symlink_to(out.parent)
    (linked.lessons_dir / "y.md").unlink()
    (linked.lessons_dir / "y.md").symlink_to(other)
    for name in ("a/x", "y"):  # the index does not know yet
        with pytest.raises(WriteError, match="link"):
            update.write(linked, name, text="z")
    ran = run("lessons", *words, cwd=linked.root, check=False, env={"EDITOR": "sed -i s/x/z/"})
    assert ran.code == 1
    assert everything_in(tmp_path / "out") == before


def test_a_vault_whose_folder_is_a_link_is_not_written(
    make_vault: MakeVault, tmp_path: Path
) -> None:
    vault = make_vault({"a.md": lesson_text("A", "a")})
    vault.lessons_dir.rename(tmp_path / "out")
    vault.lessons_dir.symlink_to(tmp_path / "out")
    before = everything_in(tmp_path / "out")
    with pytest.raises(WriteError, match="lessons is a link"):
        add.write(vault, b"Text.", title="T")
    (tmp_path / "out/vault.toml").unlink()
    del before["vault.toml"]
    with pytest.raises(WriteError, match="lessons is a link"):
        init(vault.root)
    assert everything_in(tmp_path / "out") == before


@pytest.mark.parametrize("name", [".gitignore", ".gitattributes", ".githooks"])
def test_init_follows_no_link(tmp_path: Path, name: str) -> None:
    out = write(tmp_path / "out/secret", "a private key\n")
    root = tmp_path / "team"
    root.mkdir()
    (root / name).symlink_to(out.parent if name == ".githooks" else out)
    ran = run("lessons", "init", root, cwd=tmp_path, check=False)
    assert ran.code == 1
    assert f"{name} is a link" in ran.err
    assert everything_in(out.parent) == {"secret": b"a private key\n"}
    assert (root / name).is_symlink()
