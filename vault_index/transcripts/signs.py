"""Signs of what happened in a part of a turn: it was corrected, repaired, committed, found out."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from vault_index.transcripts import events, tools, vocabulary
from vault_index.transcripts.turns import Call, Turn

CONCEPTS = (
    *("how-it-works", "why-it-exists", "what-changed", "problem-solution", "gotcha"),
    *("pattern", "trade-off"),
)
MIN_EXPLANATION = 120  # characters of an answer that explains how something works
DISCOVERY = "discovery"
GO_ON = 20  # characters; after an interruption a shorter prompt ("continue") corrects nothing
PROSE = (".md", ".rst", ".txt", ".adoc")
_EXIT_CODE = re.compile(r"Exit code \d+")
_WRONG = re.compile(r"\b(?:error|fatal|panic|exception|undefined|cannot|FAIL)\b", re.IGNORECASE)
_ABSENT = re.compile(r"\b(?:not found|no such|denied|failed|unable|refused)\b", re.IGNORECASE)
MIN_CONCLUSION = 80  # and of a text whose sentences may be facts


@dataclass(frozen=True, slots=True)
class Repair:
    """A check that failed, was followed by changes and passed."""

    failed: Call
    passed: Call


def is_done_edit(call: Call) -> bool:
    """Whether a call changed a file: neither refused nor failed."""
    return call.kind == tools.EDIT and call.is_done and not call.is_error


def is_change(call: Call) -> bool:
    """Whether a call changed something of the work: a file, not the agent's own plan."""
    if call.kind == tools.SHELL:
        return call.is_done and not call.is_error and tools.is_change(call.command)
    own = ("/.claude/plans/", "/.claude/projects/")
    return is_done_edit(call) and not any(folder in path for path in files(call) for folder in own)


def failed(call: Call) -> bool:
    """Whether a command failed, by its status or, of a check behind a pipe, by what it printed."""
    if call.is_error:
        return not vocabulary.is_mundane_error(call.text)
    return bool(call.text) and tools.is_check(call.command) and tools.says_failed(call.text)


def is_telling_error(call: Call) -> bool:
    """Whether a call, not a command, failed in a way worth keeping."""
    return call.is_error and call.kind != tools.SHELL and not vocabulary.is_mundane_error(call.text)


def commits(call: Call) -> list[str]:
    """Return the subjects of the commits that a call made."""
    if call.is_error or not call.is_done:
        return []
    return tools.subjects(call.command, call.text)


def files(call: Call) -> list[str]:
    """Return the paths of files that a call reads or changes."""
    if call.kind in (tools.EDIT, tools.READ):
        return tools.files_of(call.input)
    return tools.reads(call.command)


def repairs(calls: Sequence[Call]) -> list[Repair]:
    """Return the checks that failed and passed after a change, each with its last failure."""
    waiting: dict[str, tuple[Call, int]] = {}
    edits, result = 0, []
    for call in calls:
        edits += is_change(call)
        if not call.command or not call.is_done or (call.status is None and not call.is_error):
            continue
        check = tools.same_as(call.command)
        if failed(call):
            if tools.is_check(call.command) or check not in waiting:
                waiting[check] = call, edits
        elif check in waiting:
            failure, edits_before = waiting.pop(check)
            if edits > edits_before:
                result.append(Repair(failure, call))
    return result


def undone(calls: Sequence[Call]) -> list[str]:
    """Return the files in which the agent took a change of its own back."""
    changes: set[tuple[str, str, str]] = set()
    taken_back = []
    for call in filter(is_done_edit, calls):
        for edit in call.edits:
            if (edit.path, edit.new, edit.old) in changes:
                taken_back.append(edit.path)
            if edit.old:
                changes.add((edit.path, edit.old, edit.new))
    return list(dict.fromkeys(taken_back))


def is_correction(turn: Turn, place: int = 0) -> bool:
    """Whether a turn begins with the user correcting the agent, or refusing what it was about to do."""
    prompt = turn.prompt
    if prompt is None or place:
        return False
    return prompt.kind == events.REFUSAL or corrects(
        *(prompt.text, turn.context, prompt.kind), is_interruption=turn.is_interruption
    )


def corrects(prompt: str, answers: str, origin: str, *, is_interruption: bool = False) -> bool:
    """Whether a typed prompt says that what the agent had said, or was doing, is wrong."""
    if origin not in events.TYPED or not answers:
        return False
    return vocabulary.corrects(prompt) or (is_interruption and len(prompt) > GO_ON)


