"""Conditions on the rows of tables, as SQL for LanceDB: the only module that writes any.

A condition is a text; `all_of` joins some. A value that a caller passes into one is quoted here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from vault_index.lesson.category import MAX_DEPTH, CategoryPath
from vault_index.text.blocks import composed

WHOLE = "is_whole"  # the row of a whole lesson, and none of its pieces
LEVELS = tuple(f"category_l{depth}" for depth in range(MAX_DEPTH))
ANSWERS = ("prompts", "fires_on", "fires_on_error")  # columns: what a lesson answers
PASSAGES = "taught = ''"  # the rows of wholes and pieces, and none of taught prompts
FOR_AGENTS = "withheld = ''"
# in the column `withheld`, of a file that is still to be checked: no agent gets it, unless it is checked
# at that moment
UNCHECKED = "it is not checked yet"
FOR_AGENTS_IF_CLEAN = f"withheld IN ('', '{UNCHECKED}')"
HAS_PROMPTS = "prompts[1] IS NOT NULL"
TAUGHT_ERRORS = "(fires_on_error[1] IS NOT NULL OR silent_on_error[1] IS NOT NULL)"
APPLIES = "applies_to[1] IS NOT NULL"  # to files that it names
SUPERSEDES = "supersedes[1] IS NOT NULL"
WITHHELD = "withheld != ''"  # what hooks, agents and models never get
RELATED = "contains(text, '## Related')"
# of a course: its number comes first, as `lesson.number` reads it
NUMBERED = r"regexp_like(text, '^(\[Lesson [0-9]+\]\(|Lesson [0-9]+\s*(\n|$))')"
_AT_ONCE = 500  # values
ROWS = "_rowid IN"  # begins the condition for rows by their row ids


@dataclass(frozen=True, slots=True)
class Filter:
    """Only lessons with one of these tags, of this type, as sure, new or changed in this time.

    A lesson that is not committed counts as new, whenever it says that it was written. Outside a
    repository, where none is, one without a date does.
    """

    tags: Sequence[str] = ()
    type: str = ""
    since: datetime | None = None
    until: datetime | None = None  # up to, and not at, this moment
    min_confidence: int = 0  # 1..5; a lesson that names none is in the middle
    withheld: bool = False  # only what hooks leave out

    def where(self, in_repository: Callable[[], bool] = lambda: True) -> list[str]:
        """Return the conditions on the rows' columns, all of which hold.

        `in_repository` tells whether lessons can be committed. It is asked where a time is named.
        """
        tests = []
        if self.tags:
            tag_text = "concat('|', lower(array_to_string(tags, '|')), '|')"
            named = (
                f"contains({tag_text}, {quoted(f'|{composed(tag).strip().lower()}|')})"
                for tag in self.tags
            )
            tests.append(" OR ".join(named))
        if self.type:
            tests.append(f"type = {quoted(self.type)}")
        if self.min_confidence > 1:
            tests.append(f"confidence >= {int(self.min_confidence)}")
        if self.withheld:
            tests.append(WITHHELD)
        if self.since or self.until:
            tests += self._in_time(in_repository=in_repository())
        return tests

    def _in_time(self, *, in_repository: bool) -> list[str]:
        is_new = f"(updated_at IS NULL{'' if in_repository else ' AND created_at IS NULL'})"
        now, tests = datetime.now(UTC), []
        if self.since:
            at = _moment(self.since)
            later = f"created_at >= {at} OR updated_at >= {at}"
            tests.append(f"{later} OR {is_new}" if self.since <= now else later)
        if self.until:
            at = _moment(self.until)
            tests += [f"{each} IS NULL OR {each} < {at}" for each in ("created_at", "updated_at")]
            tests += [f"NOT {is_new}"] if self.until <= now else []
        return tests


EVERYTHING = Filter()


def _moment(time: datetime) -> str:
    return f"timestamp '{time.astimezone(UTC).isoformat()}'"


def all_of(*conditions: str | None) -> str | None:
    """Return the condition that all of these hold; None, which all rows meet, without any."""
    return " AND ".join(f"({condition})" for condition in conditions if condition) or None


def below(categories: Iterable[CategoryPath]) -> str:
    """Return the condition for rows in any of these categories or below them."""
    tests = []
    for category in categories:
        depth = category.count("/")
        if depth < MAX_DEPTH:
            tests.append(f"array_has_any({LEVELS[depth]}, [{quoted(category)}])")
        else:  # deeper than the level columns: look at the declared ones, narrowed by the last column
            column, top = LEVELS[-1], "/".join(category.split("/")[:MAX_DEPTH])
            declared = "concat('|', array_to_string(categories, '/|'), '/')"
            tests.append(
                f"(array_has_any({column}, [{quoted(top)}])"
                f" AND contains({declared}, {quoted(f'|{category}/')}))"
            )
    return " OR ".join(tests)


def of_records(
    kinds: Sequence[str] = (), project: str = "", type: str = "", concept: str = "", file: str = ""
) -> str | None:
    """Return the condition for rows of the journal; None for all of them.

    `file` is a path, the tail of one, or a folder, in the spelling of the column `touched`.
    """
    return all_of(
        any_of("kind", kinds) if kinds else None,
        f"project = {quoted(project)}" if project else None,
        f"type = {quoted(type)}" if type else None,
        f"array_has(concepts, {quoted(concept)})" if concept else None,
        _touching(file) if file else None,
    )


def _touching(file: str) -> str:
    named = "concat('|', array_to_string(touched, '|'), '|')"
    tests = [f"contains({named}, {quoted(f'{file}|')})", f"contains({named}, {quoted(f'{file}/')})"]
    parts = file.split("/")[1:]  # the file of an absolute path is kept below its project's folder
    tails = ("/" + "/".join(parts[number:]) for number in range(1, len(parts)))
    tests += [f"contains({named}, {quoted(f'|{tail}|')})" for tail in tails]
    return " OR ".join(tests)


def firsts_of(*, record: str = "", session: str = "", project: str = "") -> str | None:
    """Return the condition for the first row of records: of an id, of a session or its beginning."""
    return all_of(
        "position = 0",
        f"record = {quoted(record)}" if record else None,
        begins("session", session) if session else None,
        f"project = {quoted(project)}" if project else None,
    )


def of_rows(row_ids: Iterable[int]) -> str:
    """Return the condition for rows by their row ids."""
    listed = ", ".join(map(str, row_ids))
    return f"{ROWS} ({listed})" if listed else "false"


def wholes_of(lesson_ids: Iterable[str]) -> str:
    """Return the condition for the rows of these lessons that are the whole of each."""
    return f"{WHOLE} AND {any_of('lesson_id', lesson_ids)}"


def pieces_of(lesson_ids: Iterable[str]) -> str:
    """Return the condition for the rows of these lessons that are pieces of long ones."""
    return f"NOT {WHOLE} AND {PASSAGES} AND {any_of('lesson_id', lesson_ids)}"


def of_taught(content_hashes: Iterable[str], kind: str = "") -> str:
    """Return the condition for the rows of taught prompts, of a kind or all: fires | silent."""
    is_taught = f"taught = {quoted(kind)}" if kind else "taught != ''"
    return f"{is_taught} AND {any_of('content_hash', content_hashes)}"


def any_of(column: str, values: Iterable[str]) -> str:
    """Return the condition that a column has any of these values; false for none."""
    listed = ", ".join(map(quoted, values))
    return f"{column} IN ({listed})" if listed else "false"


def some_of(column: str, values: Iterable[str]) -> Iterator[str]:
    """Yield the conditions that a column has any of these values, for some hundred values each."""
    ordered = sorted(values)
    for start in range(0, len(ordered), _AT_ONCE):
        yield any_of(column, ordered[start : start + _AT_ONCE])


def begins(column: str, text: str) -> str:
    """Return the condition that a column begins with a text."""
    return f"starts_with({column}, {quoted(text)})"


def quoted(text: str) -> str:
    """Return a text as an SQL literal; half a character is no text for LanceDB."""
    return "'" + text.encode("utf-8", "replace").decode().replace("'", "''") + "'"
