"""The spool: hooks at the end of a turn note that a transcript has new lines. Nothing is lost or waits.

    ~/.lessons/journal/
      recorded        whose sessions are recorded: a folder a line, `*` for all, `!` before one: never
      .grown/         0700
        <hash>        the path of a transcript that grew: a file each, however often it grew
        <hash>.ended  the same of one whose session ended, to be learned from
        lock          held by the process that captures them

A hook writes the file, then tells the watcher or, without one, starts a process that captures and holds
the lock. The holder looks again after it has let go. Standard library only.
"""

from __future__ import annotations

import errno
import os

from vault_index.hotpath import index_files, protocol

TYPE_CHECKING = False  # typing takes 3 ms to load
if TYPE_CHECKING:
    from collections.abc import Mapping

JOURNAL, RECORDED = "journal", "recorded"
FORGETTING = "forgetting.json"  # in the journal: what is being forgotten, see `journal.forget`
EVERYTHING, NEVER = "*", "!"  # lines of `recorded`; the second before a folder
INDEX = ".vault_index"  # in the journal: the index of its sessions
FOLDER = ".grown"
SESSION_END, ENDED = "SessionEnd", ".ended"
INTERNAL = "LESSONS_INTERNAL"  # set to 1 in the sessions that this product starts
# the first line of each prompt in them
MARKER = "[lessons: an internal request of vault-index, not a session of the user]"
WATCHER_SECONDS = 0.3  # the watcher only notes it; one that needs longer is hung
MAX_BYTES = 256 * 1024  # of the file `recorded`


def place_of() -> str:
    """Return the folder of the journal."""
    return f"{index_files.home_folder(os.environ)}/{JOURNAL}"


def note_end(event: Mapping[str, object], folder: str) -> bool:
    """Note the transcript of a turn that ended in a folder. Whether it is to be captured.

    It is not where nothing is recorded, in the sessions of this product, and where a command of the
    agent, such as `claude plugin install`, ended without a transcript. Raises OSError.
    """
    if os.environ.get(INTERNAL):
        return False
    path = str(event.get("agent_transcript_path") or event.get("transcript_path") or "")
    journal = place_of()
    if not os.path.exists(path) or not is_recorded(journal, folder):
        return False
    if event.get("hook_event_name") == SESSION_END:
        note(journal, path, ENDED)
    note(journal, path)
    return True


def is_recorded(journal: str, folder: str) -> bool:
    """Whether the sessions of a folder, or of its main worktree, are recorded. Raises OSError."""
    recorded = recorded_folders(journal)
    if recorded in ([], [EVERYTHING]):
        return bool(recorded)
    candidates = [os.path.abspath(folder), os.path.realpath(folder)]
    candidates += filter(None, [_main_worktree(candidates[0])])
    named = {line: line.removeprefix(NEVER).rstrip("/") for line in recorded}
    around = [
        line
        for line, folder in named.items()
        if any(f"{candidate}/".startswith(f"{folder}/") for candidate in candidates)
    ]
    nearest = max(around, key=lambda line: len(named[line]), default="")
    return not nearest.startswith(NEVER) if nearest else EVERYTHING in recorded


def is_on() -> bool:
    """Whether the user has a journal: sessions are recorded, or some were, or were imported."""
    journal = place_of()
    try:
        is_recorded = any(not line.startswith(NEVER) for line in recorded_folders(journal))
    except OSError:  # who asks the journal is told
        return True
    return is_recorded or os.path.isdir(f"{journal}/{INDEX}")


def recorded_folders(journal: str) -> list[str]:
    """Return the lines of `recorded`, without comments; none without it. Raises OSError."""
    try:
        data = index_files.read(f"{journal}/{RECORDED}", MAX_BYTES)
    except (FileNotFoundError, NotADirectoryError):
        return []
    lines = data.decode("utf-8", "replace").split("\n")
    return [line.strip() for line in lines if line.strip() and not line.startswith("#")]


def note(journal: str, transcript: str, suffix: str = "") -> None:
    """Write that a transcript grew; each time it is another file. Raises OSError."""
    name = f"{protocol.fnv64(transcript):016x}{suffix}"
    beside = f"{name}.{os.getpid()}"
    spool = index_files.open_or_make(f"{journal}/{FOLDER}")
    try:
        handle = index_files.open_in(spool, beside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        try:
            data = os.fsencode(transcript)
            if os.write(handle, data) < len(data):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            os.replace(beside, name, src_dir_fd=spool, dst_dir_fd=spool)
        except OSError:
            os.unlink(beside, dir_fd=spool)
            raise
        finally:
            os.close(handle)
    finally:
        os.close(spool)


def watcher_hears() -> bool:
    """Whether the user's watcher heard that transcripts grew."""
    try:
        protocol.refuse_lost("")
        protocol.ask("", {"ask": "grown"}, WATCHER_SECONDS)
        return True
    except protocol.NoWatcher:
        return False
    except protocol.NoAnswer:
        protocol.lose("")
        return False


def _main_worktree(folder: str) -> str:
    """Return the folder of the main worktree of a linked one, by its `.git` file; "" for others."""
    while True:
        git_file = f"{folder}/.git"
        if os.path.isdir(git_file):
            return ""
        try:
            line = index_files.read(git_file, 4096).decode("utf-8", "replace").split("\n")[0]
            return line.removeprefix("gitdir:").strip().partition("/.git/worktrees/")[0]
        except OSError:
            pass
        above = os.path.dirname(folder)
        if above == folder:
            return ""
        folder = above
