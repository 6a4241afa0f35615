"""A lesson as rows of the index: one per passage and prompt, and what of a row is embedded."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypeVar, cast

from vault_index.embed import languages
from vault_index.embed.cache import VectorCache
from vault_index.lesson import category, identifiers, passages
from vault_index.lesson.file import hash_of
from vault_index.lesson.parse import Lesson, parse_time
from vault_index.store.filters import ANSWERS
from vault_index.store.schema import LessonRow
from vault_index.text.words import split_unspaced

if TYPE_CHECKING:
    import numpy as np

    from vault_index.embed import Embedder
    from vault_index.git import Provenance
    from vault_index.vault import Vault

T = TypeVar("T")

# The title is embedded apart and weighs a quarter of the prose. On the evaluation set that keeps
# .56 of the right answers at 2% false injections, title and text in one keep .45, at twice the cost.
TITLE_WEIGHT = 0.25
EMBED_CHARS = 4000  # of a passage: no embedder here reads more

MAX_FIELD_CHARS = 1000  # of a title and the like: each piece of a long lesson repeats them
LONG_WHOLE = -1  # the position of a whole that also has pieces
TAUGHT_PLACE = -2  # the position of a prompt: it is no part of the text
FIRES, SILENT = "fires", "silent"  # what a taught prompt says of its lesson
ASKS = "asks"  # of a prompt that it answers, which does not act by itself
_OF_PASSAGES = (  # columns that are empty for a prompt: there may be many prompts
    *(*ANSWERS, "silent_on", "silent_on_error", "aliases", "applies_to", "anchors", "supersedes"),
)
_WORD = re.compile(r"\w+")
_POLITE = frozenset("please pls plz kindly can could would you the a an now just".split())
MAX_TAUGHT = 64  # prompts of each kind that a lesson is searched by
MAX_TAUGHT_CHARS = 500  # of each

# who says what a lesson is about: its frontmatter, its folder, the classifier, or nobody yet
AUTHOR, FOLDER, NOBODY = "author", "folder", "nobody"


def of_lesson(
    lesson: Lesson,
    path: str,
    provenance: Provenance | None,
    file_hash: str = "",
    withheld: str = "",
    *,
    searched: bool = True,
) -> list[LessonRow]:
    """Make a lesson's rows, without vectors; not `searched` also without what full text searches."""
    declared = [path for path in map(category.normalise, lesson.categories) if path]
    folder = category.from_folder(lesson.path)
    branch = folder if folder and category.is_category(folder) else ""
    shared = LessonRow(
        lesson_id=lesson.id,
        path=path,
        title=lesson.title[:MAX_FIELD_CHARS],
        document=(lesson.document or lesson.title)[:MAX_FIELD_CHARS],
        description=lesson.description[:MAX_FIELD_CHARS],
        link=lesson.link[:MAX_FIELD_CHARS],
        written_by=lesson.written_by[:MAX_FIELD_CHARS],
        filed_by=AUTHOR if declared else FOLDER if branch else NOBODY,
        tags=list(lesson.tags),
        aliases=[alias[:MAX_FIELD_CHARS] for alias in lesson.aliases][:MAX_TAUGHT],
        prompts=_taught(lesson.prompts),
        fires_on=list(lesson.fires_on),
        silent_on=list(lesson.silent_on),
        fires_on_error=list(lesson.fires_on_error)[:MAX_TAUGHT],
        silent_on_error=list(lesson.silent_on_error)[:MAX_TAUGHT],
        applies_to=list(lesson.applies_to)[:MAX_TAUGHT],
        anchors=list(lesson.anchors)[:MAX_TAUGHT],
        supersedes=passages.superseded(lesson.text),
        type=lesson.type,
        confidence=lesson.confidence,
        created_at=lesson.created or parse_time(provenance.first if provenance else ""),
        updated_at=parse_time(provenance.last if provenance else ""),
        author=provenance.author if provenance else "",
        file_hash=file_hash,
        withheld=withheld,
    )
    lesson_rows = [*_rows_of_passages(lesson, shared), *_rows_of_prompts(lesson, shared)]
    if not searched:
        return lesson_rows
    filed = declared or [branch or category.UNCATEGORIZED]
    return [with_categories(row, filed) for row in lesson_rows]


def _rows_of_passages(lesson: Lesson, shared: LessonRow) -> list[LessonRow]:
    return [
        shared
        | LessonRow(
            id=f"{lesson.id}@{number}",
            text=text,
            content_hash=hash_of(*_titles(shared), text),
            is_whole=number == 0,
            taught="",
        )
        for number, text in enumerate(passages.cut(lesson.text))
    ]


def _rows_of_prompts(lesson: Lesson, shared: LessonRow) -> list[LessonRow]:
    acting = {hash_of_prompt(prompt) for prompt in lesson.fires_on}
    asks = [each for each in answers_of(shared) if hash_of_prompt(each) not in acting]
    short = shared | cast("LessonRow", {name: [] for name in _OF_PASSAGES})
    return [
        short
        | LessonRow(
            id=f"{lesson.id}@{kind} {number}",
            text=prompt,
            content_hash=hash_of_prompt(prompt),
            is_whole=False,
            taught=kind,
        )
        for kind, prompts in ((FIRES, lesson.fires_on), (SILENT, lesson.silent_on), (ASKS, asks))
        for number, prompt in enumerate(_taught(prompts))
    ]


