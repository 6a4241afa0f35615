"""The places to search in: a row per document and per category.

A document is a file that holds more than one passage, or a lesson under a title that is not its own: a
long lesson, a course, a collection. The table is derived from the lessons' rows alone.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

from vault_index.embed import Embedder
from vault_index.embed.cache import VectorCache
from vault_index.lesson import category
from vault_index.lesson.file import hash_of
from vault_index.store import filters
from vault_index.store.schema import DOCUMENTS, DocumentRow
from vault_index.store.sync import fill
from vault_index.store.table import Table

DOCUMENT, CATEGORY = "document", "category"
_SOURCE = (
    *("id", "path", "document", "title", "description", "link", "written_by", "author", "is_whole"),
    "categories",
)


def refresh(lessons: Table, embedder: Embedder | None, cache: VectorCache) -> None:
    """Make the table of documents follow the lessons' rows.

    The caller holds the index's lock. Raises WriteError, EmbedderError.
    """
    table = Table(lessons.index, lessons.dimension, DOCUMENTS)
    sources = lessons.rows(_SOURCE, filters.PASSAGES)
    rows = _documents(sources)
    for path in category.counts(row["categories"] for row in sources):
        rows.append(_row(CATEGORY, path, path.replace("/", " ").replace("-", " ")))
    last = table.rows(("id", "content_hash")) if table.exists() else []
    before, after = ({row["id"]: row["content_hash"] for row in each} for each in (last, rows))
    if before == after:
        return
    if table.dimension and embedder is not None:
        titles = {hash_of(row["title"]): row["title"] for row in rows}
        vectors = cache.get_or_make(embedder.embed_documents, titles)
        rows = [{**row, "vector": vectors[hash_of(row["title"])]} for row in rows]
    fill(table, rows)


def _documents(lessons: Sequence[dict[str, Any]]) -> list[DocumentRow]:
    by_path: defaultdict[str, list[dict[str, Any]]] = defaultdict(list)
    for row in lessons:
        by_path[row["path"]].append(row)
    documents = []
    for path, rows in by_path.items():
        if len(rows) > 1 or rows[0]["document"] not in (None, "", rows[0]["title"]):
            rows.sort(key=lambda row: str(row["id"]))
            first = rows[0]
            sections = [row["title"] for row in rows if row["is_whole"]]
            about = first["description"] or "; ".join(sections if len(sections) > 1 else ())
            author = first["written_by"] or first["author"] or ""
            title, link = first["document"], first["link"]
            documents.append(_row(DOCUMENT, path, title, about, link, author))
    return documents


def _row(
    kind: str, path: str, title: str, about: str = "", link: str = "", author: str = ""
) -> DocumentRow:
    return DocumentRow(
        id=f"{kind}:{path}",
        kind=kind,
        path=path,
        title=title,
        description=about,
        link=link,
        author=author,
        content_hash=hash_of(title, about, link, author),
    )
