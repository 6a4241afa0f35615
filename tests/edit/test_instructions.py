"""What a CLAUDE.md or AGENTS.md says becomes lessons that are found; what it only lists is left out."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.commands import run
from tests.support.files import MakeVault, write
from vault_index.edit.formats import read_good
from vault_index.lesson.parse import parse_file
from vault_index.retrieval import query
from vault_index.retrieval.hit import Query

SHOP = """\
# Shop

A shop for barges, in Django, with a broker beside it.

## Commands

- `make up`
- `make test` - run the tests
- Start the stack: `docker compose up -d`
- Run `make seed` twice: the first run only writes the list.

## Kafka

- Messages above 1 MB are dropped silently by the broker
- **Kafka topics**: never rename one while a consumer is attached.

### Rules

- Let consumers commit their offsets by hand
"""


def titles(text: str) -> list[str]:
    """Return the titles of the lessons that an instruction file makes."""
    drafts, errors = read_good(text.encode(), "CLAUDE.md")
    assert not errors
    kept = (draft for draft in drafts if not draft.why)
    return [parse_file(draft.data, f"{draft.name}.md")[0].title for draft in kept]


def left_out(text: str) -> list[str]:
    """Return what an instruction file leaves out, with the reason."""
    return [draft.why for draft in read_good(text.encode(), "CLAUDE.md")[0] if draft.why]


def test_the_heading_of_a_claude_md_is_a_word_of_its_lessons() -> None:
    """Issue 55, C: under `## Kafka` a lesson nowhere said Kafka."""
    assert titles(SHOP) == [
        "Run `make seed` twice: the first run only writes the list",
        "Kafka: Messages above 1 MB are dropped silently by the broker",
        "Kafka topics",
        "Kafka: Let consumers commit their offsets by hand",
    ]
    names = {draft.name for draft in read_good(SHOP.encode(), "CLAUDE.md")[0]}
    assert "messages-above-1-mb-are-dropped-silently-by-the-broker" in names


@pytest.mark.slow
def test_a_prompt_with_the_heading_finds_the_lesson(
    make_vault: MakeVault, tmp_path: Path, text_only: None
) -> None:
    """Issue 55, C: no prompt with that word found it."""
    vault = make_vault()
    source = write(tmp_path / "CLAUDE.md", SHOP)
    run("lessons", "import", str(source), "--write", cwd=vault.root)
    found = run(
        "lessons", "search", "the kafka broker drops messages", "--json", cwd=vault.root
    ).json
    assert found["hits"][0]["title"].startswith("Kafka: Messages above 1 MB")


@pytest.mark.parametrize(
    ("headings", "title"),
    [
        ("## Kafka", "Kafka: Split what is large"),
        ("## Billing\n\n### Invoices", "Invoices: Split what is large"),
        ("## Billing\n\n### Important", "Billing: Split what is large"),
        ("## Conventions", "Split what is large"),
        ("## Things to know about the brokers of staging", "Split what is large"),
        ("## Large", "Split what is large"),
    ],
)
def test_the_nearest_heading_that_names_a_subject_goes_before_the_title(
    headings: str, title: str
) -> None:
    assert titles(f"# Shop\n\n{headings}\n\n- Split what is large\n") == [title]


def test_the_introduction_and_plain_commands_are_left_out_with_a_word() -> None:
    """Issue 55, C."""
    assert left_out(SHOP) == [
        "an introduction: A shop for barges, in Django, with a broker beside it.",
        "no statement: `make up`",
        "a command: `make test` - run the tests",
        "a command: Start the stack: `docker compose up -d`",
    ]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("## Build\n\n```sh\n# all of it\nmake up\nmake test\n```", "a command"),
        ("## Build\n\nStart it:\n\n```sh\n$ ./run --all\n```", "a command"),
        ("## Build\n\n- NODE_ENV=test npm run build: for the tests", ""),
        ("## Build\n\n- `NODE_ENV=test npm run build` builds the tests", "a command"),
        ("## Overview\n\nThe shop sells barges to people on rivers.", "an introduction"),
        ("Two services and a broker.\n\n## Kafka\n\n- Split what is too large", "an introduction"),
        # a rule, a reason or a figure is a lesson
        ("Never stop two belts at once.\n\n## Kafka\n\n- Split what is too large", ""),
        ("## Build\n\n- Run `make fmt` before you commit", ""),
        ("## Build\n\n- `make up` starts Postgres on port 5433", ""),
        ("## Names\n\n- `snake_case` for all function names", ""),
        ("## Errors\n\n```ts\nthrow new Oops(cause)\n```", ""),
    ],
)
def test_only_what_says_nothing_is_left_out(text: str, reason: str) -> None:
    found = [why.partition(":")[0] for why in left_out(f"# Shop\n\n{text}\n")]
    assert found == ([reason] if reason else [])


def test_the_name_of_a_category_is_a_word_of_its_lessons(make_vault: MakeVault) -> None:
    """Issue 55, C: as a tag is; five lessons have it, so it is no rare one."""
    texts = {"topic": "Never rename a topic while a consumer is attached.", "days": "Keep a week."}
    texts |= {
        "size": "Split what is too large.",
        "hand": "Commit by hand.",
        "slow": "Wait for all.",
    }
    vault = make_vault(
        {f"infra/kafka/{name}.md": f"# {name.capitalize()}\n\n{text}\n" for name, text in texts.items()}
        | {f"kitchen/{name}.md": f"# {name}\n\nSalt the {name}.\n" for name in ("peas", "soup")},
        words=True, indexed=True,
    )  # fmt: skip
    asked = Query("kafka")
    found = {hit.lesson_id: hit.common for hit in query.run(vault, asked).hits}
    assert {id for id, common in found.items() if common == 1.0} == {
        f"infra/kafka/{name}" for name in texts
    }
