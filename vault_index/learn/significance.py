"""Whether something is worth an analysis: a sign of it, and how much, in points.

A session in which a call failed or was refused, or the person corrected the agent, is worth a look,
whatever its size. The points say which first: addends, each at most once, and their sum.

at least 5 files +3, at least 150 lines +2, a new pattern +5, a subject that says fix +2,
an architectural change +4, at least 2 corrections +1, failed then passed +3, a refused call +1
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from vault_index.features import LearnTable
from vault_index.learn import diff, timeline
from vault_index.learn.material import MOVED, FileChange, Material
from vault_index.learn.timeline import FAILED, HOOK, REFUSED
from vault_index.text import blocks

USUAL = LearnTable()
MIN_CORRECTIONS = 2
MAX_NAMES = 500  # new functions whose use is looked for
_SUBJECT = re.compile(
    r"(?i)\b(?:refactor(?:s|ed|ings?)?|(?:bug|hot)?fix(?:e[sd]|ing)?|bugs?|security"
    r"|optimi[sz](?:e[sd]?|ing|ations?)|improv(?:e[sd]?|ing|ements?))\b"
)
_HEADER = re.compile(r"^(?:\+\+\+ b/(.+)|--- (?:a/)?(.+))$")
_TEST = re.compile(
    r"(?:^|/)(?:tests?|specs?|__tests__)/|(?:^|/)test_|_test\.\w+$|\.(?:test|spec)\.\w+$|conftest\.py$"
)
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
_PUBLIC = {  # what defines a public function or class, by the kind of file
    r"\.pyi?$": r"^(?:async )?def ([a-z]\w*)\s*\(|^class ([A-Z]\w*)",
    r"\.go$": r"^func (?:\([^)]*\) )?([A-Z]\w*)\s*[\[(]",
    r"\.(?:[cm]?js|[jt]sx?|mts|vue|svelte)$": (
        r"^export (?:default )?(?:async )?(?:function\*? |class |const |let )(\w+)"
    ),
    r"\.rs$": r"^\s*pub (?:const |async |unsafe )*fn (\w+)",
    r"\.(?:java|cs)$": r"^\s*public (?:\w+ )*[\w<>\[\], ?]+ (\w+)\s*\(",
    r"\.kts?$": r"^\s*(?:public )?(?:suspend |inline )*fun (?:<[^>]+> )?(?:\w+\.)?(\w+)\s*\(",
    r"\.rb$": r"^\s*def (?:self\.)?([a-z]\w*)",
    r"\.php$": r"^\s*(?:public (?:static )?)?function (\w+)",
    r"\.swift$": r"^\s*(?:public|open) (?:static )?func (\w+)",
    r"\.exs?$": r"^\s*def (\w+)",
}
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
# what lines of a file change, by the file's path
_LINES = {
    "a schema": (
        r"\.(?:sql|py|rb)$",
        r"(?i)^\s*(?:CREATE|ALTER|DROP)\s+(?:TABLE|TYPE|INDEX|VIEW|SCHEMA)\b",
    ),
    "the build": (
        r"(?:pyproject\.toml|package\.json)$",
        r"build-backend|\[build-system\]|\[tool\.(?:hatch|setuptools|poetry)\.|^\s*requires = \["
        r"|\"scripts\": *\{",
    ),
    "the public interface": (
        r"(?:^|/)(?:__init__\.py|index\.[jt]sx?|lib\.rs|mod\.rs)$",
        r"^\s*__all__\b|^export (?:\*|\{|type \{)|^\s*pub (?:mod|use)\b|^module\.exports\b|^exports\.\w+",
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
        """Whether it is worth an analysis that nobody asked for."""
        return bool(self.sign) or self.points >= threshold


@dataclass(frozen=True, slots=True)
class _Part:
    """The lines that the diff adds to a file and takes from it."""

    path: str
    added: list[str] = field(default_factory=list)
    removed: list[str] = field(default_factory=list)

    @property
    def is_test(self) -> bool:
        """Whether it is of a test."""
        return bool(_TEST.search(self.path))


def score(material: Material, settings: LearnTable = USUAL) -> Significance:
    """Return how much a material is worth, without paths that globs of the settings exclude."""
    is_wanted = diff.wanted(settings.exclude)
    changes = [change for change in material.changes if is_wanted(change.path)]
    parts = [part for part in _parts(material.diff) if is_wanted(part.path)]
    lines = sum(change.lines_added + change.lines_removed for change in changes)
    subject = next(filter(_SUBJECT.search, material.subjects), "")
    there = material.moments
    corrections = sum(each.is_correction for each in there)
    refused = sum(each.kind == FAILED and each.text.startswith(REFUSED) for each in there)
    repair = next((there[failed].about for failed, _ in timeline.repairs(there)), "")
    candidates = (
        ("files", 3, f"{len(changes)} files" if len(changes) >= settings.min_files else ""),
        ("lines", 2, f"{lines} lines" if lines >= settings.min_lines else ""),
        ("new pattern", 5, _new_pattern(material.novel, parts, is_wanted)),
        ("subject", 2, subject),
        ("architecture", 4, _architecture(changes, parts)),
        ("corrections", 1, f"{corrections} corrections" if corrections >= MIN_CORRECTIONS else ""),
        ("repair", 3, f"`{repair.splitlines()[0]:.80}` failed, then passed" if repair else ""),
        ("refusal", 1, f"{refused} refused calls" if refused else ""),
    )
    addends = tuple(Addend(name, points, why) for name, points, why in candidates if why)
    return Significance(sum(each.points for each in addends), addends, _sign(material, corrections))


def _sign(material: Material, corrections: int) -> str:
    """Return what went wrong first, or that the person corrected the agent; "" if nothing shows."""
    for each in material.moments:
        if each.kind == FAILED and not each.is_routine:
            how = "was refused" if each.text.startswith(REFUSED) else "failed"
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
    """Return what is new in kind: a dependency, a kind of file, a module, a function in use; or ""."""
    for part in filter(lambda part: _MANIFEST.search(part.path), parts):
        before = {_dependency(part.path, line) for line in part.removed}
        for name in (_dependency(part.path, line) for line in part.added):
            if name and name not in before:
                return f"a new dependency in {part.path}: {name}"
    for each in novel:
        is_module = each.endswith("/")
        if is_wanted(f"{each}a" if is_module else f"a{each}"):
            return f"{'a new module' if is_module else 'a new kind of file'}: {each}"
    return _new_function(parts)


def _dependency(path: str, line: str) -> str:
    """Return the name of the dependency that a line of a manifest declares; "" if none."""
    text = line.strip()
    if _NO_DEPENDENCY.match(text):
        return ""
    match = _DEPENDENCY.match(text)
    if match is None and _OF_PYTHON.search(path):
        match = _ALONE.match(text)
    return next(filter(None, match.groups()), "").lower() if match else ""


def _new_function(parts: Sequence[_Part]) -> str:
    """Return a public function that is new and that another file, no test, uses; or ""."""
    code = [part for part in parts if not part.is_test]
    gone = {name for part in parts for name in _defined(part.path, part.removed)}
    every = ((name, part.path) for part in code for name in _defined(part.path, part.added))
    new = [(name, path) for name, path in every if name not in gone and len(name) > 2]
    for name, path in new[:MAX_NAMES]:
        used = re.compile(rf"(?<!\w){re.escape(name)}\b")
        for part in code:
            lines = part.added if part.path != path and _CODE.search(part.path) else ()
            if any(used.search(line) and not _defined(part.path, [line]) for line in lines):
                return f"a new public function: {name} of {path}, used in {part.path}"
    return ""


def _defined(path: str, lines: Iterable[str]) -> list[str]:
    """Return the public functions and classes that lines of a file define."""
    defines = next((form for kind, form in _PUBLIC.items() if re.search(kind, path)), "")
    matches = (re.match(defines, line) for line in lines if defines)
    return [name for match in matches if match for name in match.groups() if name]


def _architecture(changes: Sequence[FileChange], parts: Sequence[_Part]) -> str:
    """Return a change of the structure: a moved module, build, CI, a schema, an interface; or ""."""
    moved = [each for each in changes if each.kind == MOVED and _CODE.search(each.path)]
    if moved:
        return f"a moved module: {moved[0].before or '?'} to {moved[0].path}"
    for change in changes:
        for name, form in _STRUCTURE.items():
            if form.search(change.path):
                return f"{name}: {change.path}"
    for part in parts:
        for name, (kind, line_form) in _LINES.items():
            is_one = re.search(kind, part.path) and not part.is_test
            if is_one and any(re.search(line_form, each) for each in (*part.added, *part.removed)):
                return f"{name}: {part.path}"
    return _interface(parts)


def _interface(parts: Sequence[_Part]) -> str:
    """Return what others call that is gone or has other arguments now; or ""."""
    now = {name for part in parts for name in _defined(part.path, part.added)}
    for part in parts:
        added = {line.strip() for line in part.added}
        for line in () if part.is_test else part.removed:
            for name in _defined(part.path, [line]):
                if name not in now:
                    return f"the public interface: {name} of {part.path} is gone"
                if line.strip() not in added and name in _defined(part.path, part.added):
                    return f"the public interface: {name} of {part.path} is called otherwise"
    return ""
