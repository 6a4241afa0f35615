"""`lessons-hook`: an agent runs it on every prompt. It never fails and never delays a prompt.

It speaks as Claude Code does; `--agent NAME` translates for another (`hotpath.agents`). At the end of a
turn it only notes that the transcript grew (`hotpath.spool`).

It imports only what Python's start has loaded. Chatter and slash commands need no search. For the rest
it asks the watcher, or starts one (`hotpath.start`), or answers in this process (`fallback`). A thread
ends the process at the deadline: after any failure the agent sees exit status 0 and no output.
"""

from __future__ import annotations

import os
import sys
import time

from vault_index.hotpath import DEFAULT_DEADLINE_MS
from vault_index.hotpath.log import log

TYPE_CHECKING = False  # typing takes 3 ms to load
if TYPE_CHECKING:
    from typing import Any

USAGE = """\
usage: lessons-hook               answer an event of Claude Code: JSON on stdin, JSON or nothing out
       lessons-hook --agent NAME  the same for {names}; plain: for any
                                  other: the prompt (text, or JSON with "prompt") in, the lessons or
                                  nothing out
       lessons-hook git FOLDER    have the vault around FOLDER look for changes; git's hooks call this

`lessons install AGENT` sets it up; `lessons status` shows its last complaint.
"""
DEADLINE_SHARE = 0.95  # the rest is for ending the process, on an overloaded machine
# of the deadline, 0.9 s: a watcher that needs longer is hung, if not sooner by its own record
WATCHER_SHARE = 0.45
WORDS_SECONDS = 0.8  # to answer here by words, on a busy machine
PRINT_SECONDS = 0.03  # to print an answer, before the deadline
SESSION_WATCHER_SHARE = 0.6  # a session's start is a dozen searches and four questions to git
# Parsing holds the interpreter, and then no thread ends the process at the deadline: 20 MB take 0.2 s.
MAX_EVENT_BYTES = 4 * 1024 * 1024
MAX_PROMPT_CHARS = 64 * 1024  # a search looks at the beginning
MAX_FIELD_CHARS = 4096
TICK_SECONDS = 0.01  # the unit in which the system reports when a process began
FIELDS = (  # that are used, where an event has them, beside the prompt and what a tool was told
    *("hook_event_name", "source", "session_id", "prompt_id", "cwd", "agent_id", "agent_type"),
    *("tool_use_id", "transcript_path", "agent_transcript_path"),
)
# A subagent is about to start, with a prompt; and it has started, and can be told something.
STARTING, STARTED = "PreToolUse", "SubagentStart"
STARTING_TOOLS = ("Agent", "Task")  # Task until 2.1.63
# The same event of a tool that edits a file, where the user wants lessons there: as it is called here.
EDIT, EDITING_TOOLS = "FileEdit", ("Edit", "Write", "MultiEdit", "NotebookEdit")
DEFAULT_AGENT = "general-purpose"  # that starts where the tool is told no other
# a turn of a recorded session ended: the journal takes it in, and the agent hears nothing
TURN_ENDS = ("Stop", "SubagentStop", "PreCompact", "SessionEnd")
PROMPT = "UserPromptSubmit"
# a command of the agent failed; a person waits for the agent, which runs hundreds of them
FAILURE = "PostToolUseFailure"
DEADLINE_VARIABLE = "LESSONS_DEADLINE_MS"
FAILURE_VARIABLE = "LESSONS_FAILURE_DEADLINE_MS"
FAILURE_MS = 1000  # a hard limit: most take 60 ms, and people complain from a second on
AT_CALLS = (FAILURE, EDIT)
COMMANDS = ("Bash", "PowerShell")  # the tools that run them
BOM = "\ufeff"  # that Windows' programs begin a text with
MAX_ERROR_CHARS = 64_000  # of an output: half from either end


