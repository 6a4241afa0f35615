"""Values as JSON and back, by their annotations: the one codec of questions and answers.

A frozen dataclass is an object of its fields, a tuple a list, a moment ISO 8601, a path a text. An
answer names its type, which its reader imports; it may be any dataclass of this package. A field or an
argument of a type without a form in JSON is a TypeError that names it.
"""

from __future__ import annotations

import importlib
import types
import typing
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import fields, is_dataclass
from datetime import date, datetime
from functools import lru_cache
from pathlib import Path
from typing import Any

PACKAGE = "vault_index."
_PLAIN = frozenset((str, int, float, bool, type(None)))
_AS_THEY_ARE = _PLAIN | {Any, object}  # what JSON has itself, whatever that is
_MANY = (tuple, list, Sequence, Collection, frozenset)

Decode = Callable[[Any], Any]
Kind = typing.TypeVar("Kind")


def to_json(value: Any) -> Any:
    """Return a value as JSON values."""
    kind: Any = type(value)
    if kind in _PLAIN:
        return value
    if isinstance(value, (list, tuple)):
        return [each if type(each) in _PLAIN else to_json(each) for each in value]
    if isinstance(value, Mapping):
        return {key: to_json(each) for key, each in value.items()}
    if is_dataclass(value):
        return {name: to_json(getattr(value, name)) for name in _names(kind)}
    if isinstance(value, date):  # a datetime, too
        return value.isoformat()
    if isinstance(value, (set, frozenset)):
        return sorted(map(to_json, value))
    if isinstance(value, Path):
        return str(value)
    raise TypeError(f"{kind.__name__} has no form in JSON")


def to_wire(answer: Any) -> dict[str, Any]:
    """Return an answer with the name of its type: a dataclass, or a tuple of one kind of them."""
    one = answer[0] if isinstance(answer, tuple) and answer else answer
    name = f"{type(one).__module__}:{type(one).__qualname__}" if is_dataclass(one) else ""
    return {"answer": to_json(answer), "many": isinstance(answer, tuple), "type": name}


def from_wire(wire: Mapping[str, Any]) -> Any:
    """Return the answer that `to_wire` spelled."""
    value, name = wire["answer"], wire["type"]
    decode = _decoder(_type_of(name)) if name else None
    if wire["many"]:
        return tuple(map(decode, value) if decode else value)
    return decode(value) if decode else value


def from_json(kind: type[Kind], value: Any) -> Kind:
    """Return the value of a type that JSON values spell. Raises TypeError, KeyError, ValueError."""
    decode = _decoder(typing.cast(Any, kind))
    decoded: Kind = decode(value) if decode else value
    return decoded


def arguments(function: Callable[..., Any], values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments of a function that JSON values spell."""
    decoders = _arguments_of(function)
    return {
        name: decode(value) if (decode := decoders.get(name)) else value
        for name, value in values.items()
    }


@lru_cache(maxsize=256)
def _names(kind: Any) -> tuple[str, ...]:
    return tuple(field.name for field in fields(kind))


@lru_cache(maxsize=256)
def _arguments_of(function: Callable[..., Any]) -> dict[str, Decode | None]:
    """Return the decoders of a question's arguments, without the vault or journal that it is about.

    The result is left out, too: their types may be known to a type checker alone.
    """
    about = next(iter(function.__annotations__))
    spelled = {
        name: each
        for name, each in function.__annotations__.items()
        if name not in (about, "return")
    }
    arguments = types.SimpleNamespace(__annotations__=spelled)
    scope = vars(importlib.import_module(function.__module__))
    decoders: dict[str, Decode | None] = {}
    for name, kind in typing.get_type_hints(arguments, scope).items():
        if typing.get_origin(kind) is typing.Unpack:  # `**options: Unpack[Options]`
            (options,) = typing.get_args(kind)
            decoders |= _decoders(options, typing.get_type_hints(options))
        else:
            decoders |= _decoders(function, {name: kind})
    return decoders


def _type_of(name: str) -> Any:
    module, _, kind = name.partition(":")
    found = getattr(importlib.import_module(module), kind) if module.startswith(PACKAGE) else None
    if not is_dataclass(found):
        raise ValueError(f"no type of answers: {name!r:.80}")
    return found


def _decoders(owner: Any, kinds: Mapping[str, Any]) -> dict[str, Decode | None]:
    """Return the decoders of the fields or arguments of an owner. Raises TypeError, naming one."""
    decoders = {}
    for name, kind in kinds.items():
        try:
            decoders[name] = _decoder(kind)
        except TypeError as error:
            raise TypeError(f"{owner.__name__}.{name}: {error}") from None
    return decoders


@lru_cache(maxsize=256)
def _decoder(kind: Any) -> Decode | None:
    """Return the decoder of a type; None where JSON has the value already. Raises TypeError."""
    if is_dataclass(kind):
        return _of_dataclass(kind)
    if kind in _AS_THEY_ARE:
        return None
    if kind is datetime:
        return datetime.fromisoformat
    if kind is date:
        return date.fromisoformat
    if kind is Path:
        return Path
    origin, inner = typing.get_origin(kind), typing.get_args(kind)
    if origin is typing.Literal:
        return None
    if origin in (typing.Union, types.UnionType):
        decoders = [_decoder(each) for each in inner if each is not types.NoneType]
        if not any(decoders):
            return None
        if len(decoders) == 1 and decoders[0]:
            return _optional(decoders[0])
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return _of_mapping(_decoder(inner[1]))
    if origin is tuple and inner[-1] is not Ellipsis:
        return _of_row([_decoder(each) for each in inner])
    if origin in _MANY:  # tuple[X, ...], too
        return _of_many(list if origin is list else tuple, _decoder(inner[0]))
    raise TypeError(f"{kind} has no form in JSON")


def _of_dataclass(kind: Any) -> Decode:
    """Return the decoder of a dataclass, which drops the unknown fields of a newer version."""
    decoders: dict[str, Decode | None] = {}

    def decode(value: Mapping[str, Any]) -> Any:
        if not decoders:  # at the first use: a type may hold itself
            hints = typing.get_type_hints(kind)
            decoders.update(_decoders(kind, {name: hints[name] for name in _names(kind)}))
        return kind(
            **{
                name: found(each) if (found := decoders[name]) else each
                for name, each in value.items()
                if name in decoders
            }
        )

    return decode


def _optional(decode: Decode) -> Decode:
    return lambda value: None if value is None else decode(value)


def _of_mapping(decode: Decode | None) -> Decode:
    return lambda value: {key: decode(each) for key, each in value.items()} if decode else value


def _of_row(decoders: list[Decode | None]) -> Decode:
    def decode(value: Any) -> Any:
        pairs = zip(decoders, value, strict=True)
        return tuple(found(each) if found else each for found, each in pairs)

    return decode


def _of_many(many: Any, decode: Decode | None) -> Decode:
    return lambda value: many(map(decode, value)) if decode else many(value)
