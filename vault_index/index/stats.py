"""The result of a sync: how many files it added, changed or left, and the problems."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Problem:
    """A file that is not in the index as it is on disk, and why. `line` is 0 when none is to blame."""

    path: str
    line: int
    message: str


@dataclass(frozen=True, slots=True)
class Stats:
    """The work of a sync, in files; `embedded` counts passages."""

    added: int = 0
    changed: int = 0
    moved: int = 0
    removed: int = 0
    unchanged: int = 0
    embedded: int = 0
    refiled: int = 0  # passages of lessons whose category the classifier now proposes otherwise
    skills: int | None = None  # how many there are, if any of them changed
    pending: int = 0  # files left for later: more than the caller has time for
    busy: bool = False  # another process is writing
    rebuilt: str = ""  # why the whole index was rebuilt, if it was
    seconds: float = 0.0
    problems: list[Problem] = field(default_factory=list)

    @property
    def wrote(self) -> bool:
        """Whether the index is not what it was."""
        some = self.added or self.changed or self.moved or self.removed or self.refiled
        return bool(some or self.rebuilt or self.skills is not None)

    def __str__(self) -> str:
        names = ("added", "changed", "moved", "removed", "unchanged", "pending")
        parts = [f"{getattr(self, name)} {name}" for name in names if getattr(self, name)]
        if self.skills is not None:
            parts.append(f"{self.skills} skills")
        return f"{', '.join(parts) or 'no lessons'}; {self.embedded} embedded"
