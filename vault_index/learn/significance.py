"""Whether something is worth an analysis: a sign of it, and how much, in points.

A session in which a call failed or was refused, or the person corrected the agent, is worth a look,
whatever its size. The points say which first: addends, each at most once, and their sum.

at least `learn.min_files` files +3, at least `learn.min_lines` lines +2, a new pattern +5 (a word in a
manifest, a kind of file, a module), a subject that says fix +2, an architectural change +4 (a moved
module, CI, the build, a schema), at least 2 corrections +1
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from vault_index.features import LearnTable
from vault_index.learn import diff, timeline
from vault_index.learn.material import MOVED, FileChange, Material
from vault_index.text import blocks
from vault_index.text.words import count
from vault_index.transcripts.moments import CHANGES, FAILED, HOOK, REFUSED

USUAL = LearnTable()
MIN_CORRECTIONS = 2
_SUBJECT = re.compile(
    r"(?i)\b(?:refactor(?:s|ed|ings?)?|(?:bug|hot)?fix(?:e[sd]|ing)?|bugs?|security"
    r"|optimi[sz](?:e[sd]?|ing|ations?)|improv(?:e[sd]?|ing|ements?))\b"
)
_MANIFEST = re.compile(
    r"(?:^|/)(?:(?:package|composer|deno)\.json|pyproject\.toml|Pipfile|setup\.cfg|go\.mod|Cargo\.toml"
    r"|requirements(?:[\w.-]*\.(?:txt|in)|/[\w.-]+\.txt)|Gemfile|[\w-]+\.gemspec|pom\.xml|mix\.exs"
    r"|build\.gradle(?:\.kts)?|libs\.versions\.toml|Directory\.Packages\.props|pubspec\.yaml"
    r"|Package\.swift)$|\.(?:cs|fs|vb)proj$"
)
_WORD = re.compile(r"[A-Za-z][\w./@-]+")
_STRUCTURE = {  # what a path is a part of
    "CI": re.compile(
        r"(?:^|/)\.(?:github/(?:workflows|actions)|circleci|buildkite|ci|woodpecker"
        r"|(?:forgejo|gitea)/workflows)/|(?:^|/)(?:Jenkinsfile[\w.]*|action\.ya?ml"
        r"|\.?(?:gitlab-ci|travis|drone|azure-pipelines|appveyor|cloudbuild)[\w.-]*\.ya?ml)$"
    ),
    "the build": re.compile(
        r"(?:^|/)(?:\w*makefile|justfile|rakefile|CMakeLists\.txt|BUILD(?:\.bazel)?|WORKSPACE"
        r"|(?:Docker|Container)file[\w.-]*|[\w-]*compose[\w.-]*\.ya?ml|setup\.py|build\.(?:rs|sbt)"
        r"|tsconfig[\w.-]*\.json|(?:webpack|vite|rollup|babel|esbuild|metro|next|nuxt)\.config\.\w+"
        r"|(?:turbo|nx|lerna)\.json|tox\.ini|noxfile\.py)$|\.(?:gradle(?:\.kts)?|cmake|mk|\w+proj)$",
        re.IGNORECASE,
    ),
    "a schema": re.compile(
        r"(?:^|/)(?:migrations?|migrate|alembic|schemas?)/[^/]+\.\w+$|\.(?:proto|g(?:raph)?ql|prisma)$"
        r"|(?:^|/)(?:[\w-]*[._-])?(?:schema|openapi|swagger|structure)\.(?:sql|rb|json|py|ts|go|ya?ml)$"
    ),
}


@dataclass(frozen=True, slots=True)
class Addend:
    """A reason for points, and why it holds here."""

    name: str
    points: int
    why: str


@dataclass(frozen=True, slots=True)
class Significance:
    """The sum of addends; each is there at most once. `sign` is why it is worth a look, or ""."""

    points: int
    addends: tuple[Addend, ...]
    sign: str = ""

    def is_worth(self, threshold: int) -> bool:
        return bool(self.sign) or self.points >= threshold


def score(material: Material, settings: LearnTable = USUAL) -> Significance:
    """Return the worth of a material by the settings, without the paths that they exclude."""
    is_wanted = diff.wanted(settings.exclude)
    changes = [change for change in material.changes if is_wanted(change.path)]
    lines = sum(change.lines_added + change.lines_removed for change in changes)
    subject = next(filter(_SUBJECT.search, material.subjects), "")
    corrections = sum(each.is_correction for each in material.moments)
    candidates = (
        ("files", 3, count(len(changes), "file") if len(changes) >= settings.min_files else ""),
        ("lines", 2, count(lines, "line") if lines >= settings.min_lines else ""),
        ("new pattern", 5, _new_pattern(material, is_wanted)),
        ("subject", 2, subject),
        ("architecture", 4, _architecture(changes)),
        (
            "corrections",
            1,
            count(corrections, "correction") if corrections >= MIN_CORRECTIONS else "",
        ),
    )
    addends = tuple(Addend(name, points, why) for name, points, why in candidates if why)
    return Significance(sum(each.points for each in addends), addends, _sign(material, corrections))


def _sign(material: Material, corrections: int) -> str:
    """Return the first failure, or that the person corrected the agent; "" if nothing shows."""
    for each in material.moments:
        if each.kind in (FAILED, REFUSED) and not each.is_routine:
            how = "was refused" if each.kind == REFUSED else "failed"
            return HOOK if each.about == HOOK else f"`{blocks.one_line(each.about, 80)}` {how}"
    return "the person corrected the agent" if corrections else ""


def _new_pattern(material: Material, is_wanted: Callable[[str], bool]) -> str:
    """Return a manifest's new name, or a kind of file or module that is new, as a line; "" for none."""
    moments = timeline.moments_of_diff(material.diff) if material.diff else material.moments
    edits = [each for each in moments if each.kind in CHANGES and _MANIFEST.search(each.about)]
    for path in filter(is_wanted, dict.fromkeys(each.about for each in edits)):
        sides = [each.sides() for each in edits if each.about == path]
        before = {"require", *_WORD.findall("\n".join(removed for removed, _ in sides))}
        words = _WORD.findall("\n".join(added for _, added in sides))
        if name := next((word for word in words if word not in before), ""):
            return f"new in {path}: {name}"
    for each in material.novel:
        is_module = each.endswith("/")
        if is_wanted(f"{each}a" if is_module else f"a{each}"):
            return f"{'a new module' if is_module else 'a new kind of file'}: {each}"
    return ""


def _architecture(changes: Sequence[FileChange]) -> str:
    moved = [each for each in changes if each.kind == MOVED and diff.is_module(each.path)]
    if moved:
        return f"a moved module: {moved[0].before or '?'} to {moved[0].path}"
    for change in changes:
        for name, form in _STRUCTURE.items():
            if form.search(change.path):
                return f"{name}: {change.path}"
    return ""
