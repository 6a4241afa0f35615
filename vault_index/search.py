"""A query -> hits, with the evidence for each. Lessons and skills are two tables with one search.

The score is `cosine + 0.01 x BM25`, a plain sum of evidence in absolute units: measured on the
evaluation set it ranks better than either alone and than reciprocal rank fusion, which also throws
away the magnitude that the floor needs.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vault_index import catalog, store
from vault_index import categories as tree
from vault_index import skills as skill_files
from vault_index.errors import EmbedderError, VaultError
from vault_index.filters import EVERYTHING, Filter
from vault_index.hit import Hit, Passage
from vault_index.lesson import DEFAULT_CONFIDENCE
from vault_index.manifest import NO_EMBEDDER
from vault_index.rows import LONG_WHOLE

if TYPE_CHECKING:
    import numpy as np

    from vault_index.catalog import Place
    from vault_index.vault import OpenIndex, Vault

FULL_TEXT_WEIGHT = 0.01  # of LanceDB's _score
# The cosine of a piece of a long lesson counts so much of that of a whole: the best of many pieces is
# higher by chance. Over 646 notes, two thirds of them long, recall@3 goes from .898 to .929 and recall
# at 2% false injections from .465 to .551 (no pieces at all: .913, .567); of 113 questions that are
# answered deep in a document .920 stay among the first three (no pieces: .788).
PIECE_WEIGHT = 0.8
CANDIDATES = 16  # lessons, at least, that confidence may put in order
EXPLAINED = 64  # when it is to be told what was left out
MOST_SCORED = 50_000  # passages that each side scores: up to there the ranking is exact
CONFIDENCE_STEP = 0.025  # confidence 5 or 1 moves a hit by 5%, among hits only
MAX_QUERY_CHARS = 4000  # what is pasted after that says little about what is asked

_TEXTS = (
    "document",
    "link",
    "author",
    "file_hash",
    "withheld",
    "filed_by",
)  # "" where a row has none

LESSONS, SKILLS = "lessons", "skills"
KINDS = (LESSONS, SKILLS)


@dataclass(frozen=True, slots=True)
class Results:
    """What a search found. `dropped` are (hit, why it is not in the answer), best first."""

    hits: list[Hit]
    dropped: list[tuple[Hit, str]] = field(default_factory=list)
    text_only: str = ""  # why only full text was searched, if so


def find(
    vault: Vault,
    query: str,
    k: int = 5,
    categories: Sequence[str] = (),
    min_score: float | None = None,
    kinds: Sequence[str] = (LESSONS,),
    within: str = "",
    project: Path | None = None,
) -> list[Hit]:
    """Find up to `k` hits of each kind for a query, lessons before skills, best first.

    `categories` narrows to lessons in or below any of these paths, before the search; so does
    `within`, the name of a document or category, misspelt or in part as it may be. `kinds` are
    "lessons" and "skills"; of skills the vault's, the user's and, if it is known to the vault
    (`skills.register`), those of the `project` that a folder is in. The index is read as it is:
    `index.sync` brings it up to date.

    Raises IndexStateError without an index, VaultError for a kind or name that is not there.
    """
    unknown = sorted(set(kinds) - set(KINDS))
    if unknown:
        raise VaultError(
            f"there is nothing of kind {unknown[0]!r} here", f"kinds: {', '.join(KINDS)}"
        )
    hits: list[Hit] = []
    if LESSONS in kinds:
        place = catalog.resolve(vault, within) if within else None
        hits += run(vault, query, k, categories, min_score, place=place).hits
    if SKILLS in kinds:
        hits += skills(vault, query, k, min_score, project=project).hits
    return hits


def run(
    vault: Vault,
    query: str,
    k: int = 5,
    categories: Sequence[str] = (),
    min_score: float | None = None,
    *,
    place: Place | None = None,
    text_only: bool = False,
    explain: bool = False,
    only: Filter = EVERYTHING,
) -> Results:
    """Find lessons as `find` does and tell whether vectors were searched; to `explain`, what was dropped.

    `place` narrows to a document or category of the catalog, `only` to tags, a type, a time.
    """
    paths = [path for path in map(tree.normalise, categories) if path]
    if categories and not paths:
        raise VaultError(f"not a category: {categories[0]!r}", "for example: devops/ci-cd")
    tests = [store.below(paths)] if paths else []
    tests += [catalog.within(place)] if place else []
    where = " AND ".join(f"({test})" for test in [*tests, *only.where()]) or None
    table = vault.open_index().store
    return _search(vault, table, query, k, min_score, where, text_only=text_only, explain=explain)


def skills(
    vault: Vault,
    query: str,
    k: int = 5,
    min_score: float | None = None,
    *,
    project: Path | None = None,
    for_agent: bool = False,
    text_only: bool = False,
    explain: bool = False,
) -> Results:
    """Find the skills that somebody in a project has: its own, the user's and the vault's.

    `project` is any folder in it. `for_agent` leaves out what only the user may call. Of skills
    with one name the first is kept: an agent has only one, too.
    """
    table = vault.open_index().skills
    if not table.exists():
        return Results([])
    # few enough to look at all of them, which is quicker than a filter
    everything = table.count()
    found = _search(
        vault, table, query, everything, min_score, None, text_only=text_only, explain=explain
    )
    here = skill_files.visible(vault, project)
    named: dict[str, Hit] = {}
    for hit in found.hits:
        if hit.document in here and (not for_agent or skill_files.may_be_suggested(hit.tags)):
            named.setdefault(hit.title, replace(hit, kind=SKILLS))
    hits = list(named.values())
    dropped = [
        (replace(hit, kind=SKILLS), why) for hit, why in found.dropped if hit.document in here
    ]
    dropped = [(hit, f"not among the first {k}") for hit in hits[k:]] + dropped
    return Results(hits[:k], dropped, found.text_only)


def count_skills(vault: Vault) -> int:
    """Count the skills that are known, of all projects. Raises IndexStateError without an index."""
    table = vault.open_index().skills
    return table.count() if table.exists() else 0


def neighbours(vault: Vault, hit: Hit, count: int = 1) -> list[Passage]:
    """Give the passage of a hit with up to `count` before and after it, as they stand in its file.

    Of a long lesson that was found as a whole, those from its beginning.
    """
    columns = ("id", "lesson_id", "position", "title", "text")
    rows = vault.open_index().store.rows(columns, store.of_paths([hit.path]))
    own = [row["position"] for row in rows if row["lesson_id"] == hit.lesson_id]
    middle = hit.position if hit.position >= 0 else min([at for at in own if at >= 0], default=0)
    near = [row for row in rows if row["position"] >= 0 and abs(row["position"] - middle) <= count]
    near.sort(key=lambda row: int(row["position"]))
    return [Passage(row["position"], row["title"], row["text"]) for row in near]


def _search(
    vault: Vault,
    table: store.Store,
    query: str,
    k: int,
    min_score: float | None,
    where: str | None,
    *,
    text_only: bool,
    explain: bool,
) -> Results:
    opened = vault.open_index()
    asked = _asked(query)
    vector, why = (None, "asked for") if text_only else _query_vector(vault, opened, asked)
    wanted = EXPLAINED if explain else max(CANDIDATES, 4 * k)
    least = None if explain else min_score
    best = _candidates(table, asked, vector, wanted, where, least)
    hits: list[Hit] = []
    dropped: list[tuple[Hit, str]] = []
    for hit in best:
        if min_score is not None and hit.score < min_score:
            dropped.append((hit, f"below {min_score:.3f}"))
        elif len(hits) < k:
            hits.append(hit)
        else:
            dropped.append((hit, f"not among the first {k}"))
    return Results(hits, dropped, why)


def rank(hit: Hit) -> float:
    """Give what hits are ordered by: the score, moved by up to 5% by the author's confidence."""
    return hit.score * (1 + CONFIDENCE_STEP * (hit.confidence - DEFAULT_CONFIDENCE))


