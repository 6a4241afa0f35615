"""`lessons check`: what keeps a vault worth sharing is found before it is shared."""

from __future__ import annotations

import importlib
from pathlib import Path

import pytest

from tests.support.commands import PATH, run
from tests.support.files import MakeVault, commit, lesson_text, write
from tests.support.indexed import of_this_repository
from tests.support.planted import AGENT_TEXTS, SECRETS
from vault_index import api, check, client
from vault_index.check import prompt_injection, secrets, time_limit
from vault_index.share import git_hooks
from vault_index.vault import Vault

HEAP = """\
---
title: Raise the heap
fires_on: [{fires}]
silent_on: [{silent}]
---
When the frontend build in CI dies with heap out of memory, raise the limit of node.
"""


def rules(text: str | bytes, path: str = "devops/new.md", known: tuple[str, ...] = ()) -> list[str]:
    """Check one file by what it says; give `line: rule` of each finding."""
    data = text.encode() if isinstance(text, str) else text
    found = check.of_text(check.Candidate(path, data), known)
    return [f"{one.line}: {one.rule}" for one in found]


# what a file says


def test_a_good_lesson_has_no_findings() -> None:
    assert rules("---\ntitle: A\ntags: [b]\nconfidence: 4\ncreated: 2026-01-01\n---\nText.\n") == []


@pytest.mark.parametrize(
    ("frontmatter", "line"), [("title: [unclosed", 3), ("title: a: b", 2), ("- a list", 1)]
)
def test_frontmatter_that_does_not_parse(frontmatter: str, line: int) -> None:
    assert rules(f"---\n{frontmatter}\n---\nText.\n") == [f"{line}: frontmatter"]


@pytest.mark.parametrize(
    ("text", "line", "says"),
    [
        ("---\ntitle: A\ntags: [a]\ntags: [b]\n---\n", 4, "'tags' a second time"),
        (
            "---\ntitle: A\n---\n## Lesson: B\ntype: bug_fix\ntype: bug_fix\n\n",
            6,
            "'type' a second",
        ),
        ("---\ntitle: A\n---\n\n---\ntags: [a]\n---\n", 5, "not the first"),
        ("---\r\ntitle: A\r\n---\r\n---\r\ntitle: B\r\n---\r\n", 4, "not the first"),
        ("# A\n---\ntags: [a]\n---\n", 2, "not the first"),
        ("<!-- by hand -->\n\n---\ntags: [a]\n---\n", 3, "not the first"),
        ("---\ntitle: yes\n---\n", 2, 'write "yes"'),
        ("---\ntitle: A\ntags:\n- ci\n- off\n---\n", 5, 'write "off"'),
        ("---\ntitle: 12:30\n---\n", 2, 'write "12:30"'),
        ("---\ntitle: 3.10\n---\n", 2, 'write "3.10"'),
        ("---\ntitle: Mend #12 of the mill\n---\n", 2, "before the #"),
        ("---\nFelt: only the grey one.\n---\n", 1, "no key that a lesson knows, but 'Felt'"),
        ("---\nlayout: post\nlang: en\n---\n", 1, "no key that a lesson knows"),
        ("version https://git-lfs.github.com/spec/v1\noid sha256:4d\nsize 9\n", 1, "git lfs pull"),
        ("---\ntitle: Rolls: which\n---\n", 2, 'title: "Rolls: which"'),
    ],
)
def test_an_odd_head_is_named_with_its_line(text: str, line: int, says: str) -> None:
    (found,) = check.of_text(check.Candidate("a.md", f"{text}Text.\n".encode()))
    assert (found.line, found.rule) == (line, "frontmatter")
    assert says in found.message


def test_a_head_as_people_write_it_is_not_odd() -> None:
    head = "title: 2026\nid: 7\ntags: [1.5, 'yes', a] # all\ncreated: 2026-01-01\nlayout: post"
    assert rules(f"---\n{head}\n---\nText.\n\n---\n\nNote: more.\n\n---\nEnd.\n") == []


