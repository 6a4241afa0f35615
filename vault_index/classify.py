"""A lesson without categories -> proposals, with reasons. No language model.

First phrases that name a category. Then the lesson's vector: near the centroid of a category's
lessons, near single lessons of it, and the category's name in the text; the share of that evidence
becomes a probability by how often such a share is right in this vault (certainty.py). What nobody is
sure of goes to a category above, or stays as it is.

Only lessons whose author or folder says what they are about are learned from, never a proposal.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from vault_index import categories as tree
from vault_index import certainty, files, frontmatter_edit, rows
from vault_index.categories import CLASSIFIER, DEFAULT_TAXONOMY, UNCATEGORIZED, CategoryPath
from vault_index.errors import ChangedError, VaultError, WriteError
from vault_index.lesson import hash_of_file

if TYPE_CHECKING:
    import numpy as np

    from vault_index.store import Store
    from vault_index.vault import Vault

MOST = 3  # categories of a proposal
LEARNED_FROM = 3  # lessons that a category needs before one is said to be like them
LEAST_CATEGORIES = (
    3  # of such, before likeness says anything: of one or two, one is always the likest
)
YOUNG_VAULT = 20  # filed lessons: below that the default phrases hold for categories not used yet

# Found on the evaluation set by five-fold cross-validation, see benchmarks/.
NEIGHBOURS = 10
NAME_IN_TITLE, NAME_IN_TEXT = 0.2, 0.1
TEMPERATURE = 0.06  # of the evidence; how sure its share makes, certainty.py says
SURE = 0.5  # for the first category
LEAST_LIKE = 0.35  # cosine with the lessons of the category: others may be even less like it
BESIDE = 0.3  # for the second and third

DEFAULT_KEYWORDS: Mapping[str, CategoryPath] = {
    "ci pipeline": "devops/ci-cd",
    "github actions": "devops/ci-cd",
    "gitlab ci": "devops/ci-cd",
    "jenkins": "devops/ci-cd",
    "docker compose": "devops/docker",
    "docker image": "devops/docker",
    "dockerfile": "devops/docker",
    "helm": "devops/deployment",
    "kubernetes": "devops/deployment",
    "terraform": "devops/deployment",
    "alerting": "devops/monitoring",
    "grafana": "devops/monitoring",
    "prometheus": "devops/monitoring",
    "claude code": "workflow/claude-code",
    "claude.md": "workflow/claude-code",
    "code review": "workflow/code-review",
    "pull request": "workflow/code-review",
    "debugger": "workflow/debugging",
    "stack trace": "workflow/debugging",
    "css": "development/frontend",
    "react component": "development/frontend",
    "rest api": "development/backend",
    "sql": "development/backend",
    "eslint": "development/tooling",
    "linter": "development/tooling",
    "user story": "product-management",
    "roadmap": "product-management",
    "naming convention": "conventions",
    "style guide": "conventions",
}

_WORD = re.compile(r"[^\W_][\w+#]*")
_TARGETS = f"filed_by IN ('{CLASSIFIER}', '{rows.NOBODY}')"
_LEARNED = f"filed_by IN ('{rows.AUTHOR}', '{rows.FOLDER}') AND id LIKE '%@0'"


@dataclass(frozen=True, slots=True)
class Proposal:
    """What a lesson is probably about, likeliest first, and why. `sure` is 0..1 for the first.

    `categories` is `("uncategorized",)` where nothing is likely enough.
    """

    lesson_id: str
    path: str  # from the vault's root
    title: str
    categories: tuple[CategoryPath, ...]
    sure: float
    why: tuple[str, ...]
    file_hash: str = ""  # of the file that was looked at


@dataclass(frozen=True, slots=True)
class Verdict:
    """What `Classifier.classify` says of a text."""

    categories: tuple[CategoryPath, ...]
    sure: float
    why: tuple[str, ...]


class Classifier:
    """Knows the lessons of a vault by what they were filed under.

    `vectors` float32[n, dimension], or None for phrases alone; `filed` and `titles` are of the same
    n lessons.
    """

    def __init__(
        self,
        vectors: np.ndarray | None,
        filed: Sequence[Sequence[CategoryPath]],
        titles: Sequence[str],
        keywords: Mapping[str, CategoryPath] | None = None,
        taxonomy: Sequence[CategoryPath] = (),
    ) -> None:
        self._titles = titles
        used = Counter(category for many in filed for category in set(many))
        self._keywords = _in_force(used, keywords or {}, taxonomy)
        self._known = sorted(one for one, count in used.items() if count >= LEARNED_FROM)
        self._counts = used
        self._names = {one: _plain(one.rpartition("/")[2]) for one in self._known}
        self._vectors = vectors if len(self._known) >= LEAST_CATEGORIES else None
        if self._vectors is not None:
            self._learn(filed)

    def _learn(self, filed: Sequence[Sequence[CategoryPath]]) -> None:
        import numpy as np

        assert self._vectors is not None
        member = np.zeros((len(self._known), len(filed)), np.float32)
        place = {category: at for at, category in enumerate(self._known)}
        for number, many in enumerate(filed):
            for category in many:
                if category in place:
                    member[place[category], number] = 1
        sums = member @ self._vectors
        self._member = member
        self._centroids = sums / np.linalg.norm(sums, axis=1, keepdims=True)
        self._certainty = certainty.of_vault(self._vectors, member, NEIGHBOURS, _shares)

    def classify(self, title: str, text: str, vector: np.ndarray | None) -> Verdict:
        """Say what a lesson is about. `vector` is its own, float32[dimension]."""
        head, body = _plain(title), _plain(text)
        found = self._by_keyword(head, body)
        if found is None and vector is not None and self._vectors is not None:
            found = self._by_likeness(head, body, vector)
        return found or Verdict((UNCATEGORIZED,), 0.0, (self._why_nothing(),))

    def _why_nothing(self) -> str:
        if len(self._known) < LEAST_CATEGORIES:
            return f"fewer than {LEAST_CATEGORIES} categories have {LEARNED_FROM} lessons to learn from"
        return "nothing it is like"

    def _by_keyword(self, head: str, body: str) -> Verdict | None:
        """Look for the phrases that name a category: those in the title count first."""
        found: dict[CategoryPath, tuple[int, str]] = {}
        for phrase, category in self._keywords.items():
            plain = _plain(phrase)
            for weight, where, name in ((1000, head, "title"), (1, body, "text")):
                times = where.count(plain) if plain else 0
                if times:
                    score, _ = found.get(category, (0, ""))
                    found[category] = (score + weight * times, f"{phrase!r} is in its {name}")
                    break
        if not found:
            return None
        best = sorted(found, key=lambda one: (-found[one][0], one))[:MOST]
        return Verdict(tuple(best), 1.0, tuple(f"{one}: {found[one][1]}" for one in best))

    def _by_likeness(self, head: str, body: str, vector: np.ndarray) -> Verdict:
        import numpy as np

        assert self._vectors is not None
        cosines = self._vectors @ vector
        near = np.argsort(-cosines, kind="stable")[:NEIGHBOURS]
        weight = np.maximum(cosines[near], 0) ** 2 / NEIGHBOURS
        like = self._centroids @ vector
        score = like + self._member[:, near] @ weight
        for at, category in enumerate(self._known):
            name = self._names[category]
            if name and name in head:
                score[at] += NAME_IN_TITLE
            elif name and name in body:
                score[at] += NAME_IN_TEXT
        share = _shares(score[None])[0]
        order = np.argsort(-share, kind="stable")
        first, sure = self._known[order[0]], self._certainty.of(float(share[order[0]]))
        why = f"{like[order[0]]:.0%} like the {self._counts[first]} lessons of {first}"
        why += f", and like {self._titles[near[0]]!r:.60}"
        if self._names[first] and self._names[first] in head:
            why += ", and its title names it"
        if like[order[0]] < LEAST_LIKE:
            return Verdict((UNCATEGORIZED,), sure, (f"{why}; that is too little",))
        if sure >= SURE:
            beside = [self._known[at] for at in order[1:MOST] if share[at] >= BESIDE]
            return Verdict((first, *beside), sure, (why, *(f"or {one}" for one in beside)))
        above, of_above = _broadest(self._known, share.tolist())
        sure_above = self._certainty.of(of_above)
        if sure_above >= SURE:
            return Verdict((above,), sure_above, (f"{why}; of {above} at least it is sure",))
        return Verdict((UNCATEGORIZED,), sure, (f"{why}; not sure enough ({sure:.0%})",))


def propose(vault: Vault) -> list[Proposal]:
    """Propose categories for the lessons that have none, by id. The index is read as it is.

    Raises IndexStateError without one.
    """
    opened = vault.open_index()
    return _proposals(opened.store, vault.config.keywords, vault.config.taxonomy)


def refile(
    store: Store, keywords: Mapping[str, CategoryPath], taxonomy: Sequence[CategoryPath]
) -> int:
    """Put the proposals into the rows of an index, so that filters find them; give their number.

    The caller holds the index's lock. Files are never touched.
    """
    targets = {
        row["lesson_id"]: (row["categories"], row["filed_by"])
        for row in store.rows(("lesson_id", "categories", "filed_by"), _TARGETS)
    }
    now: dict[str, tuple[list[CategoryPath], str]] = {}
    for one in _proposals(store, keywords, taxonomy) if targets else ():
        by = rows.NOBODY if one.categories == (UNCATEGORIZED,) else CLASSIFIER
        if targets.get(one.lesson_id) != (list(one.categories), by):
            now[one.lesson_id] = list(one.categories), by
    changed = [
        rows.file_under(row, *now[row["lesson_id"]]) for row in store.whole_rows(sorted(now))
    ]
    if changed:
        store.upsert(changed)
    return len(changed)


def write(vault: Vault, proposals: Iterable[Proposal]) -> tuple[list[str], list[str]]:
    """Write proposals into the frontmatter of their files; return the paths of those changed.

    And, for those that have categories by now, cannot be edited or read, that somebody saved
    meanwhile, or that are in a repository of their own, why they are left as they are. A file of
    several lessons has one frontmatter: it gets what most of them were given. Raises WriteError.
    """
    given, failed = _give(vault, proposals, write=True)
    return list(given), failed


def preview(
    vault: Vault, proposals: Iterable[Proposal]
) -> tuple[dict[str, list[CategoryPath]], list[str]]:
    """Return what `write` would give to each file, and why it would leave others as they are."""
    return _give(vault, proposals, write=False)


def _give(
    vault: Vault, proposals: Iterable[Proposal], *, write: bool
) -> tuple[dict[str, list[CategoryPath]], list[str]]:
    by_path: dict[str, list[Proposal]] = {}
    for one in proposals:
        if one.categories != (UNCATEGORIZED,):
            by_path.setdefault(one.path, []).append(one)
    written: dict[str, list[CategoryPath]] = {}
    failed: list[str] = []
    for path, several in sorted(by_path.items()):
        given = Counter(category for one in several for category in one.categories)
        chosen = [category for category, _ in given.most_common(MOST)]
        try:
            before, after = _filed_under(vault, path, chosen, {one.file_hash for one in several})
            if write:
                files.change_file(vault.root / path, after, expected=before, within=vault.root)
            written[path] = chosen
        except ChangedError as error:
            failed.append(error.message)
        except WriteError as error:
            if written:
                error.message += f"; written before that: {', '.join(written)}"
            raise
        except VaultError as error:
            failed.append(error.message)
    return written, failed


def _filed_under(
    vault: Vault, path: str, chosen: list[CategoryPath], hashes: Collection[str]
) -> tuple[bytes, bytes]:
    """Return a file as it is and with categories in its frontmatter. Raises VaultError for why not.

    `hashes` are those of the file as it was when they were proposed.
    """
    file = vault.root / path
    before = files.read_file(file)
    metadata = frontmatter_edit.keys_of(before, path)
    for key in ("categories", "category"):
        if metadata.get(key):
            raise VaultError(f"{path} has {key} already: {metadata[key]!r:.60}")
    if any(hash and hash != hash_of_file(before) for hash in hashes):
        raise ChangedError(
            f"{path} changed since this was proposed", "run `lessons classify` again"
        )
    files.refuse_other_repository(file.parent, vault.folder)
    return before, frontmatter_edit.set_keys(before, {"categories": chosen}, path)


def _proposals(
    store: Store, keywords: Mapping[str, CategoryPath], taxonomy: Sequence[CategoryPath]
) -> list[Proposal]:
    columns = ("id", "lesson_id", "path", "title", "text", "categories", "file_hash")
    targets, of_targets = store.rows_and_vectors(columns, f"{_TARGETS} AND id LIKE '%@0'")
    if not targets:
        return []
    known, vectors = store.rows_and_vectors(("id", "title", "categories"), _LEARNED)
    filed = [row["categories"] for row in known]
    titles = [row["title"] for row in known]
    classifier = Classifier(vectors, filed, titles, keywords, taxonomy)
    found = []
    for number, row in enumerate(targets):
        vector = None if of_targets is None else of_targets[number]
        said = classifier.classify(row["title"], row["text"], vector)
        found.append(
            Proposal(
                *(row["lesson_id"], row["path"], row["title"]),
                *(said.categories, said.sure, said.why),
                file_hash=row["file_hash"],
            )
        )
    return found


def _in_force(
    used: Mapping[CategoryPath, int],
    keywords: Mapping[str, CategoryPath],
    taxonomy: Sequence[CategoryPath],
) -> dict[str, CategoryPath]:
    """Give the phrases that hold here: the vault's own, and of the default ones what fits its tree."""
    allowed = {tree.normalise(one) for one in taxonomy} | set(used)
    if not taxonomy and sum(used.values()) < YOUNG_VAULT:
        allowed |= set(DEFAULT_TAXONOMY)
    chosen = {phrase: one for phrase, one in DEFAULT_KEYWORDS.items() if one in allowed}
    own = {phrase: tree.normalise(one) for phrase, one in keywords.items()}
    return chosen | {phrase: one for phrase, one in own.items() if one}


def _shares(evidence: np.ndarray) -> np.ndarray:
    """Return the share that each category has of the evidence, both float32[lessons, categories]."""
    import numpy as np

    share = np.exp((evidence - evidence.max(axis=1, keepdims=True)) / TEMPERATURE)
    return np.asarray(share / share.sum(axis=1, keepdims=True))


def _broadest(known: Sequence[CategoryPath], shares: Sequence[float]) -> tuple[CategoryPath, float]:
    """Give the top category whose lessons, all below it together, are the likeliest; "" for none."""
    total: dict[CategoryPath, float] = {}
    for category, share in zip(known, shares, strict=True):
        top = category.split("/")[0]
        total[top] = total.get(top, 0.0) + share
    best = max(total, key=lambda one: total[one])
    return best, total[best]


def _plain(text: str) -> str:
    """Give the words of a text, in small letters, each between blanks: ` github actions `."""
    words = _WORD.findall(text.lower())
    return f" {' '.join(words)} " if words else ""
