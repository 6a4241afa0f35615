"""The citations of an answer, checked while it is written: a number that was not returned is struck.

    "heap [1, 9]. See `a[7]`"  ->  "heap [1]. See `a[7]`"      where 1 to 3 were returned

A citation is a number in brackets, or several: [1], [1, 2], [1-3], [^1], 【1】, 【1†lines】. What is
passed on has each as `[1]`, alone. The address of `[1](address)` is dropped: only a source's own is
checked.
Brackets inside code, in a fence or between backticks of one line, are code.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable, Collection

_OPENING, _CLOSING = "[\uff3b\u3010", "]\uff3d\u3011"
_LENTICULAR = "\u3010"  # 【: what some models put around the number and lines of a source
_DASHES = "-\u2010\u2011\u2012\u2013\u2014\u2212"
_BESIDE = f" \t^,;\u3001\uff0c{_DASHES}"  # what a group may have beside numbers
_SEPARATORS = ",;\u3001\uff0c"  # between citations
_NOTE = "\u2020:"
_MARKS = " \t>-*+.)0123456789"  # what may be before a fence in its line
_GAP = "\u2026"  # in place of what is struck, where its neighbours would make something new
_PART = re.compile(rf"(\d+)(?:[{_DASHES}](\d+))?")
_BETWEEN = re.compile(r"[\s^,;\u3001\uff0c]+")
MAX_CODE_CHARS = 1_000  # of code between backticks
MAX_ADDRESS_CHARS = 2_000
MAX_NOTE_CHARS = 200
MAX_DIGITS = 6


class Citations:
    """Takes an answer in pieces and returns what of it may be shown. `cited` are numbers, in order.

    White space around the whole is dropped.
    """

    def __init__(self, numbers: Collection[int]) -> None:
        self.cited: list[int] = []
        self._numbers = sorted(numbers)
        self._step: Callable[[str], None] = self._text
        self._queue: deque[str] = deque()
        self._out: list[str] = []
        self._space = ""  # white space, and a comma after a citation, not passed on yet
        self._held: list[str] = []  # what is not decided yet
        self._kept: list[int] | None = None  # numbers of a group whose end is not decided yet
        self._run = ""  # backticks or tildes, as many as there are in a row
        self._mark = ""  # that the code around us ends with
        self._line: list[str] = []  # of a fence: the beginning of the line we are in
        self._is_empty = True  # nothing was passed on yet
        self._is_line_start = True
        self._is_escaped = False
        self._is_open = False  # the end of what was passed on could still become a citation
        self._last = ""  # character that was passed on
        self._is_cited = False  # it ends a citation

    def feed(self, piece: str) -> str:
        """Take a piece of an answer; return what is decided since the last."""
        self._queue.extend(piece)
        return self._work()

    def end(self) -> str:
        """Return the rest, after the last piece."""
        shown = self._work()
        while self._run or self._held or self._kept is not None:
            self._give_up()
            shown += self._work()
        shown += self._space.strip()
        self._space = ""
        return shown

    def _work(self) -> str:
        while self._queue:
            self._step(self._queue.popleft())
        shown, self._out = "".join(self._out), []
        return shown

    def _give_up(self) -> None:
        """Take what is held for text, as nothing comes that could end it."""
        if self._kept is not None:
            self._end_group("")
        elif self._step in (self._span, self._info) or self._run:
            self._not_code()
        else:
            self._plain("".join(self._held).replace("\n", ""))
            self._held, self._step = [], self._text

    # text

    def _text(self, char: str) -> None:
        if char in _OPENING:
            self._held, self._step = [char], self._group
        elif (char == "`" and not self._is_escaped) or (char == "~" and self._is_line_start):
            self._run, self._step = char, self._ticks
        else:
            self._is_escaped = char == "\\" and not self._is_escaped
            if char.isspace() or (char in _SEPARATORS and self._is_cited and not self._space):
                self._space += char
                self._is_line_start |= char == "\n"
            else:
                self._plain(char)

    def _plain(self, text: str) -> None:
        """Pass on text that is neither citation nor code."""
        for char in text:
            if char in _OPENING:
                self._is_open = True
            elif not (char.isdigit() or char in _BESIDE):
                self._is_open = False
            if char not in _MARKS:
                self._is_line_start = False
        self._pass_on(text)

    def _pass_on(self, text: str) -> None:
        if text:
            if "\n" in self._space:
                self._is_open = False
            self._out += ["" if self._is_empty else self._space, text]
            self._space, self._is_empty, self._last = "", False, text[-1]
            self._is_cited = False

    # citations

    def _group(self, char: str) -> None:
        if char in _CLOSING:
            numbers = self._numbers_of("".join(self._held[1:]))
            if numbers is None:
                self._not_a_group(char)
            else:
                self._held, self._kept, self._step = [], numbers, self._after
        elif char.isdecimal() or char in _BESIDE:
            self._held.append(char)
        elif char in _NOTE and self._held[0] == _LENTICULAR and len(self._held) > 1:
            self._held += ["\n", char]  # a line end, which no group has, where the note begins
            self._step = self._note
        else:
            self._not_a_group(char)

    def _note(self, char: str) -> None:
        """Pass over what follows the number in 【1†lines】."""
        inner = "".join(self._held)
        if char in _CLOSING:
            numbers = self._numbers_of(inner[1:].partition("\n")[0])
            self._held = []
            self._kept, self._step = numbers or [], self._after
        elif char == "\n" or len(inner) > MAX_NOTE_CHARS:
            self._held = list(inner.replace("\n", ""))
            self._not_a_group(char)
        else:
            self._held.append(char)

    def _not_a_group(self, char: str) -> None:
        self._plain("".join(self._held))
        self._held, self._step, self._is_escaped = [], self._text, False
        self._queue.appendleft(char)

    def _numbers_of(self, inner: str) -> list[int] | None:
        """Return the returned numbers that a group names; None where it is no group of numbers."""
        parts = [part for part in _BETWEEN.split(inner) if part]
        matches = [_PART.fullmatch(part) for part in parts]
        kept: list[int] = []
        for match in matches:
            if match is None:
                return None
            least = _number(match[1])
            most = _number(match[2]) if match[2] else least
            kept += [number for number in self._numbers if least <= number <= most]
        return list(dict.fromkeys(kept)) if matches else None

    def _after(self, char: str) -> None:
        """Decide whether an address follows a citation, `[1](address)`."""
        if char == "(":
            self._held, self._step = [char], self._address
        else:
            self._end_group(char)

    def _address(self, char: str) -> None:
        if char == ")":
            self._held = []
            self._end_group("")
        elif char in f"{_OPENING}(`" or char.isspace() or len(self._held) > MAX_ADDRESS_CHARS:
            self._end_group(char)
        else:
            self._held.append(char)

    def _end_group(self, char: str) -> None:
        """Pass on the citations of a group that were returned, or none; then `char` is looked at."""
        kept, self._kept = self._kept or [], None
        rest, self._held = "".join(self._held), []
        self._step, self._is_escaped = self._text, False
        if kept:
            self.cited += [number for number in kept if number not in self.cited]
            self._plain("".join(f"[{number}]" for number in kept))
            self._is_cited = True
        else:
            self._strike(f"{rest}{char}"[:1])
        self._plain(rest)
        if char:
            self._queue.appendleft(char)

    def _strike(self, following: str) -> None:
        if self._is_open or (self._last == "`" and not self._space):
            self._plain(_GAP)
        elif not following.isalnum() and "\n" not in self._space:
            self._space = ""  # "the heap [9]." -> "the heap.", "[1], [9]." -> "[1]."

    # code

    def _ticks(self, char: str) -> None:
        """Count the backticks or tildes that may open code."""
        if char == self._run[0]:
            self._run += char
            return
        self._mark, self._run, self._held = self._run, "", []
        if self._is_line_start and len(self._mark) >= 3:
            self._step = self._info
        elif self._mark[0] == "`":
            self._step = self._span
        else:
            self._plain(self._mark)
            self._step = self._text
        self._queue.appendleft(char)

    def _info(self, char: str) -> None:
        """Read the rest of a line that may open a fence."""
        if char == "`" and self._mark[0] == "`":  # no fence has one there
            self._queue.extendleft(reversed([*self._held, char]))
            self._held, self._step = [], self._span
        elif char == "\n":
            self._pass_on(f"{self._mark}{''.join(self._held)}{char}")
            self._held, self._line, self._step = [], [], self._fence
        else:
            self._held.append(char)

    def _fence(self, char: str) -> None:
        self._pass_on(char)
        if char != "\n":
            if len(self._line) < MAX_CODE_CHARS:
                self._line.append(char)
            return
        line, self._line = "".join(self._line).strip(" \t\r>"), []
        if len(line) >= len(self._mark) and not line.strip(self._mark[0]):
            self._step, self._is_line_start, self._is_escaped = self._text, True, False
            self._is_open = False

    def _span(self, char: str) -> None:
        """Hold what may be code, until backticks end it or its line ends."""
        if char == "`":
            self._run += char
            return
        if len(self._run) == len(self._mark):
            self._pass_on("".join([self._mark, *self._held, self._run]))
            self._held, self._run, self._step = [], "", self._text
            self._is_open = self._is_line_start = self._is_escaped = False
            self._queue.appendleft(char)
            return
        self._held += [*self._run, char]
        self._run = ""
        if char == "\n" or len(self._held) > MAX_CODE_CHARS:
            self._not_code()

    def _not_code(self) -> None:
        """Take what looked like the beginning of code for text."""
        if self._step == self._ticks:
            self._plain(self._run)
        elif self._step == self._span and len(self._run) == len(self._mark):
            self._pass_on("".join([self._mark, *self._held, self._run]))
            self._held = []
        elif self._step == self._info:  # the text ends in the line that opens a fence
            self._pass_on("".join([self._mark, *self._held]))
            self._held = []
        else:
            self._plain(self._mark)
            self._queue.extendleft(reversed([*self._held, *self._run]))
            self._held = []
        self._run, self._step, self._is_escaped = "", self._text, False


def check(text: str, numbers: Collection[int]) -> tuple[str, list[int]]:
    """Return a whole answer without citations of other numbers, and those that it cites, in order."""
    citations = Citations(numbers)
    checked = citations.feed(text) + citations.end()
    return checked, citations.cited


def _number(digits: str) -> int:
    return int(digits) if len(digits) <= MAX_DIGITS else 10**MAX_DIGITS
