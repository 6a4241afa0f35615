"""What happened in a part of a turn, by its signs: corrected, repaired, committed, found out."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from vault_index.journal import events, shell, tools, wording
from vault_index.journal.record import CONCEPTS
from vault_index.journal.turns import Call, Turn

_CORRECTION = re.compile(
    r"""\s*(?:(?:no|nope|nah|wrong|stop|wait|actually|hmm+,?\ no|not\ (?:that|quite|what|so|like))\b
    |(?:or|well|oh),?\ no\b|don'?t\b|do\ not\b|please\ (?:don'?t|do\ not)\b|never\b|instead\b|undo\b|revert\b
    |(?:that|this|it)(?:'?s|\ is|\ was)\ (?:wrong|not|incorrect|incomplete)\b|that\ (?:doesn'?t|isn'?t|won'?t)
    |why\ (?:did|are|do|would)\ you\b|you\ (?:should(?:\ not|n'?t)?|missed|forgot|did(?:\ not|n'?t)|are\ wrong)
    |i\ (?:said|meant|told|asked|don'?t\ (?:want|like)|do\ not\ want|wanted|would\ rather|changed)\b)""",
    re.IGNORECASE | re.VERBOSE,
)
_CORRECTS = re.compile(
    r"\bchanged my mind\b|\bI (?:don'?t|do not) want\b|\b(?:use|do) \S+(?: \S+){0,3} instead\b|"
    r"\bshould not (?:have|be)\b|\bshouldn'?t (?:have|be)\b|\bnot what I\b",
    re.IGNORECASE,
)
_CHOICE = re.compile(
    r"\b(?:let'?s (?:go with|do|use|keep|drop|stick)|go with|I(?:'d| would) (?:prefer|go|rather)|option [A-D1-4]\b"
    r"|the (?:first|second|third|former|latter)(?: one)?\b|we (?:decided|agreed)|prefer)",
    re.IGNORECASE,
)
_SUBJECTS = (
    ("bugfix", r"(?:fix|bugfix|hotfix|repair|correct|resolve|prevent|avoid)"),
    ("feature", r"(?:feat|feature|add|implement|introduce|support|allow|enable|create)"),
    (
        "refactor",
        r"(?:refactor|rename|move|extract|simplify|clean|reorgani[sz]e|split|deduplicate|remove dead)",
    ),
)
_REQUESTS = (
    (
        "bugfix",
        r"\b(?:fix|bug|broken|fails?|failing|error|crash\w*|wrong|doesn'?t work|not working|regression)\b",
    ),
    (
        "refactor",
        r"\b(?:refactor\w*|renam\w+|extract|simplif\w+|clean ?up|reorgani[sz]e|move .{1,40} (?:to|into)|split)\b",
    ),
    (
        "feature",
        r"\b(?:add|implement|create|build|support|introduce|new (?:command|option|flag|feature)|make it (?:possible|so))\b",
    ),
)
_CONCEPTS = (
    ("why-it-exists", r"\b(?:why (?:do|does|is|are|did|was|we)|the reason|exists? (?:because|to|for)|was (?:added|introduced) (?:to|because|for)|historically)\b"),
    ("gotcha", r"\b(?:gotcha|pitfall|caveat|beware|careful|silently|surprising\w*|unexpected\w*|turns out|subtle|footgun|misleading|counter-?intuitive)\b"),
    ("pattern", r"\b(?:(?:this|same|common|design|usual|existing) patterns?|conventions?|idiom\w*|best practice|same (?:approach|way) as)\b"),
    ("trade-off", r"\b(?:trade-?offs?|pros and cons|pros|cons|downsides?|drawbacks?|versus|alternatives?|option [AB12]\b)"),
)  # fmt: skip
_MUNDANE = re.compile(
    r"\s*(?:<tool_use_error>)?(?:Sibling tool call|Cancelled: parallel|File has not been read|Found \d+ matches"
    r"|String to replace|File has been modified since|The user doesn't want|\[Request interrupted"
    r"|File does not exist|EISDIR|This tool requires|InputValidationError|No changes to make)"
)
_CHATTER = re.compile(
    r"""(?:let\ me|let's|let\u2019s|i'?ll|i\u2019ll|i\ will|i'?m\ (?:going|now)|now\b|next\b|first,|great|perfect|good\b|excellent
    |ok(?:ay)?\b|sure|done\b|all\ (?:set|good|done|tests?\ pass)|you'?re\ (?:right|welcome|absolutely)|you\u2019re\ right
    |ah\b|oh\b|understood|thank|correct\b|exactly|agreed|one\ concern|absolutely|got\ it|thanks|sorry|apologies|i\ apologi|i\ (?:need|want|have|should|see\b|can\ see|understand|think\ i)
    |looking\ at|checking|running|here'?s|here\ (?:is|are)|here\u2019s|hmm|interesting|wait\b|actually,\ let|yes[.,!]?$|no[.,!]?$
    |time\ to|would\ you|want\ me|shall|should\ i|do\ you|what\ would|please|ready|alright|right\b|fair|nice|still\ |so\ let
    |i'?ve\ (?:read|looked|reviewed|gone|got)|(?:compil|read|go|add|updat|creat|implement|mov|start|fix|verify|test|build
    |apply|remov|search|digg|investigat|pull|fetch|mak|continu|proceed|writ|wir|examin|explor|reproduc)ing\b|both\ |two\ \w+s?\ landed
    |committed|pushed|fixed[.!]|updated[.!]|summary|the\ (?:build|tests?)\ pass)""",
    re.IGNORECASE | re.VERBOSE,
)  # fmt: skip
_CONCLUDES = re.compile(
    r"\b(?:because|since|root cause|caused? by|turns out|the (?:problem|issue|bug|reason|cause|fix|difference|answer|key)"
    r"|so that|therefore|means|instead of|must|never|always|only|requires?|needs?|fails?|failed|no longer|in short"
    r"|confirmed|the real|which is why|won'?t|cannot|can'?t|doesn'?t)\b",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Repair:
    """A check that failed, was followed by changes and passed."""

    failed: Call
    passed: Call


def is_done_edit(call: Call) -> bool:
    """Whether a call changed a file: neither refused nor failed."""
    return call.kind == tools.EDIT and call.is_done and not call.is_error


def is_change(call: Call) -> bool:
    """Whether a call changed a file of the work: not the agent's own plan."""
    own = ("/.claude/plans/", "/.claude/projects/")
    return is_done_edit(call) and not any(folder in path for path in files(call) for folder in own)


def failed(call: Call) -> bool:
    """Whether a command failed, by its status or, of a check behind a pipe, by what it printed."""
    if call.is_error:
        return not _MUNDANE.match(call.text)
    command = str(call.input.get("command") or "")
    return bool(call.text) and shell.is_check(command) and shell.says_failed(call.text)


def is_telling_error(call: Call) -> bool:
    """Whether a call that is no command failed in a way worth keeping."""
    return call.is_error and call.kind != tools.SHELL and not _MUNDANE.match(call.text)


def commits(call: Call) -> list[str]:
    """Return the subjects of the commits that a call made."""
    if call.kind != tools.SHELL or call.is_error or not call.is_done:
        return []
    return shell.subjects(str(call.input.get("command") or ""), call.text)


def files(call: Call) -> list[str]:
    """Return the paths of files that a call reads or changes."""
    if call.kind in (tools.EDIT, tools.READ):
        return tools.files_of(call.input)
    if call.kind == tools.SHELL:
        return shell.reads(str(call.input.get("command") or ""))
    return []


def repairs(calls: Sequence[Call]) -> list[Repair]:
    """Return the checks that failed and passed after a change, each with its last failure."""
    waiting: dict[str, tuple[Call, int]] = {}
    edits, result = 0, []
    for call in calls:
        edits += is_change(call)
        command = str(call.input.get("command") or "") if call.kind == tools.SHELL else ""
        if not command or not call.is_done or (call.status is None and not call.is_error):
            continue
        check = shell.same_as(command)
        if failed(call):
            if shell.is_check(command) or check not in waiting:
                waiting[check] = call, edits
        elif check in waiting:
            failure, edits_before = waiting.pop(check)
            if edits > edits_before:
                result.append(Repair(failure, call))
    return result


def is_correction(turn: Turn, place: int = 0) -> bool:
    """Whether a turn begins with the user correcting the agent, or refusing what it was about to do."""
    prompt = turn.prompt
    if prompt is None or place:
        return False
    if prompt.kind == events.REFUSAL:
        return True
    if prompt.kind not in events.TYPED or not turn.context:
        return False
    text = prompt.text[:400]
    if match := _CORRECTION.match(text):
        asks = wording.split_sentences(text)[0].endswith("?")
        return not asks or match[0].strip().lower().startswith(("no", "don", "why", "you", "or"))
    return bool(_CORRECTS.search(text))


def is_choice(turn: Turn) -> bool:
    """Whether the prompt chooses among what the agent offered."""
    prompt = turn.prompt
    if prompt is None or not turn.context:
        return False
    return prompt.kind == events.ANSWER or bool(_CHOICE.search(prompt.text[:200]))


def type_of(
    prompt: str, edits: Sequence[Call], subjects: Sequence[str],
    repaired: Sequence[Repair], corrected: bool,
) -> str:  # fmt: skip
    """Return the type of an observation. `corrected`: the user did, `subjects`: of its commits."""
    if repaired:
        return "bugfix"
    if corrected:
        return "decision"
    if subjects:
        return _first(_SUBJECTS, subjects[0].split(":")[0] if ":" in subjects[0] else subjects[0])
    if edits:
        return _first(_REQUESTS, prompt[:600], search=True)
    if prompt and len(prompt) < 300 and _CHOICE.search(prompt[:200]):
        return "decision"
    return "discovery"


def _first(types: Iterable[tuple[str, str]], text: str, *, search: bool = False) -> str:
    for type_, pattern in types:
        find = re.search if search else re.match
        if find(pattern if search else rf"\s*{pattern}\b", text, re.IGNORECASE):
            return type_
    return "change"


def concepts(prompt: str, narrative: str, type_: str, has_changed: bool) -> tuple[str, ...]:
    """Return the concepts of an observation, in the order of `record.CONCEPTS`."""
    result = set()
    if type_ == "discovery" and len(narrative) > 200:
        result.add("how-it-works")
    if has_changed:
        result.add("what-changed")
    if type_ == "bugfix":
        result.add("problem-solution")
    text = f"{prompt[:1000]}\n{narrative}"
    result |= {name for name, pattern in _CONCEPTS if re.search(pattern, text, re.IGNORECASE)}
    return tuple(name for name in CONCEPTS if name in result)


def conclusion(texts: Sequence[str]) -> str:
    """Return the sentence that says what came out: the first good one of the last long text."""
    for text in sorted(reversed(texts[-4:]), key=lambda text: len(text) < 120):
        for sentence in wording.sentences(text):
            if _is_statement(sentence, 24):
                return sentence
    return ""


def facts(
    turn: Turn, place: int, texts: Sequence[str], subjects: Sequence[str],
    repaired: Sequence[Repair], modified: Sequence[str],
) -> list[str]:  # fmt: skip
    """Return the single statements of a part of a turn that are worth finding on their own."""
    result = list(subjects)
    prompt = turn.prompt
    if prompt and place == 0 and (is_correction(turn) or is_choice(turn)):
        result.append(f"The user: {wording.one_line(prompt.text, 280)}")
    for repair in repaired:
        result.append(_repair(repair, modified))
    for call in turn.calls if place == 0 else ():
        if title := shell.pull_request(str(call.input.get("command") or "")):
            result.append(f"Pull request: {title}")
    result += [
        sentence
        for sentence in _conclusions(texts)
        if not any(subject in sentence for subject in subjects)
    ]
    return list(dict.fromkeys(result))


def _repair(repair: Repair, modified: Sequence[str]) -> str:
    command = wording.one_line(str(repair.failed.input.get("command") or ""), 80)
    said = error_line(repair.failed.text)
    by = f" after changes to {', '.join(modified[:3])}" if modified else ""
    return f"`{command}` failed ({wording.one_line(said, 120)}) and passed{by}"


def error_line(text: str) -> str:
    """Return the line of an output that says best what went wrong."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    lines = [line for line in lines if not re.fullmatch(r"Exit code \d+", line)]
    for line in lines:
        if re.search(
            r"\b(?:error|fatal|panic|exception|undefined|cannot|FAIL)\b", line, re.IGNORECASE
        ):
            return line
    return lines[0] if lines else ""


def _conclusions(texts: Sequence[str]) -> list[str]:
    """Return up to four sentences that conclude, of the texts that are longest, in their order."""
    longest = sorted(texts, key=len, reverse=True)[:3]
    chosen = []
    for text in texts:
        if text in longest and len(text) >= 120:
            good = [line for line in wording.sentences(text) if _is_statement(line, 40)]
            chosen += [line for line in good if _CONCLUDES.search(line)][:2] or good[:1]
    return chosen[:4]


def _is_statement(sentence: str, least: int) -> bool:
    """Whether a sentence states something: neither what comes next nor a courtesy nor a question."""
    if len(sentence) < least or sentence.endswith(("?", ":")) or _CHATTER.match(sentence):
        return False
    return sum(char.isalpha() for char in sentence) > len(sentence) // 2