def main() -> None:
    """Read one event as JSON on stdin, print the answer or nothing, exit 0.

    Git's hooks call `lessons-hook git FOLDER`: lessons of the vault there may have changed.
    """
    started = time.monotonic()
    event: dict[str, object] = {}
    if sys.argv[1:2] in (["--help"], ["-h"]):
        sys.stdout.write(_usage())
        return
    if sys.argv[1:2] == ["git"]:
        _after_git(sys.argv[2] if len(sys.argv) > 2 else ".", started)
        os._exit(0)
    try:
        _arm(event, started)  # before reading: stdin may never be closed
        agent = (sys.argv[2:3] or ["?"])[0] if sys.argv[1:2] == ["--agent"] else ""
        text = _read(0).decode("utf-8", "replace").removeprefix(BOM)
        parsed = _event(agent, text)
        event.update(pid=os.getpid(), began=_began())  # for `delivery.claim`
        event.update(_storable(_needed(parsed)), shows_lines=not agent)
        if event.get("hook_event_name") in ("SessionStart", STARTED):
            event.update(_how_it_asks(agent, event))
        if event.get("hook_event_name") in AT_CALLS:
            _arm(event, started, FAILURE_VARIABLE, FAILURE_MS)
        if event.get("hook_event_name") in TURN_ENDS:
            _after_turn(event)
        elif _worth_asking(event):
            answer = _answer(event, started)
            if answer:
                sys.stdout.buffer.write(_printed(agent, answer).encode())  # in any locale
                sys.stdout.flush()
    except BaseException as error:  # noqa: BLE001  # a hook never fails
        log(event, f"{type(error).__name__}: {error}", started, missed=True)
    os._exit(0)  # no teardown of libraries, no closing of a broken pipe


def _usage() -> str:
    from vault_index.hotpath import agents

    names = ", ".join(agent.name for agent in agents.translated() if agent.hooks)
    return USAGE.format(names=names)


def _how_it_asks(agent: str, event: dict[str, object]) -> dict[str, object]:
    from vault_index.hotpath import tools

    folder = str(event.get("cwd") or os.getcwd())
    profile = None
    if agent:
        from vault_index.hotpath import agents

        profile = agents.named(agent)
    has_tools = tools.is_connected(profile, folder)
    return {"program": tools.program(), "has_tools": has_tools}


def _event(agent: str, text: str) -> dict[str, object]:
    """Return the event of an agent as Claude Code would send it; {} for none. Raises ValueError."""
    from vault_index.hotpath import protocol

    if agent:
        from vault_index.hotpath import agents

        return agents.normalise(agent, text)
    event = protocol.loads(text)
    event = event if isinstance(event, dict) else {}
    if "prompt" in event:  # as one tries it by hand
        event.setdefault("hook_event_name", PROMPT)
    # Cursor and Copilot CLI run the hooks in Claude Code's settings, too, beside their own, which answer
    is_copilot = "timestamp" in event and "transcript_path" not in event
    return {} if is_copilot or "cursor_version" in event else event


def _printed(agent: str, answer: Any) -> str:
    from vault_index.hotpath import protocol

    if not agent:
        return protocol.dumps(answer)
    from vault_index.hotpath import agents

    output = answer.get("hookSpecificOutput")
    if not output:  # a line for the person, which no other agent shows
        return ""
    return agents.answer(agent, output["hookEventName"], output["additionalContext"])


def _read(descriptor: int) -> bytes:
    """Read to the end, so that the writer never fails; raise ValueError if it is too long to parse."""
    parts: list[bytes] = []
    size = 0
    while part := os.read(descriptor, 65536):
        size += len(part)
        if size <= MAX_EVENT_BYTES:
            parts.append(part)
    if size > MAX_EVENT_BYTES:
        raise ValueError(f"an event of {size} bytes is not read")
    return b"".join(parts)


def _needed(event: dict[str, object]) -> dict[str, object]:
    """Return the fields that are used, each text cut to the length that is looked at."""
    name, given = event.get("hook_event_name"), event.get("tool_input")
    values: dict[str, object] = given if isinstance(given, dict) else {}
    if name == FAILURE:
        return _failure(event, values)
    if name == STARTING:
        if event.get("tool_name") in EDITING_TOOLS:
            return _edit(event, values)
        event = _starting(event, values)
    prompt = event.get("prompt")
    return _cut(event) | ({} if prompt is None else {"prompt": str(prompt)[:MAX_PROMPT_CHARS]})


def _storable(event: dict[str, object]) -> dict[str, object]:
    """Return the fields of an event with whole characters alone: they go into files and databases."""
    from vault_index.hotpath import protocol

    texts = {name: text for name, text in event.items() if isinstance(text, str)}
    return {**event, **{name: protocol.whole_characters(text) for name, text in texts.items()}}


def _cut(event: dict[str, object]) -> dict[str, object]:
    texts = {name: event[name] for name in FIELDS if isinstance(event.get(name), str)}
    return {name: str(text)[:MAX_FIELD_CHARS] for name, text in texts.items()}


