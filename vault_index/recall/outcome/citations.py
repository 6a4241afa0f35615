"""What of a repository a lesson cites: files, names of its code, versions of what it depends on."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

_CODE = re.compile(
    r"^(`{3,}|~{3,})(?![`~]).*?(?:^\1[`~]*[ \t]*$|\Z)|(?<!`)(`{1,3})[^`\n]+\2(?!`)",
    re.MULTILINE | re.DOTALL,
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
    """What a lesson cites. A version is (name in lower case, version as written)."""

    paths: frozenset[str] = frozenset()
    names: frozenset[str] = frozenset()
    versions: frozenset[tuple[str, str]] = frozenset()

    def __bool__(self) -> bool:
        return bool(self.paths or self.names or self.versions)


def of(text: str) -> Cited:
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
        return _of_requirements
    return _READERS.get(name)


_FIRST = re.compile(r"v?(\d+(?:\.\d+)+)")
_REQUIREMENT = re.compile(
    r"\s*([A-Za-z][\w.-]*)(?:\[[^\]]*\])?\s*(?:[=~>^]=?=?)\s*v?(\d+(?:\.\d+)+)"
)
_GO = re.compile(r"^\s*(?:require\s+)?([\w.-]+\.[\w./-]+)\s+v(\d+(?:\.\d+)+)", re.MULTILINE)


def _of_requirements(text: str) -> dict[str, str]:
    matches = (_REQUIREMENT.match(line) for line in text.splitlines())
    return {match[1].lower(): match[2] for match in matches if match}


def _of_pyproject(text: str) -> dict[str, str]:
    values = tomllib.loads(text)
    project = values.get("project") or {}
    lists = [
        project.get("dependencies") or [],
        *(project.get("optional-dependencies") or {}).values(),
    ]
    listed = _of_requirements("\n".join(str(line) for each in lists for line in each))
    return listed | _of_table(((values.get("tool") or {}).get("poetry") or {}).get("dependencies"))


def _of_lock(text: str) -> dict[str, str]:
    packages = tomllib.loads(text).get("package") or []
    return {
        str(each["name"]).lower(): str(each["version"]) for each in packages if "version" in each
    }


def _of_cargo(text: str) -> dict[str, str]:
    values = tomllib.loads(text)
    return _of_table(values.get("dependencies")) | _of_table(values.get("dev-dependencies"))


def _of_package(text: str) -> dict[str, str]:
    values = json.loads(text)
    return _of_table(values.get("dependencies")) | _of_table(values.get("devDependencies"))


def _of_package_lock(text: str) -> dict[str, str]:
    packages = json.loads(text).get("packages") or {}
    installed = {
        path.rpartition("node_modules/")[2]: each.get("version")
        for path, each in packages.items()
        if path.count("node_modules/") == 1
    }
    return _of_table(installed)


def _of_go(text: str) -> dict[str, str]:
    pinned = {path.lower(): version for path, version in _GO.findall(text)}
    return pinned | {path.rpartition("/")[2]: version for path, version in pinned.items()}


def _of_table(table: Mapping[str, Any] | None) -> dict[str, str]:
    pinned: dict[str, str] = {}
    for name, value in (table or {}).items():
        written = value.get("version") if isinstance(value, dict) else value
        if match := _FIRST.search(str(written or "")):
            pinned[name.lower()] = match[1]
    return pinned


_READERS: Mapping[str, Callable[[str], dict[str, str]]] = {
    "pyproject.toml": _of_pyproject,
    "uv.lock": _of_lock,
    "poetry.lock": _of_lock,
    "Cargo.lock": _of_lock,
    "Cargo.toml": _of_cargo,
    "package.json": _of_package,
    "package-lock.json": _of_package_lock,
    "go.mod": _of_go,
}
