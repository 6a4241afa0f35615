"""The agents: each is one class here, and every list of agents comes from `AGENTS`.

A class says how the hook reads the agent's events and answers them, and where `lessons install` writes
hooks, commands and looks for the MCP server. To add an agent, write its class, and name it in `AGENTS`.

    agent     the prompt           the start      after a command  the answer on stdout
    claude    UserPromptSubmit     SessionStart   -                hookSpecificOutput
    codex     UserPromptSubmit     SessionStart   PostToolUse      as Claude Code's; no other key
    gemini    BeforeAgent          SessionStart   AfterTool        as Claude Code's, with its own name
    cursor    beforeSubmitPrompt   sessionStart   postToolUse      {"additional_context": ...}
    copilot   UserPromptSubmit     SessionStart   PostToolUse      {"additionalContext": ...}
    opencode  sent by our plugin, named as Claude Code's     the block itself
    plain     JSON, or the prompt itself                     the block itself

An answer that an agent cannot use may block its prompt, so each gets exactly its form or nothing.

The hook loads this module, so it is the standard library, and `dataclasses` takes as long to load as a
quarter of the hook: a record is a class of constants, and nobody sets them on an object.
"""

from __future__ import annotations

import os

from vault_index.hotpath import index_files, protocol

TYPE_CHECKING = False  # typing takes 3 ms to load
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

PROMPT, START, FAILURE = "UserPromptSubmit", "SessionStart", "PostToolUseFailure"
# When a hook is there: always, or only where the user asks for it.
ALWAYS, JOURNAL, FAILURES, FILES = "always", "journal", "failures", "files"
INTERRUPTED = 130  # the status of a command that somebody stopped
EMPTIED = "emptied"  # the source of a start that only forgets what the session had
MAX_TAIL = 512 * 1024  # bytes of a session's file: calls that run side by side end in any order
MAX_SETTINGS = 4 * 1024 * 1024  # bytes of a settings file


class Hook:
    """An event of an agent at which our hook runs, and the time that it gives a hook, in its own unit."""

    __slots__ = ("event", "says", "timeout", "tools")

    def __init__(self, event: str, timeout: int, tools: str = "", says: str = "") -> None:
        self.event = event
        self.timeout = timeout
        self.tools = tools  # that it is limited to, as the agent writes them
        self.says = says  # what it does, where the agent tells its user


