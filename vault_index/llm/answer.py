"""The answer of a language model: text -> JSON object; whether it declined instead."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from vault_index.errors import ModelAnswerError, ModelRefusedError

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


def parse(text: str, keys: Mapping[str, Mapping[str, Any]], name: str) -> dict[str, Any]:
    """Return the JSON object of an answer, with exactly the keys asked for.

    `keys` is name -> JSON schema, of which `type` (one), `enum`, `items` and `properties` count; every
    property that is named is required. Other keys are left out, at every depth. A code fence and words
    around the object do no harm. Raises ModelRefusedError, and ModelAnswerError naming the first key
    that does not fit; the answer is in neither, since it may hold anything.
    """
    if is_refusal(text):
        raise ModelRefusedError(f"{name} declined to answer", _CHOOSE)
    value = _object_in(text[:MAX_CHARS])
    if value is None:
        raise ModelAnswerError(f"{name} did not answer with JSON", _CHOOSE)
    schema = {"type": "object", "properties": keys}
    fitting, problem = _fit(value, schema, "the answer")
    if problem:
        raise ModelAnswerError(f"{name} answered in another form: {problem}", _CHOOSE)
    assert isinstance(fitting, dict)
    return fitting


_CHOOSE = "choose a larger model"


def schema_of(keys: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """Return the JSON schema of an object with these keys, each required, at every depth."""
    return _strict({"type": "object", "properties": dict(keys)})


def _strict(schema: Mapping[str, Any]) -> dict[str, Any]:
    strict = dict(schema)
    if "properties" in schema:
        properties = schema["properties"]
        strict["properties"] = {name: _strict(inner) for name, inner in properties.items()}
        strict["required"] = list(properties)
    if "items" in schema:
        strict["items"] = _strict(schema["items"])
    return strict


def _object_in(text: str) -> dict[str, Any] | None:
    """Return the first JSON object of a text that is not empty, None without one."""
    decoder = json.JSONDecoder()
    place = text.find("{")
    for _ in range(20):  # braces of other things before it
        if place < 0:
            return None
        try:
            value, _end = decoder.raw_decode(text, place)
        except (json.JSONDecodeError, RecursionError):
            value = None
        if isinstance(value, dict) and value:
            return value
        place = text.find("{", place + 1)
    return None


def _fit(value: Any, schema: Mapping[str, Any], where: str) -> tuple[Any, str]:
    """Return a value without what its schema does not name, and the first problem or ""."""
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
