"""Texts that only look like a secret (issue 55 B): a person says so, and everyone sees it.

The line `harmless` in the frontmatter holds at each way in. A line alone, which a clone, an agent or an
imported file may bring, lets nothing through unseen.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.share.clones import copies_of_clones, save, two_clones
from tests.support.commands import PATH, Ran, lessons, run
from tests.support.files import MakeVault, commit, lesson_text, write
from tests.support.proposing import proposed
from tests.support.terminals import at_terminal
from vault_index import check, git
from vault_index.check import ERROR, WARNING, harmless, pattern, secrets
from vault_index.edit import add, import_lessons
from vault_index.errors import VaultError
from vault_index.lesson import edits
from vault_index.proposals import accept
from vault_index.share import git_hooks
from vault_index.vault import Vault, open_vault

TEXT = "The kiosk login is guest / Kiosk-Demo2024, as its screen says."
OTHER = "The staging login is admin / Tr0ub4dor-3x9."
NOTE = lesson_text("Kiosk", TEXT)
FILE = "lessons/ops/kiosk.md"
CUT = "¦"  # in the middle of a secret of an example


@pytest.fixture
def vault(make_vault: MakeVault, monkeypatch: pytest.MonkeyPatch, text_only: None) -> Vault:
    """A vault with one such lesson, committed, which is the current folder; commits are checked."""
    monkeypatch.setenv("PATH", PATH)
    made = make_vault({"ops/kiosk.md": NOTE})
    git_hooks.set_up(made.root)
    run("git", "add", "-A", cwd=made.root)
    run("git", "commit", "-q", "--no-verify", "-m", "start", cwd=made.root)
    monkeypatch.chdir(made.root)
    return made


@pytest.fixture
def another(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[[], None]:
    """Become another user, with a home of their own."""
    return lambda: monkeypatch.setenv("LESSONS_HOME", str(tmp_path / "another"))


def fingerprint(text: str) -> str:
    """Return the one fingerprint of a text's one secret."""
    ((only,),) = (found.fingerprints for found in secrets.findings("a.md", text))
    return only


def noted(text: str, *fingerprints: str) -> str:
    """Return a lesson file with a line that somebody wrote by hand."""
    return edits.set_keys(text.encode(), {"harmless": [*fingerprints]}).decode()


def commits(root: Path, file: str, text: str) -> Ran:
    """Write a file and commit it, as the hook lets it."""
    write(root / file, text)
    run("git", "add", "-A", cwd=root)
    return run("git", "commit", "-q", "-m", "a change", cwd=root, check=False)


@pytest.mark.slow
def test_the_refusal_says_how_and_then_the_line_holds(vault: Vault) -> None:
    said = lessons("check", code=1).stdout
    assert "if it is none: lessons check --confirm ops/kiosk [" in said
    refused = commits(vault.root, FILE, NOTE + "More.\n")
    assert (refused.code, "lessons check --confirm ops/kiosk" in refused.err) == (1, True)
    done = lessons("check", "--confirm", "ops/kiosk").stdout
    assert f"noted as no secret: line 4 of {vault.root / FILE}" in done
    assert "agents get it" not in done  # it was none of the texts that only hold back
    assert lessons("check").stdout == ""
    text = (vault.root / FILE).read_text("utf-8")
    assert re.search(r"(?m)^harmless: \['?sha256:[0-9a-f]{16}'?\]$", text)
    assert "Kiosk-Demo2024" not in text.partition("\n---\n")[0]
    assert commits(vault.root, FILE, f"{text}And more.\n").code == 0
    assert "+harmless: [" in run("git", "log", "-p", "-1", cwd=vault.root).out


@pytest.mark.slow
def test_another_secret_in_that_file_is_refused_as_before(vault: Vault) -> None:
    lessons("check", "--confirm", "ops/kiosk")
    text = (vault.root / FILE).read_text("utf-8")
    refused = commits(vault.root, FILE, f"{text}\n{OTHER}\n")
    assert (refused.code, refused.err.count(": secret: ")) == (1, 1)
    one_line = text.replace(TEXT, f"{TEXT} {OTHER}")  # beside the harmless one
    assert commits(vault.root, FILE, one_line).code == 1
    with pytest.raises(VaultError, match="not written: line 6: secret"):
        check.refuse_errors("ops/kiosk.md", one_line.encode(), text.encode())


