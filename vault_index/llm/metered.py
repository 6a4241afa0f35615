"""A model behind a backend: within the day's allowance, tried again, its answers checked and counted."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

from vault_index import errors, state
from vault_index.config import Config
from vault_index.llm import cancel, server
from vault_index.llm.backend import (
    CUT,
    DECLINED,
    MAX_CHARS,
    Backend,
    ModelQuestion,
    Reply,
    Take,
    Usage,
    parse_json,
    schema_of,
    with_schema,
)
from vault_index.llm.server import PassingError, Sleep


@dataclass(frozen=True, slots=True)
class Day:
    """The part of a day's allowance that was used."""

    day: str = ""
    calls: int = 0
    tokens: int = 0


class Allowance:
    """The day's allowance of language models for all commands of a user: calls and tokens.

    A call is written down before it is made, with the tokens that it may take, so that a process that
    dies in it has used them; the real number replaces them afterwards. A call that reached no model is
    taken back. `now` is in seconds since the epoch, and a day is one in UTC.
    """

    def __init__(self, config: Config, now: Callable[[], float] = time.time) -> None:
        self._home = config.home
        self._calls, self._tokens = config.llm.calls_a_day, config.llm.tokens_a_day
        self._now = now

    def book(self, tokens: int) -> Day:
        """Write down a call that may take so many tokens, and return that as part of its day.

        Raises ModelBudgetError if the day has no room for it, and WriteError.
        """
        with state.writing(self._home) as db:
            used = self.used()
            if used.calls >= self._calls:
                raise self._error(f"the day's {self._calls:,} calls are used up", "calls_a_day")
            remaining = self._tokens - used.tokens
            if tokens > remaining:
                problem = (
                    f"a call may take {tokens:,} tokens, and the day has {max(remaining, 0):,} left"
                )
                raise self._error(problem, "tokens_a_day")
            now = [used.day, used.calls + 1, used.tokens + tokens]
            db.execute("INSERT OR REPLACE INTO usage VALUES (?, ?, ?)", now)
        return Day(used.day, 1, tokens)

    def settle(self, booking: Day, tokens: int, calls: int = 1) -> None:
        """Replace a booking by the tokens that the call took; 0 calls take it back.

        A disk that cannot be written to loses no answer: then the booking stays.
        """
        took = [calls - 1, tokens - booking.tokens, booking.day]
        with suppress(errors.WriteError), state.writing(self._home) as db:
            db.execute(
                "UPDATE usage SET calls = calls + ?, tokens = tokens + ? WHERE day = ?", took
            )

    def used(self) -> Day:
        today = datetime.fromtimestamp(self._now(), UTC).date().isoformat()
        with state.reading(self._home) as db:
            days = state.select(db, "usage", Day, "WHERE day = ?", [today])
        return days[0] if days else Day(today)

    def _error(self, problem: str, setting: str) -> errors.ModelBudgetError:
        tomorrow = datetime.fromtimestamp(self._now(), UTC).date() + timedelta(days=1)
        return errors.ModelBudgetError(
            f"language models: {problem}",
            f"wait until {tomorrow} 00:00 UTC, or raise {setting} of [llm] in "
            f"{self._home / 'config.toml'}",
        )


CHARS_A_TOKEN = 4


