"""A session as one text in the order of time: what the person said, what the agent did and concluded.

    PERSON      words of the person, at most 1,500 characters, cut in their middle
    AGENT       what the agent said, without lines that only announce the next step
    RAN         a command, 300
    FAILED      a command or another call that failed, was refused or stopped by a hook, whether
                something passed later or not, with the first and last lines of its output, 450
    EDIT        a changed piece of a file, 250 before and 350 after
    NEW FILE    its name and first 400
    COMMIT      the message of one, where commits are learned from; their diff comes as EDIT

Over a budget, routine goes first and the person's words last, of equals the oldest: see `fit`. It is
fenced as data, and lines that give an agent orders are left out: see `without_orders`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from vault_index.text import blocks, failure
from vault_index.transcripts import events, vocabulary
from vault_index.transcripts.moments import (
    AGENT,
    CHANGES,
    EDIT,
    FAILED,
    NEW_FILE,
    PERSON,
    RAN,
    REFUSED,
    Moment,
)

COMMIT = "COMMIT"
KINDS = (PERSON, AGENT, RAN, FAILED, EDIT, NEW_FILE, COMMIT)
CHARS_A_TOKEN = 4
OPEN, CLOSE = "<material>", "</material>"
LEFT_OUT = "[left out: an order to an agent]"
REFUSAL = "The person refused it."
MAX_PERSON, MAX_COMMAND, MAX_OUTPUT = 1_500, 300, 450
MAX_BEFORE, MAX_AFTER, MAX_NEW_FILE = 250, 350, 400
MAX_TEXT = 20_000  # characters of a moment: of a longer one the two ends
_ELSEWHERE = ("/tmp/", "/var/", "/private/", "/dev/")  # of no project
_BLANK = re.compile(r"\n\s*\n")
_FENCE = re.compile(r"<(/?)(?=material\s*>)", re.IGNORECASE)
_DASH = re.compile(r"\s(?:-|\u2013|\u2014)\s")
_MIN_REST = 30  # characters behind a courtesy that say something
_CUT_OFF = (":", "...", "\u2026")  # "Now I need to look at the key files:", and then a call
_LABEL = re.compile(rf"(?m)^(?:{'|'.join(KINDS)}): ?")


def of_session(
    moments: Iterable[Moment], is_wanted: Callable[[str], bool] = lambda _path: True
) -> Iterator[Moment]:
    """Yield the moments worth learning from: no calls that only look, no unwanted changes."""
    for each in moments:
        if each.kind == PERSON and each.origin == events.PLAN:  # the agent wrote it
            yield replace(each, kind=AGENT)
        elif each.kind == PERSON:
            sign = "!" if each.origin == events.SHELL_COMMAND else ""
            text = f"{sign if each.origin in events.TYPED else '(a program) '}{each.text}"
            corrects = each.is_correction and each.origin != events.REFUSAL
            yield replace(each, text=text, is_correction=corrects)
        elif each.kind in CHANGES:
            is_elsewhere = each.about.startswith(_ELSEWHERE) or "/.claude/" in f"/{each.about}"
            yield from [each] if is_wanted(each.about) and not is_elsewhere else []
        elif each.kind == RAN:
            yield from [] if each.in_subagent else [replace(each, text="")]
        elif each.kind in (AGENT, FAILED, REFUSED):
            yield each


_HEADER = re.compile(r"diff --git |--- (?:a/|/dev/null)|\+\+\+ |@@ ")
_NAMES = re.compile(r"\+\+\+ (?:b/)?(?!/dev/null)([^\t]+)")
_ASIDE = re.compile(  # files of tests, documents and data
    r"(?i)(?:^|/)(?:tests?|spec|__tests__|fixtures|docs?)(?:/|$)|(?:^|/)(?:test_|changelog|licen[sc]e)"
    r"|[_.-](?:test|spec)\.|\.(?:md|rst|txt|adoc|json|ya?ml|toml|ini|cfg|csv|xml|svg|lock|html)$"
)


def moments_of_diff(text: str) -> Iterator[Moment]:
    """Yield the changes of a unified diff, in pieces that need no cut."""
    path, lines, part = "", list[str](), 0
    for line in [*text.splitlines(), "+++ "]:
        is_header = bool(_HEADER.match(line))
        if lines and (is_header or sum(map(len, lines)) + len(line) > MAX_BEFORE):
            yield Moment(EDIT, "\n".join(lines), path, bool(_ASIDE.search(path)), part)
            lines, part = [], part + 1
        if match := _NAMES.match(line):
            path, part = match[1], 0
        elif line[:1] in ("+", "-") and not is_header:
            lines.append(line)


class _TimelinePiece(NamedTuple):
    """A moment, or a line of what the agent said. `worth`: the lowest goes first."""

    position: int  # of its moment
    label: str  # that its moment begins with
    text: str
    worth: int
    part: int = 0

    @property
    def size(self) -> int:
        return len(self.label) + len(self.text) + 1


ROUTINE, CHANGED, SAID, CHECKED, CONCLUDED, BROKEN, TYPED = range(7)
_WORTH = {
    **{PERSON: TYPED, COMMIT: TYPED, FAILED: BROKEN, REFUSED: CHECKED, RAN: CHECKED},
    **dict.fromkeys(CHANGES, CHANGED),
}
_PERSON_SHARE, _FAILED_SHARE = 0.5, 0.35  # of the room, above which such texts are cut shorter
_SCALES = (1.0, 0.7, 0.5, 0.35, 0.25, 0.15)


def fit(moments: Sequence[Moment], max_chars: int) -> str:
    """Return the text of moments in at most so many characters.

    Over that, long texts of the person and of failures become shorter, then pieces are left out:
    routine and repeated failures, changes, what the agent said, checks and refusals, what it concluded,
    failures, at last the person's words.
    """
    room = max_chars - len(OPEN) - len(CLOSE) - 2
    scale = {PERSON: 1.0, FAILED: 1.0}
    for kind, share in ((PERSON, _PERSON_SHARE), (FAILED, _FAILED_SHARE)):
        for scale[kind] in _SCALES:
            shown = (_shown(each, scale[kind]) for each in moments if _label(each) == kind)
            if sum(map(len, shown)) <= share * room:
                break
    pieces = [
        piece
        for position, each in enumerate(_with_repeats(moments))
        for piece in _pieces(position, each, scale)
    ]
    over = sum(piece.size for piece in pieces) - room
    left_out = set[int]()
    for index, piece in sorted(enumerate(pieces), key=lambda pair: (pair[1].worth, -pair[1].part)):
        if over <= 0:
            break
        left_out.add(index)
        over -= piece.size
    lines, last = [OPEN], -1
    for piece in (piece for index, piece in enumerate(pieces) if index not in left_out):
        lines.append(piece.text if piece.position == last else f"{piece.label}{piece.text}")
        last = piece.position
    return "\n".join([*lines, CLOSE])


def plain(text: str) -> str:
    """Return a text that `fit` made without its labels: quotes are looked for in it."""
    return without_labels(text.removeprefix(OPEN).removesuffix(CLOSE))


def without_labels(text: str) -> str:
    """Return a text without the labels that begin its lines."""
    return _LABEL.sub("", text)


def defused(text: str) -> str:
    """Return a text that cannot end the fence nor begin one, and that speaks in nobody's name."""
    return _LABEL.sub(lambda label: f"\\{label[0]}", _FENCE.sub(r"<\\\1", text))


