"""Random merges of lesson files, and what must hold of each result: nothing lost, nothing twice."""

from __future__ import annotations

import random
import re
from collections import Counter
from dataclasses import dataclass, field

from vault_index.lesson import merge

TITLES = ["Heap", "VPN", "Cache", "Rollback", "Index", "Retry"]
NEW_TITLES = ["Deploys", "Builds", "Tests", "Heap size"]  # few, so that both sides choose the same
LABELS = ["**Symptom:**", "**Fix:**"]  # lines that many lessons share


@dataclass
class Section:
    """A heading, "" for the text above the first one, and the lines below it."""

    title: str
    lines: list[str]

    def text(self) -> str:
        heading = f"## Lesson: {self.title}\n" if self.title else ""
        return heading + "".join(f"{line}\n" for line in self.lines)


@dataclass
class File:
    """A lesson file, as its author thinks of it."""

    keys: dict[str, str]
    sections: list[Section] = field(default_factory=list)

    def copy(self) -> File:
        sections = [Section(each.title, list(each.lines)) for each in self.sections]
        return File(dict(self.keys), sections)

    def data(self) -> bytes:
        keys = "".join(f"{key}: {value}\n" for key, value in self.keys.items())
        body = "\n".join(each.text() for each in self.sections)
        return ((f"---\n{keys}---\n" if keys else "") + body).encode()


class Author:
    """Writes and changes files at random; `name` is in each line that it writes."""

    def __init__(self, chance: random.Random, name: str) -> None:
        self._chance = chance
        self._name = name
        self._count = 0

    def line(self) -> str:
        """Write a line that nobody else writes; now and then a label, an empty line or code."""
        self._count += 1
        kind = self._chance.random()
        if kind < 0.08:
            return ""
        if kind < 0.16:
            return self._chance.choice(LABELS)
        return f"Sentence {self._count} of {self._name}."

    def file(self) -> File:
        """Write a file of one to five sections."""
        keys = {"title": "Deploys", "tags": "[node, ci]"} if self._chance.random() < 0.5 else {}
        titles = self._chance.sample(TITLES, self._chance.randint(1, 5))
        titles = ["", *titles[1:]] if self._chance.random() < 0.4 else titles
        return File(keys, [self.section(title) for title in titles])

    def section(self, title: str) -> Section:
        self._count += 1
        first = f"Text {self._count} of {self._name}."
        return Section(title, [first, *(self.line() for _ in range(self._chance.randint(0, 4)))])

    def change(self, file: File) -> File:
        """Do one to three things to a copy of a file."""
        changed = file.copy()
        ways = [self._edit, self._edit, self._rename, self._rename, self._delete, self._add,
                self._move, self._move_line, self._set_key, self._merge_into_above]  # fmt: skip
        for way in self._chance.choices(ways, k=self._chance.choice([1, 1, 2, 2, 3])):
            if changed.sections:
                way(changed)
        return changed

    def _any(self, file: File) -> Section:
        return self._chance.choice(file.sections)

    def _edit(self, file: File) -> None:
        section = self._any(file)
        at = self._chance.randint(0, len(section.lines))
        section.lines[at : at + self._chance.randint(0, 1)] = [self.line()]

    def _rename(self, file: File) -> None:
        self._any(file).title = self._chance.choice([*NEW_TITLES, *TITLES])

    def _delete(self, file: File) -> None:
        file.sections.remove(self._any(file))

    def _add(self, file: File) -> None:
        title = self._chance.choice([*NEW_TITLES, *TITLES])
        file.sections.insert(self._chance.randint(1, len(file.sections)), self.section(title))

    def _move(self, file: File) -> None:
        section = self._any(file)
        if section.title:
            file.sections.remove(section)
            first = int(bool(file.sections and not file.sections[0].title))
            at = self._chance.randint(first, max(first, len(file.sections)))
            file.sections.insert(at, section)

    def _move_line(self, file: File) -> None:
        source, target = self._any(file), self._any(file)
        if source.lines:
            line = source.lines.pop(self._chance.randrange(len(source.lines)))
            target.lines.insert(self._chance.randint(0, len(target.lines)), line)

    def _set_key(self, file: File) -> None:
        file.keys[self._chance.choice(["title", "id", "source"])] = f"{self._name}{self._count}"

    def _merge_into_above(self, file: File) -> None:
        if len(file.sections) > 1:
            at = self._chance.randrange(1, len(file.sections))
            file.sections[at - 1].lines += file.sections.pop(at).lines


def versions(seed: int) -> tuple[bytes, bytes, bytes]:
    """Make a base and what two people made of it."""
    chance = random.Random(seed)
    base = Author(chance, "the base").file()
    ours, theirs = (Author(chance, name).change(base) for name in ("ours", "theirs"))
    return base.data(), ours.data(), theirs.data()


def body_lines(data: bytes) -> Counter[str]:
    """Count the lines of a file's body that say something."""
    text = data.decode()
    parts = text.split("---\n", 2)  # of git's merges the frontmatter may be between markers
    body = parts[2] if text.startswith("---\n") and len(parts) == 3 else text
    return Counter(line for line in body.splitlines() if any(map(str.isalnum, line)))


def faults(base: bytes, ours: bytes, theirs: bytes, merged: merge.MergeResult) -> list[str]:
    """List what a merge lost, and what stands in it twice without a conflict."""
    before, mine, yours = map(body_lines, (base, ours, theirs))
    after = body_lines(merged.data)
    once = [line for line, count in before.items() if mine[line] == yours[line] == count == 1]
    wanted = [*(mine - before), *(yours - before), *once]
    wrong = [f"lost: {line}" for line in wanted if line not in after]
    clean = body_lines(outside_markers(merged.data))
    wrong += [f"twice: {line}" for line in once if clean[line] > 1]
    if bool(merged.conflicts) != (merge.OURS.encode() in merged.data):
        wrong.append("markers: there without a conflict, or not there with one")
    return wrong


def outside_markers(data: bytes) -> bytes:
    """Take out what is in conflict."""
    start, end = re.escape(merge.OURS.encode()), re.escape(merge.THEIRS.encode())
    return re.sub(start + b".*?" + end, b"", data, flags=re.DOTALL)
