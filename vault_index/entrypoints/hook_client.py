"""`lessons-hook`: what Claude Code runs on every prompt. It never fails and never holds one up.

At import only `sys`. What needs no search (chatter, slash commands, prompts that no person typed)
is decided here; the rest is asked of the watcher, which is started and waited for if there is none
(`watch.starting`), or, where there is to be none, goes to `hooks.answer` in this process. A thread
ends the process at the deadline, whatever the rest is doing: exit 0 and no output is what the agent
sees of any failure.
"""

from __future__ import annotations

import sys

TYPE_CHECKING = False  # typing takes 3 ms to load
if TYPE_CHECKING:
    from typing import Any

USAGE = """\
usage: lessons-hook             answer an event of a coding agent: JSON on stdin, JSON or nothing out
       lessons-hook git FOLDER  have the vault around FOLDER look for changes; git's hooks call this

`lessons install claude` sets it up; `lessons status` shows what it complained of.
"""
DEFAULT_DEADLINE_MS = 2000
DEADLINE_SHARE = 0.95  # the rest is for the end itself, on a machine with too much to do
WATCHER_MS = 900  # one that needs longer is hung; there is still time for full text without it
PRINT_SECONDS = 0.03  # to print an answer, before the deadline
SESSION_WATCHER_MS = 1200  # a session's start is a dozen searches and four questions to git
LOG_BYTES = 256 * 1024
# Parsing holds the interpreter, and then no thread ends the process at the deadline: 20 MB take 0.2 s.
EVENT_BYTES = 4 * 1024 * 1024
PROMPT_CHARS = 64 * 1024  # a search looks at the beginning
FIELD_CHARS = 4096
TICK_SECONDS = 0.01  # in which the system tells when a process began
# and the prompt: the rest is not ours
FIELDS = ("hook_event_name", "source", "session_id", "prompt_id", "cwd")


def main() -> None:
    """Read one event as JSON on stdin, print the answer or nothing, exit 0.

    `lessons-hook git FOLDER` is what git's hooks call: lessons of the vault there may have changed.
    """
    import os
    import time

    started = time.monotonic()
    event: dict[str, object] = {}
    if sys.argv[1:2] in (["--help"], ["-h"]):
        sys.stdout.write(USAGE)
        return
    if sys.argv[1:2] == ["git"]:
        _after_git(sys.argv[2] if len(sys.argv) > 2 else ".", started)
        os._exit(0)
    try:
        from vault_index import small_json

        _arm(event, started)  # before reading: whoever runs this may never close stdin
        parsed = small_json.loads(_read(0).decode("utf-8", "replace"))
        # for `once`
        event.update(pid=os.getpid(), began=time.time() - _age() + TICK_SECONDS)
        event.update(_needed(parsed) if isinstance(parsed, dict) else {})
        if _worth_asking(event):
            answer = _answer(event, started)
            if answer:
                sys.stdout.write(small_json.dumps(answer))
                sys.stdout.flush()
    except BaseException as error:  # noqa: BLE001  # a hook never fails
        log(event, f"{type(error).__name__}: {error}", started)
    os._exit(0)  # no teardown of libraries, no closing of a pipe that is gone


def _read(descriptor: int) -> bytes:
    """Read to the end, so that who writes never fails; raise ValueError if it is too much to parse."""
    import os

    parts: list[bytes] = []
    size = 0
    while part := os.read(descriptor, 65536):
        size += len(part)
        if size <= EVENT_BYTES:
            parts.append(part)
    if size > EVENT_BYTES:
        raise ValueError(f"an event of {size} bytes is not read")
    return b"".join(parts)


def _needed(event: dict[str, object]) -> dict[str, object]:
    """Return what we go by, each text cut to what is looked at."""
    needed = {name: event[name] for name in FIELDS if name in event}
    texts = {name: value for name, value in needed.items() if isinstance(value, str)}
    cut: dict[str, object] = {name: value[:FIELD_CHARS] for name, value in texts.items()}
    prompt = event.get("prompt")
    if prompt is not None:
        cut["prompt"] = str(prompt)[:PROMPT_CHARS]
    return cut


def _after_git(folder: str, started: float) -> None:
    """Tell the watcher to look; without one, start a reconcile in the background."""
    import os

    try:
        for name in [name for name in os.environ if name.startswith("GIT_")]:
            del os.environ[name]  # of the git command that runs the hook
        from vault_index import locate

        root = locate.walk_up(folder)
        if root is None:
            return
        from vault_index.watch import line

        try:
            line.ask(root, {"ask": "look"}, WATCHER_MS / 1000)
        except line.NobodyListens:
            from vault_index.entrypoints import hooks

            hooks.look_in_background(root)
    except BaseException as error:  # noqa: BLE001  # git goes on whatever happens here
        log({"hook_event_name": "git", "cwd": folder}, f"{type(error).__name__}: {error}", started)


