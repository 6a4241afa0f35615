"""Citations of a repository in a lesson: files, names of its code, versions of dependencies."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import chain
from typing import Any

_CODE = re.compile(
    r"(?ms)^(`{3,}|~{3,})(?![`~]).*?(?:^\1[`~]*[ \t]*$|\Z)|(?<!`)(`{1,3})[^`\n]+\2(?!`)"
)
_PATH = re.compile(
    r"(?<![\w/.:@~$*<{-])(?:\./)?((?:[\w.@+-]+/)+[\w.@+-]*[\w+-]|[\w-][\w.-]*\.[A-Za-z]\w{0,7})"
    r"(?![\w/*<{$]|\.\w)"
)
_NAME = re.compile(r"(?<![\w$.-])(?:[A-Za-z_]\w*\.)*([A-Za-z_]\w{3,})(\()?(?![\w-])")
_CAMEL = re.compile(r"[a-z][a-z0-9]*(?:[A-Z][a-z0-9]+)+|(?:[A-Z][a-z0-9]+){2,}")
_VERSION = re.compile(
    r"(?<![\w@/.-])(@?[A-Za-z][\w./-]*\w)[`'\"]{0,2}[ \t]{0,2}(?:==|~=|\^|@|>=|[ \t]v?|:)[ \t]{0,2}"
    r"[\"'`]?v?(\d+(?:\.\d+)+)(?![\w.]*-)"
)
_COMMON_FILES = frozenset(
    "readme.md package.json changelog.md license makefile dockerfile setup.py index.js index.ts main.py"
    " __init__.py conftest.py pyproject.toml cargo.toml go.mod .gitignore skill.md agents.md claude.md"
    .split()
)  # fmt: skip
MAX_CHARS = 20_000  # of a lesson that are read
MAX_CITED = 40  # of each kind; a lesson that names more is a list


@dataclass(frozen=True, slots=True)
class Cited:
    """The citations of a lesson. A version is (name in lower case, version as written)."""

    paths: frozenset[str] = frozenset()
    names: frozenset[str] = frozenset()
    versions: frozenset[tuple[str, str]] = frozenset()

    def __bool__(self) -> bool:
        return bool(self.paths or self.names or self.versions)


def cited_in(text: str) -> Cited:
    """Return what a text cites."""
    text = text[:MAX_CHARS]
    code = [match[0] for match in _CODE.finditer(text)]
    paths = {path for path in _PATH.findall(text) if path.lower() not in _COMMON_FILES}
    names = {
        name
        for span in code
        for name, called in _NAME.findall(span)
        if "_" in name.strip("_") or called or _CAMEL.fullmatch(name)
    }
    versions = {(name.lower(), version) for name, version in _VERSION.findall(text)}
    several = (paths, names, versions)
    return Cited(*(frozenset(each) if len(each) <= MAX_CITED else frozenset() for each in several))


def is_manifest(path: str) -> bool:
    """Whether a file says which versions a repository depends on."""
    return _reader(path) is not None


def is_lock(path: str) -> bool:
    """Whether a manifest says which versions are installed, and not which may be."""
    return path.endswith((".lock", "lock.json", "go.mod"))


def versions(path: str, content: bytes) -> dict[str, str]:
    """Return the version that a manifest or lock file has of each dependency, as far as it has one."""
    reader = _reader(path)
    try:
        return reader(content.decode("utf-8")) if reader else {}
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return {}


def agrees(cited: str, version: str) -> bool:
    """Whether a version is the one that is cited, which may leave out its last numbers."""
    wanted, there = cited.split("."), version.split(".")
    return there[: len(wanted)] == wanted or wanted[: len(there)] == there


def _reader(path: str) -> Callable[[str], dict[str, str]] | None:
    name = path.rpartition("/")[2]
    if name.startswith("requirements") and name.endswith(".txt"):
        return _requirements
    return _READERS.get(name)


_FIRST = re.compile(r"v?(\d+(?:\.\d+)+)")
_REQUIREMENT = re.compile(
    r"(?m)^\s*([A-Za-z][\w.-]*)(?:\[[^\]]*\])?\s*[=~>^]=?=?\s*v?(\d+(?:\.\d+)+)"
)
_GO = re.compile(r"^\s*(?:require\s+)?([\w.-]+\.[\w./-]+)\s+v(\d+(?:\.\d+)+)", re.MULTILINE)


def _requirements(text: str) -> dict[str, str]:
    return {name.lower(): version for name, version in _REQUIREMENT.findall(text)}


def _pyproject(text: str) -> dict[str, str]:
    values = tomllib.loads(text)
    project = values.get("project") or {}
    extras = (project.get("optional-dependencies") or {}).values()
    listed = [str(line) for each in (project.get("dependencies") or [], *extras) for line in each]
    poetry = (values.get("tool") or {}).get("poetry") or {}
    return _requirements("\n".join(listed)) | _pinned(poetry, "dependencies")


def _lock(text: str) -> dict[str, str]:
    packages = [each for each in tomllib.loads(text).get("package") or [] if "version" in each]
    return {str(each["name"]).lower(): str(each["version"]) for each in packages}


def _package_lock(text: str) -> dict[str, str]:
    packages = json.loads(text).get("packages") or {}
    own = {
        path.rpartition("node_modules/")[2]: each.get("version")
        for path, each in packages.items()
        if path.count("node_modules/") == 1
    }
    return _pinned({"packages": own}, "packages")


def _go(text: str) -> dict[str, str]:
    pinned = {path.lower(): version for path, version in _GO.findall(text)}
    return pinned | {path.rpartition("/")[2]: version for path, version in pinned.items()}


def _pinned(values: Mapping[str, Any], *tables: str) -> dict[str, str]:
    """Return the versions in tables of a manifest, by name."""
    pinned: dict[str, str] = {}
    for name, value in chain.from_iterable((values.get(each) or {}).items() for each in tables):
        written = value.get("version") if isinstance(value, dict) else value
        if match := _FIRST.search(str(written or "")):
            pinned[name.lower()] = match[1]
    return pinned


_READERS: Mapping[str, Callable[[str], dict[str, str]]] = {
    "pyproject.toml": _pyproject,
    "uv.lock": _lock,
    "poetry.lock": _lock,
    "Cargo.lock": _lock,
    "Cargo.toml": lambda text: _pinned(tomllib.loads(text), "dependencies", "dev-dependencies"),
    "package.json": lambda text: _pinned(json.loads(text), "dependencies", "devDependencies"),
    "package-lock.json": _package_lock,
    "go.mod": _go,
}