def hash_of_prompt(prompt: str) -> str:
    """Hash a taught prompt, whatever its capitals, its order and its politeness.

    Prompts of one hash share a row's vector, and are equal where there are no vectors.
    """
    words = _WORD.findall(prompt.casefold())
    telling = [word for word in words if word not in _POLITE] or words
    return hash_of("taught", " ".join(sorted(telling)) or prompt.strip())


def _taught(prompts: Sequence[str]) -> list[str]:
    lines = {hash_of_prompt(prompt): " ".join(prompt.split()) for prompt in prompts}
    return [line[:MAX_TAUGHT_CHARS] for line in lines.values() if line][:MAX_TAUGHT]


def of_file(
    lessons: Sequence[Lesson],
    path: str,
    provenance: Provenance | None,
    file_hash: str = "",
    withheld: str = "",
) -> list[LessonRow]:
    """Make the rows of a file's lessons, numbered in their order in it. `path` is from the vault's root.

    `file_hash` is of the whole file that was read, `withheld` the error in it: hooks leave it out.
    The whole of a lesson that also has pieces is `LONG_WHOLE`.
    """
    file_rows: list[LessonRow] = []
    position = 0
    for lesson in lessons:
        several = of_lesson(lesson, path, provenance, file_hash, withheld)
        pieces = sum(not row["taught"] for row in several) - 1
        for number, row in enumerate(several):
            if row["taught"]:
                row["position"] = TAUGHT_PLACE
                continue
            whole = number == 0 and pieces > 0
            row["position"] = LONG_WHOLE if whole else position
            position += not whole
        file_rows += several
    return file_rows


def with_categories(row: LessonRow, filed: Sequence[str], filed_by: str = "") -> LessonRow:
    """Return a copy of a row with other categories, in all columns that depend on them."""
    first, second, third, fourth = category.levels(filed)
    names = [" ".join([*filed, *row["tags"]]), *row["aliases"], *_titles(row), row["title"]]
    heading = "\n".join([*filter(None, names), row["text"], *answers_of(row)])
    return row | LessonRow(
        categories=list(filed),
        category_l0=first,
        category_l1=second,
        category_l2=third,
        category_l3=fourth,
        fulltext=split_unspaced(heading) if row["is_whole"] else "",
        identifiers=identifiers.column_of(names_of(row), row["text"]) if row["is_whole"] else "",
        filed_by=filed_by or row["filed_by"],
    )


def names_of(row: Mapping[str, Any]) -> str:
    """Return the names of a lesson, a line each: its title, its aliases and its tags."""
    return "\n".join([row["title"], *(row["aliases"] or ()), *(row["tags"] or ())])


def answers_of(row: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the texts that a lesson answers: its prompts, and the prompts and lines that it fires on."""
    lists = (row[name] or () for name in ANSWERS)
    return tuple(dict.fromkeys(text for each in lists for text in each[:MAX_TAUGHT]))


def _titles(row: LessonRow) -> list[str]:
    return list(dict.fromkeys(filter(None, [row["document"], row["title"]])))


# the columns of which a row's vector is made, and where it is
EMBEDDED = ("path", "content_hash", "title", "document", "text", "taught")


def embed(embedder: Embedder, rows: Sequence[LessonRow]) -> list[np.ndarray]:
    """Return the vectors of rows: of passages as `embed_titled` makes them, of prompts as queries."""
    texts = [row for row in rows if not row["taught"]]
    titled = [(": ".join(_titles(row)), embedded_text(row)) for row in texts]
    vectors = iter(embed_titled(embedder, titled) if titled else [])
    taught = [row["text"] for row in rows if row["taught"]]
    is_both = isinstance(embedder, languages.TwoModels)  # its query is no text
    embed_taught = embedder.embed_documents if is_both else embedder.embed_queries
    prompts = iter(embed_taught(taught) if taught else [])
    return [next(prompts if row["taught"] else vectors) for row in rows]


def embedded_text(row: LessonRow) -> str:
    """Return the text of a passage as it is embedded."""
    return (passages.prose(row["text"]) or row["title"])[:EMBED_CHARS]


def kept_vectors(
    vault: Vault,
    recipe: str,
    make: Callable[[Embedder, list[T]], Iterable[np.ndarray]],
    contents: Mapping[str, T],
    known: Mapping[str, np.ndarray] = MappingProxyType({}),
) -> dict[str, np.ndarray]:
    """Return the vectors of contents by their hash; none without the embedder of the index.

    Those that are neither `known` nor kept for all of the user's vaults, under a `recipe`, are made.
    Raises EmbedderError.
    """
    opened, embedder = vault.open_index(), vault.embedder
    if embedder is None or embedder.name != opened.embedder or not contents:
        return {}
    cache = VectorCache(vault.config.home, f"{embedder.name} {recipe}", opened.store.dimension)
    return cache.get_or_make(partial(make, embedder), contents, known)


def embed_titled(embedder: Embedder, texts: Sequence[tuple[str, str]]) -> list[np.ndarray]:
    """Embed (title, prose) pairs: unit vectors float32[dimension] of a quarter title, one part prose."""
    titles = sorted({title for title, _ in texts})
    title_vectors = dict(zip(titles, embedder.embed_documents(titles), strict=True))
    vectors = []
    prose_vectors = embedder.embed_documents([prose for _, prose in texts])
    for (title, _), vector in zip(texts, prose_vectors, strict=True):
        vectors.append(languages.mixed(embedder, vector, title_vectors[title], TITLE_WEIGHT))
    return vectors
