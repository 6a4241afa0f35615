"""Import: what would be written where, near-duplicates left out, a second run changes nothing."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.commands import run
from tests.support.files import MakeVault, commit, lesson_text, write
from tests.support.places import TESTS
from vault_index.edit import import_lessons
from vault_index.errors import WriteError
from vault_index.index import reconcile
from vault_index.lesson import edits, parse, passages
from vault_index.retrieval import entries
from vault_index.vault import Vault

COURSES = TESTS / "courses"
HEAP = "Raise the heap when the frontend build runs out of memory: NODE_OPTIONS."
LINES: list[dict[str, object]] = [
    {"title": "Heap in CI", "text": HEAP, "category": "devops/ci-cd", "tags": ["node"]},
    {"id": "db/lock", "category": "db", "text": "# Locks\n\nAdd an index concurrently."},
    {"text": "Dates are stored in UTC and shown in local time."},
]


def json_lines(values: list[dict[str, object]]) -> bytes:
    return "".join(json.dumps(one) + "\n" for one in values).encode()


def verdicts(planned: import_lessons.ImportPlan) -> dict[str, str]:
    return {item.path: item.verdict for item in planned.items}


def files_of(vault: Vault) -> dict[str, bytes]:
    return {
        str(f.relative_to(vault.lessons_dir)): f.read_bytes()
        for f in vault.lessons_dir.rglob("*.md")
    }


@pytest.fixture
def vault(make_vault: MakeVault) -> Vault:
    return make_vault(words=True, indexed=True)


@pytest.mark.slow
def test_a_plan_writes_nothing_and_carrying_it_out_just_that(vault: Vault) -> None:
    planned = import_lessons.plan(vault, json_lines(LINES))
    assert files_of(vault) == {}
    assert verdicts(planned) == {
        "devops/ci-cd/heap-in-ci.md": "write",
        "db/lock.md": "write",
        "inbox/dates-are-stored-in-utc-and-shown-in-local-time.md": "write",
    }
    import_lessons.apply(vault, planned)
    assert files_of(vault) == {item.path: item.data for item in planned.items}
    reconcile.sync(vault)
    entry = entries.entry(vault, "heap-in-ci")
    assert (entry.categories, entry.tags) == (("devops/ci-cd",), ("node",))


@pytest.mark.slow
def test_a_second_run_changes_nothing(vault: Vault) -> None:
    import_lessons.apply(vault, import_lessons.plan(vault, json_lines(LINES)))
    reconcile.sync(vault)
    before = files_of(vault)
    again = import_lessons.plan(vault, json_lines(LINES))
    assert set(verdicts(again).values()) == {"same"}
    assert import_lessons.apply(vault, again) == []
    assert files_of(vault) == before


@pytest.fixture
def course(vault: Vault, tmp_path: Path) -> Path:
    """A course that was imported and committed, and has a prompt of the vault's own in it."""
    source = write(tmp_path / "course.txt", (COURSES / "introduction_to_ai.txt").read_bytes())
    import_lessons.apply(vault, import_lessons.plan(vault, source))
    file = vault.lessons_dir / "courses/introduction-to-ai.md"
    data = edits.set_keys(file.read_bytes(), {"fires_on": ["what is a perceptron"]})
    slug = parse.parse_file(data, "a.md")[1].id.partition("#")[2]
    file.write_bytes(edits.set_own_keys(data, slug, {"tags": ["kept"]}))
    commit(vault.root, "course")
    reconcile.sync(vault)
    return source


CORRECTED = ("Lesson 0:", "Lesson 0: Corrected")


@pytest.mark.slow
def test_a_corrected_course_is_taken_in_again_and_keeps_what_the_vault_added(
    vault: Vault, course: Path
) -> None:
    course.write_text(course.read_text().replace(*CORRECTED))
    (item,) = import_lessons.plan(vault, course).items
    assert item.verdict in ("taken", "duplicate")
    planned = import_lessons.plan(vault, course, update=True)
    assert verdicts(planned) == {"courses/introduction-to-ai.md": "update"}
    import_lessons.apply(vault, planned)
    first, second, *_ = parse.parse_file(files_of(vault)[planned.items[0].path], "a.md")
    assert first.title.startswith("Corrected")
    assert first.fires_on == ("what is a perceptron",)
    assert second.tags == ("kept",)
    reconcile.sync(vault)
    again = import_lessons.plan(vault, course, update=True)
    assert [each.verdict for each in again.items] == ["same"]


