"""A section of ours in a text file of others, between two marker lines.

The first marker holds a hash of the section: one that somebody edited is reported, not overwritten.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from vault_index import files
from vault_index.errors import SettingsError, UnreadableError
from vault_index.lesson.file import hash_of

STAMP_CHARS = 12
MAX_BYTES = 4 * 1024 * 1024  # of a file of an agent


@dataclass(frozen=True)
class MarkedSection:
    """The two marker lines, in the comments of the file's language; `{stamp}` is the hash."""

    first: str  # its last line has the stamp
    last: str

    def put(self, file: Path, text: str) -> bool:
        """Write the section, at the end of a file that has none. False if it is there as it is.

        Raises SettingsError for a section that somebody edited, and leaves it alone.
        """
        before = read(file)
        newline = _newline(before or "")
        lines = [self.first.format(stamp=_stamp(text)), *text.splitlines(), self.last]
        section = newline.join(lines)
        if span := self._span(file, before or ""):
            after = (before or "")[: span[0]] + section + (before or "")[span[1] :]
        else:
            gap = newline * (1 if before.endswith("\n") else 2) if before else ""
            after = f"{before or ''}{gap}{section}{newline}"
        if after == before:
            return False
        write(file, after, before)
        return True

    def take_out(self, file: Path) -> bool:
        """Take the section out, and the file if it is all there is. False without one.

        Raises SettingsError for a section that somebody edited, and leaves it alone.
        """
        text = read(file)
        span = self._span(file, text or "")
        if text is None or span is None:
            return False
        newline = _newline(text)
        sides = text[: span[0]].rstrip("\r\n"), text[span[1] :].strip("\r\n")
        remaining = (2 * newline).join(side for side in sides if side)
        write(file, remaining + newline if remaining else None, text)
        return True

    def text_in(self, file: Path) -> str | None:
        text = read(file) or ""
        span = self._span(file, text, as_written=False)
        return None if span is None else self._inner(text[span[0] : span[1]])

    def _inner(self, section: str) -> str:
        return "\n".join(section.splitlines()[self.first.count("\n") + 1 : -1]) + "\n"

    def _span(self, file: Path, text: str, *, as_written: bool = True) -> tuple[int, int] | None:
        """Return its start and end. Raises SettingsError without a marker, or if not `as_written`."""
        opening, _, closing = self.first.partition("{stamp}")
        stamp = f"[0-9a-f]{{{STAMP_CHARS}}}"
        first = rf"(?m)^{re.escape(opening)}{stamp}{re.escape(closing)}(?=\r?$)"
        firsts = list(re.finditer(first, text))
        lasts = list(re.finditer(rf"(?m)^{re.escape(self.last)}(?=\r?$)", text))
        if not firsts and not lasts:
            return None
        if len(firsts) != 1 or len(lasts) != 1 or lasts[0].start() < firsts[0].end():
            why = f"{file}: the section of ours does not have its two marker lines"
            hint = f"remove what is left of it: {opening.splitlines()[-1].strip()} ..."
            raise SettingsError(why, hint)
        start, end = firsts[0].start(), lasts[0].end()
        if as_written and _stamp(self._inner(text[start:end])) not in firsts[0][0]:
            why = f"{file}: somebody edited the section of ours; it was left alone"
            hint = "remove it with its two marker lines, or keep it as it is"
            raise SettingsError(why, hint)
        return start, end


def _newline(text: str) -> str:
    return "\r\n" if "\r\n" in text else "\n"


def _stamp(text: str) -> str:
    return hash_of("\n".join(text.splitlines()))[:STAMP_CHARS]


def read(file: Path, form: str = "UTF-8") -> str | None:
    """Return the text of a file, with its line ends; None without one. Raises SettingsError."""
    if files.is_missing(file):
        return None
    try:
        return files.read_file(file, MAX_BYTES, follow=True).decode("utf-8")
    except UnicodeDecodeError:
        why = f"{file} is not {form}; it was left alone"
        raise SettingsError(why, "correct it first") from None
    except UnreadableError as error:
        hint = error.hint or "put an ordinary file in its place"
        raise SettingsError(f"{error.message}; it was left alone", hint) from None


def write(file: Path, text: str | None, before: str | None, mode: int = 0o644) -> None:
    """Replace the text that was read, through a link if the file is one; None removes the file.

    It keeps its permissions; `mode` is for a file that is new.
    """
    target = file.resolve()
    expected = None if before is None else before.encode()
    if text is None:
        files.remove_file(target, expected=expected or b"", within=target.parent)
        return
    with files.writing(target):
        target.parent.mkdir(parents=True, exist_ok=True)
    files.put_file(target, text.encode(), expected=expected, within=target.parent, mode=mode)
