"""Findings are kept by the hash of the whole text: a second check searches nothing."""

from __future__ import annotations

import hashlib
import multiprocessing
import sqlite3
import stat
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from tests.support.commands import run
from tests.support.files import MakeVault, commit, lesson_text
from tests.support.planted import AGENT_TEXTS, SECRETS
from vault_index import api, check, client, git
from vault_index.check import (
    Candidate,
    Finding,
    KeptFindings,
    kept,
    prompt_injection,
    secrets,
    time_limit,
)
from vault_index.edit import import_lessons
from vault_index.files import cache
from vault_index.index import reconcile

PLAIN = Candidate("ops/pier.md", b"---\ntitle: Pier\n---\nThe crane stops when the wind is up.\n")
ORDERS = Candidate("ops/orders.md", f"---\ntitle: A\n---\n{AGENT_TEXTS[0]}\n".encode())
SECRET = Candidate("ops/key.md", f"---\ntitle: A\n---\nThe key is {SECRETS[0]}\n".encode())


@pytest.fixture
def home(tmp_path: Path) -> Path:
    folder = tmp_path / "own"
    folder.mkdir(mode=0o700)
    return folder


def checked(home: Path, *candidates: Candidate) -> list[list[Finding]]:
    """Check files as a process of its own would, with what was kept before."""
    with KeptFindings(home) as before:
        return [check.of_text(each, kept=before) for each in candidates]