@pytest.mark.slow
def test_an_update_finds_a_file_that_was_moved_and_leaves_what_git_does_not_have(
    vault: Vault, course: Path
) -> None:
    course.write_text(course.read_text().replace(*CORRECTED))
    old, new = "courses/introduction-to-ai.md", "ai/basics/introduction-to-ai.md"
    file = vault.lessons_dir / new
    (vault.lessons_dir / old).rename(write(file, ""))
    file.write_bytes(edits.set_keys(file.read_bytes(), {"categories": ["ai/basics"]}))
    reconcile.sync(vault)
    (item,) = import_lessons.plan(vault, course, update=True).items
    assert (item.path, item.why) == (new, "commit the file, then update it")
    commit(vault.root, "moved")
    planned = import_lessons.plan(vault, course, update=True)
    assert verdicts(planned) == {new: "update"}
    file.write_bytes(file.read_bytes() + b"Mine.\n")  # since the plan was made
    assert import_lessons.apply(vault, planned) == []
    run("git", "checkout", "-q", "--", ".", cwd=vault.root)
    import_lessons.apply(vault, planned)
    assert parse.parse_file(file.read_bytes(), new)[0].categories == ("ai/basics",)


def test_near_duplicates_are_left_out_with_the_reason(vault: Vault) -> None:
    write(vault.lessons_dir / "devops/heap.md", lesson_text("Heap in the CI", HEAP))
    reconcile.sync(vault)
    twice: list[dict[str, object]] = [
        {"title": "Two", "text": "Squash before merging a branch."}
    ] * 2
    twice.append({"title": "Two of them", "text": "Squash before merging a branch!"})
    planned = import_lessons.plan(vault, json_lines([*LINES[:1], *twice]))
    heap, first, second, third = planned.items
    assert heap.verdict == "duplicate"
    assert heap.why.endswith("% like lessons/devops/heap.md")
    assert (first.verdict, second.verdict, third.verdict) == ("write", "duplicate", "duplicate")
    assert third.why.endswith("% like lessons/inbox/two.md")


def test_without_a_model_the_same_words_are_duplicates(make_vault: MakeVault) -> None:
    vault = make_vault({"here.md": lesson_text("Heap in CI", HEAP)}, indexed=True)
    planned = import_lessons.plan(vault, json_lines(LINES[:1]))
    assert [(item.verdict, item.why) for item in planned.items] == [
        ("duplicate", "100% like lessons/here.md")
    ]


def test_a_folder_of_many_kinds(vault: Vault, tmp_path: Path) -> None:
    source = tmp_path / "source"
    write(
        source / "AGENTS.md", "# Rules\n\n## Testing\n\n- **Use pytest**: fixtures compose well.\n"
    )
    write(source / "devops/heap.md", lesson_text("Heap", HEAP))
    write(source / "many.jsonl", json_lines(LINES[1:]))
    write(source / "broken.md", "---\ncategories: [a\n---\nText.\n")
    write(source / ".obsidian-trash/x.md", "Hidden.")
    write(source / "photo.png", b"\x89PNG")
    write(source / "course.txt", (COURSES / "introduction_to_ai.txt").read_bytes())
    planned = import_lessons.plan(vault, source)
    assert set(verdicts(planned)) == {
        "testing/use-pytest.md",
        "devops/heap.md",
        "db/lock.md",
        "inbox/dates-are-stored-in-utc-and-shown-in-local-time.md",
        "courses/introduction-to-ai.md",
    }
    assert len(planned.problems) == 1
    assert planned.problems[0].startswith("broken.md:3: frontmatter is not YAML")


def test_a_source_comes_whole_or_not_at_all(vault: Vault) -> None:
    planned = import_lessons.plan(vault, json_lines(LINES))
    (vault.lessons_dir / "inbox").write_text("a file where a folder should be")
    with pytest.raises(WriteError):
        import_lessons.apply(vault, planned)
    assert files_of(vault) == {}
    assert not (vault.lessons_dir / "db").exists()


