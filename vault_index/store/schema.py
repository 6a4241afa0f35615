"""The tables of an index: what a row of each holds, and how it is searched.

A row is a `TypedDict`; the Arrow columns of its table are read off the same class, so the two cannot
differ. `SCHEMA` in `manifest` is raised when one of them changes.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Any, TypedDict, get_type_hints

from vault_index.store.filters import ANSWERS, LEVELS

if TYPE_CHECKING:
    import pyarrow as pa

KEY, VECTOR = "id", "vector"
IDENTIFIERS = "identifiers"  # of a whole lesson: see `lesson.identifiers`
# of a lesson: categories, tags, aliases, title, title, text; of a skill: name, name, text
FULL_TEXT = "fulltext"
RECIPE = "title .25 + prose"  # how vectors of lessons are made: in names under which they are kept


@dataclass(frozen=True, slots=True)
class Bits:
    """The width of a column of whole numbers, where it is not 32."""

    number: int


Hash = Annotated[int, Bits(64)]


class LessonRow(TypedDict, total=False):
    """A passage with all that is known of its lesson. `vector` is float32[dimension]."""

    id: str  # of the passage: `<lesson_id>@<number>`
    lesson_id: str
    path: str  # of the file, from the vault's root
    title: str
    document: str  # the title of the file that the lesson is a section of; else its own
    description: str
    link: str
    written_by: str
    text: str
    fulltext: str  # "" for the pieces of a long lesson: its whole has their words
    identifiers: str  # "" for pieces, too
    is_whole: bool  # False for a piece of a long lesson and for a prompt
    position: int  # among the passages of the file; -1 for a whole with pieces, -2 for a prompt
    taught: str  # of a prompt, which is in `text`: fires | silent | asks; "" for a passage
    filed_by: str  # author | folder | classifier | nobody
    categories: list[str]
    category_l0: list[str]
    category_l1: list[str]
    category_l2: list[str]
    category_l3: list[str]
    tags: list[str]
    aliases: list[str]  # other titles
    prompts: list[str]  # that it answers
    fires_on: list[str]
    silent_on: list[str]
    fires_on_error: list[str]
    silent_on_error: list[str]
    applies_to: list[str]
    anchors: list[str]
    supersedes: list[str]  # names of lessons
    type: str
    confidence: int  # 1..5
    created_at: datetime | None
    updated_at: datetime | None
    author: str
    file_hash: str  # of the file as it was when this row was made
    withheld: str  # why hooks leave it out: an error in the file; "" otherwise
    content_hash: str  # of what is embedded
    vector: Any


class SkillRow(TypedDict, total=False):
    """A SKILL.md. `vector` is float32[dimension], of its name and text."""

    id: str  # `<scope>:<absolute path>`
    name: str
    scope: str  # vault | user | project
    folder: str  # absolute: the folder of skills that it is in
    path: str  # from the vault's root for the vault's own, else absolute
    text: str  # what it is for, and when to use it
    categories: list[str]
    fulltext: str
    suggestible: bool  # whether an agent may load it by itself
    file_hash: str
    withheld: str  # why hooks do not suggest it: an error in the file; "" otherwise
    content_hash: str  # of what is embedded
    vector: Any


class DocumentRow(TypedDict, total=False):
    """A document or a category: a place to search in. `vector` is float32[dimension], of its title."""

    id: str  # `<kind>:<path>`
    kind: str  # document | category
    path: str  # of the document's file from the vault's root; or the category
    title: str
    description: str
    link: str
    author: str
    content_hash: str  # of all of it
    vector: Any


class JournalRow(TypedDict, total=False):
    """A piece of a record of the journal. `vector` is float32[dimension]."""

    id: str  # `<record>@<position>`
    record: str  # the id of the record
    turn: Hash  #: the same for a prompt and the observations of its turn
    path: str  # the name of the session, which begins the ids of its records
    kind: str  # prompt | observation | summary
    session: str
    project: str
    branch: str
    at: datetime | None
    place: int  # of the record in its session
    number: int  # of the prompt
    position: int  # of the piece in its record; the first has what is said of the whole
    field: str  # what it is of its record: prompt | narrative | fact | a field of a summary
    title: str
    text: str
    fulltext: str  # what is embedded, and what full text searches
    type: str  # of an observation
    origin: str  # of a prompt: the kind of its event
    concepts: list[str]
    files: list[str]  # modified, then read, as the record has them
    touched: list[str]  # the same as `journal.rows.comparable` writes them, for the filter
    uuids: list[str]  # of the transcript's records; only at position 0
    content_hash: str  # of what is embedded
    vector: Any


class VectorRow(TypedDict, total=False):
    """A vector that a team shares, float32[dimension]; see `publish`."""

    id: str  # the hash of what it is of
    embedder: str
    vector: Any


@dataclass(frozen=True, slots=True)
class Schema:
    """A table: its name and row, the columns with an index, and those that a hit shows."""

    table: str
    row: type
    indexed: tuple[str, ...]  # columns of single values
    indexed_lists: tuple[str, ...] = ()
    full_text: str = ""  # the column that full text searches; "" for none
    exact_text: str = ""  # the column whose words are searched whole, between spaces; "" for none
    shown: tuple[str, ...] = ()
    in_memory: tuple[str, ...] = ()  # columns of numbers and times that each search needs
    has_pieces: bool = False  # rows with `is_whole` false are pieces of the whole of a lesson

    def arrow(self, dimension: int) -> pa.Schema:
        """Return the columns of the table; vectors have `dimension` numbers, none with 0.

        Raises TypeError for a column of another type than rows have, naming it.
        """
        import pyarrow as pa

        kinds: dict[Any, pa.DataType] = {
            str: pa.string(),
            bool: pa.bool_(),
            int: pa.int32(),
            Hash: pa.int64(),
            list[str]: pa.list_(pa.string()),
            datetime | None: pa.timestamp("us", tz="UTC"),
        }
        fields = []
        for name, kind in get_type_hints(self.row, include_extras=True).items():
            if name == VECTOR:
                continue
            if kind not in kinds:
                raise TypeError(f"{self.row.__name__}.{name}: no column has the type {kind}")
            fields.append(pa.field(name, kinds[kind], nullable=name not in _REQUIRED))
        if dimension:
            fields.append(pa.field(VECTOR, pa.list_(pa.float32(), dimension)))
        return pa.schema(fields)

    def columns(self) -> tuple[str, ...]:
        """Return the names of the columns, the vector's among them."""
        return tuple(self.row.__annotations__)


