"""Entries without a model: a correction, a rule that somebody stated, a failure and what ended it.

Few: a session that taught nothing has none, and what a colleague will meet again comes first.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from vault_index.learn.by_rule import about, failures, stated, title
from vault_index.learn.by_rule.failures import Failure
from vault_index.learn.by_rule.stated import Statement
from vault_index.learn.material import Entry, Material, Said
from vault_index.lesson.passages import Parts
from vault_index.transcripts import vocabulary

MOST = 3  # entries of a session
LEAST_LINE = 20  # characters of what the agent had said
MAX_SUMMARY, MAX_CODE, MAX_OUTPUT = 500, 1_600, 900  # characters
_STRUCTURE = re.compile(
    r"\b(?:architecture|module|package|layer|interface|schema|separate|folder|directory|protocol"
    r"|branch(?:es)?|repo|types?)\b",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class _Candidate:
    points: float
    entry: Entry


def entries(material: Material) -> list[Entry]:
    """Return what a session taught, the best first, at most three; each with its evidence."""
    texts = material.texts
    statements = stated.statements(material)
    told = frozenset(each.number for each in statements)
    made = [_of_statement(material, each, told) for each in statements]
    made += [_of_failure(material, each, told) for each in failures.failures(material)]
    there = sorted((each for each in made if each), key=lambda each: -each.points)
    chosen: list[Entry] = []
    for candidate in there:
        entry = candidate.entry
        is_quoted = all(each and any(each in text for text in texts) for each in entry.quotes)
        if entry.quotes and is_quoted and not any(_is_like(entry, other) for other in chosen):
            chosen.append(entry)
    return chosen[:MOST]


def _is_like(entry: Entry, other: Entry) -> bool:
    """Whether two entries say the same, by their words."""
    mine = about.words(f"{entry.title} {entry.parts.summary}")
    others = about.words(f"{other.title} {other.parts.summary}")
    return len(mine & others) > 0.5 * max(1, min(len(mine), len(others)))


def _of_statement(
    material: Material, statement: Statement, told: frozenset[int]
) -> _Candidate | None:
    """Return the entry of what a person stated: the rule, what it answered, what was done then."""
    said, text = statement.said, vocabulary.one_line(statement.text, MAX_SUMMARY)
    named = title.of(statement.text)
    if not named:
        return None
    problem = _problem(said)
    then = _next_words(material, statement.number)
    explanation = "\n\n".join(
        filter(None, [_quoted(said.text, statement.text), then, _code(said.change)])
    )
    fires = about.fires_on(material, statement.number, f"{text} {problem}", told)
    if not fires:
        return None
    entry = Entry(
        type=_type(statement),
        title=named,
        parts=Parts(_sentence(title.reworded(text)), explanation, problem),
        category=about.category(said.files),
        tags=about.tags(said.files, said.did, title.names(statement.text)),
        confidence=3 if statement.strength == 2 or statement.points >= 5.5 else 2,
        fires_on=fires,
        silent_on=about.silent_on(material, text, fires),
        quotes=(vocabulary.verbatim(statement.text, [said.text]),),
        by_rule=True,
    )  # fmt: skip
    return _Candidate(statement.points, entry)


def _of_failure(material: Material, failure: Failure, told: frozenset[int]) -> _Candidate | None:
    """Return the entry of a failure: what it printed, why it was, what was changed, what passed."""
    repair = failure.repair
    named = title.of(failure.cause) if failure.cause else ""
    if not named and repair:
        named = _title_of_repair(failure)
    if not named:
        return None
    said = material.prompts[failure.number] if 0 <= failure.number < len(material.prompts) else None
    reported = _reported(said.text) if said else ""
    problem = (
        f"`{vocabulary.one_line(repair.command, 120)}` failed:\n\n{_fenced(repair.failed)}"
        if repair
        else reported
    )
    change = repair.change if repair else said.change if said else ""
    passed = f"Then it passed:\n\n{_fenced(repair.passed)}" if repair and repair.passed else ""
    summary = vocabulary.one_line(failure.cause, MAX_SUMMARY) or _sentence(
        f"{named}. {_what_passed(change)}"
    )
    explanation = "\n\n".join(filter(None, [_code(change), passed]))
    files = repair.files if repair else said.files if said else ()
    fires = about.fires_on(
        material, failure.number, f"{summary} {reported}", told - {failure.number}
    )
    if not fires:
        return None
    quotes = [vocabulary.verbatim(failure.cause, material.narrative)] if failure.cause else []
    if repair and (error := failures.error_of(repair)):
        quotes.append(error)
    entry = Entry(
        type="bug_fix" if repair or files or failures.is_report(said) else "architecture",
        title=named,
        parts=Parts(_sentence(title.reworded(summary)), explanation, problem),
        category=about.category(files),
        tags=about.tags(files, [repair.command] if repair else [], title.names(summary)),
        confidence=3 if failure.cause and (repair or failure.points >= 5.5) else 2,
        fires_on=fires,
        silent_on=about.silent_on(material, summary, fires),
        quotes=tuple(quotes),
        by_rule=True,
    )  # fmt: skip
    return _Candidate(failure.points, entry)


def _type(statement: Statement) -> str:
    if statement.strength == 0 and _STRUCTURE.search(statement.text):
        return "architecture"
    return "project_rule"


def _title_of_repair(failure: Failure) -> str:
    """Return `just fmt` fails: prettier: command not found, as far as it is short."""
    repair = failure.repair
    assert repair
    command = failures.short_command(repair.command)
    error = re.sub(r"^(?:\w+: ){0,2}|^[!*#\-\s]+", "", failures.error_of(repair))
    error = re.sub(
        r"\[[^\]]*\]|\([^)]*\)"
        r"|https?://\S+",
        lambda m: m[0] if "declined" in m[0] else "",
        error,
    )
    words = " ".join(error.split()).split(" ")
    room = title.MOST - len(command.split()) - 1
    return (
        f"`{command}` fails: {' '.join(words).strip(' .:')}"
        if 0 < len(words) <= room + 2 and words[0]
        else ""
    )


def _what_passed(change: str) -> str:
    """Return which command did what the one that failed did not, or which files it took."""
    ran = [line[2:] for line in change.splitlines() if line.startswith("$ ")]
    return f"After this it passed: `{vocabulary.one_line(ran[-1], 160)}`." if ran else ""


def _problem(said: Said) -> str:
    """Return what the agent had said or done when it was corrected."""
    if not (said.is_correction or said.is_refusal or said.answers):
        return ""
    lines = [line for line, _ in vocabulary.plain_lines(said.answers) if len(line) > LEAST_LINE]
    spoke = f"The agent had said: {vocabulary.tail(' '.join(lines[-2:]), 400)}" if lines else ""
    if said.is_refusal and said.did:
        return "\n\n".join(
            filter(None, [f"The user refused `{vocabulary.one_line(said.did[-1], 160)}`.", spoke])
        )
    return spoke


def _next_words(material: Material, number: int) -> str:
    """Return what the agent said first after a prompt."""
    said = material.prompts[number]
    end = (
        material.prompts[number + 1].first
        if number + 1 < len(material.prompts)
        else len(material.narrative)
    )
    texts = material.narrative[said.first : end]
    for text in (*texts[-1:], *texts[:1]):
        lines = [
            line
            for line in vocabulary.sentences(text)
            if len(line) > 30 and not line.endswith((":", "?"))
        ]
        if lines:
            return f"What the agent then said: {vocabulary.one_line(' '.join(lines[:2]), 400)}"
    return ""


def _reported(prompt: str) -> str:
    """Return what a person reported, within a bound."""
    return f"Reported as:\n\n{_fenced(vocabulary.head(prompt, MAX_OUTPUT))}"


def _quoted(prompt: str, sentence: str) -> str:
    """Return the prompt around a statement as a quotation, if it says more than that."""
    text = " ".join(vocabulary.head(prompt, 700).split())
    return f"> {text}" if len(text) > len(sentence) + 20 else ""


def _code(change: str) -> str:
    return (
        f"What was changed:\n\n{_fenced(vocabulary.head(change, MAX_CODE), 'diff')}"
        if change
        else ""
    )


def _fenced(text: str, language: str = "") -> str:
    text = vocabulary.head(text, MAX_CODE)
    fence = "```"
    while fence in text:
        fence += "`"
    return f"{fence}{language}\n{text}\n{fence}"


def _sentence(text: str) -> str:
    """Return a text that begins and ends as a sentence."""
    text = text.strip()
    if text.split(" ")[0].replace("'", "").isalpha():
        text = text[:1].upper() + text[1:]
    has_end = text.endswith((".", "!", "?", "\u3002", "`")) or not text[-1:].isascii()
    return text if has_end else f"{text}."