class Agent:
    """All that we know of an agent. Each field has the value of an agent that needs nothing special."""

    name: str  # as it is typed: `lessons install codex`
    title: str  # as it calls itself
    tested_with: str = ""  # its version

    # the hook
    events: Mapping[str, str] = {}  # an event's name -> Claude Code's; others stay as they are
    fields: Mapping[str, str] = {}  # Claude Code's name of a field -> the agent's

    # `lessons install`
    hooks: Mapping[str, Sequence[Hook]] = {}  # by when they are there; none: nothing to install
    file: str = ""  # with the hooks, in a project and in the user's home
    own_file: str = ""  # in the user's home, if it is another one
    variable: str = ""  # names the user's own folder of the agent
    exec_form: bool = False  # it runs a command without a shell if that has `args`
    is_grouped: bool = True  # an event has groups of hooks, as in Claude Code; else hooks
    has_comments: bool = False  # it reads JSON with comments
    beside: Mapping[str, Any] = {}  # what the file must have
    only: Sequence[str] = ()  # keys of the file: with any other it drops the file without a word
    permissions: Sequence[str] = ()  # by which it asks, reads and proposes without asking the user
    to_do: str = ""  # left to the user after `install`
    installer: str = ""  # `module:class` of what writes its hooks, if they are no JSON

    # a command that the user types, such as /lessons:learn; none without a file
    command_file: str = ""  # beside the hooks; NAME is the command's
    typed: str = "(see below)"  # its placeholder for what the user typed

    # the MCP server
    server_file: str = ""  # with its MCP servers, in a project and in the user's home
    server_key: str = ""  # that they are below

    # the journal, which knows only agents with a reader
    reader: str = ""  # `module:class` of what reads a transcript
    sessions: str = ""  # the folder of transcripts in the user's home
    transcript: str = ""  # a regular expression for their paths in it

    @property
    def arguments(self) -> str:
        """Return the arguments of our command in the agent's settings."""
        return f" --agent {self.name}"

    def of_user(self, file: str) -> str:
        """Return the path of a file in the agent's own folder of the user."""
        folder, _, rest = file.partition("/")
        named = os.environ.get(self.variable) if self.variable else ""
        return f"{named or os.path.join(os.path.expanduser('~'), folder)}/{rest}"

    def parse(self, text: str) -> object:
        """Return the event on stdin, as the agent has it. Raises ValueError."""
        return protocol.loads(text)

    def ended(self, event: dict[str, object]) -> tuple[object, object] | None:
        """Return the output of a command that ended, and its status; None where only failures come.

        Without a status nothing failed. Raises OSError, ValueError for another version's form.
        """
        return None

    def adjust(self, event: dict[str, object], name: object) -> None:
        """Change an event beyond `events` and `fields`; `name` is the agent's own of the event."""

    def answer(self, name: object, block: str) -> str:
        """Return the output for the block that an event gets, by Claude Code's `name` of the event."""
        names = {ours: theirs for theirs, ours in self.events.items()}
        output = {"hookEventName": names.get(str(name), name), "additionalContext": block}
        return protocol.dumps({"hookSpecificOutput": output})

    def memory(self, settings: str) -> str:
        """Return the meaning of the agent's own memory for lessons, "" if the settings turn it off."""
        return ""


class ClaudeCode(Agent):
    """Claude Code, whose names the hook speaks: its events are not translated."""

    name = "claude"
    title = "Claude Code"
    tested_with = "2.1.329"
    hooks = {  # times in seconds, past our own deadline
        ALWAYS: (
            Hook("UserPromptSubmit", 5),
            Hook("SessionStart", 10),
            Hook("PostToolUseFailure", 5, "Bash|PowerShell"),  # the tools that run commands
            Hook("PreToolUse", 5, "Agent|Task"),  # those that start a subagent
            Hook("SubagentStart", 5),
        ),
        JOURNAL: (
            Hook("Stop", 5),
            Hook("SubagentStop", 5),
            Hook("PreCompact", 5),
            Hook("SessionEnd", 5),  # which waits no longer than its own budget for it
        ),
        FILES: (Hook("PreToolUse", 5, "Edit|Write|MultiEdit|NotebookEdit"),),
    }
    file = ".claude/settings.json"
    variable = "CLAUDE_CONFIG_DIR"
    exec_form = True
    permissions = ("Bash(lessons show:*)", "Bash(lessons search:*)", "Bash(lessons propose:*)")
    command_file = "commands/lessons/NAME.md"
    typed = "$ARGUMENTS"
    reader = "transcripts.claude_code:ClaudeReader"
    sessions = ".claude/projects"
    # in the folder of its project, and its subagents' in a folder of the session
    transcript = r"[^/.][^/]*/(?:[^/]+|[^/]+/subagents/agent-[^/]+)\.jsonl"
    arguments = ""

    def memory(self, settings: str) -> str:
        """Return the meaning of the memory, which is on unless a setting or a variable says otherwise."""
        values = _settings(settings)
        environment = values.get("env")
        variables = {**(environment if isinstance(environment, dict) else {}), **os.environ}
        disabled = variables.get("CLAUDE_CODE_DISABLE_AUTO_MEMORY", "")
        if values.get("autoMemoryEnabled") is False or disabled not in ("", "0", "false"):
            return ""
        return "its notes stay on this machine. Put what the team should know into a lesson"


