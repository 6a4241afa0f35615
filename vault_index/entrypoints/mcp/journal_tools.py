"""The tools of the journal: what was asked and done here before. They are there when it is on."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

from vault_index.entrypoints.cli import moments
from vault_index.entrypoints.mcp import texts
from vault_index.entrypoints.mcp.agent import Agent
from vault_index.entrypoints.mcp.answering import LessonsServer
from vault_index.entrypoints.mcp.lesson_tools import (
    MAX_QUERY_CHARS,
    READS,
    Limit,
    Name,
    add_tool,
)

NAMES = (
    *("search_observations", "search_sessions", "search_user_prompts"),
    *("find_by_concept", "find_by_file", "find_by_type", "get_context_timeline"),
)
MAX_START = 900  # of a page; the journal returns up to 1,000 hits
Depth = Annotated[int, Field(ge=0, le=50)]


class JournalTools:
    """The tools of an agent; each asks the journal, and returns a text to read."""

    def __init__(self, agent: Agent) -> None:
        self._agent = agent

    def search_observations(
        self,
        query: str,
        project: Name = "",
        type: Name = "",
        concept: Name = "",
        file: Name = "",
        since: Name = "",
        limit: Limit = 10,
        cursor: Name = "",
    ) -> str:
        """Find what was done and found out in earlier sessions, best first: id, date, title, files, text.

        Use it for work that was done here before. project: a name, or all; since: 30d, a date, or all.
        """
        narrowed = {"type": type, "concept": concept, "file": file}
        return self._search("observation", query, narrowed, project, since, limit, cursor)

    def search_sessions(
        self, query: str, project: Name = "", since: Name = "", limit: Limit = 10, cursor: Name = ""
    ) -> str:
        """Find earlier sessions by their summaries: what was asked, done and learned."""
        return self._search("summary", query, {}, project, since, limit, cursor)

    def search_user_prompts(
        self, query: str, project: Name = "", since: Name = "", limit: Limit = 10, cursor: Name = ""
    ) -> str:
        """Find what the user asked for in earlier sessions."""
        return self._search("prompt", query, {}, project, since, limit, cursor)

    def find_by_concept(
        self,
        concept: Name,
        project: Name = "",
        since: Name = "",
        limit: Limit = 10,
        cursor: Name = "",
    ) -> str:
        """List observations of a concept: gotcha, trade-off, how-it-works, pattern."""
        return self._list({"concept": concept}, project, since, limit, cursor)

    def find_by_file(
        self, file: Name, project: Name = "", since: Name = "", limit: Limit = 10, cursor: Name = ""
    ) -> str:
        """List what read or changed a file, latest first: its path, the end of it, or a folder.

        Use it before you change a file whose history matters.
        """
        return self._list({"file": file}, project, since, limit, cursor)

    def find_by_type(
        self, type: Name, project: Name = "", since: Name = "", limit: Limit = 10, cursor: Name = ""
    ) -> str:
        """List observations of a type: bugfix, feature, refactor, change, discovery, decision."""
        return self._list({"type": type}, project, since, limit, cursor)

    def get_context_timeline(
        self,
        anchor: str,
        depth_before: Depth = 10,
        depth_after: Depth = 10,
        format: Literal["index", "full"] = "index",
        project: Name = "",
    ) -> str:
        """Show what came before and after a record, a session, a time ("yesterday 14:00") or a query."""
        values = {
            "anchor": anchor[:MAX_QUERY_CHARS], "before": depth_before, "after": depth_after,
            "full": format == "full", **self._agent.where(project),
        }  # fmt: skip
        answer = self._agent.ask_journal("journal timeline", values)
        return texts.of_timeline(answer, full=format == "full")

    def _list(
        self, narrowed: dict[str, str], project: str, since: str, limit: int, cursor: str
    ) -> str:
        return self._search("observation", "", narrowed, project, since, limit, cursor)

    def _search(
        self,
        kind: str,
        query: str,
        narrowed: dict[str, str],
        project: str,
        since: str,
        limit: int,
        cursor: str,
    ) -> str:
        start = min(texts.position(cursor), MAX_START)
        values: dict[str, Any] = {
            "text": query[:MAX_QUERY_CHARS], "k": start + limit + 1, "kinds": [kind],
            "since": _window(since), **narrowed, **self._agent.where(project),
        }  # fmt: skip
        return texts.of_journal_search(
            self._agent.ask_journal("journal search", values), start, limit
        )


def add(server: LessonsServer, agent: Agent) -> None:
    """Add the tools of the journal to a server."""
    tools = JournalTools(agent)
    add_tool(server, tools.search_observations, "Search past work", READS)
    add_tool(server, tools.search_sessions, "Search past sessions", READS)
    add_tool(server, tools.search_user_prompts, "Search past prompts", READS)
    add_tool(server, tools.find_by_concept, "Past work by concept", READS)
    add_tool(server, tools.find_by_file, "Past work on a file", READS)
    add_tool(server, tools.find_by_type, "Past work by type", READS)
    add_tool(server, tools.get_context_timeline, "Timeline of past work", READS)


def _window(since: str) -> str | None:
    """Return the beginning of the time to look at: None for the usual window, "" for all."""
    return None if not since else "" if since == "all" else moments.since(since)
