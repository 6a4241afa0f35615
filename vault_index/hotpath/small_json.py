"""JSON without the module `json`, which loads `re` and takes as long as the rest of a warm hook.

`json` itself is a few lines around the same compiled functions. Where a release of Python has other
functions, `json` does it; a test compares the two.
"""

from __future__ import annotations

TYPE_CHECKING = False  # typing takes 3 ms to load
if TYPE_CHECKING:
    from typing import Any

_SPACE = " \t\n\r"


class _Context:
    """The attributes that the compiled scanner reads of a decoder: `json`'s own defaults."""

    strict = True
    object_hook = None
    object_pairs_hook = None
    parse_float = float
    parse_int = int
    memo: dict[str, str] = {}  # noqa: RUF012  # the scanner empties it

    @staticmethod
    def parse_constant(name: str) -> float:
        """Return the value of `NaN`, `Infinity` or `-Infinity`."""
        return float(name.replace("Infinity", "inf"))


def loads(text: str) -> Any:
    """Return the value of a JSON text. Raises ValueError."""
    try:
        from _json import make_scanner

        context: Any = _Context()
        scan = make_scanner(context)
    except (ImportError, AttributeError, TypeError):
        import json

        return json.loads(text)
    start = len(text) - len(text.lstrip(_SPACE))
    try:
        value, end = scan(text, start)
    except (StopIteration, SystemError):  # the second where it finds no module `json` for its error
        raise ValueError("no JSON") from None
    if text[end:].strip(_SPACE):
        raise ValueError("more than one value")
    return value


def dumps(value: Any) -> str:
    """Return a value as JSON in ASCII. Raises TypeError for a value without a form in JSON."""
    try:
        from _json import encode_basestring_ascii, make_encoder

        encode = make_encoder(
            {}, _refuse, encode_basestring_ascii, None, ": ", ", ", False, False, True
        )
    except (ImportError, TypeError):
        import json

        return json.dumps(value)
    return "".join(encode(value, 0))


def _refuse(value: Any) -> Any:
    raise TypeError(f"{type(value).__name__} has no form in JSON")
