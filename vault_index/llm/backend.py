"""A backend of language models: one question, one attempt, one reply; and the form of an answer."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any, ClassVar

from vault_index.config import Config
from vault_index.errors import ModelAnswerError, ModelRefusedError
from vault_index.llm.cancel import Connections

ENDED, CUT, DECLINED = "ended", "cut", "declined"  # why a reply ends
USER, ASSISTANT, TOOL = "user", "assistant", "tool"  # whose turn it is

Take = Callable[[str], None]  # takes the next piece of an answer's text


@dataclass(frozen=True, slots=True)
class Tool:
    """A function that a model may ask for. `parameters` is a JSON schema of its arguments."""

    name: str
    description: str
    parameters: dict[str, Any]


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A model's wish to have a tool called. `arguments` is None unless they are a JSON object."""

    id: str
    name: str
    arguments: dict[str, Any] | None


@dataclass(frozen=True, slots=True)
class Turn:
    """A message of a conversation: a user's, a model's with its calls, or the result of one call."""

    role: str  # USER | ASSISTANT | TOOL
    text: str
    calls: tuple[ToolCall, ...] = ()
    call: str = ""  # id of the call that a TOOL turn answers


@dataclass(frozen=True, slots=True)
class ModelQuestion:
    """A prompt, with the turns `before` and `after` it in the same conversation.

    `schema`, which is in the prompt already, is for servers that hold a model to one. Only a backend that
    `can_call_tools` gets `tools`. If `after` has calls and there are no tools, no more may be called.
    """

    system: str
    prompt: str
    schema: dict[str, Any] | None = None
    before: tuple[Turn, ...] = ()
    after: tuple[Turn, ...] = ()
    tools: tuple[Tool, ...] = ()

    @property
    def turns(self) -> tuple[Turn, ...]:
        """The conversation in its order, without the system's words."""
        return (*self.before, Turn(USER, self.prompt), *self.after)

    @property
    def chars(self) -> int:
        texts = [self.system, *(turn.text for turn in self.turns)]
        texts += [json.dumps(call.arguments) for turn in self.turns for call in turn.calls]
        for tool in self.tools:
            texts += [tool.name, tool.description, json.dumps(tool.parameters)]
        return sum(map(len, texts))


@dataclass(frozen=True, slots=True)
class Reply:
    """A model's text, the reason for its end, and its usage; None where the server does not say."""

    text: str
    end: str = ENDED
    input_tokens: int | None = None
    output_tokens: int | None = None
    cost: float | None = None  # dollars
    calls: tuple[ToolCall, ...] = ()  # tools that the model wants; its text may then be empty


class Backend:
    """A model on a server, or a program that asks one. Nothing is asked before first use.

    Keys come from `environ` alone; `timeout` is in seconds, by default from the settings.
    """

    kind: ClassVar[str]  # in the settings: `ollama` of `ollama:MODEL`
    can_call_tools = True  # the model behind it may still refuse them
    key = ""  # that each call is paid by

    def __init__(
        self, model: str, config: Config, environ: Mapping[str, str], timeout: float = 0
    ) -> None:
        self.name = f"{self.kind}:{model}"
        self.model, self.config, self.environ = model, config, environ
        self.timeout = timeout or config.llm.timeout_seconds
        self.answer_tokens = config.llm.max_tokens  # at most, thinking included
        self.connection = Connections()

    def ask(self, question: ModelQuestion, take: Take | None = None) -> Reply:
        """Return the reply of one attempt; `take` gets its text in pieces, as the model writes them.

        A backend that cannot do so passes the whole text on at once. Raises ModelCallError, as
        `PassingError` where another attempt may go better; ModelToolsError where the model takes no
        tools. `take` raises a BaseException only, which passes through.
        """
        raise NotImplementedError

    def end(self) -> None:
        """End the call under way, from another thread."""
        self.connection.end()


_TOOLS = re.compile(r"(?i)\btools?\b|\btool_choice\b|\bfunction.?call")


def described(tools: Iterable[Tool]) -> list[dict[str, Any]]:
    """Return tools as chat completions want them."""
    return [{"type": "function", "function": asdict(tool)} for tool in tools]


def names_of(turns: Iterable[Turn]) -> dict[str, str]:
    """Return the names of the tools that were called in a conversation, by the ids of the calls."""
    return {call.id: call.name for turn in turns for call in turn.calls}


def call_of(call_id: Any, name: Any, arguments: Any, number: int) -> ToolCall | None:
    """Return a call in a model's answer, None without a name; `number` makes an id where it has none."""
    if not isinstance(name, str) or not name:
        return None
    has_id = isinstance(call_id, str) and call_id
    wanted = arguments if isinstance(arguments, dict) else json_object(arguments)
    return ToolCall(call_id if has_id else f"call_{number}", name, wanted)


def speaks_of_tools(message: object) -> bool:
    """Whether a server that refused a question names its tools as the reason.

    No two servers say it alike. An error that names them for another reason comes again when the
    question is asked without them.
    """
    return _TOOLS.search(str(message)) is not None


def json_object(data: Any) -> dict[str, Any] | None:
    """Return the JSON object that a text or bytes are, {} for a blank, None for all else."""
    try:
        value = json.loads(data) if data.strip() else {}
    except (ValueError, RecursionError, AttributeError):
        return None
    return value if isinstance(value, dict) else None


