"""Cut the material to what a language model is sent: the parts that teach most first, within a size.

    told        corrections, refusals, checks that failed and then passed
    prompts     what else the person asked
    diff        changed pieces of code, before those of data, documents and tests
    narrative   what the agent said

It is fenced and labelled as data. Lines that give an agent orders are left out: see `without_orders`.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from vault_index.check import pattern, prompt_injection
from vault_index.check.finding import ERROR
from vault_index.journal.redact import redact
from vault_index.learn.material import Material, Repair

CHARS_A_TOKEN = 4
OPEN, CLOSE = "<material>", "</material>"
TOLD, PROMPTS, DIFF, NARRATIVE = "told", "prompts", "diff", "narrative"
_SHARES: Mapping[str, float] = {TOLD: 0.25, PROMPTS: 0.12, DIFF: 0.5, NARRATIVE: 0.13}
_LABELS = {
    TOLD: "What the person corrected or refused, and checks that failed and then passed",
    PROMPTS: "What the person asked",
    DIFF: "Changes, as a diff",
    NARRATIVE: "What the agent said",
}
LEFT_OUT = "[left out: an order to an agent]"
MAX_TEXTS = 60  # prompts, repairs and subjects of commits that are looked at
MAX_BEFORE = 600  # characters of an answer before a prompt
_ROUNDS = 4
_PAGE_CHARS = 8_000
_SECONDS = 2.0  # of processor time to look for orders in a page
_FENCE = re.compile(r"<(/?)(?=material\s*>)", re.IGNORECASE)
_CUT = " [...] "
_FILE = re.compile(r"(?m)^(?=diff --git )")
_PLAIN_FILE = re.compile(r"(?m)^(?=--- [^\n]*\n\+\+\+ )")
_HUNK = re.compile(r"(?m)^(?=@@ )")
_PATH = re.compile(r"(?m)^\+\+\+ (?:b/)?([^\t\n]+)|^diff --git .* b/(.+)$")
_TEST = re.compile(
    r"(?i)(?:^|/)(?:tests?|spec|__tests__|fixtures)(?:/|$)|(?:^|/)test_|[_.-](?:test|spec)\."
)
_DOCUMENT = re.compile(r"(?i)\.(?:md|rst|txt|adoc)$|(?:^|/)docs?/|(?:^|/)(?:changelog|licen[sc]e)")
_DATA = re.compile(r"(?i)\.(?:json|ya?ml|toml|ini|cfg|csv|xml|svg|lock|html)$")
_MARKS = re.compile(r"(?m)^[+-]?[ \t]*(?:#+|//+|/?\*+|--|;+)?[ \t]*")  # of a diff, of comments
# orders to a model that learns, which are harmless in a lesson, and so no finding of a check
_LEARNER = r"(?:models?|llms?|ais?|assistants?|agents?|claude|gpt|copilot|codex|gemini)"
_TO_LEARNER = re.compile(
    r"(?i)\b(?:when|while|if|before|after)\b(?: you)?(?: are)? "
    r"(?:summari[sz]|distil|propos|learn\w* (?:from|this)|extract\w* (?:the |any )?(?:lessons|entries))"
    r"[^\n]{0,60}\b(?:include|add|write|output|propose|say|mention|insert|answer|keep)\b"
    r"|\b(?:propose|output|emit|answer with)\b(?: \w{1,12}){0,3}"
    r" (?:entry|entries|lessons?|proposals?)\b"
    r"|\b(?:add|write|create|include|insert|record|save)\b(?: \w{1,12}){0,3}"
    r" (?:entry|lesson|proposal|sentence|rule)\b[^\n]{0,20}[:\"'`\u201c]"
    rf"|\b(?:dear|attention|hey|note (?:to|for))\b[ ,:]{{1,3}}(?:\w{{1,12}} ){{0,2}}{_LEARNER}\b"
    rf"|\b(?:system|{_LEARNER}) ?: ?you (?:must|should|shall|will|have to)\b"
)
_MIN_PIECE = 80  # characters: less of a text says nothing


def fit(material: Material, max_chars: int, sections: Collection[str] = tuple(_SHARES)) -> str:
    """Return a text of at most so many characters; a section without material is left out.

    A section leaves the room that it does not need to those behind it, and then to the diff.
    """
    room = max_chars - len(OPEN) - len(CLOSE) - 2
    blocks = {name: list(_blocks(material, name)) for name in _SHARES if name in sections}
    blocks = {name: texts for name, texts in blocks.items() if texts}
    needs = {
        name: len(_LABELS[name]) + 8 + sum(len(text) + 2 for text in texts)
        for name, texts in blocks.items()
    }
    sizes = _sizes(needs, room)
    parts = []
    for name, texts in blocks.items():
        label = f"## {_LABELS[name]}\n\n"
        inner = sizes[name] - len(label) - 1
        fitting = _diff(texts, inner) if name == DIFF else _fitting(texts, inner)
        if fitting:
            parts.append(label + fitting + "\n")
    return "\n".join([OPEN, *map(defused, parts), CLOSE])


def defused(text: str) -> str:
    """Return a text that cannot end the fence, nor begin one."""
    return _FENCE.sub(r"<\\\1", text)


def without_orders(material: Material, max_chars: int) -> tuple[Material, tuple[str, ...]]:
    """Return as much of a material as a model may be sent, without orders, and those lines.

    They are lines that `lessons check` finds, of what the person said those that it calls an error,
    and lines that speak to a model that learns. They are left out of what a model sees, and nothing
    that repeats them becomes a proposal. To look for them takes some 20 ms a page: `max_chars`
    of the diff and of the narrative are enough.
    """
    orders: list[str] = []

    def clean(text: str, *, is_diff: bool = False, is_own: bool = False) -> str:
        text = _cut(text, max_chars) if len(text) > max_chars else text
        return _cleaned(text, orders, is_diff, is_own)

    prompts = tuple(
        replace(each, text=clean(each.text, is_own=True), answers=clean(each.answers[:MAX_BEFORE]))
        for each in material.prompts[-MAX_TEXTS:]
    )
    repairs = tuple(
        replace(
            each,
            failed=clean(each.failed),
            passed=clean(each.passed),
            change=clean(each.change, is_diff=True),
            conclusion=clean(each.conclusion),
        )
        for each in material.repairs[:MAX_TEXTS]
    )
    said = _last(material.narrative, max_chars)
    diff = _diff(_files(material.diff), max_chars)
    cleaned = replace(
        material,
        prompts=prompts,
        repairs=repairs,
        narrative=tuple(map(clean, said)),
        subjects=tuple(map(clean, material.subjects[:MAX_TEXTS])),
        diff=clean(diff, is_diff=True),
    )
    return cleaned, tuple(dict.fromkeys(orders))


def _last(texts: Sequence[str], room: int) -> list[str]:
    kept: list[str] = []
    for text in reversed(texts):
        if room <= 0:
            break
        kept.append(_cut(text, room))
        room -= len(text)
    return kept[::-1]


def _cleaned(text: str, orders: list[str], is_diff: bool, is_own: bool) -> str:
    """Return a text without secrets, once more, and without orders; what these are is added to a list."""
    return "".join(_page_cleaned(page, orders, is_diff, is_own) for page in _pages(redact(text)))


def _pages(text: str) -> Iterator[str]:
    """Yield a text in parts of whole lines: a rule may take long on one, and not on all."""
    while len(text) > _PAGE_CHARS:
        end = text.rfind("\n", 0, _PAGE_CHARS) + 1 or _PAGE_CHARS
        yield text[:end]
        text = text[end:]
    yield text


def _page_cleaned(text: str, orders: list[str], is_diff: bool, is_own: bool) -> str:
    for _ in range(_ROUNDS):
        form = _MARKS.sub("", text) if is_diff else text
        try:
            there = pattern.within(_SECONDS, prompt_injection.findings, "", form)
        except pattern.TooSlow:
            orders.append(text)
            return f"{LEFT_OUT}\n"
        numbers = {each.line for each in there if each.severity == ERROR or not is_own}
        if not is_own:
            for view in {form, prompt_injection.as_read(form)}:
                to_learner = _TO_LEARNER.finditer(view)
                numbers |= {view.count("\n", 0, match.start()) + 1 for match in to_learner}
        if not numbers:
            return text
        lines = text.split("\n")
        orders += [line for number, line in enumerate(lines, 1) if number in numbers]
        kept = [LEFT_OUT if number in numbers else line for number, line in enumerate(lines, 1)]
        text = "\n".join(kept)
    return text


def _blocks(material: Material, name: str) -> Iterator[str]:
    """Yield the texts of a section, those that teach most first."""
    if name == TOLD:
        for said in material.prompts:
            if said.is_correction or said.is_refusal:
                kind = "Refused a tool call" if said.is_refusal else "Corrected the agent"
                before = (
                    f"\n(the agent had said: {_cut(said.answers, 300)})" if said.answers else ""
                )
                yield f"{kind}: {said.text}{before}"
        yield from map(_repair, material.repairs)
    elif name == PROMPTS:
        yield from (
            f"- {said.text}"
            for said in material.prompts
            if not said.is_correction and not said.is_refusal
        )
        yield from (f"- commit: {subject}" for subject in material.subjects)
    elif name == DIFF:
        yield from _files(material.diff)
    else:
        yield from reversed(material.narrative)  # the end says what came of it


def _repair(repair: Repair) -> str:
    lines = [f"Failed, then passed: {repair.command}", f"failed with:\n{repair.failed}"]
    if repair.change:
        lines.append(f"changed in between ({', '.join(repair.files)}):\n{repair.change}")
    if repair.passed:
        lines.append(f"passed with:\n{repair.passed}")
    if repair.conclusion:
        lines.append(f"the agent concluded: {repair.conclusion}")
    return "\n".join(lines)


def _sizes(needs: Mapping[str, int], room: int) -> dict[str, int]:
    """Return how many characters each section has: its share, and what others leave."""
    whole = sum(_SHARES[name] for name in needs) or 1.0
    sizes = {name: min(need, int(room * _SHARES[name] / whole)) for name, need in needs.items()}
    for name in sorted(needs, key=lambda name: (name != TOLD, name != DIFF)):
        left = room - sum(sizes.values())
        sizes[name] += max(0, min(left, needs[name] - sizes[name]))
    return sizes


def _fitting(texts: Iterable[str], room: int) -> str:
    """Return as many texts as there is room for; the last may be cut in its middle."""
    kept: list[str] = []
    for text in texts:
        shown = _cut(text.strip(), room)
        if len(shown) < min(len(text.strip()), _MIN_PIECE):
            break
        kept.append(shown)
        room -= len(shown) + 2
    return "\n\n".join(kept)


def _cut(text: str, size: int) -> str:
    """Return the beginning and the end of a text that is longer than a size."""
    if len(text) <= size:
        return text
    size -= len(_CUT)
    if size < _MIN_PIECE:
        return ""
    return text[: 2 * size // 3] + _CUT + text[-(size // 3) :]


def _files(diff: str) -> list[str]:
    """Return the pieces of a diff that are of one file each, those of code first."""
    split = _FILE if _FILE.search(diff) else _PLAIN_FILE
    return sorted((text for text in split.split(diff) if text.strip()), key=_rank)


def _rank(of_file: str) -> int:
    match = _PATH.search(of_file)
    path = (match[1] or match[2]) if match else ""
    if _TEST.search(path):
        return 3
    if _DOCUMENT.search(path):
        return 2
    return 1 if _DATA.search(path) else 0


def _diff(of_files: list[str], room: int) -> str:
    """Return hunks of all files as far as there is room: of each its first, then of each its second."""
    split = [_HUNK.split(text.rstrip("\n") + "\n") for text in of_files]
    kept: list[list[str]] = [[] for _ in split]
    for rank in range(4):
        chosen = [number for number, text in enumerate(of_files) if _rank(text) == rank]
        deepest = max((len(split[number]) for number in chosen), default=0)
        for place in range(1, max(2, deepest)):
            for number in chosen:
                head, *hunks = split[number]
                hunk = hunks[place - 1] if place <= len(hunks) else ""
                text = (head if not kept[number] and place == 1 else "") + hunk
                if len(text) > room:
                    text = _whole_lines(text, room)
                if text:
                    kept[number].append(text)
                    room -= len(text)
    return "".join(text for of_file in kept for text in of_file).rstrip("\n")


def _whole_lines(text: str, room: int) -> str:
    if room < 2 * _MIN_PIECE:
        return ""
    return text[: text.rfind("\n", 0, room) + 1]
