"""When to be silent: two floors, of the evidence for a lesson, that an embedder has.

Above the upper floor an agent gets the whole lesson, between the two its line. The floors of the built-in
model are constants, measured on sets of lessons by others; another embedder's cosines have another scale,
so its floors are measured once (`retrieval.measuring`), and until then words decide.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING

from vault_index import state
from vault_index.embed import minilm
from vault_index.embed.languages import TwoModels
from vault_index.hotpath import chatter
from vault_index.retrieval import above, query, unindexed
from vault_index.retrieval.hit import LESSONS, ContextBlock, Query, below
from vault_index.retrieval.scoring import FULL_TEXT_WEIGHT
from vault_index.store.manifest import NO_EMBEDDER

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from vault_index.retrieval.hit import Hit
    from vault_index.vault import Vault


@dataclass(frozen=True, slots=True)
class Floors:
    """The evidence from which on a lesson comes whole, and from which on its line comes."""

    whole: float
    line: float


@dataclass(frozen=True, slots=True)
class OfEmbedder:
    """The floors that an embedder has among many lessons or skills, for prompts and for failures."""

    prompts: Floors
    failures: Floors
    skills: float


# With `MANY` lessons and more. Half of each set by others, means of three draws: the right lesson comes
# whole, or at all; and of what none of the other half answers a share gets one whole, or a line. Beside
# them the same with floors fitted to each of these vaults, as it was before.
#
#                       fixed                    fitted
#     shell tasks       .40/.70; .10/.23         .42/.70; .12/.24
#     git rules         .17/.25; .04/.14         .15/.25; .03/.14
#     notes             .36/.67; .09/.35         .34/.63; .07/.29    foreign .004/.05, .004/.05
#     compiler          .57/.82; .07/.30         .61/.82; .08/.30    failures
#     notes             .42/.57; .03/.23         .39/.56; .02/.19    failures; foreign .01/.17, .01/.16
BUILT_IN = OfEmbedder(Floors(0.47, 0.33), Floors(0.44, 0.36), skills=0.51)
# Of prompts in other languages, by the second model of `embed.languages`, whose cosines are lower.
OTHER_LANGUAGES = Floors(0.27, 0.19)
# Below so many there is less evidence by chance, and a failure's first lesson stands out more. Vaults of
# 10 and 20 lessons get by these as much as by floors that are fitted to them.
MANY = 40
PROMPTS_LOWER, MOST_LOWER = 0.05, 0.07  # for e times fewer, and at most
FAILURES_HIGHER, MOST_HIGHER = 0.09, 0.10
# A wrong skill costs more than a wrong lesson: an agent does what it says. Of the foreign prompts 2% pass
# .33 with 3 skills, .41 and .43 with 10, .51 with 40, and .02, .05, .11 by full text alone. With 40
# skills and 120 prompts .51 keeps 32 of the 60 right ones, none of them second to a wrong one; it lets
# through none of 35 requests and chatter that no skill is for, and 7 of 25 that ask for other work on its
# subject.
SKILLS_LOWER, SKILLS_MOST = 0.065, 0.11
# By full text .0097 n^.66 goes through these three; a logarithm is too high among few.
SKILLS_BY_WORDS, SKILLS_GROWTH = 0.0097, 0.66
RARE_WORDS = 3  # of one lesson alone, or their weight in words of more: few lessons have no less
COMPANION_SHARE = 0.75  # of the score of the first: a lesson that scores less is noise beside it


def in_force(vault: Vault, text: str = "", *, text_only: bool = False) -> Floors | None:
    """Return the floors for a text: those that the vault's settings name, else the embedder's.

    A text in another language has floors of its own, where there is a model for it. None if those of
    the embedder are not measured yet: then words decide, by `by_words`.
    """
    if text_only:
        return by_words(vault.open_index().lessons)
    wanted = vault.config.floor
    if wanted is not None:
        return Floors(wanted, wanted)
    if isinstance(vault.embedder, TwoModels) and vault.embedder.is_other(text):
        return OTHER_LANGUAGES
    found = of_embedder(vault)
    if found is None:
        return None
    lower = _for_few(vault.open_index().lessons, PROMPTS_LOWER, MOST_LOWER)
    return Floors(found.prompts.whole - lower, found.prompts.line - lower)


def for_failures(vault: Vault, *, text_only: bool = False) -> Floors:
    """Return the floors for failures; those of full text also until the embedder's are measured."""
    lessons, found = vault.open_index().lessons, None if text_only else of_embedder(vault)
    if found is None:
        return failures_by_words(lessons)
    higher = _for_few(lessons, FAILURES_HIGHER, MOST_HIGHER)
    return Floors(found.failures.whole + higher, found.failures.line + higher)


def _for_few(count: int, growth: float, most: float) -> float:
    """Return the difference of a floor among so few lessons or skills."""
    return min(most, growth * max(0.0, math.log(MANY / max(1, count))))


def of_embedder(vault: Vault) -> OfEmbedder | None:
    """Return the floors of the embedder that the vault's index was built with; None if not measured."""
    name = vault.open_index().embedder
    return BUILT_IN if name.startswith(minilm.NAME) else measured(vault.config.home, name)


def measured(home: Path, embedder: str) -> OfEmbedder | None:
    """Return the floors that were measured for an embedder, by its name."""
    found = state.fact(home, _fact(embedder))
    if found is None:
        return None
    prompts, failures = Floors(**found["prompts"]), Floors(**found["failures"])
    return OfEmbedder(prompts, failures, found["skills"])


