"""Every error this package raises on purpose.

Verbs raise; entrypoints decide: the command line prints two lines and exits 1, a hook logs and
exits 0. Anything else that escapes is a bug.
"""

from __future__ import annotations

import errno
import os

TYPE_CHECKING = False  # typing takes 3 ms to load
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

NOT_PUBLISHED = "nothing is published there"


class VaultError(Exception):
    """An error for the user: `message` says what happened, `hint` what to do about it (an imperative)."""

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


class NoVaultError(VaultError):
    """There is no vault where one was looked for."""


class SettingsError(VaultError):
    """A settings file that cannot be used as it is."""


class LessonError(VaultError):
    """A lesson file that does not parse or cannot be edited. `line` counts from 1."""

    def __init__(self, message: str, line: int = 1, hint: str = "") -> None:
        super().__init__(message, hint)
        self.line = line


class IndexStateError(VaultError):
    """The index is missing, damaged, or was written by a `newer` version."""

    def __init__(self, message: str, hint: str = "", *, newer: bool = False) -> None:
        super().__init__(message, hint)
        self.newer = newer


class ForeignIndexError(VaultError):
    """The folder in the place of the index is a link, tracked by git, or somebody else's."""


class StoreError(VaultError):
    """A store of published tables cannot be used: not reached, not allowed, or not of this kind."""

    @property
    def is_missing(self) -> bool:
        """Whether nothing is published there yet."""
        return self.message.endswith(NOT_PUBLISHED)


class EmbedderError(VaultError):
    """The embedder cannot embed: not running, not installed, or not what the index was built with."""


class LaterError(EmbedderError):
    """More vectors are missing than there is time for: they are made later."""


class ModelError(EmbedderError):
    """The built-in model is missing, or a file of it has the wrong SHA-256 sum."""


class ModelCallError(VaultError):
    """A language model did not answer as it was asked to: too late, not JSON, cut, a server's error."""


class ModelAwayError(ModelCallError):
    """A language model was not reached, or its server does not have it: it did nothing."""


class ModelRefusedError(ModelCallError):
    """A language model declined to answer: the same question is not put to it again."""


class ModelAnswerError(ModelCallError):
    """A language model answered in another form than it was asked for: no JSON, a key is missing.

    `fitting` is what is left of the answer without the parts of lists that do not fit, None for nothing.
    """

    def __init__(
        self, message: str, hint: str = "", fitting: Mapping[str, Any] | None = None
    ) -> None:
        super().__init__(message, hint)
        self.fitting = fitting


class ModelToolsError(ModelCallError):
    """A language model, or its server, takes no questions with tools."""


class ModelBudgetError(ModelCallError):
    """The calls or tokens that the user's settings allow in a day are used up: nothing was asked."""


class CheckError(VaultError):
    """A draft has what `check` calls an error, by the `rule` of a finding."""

    def __init__(self, message: str, hint: str = "", rule: str = "") -> None:
        super().__init__(message, hint)
        self.rule = rule


class ProposalsFullError(VaultError):
    """As many proposals wait as may."""


class BusyError(VaultError):
    """The watcher is busy or hung, and whoever asked is not to load what it has loaded."""


class WriteError(VaultError):
    """A disk that is full, read-only or not ours."""


class UnreadableError(VaultError):
    """A file or folder that the system does not let us read, such as one on a disk that is gone."""


class StateError(UnreadableError):
    """The database of what this machine remembers is there and cannot be read."""


class ChangedError(WriteError):
    """A file is no longer what was read when it was to be changed; the save stays."""


class LinkError(WriteError):
    """A link where a file or folder should be."""


class GitError(VaultError):
    """Git could not do what was asked of it; the message is its own, on one line."""


class NoRepositoryError(GitError):
    """A folder is in no git repository."""


class NoCommitError(GitError):
    """Nothing is committed in the repository yet."""


class GitUnavailableError(GitError):
    """Git answers nothing at all here, so nothing of the repository is known."""


class GitRefusedError(GitUnavailableError):
    """The repository belongs to another user, so git refuses to read it."""


class BrokenRepositoryError(GitUnavailableError):
    """There is a `.git`, and git cannot read it as a repository."""


class GitTimeoutError(GitUnavailableError):
    """Git did not answer in time."""


class NoGitError(GitUnavailableError):
    """There is no git command on this machine, or one that is too old."""


_HINTS = {
    **dict.fromkeys((errno.ENOSPC, errno.EDQUOT), "free some space"),
    **dict.fromkeys(
        (errno.EMFILE, errno.ENFILE), "close some programs, or raise the limit of `ulimit -n`"
    ),
    **dict.fromkeys(
        (errno.EIO, errno.ESTALE, errno.ENOTCONN, errno.EHOSTDOWN, errno.ETIMEDOUT),
        "check the disk, and mount it again",
    ),
}


def hint_for(error: OSError, otherwise: str) -> str:
    """Return the remedy for an error of the system that has nothing to do with one file."""
    return _HINTS.get(error.errno or 0, otherwise)


def named_in(message: str) -> OSError | None:
    """Return such an error of the system that a message names; None for none."""
    named = (number for number in _HINTS if os.strerror(number) in message)
    return next((OSError(number, os.strerror(number)) for number in named), None)


def unreadable(path: object, error: OSError, hint: str = "") -> UnreadableError:
    """Return the error for a file or folder that the system does not let us read."""
    return UnreadableError(f"{path} cannot be read: {error.strerror}", hint_for(error, hint))
