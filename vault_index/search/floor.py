"""When to be silent: the floor, a score fitted to a vault and an embedder without any labels.

A constant does not carry from one vault to another: BM25 and the best of n cosines grow with the
vault. So prompts that no lesson answers, shipped with the package, are searched in the vault at
hand, and a high quantile of their best scores is the floor. A vault's own `fires_on` and
`silent_on` prompts do not move it: they act by themselves (`search.taught`).
"""

from __future__ import annotations

import json
import math
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from vault_index import files
from vault_index.errors import VaultError
from vault_index.hotpath import chatter
from vault_index.search import above, query, scoring, unindexed
from vault_index.search.query import Query
from vault_index.search.scoring import FULL_TEXT_WEIGHT
from vault_index.store import ownership

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from vault_index.search.hit import Hit
    from vault_index.store.sync import Progress
    from vault_index.vault import Vault

# Of the foreign prompts' best scores. Nearly half of them are requests on common subjects, harder
# than what people mostly type: measured false injections are 1 to 5% (see benchmarks/).
QUANTILE = 0.95
# Of the vectors' scores a little more in a small vault: fewer of the foreign prompts come near a lesson
# of it, and the quantile falls among harmless ones. On 30 random halves of the evaluation set (935
# lessons) false injections go from 4.1 to 3.4%, on 40 tenths (187 lessons) from 4.8 to 2.9%.
MEASURED_ON = 1870  # lessons: from there on it is QUANTILE
SMALL_VAULT = 4.7  # times 1 / lessons is what the share rises by
SMALLEST_VAULT = 0.973  # the share in the smallest
# Few lessons say little about what is foreign to them, hence the lowest floor of the vectors. In 60
# vaults of a lesson 1.8% of the prompts of developers that it does not answer get it, not 9.6, and 87%
# of the others, not 100; in 30 of three 6.2%, not 12.7, and 89%, not 92. From ten lessons on the fitted
# floor is higher. With .36 it is 0.8 and 78%, and 2.8 and 81%: too few of the right ones.
LOWEST = 0.30
# A wrong skill costs more than a wrong lesson: an agent does what it says. On 120 prompts for 40
# skills (40 of them written for other work) this keeps 32 of the 60 right ones, none of them second
# to a wrong one, and lets through none of 35 requests and chatter that no skill is for; 7 of 25
# that are about a skill's subject and ask for other work. Few skills say little about what is
# foreign to them, hence their lowest.
SKILLS_QUANTILE, SKILLS_LOWEST = 0.98, 0.4
RARE_WORDS = 3  # of one lesson alone, or their weight in words of more: few lessons have no less
REFIT_SHARE = 0.1  # of the lessons changed in number since the fit

_FILE = "floor.json"


@dataclass(frozen=True, slots=True)
class Floor:
    """The floors of one index: with vectors, and for full text alone; and what they were fitted to."""

    vectors: float
    full_text: float
    lessons: int
    prompts: int
    skills: float = SKILLS_LOWEST
    skills_full_text: float = 0.0
    skill_files: int = 0


def in_force(vault: Vault, *, text_only: bool = False) -> float | None:
    """Return the floor of the vault's index: the one its settings name, else the fitted one.

    None if none was fitted yet: hooks are silent until then, or go by `before_fit`. A fitted floor may
    be of fewer lessons than there are by now, so its lowest is looked up here.
    """
    if vault.config.floor is not None and not text_only:
        return vault.config.floor
    fitted = load(vault, _FILE, Floor)
    if fitted is None:
        return None
    if text_only:
        return max(before_fit(vault.open_index().lessons), fitted.full_text)
    return max(LOWEST, fitted.vectors)


def lessons_above(vault: Vault, asked: Query) -> tuple[query.Results, float]:
    """Search the lessons above the floor: that of the vectors or, where they fail, of full text.

    Full text answers also while no floor of the vectors is fitted yet: there is no window of silence.
    """
    least = None if asked.text_only else in_force(vault)
    if least is not None:
        results = query.run(vault, replace(asked, floor=least))
        if not results.text_only:
            return results, least
    fitted = in_force(vault, text_only=True)
    least = before_fit(vault.open_index().lessons) if fitted is None else fitted
    return query.run(vault, replace(asked, floor=least, text_only=True)), least


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
    if is_own or query.LESSONS not in asked.kinds or not above.opened(vault):
        return results

    def search(_: above.Above, other: Vault) -> above.Answer:
        reaching = lessons_above(other, asked)[0]
        return above.Answer(keep(other, reaching.hits), reaching.silenced)

    skills = [hit for hit in results.hits if hit.kind != query.LESSONS]
    own = [hit for hit in results.hits if hit.kind == query.LESSONS]
    every = above.joined(vault, above.Answer(own, results.silenced), search)
    every.sort(key=lambda hit: -(sum(hit.weighted) or scoring.rank(hit)))
    return replace(results, hits=[*every, *skills])


def skills_above(vault: Vault, asked: Query) -> query.Results:
    """Search the skills above their floor, as `lessons_above`; return none until it is fitted."""
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
    fitted = load(vault, _FILE, Floor)
    if fitted is None or fitted.skill_files == 0:
        return None
    return fitted.skills_full_text if text_only else fitted.skills


