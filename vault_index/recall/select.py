"""Choose what to put into an agent's context: for a prompt, or at the start of a session.

The one path that the hook and `lessons recall` share: search, floor, budget.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from vault_index import features, git
from vault_index.hotpath import chatter
from vault_index.index import words
from vault_index.lesson import passages
from vault_index.recall import allowed, block, silence
from vault_index.retrieval import above, floor, query, unindexed
from vault_index.retrieval.floor import COMPANION_SHARE
from vault_index.retrieval.hit import ContextBlock, Hit, Query
from vault_index.store import filters
from vault_index.text import excerpt
from vault_index.text.words import terms_of

if TYPE_CHECKING:
    from vault_index.config import Config
    from vault_index.retrieval.query import Results
    from vault_index.vault import Vault

MAX_LINES = 3  # at a prompt: three titles are read at a glance
# In a long prompt, a paste above all, the request is the first line or the last. Of 80 labelled prompts
# 53% get the right lesson; before or after 25 to 400 words of others 49% by the ends, else 12 to 0%.
LONG_PROMPT = 32  # words
END = 24  # words of an end
_MAIN = ("main", "master", "develop", "trunk")  # names of branches that say nothing
EXTRA_HITS = 16  # hits that are looked at beyond those wanted, as some may not be trusted
RARE = 0.5  # of what a word says that one lesson has: a prompt's word that says so much is rare
RULE = "project_rule"  # the type of lessons that a session begins with


def for_prompt(
    vault: Vault,
    prompt: str,
    *,
    project: Path | None = None,
    text_only: bool = False,
    given: Collection[str] = (),
    pointed: Collection[str] = (),
    leads_on: bool = True,
) -> ContextBlock:
    """Return the injection for a prompt: up to three lessons or their lines, and a skill above its floor.

    `project` is the folder that the prompt was typed in, which may have skills. `text_only` saves the
    time to embed the prompt. `given` are the ids of lessons that the session received whole, `pointed`
    those it received as a line.
    """
    if reason := chatter.why_skipped(prompt):
        return ContextBlock("", silent=reason)
    config = vault.config
    queries, k = [prompt, *_ends(prompt)], config.prompt_lessons
    wanted = _Budget(k, MAX_LINES * config.pointers, COMPANION_SHARE, text_only, given, pointed)
    injection = _above_floor(vault, queries, wanted)
    asked_prompt = features.AskedPrompt(prompt, project, given, text_only)
    suggested = [
        hit for feature in features.FEATURES for hit in feature.at_prompt(vault, asked_prompt)
    ]
    leads_on = leads_on and config.pointers
    return _rendered(injection, suggested, config.prompt_tokens, leads_on=leads_on, question=prompt)


def _ends(prompt: str) -> list[str]:
    """Return the first and the last words of a long prompt, each within a line; [] for a short one."""
    if len(prompt.split()) <= LONG_PROMPT:
        return []
    lines = [line.split() for line in prompt.splitlines() if line.strip()]
    ends = " ".join(lines[0][:END]), " ".join(lines[-1][-END:])
    return [end for end in dict.fromkeys(ends) if not chatter.why_skipped(end)]


def from_files(vault: Vault, prompt: str, given: Collection[str] = ()) -> ContextBlock:
    """Return the injection for a prompt from the files, by their words, while there is no index."""
    if reason := chatter.why_skipped(prompt):
        return ContextBlock("", silent=reason)
    config = vault.config
    room = config.prompt_lessons + len(given)
    found = unindexed.find(vault, prompt, room, lambda files: floor.by_words(files).whole)
    hits = allowed.only_right(vault, allowed.only_trusted(vault, found.hits))
    wanted = _Budget(config.prompt_lessons, given=given)
    fresh = _first(_fresh(hits, wanted), wanted)
    silent = "" if fresh else silence.ALREADY_GIVEN if hits else silence.NOTHING
    injection = ContextBlock("", fresh, floor=found.floor, silent=silent, near=found.near)
    return _rendered(injection, [], config.prompt_tokens, leads_on=config.pointers, question=prompt)


def for_session(
    vault: Vault,
    project: Path,
    session: str = "",
    *,
    text_only: bool = False,
    given: Collection[str] = (),
    line: str = "",
) -> ContextBlock:
    """Return the injection for the start of a session, by the project's work.

    First comes what was done here last, then the project's rules, then lessons for the work: each subject
    of the last commits is a query, and so are the branch and the changed files with the project's name.
    Changes of lessons do not count as work. `line` is the signpost.
    """
    activity = git.activity(project, vault.lessons_dir)
    branch = [] if activity.branch in _MAIN else re.findall(r"[^\s/_-]+", activity.branch)
    changed = (path.rstrip("/").rpartition("/")[2] for path in activity.changed)
    queries = dict.fromkeys([" ".join([activity.name, *branch, *changed]), *activity.subjects])
    wanted_texts = [text for text in queries if not chatter.why_skipped(text)]
    config = vault.config
    rules = _rules(vault, given)
    room = config.session_lessons - len(rules)
    received = [*given, *(hit.lesson_id for hit in rules)]
    injection = ContextBlock("")
    if room:
        wanted = _Budget(room, text_only=text_only, given=received)
        injection = _above_floor(vault, wanted_texts, wanted)
    if rules:
        injection = replace(injection, hits=[*rules, *injection.hits], silent="")
    recap = _recap(config, project, session)
    return _rendered(injection, [], config.token_budget, recap, line)


def without_index(config: Config, project: Path, session: str, line: str) -> ContextBlock:
    """Return the injection for the start of a session while there is no index: all but the lessons."""
    recap = _recap(config, project, session)
    nothing = ContextBlock("", silent=silence.NOTHING)
    return _rendered(nothing, [], config.token_budget, recap, line)


def after_compaction(vault: Vault, already: Collection[str], line: str = "") -> ContextBlock:
    """Return the block for a compacted session: the rules and its latest lessons.

    `already` are the ids that it received, the latest last.
    """
    config = vault.config
    rules = _rules(vault, ())
    again = [id for id in already if id not in {hit.lesson_id for hit in rules}]
    room = config.session_lessons - len(rules)
    again = again[-room:] if room else []
    nearest = ContextBlock("", of_ids(vault, again))
    hits = above.joined(
        vault, nearest, lambda origin, other: ContextBlock("", of_ids(other, origin.own_ids(again)))
    )
    hits.sort(key=lambda hit: again.index(hit.lesson_id), reverse=True)
    hits = allowed.newest(vault, hits)
    silent = "" if rules or hits else silence.NOTHING
    found = ContextBlock("", [*rules, *hits], silent=silent)
    return _rendered(found, [], config.token_budget, line=line)


def of_ids(vault: Vault, ids: Sequence[str]) -> list[Hit]:
    """Return the lessons of these ids that an agent may get."""
    return allowed.lessons(vault, filters.wholes_of(ids)) if ids else []


def _rules(vault: Vault, already: Collection[str]) -> list[Hit]:
    nearest = ContextBlock("", _own_rules(vault))
    hits = above.joined(vault, nearest, lambda _, other: ContextBlock("", _own_rules(other)))
    fresh = [hit for hit in hits if hit.lesson_id not in already]
    return fresh[: vault.config.session_lessons]


def _own_rules(vault: Vault) -> list[Hit]:
    def order(hit: Hit) -> tuple[float, float, str]:
        when = hit.updated_at or hit.created_at
        changed = when.timestamp() if when else float("inf")  # not committed yet
        return -hit.confidence, -changed, hit.lesson_id

    rules = allowed.lessons(vault, filters.WHOLE, *filters.Filter(type=RULE).where())
    return allowed.newest(vault, sorted(rules, key=order))


def without_vault(config: Config, project: Path, session: str) -> str:
    """Return the block for a session's start without a vault: the last work here, or ""."""
    recap = _recap(config, project, session)
    return block.injection([], config.token_budget, journal=recap) if recap else ""


