"""Rules of Cursor and other agents become lessons, whatever their heads look like."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.commands import run
from tests.support.files import MakeVault, lesson_text, write
from vault_index.edit.formats import guess, read_good
from vault_index.lesson.parse import Lesson, parse_file
from vault_index.text import globs

SQL = """\
---
description: How we write SQL
globs: *.sql
alwaysApply: false
---
Every statement names its columns; `select *` broke the larch export.
"""
RELEASE = """\
---
description: How we release the barge
globs:
alwaysApply: true
---
# Releases

Tag the barge release before the crane moves.
"""


def lesson_of(text: str, path: str = "rule.mdc") -> Lesson:
    """Return the lesson of a file that makes one."""
    (draft,), errors = read_good(text.encode(), path)
    assert not errors
    (lesson,) = parse_file(draft.data, f"{draft.name}.md")
    return lesson


@pytest.mark.slow
def test_a_folder_of_cursor_rules_is_imported(
    make_vault: MakeVault, tmp_path: Path, text_only: None
) -> None:
    """Issue 55, 10: none came in by folder, and `globs: *.sql` was "not YAML"."""
    rules = tmp_path / ".cursor/rules"
    write(rules / "sql.mdc", SQL)
    write(rules / "release.mdc", RELEASE)
    vault = make_vault()
    done = run("lessons", "import", str(rules), "--write", "-c", "ops", cwd=vault.root)
    assert done.out.splitlines()[-1] == "2 written"
    sql, release = (
        parse_file((vault.lessons_dir / f"ops/{name}.md").read_bytes(), f"ops/{name}.md")[0]
        for name in ("sql", "release")
    )
    assert (sql.title, sql.applies_to, sql.type) == ("How we write SQL", ("*.sql",), "")
    assert sql.text.startswith("How we write SQL\n\nEvery statement names its columns")
    assert (release.title, release.applies_to) == ("Releases", ())
    assert release.type == "project_rule"
    assert "How we release the barge" in release.text
    assert run("lessons", "check", cwd=vault.root).code == 0


@pytest.mark.parametrize(
    ("head", "files", "type"),
    [
        ("globs: **/*\nalwaysApply: false", (), ""),
        ("globs: **/*.ts, src/**/*.{js,jsx}", ("**/*.ts", "src/**/*.{js,jsx}"), ""),
        ('globs: ["/app/**", "./lib/*.py"]', ("app/**", "lib/*.py"), ""),
        ("globs:\n  - **/*.go\n  - go.mod", ("**/*.go", "go.mod"), ""),
        ("description: Use when: a column is added\nglobs: *.sql", ("*.sql",), ""),
        ("globs: ../other/**, !vendor/**, *.rs", ("*.rs",), ""),
        ("applyTo: '**/*.cs,**/*.csproj'", ("**/*.cs", "**/*.csproj"), ""),  # Copilot
        ("applyTo: '**'", (), "project_rule"),
        ("trigger: glob\nglobs: **/*.jsx,**/*.tsx", ("**/*.jsx", "**/*.tsx"), ""),  # Windsurf
        ("trigger: always_on", (), "project_rule"),
        ("paths:\n  - 'src/api/**'", ("src/api/**",), ""),  # Claude Code
        ("globs:\nalwaysApply:\n---\n---\nglobs: *.sql\nalwaysApply: true", ("*.sql",), "project_rule"),
    ],
)  # fmt: skip
def test_a_head_is_read_as_its_agent_reads_it(head: str, files: tuple[str, ...], type: str) -> None:
    lesson = lesson_of(f"---\n{head}\n---\n\nName the columns.\n")
    assert (lesson.applies_to, lesson.type) == (files, type)
    assert lesson.text.endswith("Name the columns.")
    assert "---" not in lesson.text


@pytest.mark.parametrize(
    ("name", "text", "format"),
    [
        ("sql.mdc", "Name the columns.", "cursor"),
        ("sql.MDC", SQL, "cursor"),
        ("sql.instructions.md", "Name the columns.", "cursor"),
        ("sql.md", SQL, "cursor"),
        ("api.md", "---\npaths: src/api/**\n---\nText.", "cursor"),
        ("sql.md", "---\ntitle: SQL\npaths: 3\nowner: me\n---\nText.", "markdown"),
        ("sql.md", "Text.\n\n---\nglobs: *.sql\n---\n", "markdown"),
    ],
)
def test_a_rule_is_known_by_its_name_or_its_head(name: str, text: str, format: str) -> None:
    assert guess(text.encode(), name) == format


def test_other_keys_stay_and_the_description_is_said_once() -> None:
    lesson = lesson_of(
        "---\ndescription: Name the columns.\ntags: [sql]\nowner: me\n---\nName the columns. Always.\n"
    )
    assert lesson.tags == ("sql",)
    assert lesson.text == "Name the columns. Always."
    assert lesson_of("---\ndescription: d\n---\nSee [a](mdc:src/a.py).\n").text.endswith(
        "[a](/src/a.py)."
    )
    assert read_good(b"---\nglobs: *.sql\n---\n\n", "sql.mdc") == ([], [])


@pytest.mark.parametrize("name", ["sql.mdc", "sql.MD", "sql.Markdown"])
def test_a_file_with_another_ending_is_named(
    make_vault: MakeVault, text_only: None, name: str
) -> None:
    """Issue 55, 10: it was no lesson, and nothing said so."""
    vault = make_vault({"a.md": lesson_text("A", "Text of a.")})
    write(vault.lessons_dir / f"ops/{name}", "Name the columns.")
    write(vault.lessons_dir / "ops/picture.png", b"\x89PNG")
    checked = run("lessons", "check", cwd=vault.root)
    named = [line for line in checked.err.splitlines() if "ops/" in line]
    ending = name.rpartition(".")[2]
    assert named == [f"warning: lessons/ops/{name}:0: no lesson: it ends in .{ending}, not in .md"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("ops/sql.md", SQL, 'put the value in quotes: globs: "*.sql"'),  # the case itself
        ("ops/release.md", RELEASE, "Releases"),
        # relatives
        ("sql.instructions.md", "---\napplyTo: **/*.cs\n---\nSeal it.\n", 'applyTo: "**/*.cs"'),
        ("deep/er/sql.mdc", SQL, "it ends in .mdc, not in .md"),
        ("windows.md", f"\ufeff{RELEASE}".replace("\n", "\r\n"), "Releases"),
    ],
)
def test_a_rule_among_the_lessons_is_a_lesson_or_is_named(
    make_vault: MakeVault, text_only: None, name: str, text: str, said: str
) -> None:
    """Case P37: rules that were copied into `lessons/`."""
    vault = make_vault({"a.md": lesson_text("A", "Text of a.")})
    write(vault.lessons_dir / name, text.encode())
    listed = run("lessons", "list", cwd=vault.root)
    assert f"lessons/{name}" in listed.err or name.removesuffix(".md") in listed.out
    assert said in listed.err + listed.out


@pytest.mark.slow
@pytest.mark.parametrize("text", [SQL, SQL.replace("\n", "\r\n"), f"\ufeff{SQL}"])
def test_a_rule_of_another_editor_is_imported(
    make_vault: MakeVault, tmp_path: Path, text_only: None, text: str
) -> None:
    """Relatives of case P37: line ends and a mark of Windows' editors."""
    write(tmp_path / "rules/sql.mdc", text.encode())
    vault = make_vault()
    run("lessons", "import", str(tmp_path / "rules"), "--write", "-c", "ops", cwd=vault.root)
    (lesson,) = parse_file((vault.lessons_dir / "ops/sql.md").read_bytes(), "ops/sql.md")
    assert (lesson.title, lesson.applies_to) == ("How we write SQL", ("*.sql",))


@pytest.mark.parametrize(
    ("glob", "inside", "outside"),
    [
        ("**/*.ts", ("a.ts", "src/deep/a.ts"), "a.tsx"),
        ("src/**/*.{ts,tsx}", ("src/a.ts", "src/deep/a.tsx"), "src/a.js"),
        ("**/seed.ts", ("seed.ts", "db/seed.ts"), "myseed.ts"),
        ("migrations/**", ("migrations/1.sql", "db/migrations/1.sql"), "migration/1.sql"),
        ("{a,b}/{c,d}.py", ("a/c.py", "b/d.py"), "c/a.py"),
        ("${name}.py", ("${name}.py",), "name.py"),
    ],
)
def test_a_glob_matches_as_people_mean_it(glob: str, inside: tuple[str, ...], outside: str) -> None:
    matches = globs.matcher([glob])
    assert all(map(matches, inside))
    assert not matches(outside)


def test_many_braces_end_soon() -> None:
    assert not globs.matcher(["{a,b}" * 40])("c")
