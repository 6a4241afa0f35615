"""The analysis by a language model: a session in, entries out.

    entries                              one call: the default for every model that fills a schema
    what -> why -> patterns -> entries   four, each with the answers before it: for smaller models

Each answer must fit its schema. One that does not is asked for once more, with the error; then the
analysis ends there. Nothing that a model says is kept before `gate` has seen it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from vault_index.config import Config
from vault_index.errors import ModelAnswerError, ModelCallError, SettingsError
from vault_index.features import LearnTable
from vault_index.learn import timeline
from vault_index.learn.material import LearnedLesson, Material
from vault_index.learn.timeline import CHARS_A_TOKEN
from vault_index.lesson import parse
from vault_index.lesson.category import DEFAULT_CONFIDENCE, offered
from vault_index.lesson.passages import Parts, relation
from vault_index.llm import backend
from vault_index.llm.metered import Model
from vault_index.model_http import is_this_machine
from vault_index.text import blocks
from vault_index.text.words import count
from vault_index.transcripts import events

WHAT, WHY, PATTERNS, ENTRIES = "what", "why", "patterns", "entries"
FOUR, ONE = (WHAT, WHY, PATTERNS, ENTRIES), (ENTRIES,)
TIMES = 2  # that a stage is asked, if its first answer does not fit
MIN_CHARS = 1_000  # of material in a call, however small the budget is
MIN_ENTRIES, MAX_GROWN, MAX_ENTRIES = 3, 6, 20  # of a session: of a short, a long, by the settings
CHARS_AN_ENTRY = 12_000  # of a timeline that make another entry
_PROMPTS = Path(__file__).parent.parent / "prompts"
_SHARES = {WHAT: 0.2, WHY: 0.15, PATTERNS: 0.1, ENTRIES: 0.55}  # of the material
_MAX_ANSWER = 1_500  # characters of an earlier answer
_MAX_REQUEST = 3_000  # characters of what the request says of project, vault and language
_AROUND_CHARS, _AGAIN_CHARS = 250, 200  # of a call: marker and labels; the error of a first answer
_HEADING = re.compile(r"(?m)^#{1,2}(?= )")

Json = dict[str, Any]
Schema = Mapping[str, Any]
Note = Callable[[str], None]


def string(description: str = "") -> Schema:
    """Return the JSON schema of a text."""
    return {"type": "string", **({"description": description} if description else {})}


def strings(description: str) -> Schema:
    """Return the JSON schema of a list of texts."""
    return {"type": "array", "items": {"type": "string"}, "description": description}


def objects(**properties: Schema) -> Schema:
    """Return the JSON schema of a list of objects with these properties."""
    return {"type": "array", "items": {"type": "object", "properties": properties}}


_ENTRY: dict[str, Schema] = {
    "type": {
        "type": "string",
        "enum": list(parse.TYPES),
        "description": "code_pattern: a way to write code here; bug_fix: a failure with cause and cure;"
        " architecture: how parts work together; project_rule: what the team or the person wants",
    },
    "title": string("the claim itself in 5 to 10 words"),
    "summary": string("one or two sentences that help without the rest"),
    "explanation": string("cause and solution, a short piece of code in a fence where code says it best"),
    "problem": string("how it shows itself: the error, the symptom, or an empty text"),
    "when": string("when to apply it"),
    "when_not": string("when not to"),
    "tags": strings("up to 5 single words"),
    "category": string("what it is about, not the tool at hand: one of the vault's with lessons about the"
                       " same, else a new path"),
    "confidence": {"type": "integer", "description": "1, a guess, to 5, shown or said by PERSON"},
    "prompts": strings("two or three prompts that a colleague with this problem would type, who has"
                       " not seen this session"),
    "quotes": strings("one to three passages that prove it, character by character from the material,"
                     " each at least five words"),
}  # fmt: skip
_KEYS: dict[str, dict[str, Schema]] = {
    WHAT: {
        "summary": string("what was done and what it does now, in two to four sentences"),
        "files": objects(
            path=string(), role=string("in the project"), change=string("what is new")
        ),
    },
    WHY: {
        "problem": string("what was wrong or wanted, with its cause"),
        "reasons": strings("causes, decisions and rules, above all those that PERSON stated"),
        "trade_offs": strings("what was given up for what"),
        "alternatives": strings("what was considered or tried and not taken, and why"),
    },
    PATTERNS: {
        "patterns": objects(
            name=string("a way of doing things that is particular to this project"),
            applicability=string("where it applies, and where not"),
        ),
        "practices": strings("to follow or to avoid here"),
    },
    ENTRIES: {"entries": objects(**_ENTRY)},
}


@dataclass(frozen=True, slots=True)
class Request:
    """All that a model is told beside the session itself.

    `categories` are the vault's, each with the title of one of its lessons, "" without any; `lessons`
    are the titles of those that are about the same.
    """

    project: str = ""
    date: str = ""
    language: str = "English"
    categories: Mapping[str, str] = field(default_factory=dict)
    lessons: Sequence[str] = ()

    def __str__(self) -> str:
        lines = {
            "Project": self.project,
            "Date": self.date,
            "Language of the session, to write in": self.language,
            "Categories of the vault (with a lesson of each)": offered(self.categories),
            "Lessons that the vault has nearby": "; ".join(self.lessons),
        }
        shown = "\n".join(f"{name}: {value}" for name, value in lines.items() if value)
        return timeline.defused(blocks.ends(shown, _MAX_REQUEST))


@dataclass(frozen=True, slots=True)
class Planned:
    """A call that is to be made. `text` is all that it sends, as far as it is known before."""

    stage: str
    chars: int  # at most; it may be made twice
    text: str

    @property
    def tokens(self) -> int:
        return -(-self.chars // CHARS_A_TOKEN)


def names(config: Config) -> tuple[str, ...]:
    """Return the stages of an analysis. Raises SettingsError."""
    if config[LearnTable].stages not in (0, 1, 4):
        raise SettingsError(f"learn.stages is {config[LearnTable].stages}", "set it to 1 or 4")
    return FOUR if config[LearnTable].stages == 4 else ONE


def plan(material: Material, config: Config, request: Request) -> CallPlan:
    """Return the calls of an analysis, before it is made, and who gets them. Raises SettingsError."""
    stages, calls = names(config), []
    for number, stage in enumerate(stages):
        answers = {each: {"answer": f"(that of the step {each})"} for each in stages[:number]}
        question = _asked_for(material, config, request, stage, answers)
        system = _system(stage, material, config)
        text = f"{system}\n\n{backend.with_schema(question, _KEYS[stage])}"
        chars = len(text) + number * _MAX_ANSWER + _AGAIN_CHARS
        calls.append(Planned(stage, chars, text))
    host, leaves = receiver(config)
    return CallPlan(config[LearnTable].model, host, leaves, tuple(calls))


def run(
    model: Model,
    material: Material,
    config: Config,
    request: Request,
    on_stage: Callable[[int, int], None],
    note: Note = lambda _line: None,
) -> list[LearnedLesson]:
    """Return the entries of an analysis, as the model made them.

    `on_stage` is called with how many stages are done, and of how many, `note` with a line for people.
    Raises ModelCallError, whose message names the stage.
    """
    stages, answers = names(config), dict[str, Json]()
    for number, stage in enumerate(stages):
        on_stage(number, len(stages))
        prompt = _asked_for(material, config, request, stage, answers)
        system = _system(stage, material, config)
        answers[stage] = asked(model, stage, system, prompt, _KEYS[stage], note)
    on_stage(len(stages), len(stages))
    entries = answers[ENTRIES]["entries"][:MAX_ENTRIES]
    return [replace(entry_of(values), background=_background(answers)) for values in entries]


def max_entries(config: Config, material: Material) -> int:
    """Return the most entries of an analysis that may become proposals: more of a long session."""
    if config[LearnTable].max_entries:
        return min(config[LearnTable].max_entries, MAX_ENTRIES)
    chars = sum(len(each.text) for each in material.moments)
    return min(MIN_ENTRIES + chars // CHARS_AN_ENTRY, MAX_GROWN)


def shown(material: Material, config: Config, request: Request, stage: str = ENTRIES) -> str:
    """Return the timeline that a stage is sent."""
    return timeline.fit(material.moments, _size(material, config, request, stage))


def instructed(material: Material, config: Config, request: Request) -> str:
    """Return the instructions and material of a stage for entries, without the form of the answer."""
    sent = shown(material, config, request)
    return "\n\n".join((_system(ENTRIES, material, config), str(request), sent))


def asked(
    model: Model,
    stage: str,
    system: str,
    prompt: str,
    keys: Mapping[str, Schema],
    note: Note = lambda _line: None,
) -> Json:
    """Ask for a stage, once more if the answer does not fit. Raises ModelCallError.

    If the second does not fit either, its parts that do are taken, and `note` gets why not all.
    """
    problem = again = ""
    fitting: Mapping[str, Any] | None = None
    for _ in range(TIMES):
        try:
            return model.complete_json(system, prompt + again, keys)
        except ModelAnswerError as error:
            problem, fitting = error.message, error.fitting
            again = f"\n\nYour last answer could not be used: {problem}. Answer again."
        except ModelCallError as error:
            raise type(error)(f"{stage}: {error.message}", error.hint) from None
    if fitting is not None:
        note(f"{stage}: the parts of the answer that fit are taken: {problem}")
        return dict(fitting)
    raise ModelAnswerError(f"{stage}: {problem}", "choose a larger model, or set learn.stages to 4")


def _asked_for(
    material: Material, config: Config, request: Request, stage: str, answers: Mapping[str, Json]
) -> str:
    parts = [events.MARKER, str(request)]
    for step, answered in answers.items():
        text = json.dumps(answered, ensure_ascii=False)[: _MAX_ANSWER - 40]
        parts.append(f"The answer to the step {step}:\n{timeline.defused(text)}")
    return "\n\n".join([*parts, shown(material, config, request, stage)])


def _system(stage: str, material: Material, config: Config) -> str:
    names = ("learn", f"learn_{stage}")
    text = "\n".join((_PROMPTS / f"{name}.md").read_text("utf-8") for name in names)
    worth = (_PROMPTS / "learn_worth.md").read_text("utf-8").strip()
    text = text.replace("{worth}", worth)
    return text.replace("{max_entries}", str(max_entries(config, material)))


def _size(material: Material, config: Config, request: Request, stage: str) -> int:
    stages = names(config)
    room = config[LearnTable].tokens * CHARS_A_TOKEN - sum(range(len(stages))) * _MAX_ANSWER
    for each in stages:
        schema = len(backend.with_schema("", _KEYS[each]))
        around = schema + len(str(request)) + _AROUND_CHARS + _AGAIN_CHARS
        room -= len(_system(each, material, config)) + around
    if room < MIN_CHARS * len(stages):
        least = -(-(MIN_CHARS * len(stages) - room) // CHARS_A_TOKEN)
        hint = f"set it to {config[LearnTable].tokens + least:,} or more"
        raise SettingsError(
            f"learn.tokens is {config[LearnTable].tokens:,}, too few for a model", hint
        )
    return max(MIN_CHARS, int(room * _SHARES[stage]) if len(stages) > 1 else room)


def _background(answers: Mapping[str, Json]) -> tuple[tuple[str, str], ...]:
    """Return the answers of the steps before the last, as (label, text), for a reviewer."""
    what, why, patterns = (answers.get(stage, {}) for stage in FOUR[:-1])
    rows = [("file", [f"{e['path']}: {e['role']}; {e['change']}" for e in what.get("files", ())])]
    rows += [("problem", [why["problem"]] if why.get("problem") else [])]
    rows += [("trade-off", why.get("trade_offs", ())), ("instead of", why.get("alternatives", ()))]
    listed = patterns.get("patterns", ())
    rows += [("pattern", [f"{each['name']}: {each['applicability']}" for each in listed])]
    rows += [("practice", patterns.get("practices", ()))]
    return tuple((label, text) for label, texts in rows for text in texts)


def entry_of(values: Mapping[str, Any]) -> LearnedLesson:
    """Return the entry of a model's or an agent's answer. Headings in it cannot begin a lesson."""

    def text(name: str) -> str:
        return _HEADING.sub("###", str(values.get(name, ""))).strip()

    def texts(name: str) -> tuple[str, ...]:
        return tuple(filter(None, (" ".join(each.split()) for each in values.get(name, ()))))

    more = {name: text(name) for name in ("explanation", "problem", "when", "when_not")}
    return LearnedLesson(
        type=values["type"],
        title=" ".join(values["title"].split()),
        parts=Parts(
            " ".join(text("summary").split()),
            **more,
            pro=texts("pro"),
            con=texts("con"),
            related=tuple(map(relation, texts("related"))),
        ),
        category=values.get("category", "").strip(),
        confidence=values.get("confidence", DEFAULT_CONFIDENCE),
        quotes=tuple(quote.strip() for quote in values["quotes"] if quote.strip()),
        tags=texts("tags"),
        prompts=texts("prompts"),
        fires_on_error=texts("fires_on_error"),
        applies_to=texts("applies_to"),
    )


_HERE = ("", "0.0.0.0", "::")  # of a host that is not named, or listens everywhere


@dataclass(frozen=True, slots=True)
class CallPlan:
    """The calls of an analysis; none without a model. `receiver` is who gets them, in words."""

    model: str = ""
    receiver: str = ""
    leaves: bool = False  # this machine
    calls: tuple[Planned, ...] = ()

    def as_json(self) -> dict[str, Any]:
        names = ("stage", "chars", "tokens")
        stages = [{name: getattr(call, name) for name in names} for call in self.calls]
        sums = {name: sum(each[name] for each in stages) for name in names[1:]}
        about = {"model": self.model, "receiver": self.receiver, "leaves": self.leaves}
        return {**about, "stages": stages, **sums}

    def __str__(self) -> str:
        if not self.model:
            return "no model is asked: a rule drafts typed corrections, and nothing leaves this machine"
        total = self.as_json()
        calls = f"{count(len(self.calls), 'call')}, each once more if its answer does not fit"
        size = f"at most {total['chars']:,} characters, about {total['tokens']:,} tokens"
        away = "leaves this machine" if self.leaves else "stays on this machine"
        return f"{size}, in {calls}, for {self.model}: {self.receiver}; it {away}"


def receiver(config: Config) -> tuple[str, bool]:
    """Return the receiver of a model's prompts, and whether they leave this machine."""
    kind, _, model = config[LearnTable].model.partition(":")
    if kind == "ollama":
        host = config.ollama_host if "//" in config.ollama_host else f"//{config.ollama_host}"
        name = urlsplit(host).hostname or ""
        cloud = model.endswith("-cloud") or ":cloud" in model
        host_of = f"Ollama at {name or 'localhost'}" + " and its cloud" * cloud
    elif kind == "openai":
        name, cloud = urlsplit(config.llm.openai_url).hostname or "", False
        host_of = f"the server {name or '(none is set)'}"
    else:
        return "Anthropic" + ", through your own claude" * (kind == "claude"), True
    return host_of, cloud or not (name in _HERE or is_this_machine(name))