@pytest.mark.parametrize(
    "wrong",
    [
        *("title: [a, b]", "tags: {a: b}", "fires_on: [[a]]", "type: [bug_fix]"),
        *("confidence: 9", "confidence: high", "created: some day", "applies_to: {a: b}"),
    ],
)
def test_wrong_types_are_named_with_their_line(wrong: str) -> None:
    assert rules(f"---\nsource: wiki\n{wrong}\n---\nText.\n") == ["3: type"]


def test_any_type_of_another_format_is_accepted_with_a_warning() -> None:
    lesson = "---\ntype: BigQuery Table\nverified: {by: human:ann}\n---\nText.\n"
    (found,) = check.of_text(check.Candidate("a.md", lesson.encode()))
    assert (found.line, found.rule, found.severity) == (2, "type", check.WARNING)
    assert "'BigQuery Table' is not one of code_pattern, " in found.message


@pytest.mark.parametrize("category", ["' / '", "Dev Ops/CI", "a/b/c/d/e"])
def test_category_syntax(category: str) -> None:
    assert rules(f"---\ncategories: [{category}]\n---\nText.\n") == ["2: category"]


@pytest.mark.parametrize(
    "typo", ["devops/dokcer", "devops/docke", "devops/dockerr", "devops/docher"]
)
def test_a_category_one_typo_away_from_another(typo: str) -> None:
    known = ("devops", "devops/docker", "devops/ci")
    assert rules(f"---\ncategories: [{typo}]\n---\nText.\n", known=known) == ["2: category"]
    assert rules("Text.", f"{typo}/a.md", known) == ["1: category"]
    assert rules("---\ncategories: [devops/cd]\n---\nText.\n", known=known) == []


def test_empty_and_giant_lessons() -> None:
    assert rules("") == ["1: empty"]
    assert rules("---\ntitle: A\n---\n") == ["1: empty"]
    assert rules("word " * 5000) == ["1: giant"]


def test_no_planted_secret_passes() -> None:
    assert len(SECRETS) >= 50
    missed = [text for text in SECRETS if not list(secrets.findings("a.md", f"Note\n\n{text}\n"))]
    assert missed == []


@pytest.mark.slow
@pytest.mark.parametrize("words", ["never send the base64 run you ", "mysql curl docker login "])
def test_a_line_without_end_is_checked_all_the_same(words: str) -> None:
    text = (
        words * 4000 + SECRETS[0] + AGENT_TEXTS[0]
    )  # a pattern that goes back and forth would hang
    assert list(secrets.findings("a.md", text))
    assert list(prompt_injection.findings("a.md", text))


# beside the other lessons


@pytest.mark.slow
def test_near_duplicates_and_prompts_that_clash(make_vault: MakeVault, with_model: Path) -> None:
    text = HEAP.format(
        fires='"our build dies with heap out of memory", "the printer is on fire"',
        silent='"The  printer is on fire", "lunch"',
    )
    files = {
        "devops/heap.md": text,
        "devops/again.md": text.replace("Raise the heap", "Raise heap").partition("fires_on")[0]
        + 'fires_on: ["our build dies with heap out of memory"]\n---\n'
        + text.rpartition("---\n")[2],
    }
    vault = make_vault(
        files | {f"{n}.md": lesson_text(f"T{n}", f"Other text {n}.") for n in range(9)}
    )
    ran = run("lessons", "check", "lessons/devops", cwd=vault.root, check=False)
    assert ran.code == 1
    lines = [line.split(": ", 2)[:2] for line in ran.out.splitlines()]
    assert ["lessons/devops/again.md:1", "near-duplicate"] in lines
    assert ["lessons/devops/heap.md:1", "near-duplicate"] in lines
    assert ["lessons/devops/heap.md:3", "taught-twice"] in lines
    assert ["lessons/devops/heap.md:4", "taught-both"] in lines
    assert "lunch" not in ran.out
    assert "lessons/devops/again.md" in next(
        line for line in ran.out.splitlines() if line.startswith("lessons/devops/heap.md:1")
    )
    assert ran.err.splitlines()[-1] == "2 files checked: 1 error, 4 warnings"


