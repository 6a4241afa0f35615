"""Anchors: the code that a lesson is about, compared at delivery with the day it was confirmed.

    anchors: ["store/upload.py#retry@3f2a91c0", "Makefile"]

names a file from the top of the vault's repository, a definition or heading in it, and the hash that the
region had when the lesson was accepted or confirmed. A region is a definition with all that is indented
below it, or a section of markdown; without a name it is the file. A lesson whose region changed says so
in its line. Hooks leave out one whose region is gone. `stale` lists both.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING

from vault_index import files, git
from vault_index.errors import VaultError
from vault_index.lesson.parse import Anchor, anchor_of

if TYPE_CHECKING:
    from vault_index.retrieval.hit import Hit
    from vault_index.vault import Vault

KEY = "anchors"  # of a lesson's frontmatter
MAX_ANCHORS = 5  # of a lesson; others are not looked at
MAX_PROPOSED = 2
MAX_BYTES = 128 * 1024  # of a file; of a longer one only the beginning counts
MAX_LINE = 1000  # characters of a line that may begin a region
SAME, CHANGED, GONE, NEW = "unchanged", "changed", "gone", "not confirmed"
_DEFINES = (
    r"(?:[\w@]+\s+)*?(?:def|class|function|func|fn|type|struct|interface|enum|trait|impl|const|let"
    r"|var|module|proc)\s+(?:\([^)\n]*\)\s*)?"
)
_CLOSES = re.compile(r"[\]})]|end\b")
_HEADING = re.compile(r"(#+)[ \t]+(\S.*)")
_NAME = re.compile(rf"^[-+ ]?\s*{_DEFINES}([A-Za-z_$][\w$]{{2,}})")
_PATH = re.compile(r"\+\+\+ b/([^\t\n]+)")
_HUNK = re.compile(r"@@ [^@\n]* @@ ?(.*)")


def read(texts: Iterable[str]) -> list[Anchor]:
    """Return the anchors that texts of a lesson spell, as many as count."""
    return [each for each in map(anchor_of, texts) if each][:MAX_ANCHORS]


def top_of(vault: Vault) -> Path:
    """Return the folder that anchors begin at."""
    return git.top_of(vault.root) or vault.root


def state(top: Path, anchor: Anchor) -> str:
    """Return SAME, CHANGED, GONE, or NEW where nobody confirmed it."""
    now = hash_of(top, anchor)
    if not now:
        return GONE
    return NEW if not anchor.hash else SAME if anchor.hash == now else CHANGED


def hash_of(top: Path, anchor: Anchor) -> str:
    """Return the hash of a region as it is now, whatever its line ends; "" where it is gone."""
    try:
        files.refuse_links(top / anchor.path, top)
        return hash_in(files.read_if_any(top / anchor.path, MAX_BYTES) or b"", anchor.name)
    except (VaultError, OSError, ValueError):
        return ""


def hash_in(data: bytes, name: str) -> str:
    """Return the hash of a region of a file, "" if the file has no such region."""
    lines = region(data[:MAX_BYTES].decode("utf-8", "replace").splitlines(), name)
    plain = "\n".join(line.rstrip() for line in lines).strip("\n")
    return blake2b(plain.encode(), digest_size=4).hexdigest() if plain else ""


def region(lines: Sequence[str], name: str) -> Sequence[str]:
    """Return the lines of a named definition or section; all lines without a name, [] if missing."""
    if not name:
        return lines
    last = re.escape(name.rpartition(".")[2])
    defines = re.compile(rf"(?P<indent>\s*)(?:{_DEFINES}{last}\b|{last}\s*(?:\([^;]*\)\s*\{{|=|:))")
    word, slug = name.rpartition(".")[2], _slug(name)
    for number, line in enumerate(lines):
        if len(line) > MAX_LINE:
            continue
        heading = _HEADING.match(line) if line[:1] == "#" else None
        if heading and _slug(heading[2]) == slug:
            return _section(lines, number, len(heading[1]))
        if word in line and (match := defines.match(line)):
            return _indented(lines, number, len(match["indent"]))
    return []


def _section(lines: Sequence[str], start: int, level: int) -> Sequence[str]:
    for end in range(start + 1, len(lines)):
        heading = _HEADING.match(lines[end])
        if heading and len(heading[1]) <= level:
            return lines[start:end]
    return lines[start:]


def _indented(lines: Sequence[str], start: int, indent: int) -> Sequence[str]:
    for end in range(start + 1, len(lines)):
        line = lines[end].strip()
        is_deeper = not line or len(lines[end]) - len(lines[end].lstrip()) > indent
        closes = _CLOSES.match(line)
        if not is_deeper and not (closes and line.endswith((":", "{"))):
            return lines[start : end + bool(closes)]
    return lines[start:]


def _slug(text: str) -> str:
    return re.sub(r"[^\w]+", "-", text.lower()).strip("-")


def only_there(vault: Vault, hits: Iterable[Hit]) -> list[Hit]:
    """Drop hits whose code is gone, and mark anchors that changed since the lesson was confirmed."""
    kept, top = [], None
    for hit in hits:
        states: list[tuple[str, str]] = []
        if hit.anchors:
            top = top or top_of(vault)
            states = [(state(top, each), each.shown) for each in read(hit.anchors)]
        if not any(each == GONE for each, _ in states):
            changed = ", ".join(shown for each, shown in states if each == CHANGED)
            kept.append(replace(hit, changed=changed) if changed else hit)
    return kept


def hashed(vault: Vault, anchors: Iterable[Anchor]) -> list[str]:
    """Return anchors with their current hashes; an anchor whose region is gone is unchanged."""
    top = top_of(vault)
    return [str(replace(each, hash=hash_of(top, each) or each.hash)) for each in anchors]


def proposed(diff: str, text: str) -> tuple[str, ...]:
    """Return anchors for a lesson's text: definitions that a diff changed and that it names."""
    changed: dict[str, list[str]] = {}  # path -> definitions that its hunks are in or change
    names = list[str]()
    for line in diff.splitlines():
        if match := _PATH.fullmatch(line):
            names = changed.setdefault(match[1], [])
            continue
        hunk = _HUNK.match(line)
        name = _NAME.match(hunk[1] if hunk else line if line[:1] in "+-" else "")
        names += [name[1]] if name and not line.startswith("-") else []
    anchors = []
    for path, names in changed.items():
        named = [name for name in names if re.search(rf"\b{re.escape(name)}\b", text)]
        is_named = path in text or f"`{path.rpartition('/')[2]}`" in text
        anchors += [f"{path}#{name}" for name in named] or ([path] if is_named else [])
    return tuple(dict.fromkeys(anchors))[:MAX_PROPOSED]