class Model:
    """Text -> text, by a backend: with attempts, within the day's allowance, its answers checked.

    All methods raise ModelCallError: away, refused or over the allowance. `name` is as in the
    settings, such as `ollama:MODEL`, and `usage` the cost of this object's calls so far. A model that
    `has_key` is paid for by the token. It takes questions with tools if it `can_call_tools`: False after
    the first that it refused for them.
    """

    def __init__(self, backend: Backend, allowance: Allowance, sleep: Sleep = time.sleep) -> None:
        self.name = backend.name
        self.can_call_tools = backend.can_call_tools
        self.has_key = bool(backend.key)
        self.usage = Usage()
        self._backend = backend
        self._allowance = allowance
        self._sleep = sleep

    def complete_json(
        self, system: str, prompt: str, keys: Mapping[str, Mapping[str, Any]]
    ) -> dict[str, Any]:
        """Return the answer as an object with exactly these keys; each value fits its JSON schema.

        `system` holds instructions only: what a user or a file said belongs into the prompt.
        `backend.parse_json` says which part of JSON schema counts. The schema is in the prompt, whatever
        the backend: not every server knows another way, and some that say they do ignore it.
        """
        reply = self.converse(ModelQuestion(system, with_schema(prompt, keys), schema_of(keys)))
        return parse_json(reply.text.strip(), keys, self.name)

    def converse(self, question: ModelQuestion, take: Take | None = None) -> Reply:
        """Return the reply, its text or its calls; `take` gets its text in pieces as they come, and
        "" in each second that the model is silent.

        The pieces are the text of the reply, which is tried again only before the first. They stay with
        the caller where an error comes in the middle of them; what `take` raises ends the call at once
        and passes through. Raises ModelToolsError where the model takes no tools: it can be asked
        without.
        """
        pieces = None if take is None else _Pieces(take, self._too_long())
        pause = partial(cancel.sleep, self._sleep, pieces.take) if pieces else self._sleep
        reply = server.call_repeatedly(lambda: self._attempt(question, pieces), pause)
        text = reply.text.strip()
        if reply.end == DECLINED:
            declined = f"{self.name} declined to answer"
            raise errors.ModelRefusedError(declined, "choose another model")
        if reply.end == CUT:
            # its context may end before the limit
            tokens = reply.output_tokens or self._backend.answer_tokens
            raise errors.ModelCallError(
                f"{self.name} did not come to an end in {tokens} tokens",
                "choose another model, or a larger context",
            )
        if not text and not reply.calls:
            raise errors.ModelCallError(
                f"{self.name} answered with nothing", "choose another model"
            )
        arguments = (json.dumps(call.arguments) for call in reply.calls)
        if len(text) + sum(map(len, arguments)) > MAX_CHARS:
            raise self._too_long()
        return reply

    def _too_long(self) -> errors.ModelCallError:
        return errors.ModelCallError(
            f"{self.name} answered with more than {MAX_CHARS:,} characters", "choose another model"
        )

    def _attempt(self, question: ModelQuestion, pieces: _Pieces | None) -> Reply:
        """Return the reply of one call, written down before and after it. Raises ModelCallError."""
        expected = question.chars // CHARS_A_TOKEN + 1
        booking = self._allowance.book(expected + self._backend.answer_tokens)
        began = time.monotonic()
        try:
            if pieces is None:
                reply = self._backend.ask(question)
            else:
                reply = cancel.call(
                    partial(self._backend.ask, question), pieces.take, self._backend.end
                )
        except Exception as error:  # what a call took is counted, however it ends
            passed, failed = (0, None) if pieces is None else (pieces.chars, pieces.failed)
            if isinstance(error, errors.ModelToolsError):
                self.can_call_tools = False
            if not passed and error is not failed and _did_nothing(error):
                self._allowance.settle(booking, 0, calls=0)
                raise
            written = passed // CHARS_A_TOKEN
            self.usage += Usage(1, expected, written, time.monotonic() - began)
            if passed and error is not failed and isinstance(error, errors.ModelCallError):
                message = error.message.removeprefix(f"{self.name}: ").removeprefix(f"{self.name} ")
                broken = f"{self.name} ended in the middle of its answer: {message}"
                raise errors.ModelCallError(broken, error.hint) from None
            raise
        input_tokens, output_tokens = reply.input_tokens, reply.output_tokens
        input_tokens = expected if input_tokens is None else input_tokens
        output_tokens = (
            len(reply.text) // CHARS_A_TOKEN + 1 if output_tokens is None else output_tokens
        )
        self._allowance.settle(booking, input_tokens + output_tokens)
        self.usage += Usage(1, input_tokens, output_tokens, time.monotonic() - began, reply.cost)
        return reply


class _Pieces:
    """Passes the pieces of an answer on, `chars` so far; `failed` is the caller's error."""

    def __init__(self, take: Take, too_long: errors.ModelCallError) -> None:
        self.chars = 0
        self.failed: Exception | None = None
        self._take = take
        self._too_long = too_long

    def take(self, piece: str) -> None:
        """Pass a piece on. Raises what the caller raises."""
        room = MAX_CHARS - self.chars
        self.chars += len(piece)
        try:
            self._take(piece[:room])
            if len(piece) > room:
                raise self._too_long
        except Exception as error:
            self.failed = error
            raise


def _did_nothing(error: Exception) -> bool:
    """Whether no model did anything: the booking of the call is taken back."""
    final = error.final if isinstance(error, PassingError) else error
    if isinstance(final, errors.ModelCallError):
        return isinstance(final, errors.ModelAwayError | errors.ModelToolsError)
    return isinstance(final, errors.VaultError)