def embed_ahead(vault: Vault, query: str) -> None:
    """Load the embedder and embed what will be searched for, beside other work. Never raises."""
    try:
        embedder = vault.embedder
        if embedder is not None:
            asked = _asked(query)
            vault.asked = (embedder.name, asked), embedder.embed_query(asked)
    except Exception:  # noqa: BLE001  # the search comes to the same, and says so
        return


def load_ahead(vault: Vault, *, rows: bool = False) -> None:
    """Open the lessons' table and load what every search of it needs; `rows` is for many searches."""
    vault.open_index().store.load(rows=rows)


def some_text(vault: Vault) -> str:
    """Return the beginning of some lesson: a prompt that finds something. "" where there is none."""
    row = vault.open_index().store.some_row()
    return f"{row['title']} {row['text'][:200]}" if row else ""


def _asked(query: str) -> str:
    whole = query.encode("utf-8", "replace").decode()  # half a character is no text for LanceDB
    return whole.strip()[:MAX_QUERY_CHARS]


def _query_vector(vault: Vault, opened: OpenIndex, query: str) -> tuple[np.ndarray | None, str]:
    """Embed a query for this index; None, with the reason, if that cannot be done."""
    if opened.embedder == NO_EMBEDDER:
        return None, "the index has no vectors"
    if not query:
        return None, ""
    try:
        embedder = vault.embedder
        if embedder is None or embedder.name != opened.embedder:
            now = embedder.name if embedder else "none"
            return None, f"the index was built with {opened.embedder}, the embedder is {now}"
        last = vault.asked  # once: other threads ask, too
        if last is None or last[0] != (embedder.name, query):
            vault.asked = last = (embedder.name, query), embedder.embed_query(query)
        vector = last[1]
    except EmbedderError as error:
        return None, error.message
    if len(vector) != opened.store.dimension:
        return None, f"{opened.embedder} changed its dimension; run `lessons index --rebuild`"
    return vector, ""