def _recap(config: Config, project: Path, session: str) -> str:
    texts = (feature.at_start(config, project, session) for feature in features.FEATURES)
    return "\n".join(filter(None, texts))


def _rendered(
    injection: ContextBlock,
    suggested: Sequence[Hit],
    max_tokens: int,
    recap: str = "",
    line: str = "",
    *,
    leads_on: bool = False,
    question: str = "",
) -> ContextBlock:
    """Render the signpost, the `recap`, the hits and the suggested skills as one block."""
    hits = injection.hits
    if not hits and not suggested and not recap:
        return replace(injection, text=block.with_signpost("", line))
    max_tokens -= -(-len(line) // block.CHARS_PER_TOKEN)
    text = block.injection(hits, max_tokens, suggested, recap, leads_on=leads_on, question=question)
    text = block.with_signpost(text, line)
    named = {hit.lesson_id: hit.lesson_id if hit.as_line else block.header(hit) for hit in hits}
    cut = {id: silence.NO_ROOM for id, name in named.items() if name not in text}
    left_out = {id: why for id, why in injection.left_out.items() if id not in named}
    come = [hit for hit in hits if hit.lesson_id not in cut]
    if not text:
        near = next(iter(hits), None)
        return ContextBlock(
            "", floor=injection.floor, silent=silence.NO_ROOM, near=near, left_out=left_out | cut
        )
    return ContextBlock(text, come, suggested, injection.floor, left_out=left_out | cut)


@dataclass(frozen=True, slots=True)
class _Budget:
    """A search for up to so many `lessons` whole and so many `lines` that are new to the session.

    Each scores a `share` of the first.
    """

    lessons: int
    lines: int = 0
    share: float = 0.0
    text_only: bool = False
    given: Collection[str] = ()
    pointed: Collection[str] = ()

    def shown(self, hits: Sequence[Hit]) -> list[Hit]:
        """Return hits, all of them as lines where no whole lesson is wanted."""
        return [hit if self.lessons else replace(hit, as_line=True) for hit in hits]

    def is_new(self, hit: Hit) -> bool:
        return hit.lesson_id not in self.given and not (
            hit.as_line and hit.lesson_id in self.pointed
        )


def _above_floor(vault: Vault, queries: Sequence[str], wanted: _Budget) -> ContextBlock:
    """Search the vault and the vaults above, each by its floor and trust, for queries."""
    nearest = _own_above_floor(vault, queries, wanted)

    def search(origin: above.Above, other: Vault) -> ContextBlock:
        given, pointed = origin.own_ids(wanted.given), origin.own_ids(wanted.pointed)
        return _own_above_floor(other, queries, replace(wanted, given=given, pointed=pointed))

    hits = above.joined(vault, nearest, search)
    fresh = _first(_fresh(hits, wanted), wanted)  # the nearer first where that is equal
    return replace(nearest, hits=fresh, silent="") if fresh else nearest


@dataclass(slots=True)
class _Gathered:
    """The hits of several queries, one after the other: see `add`."""

    best: dict[str, Hit] = field(default_factory=dict)  # those that may come, by id
    near: list[Hit] = field(default_factory=list)  # below the floor, or lines where none are wanted
    silenced: list[Hit] = field(default_factory=list)  # by a taught prompt
    least: float | None = None  # the floor of the last query
    nothing: str = silence.NOTHING  # why nothing was found
    kept_out: str = ""  # why the hits of a query do not come

    def add(self, vault: Vault, request: Query, budget: _Budget) -> None:
        """Search once more."""
        results, floors = floor.lessons_above(vault, request)
        self.least = floors.line if budget.lines else floors.whole
        self.near += [hit for hit, _ in results.dropped[:1] if not results.hits]
        self.near += [hit for hit in results.hits if hit.as_line and not budget.lines]
        self.silenced += results.silenced
        if not results.is_understood:
            self.nothing = silence.OTHER_LANGUAGE
        trusted = allowed.only_trusted(vault, budget.shown(results.hits))
        self.kept_out = self.kept_out or _why_kept_out(results, trusted, self.least)
        _keep_better(self.best, trusted, budget)

    def silence_taught(self) -> None:
        """Leave out what a taught prompt silences, whatever another of the queries says."""
        for hit in self.silenced:
            self.best.pop(hit.lesson_id, None)

    @property
    def ranked(self) -> list[Hit]:
        return sorted(self.best.values(), key=lambda hit: (-hit.rank, hit.lesson_id))


def _own_above_floor(vault: Vault, queries: Sequence[str], wanted: _Budget) -> ContextBlock:
    room = max(wanted.lessons, wanted.lines) + len(wanted.given) + len(wanted.pointed)
    room += EXTRA_HITS if allowed.is_restricted(vault) else 0
    request = Query("", room, text_only=wanted.text_only, for_agent=True)
    query.look_ahead(vault, queries, text_only=wanted.text_only)
    found = _Gathered()
    for text in queries:
        found.add(vault, replace(request, text=text), wanted)
    found.silence_taught()
    newest = allowed.newest(vault, found.ranked)
    fresh = _fresh(newest, wanted)
    some = 2 * max(wanted.lessons, wanted.lines)
    may_come = allowed.only_right(vault, fresh[:some])
    hits = [shown(vault, hit, queries) for hit in _first(may_come, wanted)]
    others = [*(hit for hit in found.best.values() if hit not in hits), *found.silenced]
    if not hits:
        first = replace(request, text=next(iter(queries), ""), for_agent=False)
        silent = _why_silent(vault, found, fresh, first)
        nearest = max(
            [*found.best.values()] or found.near, key=lambda hit: hit.reason, default=None
        )
        return ContextBlock("", floor=found.least, silent=silent, near=nearest, others=others)
    steps = {
        "a newer lesson says the same": newest,
        silence.ALREADY_GIVEN: fresh,
        silence.LEFT_OUT: [*may_come, *fresh[some:]],
        f"a prompt gets at most {wanted.lessons} whole and {wanted.lines} as a line": hits,
    }
    left_out = _left_out(found.best, found.silenced, steps)
    return ContextBlock("", hits, floor=found.least, others=others, left_out=left_out)


def _why_silent(vault: Vault, found: _Gathered, fresh: Sequence[Hit], first: Query) -> str:
    """Return the reason for which no lesson comes; `first` is the search for the first query."""
    if fresh:
        return silence.LEFT_OUT
    if found.best:
        return silence.ALREADY_GIVEN
    if vault.open_index().withheld and (withheld := _withheld_above_floor(vault, first)):
        return silence.withheld(withheld.path, withheld.withheld)
    return found.kept_out or found.nothing


def shown(vault: Vault, hit: Hit, queries: Sequence[str]) -> Hit:
    """Return a hit of a long lesson with the part of it that answers.

    It is the piece with the rare words of the prompt, those of the lesson's names aside, and before it
    the section that says what to do.
    """
    if not hit.is_long:
        return hit
    whole = next((row["text"] for row in vault.open_index().store.shown_of([hit.lesson_id])), "")
    vault_words, names = words.of(vault), {*terms_of(hit.names)}
    least = RARE * vault_words.rarity("")
    prompt_words = {word for text in queries for word in terms_of(text)} - names
    rare = {
        word: weight
        for word in sorted(prompt_words)
        if (weight := vault_words.weight(word)) >= least
    }
    nearest = hit.text if hit.position >= 0 else ""
    pieces = passages.cut(whole)[1:]
    return replace(hit, text=excerpt.of_long(whole, pieces, nearest, rare)) if pieces else hit


def _keep_better(best: dict[str, Hit], hits: Iterable[Hit], wanted: _Budget) -> None:
    """Keep the best hit of each lesson; whole comes before a line."""
    for hit in hits:
        before = best.get(hit.lesson_id)
        order = hit.as_line, -hit.score
        is_better = before is None or order < (before.as_line, -before.score)
        if is_better and (wanted.lines or not hit.as_line):
            best[hit.lesson_id] = hit


def _withheld_above_floor(vault: Vault, request: Query) -> Hit | None:
    """Return the lesson that would come if hooks did not leave it out."""
    # the few that are left out tell at once that none would; beside the others it needs its lead, too
    for some in (replace(request, filters=filters.Filter(withheld=True)), request):
        first = next(iter(floor.lessons_above(vault, some)[0].hits), None)
        if first is None or not first.withheld:
            return None
    return first


def _why_kept_out(results: Results, trusted: Sequence[Hit], least: float) -> str:
    """Return the rule for which nothing comes of a search although a lesson reaches the floor, or ""."""
    if any(hit not in trusted and hit.is_above(least) for hit in results.hits):
        return silence.UNTRUSTED
    if results.hits:
        return ""
    if any(hit.is_above(least) for hit, why in results.dropped if hit not in results.silenced):
        return silence.SHORT
    return silence.TAUGHT_OUT if results.silenced else ""


def _left_out(
    found: Iterable[str], silenced: Iterable[Hit], steps: Mapping[str, Sequence[Hit]]
) -> dict[str, str]:
    """Return the reasons for which found lessons do not come; `steps` are the hits that each left."""
    left_out = {hit.lesson_id: silence.TAUGHT_OUT for hit in silenced}
    for why, hits in steps.items():
        ids = {hit.lesson_id for hit in hits}
        left_out |= {id: why for id in found if id not in ids and id not in left_out}
    return left_out


def _fresh(hits: Collection[Hit], wanted: _Budget) -> list[Hit]:
    """Return the hits that are new to a session and no noise beside the first, the best first."""
    least = wanted.share * max((hit.score for hit in hits if not hit.taught), default=0.0)
    shown = [
        hit if hit.score >= least or hit.taught else replace(hit, as_line=True) for hit in hits
    ]
    return sorted(filter(wanted.is_new, shown), key=lambda hit: -hit.rank)


def _first(hits: Sequence[Hit], wanted: _Budget) -> list[Hit]:
    first = hits[: max(wanted.lessons, wanted.lines)]
    whole = [hit for hit in first if not hit.as_line][: wanted.lessons]
    return [*whole, *[hit for hit in first if hit.as_line][: wanted.lines]]


def skills(
    vault: Vault, prompt: str, project: Path | None, given: Collection[str], text_only: bool
) -> list[Hit]:
    """Return trusted skills that a prompt asks for and that the session has not received."""
    k = vault.config.prompt_skills
    if not k:
        return []
    folder, wanted = str(project or ""), k + len(given)
    request = Query(prompt, wanted, project=folder, text_only=text_only, for_agent=True)
    hits = floor.skills_above(vault, request).hits
    trusted = allowed.only_trusted(vault, [hit for hit in hits if not hit.withheld])
    return [hit for hit in trusted if hit.lesson_id not in given][:k]
