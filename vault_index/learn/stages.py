"""The analysis by a language model: what was done, why, which patterns, what is worth keeping.

    what -> why -> patterns -> knowledge      four calls, each with the answers before it, or
    all                                       one call whose answer has the four parts

Each answer must fit its schema. One that does not is asked for once more, with the error; then the
analysis ends there. Nothing that a model says is kept before `gate` has seen it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from vault_index.config import Config
from vault_index.errors import ModelAnswerError, ModelCallError, SettingsError
from vault_index.learn import excerpt
from vault_index.learn.material import Entry, Material
from vault_index.lesson import parse
from vault_index.lesson.passages import RELATIONS, Parts
from vault_index.llm import Model, backend
from vault_index.model_http import is_this_machine
from vault_index.transcripts import events

WHAT, WHY, PATTERNS, KNOWLEDGE, ALL = "what", "why", "patterns", "knowledge", "all"
FOUR, ONE = (WHAT, WHY, PATTERNS, KNOWLEDGE), (ALL,)
TIMES = 2  # that a stage is asked, if its first answer does not fit
MIN_TOKENS = 6_000  # of a session for four stages: with less, their instructions take too much
MIN_CHARS = 1_000  # of material in a call, however small the budget is
MAX_ENTRIES = 20
_PROMPTS = Path(__file__).parent.parent / "prompts"
_SHARES = {WHAT: 0.4, WHY: 0.2, PATTERNS: 0.15, KNOWLEDGE: 0.25, ALL: 1.0}
_SECTIONS = {
    WHAT: (excerpt.PROMPTS, excerpt.DIFF, excerpt.NARRATIVE),
    WHY: (excerpt.TOLD, excerpt.PROMPTS, excerpt.NARRATIVE),
    PATTERNS: (excerpt.TOLD, excerpt.DIFF),
    KNOWLEDGE: (excerpt.TOLD, excerpt.PROMPTS, excerpt.DIFF, excerpt.NARRATIVE),
    ALL: (excerpt.TOLD, excerpt.PROMPTS, excerpt.DIFF, excerpt.NARRATIVE),
}
_ANSWER_SHARE = 1 / 24  # of the budget for an earlier answer; a later stage has up to three
_MAX_ANSWER_CHARS = 2_500
_AROUND_CHARS = 400  # of a call: marker, labels, the error of a first answer
_HEADING = re.compile(r"(?m)^#{1,2}(?= )")

Json = dict[str, Any]
Schema = Mapping[str, Any]

_TEXT: Schema = {"type": "string"}
_TEXTS: Schema = {"type": "array", "items": _TEXT}
CHANGE_TYPES = [
    *("feature", "bug_fix", "refactoring", "performance", "security", "configuration"),
    *("documentation", "test", "other"),
]


def _object(**properties: Schema) -> Schema:
    return {"type": "object", "properties": properties}


def _some(**properties: Schema) -> Schema:
    return {"type": "array", "items": _object(**properties)}


_ENTRY = {
    "type": {"type": "string", "enum": list(parse.TYPES)},
    **dict.fromkeys(("title", "summary", "explanation", "problem", "when", "when_not"), _TEXT),
    **dict.fromkeys(("pro", "con"), _TEXTS),
    "related": _some(kind={"type": "string", "enum": list(RELATIONS)}, name=_TEXT),
    "tags": _TEXTS,
    "category": _TEXT,
    "confidence": {"type": "integer"},
    **dict.fromkeys(("fires_on", "silent_on", "quotes"), _TEXTS),
}
_KEYS: dict[str, dict[str, Schema]] = {
    WHAT: {
        "summary": _TEXT,
        "files": _some(path=_TEXT, role=_TEXT),
        "change_type": {"type": "string", "enum": CHANGE_TYPES},
    },
    WHY: {"problem": _TEXT, **dict.fromkeys(("trade_offs", "alternatives", "principles"), _TEXTS)},
    PATTERNS: {
        "patterns": _some(name=_TEXT, category=_TEXT, description=_TEXT, applicability=_TEXT),
        **dict.fromkeys(("best_practices", "anti_patterns"), _TEXTS),
    },
    KNOWLEDGE: {"entries": _some(**_ENTRY)},
}
_KEYS[ALL] = {name: _object(**_KEYS[name]) for name in FOUR}


@dataclass(frozen=True, slots=True)
class Planned:
    """A call that is to be made. `chars` is all that it sends, at most; it may be made twice."""

    stage: str
    chars: int

    @property
    def tokens(self) -> int:
        """Return about how many tokens that is."""
        return -(-self.chars // excerpt.CHARS_A_TOKEN)


def names(config: Config, model: Model) -> tuple[str, ...]:
    """Return the stages of an analysis: as the settings say, else as suits the model.

    Raises SettingsError.
    """
    if config.learn.stages not in (0, 1, 4):
        raise SettingsError(f"learn.stages is {config.learn.stages}", "set it to 4, 1 or 0")
    if config.learn.stages:
        return ONE if config.learn.stages == 1 else FOUR
    return ONE if model.starts_slowly or config.learn.tokens < MIN_TOKENS else FOUR


def plan(material: Material, config: Config, stages: tuple[str, ...]) -> Plan:
    """Return the calls of an analysis, before it is made, and who gets them."""
    sizes = _sizes(config, stages)
    calls = []
    for number, stage in enumerate(stages):
        shown = excerpt.fit(material, sizes[stage], _SECTIONS[stage])
        before = number * _answer_chars(config)
        chars = len(shown) + before + _AROUND_CHARS + _fixed_chars(config, stage)
        calls.append(Planned(stage, chars))
    receiver, leaves = _receiver(config)
    return Plan(config.learn.model, receiver, leaves, tuple(calls))


def run(
    model: Model,
    material: Material,
    config: Config,
    stages: tuple[str, ...],
    on_stage: Callable[[int, int], None],
) -> list[Entry]:
    """Return the entries of an analysis, as the model made them.

    `on_stage` is called with how many stages are done, and of how many. Raises ModelCallError, whose
    message names the stage.
    """
    sizes, answers = _sizes(config, stages), dict[str, Json]()
    for number, stage in enumerate(stages):
        on_stage(number, len(stages))
        shown = excerpt.fit(material, sizes[stage], _SECTIONS[stage])
        answers[stage] = _asked(model, stage, _prompt(config, shown, answers), config)
    on_stage(len(stages), len(stages))
    last = answers[stages[-1]]
    knowledge = last[KNOWLEDGE] if stages == ONE else last
    return [_entry(values) for values in knowledge["entries"][:MAX_ENTRIES]]


def _asked(model: Model, stage: str, prompt: str, config: Config) -> Json:
    """Ask for a stage, once more if the answer does not fit. Raises ModelCallError."""
    problem = ""
    for _ in range(TIMES):
        again = (
            f"\n\nYour last answer could not be used: {problem}. Answer again." if problem else ""
        )
        try:
            answered = model.complete_json(_system(stage, config), prompt + again, _KEYS[stage])
            problem = _problem_of(stage, answered)
            if not problem:
                return answered
        except ModelAnswerError as error:
            problem = error.message
        except ModelCallError as error:
            raise type(error)(f"{stage}: {error.message}", error.hint) from None
    raise ModelAnswerError(f"{stage}: {problem}", "choose a larger model")


def _problem_of(stage: str, answered: Json) -> str:
    """Return why an answer that fits its schema says nothing, "" if it does. No entry is an answer."""
    what = answered.get(WHAT, answered) if stage in (WHAT, ALL) else {}
    if what and not what["summary"].strip():
        return "its summary is empty"
    why = answered.get(WHY, answered) if stage in (WHY, ALL) else {}
    return "its problem is empty" if why and not why["problem"].strip() else ""


def _prompt(config: Config, shown: str, answers: Mapping[str, Json]) -> str:
    parts = [events.MARKER]
    for stage, answered in answers.items():
        text = json.dumps(answered, ensure_ascii=False)[: _answer_chars(config) - 40]
        parts.append(f"The answer to the step {stage}:\n{excerpt.defused(text)}")
    return "\n\n".join([*parts, shown])


def _system(stage: str, config: Config) -> str:
    text = (_PROMPTS / f"learn_{stage}.md").read_text("utf-8")
    return text.replace("{most}", str(most(config)))


def most(config: Config) -> int:
    """Return how many entries of an analysis may become proposals."""
    return min(config.learn.most, MAX_ENTRIES)


def _fixed_chars(config: Config, stage: str) -> int:
    """Return the characters of a call's instructions and of its schema, which stands in the prompt."""
    schema = json.dumps(backend.schema_of(_KEYS[stage]))
    return len(_system(stage, config)) + len(schema)