@dataclass(frozen=True, slots=True)
class Usage:
    """The usage of calls. `cost` is in dollars, None if unknown; `seconds` are of waiting.

    Tokens are those that the server counted, else an estimate: four characters a token.
    """

    calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    seconds: float = 0.0
    cost: float | None = None

    def __add__(self, other: Usage) -> Usage:
        costs = [cost for cost in (self.cost, other.cost) if cost is not None]
        return Usage(
            self.calls + other.calls,
            self.input_tokens + other.input_tokens,
            self.output_tokens + other.output_tokens,
            self.seconds + other.seconds,
            sum(costs) if costs else None,
        )


MAX_CHARS = 100_000  # of an answer; none that was asked for is near it
_TYPES: dict[str, tuple[type, ...]] = {
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "array": (list,),
    "object": (dict,),
}
_REFUSAL = re.compile(
    r"(?i)^\W{0,5}(?:(?:i'?m|i am) (?:very |so |really )?(?:sorry|afraid)|sorry\b|i apologi[sz]e"
    r"|unfortunately|(?:as an ai\b.{0,60}?)?i (?:can(?:no|')?t|won'?t|will not|must decline)"
    r"|(?:as an ai\b.{0,60}?)?i(?:'?m| am) (?:unable|not able))[^.!?\n]{0,60}?"
    r"\b(?:can(?:no|')?t|unable|not able|won'?t|will not|declin\w+|assist|help|comply|provide|fulfil\w*"
    r"|process|answer|summari[sz]e|discuss|do that)\b"
)


def is_refusal(text: str) -> bool:
    """Whether a model declined in so many words: "I'm sorry, but I can't assist with that"."""
    return _REFUSAL.match(text.replace("\u2019", "'")) is not None


def parse_json(text: str, keys: Mapping[str, Mapping[str, Any]], name: str) -> dict[str, Any]:
    """Return the JSON object of an answer, with exactly the keys asked for.

    `keys` is name -> JSON schema, of which `type` (one), `enum`, `items` and `properties` count; each
    property is required. Other keys, a code fence and words around the object are left out. Raises
    ModelRefusedError, and ModelAnswerError naming the first key that does not fit, without the answer.
    """
    if is_refusal(text):
        raise ModelRefusedError(f"{name} declined to answer", _CHOOSE)
    value = _object_in(text[:MAX_CHARS])
    if value is None:
        raise ModelAnswerError(f"{name} did not answer with JSON", _CHOOSE)
    schema = {"type": "object", "properties": keys}
    fitting, problem = _fit(value, schema, "the answer")
    if problem:
        usable = _without_misfits(value, keys)
        raise ModelAnswerError(f"{name} answered in another form: {problem}", _CHOOSE, usable)
    assert isinstance(fitting, dict)
    return fitting


def _without_misfits(
    value: Mapping[str, Any], keys: Mapping[str, Mapping[str, Any]]
) -> dict[str, Any] | None:
    """Return an answer with the parts of its lists that fit; None without any, or if more fails."""
    parts = {
        name: [part for part in value[name] if not _fit(part, schema["items"], name)[1]]
        if "items" in schema and isinstance(value.get(name), list)
        else value.get(name)
        for name, schema in keys.items()
    }
    usable, problem = _fit(parts, {"type": "object", "properties": keys}, "the answer")
    is_empty = not any(isinstance(part, list) and part for part in parts.values())
    return None if problem or is_empty else usable


_CHOOSE = "choose a larger model"


def schema_of(keys: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """Return the JSON schema of an object with these keys, each required, and no other at any depth."""
    return _strict({"type": "object", "properties": dict(keys)})


def with_schema(prompt: str, keys: Mapping[str, Mapping[str, Any]]) -> str:
    """Return a prompt that asks for an object with these keys."""
    return f"{prompt}\n\nAnswer with one JSON object of this schema:\n{json.dumps(schema_of(keys))}"


def _strict(schema: Mapping[str, Any]) -> dict[str, Any]:
    strict = dict(schema)
    if "properties" in schema:
        properties = schema["properties"]
        strict["properties"] = {name: _strict(inner) for name, inner in properties.items()}
        strict |= {"required": list(properties), "additionalProperties": False}
    if "items" in schema:
        strict["items"] = _strict(schema["items"])
    return strict


def _object_in(text: str) -> dict[str, Any] | None:
    """Return the first JSON object of a text that is not empty, None without one."""
    decoder = json.JSONDecoder()
    start = text.find("{")
    for _ in range(20):  # braces of other things before it
        if start < 0:
            return None
        try:
            value, _end = decoder.raw_decode(text, start)
        except (json.JSONDecodeError, RecursionError):
            value = None
        if isinstance(value, dict) and value:
            return value
        start = text.find("{", start + 1)
    return None


def _fit(value: Any, schema: Mapping[str, Any], where: str) -> tuple[Any, str]:
    """Return a value without the keys that its schema does not name, and the first problem or ""."""
    kind = schema.get("type")
    if kind in _TYPES:
        fits = isinstance(value, _TYPES[kind]) and (
            kind == "boolean" or not isinstance(value, bool)
        )
        if not fits:
            return value, f"{where} is not of type {kind}"
    if "enum" in schema and value not in schema["enum"]:
        return value, f"{where} is not one of {', '.join(map(str, schema['enum']))}"
    if isinstance(value, list) and "items" in schema:
        parts = [_fit(part, schema["items"], f"a part of {where}") for part in value]
        return [part for part, _ in parts], next((problem for _, problem in parts if problem), "")
    if isinstance(value, dict) and "properties" in schema:
        fitting = {}
        for name, inner in schema["properties"].items():
            if name not in value:
                return value, f"{where} has no {name!r}"
            fitting[name], problem = _fit(value[name], inner, f"{name!r}")
            if problem:
                return value, problem
        return fitting, ""
    return value, ""