@pytest.mark.slow
def test_add_names_the_text_and_writes_the_line(vault: Vault) -> None:
    asked = lessons("add", TEXT, "--title", "Kiosk two", code=1)
    assert f"lessons check --confirm {fingerprint(TEXT)}, then again" in asked.stderr
    assert "Kiosk-Demo2024" not in asked.stderr
    lessons("check", "--confirm", fingerprint(TEXT))
    lessons("add", TEXT, "--title", "Kiosk two")
    written = (vault.root / "lessons/kiosk-two.md").read_text("utf-8")
    assert edits.keys_of(written.encode())["harmless"] == [fingerprint(TEXT)]
    with pytest.raises(VaultError, match="not written"):
        add.write(vault, lesson_text("Staging", OTHER).encode())


@pytest.mark.slow
def test_import_names_the_text_and_writes_the_line_once(vault: Vault, tmp_path: Path) -> None:
    note = write(tmp_path / "notes/lab.md", lesson_text("Lab", TEXT))
    said = lessons("import", note).stdout
    assert f"if it is none: lessons check --confirm {fingerprint(TEXT)}" in said
    lessons("check", "--confirm", fingerprint(TEXT))
    lessons("import", note, "--write")
    (file,) = vault.root.glob("lessons/**/lab.md")
    assert b"harmless: [" in file.read_bytes()
    (item,) = import_lessons.plan(open_vault(vault.root), note).items
    assert item.verdict == import_lessons.SAME


@pytest.mark.slow
def test_an_accepted_proposal_gets_the_line(vault: Vault) -> None:
    with pytest.raises(VaultError) as refused:
        proposed(vault, "Kiosk three", TEXT)
    assert f"lessons check --confirm {fingerprint(TEXT)}" in refused.value.hint
    harmless.say([fingerprint(TEXT)])
    path = accept.write_lesson(vault, proposed(vault, "Kiosk three", TEXT)["id"])
    assert edits.keys_of(path.read_bytes())["harmless"] == [fingerprint(TEXT)]


@pytest.mark.slow
def test_after_a_pull_it_is_seen_and_waits_and_stops_no_commit(
    vault: Vault, another: Callable[[], None]
) -> None:
    """A colleague has the line, and the reviewer's word for it, but has not looked."""
    lessons("check", "--confirm", "ops/kiosk")
    commit(vault.root)
    another()
    said = lessons("check").stdout
    assert "warning: credentials in prose: `harmless` in the frontmatter says" in said
    assert "hooks leave it out; if agents may get it: lessons check --confirm ops/kiosk" in said
    data = (vault.root / FILE).read_bytes()
    assert check.withheld("ops/kiosk.md", data, open_vault(vault.root).config.home).until
    done = commits(vault.root, FILE, data.decode() + "A word more.\n")
    assert (done.code, "says that it is none" in done.err) == (0, True)
    lessons("check", "--confirm", "ops/kiosk")
    assert lessons("check").stdout == ""
    data = (vault.root / FILE).read_bytes()
    assert check.withheld("ops/kiosk.md", data, open_vault(vault.root).config.home).why == ""


@pytest.mark.slow
def test_a_line_that_nobody_here_wrote_lets_nothing_in(vault: Vault, tmp_path: Path) -> None:
    """As an agent, a patch or a file from elsewhere would bring it."""
    brought = noted(lesson_text("Staging", OTHER), fingerprint(OTHER))
    refused = commits(vault.root, "lessons/staging.md", brought)
    assert refused.code == 1
    assert "and nobody on this machine did" in refused.err
    with pytest.raises(VaultError, match="nobody on this machine did"):
        add.write(vault, noted(lesson_text("Staging 2", OTHER), fingerprint(OTHER)).encode())
    note = write(tmp_path / "notes/staging3.md", brought)
    (item,) = import_lessons.plan(open_vault(vault.root), note).items
    assert item.verdict == import_lessons.SECRET


