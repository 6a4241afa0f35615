"""When to be silent: two floors, fitted to a vault and an embedder without any labels.

Above the upper floor an agent gets the whole lesson, between the two its line. A constant does not carry
from one vault to another: BM25 and the best of n cosines grow with the vault. So each title of the vault
is searched without its lesson, as a prompt that no lesson answers. Prompts on other subjects, shipped
with the package, are the second condition. Taught prompts do not move a floor.
"""

from __future__ import annotations

import math
import random
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from vault_index.embed import languages, minilm
from vault_index.hotpath import chatter
from vault_index.search import above, evidence, query, scoring, unindexed
from vault_index.search.duplicates import DUPLICATE_COSINE, is_same
from vault_index.search.evidence import foreign_prompts as foreign_prompts
from vault_index.search.hit import LESSONS, Injection, Query, below
from vault_index.search.scoring import FULL_TEXT_WEIGHT
from vault_index.store import filters

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Sequence

    import numpy as np

    from vault_index.search.hit import Hit
    from vault_index.store.sync import Progress
    from vault_index.vault import Vault


@dataclass(frozen=True, slots=True)
class Floors:
    """The evidence from which on a lesson comes whole, and from which on its line comes."""

    whole: float
    line: float


# The shares of the prompts that get a whole lesson though none answers them, and at least a line: of
# prompts on the vault's subject, and of the package's prompts on others. Some of these are on the
# subjects of a broad vault: on half sets, of others that are on none, .004 and .05 get so much.
PASSING, PASSING_FOREIGN = Floors(0.10, 0.50), Floors(0.02, 0.09)
USUAL = Floors(0.47, 0.33)  # for the built-in model, between the floors of five kinds of vaults
# Few lessons say little about what is foreign to them, hence the lowest floors of vaults that are too
# small to leave one out.
LOWEST = Floors(0.40, 0.26)
# Of prompts in other languages, by the second model of `embed.languages`, whose cosines are lower. The
# shipped prompts in twelve languages pass in vaults of 10 to 400 lessons at .15 to .22, 200 others at up
# to .07 more: notes on all of programming answer some of them nearly.
OTHERS_PASS, LOWEST_OTHER = Floors(0.05, 0.03), Floors(0.27, 0.19)
COMPANION_SHARE = 0.75  # of the score of the first: a lesson that scores less is noise beside it
# A wrong skill costs more than a wrong lesson: an agent does what it says. On 120 prompts for 40
# skills (40 of them written for other work) this keeps 32 of the 60 right ones, none of them second
# to a wrong one, and lets through none of 35 requests and chatter that no skill is for; 7 of 25
# that are about a skill's subject and ask for other work. Few skills say little about what is
# foreign to them, hence their lowest.
SKILLS_QUANTILE, SKILLS_LOWEST = 0.98, 0.4
RARE_WORDS = 3  # of one lesson alone, or their weight in words of more: few lessons have no less
NEAREST = 16  # lessons that are compared with a title: of them the lesson and its like are left out

# How much the usual floors count beside the titles of a vault, which are few and no prompts. On half
# sets of three kinds the floor that a tenth of their unanswered prompts pass is .43 to .59 of evidence,
# their titles' floor .45 to .59, and the two have little to do with each other: by the titles alone
# from .01 to .21 pass, by both .04 to .15. Other embedders have other scales.
USUAL_WHOLE, USUAL_LINE = 2 / 3, 1 / 2
MAX_TITLES = 150  # that are asked for, each without its lesson: more take longer and say no more

_FILE = "floor.json"


@dataclass(frozen=True, slots=True)
class OfIndex:
    """The floors of an index, with vectors and for full text alone."""

    whole: float
    line: float
    whole_text: float
    line_text: float
    lessons: int

    def floors(self, *, text_only: bool = False) -> Floors:
        if text_only:
            return Floors(self.whole_text, self.line_text)
        return Floors(self.whole, self.line)


@dataclass(frozen=True, slots=True)
class Fitted(OfIndex):
    """The floors of lessons and of skills for prompts, and what they were fitted to."""

    titles: int  # that were asked for; 0 in a vault that is too small for it
    skills: float = SKILLS_LOWEST
    skills_full_text: float = 0.0
    skill_files: int = 0
    whole_other: float = 0.0  # for prompts in other languages, where there is a model for them
    line_other: float = 0.0


