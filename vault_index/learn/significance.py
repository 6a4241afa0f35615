"""Whether something is worth an analysis: addends, each at most once, and their sum.

at least 5 files +3, at least 150 lines +2, a new pattern +5, a subject that says fix +2,
an architectural change +4, at least 2 corrections +1, failed then passed +3, a refused call +1
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from vault_index.learn import diff
from vault_index.learn.material import MOVED, REMOVED, FileChange, Material

LEAST_FILES, LEAST_LINES, LEAST_CORRECTIONS = 5, 150, 2
MOST_NAMES = 500  # new functions whose use is looked for
_SUBJECT = re.compile(
    r"\b(?:refactor(?:s|ed|ing|ings)?|(?:bug|hot)?fix(?:e[sd]|ing)?|bugs?|optimi[sz](?:e[sd]?|ing"
    r"|ations?)"
    r"|improv(?:e[sd]?|ing|ements?)|security)\b",
    re.IGNORECASE,
)
_HEADER = re.compile(r"^\+\+\+ b/(.+)$|^--- a/(.+)$", re.MULTILINE)
# What declares a dependency: the manifest, and an added line of it.
_MANIFESTS = (
    (
        re.compile(r"(?:^|/)package\.json$"),
        re.compile(r'^"[@\w./-]+":\s*"(?:[\^~><=*]|\d|workspace|npm:|git|file:|latest)'),
    ),
    (
        re.compile(r"(?:^|/)(?:pyproject\.toml|Pipfile|setup\.cfg)$"),
        re.compile(
            r"^[\"']?[A-Za-z][\w.-]*(?:\[[\w,-]+\])?\s*(?:[><=~!^]=?[^=]|===?\s*[\"']?[\d*])"
            r"|^[\"'][A-Za-z][\w.-]*(?:\[[\w,-]+\])?[\"'],?$|^[\w.-]+\s*=\s*(?:[\"'][\^~><=*\d]"
            r"|\{\s*(?:version|git))"
        ),
    ),
    (
        re.compile(r"(?:^|/)requirements[\w.-]*\.(?:txt|in)$|(?:^|/)requirements/[\w.-]+\.txt$"),
        re.compile(r"^[A-Za-z][\w.-]*"),
    ),
    (
        re.compile(r"(?:^|/)go\.mod$"),
        re.compile(r"^(?:require\s+)?[\w.-]+\.[a-z]+/\S+\s+v\d(?!.*// indirect)"),
    ),
    (
        re.compile(r"(?:^|/)Cargo\.toml$"),
        re.compile(r'^[\w-]+\s*=\s*(?:"[\^~><=*\d]|\{\s*(?:version|git|path|workspace))'
        r'|^[\w-]+\.workspace'),
    ),
    (
        re.compile(r"(?:^|/)(?:Gemfile|[\w-]+\.gemspec)$"),
        re.compile(r"^(?:gem|\w+\.add_(?:\w+_)?dependency)\s*\(?[\"']"),
    ),
    (re.compile(r"(?:^|/)pom\.xml$"), re.compile(r"^<artifactId>")),
    (
        re.compile(r"(?:^|/)build\.gradle(?:\.kts)?$|libs\.versions\.toml$"),
        re.compile(r"^(?:\w*[iI]mplementation|api|compileOnly|runtimeOnly|\w+Api)\b|module\s*="),
    ),
    (re.compile(r"(?:^|/)composer\.json$"), re.compile(r'^"[\w.-]+/[\w.-]+":\s*"')),
    (
        re.compile(r"\.(?:cs|fs|vb)proj$|Directory\.Packages\.props$"),
        re.compile(r"^<PackageReference|^<PackageVersion"),
    ),
    (
        re.compile(r"(?:^|/)(?:mix\.exs|pubspec\.yaml|Package\.swift|deno\.json)$"),
        re.compile(r"^\{:\w+,|^\w+:\s*\^|^\.package\(|^\"[@\w/-]+\":\s*\"(?:npm|jsr):"),
    ),
)  # fmt: skip
_NO_DEPENDENCY = re.compile(
    r"^[\"']?(?:name|version|description|license|type|main|module|private|author|homepage|python"
    r"|requires-python|readme|edition"
    r"|rust-version|node|npm|packageManager|line-length|target-version|minversion|requires"
    r"|build-backend|target|engines)\b",
    re.IGNORECASE,
)
_PUBLIC = (
    (re.compile(r"\.pyi?$"), re.compile(r"^(?:async )?def ([a-z]\w*)\s*\(|^class ([A-Z]\w*)")),
    (re.compile(r"\.go$"), re.compile(r"^func (?:\([^)]*\) )?([A-Z]\w*)\s*[\[(]")),
    (
        re.compile(r"\.(?:[cm]?js|[jt]sx?|mts|vue|svelte)$"),
        re.compile(r"^export (?:default )?(?:async )?(?:function\*? |class |const |let )(\w+)"),
    ),
    (re.compile(r"\.rs$"), re.compile(r"^\s*pub (?:const |async |unsafe )*fn (\w+)")),
    (
        re.compile(r"\.(?:java|cs)$"),
        re.compile(r"^\s*public (?:static |final |async |override |virtual )*[\w<>\[\], ?]+ (\w+)\s*\("),
    ),
    (
        re.compile(r"\.kts?$"),
        re.compile(r"^\s*(?:public )?(?:suspend |inline )*fun (?:<[^>]+> )?(?:\w+\.)?(\w+)\s*\("),
    ),
    (re.compile(r"\.rb$"), re.compile(r"^\s*def (?:self\.)?([a-z]\w*)")),
    (re.compile(r"\.php$"), re.compile(r"^\s*public (?:static )?function (\w+)|^function (\w+)")),
    (re.compile(r"\.swift$"), re.compile(r"^\s*(?:public|open) (?:static )?func (\w+)")),
    (re.compile(r"\.exs?$"), re.compile(r"^\s*def (\w+)")),
)  # fmt: skip
_TEST = re.compile(
    r"(?:^|/)(?:tests?|specs?|__tests__)/|(?:^|/)test_|_test\.\w+$|\.(?:test"
    r"|spec)\.\w+$|conftest\.py$"
)
_CODE = re.compile(
    r"\.(?:pyi?|go|[cm]?js|[jt]sx?|vue|svelte|rs|java|kts?|rb|php|cs|swift|scala|c"
    r"|cc|cpp|hpp?|exs?|hs|lua|dart|sh)$"
)
_CI = re.compile(
    r"(?:^|/)\.(?:github/(?:workflows|actions)|circleci|buildkite|ci|woodpecker|forgejo/workflows"
    r"|gitea/workflows)/"
    r"|(?:^|/)(?:\.gitlab-ci[\w.-]*|\.travis|\.drone|azure-pipelines|bitbucket-pipelines|appveyor"
    r"|cloudbuild|codemagic|\.woodpecker)\.ya?ml$"
    r"|(?:^|/)Jenkinsfile[\w.]*$|(?:^|/)action\.ya?ml$",
)
_BUILD = re.compile(
    r"(?:^|/)(?:(?:GNU)?[Mm]akefile|[Jj]ustfile|Rakefile|CMakeLists\.txt|meson\.build|SConstruct"
    r"|BUILD(?:\.bazel)?|WORKSPACE|MODULE\.bazel"
    r"|[Dd]ockerfile[\w.-]*|docker-compose[\w.-]*\.ya?ml|compose\.ya?ml|Containerfile|setup\.py"
    r"|build\.rs|build\.gradle(?:\.kts)?"
    r"|settings\.gradle(?:\.kts)?|build\.sbt|tsconfig[\w.-]*\.json|(?:webpack|vite|rollup|babel"
    r"|esbuild|metro|next|nuxt)\.config\.\w+"
    r"|turbo\.json|nx\.json|lerna\.json|pnpm-workspace\.yaml|go\.work|Taskfile\.ya?ml"
    r"|\.goreleaser\.ya?ml|tox\.ini|noxfile\.py|flake\.nix)$"
    r"|\.(?:cmake|mk|bzl|csproj|sln|vcxproj)$",
)
_BUILD_LINES = re.compile(
    r"build-backend|\[build-system\]|\[tool\.(?:hatch|setuptools|poetry)\."
    r"|^\s*requires = \[|\"scripts\": *\{"
)
_SCHEMA = re.compile(
    r"(?:^|/)(?:migrations?|migrate|alembic|db/schema|schemas?)/[^/]+\.\w+$|(?:^"
    r"|/)(?:alembic/versions|flyway|liquibase)/"
    r"|(?:^|/)(?:[\w-]*[._-])?schema\.(?:sql|prisma|graphql|rb|json|py|ts|xsd|go|yaml|yml)$"
    r"|\.(?:proto|graphql|gql|avsc|xsd|prisma|thrift)$"
    r"|(?:^|/)(?:openapi|swagger)[\w.-]*\.(?:ya?ml|json)$|(?:^|/)structure\.sql$",
)
_TABLE = re.compile(
    r"^\s*(?:CREATE|ALTER|DROP)\s+(?:TABLE|TYPE|INDEX|VIEW|SCHEMA)\b", re.IGNORECASE
)
_EXPORTS = re.compile(
    r"^\s*__all__\b|^export (?:\*|\{|type \{)|^\s*pub (?:mod|use)\b"
    r"|^module\.exports\b|^exports\.\w+"
)
_INDEX = re.compile(r"(?:^|/)(?:__init__\.py|index\.[jt]sx?|lib\.rs|mod\.rs)$")


@dataclass(frozen=True, slots=True)
class Addend:
    """A reason for points, and why it holds here."""

    name: str
    points: int
    why: str


@dataclass(frozen=True, slots=True)
class Significance:
    """The sum of addends; each is there at most once."""

    points: int
    addends: tuple[Addend, ...]

    def as_json(self) -> dict[str, Any]:
        """Return plain values."""
        addends = [
            {"name": each.name, "points": each.points, "why": each.why} for each in self.addends
        ]
        return {"points": self.points, "addends": addends}


@dataclass(frozen=True, slots=True)
class _Part:
    """The lines that the diff adds to a file and takes from it."""

    path: str
    added: tuple[str, ...]
    removed: tuple[str, ...]


def of(material: Material, ignored: Iterable[str] = ()) -> Significance:
    """Return how much a material is worth, without paths that `ignored` globs match."""
    is_wanted = diff.wanted(ignored)
    changes = [change for change in material.changes if is_wanted(change.path)]
    parts = [part for part in _parts(material.diff) if is_wanted(part.path)]
    lines = sum(change.lines_added + change.lines_removed for change in changes)
    subject = next((each for each in material.subjects if _SUBJECT.search(each)), "")
    corrections = sum(said.is_correction for said in material.prompts)
    refused = material.refused or sum(said.is_refusal for said in material.prompts)
    repair = material.repairs[0].command if material.repairs else ""
    candidates = (
        ("files", 3, f"{len(changes)} files" if len(changes) >= LEAST_FILES else ""),
        ("lines", 2, f"{lines} lines" if lines >= LEAST_LINES else ""),
        ("new pattern", 5, _new_pattern(material, parts, is_wanted)),
        ("subject", 2, subject),
        ("architecture", 4, _architecture(changes, parts)),
        ("corrections", 1, f"{corrections} corrections" if corrections >= LEAST_CORRECTIONS else ""),
        ("repair", 3, f"`{repair.splitlines()[0]:.80}` failed, then passed" if repair else ""),
        ("refusal", 1, f"{refused} refused calls" if refused else ""),
    )  # fmt: skip
    addends = tuple(Addend(name, points, why) for name, points, why in candidates if why)
    return Significance(sum(addend.points for addend in addends), addends)


def _parts(text: str) -> Iterator[_Part]:
    """Yield the files of a diff with their lines, without the signs in front."""
    path = ""
    added: list[str] = []
    removed: list[str] = []
    for line in [*text.splitlines(), "--- a/"]:
        if header := _HEADER.match(line):
            if header[1]:
                path = header[1]
                continue
            if path:
                yield _Part(path, tuple(added), tuple(removed))
            path, added, removed = header[2] or "", [], []
        elif line.startswith("--- "):  # of a new file
            if path:
                yield _Part(path, tuple(added), tuple(removed))
            path, added, removed = "", [], []
        elif line.startswith("+"):
            added.append(line[1:])
        elif line.startswith("-"):
            removed.append(line[1:])


def _new_pattern(material: Material, parts: Sequence[_Part], is_wanted: Any) -> str:
    """Return what is new in kind: a dependency, a kind of file, a module, a function in use; or ""."""
    for part in parts:
        if name := _dependency(part):
            return f"a new dependency in {part.path}: {name}"
    novel = [
        each
        for each in material.novel
        if is_wanted(f"{each}a" if each.endswith("/") else f"a{each}")
    ]
    if novel:
        kind = "a new module" if novel[0].endswith("/") else "a new kind of file"
        return f"{kind}: {novel[0]}"
    return _new_function(parts)


def _dependency(part: _Part) -> str:
    for manifest, declares in _MANIFESTS:
        if manifest.search(part.path):
            before = {_name_of(line, declares) for line in part.removed}
            for line in part.added:
                name = _name_of(line, declares)
                if name and name not in before:
                    return name
    return ""


def _name_of(line: str, declares: re.Pattern[str]) -> str:
    """Return the name of the dependency that a line declares, without its version; "" if none."""
    text = line.strip()
    if not declares.search(text) or _NO_DEPENDENCY.match(text):
        return ""
    if text.startswith("<artifactId>"):
        return text.removeprefix("<artifactId>").partition("<")[0]
    words = re.findall(
        r"@?[A-Za-z][\w./@-]*",
        re.sub(
            r"^(?:gem|require|<PackageReference"
            r"|<PackageVersion)\s*(?:Include=)?",
            "",
            text,
        ),
    )
    return words[0].lower() if words else ""


def _new_function(parts: Sequence[_Part]) -> str:
    """Return a public function that is new and that another file, no test, uses; or ""."""
    gone = {name for part in parts for line in part.removed for name in _defined(part.path, line)}
    new = [
        (name, part.path)
        for part in parts
        if not _TEST.search(part.path)
        for line in part.added
        for name in _defined(part.path, line)
        if name not in gone and len(name) > 2
    ]
    for name, path in new[:MOST_NAMES]:
        used = re.compile(rf"(?<![\w]){re.escape(name)}\b")
        for part in parts:
            if part.path == path or _TEST.search(part.path) or not _CODE.search(part.path):
                continue
            if any(used.search(line) and not _defined(part.path, line) for line in part.added):
                return f"a new public function: {name} of {path}, used in {part.path}"
    return ""


def _defined(path: str, line: str) -> list[str]:
    """Return the public functions and classes that a line of a file defines."""
    for form, defines in _PUBLIC:
        if form.search(path):
            return [name for match in defines.finditer(line) for name in match.groups() if name]
    return []


def _architecture(changes: Sequence[FileChange], parts: Sequence[_Part]) -> str:
    """Return a change of the structure: a moved module, build, CI, a schema, an interface; or ""."""
    for change in changes:
        if change.kind == MOVED and _CODE.search(change.path):
            return f"a moved module: {change.before or '?'} to {change.path}"
    for change in changes:
        for name, form in (("CI", _CI), ("the build", _BUILD), ("a schema", _SCHEMA)):
            if form.search(change.path):
                return f"{name}: {change.path}"
    for part in parts:
        lines = (*part.added, *part.removed)
        if part.path.endswith((".sql", ".py", ".rb")) and any(map(_TABLE.search, lines)):
            return f"a schema: {part.path}"
        if part.path.endswith(("pyproject.toml", "package.json")) and any(
            map(_BUILD_LINES.search, lines)
        ):
            return f"the build: {part.path}"
    return _interface(changes, parts)


def _interface(changes: Sequence[FileChange], parts: Sequence[_Part]) -> str:
    """Return what others call that is exported otherwise now, has other arguments or is gone; or ""."""
    now = {name for part in parts for line in part.added for name in _defined(part.path, line)}
    removed = {change.path for change in changes if change.kind == REMOVED}
    for part in parts:
        if _TEST.search(part.path):
            continue
        if _INDEX.search(part.path) and any(
            _EXPORTS.search(line) for line in (*part.added, *part.removed)
        ):
            return f"the public interface: {part.path}"
        added = {line.strip() for line in part.added}
        for line in part.removed:
            for name in _defined(part.path, line):
                if part.path in removed or name not in now:
                    return f"the public interface: {name} of {part.path} is gone"
                if line.strip() not in added and any(
                    name in _defined(part.path, each) for each in part.added
                ):
                    return f"the public interface: {name} of {part.path} is called otherwise"
    return ""