_REQUIRED = (KEY, "lesson_id", "path")

LESSONS = Schema(
    table="lessons",
    row=LessonRow,
    indexed=("id", "lesson_id", "path", "content_hash"),
    indexed_lists=LEVELS,
    full_text=FULL_TEXT,
    exact_text=IDENTIFIERS,
    shown=(
        *"id lesson_id path title document link text is_whole categories tags aliases".split(),
        *"position type confidence created_at updated_at author file_hash withheld".split(),
        *("filed_by", "anchors", *ANSWERS),
    ),
    has_pieces=True,
)
SKILLS = Schema(
    table="skills",
    row=SkillRow,
    indexed=("id",),
    full_text=FULL_TEXT,
    shown=(
        *("id", "name", "scope", "folder", "path", "text", "categories", "suggestible"),
        *("file_hash", "withheld"),
    ),
)
VECTORS = Schema(table="vectors", row=VectorRow, indexed=("id",))
DOCUMENTS = Schema(table="documents", row=DocumentRow, indexed=("id",))
JOURNAL = Schema(
    table="journal",
    row=JournalRow,
    indexed=("id", "path", "content_hash", "project", "at", "session", "record"),
    full_text=FULL_TEXT,
    in_memory=("at", "turn", "place", "position"),
    shown=(
        *("record", "kind", "session", "project", "branch", "at", "number", "position", "field"),
        *("title", "text", "type", "origin", "concepts", "files", "uuids", "path", "place", "turn"),
    ),
)
