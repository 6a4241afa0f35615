"""The tools of the journal: search past work, and the timeline. They are there while it is on."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from vault_index import api
from vault_index.entrypoints.mcp import texts
from vault_index.entrypoints.mcp.agent import ServedAgent
from vault_index.entrypoints.mcp.server import Alias, LessonsServer
from vault_index.entrypoints.mcp.tools import (
    MAX_QUERY_CHARS,
    NAME_LIMITS,
    READS,
    Cursor,
    Project,
    Toolset,
    about,
    add_tool,
)
from vault_index.hotpath import spool
from vault_index.store import times

JOURNAL_TOOL, TIMELINE = "search_journal", "get_context_timeline"
# names by which agents may know a search of the journal: what each narrows it to
_WORK = {"kind": "observation"}
SEARCHES = {
    "search_observations": Alias("Search work that was done.", JOURNAL_TOOL, _WORK),
    "find_by_concept": Alias("Find work by its concept.", JOURNAL_TOOL, _WORK),
    "find_by_file": Alias("Find work by a file.", JOURNAL_TOOL, _WORK),
    "find_by_type": Alias("Find work by its type.", JOURNAL_TOOL, _WORK),
    "search_sessions": Alias("Search summaries of sessions.", JOURNAL_TOOL, {"kind": "summary"}),
    "search_user_prompts": Alias("Search prompts of the user.", JOURNAL_TOOL, {"kind": "prompt"}),
}
MAX_START = 900  # of a page; the journal returns up to 1,000 hits
Kind = Literal["", "prompt", "observation", "summary"]


class JournalTools:
    """The tools of an agent that ask its user's journal."""

    def __init__(self, agent: ServedAgent) -> None:
        self._agent = agent

    def search_journal(
        self,
        query: Annotated[str, about("in words; none lists the latest")] = "",
        kind: Annotated[Kind, about("observation: work done; summary: of a session")] = "",
        type: Annotated[
            str, about("bugfix, feature, refactor, change, discovery, decision", **NAME_LIMITS)
        ] = "",
        concept: Annotated[
            str, about("gotcha, trade-off, how-it-works, pattern", **NAME_LIMITS)
        ] = "",
        file: Annotated[
            str, about("that it read or changed: path, end or folder", **NAME_LIMITS)
        ] = "",
        around: Annotated[
            str, about("what came before and after: an id, or yesterday 14:00", **NAME_LIMITS)
        ] = "",
        project: Annotated[str, about("a name, a folder, or all", **NAME_LIMITS)] = "",
        since: Annotated[str, about("30d, a date, or all", **NAME_LIMITS)] = "",
        limit: Annotated[int, about("how many", ge=1, le=50)] = 10,
        cursor: Cursor = "",
    ) -> str:
        """Find what was asked, done and found out in earlier sessions: id, date, title, files, text.

        Use it for work that was done here before, and before you change a file whose history matters.
        """
        if around:
            return self.get_context_timeline(around, limit, limit, "index", project)
        start = min(texts.position(cursor), MAX_START)
        values: dict[str, Any] = {
            "text": query[:MAX_QUERY_CHARS], "k": start + limit + 1,
            "kinds": [kind] if kind else [], "type": type, "concept": concept, "file": file,
            **times.window(since or None), **self._agent.where(project),
        }  # fmt: skip
        answer = self._agent.ask_journal(api.journal.search(**values))
        return texts.journal_hits(answer, start, limit)

    def get_context_timeline(
        self,
        anchor: Annotated[str, about("an id, a time such as yesterday 14:00, or a query")],
        depth_before: Annotated[int, about("records before it", ge=0, le=50)] = 10,
        depth_after: Annotated[int, about("records after it", ge=0, le=50)] = 10,
        format: Annotated[Literal["index", "full"], about("full: with their texts")] = "index",
        project: Project = "",
    ) -> str:
        """Show what came before and after a record, a session, a time ("yesterday 14:00") or a query."""
        full = format == "full"
        question = api.journal.timeline(
            anchor=anchor[:MAX_QUERY_CHARS], before=depth_before, after=depth_after, full=full,
            **self._agent.where(project),
        )  # fmt: skip
        return texts.timeline(self._agent.ask_journal(question), full=full)


_ABOUT = """\
The journal: what was asked, done and decided in earlier sessions on this machine. Search it when the \
user speaks of earlier work, and before you try again what may have been tried."""


def _add(server: LessonsServer, agent: ServedAgent) -> None:
    tools = JournalTools(agent)
    add_tool(server, tools.search_journal, "Search past work", READS)
    add_tool(server, tools.get_context_timeline, "Timeline of past work", READS)
    server.unlisted[TIMELINE] = lambda: not (server.lists_all and spool.is_on())
    server.unlisted[JOURNAL_TOOL] = lambda: not spool.is_on()
    server.aliases |= SEARCHES


TOOLS = Toolset(lambda: _ABOUT if spool.is_on() else "", _add)
