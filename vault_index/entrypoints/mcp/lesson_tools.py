"""The tools of the lessons: search, read, count, propose."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Annotated, Any

from mcp_types import ToolAnnotations
from pydantic import Field

from vault_index.entrypoints.mcp import texts
from vault_index.entrypoints.mcp.agent import Agent
from vault_index.entrypoints.mcp.answering import LessonsServer

READS = ToolAnnotations(
    read_only_hint=True, destructive_hint=False, idempotent_hint=True, open_world_hint=False
)
Limit = Annotated[int, Field(ge=1, le=50)]
Confidence = Annotated[int, Field(ge=1, le=5)]


class LessonTools:
    """The tools of an agent; each asks a vault, and returns a text to read."""

    def __init__(self, agent: Agent) -> None:
        self._agent = agent

    def learn_search(
        self,
        query: str,
        type: str = "",
        project: str = "",
        min_confidence: Confidence = 3,
        category: str = "",
        limit: Limit = 10,
        cursor: str = "",
    ) -> str:
        """Find lessons of the team about a problem. Returns title, id, source, score and the passage."""
        values = {
            "query": query, "type": type, "min_confidence": min_confidence,
            "category": category, "limit": limit, "cursor": cursor,
        }  # fmt: skip
        return texts.of_search(self._agent.ask("learn search", values, project))


def add(server: LessonsServer, agent: Agent) -> None:
    """Add the tools of the lessons to a server."""
    tools = LessonTools(agent)
    add_tool(server, tools.learn_search, "Search lessons", READS)


def add_tool(
    server: LessonsServer, tool: Callable[..., Any], title: str, annotations: ToolAnnotations
) -> None:
    """Add a tool whose description is its docstring, and whose answer is text."""
    about = " ".join(inspect.cleandoc(tool.__doc__ or "").split())
    server.add_tool(
        tool, title=title, description=about, annotations=annotations, structured_output=False
    )