def in_force(vault: Vault, text: str = "", *, text_only: bool = False) -> Floors | None:
    """Return the floors of the vault's index: the one its settings name, else the fitted ones.

    A text in another language has floors of its own, where there is a model for it. None if none were
    fitted yet: hooks are silent until then, or go by `before_fit`.
    """
    wanted = vault.config.floor
    if wanted is not None and not text_only:
        return Floors(wanted, wanted)
    found = fit_of(vault)
    if found is None:
        return None
    if not text_only and found.whole_other and languages.is_other(vault.embedder, text):
        return Floors(found.whole_other, found.line_other)
    floors = found.floors(text_only=text_only)
    least = before_fit(vault.open_index().lessons) if text_only else 0.0
    return Floors(max(least, floors.whole), max(least, floors.line))


def fit_of(vault: Vault) -> Fitted | None:
    """Return what was fitted to the vault's index; None if nothing was yet."""
    return evidence.kept(vault, _FILE, Fitted)


def lessons_above(vault: Vault, asked: Query) -> tuple[query.Results, Floors]:
    """Search the lessons above the lower floor; those below the upper one are marked as lines.

    The floors of full text decide if there are no vectors, until a floor of theirs is fitted, and for a
    prompt in a language that the model does not know: to it any two texts of one are alike. Beside a
    line come the next ones that score nearly as much: which of some siblings answers a prompt, its
    reader sees better than any score.
    """
    floors = None if asked.text_only else in_force(vault, asked.text)
    is_understood = True
    if floors is not None:
        results = query.run(vault, asked)
        is_understood = results.is_understood
        if is_understood and not results.text_only:
            return _divided(results, floors, asked.text), floors
    lessons = vault.open_index().lessons
    floors = in_force(vault, text_only=True) or Floors(before_fit(lessons), before_fit(lessons))
    results = query.run(vault, replace(asked, text_only=True))
    results = replace(results, is_understood=is_understood)
    return _divided(results, floors, asked.text), floors


def _divided(results: query.Results, floors: Floors, text: str) -> query.Results:
    first = max(results.hits, key=lambda hit: hit.reason, default=None)
    least = floors.line
    beside = float("inf")
    if first is not None and not first.taught and least <= first.reason < floors.whole:
        beside = COMPANION_SHARE * first.score
    is_short = len(text.strip()) < chatter.MIN_CHARS
    hits, dropped = [], []
    for hit in results.hits:
        if is_short and not (hit.exact or hit.taught):
            dropped.append((hit, "it does not have the name"))
        elif hit.taught or hit.reason >= floors.whole:
            hits.append(hit)
        elif hit.reason >= least or (hit.score >= beside and not hit.no_reason):
            hits.append(replace(hit, as_line=True))
        else:
            dropped.append((hit, below(hit.reason, least)))
    return replace(results, hits=hits, dropped=dropped + results.dropped)


def with_above(
    vault: Vault,
    asked: Query,
    results: query.Results,
    keep: Callable[[Vault, Sequence[Hit]], list[Hit]] = lambda _, hits: list(hits),
) -> query.Results:
    """Add the lessons of the vaults above that reach their floor, and that `keep` returns.

    A query that is narrowed to a document, or to what is about a lesson, is of this vault alone.
    """
    is_own = asked.within or asked.lesson is not None or asked.related_to or asked.offset
    if is_own or LESSONS not in asked.kinds or not above.opened(vault):
        return results

    def search(_: above.Above, other: Vault) -> Injection:
        reaching = lessons_above(other, asked)[0]
        return Injection("", keep(other, reaching.hits), others=reaching.silenced)

    skills = [hit for hit in results.hits if hit.kind != LESSONS]
    own = [hit for hit in results.hits if hit.kind == LESSONS]
    every = above.joined(vault, Injection("", own, others=results.silenced), search)
    every.sort(key=lambda hit: -hit.shown_score)
    has_phrases = any(query.has_phrases(hit, results.unquoted) for hit in every)
    unquoted = () if has_phrases else results.unquoted
    return replace(results, hits=[*every, *skills], unquoted=unquoted)


def skills_above(vault: Vault, asked: Query) -> query.Results:
    """Search the skills above their floor, as `lessons_above`; no hits until it is fitted."""
    of_text = for_skills(vault, text_only=True)
    if of_text is None:
        return query.Results([])
    if not asked.text_only:
        results = query.skills(vault, replace(asked, min_score=for_skills(vault)))
        if not results.text_only:
            return results
    return query.skills(vault, replace(asked, min_score=of_text, text_only=True))


def before_fit(lessons: int) -> float:
    """Return the floor of full text alone that holds until one is fitted to a vault of this size.

    BM25 grows with the logarithm of the number of lessons. On the development set, on half and on a
    tenth of it: 1, 2 and 1 of 80 prompts without an answer get something, and 21, 29 and 67% of the
    others a right lesson; with the fitted floor it is 2, 2 and 1, and 22, 29 and 67%.
    """
    least = RARE_WORDS * FULL_TEXT_WEIGHT * unindexed.rarity(1, max(1, lessons))
    return max(least, 0.04 * math.log(max(1, lessons)) - 0.05)