def is_choice(turn: Turn) -> bool:
    """Whether the prompt chooses among what the agent offered."""
    prompt = turn.prompt
    if prompt is None or prompt.kind not in events.TYPED or not turn.context:
        return False
    return prompt.kind == events.ANSWER or vocabulary.chooses(prompt.text)


def type_of(
    prompt: str, edits: Sequence[Call], subjects: Sequence[str], repaired: bool, corrected: bool
) -> str:
    """Return the type of an observation of a turn with this `prompt`.

    `corrected`: the user did, `subjects`: of its commits.
    """
    if repaired:
        return "bugfix"
    if corrected:
        return "decision"
    if subjects:
        return vocabulary.type_of_subject(subjects[0])
    if edits:
        paths = [path for call in edits for path in files(call)]
        only_prose = paths and all(path.endswith(PROSE) for path in paths)
        return "change" if only_prose else vocabulary.type_of_request(prompt)
    return "decision" if vocabulary.chooses(prompt) else DISCOVERY


def concepts(
    prompt: str, narrative: str, type_: str, *, has_changed: bool, has_undone: bool
) -> tuple[str, ...]:
    """Return the concepts of an observation, in the order of CONCEPTS."""
    named = vocabulary.concepts(f"{prompt[:1000]}\n{narrative}")
    also = {
        "how-it-works": type_ == DISCOVERY and len(narrative) >= MIN_EXPLANATION,
        "what-changed": has_changed,
        "problem-solution": type_ == "bugfix",
        "gotcha": has_undone,
    }
    return tuple(name for name in CONCEPTS if name in named or also.get(name))


def conclusion(texts: Sequence[str]) -> str:
    """Return the sentence that says what came out: the first good one of the last long text."""
    for text in sorted(texts[:-5:-1], key=lambda text: len(text) < 120):
        for sentence in vocabulary.sentences(text):
            if _is_statement(sentence, 24):
                return sentence
    return ""


def facts(
    turn: Turn, place: int, texts: Sequence[str], subjects: Sequence[str],
    repaired: Sequence[Repair], modified: Sequence[str],
) -> list[str]:  # fmt: skip
    """Return the single statements of a part of a turn that are worth finding on their own."""
    result = list(subjects)
    if turn.prompt and place == 0 and (is_correction(turn) or is_choice(turn)):
        result.append(f"The user: {vocabulary.one_line(turn.prompt.text, 280)}")
    result += [_repair(repair, modified) for repair in repaired]
    titles = [tools.pull_request(call.command) for call in turn.calls] if place == 0 else []
    result += [f"Pull request: {title}" for title in titles if title]
    result += [
        sentence
        for sentence in _conclusions(texts)
        if not any(subject in sentence for subject in subjects)
    ]
    return list(dict.fromkeys(result))


def _repair(repair: Repair, modified: Sequence[str]) -> str:
    command = vocabulary.one_line(repair.failed.command, 80)
    said = error_line(repair.failed.text)
    by = f" after changes to {', '.join(modified[:3])}" if modified else ""
    return f"`{command}` failed ({vocabulary.one_line(said, 120)}) and passed{by}"


def has_error(text: str) -> bool:
    """Whether a text names an error."""
    return bool(_WRONG.search(text) or _ABSENT.search(text))


def error_line(text: str) -> str:
    """Return the line of an output that says best what went wrong."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    lines = [line for line in lines if not _EXIT_CODE.fullmatch(line)] or [""]
    return next(filter(_WRONG.search, lines), lines[0])


def _conclusions(texts: Sequence[str]) -> list[str]:
    """Return up to four sentences that conclude, of the texts that are longest, in their order."""
    longest = sorted(texts, key=len, reverse=True)[:3]
    chosen = []
    for text in texts:
        if text in longest and len(text) >= MIN_CONCLUSION:
            good = [line for line in vocabulary.sentences(text) if _is_statement(line, 40)]
            chosen += [line for line in good if vocabulary.concludes(line)][:2] or good[:1]
    return chosen[:4]


def _is_statement(sentence: str, least: int) -> bool:
    """Whether a sentence states something: neither what comes next nor a courtesy nor a question."""
    if len(sentence) < least or sentence[0] in "{[" or sentence.endswith(("?", ":")):
        return False
    if vocabulary.is_chatter(sentence):
        return False
    return sum(map(str.isalpha, sentence)) > len(sentence) // 2