def _answer_chars(config: Config) -> int:
    whole = config.learn.tokens * excerpt.CHARS_A_TOKEN
    return min(_MAX_ANSWER_CHARS, int(whole * _ANSWER_SHARE))


def _sizes(config: Config, stages: tuple[str, ...]) -> dict[str, int]:
    """Return the characters of material for each stage: the budget without all else that is sent."""
    room = config.learn.tokens * excerpt.CHARS_A_TOKEN
    room -= sum(_fixed_chars(config, stage) + _AROUND_CHARS for stage in stages)
    room -= sum(range(len(stages))) * _answer_chars(config)
    if room < MIN_CHARS * len(stages):
        least = -(-(MIN_CHARS * len(stages) - room) // excerpt.CHARS_A_TOKEN)
        hint = f"set it to {config.learn.tokens + least:,} or more"
        raise SettingsError(f"learn.tokens is {config.learn.tokens:,}, too few for a model", hint)
    return {stage: max(MIN_CHARS, int(room * _SHARES[stage])) for stage in stages}


def _entry(values: Json) -> Entry:
    """Return the entry of a model's answer. Headings in it cannot begin another lesson."""

    def text(name: str) -> str:
        return _HEADING.sub("###", str(values[name])).strip()

    def texts(name: str) -> tuple[str, ...]:
        return tuple(filter(None, (" ".join(each.split()) for each in values[name])))

    parts = Parts(
        summary=" ".join(text("summary").split()),
        explanation=text("explanation"),
        problem=text("problem"),
        when=text("when"),
        when_not=text("when_not"),
        pro=texts("pro"),
        con=texts("con"),
        related=tuple((each["kind"], " ".join(each["name"].split())) for each in values["related"]),
    )
    return Entry(
        type=values["type"],
        title=" ".join(values["title"].split()),
        parts=parts,
        category=values["category"].strip(),
        tags=texts("tags"),
        confidence=values["confidence"],
        fires_on=texts("fires_on"),
        silent_on=texts("silent_on"),
        quotes=tuple(quote.strip() for quote in values["quotes"] if quote.strip()),
    )


# What an analysis would send, and to whom, before anything is sent.

_HERE = ("", "0.0.0.0", "::")  # of a host that is not named, or listens everywhere


@dataclass(frozen=True, slots=True)
class Plan:
    """The calls of an analysis; none without a model. `receiver` is who gets them, in words."""

    model: str = ""
    receiver: str = ""
    leaves: bool = False  # this machine
    calls: tuple[Planned, ...] = ()

    def as_json(self) -> dict[str, Any]:
        """Return plain values."""
        return {
            "model": self.model,
            "receiver": self.receiver,
            "leaves": self.leaves,
            "stages": [
                {"stage": call.stage, "chars": call.chars, "tokens": call.tokens}
                for call in self.calls
            ],
            "chars": sum(call.chars for call in self.calls),
            "tokens": sum(call.tokens for call in self.calls),
        }

    def __str__(self) -> str:
        if not self.model:
            return "no model is asked: rules make drafts, and nothing leaves this machine"
        total = self.as_json()
        calls = f"{len(self.calls)} call{'' if len(self.calls) == 1 else 's'}"
        calls += ", each once more if its answer does not fit"
        size = (
            f"at most {total['chars']:,} characters, about {total['tokens']:,} tokens, in {calls}"
        )
        away = "leaves this machine" if self.leaves else "stays on this machine"
        return f"{size}, for {self.model}: {self.receiver}; it {away}"


def _receiver(config: Config) -> tuple[str, bool]:
    """Return who gets what is sent to a model, and whether that is another machine."""
    door, _, model = config.learn.model.partition(":")
    if door == "ollama":
        host = config.ollama_host if "//" in config.ollama_host else f"//{config.ollama_host}"
        name = urlsplit(host).hostname or ""
        cloud = model.endswith("-cloud") or ":cloud" in model
        away = cloud or not _is_here(name)
        return (f"Ollama at {name or 'localhost'}" + " and its cloud" * cloud), away
    if door == "openai":
        name = urlsplit(config.llm.openai_url).hostname or ""
        return f"the server {name or '(none is set)'}", not _is_here(name)
    if door == "claude":
        return "Anthropic, through your own claude", True
    return "Anthropic", True


def _is_here(host: str) -> bool:
    return host in _HERE or is_this_machine(host)