class Codex(Agent):
    """Codex CLI, which notes the status of a command in the session's file."""

    name = "codex"
    title = "Codex"
    tested_with = "0.171.0"
    events = {"PostToolUse": FAILURE}
    fields = {"prompt_id": "turn_id"}
    hooks = {
        # its dialog of trust shows the message as the name of the hook: else "Unnamed hook"
        ALWAYS: (
            Hook("UserPromptSubmit", 5, says="find what the team learned about a prompt"),
            Hook("SessionStart", 10, says="find what the team learned about this project"),
            Hook("SubagentStart", 5, says="tell a subagent how many lessons there are"),
        ),
        JOURNAL: (Hook("Stop", 5, says="note that a turn ended"),),
        FAILURES: (Hook("PostToolUse", 5, "Bash", says="find a lesson on a command that failed"),),
    }
    file = ".codex/hooks.json"
    variable = "CODEX_HOME"
    only = ("description", "hooks")
    to_do = "Codex runs new hooks only when you have trusted them: start codex, and review them"
    command_file = "skills/lessons-NAME/SKILL.md"
    typed = "(what I typed beside the name of this skill)"
    server_file = ".codex/config.toml"
    server_key = "mcp_servers"
    reader = "transcripts.codex:CodexReader"
    sessions = ".codex/sessions"
    transcript = r"(?:.*/)?rollout-[^/]+\.jsonl"  # by year, month and day

    def ended(self, event: dict[str, object]) -> tuple[object, object]:
        """Return the output and the status, which Codex wrote down before it runs the hook."""
        call = str(event.get("tool_use_id"))
        handle = index_files.open_plain(str(event.get("transcript_path")), follow=True)
        with open(handle, "rb") as file:
            file.seek(max(0, os.fstat(file.fileno()).st_size - MAX_TAIL))
            lines = file.read(MAX_TAIL).splitlines()
        for line in reversed(lines):
            if call.encode() in line and b'"CommandExecution"' in line:
                item = _item(protocol.loads(line.decode("utf-8", "replace")), "payload", "item")
                if _item(item, "id") == call:
                    return event.get("tool_response"), _item(item, "exit_code")
        return "", None

    def adjust(self, event: dict[str, object], name: object) -> None:
        """Take the prompt of an agent to its subagent for no person's."""
        if event.get("agent_id"):
            event["source"] = "system"

    def memory(self, settings: str) -> str:
        """Return the meaning of the memory, which is on if `config.toml` says so."""
        import tomllib

        text = _text(f"{os.path.dirname(settings)}/config.toml")
        try:
            is_on = _item(tomllib.loads(text), "features", "memories") is True
        except ValueError:
            is_on = False
        means = (
            "Codex then seldom asks an MCP server; the hooks bring the team's lessons all the same"
        )
        return means if is_on else ""


class GeminiCli(Agent):
    """Gemini CLI, which adds the status of a command to its output."""

    # it tells that it compresses a conversation, and reads no answer
    compresses = "PreCompress"
    # without a terminal it puts what was injected at the start before the first prompt
    opening, closing = "<hook_context>", "</hook_context>"

    name = "gemini"
    title = "Gemini CLI"
    tested_with = "0.61.0"
    events = {"BeforeAgent": PROMPT, "AfterTool": FAILURE}
    fields = {"prompt_id": "timestamp"}  # of the event: all of its hooks get the same
    hooks = {  # milliseconds
        ALWAYS: (
            Hook("BeforeAgent", 5000),
            Hook("SessionStart", 10_000),
            Hook("PreCompress", 5000),
        ),
        FAILURES: (Hook("AfterTool", 5000, "run_shell_command"),),
    }
    file = ".gemini/settings.json"
    has_comments = True
    command_file = "commands/lessons/NAME.toml"
    typed = "{{args}}"
    server_file = ".gemini/settings.json"
    server_key = "mcpServers"

    def ended(self, event: dict[str, object]) -> tuple[object, object]:
        """Return the output and the status after it."""
        response = event.get("tool_response")
        output, text = _item(response, "returnDisplay"), str(_item(response, "llmContent"))
        if not isinstance(output, str):
            return "", None
        start, after = f"Output: {output}\nExit Code: ", text.partition("\n")[2]
        status = after[len(start) :].partition("\n")[0] if after.startswith(start) else ""
        return output, int(status) if status.isdigit() else None

    def adjust(self, event: dict[str, object], name: object) -> None:
        """Take a compressed conversation for a start, and our own block out of a prompt."""
        prompt = event.get("prompt")
        if name == self.compresses:
            event.update(hook_event_name=START, source=EMPTIED)
        if isinstance(prompt, str) and prompt.startswith(self.opening):
            event["prompt"] = prompt.partition(self.closing)[2]


