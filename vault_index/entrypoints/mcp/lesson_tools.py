"""The tools of the lessons: search, read, count, propose. A tool's docstring is what the model reads."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Annotated, Any, Literal

from mcp.server.mcpserver import Context
from mcp_types import ToolAnnotations
from pydantic import Field

from vault_index.entrypoints.mcp import texts
from vault_index.entrypoints.mcp.agent import Agent
from vault_index.entrypoints.mcp.answering import LessonsServer

READS = ToolAnnotations(
    read_only_hint=True, destructive_hint=False, idempotent_hint=True, open_world_hint=False
)
# a new file beside the lessons: the same proposal twice is one
PROPOSES = ToolAnnotations(
    read_only_hint=False, destructive_hint=False, idempotent_hint=True, open_world_hint=False
)
MAX_QUERY_CHARS = 10_000  # a search looks at the beginning
Name = Annotated[str, Field(max_length=1_000)]  # of a lesson, a project, a file ...
Limit = Annotated[int, Field(ge=1, le=50)]
Confidence = Annotated[int, Field(ge=1, le=5)]


class LessonTools:
    """The tools of an agent; each asks a vault, and returns a text to read."""

    def __init__(self, server: LessonsServer, agent: Agent) -> None:
        self._server = server
        self._agent = agent

    def learn_search(
        self,
        query: str,
        type: Name = "",
        project: Name = "",
        min_confidence: Confidence = 3,
        category: Name = "",
        limit: Limit = 10,
        cursor: Name = "",
    ) -> str:
        """Find lessons of the team on a problem, best first: title, id, source, score, passage.

        Use it before work that others have done here, and on an error that others may have met. query:
        the problem in words. project: another one, by name or folder.
        """
        values = {
            "query": query[:MAX_QUERY_CHARS], "type": type, "min_confidence": min_confidence,
            "category": category, "limit": limit, "cursor": cursor,
        }  # fmt: skip
        return texts.of_search(self._agent.ask("learn search", values, project))

    def learn_get(self, id: Name, project: Name = "", cursor: Name = "") -> str:
        """Return the whole text of a lesson by its id; use it when the passage of a hit is not enough."""
        answer = self._agent.ask("learn get", {"name": id}, project)
        return texts.of_lesson(id, answer, cursor)

    def learn_status(self, context: Context[Any, Any], project: Name = "") -> str:
        """Count the lessons by type and category, those most and never used, and proposals that wait.

        Use it when the user asks about the vault, or for the names of categories.
        """
        answer = self._agent.ask("learn status", {}, project)
        return texts.of_status(answer, private=self._server.is_users(context))

    def learn_trigger(
        self, scope: Literal["session", "commit", "files"] = "session", target: Name = ""
    ) -> str:
        """Have lessons proposed from the work: the last session here, commits, or files.

        Use it when the user asks for it. target: a session's id, revisions such as A..B, or paths, a
        line each; none is the latest. A person reviews what is proposed. It may take a minute.
        """
        values = {"scope": scope, "target": target, "folder": self._agent.folder}
        answer = self._agent.ask("learn trigger", values)
        return texts.of_learning(answer)

    def remember(
        self,
        title: str,
        text: str,
        category: Name = "",
        tags: list[str] | None = None,
        fires_on: list[str] | None = None,
    ) -> str:
        """Propose a lesson: what was hard to find out and will be needed again. Returns its id.

        A person accepts it or not. text: the problem, its cause, what to do. fires_on: prompts of
        people who have the problem.
        """
        values = {
            "title": title, "text": text, "category": category, "by": "agent",
            "tags": tags or [], "fires_on": fires_on or [],
        }  # fmt: skip
        return texts.of_proposal(self._agent.ask("remember", values))


def add(server: LessonsServer, agent: Agent) -> None:
    """Add the tools of the lessons to a server."""
    tools = LessonTools(server, agent)
    add_tool(server, tools.learn_search, "Search lessons", READS)
    add_tool(server, tools.learn_get, "Read a lesson", READS)
    add_tool(server, tools.learn_status, "Count lessons", READS)
    add_tool(server, tools.learn_trigger, "Learn from work", PROPOSES)
    add_tool(server, tools.remember, "Propose a lesson", PROPOSES)


def add_tool(
    server: LessonsServer, tool: Callable[..., Any], title: str, annotations: ToolAnnotations
) -> None:
    """Add a tool whose description is its docstring, and whose answer is text."""
    about = " ".join(inspect.cleandoc(tool.__doc__ or "").split())
    server.add_tool(
        tool, title=title, description=about, annotations=annotations, structured_output=False
    )