def _worth_asking(event: dict[str, object]) -> bool:
    """Tell whether an event can get lessons at all; loads nothing heavy."""
    name = event.get("hook_event_name")
    if name == "SessionStart":
        return True
    if name != "UserPromptSubmit":
        return False
    if event.get("source") in ("system", "loop_wakeup", "schedule_wakeup", "poll_event"):
        return False
    from vault_index import silence

    return not silence.reason(str(event.get("prompt") or ""))


def _answer(event: dict[str, object], started: float) -> object:
    """Ask the watcher; without one, or if it is hung, answer in this process."""
    import os

    from vault_index import locate

    root = locate.for_hook(str(event.get("cwd") or "."), os.environ)
    if root is None:
        return None  # most projects have no vault
    from vault_index.watch import line

    event["vault"] = root  # for the log
    event.setdefault("cwd", os.getcwd())  # noqa: PTH109  # the watcher is not where we are
    session = event["hook_event_name"] == "SessionStart"
    patience = min(SESSION_WATCHER_MS if session else WATCHER_MS, _deadline() / 2)
    is_there = hung = False
    try:
        reply = _ask(root, event, started, patience / 1000)
        if reply is not None:
            if reply.get("problem"):
                log(event, str(reply["problem"]), started)
            return reply.get("answer")
    except line.NoAnswer as error:
        is_there, hung = True, not isinstance(error, line.Stranger)
        log(event, f"the watcher did not answer: {error}", started)
    from vault_index.entrypoints import hooks

    return hooks.answer(event, started, may_start=not is_there, text_only=hung)


def _ask(
    root: str, event: dict[str, object], started: float, patience: float
) -> dict[str, Any] | None:
    """Ask the watcher that listens, else the one that starts; None if there is to be none."""
    import time

    from vault_index.watch import line

    until = time.monotonic() + patience
    try:
        return line.ask(root, _question(event, started, until), patience)
    except line.NobodyListens:
        from vault_index.watch import starting

        until = time.monotonic() + max(0.0, _left() - PRINT_SECONDS)
        return starting.ask(root, _question(event, started, until), until)


def _question(event: dict[str, object], started: float, until: float) -> dict[str, object]:
    """Return what the watcher is asked; an answer after `until` was not given."""
    import time

    asked = {"event": event, "ms": 1000 * (time.monotonic() - started), "until": until}
    return {"ask": "hook", "with": asked}


def _deadline() -> int:
    import os

    named = os.environ.get("LESSONS_DEADLINE_MS", "")
    return int(named) if named.isdigit() else DEFAULT_DEADLINE_MS


def _arm(event: dict[str, object], started: float) -> None:
    """End the process at the deadline, from a thread: nothing else may be listening by then."""
    import _thread  # `threading` loads more
    import os
    import time

    milliseconds = _deadline()
    seconds = _left()

    def end() -> None:
        time.sleep(seconds)
        log(event, f"no answer in {milliseconds} ms", started)
        os._exit(0)

    _thread.start_new_thread(end, ())


def _left() -> float:
    """Return the seconds until this process ends itself."""
    return max(0.001, DEADLINE_SHARE * _deadline() / 1000 - _age())


def _age() -> float:
    """Give for how many seconds this process has run: the start of Python counts, too."""
    import time

    try:
        with open("/proc/self/stat", "rb") as file:  # noqa: PTH123
            ticks = int(file.read().rpartition(b")")[2].split()[19])  # since the machine started
        return max(0.0, time.clock_gettime(time.CLOCK_BOOTTIME) - ticks / 100)
    except (OSError, AttributeError, ValueError):
        return time.process_time()  # not Linux: at least this


def log(event: dict[str, object], message: str, started: float) -> None:
    """Append a line to the hooks' log in the user's folder; the prompt is not in it."""
    try:
        import os
        import time

        from vault_index import small_json

        home = os.environ.get("LESSONS_HOME") or os.path.expanduser("~/.lessons")  # noqa: PTH111
        os.makedirs(home, mode=0o700, exist_ok=True)  # noqa: PTH103  # pathlib costs 8 ms here
        path = f"{home}/hook.log"
        line = {
            "time": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
            "event": str(event.get("hook_event_name", "")),
            "cwd": str(event.get("cwd", "")),
            "vault": str(event.get("vault", "")),
            "ms": round((time.monotonic() - started) * 1000),
            "message": message[:500],
        }
        if os.path.exists(path) and os.path.getsize(path) > LOG_BYTES:  # noqa: PTH110, PTH202
            os.replace(path, f"{path}.old")  # noqa: PTH105
        with open(path, "a", encoding="utf-8") as file:  # noqa: PTH123
            file.write(small_json.dumps(line) + "\n")
    except Exception:  # noqa: BLE001  # a full disk: there is nobody left to tell
        return