@pytest.mark.slow
def test_a_line_that_came_before_its_secret_lets_nothing_in(vault: Vault) -> None:
    """A hostile clone names the hash of a password that it knows, and waits for somebody to write it."""
    run("git", "reset", "-q", "--hard", cwd=vault.root)
    prepared = noted(lesson_text("Kiosk", "Nothing yet."), fingerprint(OTHER))
    write(vault.root / FILE, prepared)
    run("git", "commit", "-qam", "prepared", "--no-verify", cwd=vault.root)
    assert commits(vault.root, FILE, prepared.replace("Nothing yet.", OTHER)).code == 1


def test_an_agent_cannot_say_it(vault: Vault, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CLAUDECODE", "1")
    for name in ("ops/kiosk", fingerprint(TEXT)):
        refused = lessons("check", "--confirm", name, code=1)
        assert "only a person can say that what looks like a secret is none" in refused.stderr
    assert (vault.root / FILE).read_text("utf-8") == NOTE


@pytest.mark.slow
def test_at_a_terminal_the_person_sees_the_line_and_is_asked(vault: Vault) -> None:
    command = ("lessons", "check", "--confirm", "ops/kiosk")
    env = {"LESSONS_WATCH_AUTOSTART": "false"}
    code, shown = at_terminal(*command, cwd=vault.root, typed=[("[y/N]", "n\n")], env=env)
    assert (code, "Kiosk-Demo2024, as" in shown) == (1, True)
    assert (vault.root / FILE).read_text("utf-8") == NOTE
    code, shown = at_terminal(*command, cwd=vault.root, typed=[("[y/N]", "y\n")], env=env)
    assert (code, "noted as no secret" in shown) == (0, True)


@pytest.mark.slow
def test_a_push_goes_by_what_the_person_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text_only: None
) -> None:
    shelf = tmp_path / "shelf"
    shelf.mkdir()
    two_clones(shelf)
    ada, bob = copies_of_clones(shelf, tmp_path)
    monkeypatch.setenv("LESSONS_HOME", str(tmp_path / "of ada"))
    write(ada / FILE, noted(NOTE, fingerprint(TEXT)))  # written by hand, without a word
    save(ada, "kiosk")
    refused = run("lessons", "sync", cwd=ada, check=False)
    assert refused.code == 1
    assert f"if it is no secret: lessons check --confirm {fingerprint(TEXT)}" in refused.err
    run("lessons", "check", "--confirm", fingerprint(TEXT), cwd=ada)
    assert "pushed 1 commit" in run("lessons", "sync", cwd=ada).out
    monkeypatch.setenv("LESSONS_HOME", str(tmp_path / "of bob"))
    run("lessons", "sync", cwd=bob)
    write(bob / FILE, (bob / FILE).read_text("utf-8") + "Bob was here.\n")
    save(bob, "more")  # of a text that is public already
    assert "pushed 1 commit" in run("lessons", "sync", cwd=bob).out
    write(bob / FILE, noted(lesson_text("Kiosk", OTHER), fingerprint(TEXT), fingerprint(OTHER)))
    save(bob, "another")
    assert run("lessons", "sync", cwd=bob, check=False).code == 1
    assert git.count(bob, "HEAD", "--not", "--remotes") == 1


@pytest.mark.parametrize("rule", pattern.rules("secrets", ""), ids=lambda rule: rule.id)
def test_a_fingerprint_is_of_the_whole_secret(rule: pattern.Pattern) -> None:
    """A secret that differs from a harmless one in any of its letters has another fingerprint."""

    def prints(text: str) -> set[str]:
        found = rule.find(text, text.lower())
        return {secrets.fingerprint(rule, each) for each in found if secrets.is_secret(rule, each)}

    for example in rule.match:
        before, _, after = example.rpartition(CUT)
        whole = example.replace(CUT, "")
        at = len(before.replace(CUT, "")) if after != example else len(whole) - 1
        for letter in "Ab7":
            other = whole[:at] + letter + whole[at + 1 :]
            assert other == whole or not prints(whole) & prints(other), example


def test_a_line_of_another_form_says_nothing() -> None:
    for line in ("harmless: true", "harmless: ['*']", "harmless: {a: b}", "harmless: sha256:"):
        text = NOTE.replace("title:", f"{line}\ntitle:")
        assert [each.severity for each in secrets.findings("a.md", text)] == [ERROR]
    text = noted(NOTE, fingerprint(TEXT))
    assert [each.severity for each in secrets.findings("a.md", text)] == [WARNING]