def is_stale(vault: Vault) -> bool:
    """Whether the index changed so much that a floor should be fitted again."""
    fitted = load(vault, _FILE, Floor)
    if fitted is None or has_outgrown(vault, fitted.lessons):
        return True
    return len(vault.open_index().known_skills) != fitted.skill_files


def fit(vault: Vault, progress: Progress = lambda _done, _all: None) -> Floor:
    """Fit the floors to the index as it is, and keep them beside it. Raises WriteError.

    250 prompts are searched: 0.4 s of a processor on 40 lessons, 1.5 s on 1,870. If only the skills are
    others than before, only their floor is fitted.
    """
    opened = vault.open_index()

    def of_lessons(prompt: str) -> tuple[float, float]:
        vector, _ = query.query_vector(vault, opened, prompt)
        return scoring.most_evidence(opened.store, prompt, vector)

    def of_skills(prompt: str) -> tuple[float, float]:
        best = query.skills(vault, Query(prompt, k=1))
        alone = best if best.text_only else query.skills(vault, Query(prompt, k=1, text_only=True))
        return _highest(best), _highest(alone)

    prompts = [prompt for prompt in foreign_prompts() if not chatter.why_skipped(prompt)]
    fitted = load(vault, _FILE, Floor)
    skills_changed = fitted is not None and len(opened.known_skills) != fitted.skill_files
    if fitted is None or has_outgrown(vault, fitted.lessons) or not skills_changed:
        opened.store.load()
        scores, texts = _best_scores(vault, prompts, of_lessons, progress)
        fitted = Floor(
            vectors=quantile(scores, share_of(opened.lessons)),
            full_text=quantile(texts, QUANTILE),
            lessons=opened.lessons,
            prompts=len(prompts),
        )
    if opened.known_skills:
        opened.skills.load(rows=True)
        scores, texts = _best_scores(vault, prompts, of_skills, progress)
        fitted = replace(
            fitted,
            skills=max(SKILLS_LOWEST, quantile(scores, SKILLS_QUANTILE)),
            skills_full_text=quantile(texts, SKILLS_QUANTILE),
        )
    fitted = replace(fitted, skill_files=len(opened.known_skills))
    save(vault, _FILE, fitted)
    return fitted


def _best_scores(
    vault: Vault,
    prompts: Sequence[str],
    most_evidence: Callable[[str], tuple[float, float]],
    progress: Progress,
) -> tuple[list[float], list[float]]:
    """Return the best score of anything for each prompt: with vectors, and of full text alone."""
    scores: list[float] = []
    texts: list[float] = []
    vectors = query.kept_vectors(vault, prompts)
    for number, prompt in enumerate(prompts, start=1):
        if vault.embedder is not None and prompt in vectors:
            vault.query_vectors = {(vault.embedder.name, prompt): vectors[prompt]}
        score, text = most_evidence(prompt)
        scores.append(score)
        texts.append(text)
        progress(number, len(prompts))
    return scores, texts


def _highest(results: query.Results) -> float:
    every = [*results.hits, *(hit for hit, _ in results.dropped)]
    return max([hit.evidence for hit in every], default=0.0)


def foreign_prompts() -> list[str]:
    """List the prompts that no lesson answers: acknowledgements, chit-chat, other people's code..."""
    lines = (Path(__file__).parent / "foreign_prompts.txt").read_text("utf-8").splitlines()
    return [line for line in lines if line and not line.startswith("# ")]


def quantile(values: Sequence[float], share: float) -> float:
    """Return the value that `share` of the values do not exceed, interpolated; 0.0 for none."""
    import numpy as np

    return float(np.quantile(values, share)) if values else 0.0


def share_of(lessons: int) -> float:
    """Return the share of the foreign prompts that a vault of so many lessons is silent for."""
    rise = SMALL_VAULT * (1 / max(1, lessons) - 1 / MEASURED_ON)
    return min(SMALLEST_VAULT, max(QUANTILE, QUANTILE + rise))


# What was fitted to an index is a file beside it, read once while it stays.

T = TypeVar("T")
_loaded: dict[Path, tuple[object, Any]] = {}


def load(vault: Vault, name: str, kind: Callable[..., T]) -> T | None:
    """Return what was fitted to the index and saved under a name; None if nothing was yet."""
    try:
        file = vault.open_index().store.index / name
        stamp = files.stamp(file)
        known = _loaded.get(file)
        if known is None or known[0] != stamp:
            known = _loaded[file] = stamp, kind(**json.loads(ownership.read_text(file)))
        fitted: T = known[1]
        return fitted
    except (OSError, ValueError, TypeError, VaultError):
        return None


def save(vault: Vault, name: str, fitted: Any) -> None:
    """Save a dataclass that was fitted to the index. Raises WriteError."""
    index = vault.open_index().store.index
    data = json.dumps(asdict(fitted), ensure_ascii=False).encode()
    files.replace_file(index / name, data)


def has_outgrown(vault: Vault, lessons: int) -> bool:
    """Whether a vault has so many more or fewer lessons that something is to be fitted again."""
    return abs(vault.open_index().lessons - lessons) > REFIT_SHARE * max(1, lessons)
