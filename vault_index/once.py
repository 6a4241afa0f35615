"""One answer to one event, however many hooks ask: settings of a user and a project may both have ours.

An agent starts the hooks of an event side by side and waits for them, so an answer that was given
since this hook began was given to the same event; a prompt that somebody types again comes later.
Who answers appends a line to a file of the session and reads it: the first line of the event has it.
Appending is one system call, so there is no lock to wait for and no moment between look and leap.
"""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Mapping
from pathlib import Path

from vault_index import ownership

# Two hooks of one event do not begin at the same instant, and the clock of each begins after Python.
SKEW_SECONDS = 1.0
ENDING = ".answered"
_TELLING = ("hook_event_name", "source", "prompt_id", "prompt")


def claim(session_file: Path, event: str, began: float) -> bool:
    """Whether it is ours to answer an event of a session: nobody else has since we `began`.

    `event` names all that makes it this one: kind, prompt, the agent's own id of it. `began` is in
    seconds since 1970. Where nothing can be written it is ours, so that an answer may come twice.
    """
    name = hashlib.sha256(event.encode("utf-8", "replace")).hexdigest()[:16]
    ours = os.urandom(8).hex()
    file = session_file.with_name(session_file.name + ENDING)
    try:
        ownership.make_folder(file.parent)
        handle = ownership.open_file(file, os.O_RDWR | os.O_APPEND | os.O_CREAT)
        try:
            os.write(handle, f"{name} {time.time():.3f} {ours}\n".encode())
            lines = os.pread(handle, os.fstat(handle).st_size, 0).decode("ascii", "replace")
        finally:
            os.close(handle)
    except OSError:
        return True
    for line in lines.splitlines():
        words = line.split()
        if len(words) == 3 and words[0] == name and _seconds(words[1]) >= began - SKEW_SECONDS:
            return words[2] == ours
    return True


def name_of(event: Mapping[str, object]) -> str:
    """Return what makes an agent's event this one and no other of its session."""
    return "\0".join(str(event.get(key) or "") for key in _TELLING)


def _seconds(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return 0.0
