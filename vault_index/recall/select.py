"""Choose what to put into an agent's context: for a prompt, or at the start of a session.

The one path that the hook and `lessons recall` share: search, floor, budget.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence, Set
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from vault_index import features, files, git
from vault_index.errors import VaultError
from vault_index.hotpath import chatter
from vault_index.lesson import file, passages
from vault_index.recall import block, words
from vault_index.search import above, floor, scoring, unindexed
from vault_index.search.hit import Hit
from vault_index.search.query import Query, Results
from vault_index.store import filters, schema

if TYPE_CHECKING:
    from vault_index.config import Config
    from vault_index.vault import Vault

# A hit that scores under three quarters of the first is noise beside it: on the evaluation set the
# cut loses no right lesson and takes out every tenth of those injected.
COMPANION_SHARE = 0.75
NOTHING = "nothing above the floor"
_LEFT_OUT = "it was called wrong, or its code is gone: see `lessons check --stale`"
_WITHHELD = " is left out: "
# In a long prompt, a paste above all, the request is the first line or the last. Of 80 labelled prompts
# 53% get the right lesson; before or after 25 to 400 words of others 49% by the ends, else 12 to 0%.
LONG_PROMPT = 32  # words
END = 24  # words of an end
_MAIN = ("main", "master", "develop", "trunk")  # names of branches that say nothing
RULE = "project_rule"  # the type of lessons that a session begins with
MAX_RULES = 20  # more are no rules that anybody keeps in mind


@dataclass(frozen=True, slots=True)
class Injection:
    """A block to inject. `text` is "" for silence, and `silent` then says why."""

    text: str
    hits: Sequence[Hit] = ()  # lessons
    skills: Sequence[Hit] = ()
    floor: float | None = None
    silent: str = ""
    near: Hit | None = None  # of a silence: the lesson that came nearest to the floor
    about: str = ""  # the record knows it by this, else by its prompt: a signature, a path
    said: str = ""  # by which people know it, without secrets: a line of output, a path
    others: Sequence[Hit] = ()  # above the floor, and told before or silent for a taught prompt


def without_withheld(silent: str) -> str:
    """Return the reason of a silence so that it names no withheld lesson."""
    return NOTHING if _WITHHELD in silent else silent


def for_prompt(
    vault: Vault,
    prompt: str,
    *,
    project: Path | None = None,
    text_only: bool = False,
    given: Collection[str] = (),
) -> Injection:
    """Return what a prompt should get: up to three lessons and a skill above their floors.

    `project` is the folder that the prompt was typed in, which may have skills. `text_only` saves the
    time to embed the prompt. `given` are the ids that the session received.
    """
    if reason := chatter.why_skipped(prompt):
        return Injection("", silent=reason)
    config = vault.config
    queries, k = [prompt, *_ends(prompt)], config.prompt_lessons
    injection = _above_floor(vault, queries, k, COMPANION_SHARE, text_only, given)
    suggested = [
        hit
        for suggest in features.adding("at_prompt")
        for hit in suggest(vault, prompt, project, given, text_only)
    ]
    return _rendered(injection, suggested, config.prompt_tokens)


def _ends(prompt: str) -> list[str]:
    """Return the first words of a long prompt and its last, within a line; none of a short one."""
    if len(prompt.split()) <= LONG_PROMPT:
        return []
    lines = [line.split() for line in prompt.splitlines() if line.strip()]
    ends = " ".join(lines[0][:END]), " ".join(lines[-1][-END:])
    return [end for end in dict.fromkeys(ends) if not chatter.why_skipped(end)]


def from_files(vault: Vault, prompt: str, given: Collection[str] = ()) -> Injection:
    """Return what a prompt should get where there is no index: from the files, by their words."""
    if reason := chatter.why_skipped(prompt):
        return Injection("", silent=reason)
    config = vault.config
    every, files = unindexed.find(vault, prompt, config.prompt_lessons + len(given))
    least = floor.before_fit(files)
    trusted = [hit for hit in only_trusted(vault, every) if hit.is_above(least)]
    hits = words.deliverable(vault, trusted)
    fresh = _fresh(hits, 0.0, given)[: config.prompt_lessons]
    silent = "" if fresh else "nothing new" if hits else NOTHING
    injection = Injection("", fresh, floor=least, silent=silent, near=next(iter(every), None))
    return _rendered(injection, [], config.prompt_tokens)


def for_session(
    vault: Vault,
    project: Path,
    session: str = "",
    *,
    text_only: bool = False,
    given: Collection[str] = (),
) -> Injection:
    """Return what the start of a session in a project should get, by what the project is doing.

    Before the lessons comes what was done here last, older than this session.

    Rules of the project come first, whatever it is doing, as an agent needs them before the work
    begins. Each of the last commits' subjects is a query, and so are the branch and the changed files
    with the project's name: a subject found among ten others in one query would be lost.
    """
    activity = git.activity(project)
    branch = [] if activity.branch in _MAIN else re.findall(r"[^\s/_-]+", activity.branch)
    changed = (path.rstrip("/").rpartition("/")[2] for path in activity.changed)
    queries = dict.fromkeys([" ".join([activity.name, *branch, *changed]), *activity.subjects])
    asked = [text for text in queries if not chatter.why_skipped(text)]
    config = vault.config
    rules = _rules(vault, given)
    room = max(0, config.session_lessons - len(rules))
    had = [*given, *(hit.lesson_id for hit in rules)]
    injection = Injection("")
    if room:
        injection = _above_floor(vault, asked, room, 0.0, text_only, had)
    if rules:
        injection = replace(injection, hits=[*rules, *injection.hits], silent="")
    return _rendered(injection, [], config.token_budget, _done(config, project, session))


def after_compaction(vault: Vault, already: Collection[str]) -> Injection:
    """Return what a session gets again after a compaction: the rules, and the last that it was given.

    `already` are the ids that it received, the latest last.
    """
    config = vault.config
    rules = _rules(vault, ())
    again = [id for id in already if id not in {hit.lesson_id for hit in rules}]
    again = again[-config.session_lessons :] if config.session_lessons else []
    own = above.Answer(of_ids(vault, again))
    hits = above.joined(
        vault, own, lambda place, other: above.Answer(of_ids(other, place.own(again)))
    )
    hits.sort(key=lambda hit: again.index(hit.lesson_id), reverse=True)
    if not rules and not hits:
        return Injection("", silent="nothing new")
    return _rendered(Injection("", [*rules, *hits]), [], config.token_budget)


def of_ids(vault: Vault, ids: Sequence[str]) -> list[Hit]:
    """Return the lessons of these ids that an agent may get."""
    return _for_agents(vault, filters.wholes_of(ids)) if ids else []


def _for_agents(vault: Vault, *conditions: str) -> list[Hit]:
    where = filters.all_of(filters.FOR_AGENTS, *conditions)
    rows = vault.open_index().store.rows(schema.LESSONS.shown, where)
    return words.deliverable(vault, only_trusted(vault, map(Hit.of_lesson, rows)))


def _rules(vault: Vault, already: Collection[str]) -> list[Hit]:
    """Return the rules that an agent may get and has not: those of the project, then from above."""
    own = above.Answer(_own_rules(vault))
    every = above.joined(vault, own, lambda _, other: above.Answer(_own_rules(other)))
    return [hit for hit in every if hit.lesson_id not in already][:MAX_RULES]


def _own_rules(vault: Vault) -> list[Hit]:
    """Return the rules of a vault: the surest first, then the latest."""

    def order(hit: Hit) -> tuple[float, float, str]:
        when = hit.updated_at or hit.created_at
        changed = when.timestamp() if when else float("inf")  # not committed yet
        return -hit.confidence, -changed, hit.lesson_id

    rules = _for_agents(vault, filters.WHOLE, *filters.Filter(type=RULE).where())
    return sorted(rules, key=order)


def without_vault(config: Config, project: Path, session: str) -> Injection:
    """Return what the start of a session gets in a project without a vault: what was done here last."""
    done = _done(config, project, session)
    if not done:
        return Injection("", silent="nothing in the journal")
    return Injection(block.injection([], config.token_budget, journal=done))


def _done(config: Config, project: Path, session: str) -> str:
    """Return what features say at the start of a session: what was done in the project before."""
    said = (say(config, project, session) for say in features.adding("at_start"))
    return "\n".join(filter(None, said))


def _rendered(
    injection: Injection, suggested: Sequence[Hit], max_tokens: int, done: str = ""
) -> Injection:
    """Render the hits, the suggested skills and what was `done` as one block."""
    hits = injection.hits
    if not hits and not suggested and not done:
        return injection
    text = block.injection(hits, max_tokens, suggested, done)
    return Injection(text, hits, suggested, injection.floor)


def _above_floor(
    vault: Vault,
    queries: Sequence[str],
    k: int,
    share: float,
    text_only: bool,
    given: Collection[str],
) -> Injection:
    """Search for queries: the best `k` lessons of a vault and of those above.

    Each is past the floor and the trust of its own vault, and scores a `share` of the first.
    """
    own = _own_above_floor(vault, queries, k, share, text_only, given)
    if not above.opened(vault):
        return own

    def search(place: above.Above, other: Vault) -> above.Answer:
        said = _own_above_floor(other, queries, k, share, text_only, place.own(given))
        return above.Answer(said.hits, said.others)

    every = above.joined(vault, above.Answer(own.hits, own.others), search)
    fresh = _fresh(every, share, given)  # the nearer first where that is equal
    return replace(own, hits=fresh[:k], silent="") if fresh else own


def _own_above_floor(
    vault: Vault,
    queries: Sequence[str],
    k: int,
    share: float,
    text_only: bool,
    given: Collection[str],
) -> Injection:
    best: dict[str, Hit] = {}
    left_out: dict[str, str] = {}  # path of a file -> why
    least: float | None = None
    near: list[Hit] = []
    silenced: list[Hit] = []
    wanted = k + len(given) + (EXTRA_HITS if is_restricted(vault) else 0)
    for text in queries:
        results, least = _search(vault, text, wanted, text_only)
        left_out |= {hit.path: hit.withheld for hit in results.hits if hit.withheld}
        near += [hit for hit, _ in results.dropped[:1] if not results.hits]
        silenced += results.silenced
        usable = [hit for hit in results.hits if not hit.withheld][:wanted]
        for hit in only_trusted(vault, usable):
            before = best.get(hit.lesson_id)
            if hit.reason >= least and (before is None or hit.score > before.score):
                best[hit.lesson_id] = hit
    for hit in silenced:  # whatever another of the queries says
        best.pop(hit.lesson_id, None)
    best = _without_superseded(vault, best)
    fresh = _fresh([best[id] for id in sorted(best)], share, given)
    hits = words.deliverable(vault, fresh[: 2 * k])[:k]
    others = [*(hit for hit in best.values() if hit not in hits), *silenced]
    if hits:
        return Injection("", hits, floor=least, others=others)
    silent = _LEFT_OUT if fresh else "nothing new" if best else NOTHING
    for path, why in () if best else sorted(left_out.items())[:1]:
        silent = f"{path}{_WITHHELD}{why}"
    nearest = max([*best.values()] or near, key=lambda hit: hit.score, default=None)
    return Injection("", floor=least, silent=silent, near=nearest, others=others)


def _fresh(hits: Collection[Hit], share: float, given: Collection[str]) -> list[Hit]:
    """Return the hits that are new to a session and no noise beside the first, the best first."""
    least = share * max((hit.score for hit in hits if not hit.taught), default=0.0)
    fresh = [hit for hit in hits if hit.score >= least and hit.lesson_id not in given]
    return sorted(fresh, key=lambda hit: -scoring.rank(hit))


def _search(vault: Vault, text: str, k: int, text_only: bool) -> tuple[Results, float]:
    """Search past withheld files for `k` hits, and return the floor as well.

    An error in a file costs a second search only where the file was found.
    """
    wanted = k
    while True:
        results, least = floor.lessons_above(vault, Query(text, wanted, text_only=text_only))
        is_enough = sum(not hit.withheld for hit in results.hits) >= k
        if is_enough or len(results.hits) < wanted:
            return results, least
        wanted *= 4


def _without_superseded(vault: Vault, hits: dict[str, Hit]) -> dict[str, Hit]:
    """Return the hits, by id, without those that another one of them says to supersede."""
    if len(hits) < 2:
        return hits
    gone: set[str] = set()
    for hit in hits.values():
        try:
            data = files.read_file(vault.root / hit.path)
        except VaultError:  # deleted since it was indexed
            continue
        if b"- supersedes: " in data:
            links = passages.parts_of(data.decode("utf-8", "replace")).related
            gone |= {name.casefold() for kind, name in links if kind == passages.SUPERSEDES}
    return {id: hit for id, hit in hits.items() if not gone & {id.casefold(), hit.title.casefold()}}


# Which lessons hooks may inject, by the user's own settings: never by the vault's.
#
# Everything is there for the command line; this is about what goes into an agent's context unasked.

EXTRA_HITS = 16  # hits that are looked at beyond those wanted, as some may not be trusted


def is_restricted(vault: Vault) -> bool:
    """Whether the user trusts less than everything."""
    config = vault.config
    return bool(config.trust != "all" or config.trusted_authors)


def only_trusted(vault: Vault, hits: Iterable[Hit]) -> list[Hit]:
    """Keep the hits that may be injected.

    With `committed-only` those whose text was read from a file as HEAD has it. With authors those
    whose text was read from the file as one of them wrote and committed it last; outside a
    repository nobody did. The disk is not asked: what is injected is the row.
    """

    def is_shared(hit: Hit) -> bool:  # skills of the user and of a project are the agent's own
        return hit.kind == "lessons" or hit.type == "vault"

    every = list(hits)
    trusted = trusted_files(vault, {(hit.path, hit.file_hash) for hit in filter(is_shared, every)})
    return [hit for hit in every if not is_shared(hit) or (hit.path, hit.file_hash) in trusted]


def trusted_files(vault: Vault, files: Set[tuple[str, str]]) -> Set[tuple[str, str]]:
    """Return the files, as (path, hash of what was read), whose text may go to an agent."""
    if not is_restricted(vault) or not files:
        return files
    paths = sorted({path for path, _ in files})
    if vault.config.trusted_authors:
        places = {}
        # the commit that a text is from, if we trust all that renamed the file since
        for path in paths:
            vouchers = git.vouchers(vault.root, path)
            if vouchers and all(_is_trusted(vault, voucher) for voucher in vouchers):
                places[path] = vouchers[-1].commit, vouchers[-1].path
        root = git.top(vault.root) if places else vault.root
    else:
        places, root = {path: ("HEAD", path) for path in paths}, vault.root
    hashes = {
        path: {file.hash_of_file(data) for data in (blob, blob.replace(b"\n", b"\r\n"))}
        for path, blob in git.contents(root, places).items()
    }  # git may have checked a file out with other line ends
    return {(path, hash) for path, hash in files if hash in hashes.get(path, ())}


def _is_trusted(vault: Vault, voucher: git.Voucher) -> bool:
    trusted = {author.casefold() for author in vault.config.trusted_authors}
    people = (voucher.author, voucher.committer)
    return all(trusted & {name.casefold(), email.casefold()} for name, email in people)