@pytest.fixture
def searched(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return a list to which each text is added that rules search from now on."""
    texts: list[str] = []
    search = prompt_injection.findings

    def noted(path: str, text: str) -> Iterator[Finding]:
        texts.append(text)
        return search(path, text)

    monkeypatch.setattr(prompt_injection, "findings", noted)
    return texts


@pytest.mark.parametrize("candidate", [PLAIN, ORDERS], ids=["plain", "orders"])
def test_a_text_is_searched_once_and_its_findings_stay_the_same(
    home: Path, searched: list[str], candidate: Candidate
) -> None:
    first = checked(home, candidate)
    assert len(searched) == 1
    assert checked(home, candidate) == first == [check.of_text(candidate)]
    assert len(searched) == 2  # by the last one, which keeps nothing


def test_findings_name_the_file_that_has_the_text_now(home: Path, searched: list[str]) -> None:
    (before,) = checked(home, ORDERS)
    (after,) = checked(home, Candidate("moved.md", ORDERS.data))
    assert len(searched) == 1
    assert [each.path for each in before + after] == ["lessons/ops/orders.md", "lessons/moved.md"]


@pytest.mark.parametrize(
    "other",
    [
        Candidate(ORDERS.path, ORDERS.data + b"\n"),
        Candidate("x/SKILL.md", ORDERS.data, True, False),
    ],
    ids=["another text", "another kind of file"],
)
def test_what_is_kept_is_of_one_text_and_kind(
    home: Path, searched: list[str], other: Candidate
) -> None:
    checked(home, ORDERS)
    assert checked(home, other) == [check.of_text(other)]
    assert len(searched) == 3


def test_other_rules_begin_with_nothing(
    home: Path, searched: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    checked(home, PLAIN)
    monkeypatch.setattr(kept, "rules", lambda: "another version")
    checked(home, PLAIN)
    assert len(searched) == 2


def test_a_process_that_began_before_an_upgrade_keeps_nothing(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It has the older rules in memory, and the newer ones are on disk."""
    monkeypatch.setattr(kept, "_LOADED_NS", 0)
    kept.rules.cache_clear()
    try:
        checked(home, PLAIN)
        assert kept.rules() is None
    finally:
        kept.rules.cache_clear()
    assert not (home / kept.FILE).exists()


# what is never kept


def test_nothing_is_kept_of_a_text_with_a_secret(home: Path, searched: list[str]) -> None:
    first = checked(home, SECRET, PLAIN)
    assert checked(home, SECRET, PLAIN) == first
    assert first[0][0].rule == secrets.RULE
    assert len(searched) == 3
    with closing(sqlite3.connect(home / kept.FILE)) as db:
        assert db.execute("SELECT findings FROM found").fetchall() == [("[]",)]


def test_neither_a_text_nor_its_path_is_kept(home: Path) -> None:
    checked(home, ORDERS, PLAIN)
    written = (home / kept.FILE).read_bytes()
    for line in (*ORDERS.data.splitlines()[3:], b"crane", b"orders.md", b"pier"):
        assert line not in written
    assert hashlib.sha256(PLAIN.data).digest() not in written  # the rules are in its hash, too


def test_a_search_without_end_is_not_kept(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def endless(path: str, text: str) -> Iterator[Finding]:
        raise time_limit.TooSlow

    with monkeypatch.context() as busy:
        busy.setattr(prompt_injection, "findings", endless)
        (late,) = checked(home, PLAIN)
    assert [each.rule for each in late] == [check.NOT_CHECKED]
    assert checked(home, PLAIN) == [[]]


def test_a_search_for_secrets_alone_is_not_kept(home: Path) -> None:
    with KeptFindings(home) as before:
        assert not check.of_text(ORDERS, orders=False, kept=before)
        assert check.of_text(ORDERS, kept=before)
        assert check.of_text(
            ORDERS, orders=False, kept=before
        )  # it is known now, and costs nothing


# the file


def test_the_file_is_private(home: Path) -> None:
    checked(home, PLAIN)
    assert stat.S_IMODE((home / kept.FILE).stat().st_mode) == 0o600
    assert [each.name for each in home.iterdir()] == [kept.FILE]


@pytest.mark.parametrize(
    "content", [b"no database", b"SQLite format 3\0" + b"\xff" * 5000], ids=["text", "damage"]
)
def test_a_file_that_cannot_be_read_is_thrown_away(home: Path, content: bytes) -> None:
    (home / kept.FILE).write_bytes(content)
    assert checked(home, ORDERS) == [check.of_text(ORDERS)]
    with KeptFindings(home) as before:
        assert before.get(ORDERS) is not None


def test_a_file_of_another_form_is_thrown_away(home: Path, searched: list[str]) -> None:
    with closing(sqlite3.connect(home / kept.FILE)) as db, db:
        db.execute("CREATE TABLE found (something TEXT)")
    checked(home, PLAIN)
    checked(home, PLAIN)
    assert len(searched) == 1


def test_findings_of_another_form_are_passed_over(home: Path) -> None:
    checked(home, ORDERS)
    with closing(sqlite3.connect(home / kept.FILE)) as db, db:
        db.execute("UPDATE found SET findings = '[7]'")
    assert checked(home, ORDERS) == [check.of_text(ORDERS)]


def test_a_file_that_another_process_holds_is_passed_over(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cache, "BUSY_SECONDS", 0.01)
    checked(home, ORDERS)
    with closing(sqlite3.connect(home / kept.FILE)) as db:
        db.execute("BEGIN EXCLUSIVE")
        assert checked(home, ORDERS, PLAIN) == [check.of_text(ORDERS), []]
        db.execute("ROLLBACK")
    with KeptFindings(home) as before:
        assert before.get(ORDERS) is not None


def test_a_folder_that_is_not_there_is_passed_over(tmp_path: Path) -> None:
    assert checked(tmp_path / "nowhere", ORDERS) == [check.of_text(ORDERS)]
    assert not (tmp_path / "nowhere").exists()


def test_the_oldest_go_when_there_are_too_many(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept, "MAX_TEXTS", 10)
    texts = [Candidate("a.md", f"# {number}\n\nText.\n".encode()) for number in range(12)]
    for each in texts:
        checked(home, each)
    with KeptFindings(home) as before:
        known = [before.get(each) is not None for each in texts]
    assert sum(known) <= 10
    assert known[-9:] == [True] * 9
    assert not known[0]


def check_many(home: Path, number: int) -> None:
    checked(home, *(Candidate("a.md", f"# {number} {at}\n\nText.\n".encode()) for at in range(50)))


def test_several_processes_write_at_once(home: Path) -> None:
    several = multiprocessing.get_context("spawn")
    workers = [several.Process(target=check_many, args=(home, number)) for number in range(3)]
    for each in workers:
        each.start()
    for each in workers:
        each.join()
    assert [each.exitcode for each in workers] == [0, 0, 0]
    with closing(sqlite3.connect(home / kept.FILE)) as db:
        assert db.execute("SELECT count(*) FROM found").fetchone() == (150,)


# who asks: issue 56, row 2


def test_a_check_of_files_that_were_indexed_searches_nothing(
    make_vault: MakeVault, searched: list[str]
) -> None:
    vault = make_vault({f"{n}.md": lesson_text(f"T{n}", f"Text {n}.") for n in range(3)})
    reconcile.sync(vault)
    assert len(searched) == 3
    first = client.ask(vault, api.share.check_files())
    others = len(searched) - 3  # the settings of the vault
    assert client.ask(vault, api.share.check_files()) == first
    assert len(searched) == 3 + others
    (vault.lessons_dir / "0.md").write_text(lesson_text("T0", "Another text."))
    client.ask(vault, api.share.check_files())
    assert len(searched) == 3 + others + 1


def test_an_import_searches_each_text_once(
    make_vault: MakeVault, searched: list[str], tmp_path: Path
) -> None:
    """The plan, the same with `--write`, and the index after it."""
    vault = make_vault({})
    source = tmp_path / "notes"
    source.mkdir()
    for number in range(3):
        (source / f"{number}.md").write_text(lesson_text(f"N{number}", f"Note {number}."))
    client.ask(vault, api.edit.import_from(sources=[str(source)]))
    assert len(searched) == 3
    done = client.ask(vault, api.edit.import_from(sources=[str(source)], write=True))
    assert [item.verdict for item in done.items] == [import_lessons.WRITE] * 3
    assert len(searched) == 3


def test_a_commit_searches_what_is_staged_and_new(
    make_vault: MakeVault, searched: list[str]
) -> None:
    vault = make_vault({f"{n}.md": lesson_text(f"T{n}", f"Text {n}.") for n in range(3)})
    commit(vault.root, "three")
    (vault.lessons_dir / "0.md").write_text(lesson_text("T0", "Another text."))
    git.command(vault.root, "add", "lessons/0.md")
    client.ask(vault, api.share.check_files(staged=True))
    assert [text.splitlines()[-1] for text in searched if "Another" in text] == ["Another text."]
    before = len(searched)
    client.ask(vault, api.share.check_files(staged=True))
    assert len(searched) == before


def test_progress_comes_with_each_file(make_vault: MakeVault, tmp_path: Path) -> None:
    """A counter that moves by a hundred stands still for most imports."""
    vault = make_vault({f"{n}.md": lesson_text(f"T{n}", f"Text {n}.") for n in range(3)})
    heard: list[tuple[str, int, int]] = []
    options = client.Options(progress=lambda label, done, of: heard.append((label, done, of)))
    client.ask(vault, api.share.check_files(), options)
    checking = [(done, of) for label, done, of in heard if label == "checking lessons"]
    assert checking == [(0, 4), (1, 4), (2, 4), (3, 4), (4, 4)]
    heard.clear()
    source = tmp_path / "new.md"
    source.write_text(lesson_text("New", "A note."))
    client.ask(vault, api.edit.import_from(sources=[str(source)]), options)
    assert ("checking lessons", 1, 1) in heard


def test_a_check_in_a_pipe_prints_findings_alone(make_vault: MakeVault) -> None:
    vault = make_vault({"a.md": lesson_text("T", "Text.")})
    ran = run("lessons", "check", cwd=vault.root)
    assert ran.out == ""
    assert "checking" not in ran.err
    assert ran.err.endswith("\n2 files checked: 0 errors, 0 warnings\n")