def _with_repeats(moments: Iterable[Moment]) -> Iterator[Moment]:
    """Yield moments; a failure that was there before is routine."""
    earlier = set[tuple[str, ...]]()
    for each in moments:
        if each.kind == FAILED:
            same = tuple(map(failure.normalise, failure.read(each.about, each.text).lines))
            yield replace(each, is_routine=each.is_routine or same in earlier)
            earlier.add(same)
        else:
            yield each


def _label(moment: Moment) -> str:
    return FAILED if moment.kind == REFUSED else moment.kind


def _pieces(position: int, moment: Moment, scale: Mapping[str, float]) -> Iterator[_TimelinePiece]:
    label = f"{_label(moment)}: "
    if moment.kind == AGENT:
        for line, worth in _telling_lines(moment.text):
            yield _TimelinePiece(position, label, defused(line), worth)
    else:
        worth = ROUTINE if moment.is_routine else _WORTH[moment.kind]
        shown = defused(_shown(moment, scale.get(_label(moment), 1.0)))
        yield _TimelinePiece(position, label, shown, worth, moment.part)


def _shown(moment: Moment, scale: float) -> str:
    about = blocks.ends(" ".join(moment.about.split()), MAX_COMMAND)
    if moment.kind in (PERSON, COMMIT):
        return blocks.ends(_BLANK.sub("\n", moment.text), int(MAX_PERSON * scale))
    if moment.kind == FAILED:
        return f"{about}\n{failure.excerpt(moment.about, moment.text, int(MAX_OUTPUT * scale))}"
    if moment.kind == REFUSED:
        wanted = f"{REFUSAL}\n{moment.text}".strip()
        return f"{about}\n{failure.excerpt(moment.about, wanted, int(MAX_OUTPUT * scale))}"
    if moment.kind == NEW_FILE:
        return f"{about}\n{blocks.ends(moment.text, MAX_NEW_FILE)}"
    if moment.kind == EDIT:
        sides = {"-": MAX_BEFORE, "+": MAX_AFTER}
        lines = moment.text.splitlines()
        texts = ["\n".join(line for line in lines if line[:1] == sign) for sign in sides]
        shown = filter(None, map(blocks.ends, texts, sides.values()))
        return "\n".join([about, *shown])
    return about


def _telling_lines(text: str) -> Iterator[tuple[str, int]]:
    """Yield the lines of an agent's text, without announcements, each with its worth."""
    is_code = False
    for line in text.splitlines():
        if line.lstrip().startswith("```"):
            is_code = not is_code
        elif is_code:
            yield line, CHANGED
        elif statement := " ".join(filter(_says_something, blocks.split(line))):
            concludes = vocabulary.concludes(statement) and not statement.startswith("|")
            yield statement, CONCLUDED if concludes else SAID


def _says_something(sentence: str) -> bool:
    if not any(map(str.isalnum, sentence)):
        return False
    announces = vocabulary.is_chatter(sentence)
    if not announces or (vocabulary.concludes(sentence) and not sentence.endswith(_CUT_OFF)):
        return True
    rest = _DASH.split(sentence, 1)[1:]  # "You're right - it is the cache that ..."
    return any(len(each) >= _MIN_REST and not vocabulary.is_chatter(each) for each in rest)