@pytest.mark.slow
def test_several_files_and_folders_come_in_together(
    make_vault: MakeVault, tmp_path: Path, text_only: None
) -> None:
    vault = make_vault()
    for name in ("a.md", "b.md", "more/c.md"):
        write(tmp_path / "notes" / name, lesson_text(f"Note {name}", f"Use {name} for this."))
    names = [str(tmp_path / "notes" / name) for name in ("a.md", "b.md", "more")]
    ran = run("lessons", "import", *names, "--write", cwd=vault.root)
    assert ran.out.splitlines()[-1] == "3 written"
    alone = run("lessons", "import", "-", names[0], cwd=vault.root, stdin="", check=False)
    assert (alone.code, alone.err.split("\n")[0]) == (1, "Error: stdin is a source by itself")


def test_import_from_a_pipe_as_json(make_vault: MakeVault) -> None:
    vault = make_vault()
    answer = run(
        *("lessons", "import", "-", "--json", "-c", "team/rules"),
        cwd=vault.root,
        stdin=json_lines(LINES[2:]).decode(),
    ).json
    assert answer["written"] is False
    (item,) = answer["items"]
    assert item["path"].startswith("team/rules/dates-are-stored")
    assert files_of(vault) == {}


def test_a_secret_that_json_hides_behind_a_line_end(vault: Vault) -> None:
    key = "AKIA" + "QYLPMN5HFIQR7B2X"
    hidden: dict[str, object] = {
        "title": "Keys",
        "text": "Use the role.",
        "description": f"line\n{key}",
    }
    (item,) = import_lessons.plan(vault, json_lines([hidden])).items
    assert item.verdict == "secret"


ADR_TOOLS = {
    "0001-use-rabbit.md": "# 1. Use Rabbit\n\nSuperceded by [2. Use Kafka](0002-use-kafka.md)\n",
    "0002-use-kafka.md": "# 2. Use Kafka\n\n## Status\n\nAccepted\n",
}
OTHER_WAY = {
    "0001-use-rabbit.md": "# 1. Use Rabbit\n\n## Status\n\nSuperseded\n",
    "0002-use-kafka.md": "# 2. Use Kafka\n\nSupersedes [1. Use Rabbit](./0001-use-rabbit.md#status)\n",
}
MADR = {
    "0001-use-rabbit.md": "---\nstatus: superseded by [ADR-0002](0002-use-kafka.md)\n---\n# Use Rabbit\n",
    "0002-use-kafka.md": "# 2. Use Kafka\n\n## Related\n\n- related: queues\n",
}


@pytest.mark.parametrize("records", [ADR_TOOLS, OTHER_WAY, MADR])
def test_of_decision_records_the_newer_names_the_one_that_it_supersedes(
    vault: Vault, tmp_path: Path, records: dict[str, str]
) -> None:
    """Issue 57, 2: agents got the decision that was taken back."""
    for name, text in records.items():
        write(tmp_path / "adr" / name, f"{text}\nMessages go through one broker, as {name} says.\n")
    planned = import_lessons.plan(vault, tmp_path / "adr", category="decisions")
    again = import_lessons.plan(vault, tmp_path / "adr", category="decisions")
    assert verdicts(planned) == verdicts(again)
    old, new = (
        lesson
        for item in sorted(planned.items, key=lambda item: item.source)
        for lesson in parse.parse_file(item.data, item.path)
    )
    assert passages.superseded(new.text) == [old.title]
    assert passages.superseded(old.text) == []
    import_lessons.apply(vault, planned)
    assert {
        item.verdict
        for item in import_lessons.plan(vault, tmp_path / "adr", category="decisions").items
    } == {"same"}


def test_a_record_in_code_or_elsewhere_supersedes_nothing(vault: Vault, tmp_path: Path) -> None:
    write(tmp_path / "a.md", "# A\n\n```\nSuperseded by [B](b.md)\n```\nSuperseded by [C](c.md)\n")
    write(tmp_path / "b.md", "# B\n\nSupersedes a long tradition.\n")
    for item in import_lessons.plan(vault, tmp_path).items:
        assert b"supersedes:" not in item.data
