"""What all commands of a user may ask of models in a day, whatever process asks, and however it ends."""

from __future__ import annotations

import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from tests.support.model_server import ModelServer, Response
from tests.support.watchers import soon
from vault_index import llm
from vault_index.config import Config, LlmTable
from vault_index.errors import ModelAwayError, ModelBudgetError
from vault_index.llm.backend import ModelQuestion
from vault_index.llm.metered import Allowance, Day

NOON = 1_795_176_000.0  # 2026-11-20T12:00:00Z
DAY = 24 * 3600


@pytest.fixture
def config(server: ModelServer, tmp_path: Path) -> Config:
    return Config(home=tmp_path / "me", llm=LlmTable(openai_url=f"{server.url}/v1"))


def ask(config: Config) -> str:
    """Ask as another process would: nothing is kept but the file."""
    return (
        llm.open_model("openai:opus", config, sleep=lambda _: None)
        .converse(ModelQuestion("Be brief.", "Hi?"))
        .text
    )


def test_a_day_has_its_calls_and_the_next_day_its_own(config: Config) -> None:
    now = [NOON]
    allowance = Allowance(replace(config, llm=replace(config.llm, calls_a_day=2)), lambda: now[0])
    for _ in range(2):
        allowance.settle(allowance.book(100), 30)
    assert allowance.used() == Day("2026-11-20", 2, 60)
    with pytest.raises(ModelBudgetError, match="the day's 2 calls are used up") as caught:
        allowance.book(1)
    assert caught.value.hint == (
        f"wait until 2026-11-21 00:00 UTC, or raise calls_a_day of [llm] in "
        f"{config.home / 'config.toml'}"
    )
    now[0] += DAY
    allowance.book(100)
    assert allowance.used() == Day("2026-11-21", 1, 100)


def test_a_day_has_its_tokens_those_of_calls_under_way_included(config: Config) -> None:
    allowance = Allowance(replace(config, llm=replace(config.llm, tokens_a_day=1000)), lambda: NOON)
    booking = allowance.book(900)
    with pytest.raises(ModelBudgetError, match="may take 200 tokens, and the day has 100 left"):
        allowance.book(200)
    allowance.settle(booking, 50)
    allowance.book(200)
    assert allowance.used().tokens == 250


@pytest.mark.parametrize("setting", [LlmTable(calls_a_day=0), LlmTable(tokens_a_day=0)])
def test_none_is_none(config: Config, server: ModelServer, setting: LlmTable) -> None:
    with pytest.raises(ModelBudgetError):
        ask(replace(config, llm=replace(setting, openai_url=config.llm.openai_url)))
    assert not server.requests


def test_each_attempt_that_a_model_may_have_worked_on_is_a_call(
    config: Config, server: ModelServer
) -> None:
    server.instead = [Response(500), Response(503), Response(429)]
    ask(config)  # a 500 may have been paid for; the others did nothing
    assert Allowance(config).used().calls == 2
    server.instead = [Response(500)] * 9
    with pytest.raises(ModelBudgetError):
        ask(replace(config, llm=replace(config.llm, calls_a_day=4)))
    assert len(server.requests) == 4 + 2


def test_who_is_away_uses_nothing(config: Config) -> None:
    with pytest.raises(ModelAwayError):
        ask(replace(config, llm=replace(config.llm, openai_url="http://127.0.0.1:9")))
    used = Allowance(config).used()
    assert (used.calls, used.tokens) == (0, 0)


CALL = (
    "import sys; from pathlib import Path; from vault_index import llm;"
    "from vault_index.config import Config, LlmTable;"
    "from vault_index.llm.backend import ModelQuestion;"
    "config = Config(home=Path(sys.argv[1]), llm=LlmTable(openai_url=sys.argv[2], calls_a_day=8));"
    "model = llm.open_model('openai:opus', config)\n"
    "for _ in range(5): model.converse(ModelQuestion('Be brief.', 'Hi?'))"
)


@pytest.mark.slow
def test_processes_side_by_side_share_it(config: Config, server: ModelServer) -> None:
    words = [sys.executable, "-c", CALL, str(config.home), config.llm.openai_url]
    processes = [subprocess.Popen(words, stderr=subprocess.PIPE, text=True) for _ in range(3)]
    said = [process.communicate()[1] for process in processes]
    assert len(server.requests) == 8
    assert sum("ModelBudgetError" in each for each in said) >= 2


@pytest.mark.slow
def test_a_process_that_dies_in_a_call_has_used_it(config: Config, server: ModelServer) -> None:
    server.delay = 60
    words = [sys.executable, "-c", CALL, str(config.home), config.llm.openai_url]
    process = subprocess.Popen(words)
    soon(lambda: server.requests)
    process.send_signal(signal.SIGKILL)
    process.wait()
    used = Allowance(config).used()
    assert used.calls == 1
    assert used.tokens > 4000  # what the answer may have had