def keep(home: Path, embedder: str, floors: OfEmbedder) -> None:
    """Keep the floors that were measured for an embedder, for all vaults. Raises WriteError."""
    state.keep_fact(home, _fact(embedder), asdict(floors))


def _fact(embedder: str) -> str:
    return f"floors of {embedder}"


def is_unmeasured(vault: Vault) -> bool:
    """Whether the floors of the index's embedder are still to be measured."""
    return vault.open_index().embedder != NO_EMBEDDER and of_embedder(vault) is None


def by_words(lessons: int) -> Floors:
    """Return the floors for prompts by full text alone in a vault of so many lessons.

    BM25 grows with the logarithm of their number. Half sets, right whole and unanswered whole: shell
    tasks .29, .13 (.33, .16 with .06 in the place of .07), git rules .37, .12, notes .20, .05. In a small
    vault two rare words that a lesson shares with a prompt decide: see `unindexed.only_by_own_words`.
    """
    if lessons < unindexed.SMALL:
        least = RARE_WORDS * FULL_TEXT_WEIGHT * unindexed.rarity(1, max(1, lessons))
        return Floors(least, least)
    size = math.log(lessons)
    return Floors(0.07 + 0.02 * size, 0.02 + 0.02 * size)


def failures_by_words(lessons: int) -> Floors:
    """Return the floors for failures by full text alone in a vault of so many lessons."""
    size = math.log(max(1, lessons))
    return Floors(0.18 + 0.033 * size, 0.09 + 0.034 * size)


def lessons_above(vault: Vault, wanted: Query) -> tuple[query.Results, Floors]:
    """Search the lessons above the lower floor; those below the upper one are marked as lines.

    The floors of full text decide if there are no vectors, until the embedder's floors are measured, and
    for a prompt in a language that the model does not know: to it any two texts of one are alike. Beside
    the first come the lines of those that score nearly as much: a reader can tell siblings apart better
    than the score. So does the line of a lesson with the name that a short prompt is.
    """
    floors = None if wanted.text_only else in_force(vault, wanted.text)
    is_understood = True
    if floors is not None:
        results = query.run(vault, wanted)
        is_understood = results.is_understood
        if is_understood and not results.text_only:
            return _divided(results, floors, wanted.text), floors
    floors = by_words(vault.open_index().lessons)
    results = query.run(vault, replace(wanted, text_only=True))
    results = replace(results, is_understood=is_understood)
    return _divided(results, floors, wanted.text), floors


def _divided(results: query.Results, floors: Floors, text: str) -> query.Results:
    first = max(results.hits, key=lambda hit: hit.reason, default=None)
    least, has_lines = floors.line, floors.line < floors.whole
    beside = float("inf")
    if first is not None and not first.taught and first.reason >= least:
        beside = COMPANION_SHARE * first.score
    is_short = len(text.strip()) < chatter.MIN_CHARS

    def is_beside(hit: Hit) -> bool:
        return hit.is_named or (hit.score >= beside and not hit.passing)

    hits, dropped = [], []
    for hit in results.hits:
        if is_short and not (hit.exact or hit.taught):
            dropped.append((hit, "it does not have the name"))
        elif hit.taught or hit.reason >= floors.whole:
            hits.append(hit)
        elif hit.reason >= least or (has_lines and is_beside(hit)):
            hits.append(replace(hit, as_line=True))
        else:
            dropped.append((hit, below(hit.reason, least)))
    return replace(results, hits=hits, dropped=dropped + results.dropped)


def with_above(
    vault: Vault,
    wanted: Query,
    results: query.Results,
    keep: Callable[[Vault, Sequence[Hit]], list[Hit]] = lambda _, hits: list(hits),
) -> query.Results:
    """Add the lessons of the vaults above that reach their floor, and that `keep` returns.

    A query that is narrowed to a document, or to what is about a lesson, is of this vault alone.
    """
    is_own = wanted.within or wanted.lesson is not None or wanted.related_to or wanted.offset
    if is_own or LESSONS not in wanted.kinds or not above.opened(vault):
        return results

    def search(_: above.Above, other: Vault) -> ContextBlock:
        reaching = lessons_above(other, wanted)[0]
        return ContextBlock("", keep(other, reaching.hits), others=reaching.silenced)

    skills = [hit for hit in results.hits if hit.kind != LESSONS]
    lessons = [hit for hit in results.hits if hit.kind == LESSONS]
    hits = above.joined(vault, ContextBlock("", lessons, others=results.silenced), search)
    hits.sort(key=lambda hit: -hit.place)
    has_phrases = any(query.has_phrases(hit, results.unquoted) for hit in hits)
    unquoted = () if has_phrases else results.unquoted
    return replace(results, hits=[*hits, *skills], unquoted=unquoted)


def skills_above(vault: Vault, wanted: Query) -> query.Results:
    """Search the skills above their floor, as `lessons_above`."""
    least = None if wanted.text_only else for_skills(vault)
    if least is not None:
        results = query.skills(vault, replace(wanted, min_score=least))
        if not results.text_only:
            return results
    least = for_skills(vault, text_only=True)
    return query.skills(vault, replace(wanted, min_score=least, text_only=True))


def for_skills(vault: Vault, *, text_only: bool = False) -> float | None:
    """Return the floor of the skills; None without skills, and where it is not measured yet.

    The best of many skills scores higher by chance.
    """
    count = len(vault.open_index().known_skills)
    if not count:
        return None
    if text_only:
        return SKILLS_BY_WORDS * math.pow(count, SKILLS_GROWTH)
    found = of_embedder(vault)
    if found is None:
        return None
    return found.skills - _for_few(count, SKILLS_LOWER, SKILLS_MOST)
