"""The day's allowance of language models for all commands of a user: calls and tokens.

    ~/.lessons/llm/allowance.json   the day in UTC, its calls, its tokens
    ~/.lessons/llm/allowance.lock   one process at a time

A call is written down before it is made, with the tokens that it may take, so that a process that dies
in it has used them; the real number replaces them afterwards. A call that reached no model is taken
back.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from vault_index import files
from vault_index.config import Config
from vault_index.errors import ModelBudgetError, WriteError
from vault_index.files import private

FOLDER, FILE, LOCK = "llm", "allowance.json", "allowance.lock"


@dataclass(frozen=True, slots=True)
class Day:
    """The part of a day's allowance that was used."""

    day: str = ""
    calls: int = 0
    tokens: int = 0


@dataclass(frozen=True, slots=True)
class Booking:
    """A call that was written down: its day, and the tokens it may take."""

    day: str
    tokens: int


class Allowance:
    """The user's calls and tokens of a day; `now` is in seconds since the epoch."""

    def __init__(self, config: Config, now: Callable[[], float] = time.time) -> None:
        self._folder = config.home / FOLDER
        self._settings = config.home / "config.toml"
        self._calls, self._tokens = config.llm_calls_a_day, config.llm_tokens_a_day
        self._now = now

    def book(self, tokens: int) -> Booking:
        """Write down a call that may take so many tokens.

        Raises ModelBudgetError if the day has no room for it, and WriteError.
        """
        private.make_folder(self._folder)
        with private.locked(self._folder / LOCK):
            used = self.used()
            if used.calls >= self._calls:
                raise self._error(f"the day's {self._calls:,} calls are used up", "calls_a_day")
            left = self._tokens - used.tokens
            if tokens > left:
                problem = (
                    f"a call may take {tokens:,} tokens, and the day has {max(left, 0):,} left"
                )
                raise self._error(problem, "tokens_a_day")
            self._write(Day(used.day, used.calls + 1, used.tokens + tokens))
        return Booking(used.day, tokens)

    def settle(self, booking: Booking, tokens: int, calls: int = 1) -> None:
        """Put what a call took in the place of what was booked; 0 calls take it back.

        A disk that cannot be written to loses no answer: then the booking stays.
        """
        try:
            with private.locked(self._folder / LOCK):
                used = self.used()
                if used.day == booking.day:
                    calls = used.calls - 1 + calls
                    tokens = used.tokens - booking.tokens + tokens
                    self._write(Day(used.day, max(calls, 0), max(tokens, 0)))
        except (WriteError, ModelBudgetError):
            return

    def used(self) -> Day:
        """Return what was used of today. Raises ModelBudgetError if the file is damaged."""
        file = self._folder / FILE
        today = datetime.fromtimestamp(self._now(), UTC).date().isoformat()
        try:
            values = json.loads(file.read_bytes())
            used = Day(str(values["day"]), int(values["calls"]), int(values["tokens"]))
        except FileNotFoundError:
            used = Day()
        except (OSError, ValueError, TypeError, KeyError):
            raise ModelBudgetError(
                f"{file} is damaged, so no language model is asked", "remove it"
            ) from None
        return used if used.day == today else Day(today)

    def _write(self, used: Day) -> None:
        file = self._folder / FILE
        with files.writing(file):
            files.replace_file(file, json.dumps(asdict(used)).encode())

    def _error(self, problem: str, setting: str) -> ModelBudgetError:
        tomorrow = datetime.fromtimestamp(self._now(), UTC).date() + timedelta(days=1)
        return ModelBudgetError(
            f"language models: {problem}",
            f"wait until {tomorrow} 00:00 UTC, or raise {setting} of [llm] in {self._settings}",
        )


def folder_of(config: Config) -> Path:
    """Return the private folder of language models."""
    return config.home / FOLDER
