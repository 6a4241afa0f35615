"""A question or command as a value: what is asked, and the type of its answer.

    api.lesson.show(name="heap")  ->  a Question, answered by an Entry

A decorator makes one of each function in this folder, and says what it needs. A caller is checked against
the function's parameters and result.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
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


def silent(*_: object) -> None:
    """Take a note or progress, and show it to nobody."""


class Form(Generic[Parameters, Answer]):
    """A function of `api` as its callers see it: called with its arguments, it makes a `Question`."""

    def __init__(
        self,
        function: Callable[..., Answer],
        *,
        is_command: bool = False,
        needs_index: bool = True,
    ) -> None:
        self.name = f"{function.__module__.rpartition('.')[2]}.{function.__name__}"
        self.function = function
        self.is_command = is_command
        self.needs_index = needs_index
        self.__doc__ = function.__doc__

    def __call__(self, *args: Parameters.args, **values: Parameters.kwargs) -> Question[Answer]:
        """Return the question. Its arguments are named, as they are on the wire."""
        if args:
            raise TypeError(f"name the arguments of {self.name}")
        return Question(self, values)


@dataclass(frozen=True, slots=True)
class Question(Generic[AnswerOut]):
    """A question or a command, with its arguments."""

    form: Form[..., AnswerOut]
    values: Mapping[str, Any]

    @property
    def name(self) -> str:
        return self.form.name

    @property
    def is_about_journal(self) -> bool:
        return self.name.startswith("journal.")

    def answer(self, *about: Any) -> AnswerOut:
        """Answer it about a vault or the journal, as that is; a command takes a `Caller`, too.

        Raises VaultError, and TypeError for values that it does not take.
        """
        return self.form.function(*about, **self.values)


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
    return Form(function)


def recorded(function: Callable[Concatenate[Any, Parameters], Answer]) -> Form[Parameters, Answer]:
    """Make a question of one that reads what this machine remembers, and no index."""
    return Form(function, needs_index=False)


def command(
    function: Callable[Concatenate[Any, Caller, Parameters], Answer],
) -> Form[Parameters, Answer]:
    """Make a command of one that changes files, or reads what no watcher keeps."""
    return Form(function, is_command=True)