class Cursor(Agent):
    """Cursor, which has the status of a command beside its output."""

    name = "cursor"
    title = "Cursor"
    tested_with = "its documentation only"
    events = {"beforeSubmitPrompt": PROMPT, "sessionStart": START, "postToolUse": FAILURE}
    fields = {"session_id": "conversation_id", "prompt_id": "generation_id"}
    hooks = {  # seconds
        ALWAYS: (Hook("beforeSubmitPrompt", 5), Hook("sessionStart", 10)),
        FAILURES: (Hook("postToolUse", 5, "Shell"),),
    }
    file = ".cursor/hooks.json"
    is_grouped = False
    has_comments = True
    beside = {"version": 1}
    command_file = "commands/lessons-NAME.md"
    server_file = ".cursor/mcp.json"
    server_key = "mcpServers"

    def ended(self, event: dict[str, object]) -> tuple[object, object]:
        """Return both outputs, and the status."""
        values = protocol.loads(str(event.get("tool_output")))
        texts = [_item(values, name) for name in ("stdout", "stderr")]
        return "\n".join(text for text in texts if isinstance(text, str)), _item(values, "exitCode")

    def adjust(self, event: dict[str, object], name: object) -> None:
        """Take the first folder of the workspace for the one that it works in."""
        roots = event.get("workspace_roots")
        if not event.get("cwd") and isinstance(roots, list) and roots:
            event["cwd"] = roots[0]

    def answer(self, name: object, block: str) -> str:
        """Return the block with leave to go on, without which Cursor may drop a prompt."""
        go_on = {"continue": True} if name == PROMPT else {}
        return protocol.dumps({**go_on, "additional_context": block})


class CopilotCli(Agent):
    """Copilot CLI, which adds the status of a command to its output."""

    name = "copilot"
    title = "Copilot CLI"
    tested_with = "1.0.102"
    events = {"PostToolUse": FAILURE}
    fields = {"prompt_id": "timestamp"}
    hooks = {  # by these names it speaks as Claude Code
        ALWAYS: (Hook("UserPromptSubmit", 5), Hook("SessionStart", 10)),
        FAILURES: (Hook("PostToolUse", 5, "bash|powershell"),),
    }
    file = ".github/hooks/lessons.json"
    own_file = ".copilot/hooks/lessons.json"
    variable = "COPILOT_HOME"
    beside = {"version": 1}
    server_file = ".copilot/mcp-config.json"
    server_key = "mcpServers"

    def ended(self, event: dict[str, object]) -> tuple[object, object]:
        """Return the output without its last line, and the status there."""
        text = str(_item(event, "tool_result", "text_result_for_llm")).rstrip()
        output, _, ended = text.rpartition("<shellId: ")
        status = ended.partition(" completed with exit code ")[2].removesuffix(">")
        return output, int(status) if status.isdigit() else None

    def adjust(self, event: dict[str, object], name: object) -> None:
        """Call a new session as Claude Code does."""
        if event.get("source") == "new":
            event["source"] = "startup"

    def answer(self, name: object, block: str) -> str:
        """Return the block below the one key that it reads."""
        return protocol.dumps({"additionalContext": block})


