"""The MCP server: the SDK's, with our answers for what goes wrong, over stdio or HTTP.

Other users of this machine can ask a port of it, so over HTTP every request needs the token.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, unquote

import anyio.to_thread
import mcp_types
from mcp.server import MCPServer
from mcp.server.mcpserver import Context
from mcp.server.mcpserver.exceptions import ResourceError, ResourceNotFoundError, ToolError
from mcp.shared.exceptions import MCPError
from pydantic import ValidationError

from vault_index import api
from vault_index.entrypoints import bug
from vault_index.entrypoints.mcp import texts
from vault_index.entrypoints.mcp.agent import ServedAgent
from vault_index.entrypoints.wording import for_agents
from vault_index.errors import VaultError
from vault_index.text.quote import defused_line

MAX_WRONG = 5  # arguments that an answer names
RESOURCE, _MARKDOWN = "lesson://", "text/markdown"


@dataclass(frozen=True, slots=True)
class Alias:
    """Another name of a `tool`, with the arguments that the name stands for."""

    about: str
    tool: str
    narrowed: Mapping[str, Any]


class LessonsServer(MCPServer):
    """A server whose errors are text for the model: what happened, and the next step.

    `unlisted` says of some tools whether the model does not see them now. `aliases` are listed where
    the server `lists_all`; each can be called everywhere.
    """

    def __init__(self, lists_all: bool, **options: Any) -> None:
        # the next search reads a lesson that changed: nothing is announced, so nobody subscribes
        super().__init__(subscriptions=False, **options)
        # not a line on stderr about each bad message: anybody could fill the log
        logging.getLogger("mcp").setLevel(logging.ERROR)
        self.unlisted: dict[str, Callable[[], bool]] = {}
        self.aliases: dict[str, Alias] = {}
        self.lists_all = lists_all
        self.newest: Callable[[], list[mcp_types.Resource]] = list

    async def list_tools(self) -> list[mcp_types.Tool]:
        """Return the tools for the model."""
        listed = [
            tool.model_copy(update={"input_schema": _untitled(tool.input_schema)})
            for tool in await super().list_tools()
            if not self.unlisted.get(tool.name, bool)()
        ]
        if self.lists_all:
            whole = {tool.name: tool for tool in listed}
            listed += [
                _renamed(whole[alias.tool], name, alias)
                for name, alias in self.aliases.items()
                if alias.tool in whole
            ]
        return listed

    async def call_tool(
        self, name: str, arguments: dict[str, Any], context: Context[Any, Any] | None = None
    ) -> mcp_types.CallToolResult | mcp_types.InputRequiredResult:
        """Call a tool, by another name of it, too; an error is an answer."""
        if name in self.aliases:
            alias = self.aliases[name]
            name, arguments = alias.tool, {**arguments, **alias.narrowed}
        allowed = await self._arguments(name)
        if allowed is not None and (unknown := [each for each in arguments if each not in allowed]):
            return _error(await self._refused(name, f"there is no argument {unknown[0]!r:.40}"))
        try:
            return await super().call_tool(name, arguments, context)
        except ToolError as error:
            return _error(await self._explain(name, error))

    async def list_resources(self) -> list[mcp_types.Resource]:
        """Return the newest lessons; any other is read by its id."""
        return await anyio.to_thread.run_sync(self.newest)

    async def read_resource(
        self, uri: Any, context: Context[Any, Any] | None = None
    ) -> Iterable[Any] | mcp_types.InputRequiredResult:
        """Read a resource, whose name may hold `/` and `#` as they are or as `%2F` and `%23`."""
        named = str(uri)
        if named.startswith(RESOURCE):
            named = RESOURCE + quote(unquote(named.removeprefix(RESOURCE)), safe="")
        return await super().read_resource(named, context)

    async def get_prompt(
        self,
        name: str,
        arguments: dict[str, Any] | None = None,
        context: Context[Any, Any] | None = None,
    ) -> mcp_types.GetPromptResult | mcp_types.InputRequiredResult:
        """Return a prompt; a wrong name or argument is the client's mistake, and no bug to log."""
        try:
            return await super().get_prompt(name, arguments, context)
        except ValueError as error:
            raise MCPError(mcp_types.INVALID_PARAMS, defused_line(str(error))) from None

    async def _explain(self, name: str, error: ToolError) -> str:
        cause = error.__cause__
        if isinstance(cause, VaultError):
            return explained(cause)
        if isinstance(cause, ValidationError):
            wrong = [  # of their values nothing is repeated
                f"{'.'.join(map(str, each['loc'])) or 'arguments'}: {each['msg'].lower()}"
                for each in cause.errors(include_url=False, include_input=False)
            ]
            more = [f"and {len(wrong) - MAX_WRONG} more"] if len(wrong) > MAX_WRONG else []
            return await self._refused(name, "; ".join([*wrong[:MAX_WRONG], *more]))
        if cause is None or isinstance(cause, ToolError):
            names = ", ".join(tool.name for tool in await self.list_tools())
            return f"there is no tool {defused_line(name)!r}. Next: choose among {names}."
        caught = bug.caught(cause)
        advice = f"Next: go on without it, and tell the user about it: {caught.hint}."
        return f"{name} failed, which is {caught.message}. {advice}"

    async def _refused(self, name: str, why: str) -> str:
        names = ", ".join(await self._arguments(name) or ()) or "no argument"
        why = defused_line(why)
        return f"{name} cannot take that: {why}. Next: call it again; it takes {names}."

    async def _arguments(self, name: str) -> Collection[str] | None:
        for tool in await super().list_tools():
            if tool.name == name:
                return list(tool.input_schema.get("properties", {}))
        return None


