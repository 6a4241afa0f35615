"""Answer an event once, however many hooks ask: a user's and a project's settings may both have ours.

An agent starts the hooks of an event side by side and waits for them. So an equal event that was
answered after this hook's process began is this event, unless the agent's own ids of its prompts say
otherwise; a prompt that is typed again has a later process. A hook appends a line to a file of the
session and reads the file: the event belongs to its first line. No hook waits for a lock, and nothing
can happen between looking and writing.
"""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Mapping
from pathlib import Path

from vault_index.store import ownership

ENDING = ".answered"
_IDENTIFYING = ("hook_event_name", "source", "prompt_id", "prompt")


def claim(session_file: Path, event: Mapping[str, object], began: float) -> bool:
    """Whether this process may answer an event of a session: no other has since it `began`.

    `began` is in seconds since 1970. A hook that did not get the watcher's answer in time, and has its
    own, holds the claim that the watcher made for its `pid`. Where nothing can be written the claim is
    granted: an answer may then come twice.
    """
    identity = "\0".join(str(event.get(key) or "") for key in _IDENTIFYING)
    name = hashlib.sha256(identity.encode("utf-8", "replace")).hexdigest()[:16]
    began = 0.0 if event.get("prompt_id") else began
    ours = str(event.get("pid") or os.urandom(8).hex())
    file = session_file.with_name(session_file.name + ENDING)
    try:
        ownership.make_folder(file.parent)
        handle = ownership.open_file(file, os.O_RDWR | os.O_APPEND | os.O_CREAT)
        try:
            os.write(handle, f"{name} {time.time()!r} {ours}\n".encode())
            lines = os.pread(handle, os.fstat(handle).st_size, 0).decode("ascii", "replace")
        finally:
            os.close(handle)
    except OSError:
        return True
    for line in lines.splitlines():
        words = line.split()
        if len(words) == 3 and words[0] == name and _seconds(words[1]) >= began:
            return words[2] == ours
    return True


def _seconds(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return 0.0