class OpenCode(Agent):
    """opencode, whose plugin of ours sends events as Claude Code does, failures among them."""

    name = "opencode"
    title = "opencode"
    tested_with = "1.18.33"
    hooks = {ALWAYS: (Hook("chat.message", 0), Hook("tool.execute.after", 0))}
    file = ".opencode/plugins/lessons.js"
    own_file = ".config/opencode/plugins/lessons.js"
    variable = "XDG_CONFIG_HOME"
    installer = "entrypoints.agents.opencode:Plugin"
    command_file = "../commands/lessons-NAME.md"
    typed = "$ARGUMENTS"
    server_file = ".config/opencode/opencode.json"
    server_key = "mcp"

    def answer(self, name: object, block: str) -> str:
        """Return the block itself."""
        return f"{block}\n"


class AnyAgent(Agent):
    """An agent that we know nothing of: a program gives us its prompt."""

    name = "plain"
    title = "any other"

    def parse(self, text: str) -> object:
        """Return an event: JSON with a prompt or the name of an event, else the text is the prompt."""
        if text.lstrip()[:1] == "{":
            try:
                event = protocol.loads(text)
            except (ValueError, RecursionError):
                event = None
            if isinstance(event, dict) and ("prompt" in event or "hook_event_name" in event):
                return {"hook_event_name": PROMPT, **event}
        return {"hook_event_name": PROMPT, "prompt": text}

    def answer(self, name: object, block: str) -> str:
        """Return the block itself."""
        return f"{block}\n"


CLAUDE_CODE = ClaudeCode()
AGENTS: tuple[Agent, ...] = (
    CLAUDE_CODE,
    Codex(),
    GeminiCli(),
    Cursor(),
    CopilotCli(),
    OpenCode(),
    AnyAgent(),
)


def load(path: str) -> Any:
    """Return the class `module:class` of this package, which an agent names."""
    from importlib import import_module

    module, _, name = path.partition(":")
    return getattr(import_module(f"vault_index.{module}"), name)


def translated() -> list[Agent]:
    """Return the agents that our hook is told of by `--agent`: all but Claude Code."""
    return [agent for agent in AGENTS if agent is not CLAUDE_CODE]


def named(name: str) -> Agent:
    """Return the agent of a name after `--agent`. Raises ValueError, which says which there are."""
    for agent in translated():
        if agent.name == name:
            return agent
    names = ", ".join(agent.name for agent in translated())
    raise ValueError(f"no agent is called {name[:40]!r}: {names}")


def normalise(name: str, text: str) -> dict[str, object]:
    """Return an agent's event with Claude Code's names. Raises ValueError for anything else."""
    agent = named(name)
    event = agent.parse(text)
    if not isinstance(event, dict):
        raise ValueError("the event is no JSON object")
    theirs = event.get("hook_event_name")
    event["hook_event_name"] = agent.events.get(str(theirs), theirs)
    if event["hook_event_name"] == FAILURE:
        try:
            ended = agent.ended(event)
        except (OSError, ValueError, RecursionError):  # another version's form
            return {}
        if ended:
            output, status = ended
            if not isinstance(status, int) or status <= 0 or status == INTERRUPTED:
                return {}
            event.update(tool_name="Bash", error=output)
    for ours, field in agent.fields.items():
        if event.get(field):
            event[ours] = event[field]
    agent.adjust(event, theirs)
    return event


def answer(name: str, event: object, block: str) -> str:
    """Return the output for the block that an event gets, by Claude Code's name of the event."""
    return named(name).answer(event, block)


def _item(value: object, *names: str) -> object:
    for name in names:
        value = value.get(name) if isinstance(value, dict) else None
    return value


def _settings(path: str) -> dict[str, object]:
    """Return the object of a JSON file; {} for anything else."""
    try:
        values = protocol.loads(_text(path))
    except (ValueError, RecursionError):
        return {}
    return values if isinstance(values, dict) else {}


def _text(path: str) -> str:
    try:
        data = index_files.read(path, MAX_SETTINGS, follow=True)
    except OSError:
        return ""
    return data.decode("utf-8", "replace").removeprefix("\ufeff")
