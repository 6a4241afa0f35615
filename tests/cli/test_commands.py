"""The command line as one types it: what goes in, what is printed, how it ends. Without a model."""

from __future__ import annotations

from datetime import date
from pathlib import Path
from typing import Any

import click
import pytest

from tests.support.commands import BIN, Ran, run
from tests.support.files import MakeVault, lesson_text, write
from vault_index.entrypoints.cli import context, main, refuse_stranger
from vault_index.errors import VaultError
from vault_index.vault import Vault

NO_MODEL = "note: full text only: no embedding model here; get it with `lessons model fetch`\n"


def lessons(vault: Vault, *words: str | Path, check: bool = True, **options: Any) -> Ran:
    """Type `lessons ...` in a vault."""
    return run("lessons", *words, cwd=vault.root, check=check, **options)


# init


@pytest.mark.parametrize("end", [b"\n", b"\r\n"])
def test_init_adds_a_line_and_changes_no_byte(tmp_path: Path, end: bytes) -> None:
    run("git", "init", "-q", cwd=tmp_path)
    ignored = b"*.pyc" + end + "Entwürfe".encode("latin-1") + end + b"build" + end
    attributes = b"*.png binary" + end + b"*.txt text"  # the last line is not ended
    write(tmp_path / ".gitignore", ignored)
    write(tmp_path / ".gitattributes", attributes).chmod(0o600)
    run("lessons", "init", cwd=tmp_path)
    added = b"lessons/**/*.md merge=lessons" + end
    lines = b".vault_index/" + end + b".*.lessons-tmp" + end
    assert (tmp_path / ".gitignore").read_bytes() == ignored + lines
    assert (tmp_path / ".gitattributes").read_bytes() == attributes + end + added
    assert (tmp_path / ".gitattributes").stat().st_mode & 0o777 == 0o600
    assert run("lessons", "init", cwd=tmp_path).out == f"{tmp_path} is a vault\n"


@pytest.mark.parametrize("below", ["", "hooks"])
def test_init_makes_no_repository_in_a_bare_one(tmp_path: Path, below: str) -> None:
    bare = tmp_path / "team.git"
    run("git", "init", "-q", "--bare", bare, cwd=tmp_path)
    before = sorted(bare.rglob("*"))
    ran = run("lessons", "init", cwd=bare / below, check=False)
    assert ran.code == 1
    assert ran.err == (
        f"Error: {bare / below} is a bare repository\nTry: clone it, and lessons init in the clone\n"
    )
    assert sorted(bare.rglob("*")) == before


# add


def test_add_a_file(make_vault: MakeVault, tmp_path: Path) -> None:
    vault = make_vault()
    source = write(
        tmp_path / "n.md", "---\n# mine\ncategories: [DevOps/CI CD]\n---\n# A heap\n\nx\n"
    )
    assert lessons(vault, "add", source).out == "lessons/devops/ci-cd/a-heap.md\n"
    text = (vault.lessons_dir / "devops/ci-cd/a-heap.md").read_text()
    assert text.startswith("---\n# mine\ncategories: [DevOps/CI CD]\ncreated: 20")
    assert text.endswith("---\n# A heap\n\nx\n")


SENTENCE = "Set VPN=1 in the job, as staging is behind the VPN. It hangs else."


@pytest.mark.parametrize(
    ("words", "stdin"),
    [([SENTENCE], ""), (["--text", SENTENCE], ""), (["-"], SENTENCE)],
)
def test_a_lesson_without_a_title_has_its_first_sentence(
    make_vault: MakeVault, words: list[str], stdin: str
) -> None:
    vault = make_vault()
    ran = lessons(vault, "add", *words, "-c", "devops", stdin=stdin)
    assert ran.out == "lessons/devops/set-vpn-1-in-the-job-as-staging-is-behind-the-vpn.md\n"
    entry = lessons(vault, "show", "set-vpn", "--json").json
    assert entry["title"] == "Set VPN=1 in the job, as staging is behind the VPN"
    assert entry["text"] == SENTENCE


