"""Links in a markdown file that moves: they lead to the same files from its new place."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from urllib.parse import unquote

from vault_index.text.blocks import code_lines

_LINK = re.compile(
    r"(?:\]\(<?|^ {0,3}\[[^\]\n]+\]:\s*<?)(?P<target>[^)>#\s]+\.(?:md|mdc|markdown))(?=[)>#\s]|$)"
)
_CODE = re.compile(r"`[^`\n]*`")
_ADDRESS = re.compile(r"[a-z][a-z0-9+.-]*:|/", re.IGNORECASE)
_NOT_IN_A_LINK = re.compile(r"[\s()<>#%]")


def moved(data: bytes, old: Path, new: Path, places: Mapping[Path, Path]) -> bytes:
    """Return a file's content with links that lead, from `new`, where they led from `old`.

    `places` has the new place of each file that moves as well; paths are in full. A link to what does
    not move is changed if it leads somewhere in the repository now.
    """
    text = data.decode()
    lines = text.split("\n")
    written = []
    for line, is_code in zip(lines, code_lines(lines), strict=True):
        found = [] if is_code or ".m" not in line else list(_links(line))
        for link in reversed(found):  # from the end, so that the spans before it stay
            target = _moved_target(link["target"], old, new, places)
            line = line[: link.start("target")] + target + line[link.end("target") :]
        written.append(line)
    return "\n".join(written).encode()


def _links(line: str) -> Iterator[re.Match[str]]:
    return _LINK.finditer(_CODE.sub(lambda code: " " * len(code[0]), line))


def _moved_target(target: str, old: Path, new: Path, places: Mapping[Path, Path]) -> str:
    named = unquote(target)
    if _ADDRESS.match(named):
        return target
    led = Path(os.path.normpath(old.parent / named))
    file = places.get(led)
    if file is None and led.is_relative_to(_common(new, old)) and os.path.lexists(led):
        file = led
    if file is None:
        return target
    path = Path(os.path.relpath(file, new.parent)).as_posix()
    if path == named.removeprefix("./"):
        return target
    return _NOT_IN_A_LINK.sub(lambda odd: f"%{ord(odd[0]):02X}", path)


def _common(new: Path, old: Path) -> Path:
    """Return the top of the repository of both; elsewhere a relative link would lead out of it."""
    from vault_index import git

    top = git.top_of(new.parent)
    is_inside = top is not None and old.is_relative_to(top)
    return top if top and is_inside else new