def _candidates(
    table: store.Store,
    query: str,
    vector: np.ndarray | None,
    wanted: int,
    where: str | None,
    least: float | None,
) -> list[Hit]:
    """Score every lesson on both sides; return the best, with evidence, best first.

    A lesson has the words of its whole, and the better cosine of its whole and its pieces, of which
    that of a piece counts `PIECE_WEIGHT`. A hit shows the piece that is nearest to the query.
    """
    import numpy as np

    none = np.empty(0, np.uint64), np.empty(0, np.float32)
    near, cosines = none if vector is None else table.nearest(vector, MOST_SCORED, where)
    matched, scores = table.matches(query, MOST_SCORED, where) if query else none
    pieces, wholes = table.families if len(near) else (none[0], none[0])
    ids = np.sort(np.concatenate([near, matched, wholes[np.isin(pieces, near)]]))
    ids = ids[np.diff(ids, prepend=ids[:1] + 1) != 0]  # union1d() would load numpy.ma for this
    # what is not among the nearest is no nearer than the last of them
    cosine = np.full(len(ids), cosines.min() if len(near) == MOST_SCORED else 0.0)
    cosine[np.searchsorted(ids, near)] = cosines
    text = np.zeros(len(ids))
    text[np.searchsorted(ids, matched)] = FULL_TEXT_WEIGHT * scores
    shown = np.arange(len(ids))  # the row that stands for a lesson
    is_piece = np.isin(ids, pieces)
    if is_piece.any():
        part = np.flatnonzero(is_piece)
        part = part[np.argsort(cosine[part])]  # the nearest is written last
        whole = np.searchsorted(ids, wholes[np.searchsorted(pieces, ids[part])])
        nearest = np.full(len(ids), -np.inf)
        nearest[whole] = cosine[part]
        nearer = nearest[whole] > cosine[whole]
        shown[whole[nearer]] = part[nearer]
        cosine = np.maximum(cosine, PIECE_WEIGHT * nearest)
    score = cosine + text
    order = np.argsort(np.where(is_piece, np.inf, -score), kind="stable")[: (~is_piece).sum()]
    if least is not None:
        order = order[score[order] >= least]
    order = order[:wanted]
    rows = table.take(ids[shown[order]].tolist())
    if vector is None:
        rows = _with_pieces(table, rows, query)
    hits = [
        _hit(row, float(cosine[at]), float(text[at])) for row, at in zip(rows, order, strict=True)
    ]
    # equal ones by id, so that the order is fixed
    return sorted(hits, key=lambda hit: (-rank(hit), hit.lesson_id))


def _with_pieces(
    table: store.Store, rows: list[dict[str, Any]], query: str
) -> list[dict[str, Any]]:
    """Return rows with the piece that has most words of a query in the place of each long whole."""
    long = [row["lesson_id"] for row in rows if row["position"] == LONG_WHOLE]
    if not long:
        return rows
    words = set(re.findall(r"\w+", query.casefold()))
    best: dict[str, tuple[int, str, int]] = {}
    columns = ("lesson_id", "position", "text")
    for piece in table.rows(columns, f"NOT is_whole AND {store.of_lessons(long)}"):
        count = len(words & set(re.findall(r"\w+", piece["text"].casefold())))
        better = (count, piece["text"], piece["position"])
        if count > best.get(piece["lesson_id"], (0,))[0]:
            best[piece["lesson_id"]] = better
    return [
        row | {"text": best[row["lesson_id"]][1], "position": best[row["lesson_id"]][2]}
        if row["position"] == LONG_WHOLE and row["lesson_id"] in best
        else row
        for row in rows
    ]


def _hit(row: dict[str, Any], cosine: float, full_text: float) -> Hit:
    values = {name: row[name] for name in row if name != "id" and not name.startswith("_")}
    values |= {name: tuple(row[name] or ()) for name in ("categories", "tags")}
    values |= {name: row[name] or "" for name in _TEXTS}
    values["position"] = row["position"] or 0
    return Hit(**values, score=cosine + full_text, cosine=cosine, full_text=full_text)
