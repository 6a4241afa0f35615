"""The kinds of settings, as annotations that a type checker and `config` read alike.

`Annotated[float, Between(0, 1)]` is a float to both. `config` also takes from it how a value of a
settings file becomes the field's, and what to say of one that does not.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, get_args, get_origin

_BOOLEANS = {"true": True, "1": True, "false": False, "0": False}
_MOST = 1e9


@dataclass(frozen=True, slots=True)
class Kind:
    """`convert` makes a field's value, or raises TypeError, ValueError, KeyError or RuntimeError.

    `words` say of it what it is, and `hint` what to write.
    """

    convert: Callable[[Any], Any]
    words: str
    hint: str = ""


@dataclass(frozen=True, slots=True)
class Between:
    """The bounds of a number, both among the allowed ones; `most` None for no bound."""

    least: float = 0
    most: float | None = None
    noun: str = "a number"

    def kind(self, base: Any) -> Kind:
        """Return the kind of a whole number where the annotated type is int, else of any number."""
        most = _MOST if self.most is None else self.most
        end = "or more" if self.most is None else f"to {self.most:g}"
        convert = _whole if base is int else _number
        words = f"{self.noun}, {self.least:g} {end}"
        return Kind(lambda value: convert(value, self.least, most), words)


def kind_of(annotation: Any) -> Kind:
    """Return the kind of a setting by its annotation, as `typing.get_type_hints` returns it."""
    if get_origin(annotation) is not Annotated:
        return _PLAIN[annotation]
    base, mark = get_args(annotation)[:2]
    return mark if isinstance(mark, Kind) else mark.kind(base)


def _whole(value: Any, least: float, most: float) -> int:
    if isinstance(value, (bool, float)):
        raise ValueError
    number = int(value)
    if not least <= number < most:
        raise ValueError
    return number


def _number(value: Any, least: float, most: float) -> float:
    number = _is_a((int, float), value)
    if isinstance(value, bool) or not least <= number <= most:
        raise ValueError
    return float(number)


def _variable(value: Any) -> str:
    if not (_is_a(str, value).isascii() and value.isidentifier()):
        raise ValueError
    return str(value)


def _weights(value: Any) -> str:
    parts = _is_a(str, value).split("/")
    numbers = [int(part) for part in parts if part.isdecimal() and len(part) < 6]
    if value and not (len(parts) == len(numbers) == 4 and any(numbers)):
        raise ValueError
    return str(value)


def _uri(value: Any) -> str:
    """Return the address of a store; no part of it is a secret, and a folder is named in full."""
    text = str(_is_a(str, value))
    scheme, mark, rest = text.partition("://")
    if mark and (not rest or "@" in rest.partition("/")[0] or "?" in rest or scheme == "db"):
        raise ValueError
    if mark or not text:
        return text
    folder = Path(text).expanduser()
    if not folder.is_absolute():
        raise ValueError
    return str(folder)


def _folders(value: Any) -> tuple[str, ...]:
    entries = _texts(value)
    if not all(Path(entry).expanduser().is_absolute() for entry in entries):
        raise ValueError
    return entries


def _texts(value: Any) -> tuple[str, ...]:
    return tuple(_is_a(str, each) for each in _is_a(list, value))


def _categories(value: Any) -> dict[str, str]:
    return {phrase: _is_a(str, path) for phrase, path in _is_a(Mapping, value).items()}


def _is_a(kind: type | tuple[type, ...], value: Any) -> Any:
    if not isinstance(value, kind):
        raise TypeError
    return value


Texts = tuple[str, ...]
Positive = Annotated[int, Between(1, noun="a whole number")]
Cosine = Annotated[float, Between(0, 1, "a cosine")]
Temperature = Annotated[float | None, Between(0, 2)]
Price = Annotated[float | None, Between(0, noun="a number of dollars")]
Variable = Annotated[
    str,
    Kind(_variable, "the name of a variable", "the key itself is in the environment"),
]
Uri = Annotated[
    str,
    Kind(
        _uri,
        "the address of an object store, or a folder",
        'write it like "s3://bucket/prefix" or "/srv/team"; credentials are in the environment',
    ),
]
Folders = Annotated[
    tuple[str, ...],
    Kind(
        _folders,
        "a list of folders",
        'write it like ["~/code/team"]; clone a repository yourself, and name its folder',
    ),
]
Weights = Annotated[
    str,
    Kind(
        _weights,
        "four whole numbers",
        'write it like "60/30/5/5": vector, full text, confidence, use; "" for none',
    ),
]

_PLAIN: dict[Any, Kind] = {
    bool: Kind(lambda value: _BOOLEANS[str(value).lower()], "true or false"),
    int: Between(noun="a whole number").kind(int),
    float: Between().kind(float),
    float | None: Kind(lambda value: _number(value, -_MOST, _MOST), "a number"),
    str: Kind(lambda value: _is_a(str, value), "a string"),
    Texts: Kind(_texts, "a list of strings"),
    Mapping[str, str]: Kind(_categories, 'a table of phrase = "category"'),
    Path | None: Kind(lambda value: Path(_is_a((str, Path), value)).expanduser(), "a path"),
}