@pytest.mark.parametrize(
    ("words", "stdin", "says"),
    [
        (["-"], "", "a lesson needs some text"),
        (["--title", "T"], " \n", "a lesson needs some text"),
        (["-"], "...", "a lesson needs a title"),
        (["note"], "", "note cannot be read: No such file"),
        (["my notes.md"], "", "my notes.md cannot be read: No such file"),
        (["--title", "T", "--text", "x", "--type", "rant"], "", "no type 'rant'"),
        (["-"], "---\ntitle: [\n---\nx", "frontmatter is not YAML"),
    ],
)
def test_add_refuses(make_vault: MakeVault, words: list[str], stdin: str, says: str) -> None:
    vault = make_vault()
    ran = lessons(vault, "add", *words, stdin=stdin, check=False)
    assert (ran.code, ran.out) == (1, "")
    message = ran.err.removeprefix(NO_MODEL)
    assert message.startswith("Error: ")
    assert says in message
    assert len(message.splitlines()) <= 2
    assert not list(vault.lessons_dir.rglob("*.md"))


# help and errors


def all_commands(command: click.Command, *above: str) -> dict[tuple[str, ...], click.Command]:
    """Return each command by its words, subcommands too."""
    listed = {above: command}
    if isinstance(command, click.Group):
        for name in command.list_commands(click.Context(command)):
            below = command.get_command(click.Context(command), name)
            assert below is not None
            listed |= all_commands(below, *above, name)
    return listed


@pytest.mark.parametrize("words", all_commands(main), ids=" ".join)
def test_every_command_has_help_with_an_example(tmp_path: Path, words: tuple[str, ...]) -> None:
    ran = run("lessons", *words, "--help", cwd=tmp_path)
    assert ran.out.startswith(f"Usage: lessons {' '.join(words)}".rstrip())
    assert f"Example: {' '.join(('lessons', *words))}" in ran.out or "| lessons" in ran.out
    assert ran.err == ""
    assert run("lessons", *words, "-h", cwd=tmp_path).out == ran.out


def test_a_stranger_of_the_same_module_name_is_an_error(tmp_path: Path) -> None:
    """The package registry has another project as `vault-index`; files of both would be mixed."""
    refuse_stranger(tmp_path)
    (tmp_path / "vault_index-0.4.1.dist-info").mkdir()
    with pytest.raises(VaultError, match=r"^vault_index-0\.4\.1, another project") as caught:
        refuse_stranger(tmp_path)
    assert "pip uninstall vault-index" in caught.value.hint


@pytest.mark.slow
def test_a_reader_that_leaves_early_is_no_error(make_vault: MakeVault) -> None:
    many = "\n".join(f"## Lesson: number {n} {'x' * 200}\ntext" for n in range(150))
    vault = make_vault({"many.md": many})
    assert len(lessons(vault, "list", "--json").out) > 1 << 16  # more than a pipe holds
    ran = run("sh", "-c", "$0 list --json | head -n 1", BIN / "lessons", cwd=vault.root)
    assert len(ran.out) < 1 << 16
    assert ran.err.removeprefix(NO_MODEL) == ""


def test_what_no_verb_names_is_said_all_the_same(make_vault: MakeVault) -> None:
    root = make_vault().root
    for line, code, says in (
        (r"$0 search heap --tag $(printf '\377')", 2, "is not text in UTF-8"),
        ("mkdir x && cd x && rmdir ../x && $0 list", 1, "the current folder is gone"),
        ("$0 categories --json > /dev/full", 1, "the output cannot be written: No space left"),
    ):
        ran = run("sh", "-c", line, BIN / "lessons", cwd=root, check=False)
        assert (ran.code, ran.out, says in ran.err) == (code, "", True)


