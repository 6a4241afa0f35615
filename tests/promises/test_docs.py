"""The README and `docs/`: each setting, command, hook and variable is there, and each link leads on.

After a new setting or command, rewrite the tables that come from the code:

    pytest tests/promises/test_docs.py --rewrite-transcripts
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable
from html import unescape
from pathlib import Path

import click
import pytest

from tests.promises.test_architecture import LADDER
from tests.support import documents
from tests.support.places import REPO
from vault_index.entrypoints.cli import main

# each table of a page, in its order there
TABLES: list[tuple[str, int, Callable[[], str]]] = [
    ("docs/settings.md", 0, documents.settings_table),
    ("docs/commands.md", 0, documents.commands_table),
    ("docs/mcp.md", 0, documents.tools_table),
    ("docs/http.md", 0, documents.routes_table),
    ("docs/agents.md", 0, documents.agents_table),
    ("docs/agents.md", 1, documents.hooks_table),
    ("ARCHITECTURE.md", 0, lambda: "```\n" + "\n".join(LADDER) + "\n```"),
]
FILES = [REPO / "README.md", REPO / "ARCHITECTURE.md", REPO / "CONTRIBUTING.md"]
FILES += sorted(documents.DOCS.glob("*.md"))
BEGIN, END = "<!-- from the code: see tests/promises/test_docs.py -->", "<!-- end -->"
COMMAND = re.compile(r"<code>(lessons [^<]*)</code>")


@pytest.mark.parametrize(("name", "number", "table"), TABLES)
def test_a_table_is_what_the_code_says(
    name: str, number: int, table: Callable[[], str], request: pytest.FixtureRequest
) -> None:
    file = REPO / name
    parts = file.read_text("utf-8").split(f"{BEGIN}\n")
    shown, _, tail = parts[number + 1].partition(END)
    if request.config.getoption("--rewrite-transcripts"):
        parts[number + 1] = f"{table()}\n{END}{tail}"
        file.write_text(f"{BEGIN}\n".join(parts), "utf-8")
        return
    assert shown.strip() == table(), "see the head of this file"


def test_each_variable_is_described() -> None:
    code = "\n".join(file.read_text("utf-8") for file in (REPO / "vault_index").rglob("*.py"))
    described = documents.page("settings")
    for name in sorted(set(re.findall(r"\bLESSONS_[A-Z_]+\b", code))):
        assert f"| `{name}` |" in described, name


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_each_link_leads_to_a_heading_that_is_there(
    file: Path,
) -> None:
    for target in re.findall(r"\]\(([^)\s]+)\)", file.read_text("utf-8")):
        if "://" in target:
            continue
        path, _, heading = target.partition("#")
        there = (file.parent / path) if path else file
        assert there.exists(), f"{file.name}: {target}"
        if heading:
            titles = re.findall(r"(?m)^#+ (.+)$", there.read_text("utf-8"))
            slugs = {re.sub(r"[^\w\- ]", "", title).lower().replace(" ", "-") for title in titles}
            assert heading in slugs, f"{file.name}: {target}"


def test_the_readme_leads_to_each_page() -> None:
    text = (REPO / "README.md").read_text("utf-8")
    for file in FILES[1:]:
        assert f"]({file.relative_to(REPO).as_posix()})" in text, file.name


@pytest.mark.parametrize("name", ["ARCHITECTURE.md", "CONTRIBUTING.md"])
def test_each_file_that_is_named_is_there(name: str) -> None:
    text = (REPO / name).read_text("utf-8")
    for place in re.findall(r"`((?!\.)(?:[\w./*-]+\.(?:py|toml|md)|[\w./]+/))`", text):
        below = (REPO, REPO / "vault_index", REPO / "vault_index" / "entrypoints")
        assert any(list(root.glob(place)) for root in below), f"{name}: {place}"


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_a_paragraph_has_one_idea(file: Path) -> None:
    text = re.sub(r"(?ms)^(`{3,}).*?^\1$", "", file.read_text("utf-8"))
    for paragraph in re.split(r"\n\s*\n|\n- |\n\d\. |\|", text):
        assert len(paragraph.split()) <= 60, paragraph


def test_the_pages_are_read_in_an_hour() -> None:
    texts = [file.read_text("utf-8") for file in documents.DOCS.glob("*.md")]
    assert sum(len(re.findall(r"\S*\w\S*", text)) for text in texts) <= 11_000


def recommended() -> list[str]:
    """Return the commands that pages tell a person to type, with a word for each value."""
    pages = (REPO / "vault_index/entrypoints/web/templates").glob("*.html")
    found = [each for page in pages for each in COMMAND.findall(page.read_text("utf-8"))]
    return sorted({re.sub(r"\{\{.*?\}\}", "value", unescape(each)) for each in found})


@pytest.mark.parametrize("typed", recommended())
def test_the_command_line_takes_what_a_page_recommends(typed: str) -> None:
    _, *words = shlex.split(typed)
    context = click.Context(main, info_name="lessons", **main.context_settings)
    _, command, rest = main.resolve_command(context, words)
    assert command
    command.make_context(words[0], rest, parent=context)