def _untitled(schema: Any) -> Any:
    """Return a schema without titles, which repeat the names of properties, and what holds anyway.

    A model pays for each.
    """
    if not isinstance(schema, dict):
        return schema
    needless = [("additionalProperties", True), ("default", ""), ("default", [])]
    kept = {
        name: _untitled(value)
        for name, value in schema.items()
        if name != "title" and (name, value) not in needless
    }
    if isinstance(schema.get("title"), dict):  # a property of that name
        kept = {"title": _untitled(schema["title"]), **kept}
    return kept


def _renamed(tool: mcp_types.Tool, name: str, alias: Alias) -> mcp_types.Tool:
    properties = tool.input_schema["properties"]
    remaining = {each: properties[each] for each in properties if each not in alias.narrowed}
    schema = {**tool.input_schema, "properties": remaining}
    about = {"title": alias.about[:-1], "description": f"{alias.about} {tool.description}"}
    return tool.model_copy(update={"name": name, "input_schema": schema, **about})


def _error(text: str) -> mcp_types.CallToolResult:
    return mcp_types.CallToolResult(
        content=[mcp_types.TextContent(type="text", text=text)], is_error=True
    )


def explained(error: VaultError) -> str:
    """Return an error as text for the model: what happened, and what to do about it."""
    message = defused_line(error.message)
    return f"{message}. Next: {defused_line(error.hint)}." if error.hint else f"{message}."


def add_resource(server: LessonsServer, agent: ServedAgent) -> None:
    """Add the resource of a lesson to a server."""

    def lesson(id: str) -> str:
        try:
            answer = agent.ask(api.learn.get(name=id))
        except VaultError as error:
            raise ResourceError(explained(error)) from None
        if answer.entry is None:
            raise ResourceNotFoundError(texts.lesson(id, answer))
        return texts.lesson(id, answer)

    def newest() -> list[mcp_types.Resource]:
        with contextlib.suppress(VaultError):
            return [
                mcp_types.Resource(
                    uri=RESOURCE + quote(each.id, safe=""), name=for_agents.line(each.id),
                    title=for_agents.line(each.title), mime_type=_MARKDOWN,
                )
                for each in agent.ask(api.learn.newest())
            ]  # fmt: skip
        return []

    about = "A lesson of the team, by its id."
    server.resource(f"{RESOURCE}{{id}}", title="Lesson", description=about, mime_type=_MARKDOWN)(
        lesson
    )
    server.newest = newest