def _edit(event: dict[str, object], values: dict[str, object]) -> dict[str, object]:
    """Return the fields of a call that edits a file; {} if it is not well formed."""
    file = values.get("file_path") or values.get("notebook_path")
    has_session = isinstance(event.get("session_id"), str) and event["session_id"]
    if not (isinstance(file, str) and has_session and len(file) <= MAX_FIELD_CHARS):
        return {}
    return {**_cut(event), "hook_event_name": EDIT, "file": file}


def _starting(event: dict[str, object], values: dict[str, object]) -> dict[str, object]:
    """Return the call that starts a subagent, its prompt taken for a person's; {} for others."""
    prompt = values.get("prompt")
    if event.get("tool_name") not in STARTING_TOOLS or not isinstance(prompt, str):
        return {}
    return {**event, "prompt": prompt, "agent_type": values.get("subagent_type") or DEFAULT_AGENT}


def _failure(event: dict[str, object], values: dict[str, object]) -> dict[str, object]:
    """Return the fields of a failed call; {} if no lesson can be about it."""
    command, output = values.get("command"), event.get("error")
    is_command = event.get("tool_name") in COMMANDS and isinstance(command, str)
    if not is_command or event.get("is_interrupt") is True or not isinstance(output, str):
        return {}
    if len(output) > MAX_ERROR_CHARS:
        half = MAX_ERROR_CHARS // 2
        output = f"{output[:half]}\n{output[-half:]}"
    command = str(command)[:MAX_FIELD_CHARS]
    return {**_cut(event), "command": command, "error": output}


def _after_git(folder: str, started: float) -> None:
    """Have the watcher look at the files; without one, start the background index.

    It starts no watcher: a worktree that git makes and removes again should leave no process behind.
    """
    try:
        for name in [name for name in os.environ if name.startswith("GIT_")]:
            del os.environ[name]  # of the git command that runs the hook
        from vault_index.hotpath import index_files

        root = index_files.around(folder)
        if root is None:
            return
        from vault_index.hotpath import protocol

        try:
            protocol.ask(root, {"ask": "look"}, _deadline() / 1000 * WATCHER_SHARE)
        except protocol.NoWatcher:
            from vault_index.vault import open_vault
            from vault_index.watch import background_index

            vault = open_vault(root)
            if vault.index_dir.is_dir():  # a vault that nobody searched needs no index yet
                background_index.start_index(vault)
    except BaseException as error:  # noqa: BLE001  # git goes on whatever fails here
        log({"hook_event_name": "git", "cwd": folder}, f"{type(error).__name__}: {error}", started)


def _after_turn(event: dict[str, object]) -> None:
    from vault_index.hotpath import spool

    folder = str(event.get("cwd") or os.getcwd())
    if spool.note_end(event, folder) and not spool.watcher_hears():
        from vault_index.hotpath import start

        start.start_capture(spool.place_of())


def _worth_asking(event: dict[str, object]) -> bool:
    """Whether an event can get lessons at all; nothing heavy loads for it."""
    name = event.get("hook_event_name")
    if name in ("SessionStart", *AT_CALLS, STARTING, STARTED):
        return True  # a prompt of an agent is no chatter
    if name != PROMPT:
        return False
    if event.get("source") in ("system", "loop_wakeup", "schedule_wakeup", "poll_event"):
        return False
    from vault_index.hotpath import chatter

    return not chatter.why_skipped(str(event.get("prompt") or ""))


