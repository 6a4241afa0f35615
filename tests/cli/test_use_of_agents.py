"""What agents look up by themselves, a week, beside what came by itself: `status` and the page."""

from __future__ import annotations

import time

import pytest

from tests.support.commands import run
from tests.support.given import given_to, near
from tests.support.serving import answering
from tests.support.shown_vaults import TEXT_ONLY
from tests.support.three_lessons import HEAP
from vault_index.api import learn
from vault_index.hotpath import hook_event
from vault_index.store import delivery, injections
from vault_index.vault import Vault

pytestmark = pytest.mark.slow
AGENT = {"CLAUDECODE": "1"}


def use_of(vault: Vault) -> str:
    """Return the line of `lessons status` about agents; "" without one."""
    shown = run("lessons", "status", cwd=vault.root).out
    lines = [line for line in shown.splitlines() if line.startswith("agents ")]
    return lines[0].removeprefix("agents").strip() if lines else ""


def test_status_counts_searches_and_reads_beside_what_came(team: Vault) -> None:
    """Issue 54, item 3."""
    assert use_of(team) == ""
    for words in (["search", HEAP], ["search", "zzyzx"], ["show", "node-heap"]):
        run("lessons", *words, cwd=team.root, env=AGENT)
        run("lessons", *words, cwd=team.root)  # a person's
    learn.search(query=HEAP).answer(team)  # over MCP
    given_to(team, ("conventions/dates",))
    given_to(team, (), **near("conventions/dates", 0.1))
    assert use_of(team) == "in 7 days: 3 searches and 1 read of their own, lessons came 1 time"
    weeks = run("lessons", "status", "--json", cwd=team.root).json["injections"]["weeks"]
    counted = [[week[name] for name in ("came", "searches", "reads")] for week in weeks]
    assert counted == [[1, 3, 1], *[[0, 0, 0]] * 3]


def test_a_week_before_is_beside_it(team: Vault) -> None:
    for days, event in ((1, injections.READ), (8, injections.SEARCH), (9, hook_event.PROMPT)):
        at = delivery.iso_time(time.time() - 86_400 * days)
        given_to(team, ("conventions/dates",), event=event, time=at)
    said = "in 7 days: 0 searches and 1 read of their own, lessons came 0 times"
    assert use_of(team) == f"{said}; in the 7 before: 1, 0 and 1"


def test_the_pages_count_them_too(team: Vault) -> None:
    run("lessons", "search", HEAP, cwd=team.root, env=AGENT)
    run("lessons", "show", "node-heap", cwd=team.root, env=AGENT)
    with answering(team.root, team.config.home, **TEXT_ONLY) as answers:
        home = answers.ask("GET", "/page/private/home").text
        vault = answers.ask("GET", "/page/private/vault/state").text
    assert "<h1>Agents searched by themselves</h1>" in home
    assert "Agents searched 1 time and read 1 lesson by themselves." in home
    assert "<dt>agents</dt><dd>in 7 days: 1 search and 1 read of their own" in vault
