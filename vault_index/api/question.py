"""A question or command as a value: what is asked, and the type of its answer.

    api.lesson.show(name="heap")  ->  Question("lesson.show", {"name": "heap"}), answered by a Lesson

A decorator makes one of each function in this folder, so that a caller is checked against the
function's parameters and result, and neither loads what the function needs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import (
    TYPE_CHECKING,
    Any,
    Concatenate,
    Generic,
    ParamSpec,
    Protocol,
    TypedDict,
    TypeVar,
    Unpack,
)  # fmt: skip

if TYPE_CHECKING:
    from vault_index.store.sync import Stats

Parameters = ParamSpec("Parameters")
Answer = TypeVar("Answer")
AnswerOut = TypeVar("AnswerOut", covariant=True)

Progress = Callable[[str, int, int], None]  # what is being done, how many are done, of how many


@dataclass(frozen=True, slots=True)
class Question(Generic[AnswerOut]):
    """A question or a command, by the name of its module and function, with its arguments."""

    name: str
    values: Mapping[str, Any] = field(default_factory=dict)

    @property
    def is_about_journal(self) -> bool:
        return self.name.startswith("journal.")


class Form(Generic[Parameters, Answer]):
    """A function of `api` as its callers see it: called with its arguments, it makes a `Question`."""

    def __init__(
        self, name: str, function: Callable[..., Answer] | None = None, *, commands: bool = False
    ) -> None:
        self.name = name
        self.function = function  # None where it is not loaded
        self.commands = commands
        self.__doc__ = function.__doc__ if function else None

    def __call__(self, *args: Parameters.args, **values: Parameters.kwargs) -> Question[Answer]:
        """Return the question. Its arguments are named, as they are on the wire."""
        if args:
            raise TypeError(f"name the arguments of {self.name}")
        return Question(self.name, values)


class AskOptions(TypedDict, total=False):
    """The options of `client.Options` that a command may set for a question of its own."""

    settled: bool
    fetch: bool
    note: Callable[[str], None]


class Ask(Protocol):
    """Puts another question: `caller.ask(api.lesson.show(name="heap"))`."""

    def __call__(self, question: Question[Answer], **options: Unpack[AskOptions]) -> Answer:
        """Return the answer. Raises VaultError."""


@dataclass(frozen=True, slots=True)
class Caller:
    """The questions that a command may ask its caller while it works: see `client`, which provides it."""

    note: Callable[[str], None]  # takes a line for people: a note, or a warning
    progress: Progress
    event: Callable[[Mapping[str, Any]], None]  # takes a part of the answer before the whole of it
    ask: Ask
    index: Callable[..., Stats | None]  # brings the index of a vault up to date: `index(vault)`

    def progress_of(self, label: str) -> Callable[[int, int], None]:
        return lambda done, of: self.progress(label, done, of)


def question(function: Callable[Concatenate[Any, Parameters], Answer]) -> Form[Parameters, Answer]:
    """Make a question of a function of a vault or the journal, which reads the index as it is."""
    return Form(_name(function), function)


def command(
    function: Callable[Concatenate[Any, Caller, Parameters], Answer],
) -> Form[Parameters, Answer]:
    """Make a command of one that changes files, or reads what no watcher keeps."""
    return Form(_name(function), function, commands=True)


def _name(function: Callable[..., Any]) -> str:
    return f"{function.__module__.rpartition('.')[2]}.{function.__name__}"