def for_skills(vault: Vault, *, text_only: bool = False) -> float | None:
    """Return the floor of the skills; None if none was fitted yet."""
    found = fit_of(vault)
    if found is None or found.skill_files == 0:
        return None
    return found.skills_full_text if text_only else found.skills


def is_stale(vault: Vault) -> bool:
    """Whether the index changed so much that floors should be fitted again."""
    found = fit_of(vault)
    if found is None or evidence.has_outgrown(vault, found.lessons):
        return True
    return len(vault.open_index().known_skills) != found.skill_files


def fit(vault: Vault, progress: Progress = lambda _done, _all: None) -> Fitted:
    """Fit the floors to the index as it is, and keep them beside it. Raises WriteError.

    If only the skills are others than before, only their floor is fitted.
    """
    opened = vault.open_index()
    found = fit_of(vault)
    skills_changed = found is not None and len(opened.known_skills) != found.skill_files
    if found is None or evidence.has_outgrown(vault, found.lessons) or not skills_changed:
        found = _of_lessons(vault, progress)
    if opened.known_skills:
        least, least_text = _of_skills(vault, progress)
        found = replace(found, skills=least, skills_full_text=least_text)
    found = replace(found, skill_files=len(opened.known_skills))
    evidence.keep(vault, _FILE, found)
    return found


def _of_lessons(vault: Vault, progress: Progress) -> Fitted:
    opened = vault.open_index()
    opened.store.load(warm=True)
    every = foreign_prompts()
    prompts = [prompt for prompt in every if not chatter.why_skipped(prompt)]
    words = evidence.count(vault, every)
    titles = titles_of(vault)
    vectors = query.kept_vectors(vault, [*prompts, *titles.values()])

    def both(text: str, without: str = "") -> list[float]:
        """Return the evidence with vectors and without: full text is asked once for both."""
        vector = vectors.get(text)
        return [_evidence_of_first(vault, words, text, each, without) for each in (vector, None)]

    foreign = [both(prompt) for prompt in _reported(prompts, progress)]
    foreign += [[0.0, 0.0]] * (len(every) - len(prompts))  # that get no search
    like = [both(title, id) for id, title in titles.items()]
    found = floors_of_both(vault, like, foreign, PASSING, PASSING_FOREIGN, USUAL)
    if not titles:
        whole, line = max(found[0], LOWEST.whole), max(found[1], LOWEST.line)
        found = whole, line, *found[2:]
    others = _of_others(vault, words)
    return Fitted(
        *found, opened.lessons, len(titles), whole_other=others.whole, line_other=others.line
    )


def _of_others(vault: Vault, words: evidence.Words) -> Floors:
    """Return the floors for prompts in other languages; zeros without a model for them."""
    if not isinstance(vault.embedder, languages.TwoModels):
        return Floors(0.0, 0.0)
    vectors = query.kept_vectors(vault, foreign_prompts("other_prompts.txt"), as_other=True)
    scores = [_evidence_of_first(vault, words, text, each, "") for text, each in vectors.items()]
    return Floors(
        max(LOWEST_OTHER.whole, OTHERS_PASS.whole + quantile(scores, 1 - PASSING_FOREIGN.whole)),
        max(LOWEST_OTHER.line, OTHERS_PASS.line + quantile(scores, 1 - PASSING_FOREIGN.line)),
    )


def quantile(values: Sequence[float], share: float) -> float:
    """Return the value that `share` of the values do not exceed, interpolated; 0.0 for none."""
    import numpy as np

    return float(np.quantile(values, share)) if values else 0.0


def passed_by(values: Sequence[float], share: float) -> float:
    """Return the floor that a share of the unanswered prompts of a vault's subject pass.

    `values` are the evidence for each title without its lesson. Some titles have siblings that do answer
    them, the more the larger a vault is; so the upper half is taken to be the mirror of the lower.
    """
    if share >= 0.5:
        return quantile(values, 1 - share)
    return 2 * quantile(values, 0.5) - quantile(values, share)


