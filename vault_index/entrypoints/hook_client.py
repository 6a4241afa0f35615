"""`lessons-hook`: what Claude Code runs on every prompt. It never fails and never holds one up.

At import only `sys`. What needs no search (chatter, slash commands, prompts that no person typed)
is decided here; the rest goes to `hooks.answer` in this process. A thread ends the process at the
deadline, whatever the rest is doing: exit 0 and no output is what the agent sees of any failure.
"""

from __future__ import annotations

import sys

DEFAULT_DEADLINE_MS = 2000
LOG_BYTES = 256 * 1024


def main() -> None:
    """Read one event as JSON on stdin, print the answer or nothing, exit 0."""
    import os
    import time

    started = time.monotonic()
    event: dict[str, object] = {}
    try:
        import json

        _arm(event, started)  # before reading: whoever runs this may never close stdin
        parsed = json.loads(sys.stdin.buffer.read().decode("utf-8", "replace"))
        event.update(parsed if isinstance(parsed, dict) else {})
        if _worth_asking(event):
            from vault_index.entrypoints import hooks

            answer = hooks.answer(event)
            if answer:
                sys.stdout.write(json.dumps(answer))
                sys.stdout.flush()
    except BaseException as error:  # noqa: BLE001  # a hook never fails
        log(event, f"{type(error).__name__}: {error}", started)
    os._exit(0)  # no teardown of libraries, no closing of a pipe that is gone


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


def _arm(event: dict[str, object], started: float) -> None:
    """End the process at the deadline, from a thread: nothing else may be listening by then."""
    import os
    import threading

    named = os.environ.get("LESSONS_DEADLINE_MS", "")
    milliseconds = int(named) if named.isdigit() else DEFAULT_DEADLINE_MS

    def end() -> None:
        log(event, f"no answer in {milliseconds} ms", started)
        os._exit(0)

    thread = threading.Timer(milliseconds / 1000, end)
    thread.daemon = True
    thread.start()


def log(event: dict[str, object], message: str, started: float) -> None:
    """Append a line to the hooks' log in the user's folder; the prompt is not in it."""
    try:
        import json
        import os
        import time

        home = os.environ.get("LESSONS_HOME") or os.path.expanduser("~/.lessons")  # noqa: PTH111
        os.makedirs(home, mode=0o700, exist_ok=True)  # noqa: PTH103  # pathlib costs 8 ms here
        path = f"{home}/hook.log"
        line = {
            "time": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
            "event": str(event.get("hook_event_name", "")),
            "cwd": str(event.get("cwd", "")),
            "ms": round((time.monotonic() - started) * 1000),
            "message": message[:500],
        }
        if os.path.exists(path) and os.path.getsize(path) > LOG_BYTES:  # noqa: PTH110, PTH202
            os.replace(path, f"{path}.old")  # noqa: PTH105
        with open(path, "a", encoding="utf-8") as file:  # noqa: PTH123
            file.write(json.dumps(line) + "\n")
    except Exception:  # noqa: BLE001  # a full disk: there is nobody left to tell
        return
