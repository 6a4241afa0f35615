"""The README and the pages of `docs/`: their commands, and the tables that come from the code."""

from __future__ import annotations

import ast
import io
import re
import tokenize
from dataclasses import MISSING
from unittest import mock

import anyio
import click
from fastapi import FastAPI

from tests.support.places import REPO
from vault_index import config
from vault_index.entrypoints.cli import MORE, SECTIONS, main
from vault_index.entrypoints.mcp.agent import ServedAgent
from vault_index.entrypoints.mcp.tools import build
from vault_index.entrypoints.web import ask, journal, lessons
from vault_index.entrypoints.web.app import described
from vault_index.hotpath.agents import AGENTS, ALWAYS, FAILURES, FILES, JOURNAL

DOCS = REPO / "docs"
# the last one takes all away
_ORDER = (
    "first-hour teach edit organise share journal agents mcp learn ask page http python models"
    " large measured how-it-works questions privacy index debug remove"
).split()
GENERATED = ("settings", "commands")


def pages() -> list[str]:
    """Return the README and the pages, each whole, in the order in which a reader may type them."""
    named = {file.stem for file in DOCS.glob("*.md")}
    assert named == {*_ORDER, *GENERATED}, "name a new page here and in the README"
    return [(REPO / "README.md").read_text("utf-8")] + [page(name) for name in _ORDER]


def page(name: str) -> str:
    """Return a page of `docs/`."""
    return (DOCS / f"{name}.md").read_text("utf-8")


def commands() -> list[str]:
    """Return the lines that the pages type into a shell."""
    texts = (re.sub(r"(?s)<!-- story.*<!-- end of story -->", "", text) for text in pages())
    return [line for text in texts for line in re.findall(r"(?m)^\$ (.+)$", text)]


def settings_table() -> str:
    """Return a row for each setting: its name, with a star if a vault may set it, default, comment."""
    rows = ["| setting | default | |", "|---|---|---|"]
    comments = _comments()
    for name in filter(comments.get, config.SETTINGS):
        default = config.SETTINGS[name].default
        shown = "" if default in (None, MISSING) else _spelled(default)
        star = " *" if name in config.VAULT_KEYS else ""
        rows.append(f"| `{name}`{star} | {shown} | {comments[name].replace('|', 'or')} |")
    return "\n".join(rows)


def commands_table() -> str:
    """Return a section for each group of commands, with the first sentence of each help."""
    lines = []
    with click.Context(main) as context:
        for section, names in (SECTIONS | MORE).items():
            lines += [f"## {section}", "", "| command | |", "|---|---|"]
            for name in names.split():
                command = main.get_command(context, name)
                assert command, name
                about = command.get_short_help_str(1000)
                if isinstance(command, click.Group):
                    listed = ", ".join(f"`{each}`" for each in command.list_commands(context))
                    about = f"{about} Also {listed}."
                lines += [f"| `{name}` | {about} |"]
            lines.append("")
    return "\n".join(lines).rstrip()


def tools_table() -> str:
    """Return a row for each MCP tool, with its parameters."""
    rows = ["| tool | | parameters |", "|---|---|---|"]
    with mock.patch("vault_index.hotpath.spool.is_on", return_value=True):
        tools = anyio.run(build(ServedAgent("/")).list_tools)
    for tool in tools:
        about = (tool.description or "").split(". ")[0].rstrip(".")
        names = ", ".join(f"`{name}`" for name in tool.input_schema["properties"])
        rows.append(f"| `{tool.name}` | {about}. | {names} |")
    return "\n".join(rows)


def routes_table() -> str:
    """Return a row for each HTTP route."""
    app = FastAPI()
    for routes in (lessons.query_routes, lessons.routes, ask.routes, journal.routes):
        app.include_router(routes)
    rows = [f"| `{route}` | {about} |" for route, about, *_ in described(app)]
    return "\n".join(["| route | |", "|---|---|", *rows])


def agents_table() -> str:
    """Return a row for each agent: its own file, if sessions are recorded, and the version."""
    rows = ["| agent | your file | sessions recorded | tested with |", "|---|---|---|---|"]
    for agent in filter(lambda each: each.hooks, AGENTS):
        is_recorded = "yes" if JOURNAL in agent.hooks else "-"
        file = f"`~/{agent.own_file or agent.file}`"
        rows.append(f"| {agent.title} | {file} | {is_recorded} | {agent.tested_with} |")
    return "\n".join([*rows, "| others | a section of the project's `AGENTS.md` | - | text only |"])


def hooks_table() -> str:
    """Return a row for each agent: its events at which our hook runs, by when they are there."""
    heads = {ALWAYS: "always", FAILURES: "`--failures`", FILES: "`--files`", JOURNAL: "`--journal`"}
    rows = [f"| agent | {' | '.join(heads.values())} |", f"|---|{'---|' * len(heads)}"]
    for agent in filter(lambda each: each.hooks, AGENTS):
        events = [[f"`{hook.event}`" for hook in agent.hooks.get(when, ())] for when in heads]
        rows.append(f"| {agent.name} | {' | '.join(', '.join(each) or '-' for each in events)} |")
    return "\n".join(rows)


def _spelled(value: object) -> str:
    if isinstance(value, bool):
        return f"`{str(value).lower()}`"
    if isinstance(value, tuple):
        return f"`{list(value)}`".replace("'", '"') if value else "`[]`"
    return f'`"{value}"`' if isinstance(value, str) else f"`{value}`"


def _comments() -> dict[str, str]:
    """Return the comment behind each field of `Config` and its tables, by the setting's name."""
    source = "".join(
        (REPO / "vault_index" / name).read_text("utf-8") for name in ("config.py", "features.py")
    )
    behind = {
        token.start[0]: token.string.lstrip("# ")
        for token in tokenize.generate_tokens(io.StringIO(source).readline)
        if token.type == tokenize.COMMENT
    }
    comments = {}
    for kind in ast.parse(source).body:
        if not (isinstance(kind, ast.ClassDef) and kind.name.endswith(("Table", "Config"))):
            continue
        table = f"{kind.name.removesuffix('Table').lower()}." if kind.name != "Config" else ""
        for node in kind.body:
            if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
                lines = range(node.lineno, (node.end_lineno or node.lineno) + 1)
                lines_of = [behind[line] for line in lines if line in behind]
                comments[table + node.target.id] = " ".join(lines_of)
    return comments