def test_how_many_is_n_yes_is_y_and_a_share_is_a_percentage_everywhere() -> None:
    commands = {" ".join(words): command for words, command in all_commands(main).items()}
    options = {
        name: [word for each in command.params for word in (*each.opts, *each.secondary_opts)]
        for name, command in commands.items()
    }
    assert len(commands) > 60
    for name, called in options.items():
        for how_many in {"--limit", "-k", "--most", "--count"} & {*called}:
            assert "-n" in called, f"{name} {how_many}"
        assert ("-y" in called) == ("--yes" in called), name
        for option in commands[name].params:
            assert not isinstance(option.type, (click.types.FloatParamType, click.FloatRange)), name
    for name in ("rm", "uninstall", "serve", "journal forget"):  # those that ask
        assert "-y" in options[name]
    for name in ("search", "last", "list", "journal search", "journal sessions"):
        assert "-n" in options[name]


def test_a_mistyped_agent_or_kind_names_the_nearest(make_vault: MakeVault) -> None:
    vault = make_vault()
    for words, meant in (
        (["install", "claud"], "claude"),
        (["search", "--kind", "skil", "x"], "skills"),
    ):
        ran = lessons(vault, *words, check=False)
        assert ran.code == 2
        assert ran.err.rstrip().endswith(f"Did you mean '{meant}'?")
    ran = lessons(vault, "search", "heap", "--min-score", "much", check=False)
    assert "'much' is no percentage: type 35, or 35%" in ran.err


@pytest.mark.slow
def test_a_second_lesson_of_a_title_is_told(make_vault: MakeVault) -> None:
    vault = make_vault({"ops/heap.md": lesson_text("The Heap", "Raise it."), "heaps.md": "More.\n"})
    lessons(vault, "index", env={"LESSONS_EMBEDDER": "none"})
    ran = lessons(vault, "add", "--title", "the heap", "--text", "Lower it.", "-c", "dev")
    said = "note: lessons/ops/heap.md has this title, too: add to that one instead?\n"
    assert ran.err == said
    lessons(vault, "index", env={"LESSONS_EMBEDDER": "none"})
    again = lessons(vault, "add", "--title", "The heap", "--text", "Raise it.", "-c", "web")
    assert again.err == f"note: lessons/dev/the-heap.md{said.partition('heap.md')[2]}{said}"
    (vault.lessons_dir / "web/the-heap.md").unlink()
    assert not lessons(vault, "add", "--title", "A heap", "--text", "Lower it.").err
    checked = lessons(vault, "check", env={"LESSONS_EMBEDDER": "none"}).out
    assert [line for line in checked.splitlines() if "same-title" in line] == [
        f"lessons/{one}:1: same-title: warning: it has the title of lessons/{other}, too: "
        "say how they differ"
        for one, other in (("dev/the-heap.md", "ops/heap.md"), ("ops/heap.md", "dev/the-heap.md"))
    ]


@pytest.mark.slow
def test_a_link_that_is_not_followed_is_said_once_a_day(
    make_vault: MakeVault, text_only: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Issue 55, row 14: it was said before each answer."""
    vault = make_vault({"a.md": lesson_text("Heap", "Raise it.")})
    (vault.lessons_dir / "linked.md").symlink_to("/etc/hosts")

    def said(*words: str) -> str:
        return run("lessons", *words, cwd=vault.root).err

    warning = "lessons/linked.md:0: a link: links are not followed"
    assert warning in said("search", "heap")
    assert all(
        warning not in said(*words) for words in (["search", "heap"], ["list"], ["show", "a"])
    )
    (vault.lessons_dir / "another.md").symlink_to("/etc/hosts")
    assert "lessons/another.md:0" in said("list")
    assert warning in run("lessons", "index", cwd=vault.root).out, "which reports on all files"

    class Tomorrow(date):
        @classmethod
        def today(cls) -> Tomorrow:
            return cls(2099, 1, 1)

    monkeypatch.setattr(context, "date", Tomorrow)
    assert warning in said("list")


@pytest.mark.slow
def test_other_warnings_are_said_each_time(make_vault: MakeVault, text_only: None) -> None:
    vault = make_vault({"a.md": "---\ntitle: [x\n---\nText.\n"})
    for _ in range(2):
        assert "lessons/a.md:" in run("lessons", "list", cwd=vault.root).err