def floors_of(
    like: Sequence[float],
    foreign: Sequence[float],
    passing: Floors,
    passing_foreign: Floors,
    usual: Floors | None,
) -> Floors:
    """Return the floors that these shares of unanswered prompts pass.

    `like` is the evidence for titles without their lessons, `foreign` for prompts on other subjects.
    `usual` are the floors of other vaults by the same embedder, which count beside the titles.
    """
    whole, line = passed_by(like, passing.whole), passed_by(like, passing.line)
    if usual is not None and like:
        whole += USUAL_WHOLE * (usual.whole - whole)
        line += USUAL_LINE * (usual.line - line)
    whole = max(whole, quantile(foreign, 1 - passing_foreign.whole))
    return Floors(whole, min(whole, max(line, quantile(foreign, 1 - passing_foreign.line))))


def floors_of_both(
    vault: Vault,
    like: Sequence[Sequence[float]],
    foreign: Sequence[Sequence[float]],
    passing: Floors,
    passing_foreign: Floors,
    usual: Floors,
) -> tuple[float, float, float, float]:
    """Return the floors with vectors and for full text alone, of pairs of evidence for both.

    The usual floors are for the vectors of the built-in model.
    """
    shares = passing, passing_foreign
    known = usual if vault.open_index().embedder.startswith(minilm.NAME) else None
    both = [
        floors_of([each[at] for each in like], [each[at] for each in foreign], *shares, some)
        for at, some in enumerate((known, None))
    ]
    return both[0].whole, both[0].line, both[1].whole, both[1].line


def titles_of(vault: Vault) -> dict[str, str]:
    """Return the titles of some lessons by id; {} in a vault too small to fit a floor by them."""
    opened = vault.open_index()
    if opened.lessons < evidence.SMALL:
        return {}
    rows = opened.store.rows(("lesson_id", "title"), filters.WHOLE)
    titles = {row["lesson_id"]: row["title"] for row in rows if row["title"].strip()}
    some = sorted(titles)
    random.Random(0).shuffle(some)
    return {id: titles[id] for id in some[:MAX_TITLES]}


def _evidence_of_first(
    vault: Vault, words: evidence.Words, text: str, vector: np.ndarray | None, without: str
) -> float:
    """Return the evidence of the first lesson for a text, without one lesson and those like it."""
    opened, text = vault.open_index(), query.searched(text)
    hits = scoring.candidates(opened.store, text, vector, range(NEAREST), None).hits
    if vector is None:
        hits = [unindexed.only_by_own_words(text, hit, opened.lessons) for hit in hits]
    if without:
        alike = like(vault, without, [hit.lesson_id for hit in hits])
        hits = [hit for hit in hits if hit.lesson_id not in alike]
    hits = [
        replace(hit, score=hit.score - hit.taught, taught=0.0) if hit.taught else hit
        for hit in hits
    ]
    weighed = evidence.weigh(words, text, hits, text_only=vector is None, first=1)
    return weighed[0].reason if weighed else 0.0


def like(vault: Vault, lesson: str, others: Collection[str]) -> set[str]:
    """Return the ids of a lesson and of the others among `others` that say the same."""
    vectors = vault.open_index().store.of_lessons([lesson, *others])
    if lesson not in vectors:
        return {lesson}
    near = [id for id, each in vectors.items() if each @ vectors[lesson] >= DUPLICATE_COSINE]
    if near == [lesson]:
        return {lesson}
    columns = ("lesson_id", "title", "text")
    rows = vault.open_index().store.rows(columns, filters.wholes_of(near))
    (whole,) = (row for row in rows if row["lesson_id"] == lesson)
    return {row["lesson_id"] for row in rows if is_same(whole, row)}


def _reported(prompts: Sequence[str], progress: Progress) -> Iterable[str]:
    for number, prompt in enumerate(prompts, start=1):
        yield prompt
        progress(number, len(prompts))


def _of_skills(vault: Vault, progress: Progress) -> tuple[float, float]:
    """Return the floor of skills, and the floor of full text alone."""
    opened = vault.open_index()
    opened.skills.load(warm=True)
    prompts = [prompt for prompt in foreign_prompts() if not chatter.why_skipped(prompt)]
    vectors = query.kept_vectors(vault, prompts)
    scores, texts = [], []
    for prompt in _reported(prompts, progress):
        if vault.embedder is not None and prompt in vectors:
            vault.query_vectors = {(vault.embedder.name, prompt): vectors[prompt]}
        best = query.skills(vault, Query(prompt, k=1))
        alone = best if best.text_only else query.skills(vault, Query(prompt, k=1, text_only=True))
        scores.append(_highest(best))
        texts.append(_highest(alone))
    least = max(SKILLS_LOWEST, quantile(scores, SKILLS_QUANTILE))
    return least, quantile(texts, SKILLS_QUANTILE)


def _highest(results: query.Results) -> float:
    every = [*results.hits, *(hit for hit, _ in results.dropped)]
    return max([hit.cosine + hit.full_text for hit in every], default=0.0)
