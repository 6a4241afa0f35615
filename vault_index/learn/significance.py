"""Whether something is worth an analysis: a sign of it, and how much, in points.

A session in which a call failed or was refused, or the person corrected the agent, is worth a look,
whatever its size. The points say which first: addends, each at most once, and their sum.

at least 5 files +3, at least 150 lines +2, a new pattern +5 (a dependency, a kind of file, a module),
a subject that says fix +2, an architectural change +4 (a moved module, CI, the build, a schema),
at least 2 corrections +1
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from vault_index.features import LearnTable
from vault_index.learn import diff
from vault_index.learn.material import MOVED, FileChange, Material
from vault_index.text import blocks
from vault_index.transcripts.moments import FAILED, HOOK, REFUSED

USUAL = LearnTable()
MIN_FILES, MIN_LINES, MIN_CORRECTIONS = 5, 150, 2
_SUBJECT = re.compile(
    r"(?i)\b(?:refactor(?:s|ed|ings?)?|(?:bug|hot)?fix(?:e[sd]|ing)?|bugs?|security"
    r"|optimi[sz](?:e[sd]?|ing|ations?)|improv(?:e[sd]?|ing|ements?))\b"
)
_HEADER = re.compile(r"^(?:\+\+\+ b/(.+)|--- (?:a/)?(.+))$")
_CODE = re.compile(
    r"\.(?:pyi?|go|[cm]?js|[jt]sx?|vue|svelte|rs|java|kts?|rb|php|cs|swift|scala|cc?|cpp|hpp?|exs?|hs"
    r"|lua|dart|sh)$"
)
_MANIFEST = re.compile(
    r"(?:^|/)(?:(?:package|composer|deno)\.json|pyproject\.toml|Pipfile|setup\.cfg|go\.mod|Cargo\.toml"
    r"|requirements(?:[\w.-]*\.(?:txt|in)|/[\w.-]+\.txt)|Gemfile|[\w-]+\.gemspec|pom\.xml|mix\.exs"
    r"|build\.gradle(?:\.kts)?|libs\.versions\.toml|Directory\.Packages\.props|pubspec\.yaml"
    r"|Package\.swift)$|\.(?:cs|fs|vb)proj$"
)
# an added line of a manifest that declares a dependency: by a keyword, a version, or alone
_DEPENDENCY = re.compile(
    r"^(?:gem|api|compileOnly|runtimeOnly|\w*[iI]mplementation|\w+\.add_\w*dependency|\.package)\b"
    r"\s*\(?(?:url: )?[\"'](?P<called>[^\"'\s]+)"
    r"|^<(?:artifactId>|Package(?:Reference|Version)\s+Include=\")(?P<tagged>[\w.-]+)"
    r"|^(?:require\s+|\{:)?[\"']?(?P<versioned>@?[A-Za-z][\w./@-]*)(?:\[[\w,-]+\])?(?:\.workspace\b"
    r"|[\"']?\s*[:=,]?\s*(?:\{\s*(?:version|git|path|workspace)"
    r"|[\"']?(?:[\^~><!*]|={1,3}\s*[\"']?\d|v?\d|workspace|npm:|jsr:|git|file:|latest)))"
    r"(?!.*// indirect)"
)
_ALONE = re.compile(r"^[\"']?([A-Za-z][\w.-]*)(?:\[[\w,-]+\])?[\"']?,?$")
_OF_PYTHON = re.compile(r"requirements|pyproject\.toml$|Pipfile$|setup\.cfg$")
_NO_DEPENDENCY = re.compile(
    r"(?i)^[\"']?(?:name|version|description|license|type|main|module|private|author|homepage|python|go"
    r"|toolchain|requires-python|readme|edition|rust-version|node|npm|packageManager|line-length"
    r"|target-version|minversion|requires|build-backend|target|engines)\b"
)
_STRUCTURE = {  # what a path is a part of
    "CI": re.compile(
        r"(?:^|/)\.(?:github/(?:workflows|actions)|circleci|buildkite|ci|woodpecker"
        r"|(?:forgejo|gitea)/workflows)/|(?:^|/)Jenkinsfile[\w.]*$|(?:^|/)action\.ya?ml$"
        r"|(?:^|/)(?:\.gitlab-ci[\w.-]*|\.travis|\.drone|\.woodpecker|azure-pipelines|appveyor"
        r"|bitbucket-pipelines|cloudbuild|codemagic)\.ya?ml$"
    ),
    "the build": re.compile(
        r"(?:^|/)(?:(?:GNU)?[Mm]akefile|[Jj]ustfile|Rakefile|CMakeLists\.txt|meson\.build|SConstruct"
        r"|BUILD(?:\.bazel)?|WORKSPACE|MODULE\.bazel|[Dd]ockerfile[\w.-]*|Containerfile|setup\.py"
        r"|(?:docker-)?compose[\w.-]*\.ya?ml|build\.rs|(?:build|settings)\.gradle(?:\.kts)?|build\.sbt"
        r"|tsconfig[\w.-]*\.json|(?:webpack|vite|rollup|babel|esbuild|metro|next|nuxt)\.config\.\w+"
        r"|(?:turbo|nx|lerna)\.json|pnpm-workspace\.yaml|go\.work|(?:Taskfile|\.goreleaser)\.ya?ml"
        r"|tox\.ini|noxfile\.py|flake\.nix)$|\.(?:cmake|mk|bzl|csproj|sln|vcxproj)$"
    ),
    "a schema": re.compile(
        r"(?:^|/)(?:migrations?|migrate|alembic|db/schema|schemas?)/[^/]+\.\w+$"
        r"|(?:^|/)(?:alembic/versions|flyway|liquibase)/|(?:^|/)structure\.sql$"
        r"|(?:^|/)(?:[\w-]*[._-])?schema\.(?:sql|prisma|graphql|rb|json|py|ts|xsd|go|ya?ml)$"
        r"|\.(?:proto|graphql|gql|avsc|xsd|prisma|thrift)$"
        r"|(?:^|/)(?:openapi|swagger)[\w.-]*\.(?:ya?ml|json)$"
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


@dataclass(frozen=True, slots=True)
class _Part:
    """The lines that the diff adds to a file and takes from it."""

    path: str
    added: list[str] = field(default_factory=list)
    removed: list[str] = field(default_factory=list)


def score(material: Material, settings: LearnTable = USUAL) -> Significance:
    """Return how much a material is worth, without paths that globs of the settings exclude."""
    is_wanted = diff.wanted(settings.exclude)
    changes = [change for change in material.changes if is_wanted(change.path)]
    parts = [part for part in _parts(material.diff) if is_wanted(part.path)]
    lines = sum(change.lines_added + change.lines_removed for change in changes)
    subject = next(filter(_SUBJECT.search, material.subjects), "")
    corrections = sum(each.is_correction for each in material.moments)
    candidates = (
        ("files", 3, f"{len(changes)} files" if len(changes) >= MIN_FILES else ""),
        ("lines", 2, f"{lines} lines" if lines >= MIN_LINES else ""),
        ("new pattern", 5, _new_pattern(material.novel, parts, is_wanted)),
        ("subject", 2, subject),
        ("architecture", 4, _architecture(changes)),
        ("corrections", 1, f"{corrections} corrections" if corrections >= MIN_CORRECTIONS else ""),
    )
    addends = tuple(Addend(name, points, why) for name, points, why in candidates if why)
    return Significance(sum(each.points for each in addends), addends, _sign(material, corrections))


def _sign(material: Material, corrections: int) -> str:
    """Return what went wrong first, or that the person corrected the agent; "" if nothing shows."""
    for each in material.moments:
        if each.kind in (FAILED, REFUSED) and not each.is_routine:
            how = "was refused" if each.kind == REFUSED else "failed"
            return HOOK if each.about == HOOK else f"`{blocks.one_line(each.about, 80)}` {how}"
    return "the person corrected the agent" if corrections else ""


def _parts(text: str) -> Iterator[_Part]:
    """Yield the files of a diff with their lines, without the signs in front."""
    part = _Part("")
    for line in text.splitlines():
        if header := _HEADER.match(line):
            if header[1]:  # the path after the change, which a deleted file lacks
                part = _Part(header[1], part.added, part.removed)
                continue
            if part.path:
                yield part
            part = _Part("" if header[2] == "/dev/null" else header[2])
        elif line.startswith("+"):
            part.added.append(line[1:])
        elif line.startswith("-"):
            part.removed.append(line[1:])
    if part.path:
        yield part


def _new_pattern(
    novel: Sequence[str], parts: Sequence[_Part], is_wanted: Callable[[str], bool]
) -> str:
    for part in filter(lambda part: _MANIFEST.search(part.path), parts):
        before = {_dependency(part.path, line) for line in part.removed}
        for name in (_dependency(part.path, line) for line in part.added):
            if name and name not in before:
                return f"a new dependency in {part.path}: {name}"
    for each in novel:
        is_module = each.endswith("/")
        if is_wanted(f"{each}a" if is_module else f"a{each}"):
            return f"{'a new module' if is_module else 'a new kind of file'}: {each}"
    return ""


def _dependency(path: str, line: str) -> str:
    text = line.strip()
    if _NO_DEPENDENCY.match(text):
        return ""
    match = _DEPENDENCY.match(text)
    if match is None and _OF_PYTHON.search(path):
        match = _ALONE.match(text)
    return next(filter(None, match.groups()), "").lower() if match else ""


def _architecture(changes: Sequence[FileChange]) -> str:
    moved = [each for each in changes if each.kind == MOVED and _CODE.search(each.path)]
    if moved:
        return f"a moved module: {moved[0].before or '?'} to {moved[0].path}"
    for change in changes:
        for name, form in _STRUCTURE.items():
            if form.search(change.path):
                return f"{name}: {change.path}"
    return ""
