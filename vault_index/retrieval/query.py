"""A query -> hits, with the evidence for each. Lessons and skills are two tables with one search."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from vault_index.embed import download
from vault_index.errors import EmbedderError, VaultError
from vault_index.index import words
from vault_index.index.skills import NOT_FOR, visible
from vault_index.lesson import category, identifiers
from vault_index.retrieval import (
    documents,
    duplicates,
    entries,
    evidence,
    scoring,
    unchecked,
    unindexed,
)
from vault_index.retrieval.hit import (
    LESSONS,
    SKILLS,
    Hit,
    Like,
    Query,
    below,
    first_of,
    percent_of,
)
from vault_index.store import filters, injections, schema
from vault_index.store.manifest import NO_EMBEDDER
from vault_index.store.reader import Reader

if TYPE_CHECKING:
    import numpy as np

    from vault_index.config import Config
    from vault_index.embed import Embedder
    from vault_index.journal.journal import Journal, OpenJournal
    from vault_index.retrieval.documents import Document
    from vault_index.retrieval.hit import Entry
    from vault_index.vault import OpenIndex, Vault

# Search by fixed weights, for those who want it: `[search] weights = "60/30/5/5"`.
#
# Off by default: the sum of evidence finds more (see README, "Tune"). The four weights are of
#
#     vector      1/rank among the candidates by cosine
#     full text   1/rank by BM25; 0 for a lesson without a word of the query
#     confidence  of 5
#     use         how often agents were given it, of the most used candidate
#
# and what is less like the query than `min_similarity`, a cosine, is no hit. The candidates are the
# best by the sum of evidence, so many that weights cannot tell the rest apart.
#
# Ranks say nothing of how good the best is, so `score` stays the sum of evidence: floors, `min_score`
# and hooks go by it. The weights order what people and agents search for; hooks order as ever, and
# without vectors so does a search.
POOL = 200  # candidates
MAX_CONFIDENCE = 5


def weights_of(config: Config) -> list[float]:
    """Return the weights of the settings, which have checked them, as shares; [] if they name none."""
    numbers = [int(part) for part in filter(None, config.search.weights.split("/"))]
    return [number / sum(numbers) for number in numbers]


def order(vault: Vault, candidates: Sequence[Hit]) -> tuple[list[Hit], list[tuple[Hit, str]]]:
    """Return the hits among candidates, best first, and the others with the reason.

    The settings have weights. Hits that score the same are ordered by their ids.
    """
    weights = weights_of(vault.config)
    least = vault.config.search.min_similarity
    hits = [hit for hit in candidates if hit.cosine >= least]
    why = f"less than {percent_of(least)}% like the query"
    used = injections.uses(vault.config.home, vault.root, [hit.lesson_id for hit in hits])
    most = max((used[hit.lesson_id] for hit in hits), default=0) or 1
    near, matching = _ranks([hit.cosine for hit in hits]), _ranks([hit.full_text for hit in hits])
    ordered = []
    for hit, by_cosine, by_words in zip(hits, near, matching, strict=True):
        terms = (
            1 / by_cosine,
            1 / by_words if hit.full_text else 0.0,
            hit.confidence / MAX_CONFIDENCE,
            used[hit.lesson_id] / most,
        )
        weighted = tuple(weight * term for weight, term in zip(weights, terms, strict=True))
        ordered.append(replace(hit, weighted=weighted))
    ordered.sort(key=lambda hit: (-sum(hit.weighted), hit.lesson_id))
    return ordered, [(hit, why) for hit in candidates if hit.cosine < least]


def _ranks(values: Sequence[float]) -> list[int]:
    ordered = sorted(values, reverse=True)
    rank_of = {value: number for number, value in reversed(list(enumerate(ordered, start=1)))}
    return [rank_of[value] for value in values]


CHECKED_FOR_PEOPLE = 16  # hits: a tenth of a second
_NO_VECTORS = "the index has no vectors yet; `lessons index` makes them"
EXPLAINED = 64  # when it is to be told what was left out
MAX_QUERY_VECTORS = 64  # a prompt and its ends, what a session begins with, what failed
# How much the cosine of a query counts in a language that the model does not know. On headings of 83
# rules in eight such languages as many are right among the first three as with all of it, or more, and
# exact words come before what is merely of the same language.
UNKNOWN_LANGUAGE = 0.1
MAX_QUERY_CHARS = 4000  # what is pasted after that says little about what is asked


@dataclass(frozen=True, slots=True)
class Results:
    """The results of a search. `dropped` are (hit, why it is not in the answer), best first."""

    hits: list[Hit]
    dropped: list[tuple[Hit, str]] = field(default_factory=list)
    text_only: str = ""  # why only full text was searched, if so
    document: Document | None = None  # the document or category that `Query.within` means
    has_more: bool = False  # whether a next page has lessons
    is_understood: bool = True  # by the model: else only words are evidence
    unquoted: tuple[str, ...] = ()  # quoted phrases that no lesson has: searched as plain words

    @property
    def silenced(self) -> list[Hit]:
        return [hit for hit, why in self.dropped if why.startswith("silent_on")]


def find(
    vault: Vault,
    text: str,
    k: int = 5,
    categories: Sequence[str] = (),
    min_score: float | None = None,
    kinds: Sequence[str] = (LESSONS,),
    within: str = "",
    project: Path | None = None,
) -> list[Hit]:
    """Return up to `k` hits of each kind for a text, lessons before skills, best first.

    The options are as in `Query`. The index is read as it is: `index.sync` brings it up to date.

    Raises IndexStateError without an index, VaultError for an unknown kind or name.
    """
    query = Query(
        text, k, tuple(categories), within, tuple(kinds),
        min_score=min_score, project=str(project or ""),
    )  # fmt: skip
    return every_kind(vault, query).hits


def nearest(vault: Vault, entry: Entry, most: int) -> list[Like]:
    """List the lessons that are most like one, without withheld ones.

    Without an embedder the words of the title decide.
    """
    vector = vault.open_index().store.of_lessons([entry.id]).get(entry.id)
    if vector is None:
        wanted = Query(entry.title, most + 1, for_agent=True, text_only=True)
        alike = [Like(hit.lesson_id, hit.title, None) for hit in run(vault, wanted).hits]
    else:
        alike = [
            Like(row["lesson_id"], row["title"], likeness)
            for likeness, row in duplicates.nearest(vault, vector, -1.0)
            if not row["withheld"]
        ]
    return [each for each in alike if each.id != entry.id][:most]


def every_kind(vault: Vault, query: Query) -> Results:
    """Search the kinds that a query names, lessons before skills. Raises as `find` does."""
    first = run(vault, query) if LESSONS in query.kinds else Results([])
    then = skills(vault, query) if SKILLS in query.kinds else Results([])
    hits, dropped = first.hits + then.hits, first.dropped + then.dropped
    text_only = first.text_only or then.text_only
    return Results(hits, dropped, text_only, first.document, unquoted=first.unquoted)


def run(vault: Vault, query: Query) -> Results:
    """Search the lessons.

    Raises IndexStateError, and VaultError for an unknown category, name or number of a lesson.
    """
    paths = _paths(query)
    document = None
    if query.within:
        document = documents.resolve(vault, query.within, for_agent=query.for_agent)
    if query.lesson is not None:
        if document is None:
            raise VaultError(f"lesson {query.lesson} of no document", "name the document, too")
        document = documents.narrowed(vault, document, query.lesson)
    tests = [filters.below(paths)] if paths else []
    tests += [documents.within(document)] if document else []
    tests += (
        [filters.any_of("lesson_id", [document.lesson])] if document and document.lesson else []
    )
    if query.related_to:
        tests.append(filters.any_of("lesson_id", entries.around(vault, query.related_to)))
    opened = vault.open_index()
    if query.for_agent:
        tests.append(filters.FOR_AGENTS_IF_CLEAN if opened.unchecked else filters.FOR_AGENTS)
    tests += query.filters.where(partial(entries.is_in_repository, vault))
    where = filters.all_of(*tests)
    results = replace(_search(vault, opened.store, query, where), document=document)
    return _checked(vault, query, results) if opened.unchecked else results


def _checked(vault: Vault, query: Query, results: Results) -> Results:
    """Return results of an index whose files are not all checked yet; what is returned is."""
    if not query.for_agent:
        return replace(results, hits=unchecked.checked(vault, results.hits, CHECKED_FOR_PEOPLE))
    dropped = [each for each in results.dropped if each[0].withheld != filters.UNCHECKED]
    return replace(results, hits=unchecked.only_clean(vault, results.hits), dropped=dropped)


def _paths(query: Query) -> list[str]:
    paths = [path for path in map(category.normalise, query.categories) if path]
    if query.categories and not paths:
        category.checked(query.categories[0])
    return paths


def skills(vault: Vault, query: Query) -> Results:
    """Search the skills that somebody in a project has: its own, the user's and the vault's.

    The first of skills with the same name is kept, as an agent has only one. The filters by
    category alone apply. Raises IndexStateError without an index, VaultError for a wrong category.
    """
    paths = _paths(query)
    table = vault.open_index().skills
    if not table.exists():
        return Results([])
    # few enough to look at all of them, which is quicker than a filter
    results = _search(vault, table, replace(query, k=table.count(), offset=0), None)
    here = visible(vault, Path(query.project) if query.project else None)
    all_hits = [hit for hit in results.hits if not query.for_agent or hit.suggestible]
    all_hits += [hit for hit, _ in results.dropped]
    best: dict[tuple[bool, str], Hit] = {}
    for hit in sorted(all_hits, key=lambda hit: (-hit.score, hit.lesson_id)):
        filed = {path for each in hit.categories for path in category.prefixes(each)}
        if hit.document in here and not (paths and filed.isdisjoint(paths)):
            found = replace(hit, kind=SKILLS, document="")  # the folder is for this choice alone
            best.setdefault((hit.kind == NOT_FOR, hit.title), found)

    def refuse(hit: Hit) -> str:
        other = best.get((True, hit.title))
        if other is not None and other.score >= hit.score:
            return "nearer to a prompt that it is not for"
        return below(hit.shown_score, query.min_score)

    wanted = [hit for (is_refusal, _), hit in best.items() if not is_refusal]
    return Results(*first_of(wanted, query.k, refuse), results.text_only)


def count_skills(vault: Vault) -> int:
    """Count the skills in the index, of all projects. Raises IndexStateError without an index."""
    table = vault.open_index().skills
    return len({row["path"] for row in table.rows(("path",))}) if table.exists() else 0


def _search(vault: Vault, table: Reader, query: Query, where: str | None) -> Results:
    """Return the first `k` hits of a table above the query's least score, and those left out."""

    def refuse(hit: Hit) -> str:
        return "" if query.min_score is None else below(hit.shown_score, query.min_score)

    text = searched(query.text)
    opened = vault.open_index()
    scoring.look_ahead(table, text)  # while the model embeds
    vector, why = (None, "asked for") if query.text_only else query_vector(vault, opened, text)
    understood = vector is None or is_understood(vault, text)
    if vector is not None and not understood:
        vector = UNKNOWN_LANGUAGE * vector
    unquoted: tuple[str, ...] = ()
    if query.phrases and table.schema.exact_text:
        where, unquoted = scoring.with_phrases(table, text, where)
        text = identifiers.without_quotes(text) if unquoted else text
    result = partial(Results, text_only=why, is_understood=understood, unquoted=unquoted)

    def compared(hits: Sequence[Hit], first: int | None = None) -> list[Hit]:
        if vector is None:
            hits = [unindexed.only_by_own_words(text, hit, opened.lessons) for hit in hits]
        if table.schema is schema.SKILLS:
            return list(hits)
        vault_words, is_text = words.of(vault), vector is None
        weighed = evidence.weigh(vault_words, text, hits, text_only=is_text, first=first)
        return [*weighed, *hits[len(weighed) :]]

    if query.weighted and vector is not None and weights_of(vault.config):
        scored = scoring.candidates(table, text, vector, range(POOL), where)
        ordered, unlike = order(vault, compared(scored.hits))
        page = ordered[query.offset :]
        hits, dropped = first_of(page, query.k, refuse)
        has_more = len(page) > query.k
        return result(hits, dropped + unlike, has_more=has_more)
    # confidence orders whole pages, so that they fit together
    pages = max(4, -(-scoring.CANDIDATES // max(1, query.k)))
    wanted = EXPLAINED if query.explain else query.k * pages or scoring.CANDIDATES
    first = query.offset // wanted * wanted if query.offset else 0
    scored = scoring.candidates(table, text, vector, range(first, first + wanted), where)
    # the others, which rank below, are shown with their evidence to who asks why they are left out
    is_all = query.explain or query.min_score is not None
    number = None if is_all else query.offset - first + query.k
    candidates = compared(scored.hits, number)[query.offset - first :]
    hits, dropped = first_of(candidates, query.k, refuse)
    reaching = [hit for hit in candidates if not refuse(hit)]
    has_more = len(reaching) > query.k
    has_more = has_more or (scored.has_more and not refuse(candidates[-1]))
    dropped += scored.silent
    return result(hits, dropped, has_more=has_more)


def has_phrases(hit: Hit, phrases: Sequence[str]) -> bool:
    """Whether the passage or the names of a hit have all of some quoted phrases."""
    folded = map(identifiers.fold, phrases)
    return all(identifiers.stands_in(phrase, hit.names, hit.text) for phrase in folded)


@contextlib.contextmanager
def embedding(vault: Vault, text: str) -> Iterator[None]:
    """Embed a text in a thread beside the body: loading the built-in model takes a core of its own.

    Nothing is embedded without a text, or where a server embeds: that one may take its time.
    """
    if not text or not vault.config.is_built_in:
        yield
        return
    thread = threading.Thread(target=embed_ahead, args=(vault, text), daemon=True)
    thread.start()
    yield
    thread.join()


def embed_ahead(vault: Vault, *queries: str) -> None:
    """Load the embedder and embed texts before their search, beside other work. Never raises."""
    try:
        embedder = vault.embedder
        if embedder is not None:
            embed(vault, embedder, *map(searched, queries))
    except Exception:  # noqa: BLE001  # the search meets the same error, and reports it
        return


def look_ahead(vault: Vault, queries: Sequence[str], *, text_only: bool) -> None:
    """Ask LanceDB and the embedder at once for what the searches of several texts need.

    Raises IndexStateError without an index.
    """
    opened = vault.open_index()
    for text in queries:
        scoring.look_ahead(opened.store, searched(text))
    if not text_only and embedder_for(vault, opened)[0] is not None:
        embed_ahead(vault, *queries)


def searched(query: str) -> str:
    """Return the part of a query that is searched for."""
    whole = query.encode("utf-8", "replace").decode()  # half a character is no text for LanceDB
    return whole.strip()[:MAX_QUERY_CHARS]


def query_vector(
    vault: Vault | Journal, opened: OpenIndex | OpenJournal, query: str
) -> tuple[np.ndarray | None, str]:
    """Embed a query for this index; None, with the reason, if that cannot be done."""
    embedder, why = embedder_for(vault, opened)
    if embedder is None or not query:
        return None, why
    try:
        vector = embed(vault, embedder, query)[0]
    except EmbedderError as error:
        return None, error.message
    if len(vector) != opened.store.dimension:
        return None, f"{opened.embedder} changed its dimension; run `lessons index --rebuild`"
    return vector, ""


def embed(vault: Vault | Journal, embedder: Embedder, *queries: str) -> list[np.ndarray]:
    """Return the vectors of queries; the last few are kept. Raises EmbedderError."""
    vectors = {**vault.query_vectors}  # copied: other threads may replace it
    missing = [query for query in dict.fromkeys(queries) if (embedder.name, query) not in vectors]
    if missing:
        new = embedder.embed_queries(missing)
        vectors |= {
            (embedder.name, text): vector for text, vector in zip(missing, new, strict=True)
        }
        vault.query_vectors = dict([*vectors.items()][-MAX_QUERY_VECTORS:])
    return [vectors[embedder.name, query] for query in queries]


def embedder_for(
    vault: Vault | Journal, opened: OpenIndex | OpenJournal
) -> tuple[Embedder | None, str]:
    """Return the embedder that an index was built with; None, with the reason, where it is not here."""
    if opened.embedder == NO_EMBEDDER or opened.unmade:
        return None, _why_missing(vault) or opened.unmade or _NO_VECTORS
    try:
        embedder = vault.embedder
    except EmbedderError as error:
        return None, error.message
    if embedder is None:
        return None, download.why_missing(vault.config)
    if embedder.name != opened.embedder:
        return None, f"the index was built with {opened.embedder}, the embedder is {embedder.name}"
    return embedder, ""


def _why_missing(vault: Vault | Journal) -> str:
    """Return the reason for no embedder here; "" where there is one, or a server that may answer."""
    try:
        return "" if vault.embedder is not None else download.why_missing(vault.config)
    except EmbedderError as error:
        return error.message


def why_away(vault: Vault) -> str:
    """Return the reason for which no vector can be made now; "" where the embedder answers."""
    try:
        embedder = vault.embedder
        if embedder is None:
            return download.why_missing(vault.config)
        embedder.embed_queries(["is anybody there"])
    except EmbedderError as error:
        return error.message
    return ""


def is_understood(vault: Vault, text: str) -> bool:
    """Whether the model was trained on the language of a query; else only words are evidence."""
    embedder, _ = embedder_for(vault, vault.open_index())
    return embedder is None or embedder.knows(searched(text))
