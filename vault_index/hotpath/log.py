"""The logs: the hooks', the watcher's, the background index's.

They share one rule: the process that finds a log full moves it away; two files are kept at most.
Nothing but `sys` loads with this module, for the hook imports it before anything else.
"""

from __future__ import annotations

MAX_BYTES = 256 * 1024
MAX_MESSAGE_CHARS = 500
MAX_SESSION_CHARS = 80  # of the id of a session in a record
HOOK_LOG = "hook.log"
NO_INDEX = "the index is not built yet"  # no failure: the files were searched
ASKED = ("UserPromptSubmit", "SessionStart")  # the events that lessons are searched for


def log(event: dict[str, object], message: str, started: float, *, missed: bool = False) -> None:
    """Append a line to the hooks' log in the user's folder; the prompt is not in it.

    `missed`: the agent got no answer for this reason. The line then says of which session and prompt,
    so that it counts where injections do (`store.injections`): the deadline leaves no time for more,
    and the vault's folder may be what hangs.
    """
    try:
        import os
        import time

        from vault_index.hotpath import index_files, protocol

        home = index_files.home_folder(os.environ)
        line = {
            "time": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
            "event": str(event.get("hook_event_name", "")),
            "cwd": str(event.get("cwd", "")),
            "vault": str(event.get("vault", "")),
            "ms": round((time.monotonic() - started) * 1000),
            "message": message[:MAX_MESSAGE_CHARS],
        }
        if missed and event.get("hook_event_name") in ASKED:
            session = str(event.get("session_id") or "")[:MAX_SESSION_CHARS]
            prompt = str(event.get("prompt") or "")
            line |= {"missed": True, "session": session, "prompt": key_of(prompt)}
        os.makedirs(home, mode=0o700, exist_ok=True)  # pathlib costs 8 ms here
        folder = os.open(home, os.O_RDONLY | os.O_DIRECTORY)  # the user's may be a link
        try:
            append(folder, HOOK_LOG, f"{protocol.dumps(line)}\n".encode())
        finally:
            os.close(folder)
    except Exception:  # noqa: BLE001  # a full disk: nobody is left to hear of it
        return


def key_of(prompt: str) -> str:
    """Return the hash by which records know a prompt: 16 digits of its SHA-256; "" for none."""
    if not prompt:
        return ""
    from hashlib import sha256

    return sha256(prompt.encode("utf-8", "replace")).hexdigest()[:16]


def append(folder: int, name: str, data: bytes) -> None:
    """Append to a log of an open folder, and move it away first if it holds over `MAX_BYTES`.

    It is moved to its own name with `.old`. A line that a full disk cut is ended first, so that it does
    not spoil this one. Raises OSError: see `index_files.open_in`.
    """
    import os

    handle = open_for_appending(folder, name)
    try:
        size = os.fstat(handle).st_size
        if size and os.pread(handle, 1, size - 1) != b"\n":
            data = b"\n" + data
        os.write(handle, data)
    finally:
        os.close(handle)


def open_for_appending(folder: int, name: str) -> int:
    """Open a log of an open folder, as `append` does, and return its descriptor. Raises OSError."""
    import os

    from vault_index.hotpath import index_files

    flags = os.O_RDWR | os.O_APPEND | os.O_CREAT
    handle = index_files.open_in(folder, name, flags)
    opened = os.fstat(handle)
    if opened.st_size <= MAX_BYTES:
        return handle
    if not index_files.try_lock(handle):
        return handle  # another process moves it, or writes to it for as long as it runs
    try:
        if os.stat(name, dir_fd=folder, follow_symlinks=False).st_ino == opened.st_ino:
            os.replace(name, f"{name}.old", src_dir_fd=folder, dst_dir_fd=folder)
    except FileNotFoundError:
        pass  # another process moved it, and none has begun a new file
    finally:
        os.close(handle)
    return index_files.open_in(folder, name, flags)