@pytest.mark.slow
def test_the_lessons_of_this_repository_pass(
    tmp_path: Path, with_model: Path, home_with_repository: Path
) -> None:
    here = of_this_repository(home_with_repository, with_model, tmp_path / "here")
    ran = run("lessons", "check", cwd=here.root, check=False)
    assert (ran.code, ran.out) == (0, "")


def test_what_is_no_lesson(make_vault: MakeVault, tmp_path: Path) -> None:
    vault = make_vault({"a.md": lesson_text("A", "Text.")})
    write(tmp_path / "other.md", "Text.")
    ran = run("lessons", "check", tmp_path / "other.md", cwd=vault.root, check=False)
    line = f"Error: {tmp_path}/other.md: not in the vault {vault.root}\n"
    assert ran.err == f"{line}Try: name files of it, or --vault\n"


# before a commit


@pytest.fixture
def guarded(make_vault: MakeVault, monkeypatch: pytest.MonkeyPatch) -> Vault:
    """A vault as `lessons init` leaves it, in which git finds `lessons`."""
    vault = make_vault({"a.md": lesson_text("A", "Text.")})
    git_hooks.set_up(vault.root)
    monkeypatch.setenv("PATH", PATH)
    run("git", "add", "-A", cwd=vault.root)
    run("git", "commit", "-q", "--no-verify", "-m", "start", cwd=vault.root)
    return vault


@pytest.mark.slow
def test_a_commit_with_a_secret_is_stopped_by_what_is_staged(guarded: Vault) -> None:
    note = write(guarded.lessons_dir / "b.md", lesson_text("B", SECRETS[17]))
    run("git", "add", "-A", cwd=guarded.root)
    write(note, lesson_text("B", "Ask the vault for the key."))  # on the disk alone
    ran = run("git", "commit", "-q", "-m", "a secret", cwd=guarded.root, check=False)
    assert ran.code == 1
    assert "lessons/b.md:4: secret: an Anthropic key" in ran.out + ran.err
    assert "git commit --no-verify" in ran.err
    run("git", "add", "-A", cwd=guarded.root)
    write(note, lesson_text("B", SECRETS[17]))
    run("git", "commit", "-q", "-m", "no secret", cwd=guarded.root)


def test_a_commit_too_large_for_all_of_it_is_checked_for_secrets(
    make_vault: MakeVault, monkeypatch: pytest.MonkeyPatch
) -> None:
    share = importlib.import_module("vault_index.api.share")
    monkeypatch.setattr(share, "COMPARED_FILES", 2)
    monkeypatch.setattr(time_limit, "ALL_SECONDS", 0.0)
    monkeypatch.setattr(time_limit, "FILE_SECONDS", 60.0)
    vault = make_vault({})
    for name, text in (("a", AGENT_TEXTS[0]), ("b", SECRETS[0]), ("c", "<<<<<<< HEAD\nText.")):
        write(vault.lessons_dir / f"{name}.md", lesson_text("A", text))
    run("git", "add", "-A", cwd=vault.root)
    notes: list[str] = []
    heard = client.Options(note=notes.append)
    findings, count = client.ask(vault, api.share.check_files(staged=True), heard)
    assert [one.rule for one in findings] == ["secret", "conflict-markers"]
    left = f"prompt injection in {count}, duplicates of {count} files"
    assert notes == [f"note: not checked: {left}; run `lessons check --all`"]


def test_a_commit_without_lessons_is_not_held_up(guarded: Vault) -> None:
    write(guarded.root / "code.py", "password = 'Tr0ub4dor&3x'\n")
    commit(guarded.root)


def test_without_the_tool_git_works_as_ever(
    guarded: Vault, monkeypatch: pytest.MonkeyPatch
) -> None:
    run("git", "config", "lessons.program", "/nowhere/lessons", cwd=guarded.root)
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    write(guarded.lessons_dir / "b.md", lesson_text("B", SECRETS[0]))
    commit(guarded.root)
