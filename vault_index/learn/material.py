"""The events of a session, of commits or of files: all that the rule and language models may see of it.

Every text is redacted and free of what this product injected.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from vault_index.lesson.category import DEFAULT_CONFIDENCE
from vault_index.lesson.file import hash_of
from vault_index.lesson.passages import Parts
from vault_index.text.words import count
from vault_index.transcripts.moments import Moment

SESSION, COMMITS, FILES, MEMORY = "session", "commit", "files", "memory"
ADDED, CHANGED, REMOVED, MOVED = "added", "changed", "removed", "moved"


@dataclass(frozen=True, slots=True)
class FileChange:
    """A file in the diff. `lines_added` and `lines_removed` are 0 for a binary file."""

    path: str
    kind: str  # ADDED | CHANGED | REMOVED | MOVED
    lines_added: int = 0
    lines_removed: int = 0
    before: str = ""  # the path before it was moved


@dataclass(frozen=True, slots=True)
class Material:
    """A piece of work. `target` is a session's id, revisions (`A..B`), or paths.

    The rule and models read the `moments`, nothing else. `heard` is the whole transcript of an agent that
    proposes, with what its calls printed: its quotes may stand there, and it is not kept. `diff` is
    unified, without ignored paths.
    `injected` has the ids of lessons that the session was given, each with the hash of the prompt at
    which it came first, "" for the session's start.
    """

    scope: str  # SESSION | COMMITS | FILES
    target: str
    project: str = ""
    moments: tuple[Moment, ...] = ()  # in the order of time
    transcript: tuple[Moment, ...] = ()  # in the order of time, too
    session: str = ""  # the agent's id of it
    branch: str = ""
    began: str = ""  # ISO 8601
    ended: str = ""
    subjects: tuple[str, ...] = ()  # of commits
    changes: tuple[FileChange, ...] = ()
    diff: str = ""
    injected: Mapping[str, str] = field(default_factory=dict)
    novel: tuple[str, ...] = ()  # endings and folders of code that are new in the repository

    @property
    def texts(self) -> tuple[str, ...]:
        """Return all texts, in which a quote of a draft must stand word for word."""
        return _texts_of(self.moments)

    @property
    def is_transcribed(self) -> bool:
        """Whether there is anything in which a quote can be looked up."""
        return bool(self.moments or self.transcript)

    @property
    def spoken(self) -> tuple[str, ...]:
        """Return all texts of the transcript."""
        return _texts_of(self.transcript)

    @property
    def facts(self) -> Iterator[tuple[str, str]]:
        """Yield the branch, lines changed, commits and corrections, for a reviewer."""
        if self.branch:
            yield "branch", self.branch
        if self.changes:
            added = sum(each.lines_added for each in self.changes)
            removed = sum(each.lines_removed for each in self.changes)
            lines = f"{count(added, 'line')} added, {removed} removed"
            yield "changed", f"{count(len(self.changes), 'file')}, {lines}"
        yield from (("commit", subject) for subject in self.subjects)
        yield from (("correction", each.text) for each in self.moments if each.is_correction)

    @property
    def digest(self) -> str:
        """Return the hash of all texts: the same material is not learned from twice."""
        return hash_of(*self.texts)


def _texts_of(moments: tuple[Moment, ...]) -> tuple[str, ...]:
    return tuple(text for each in moments for text in (each.text, each.about) if text)


@dataclass(frozen=True, slots=True)
class LearnedLesson:
    """A lesson as an analysis makes it. `type` is one of `lesson.parse.TYPES`, `confidence` 1..5.

    `quotes` must stand word for word in the material. `by_rule` marks a draft that no model wrote.
    """

    type: str
    title: str
    parts: Parts
    category: str = ""
    tags: tuple[str, ...] = ()
    confidence: int = DEFAULT_CONFIDENCE
    prompts: tuple[str, ...] = ()  # that it answers, by a model or an agent
    fires_on: tuple[str, ...] = ()  # that a person typed
    fires_on_error: tuple[str, ...] = ()  # lines that a repaired failure printed
    applies_to: tuple[str, ...] = ()  # files
    quotes: tuple[str, ...] = ()
    by_rule: bool = False
    background: tuple[tuple[str, str], ...] = ()  # (label, text) of the work, for a reviewer