def _answer(event: dict[str, object], started: float) -> object:
    """Ask the watcher; answer in this process if it is not running or hung."""
    from vault_index.hotpath import index_files

    folder = str(event.get("cwd") or ".")
    folder = folder if os.path.isdir(folder) else os.getcwd()
    root = index_files.find(None, folder, os.environ)
    if root is None:
        return _without_vault(event)  # most projects have none
    from vault_index.hotpath import protocol

    event["vault"] = root  # for the log
    event.setdefault("cwd", os.getcwd())  # the watcher is not where we are
    name, runs, hung = event["hook_event_name"], False, False
    is_call = name in AT_CALLS
    if is_call:
        patience = max(0.001, _left(_deadline(FAILURE_VARIABLE, FAILURE_MS)) - PRINT_SECONDS)
    else:
        share = SESSION_WATCHER_SHARE if name == "SessionStart" else WATCHER_SHARE
        patience = min(_deadline() / 1000 * share, _left())
        patience = protocol.patience(patience) if name == PROMPT else patience
    try:
        reply = _ask(root, event, started, patience, waits=not is_call)
        if reply is not None:
            if reply.get("problem"):
                is_missed = bool(reply.get("missed", not reply.get("answer")))
                log(event, str(reply["problem"]), started, missed=is_missed)
            return reply.get("answer")
    except protocol.NoAnswer as error:
        runs, hung = True, not isinstance(error, protocol.Declined)
        if hung and not isinstance(error, protocol.Gone):
            protocol.lose(root)
        log(event, f"the watcher did not answer: {error}", started, missed=is_call)
    if is_call:  # there is no time to answer here: the watcher that starts has the next call
        return None
    from vault_index.entrypoints.hook import fallback

    is_late = hung or _left() < WORDS_SECONDS
    return fallback.answer(root, event, started, may_start=not runs, text_only=is_late)


def _without_vault(event: dict[str, object]) -> object:
    from vault_index.hotpath import spool

    if event["hook_event_name"] != "SessionStart" or not os.path.isdir(spool.place_of()):
        return None
    from vault_index.entrypoints.hook import fallback

    event.setdefault("cwd", os.getcwd())
    return fallback.answer_without_vault(event)


def _ask(
    root: str, event: dict[str, object], started: float, patience: float, *, waits: bool
) -> dict[str, Any] | None:
    """Ask the watcher, or with `waits` one that is starting; None if no watcher may run."""
    from vault_index.hotpath import protocol

    until = time.monotonic() + patience
    try:
        protocol.refuse_lost(root)
        return protocol.ask(root, _question(event, started, until), patience)
    except protocol.NoWatcher:
        from vault_index.hotpath import start

        until = time.monotonic() + max(0.0, _left() - WORDS_SECONDS) if waits else 0.0
        return start.ask(root, _question(event, started, until), until, autostart)


def autostart(settings: str) -> bool:
    """Return the setting `watch.autostart` of the vault with this settings file."""
    from pathlib import Path

    from vault_index import config

    return config.load(Path(settings), os.environ).watch.autostart


def _question(event: dict[str, object], started: float, until: float) -> dict[str, object]:
    values = {"event": event, "ms": 1000 * (time.monotonic() - started), "until": until}
    return {"ask": "hook", "with": values}


def _deadline(variable: str = DEADLINE_VARIABLE, default: int = DEFAULT_DEADLINE_MS) -> int:
    named = os.environ.get(variable, "")
    return int(named) if named.isdigit() else default


def _arm(
    event: dict[str, object],
    started: float,
    variable: str = DEADLINE_VARIABLE,
    default: int = DEFAULT_DEADLINE_MS,
) -> None:
    """End the process at a deadline, from a thread: all else may hang by then.

    The log names the variable of the deadline, or of the general one if that is the shorter.
    """
    import _thread  # `threading` loads more

    limits = (_deadline(variable, default), variable), (_deadline(), DEADLINE_VARIABLE)
    milliseconds, variable = min(limits, key=lambda limit: limit[0])
    seconds = _left(milliseconds)

    def end() -> None:
        time.sleep(seconds)
        missed = "answer" if event.get("hook_event_name") else "event"
        log(event, f"no {missed} in {milliseconds} ms ({variable})", started, missed=True)
        os._exit(0)

    _thread.start_new_thread(end, ())


def _left(milliseconds: int | None = None) -> float:
    return max(0.001, DEADLINE_SHARE * (milliseconds or _deadline()) / 1000 - _age())


def _age() -> float:
    """Return the seconds that this process has run: the start of Python counts too."""
    try:
        started = _started()
        return max(0.0, time.clock_gettime(time.CLOCK_BOOTTIME) - started)
    except (OSError, AttributeError, ValueError):
        return time.process_time()  # not Linux: at least this


def _began() -> float:
    """Return the time at which this process began, in seconds since 1970, at most a tick late.

    Both clocks are read at once: an earlier beginning would take a repeated prompt for the one before.
    """
    age = _age()
    return time.time() - age + TICK_SECONDS


def _started() -> float:
    with open("/proc/self/stat", "rb") as file:
        return int(file.read().rpartition(b")")[2].split()[19]) / 100
