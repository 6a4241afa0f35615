"""A transcript as a session: the same wherever reading stopped, and never what this product put there."""

from __future__ import annotations

import json
import random
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.support.conversations import FOLDER, SESSION, Talk
from vault_index.journal import capture, observe
from vault_index.journal.record import OBSERVATION, PROMPT, SUMMARY, Record, Session
from vault_index.transcripts import events, moments
from vault_index.transcripts.moments import Moment


def read(file: Path, before: Kept | None = None) -> Kept:
    """Return a session as the journal has it after a read that goes on from an earlier one."""
    now = capture.read(file, "claude", before.session if before else None)
    there = [each for each in (before.moments if before else ()) if each.place < now.begin]
    state = json.loads(json.dumps(now.session.read.state))  # as it comes back from the database
    kept = replace(now.session, short=SESSION[:8], read=replace(now.session.read, state=state))
    there += now.moments
    return Kept(observe.seen(kept, there), tuple(there))


@dataclass(frozen=True)
class Kept:
    session: Session
    moments: tuple[Moment, ...]

    @property
    def records(self) -> tuple[Record, ...]:
        return self.session.records


def prompts(session: Kept) -> list[Record]:
    return [record for record in session.records if record.kind == PROMPT]


def whole_text(session: Kept) -> str:
    return repr(session)


def long_talk() -> Talk:
    """All that a reader must remember from one turn to the next is in it."""
    talk = Talk()
    talk.add({"type": "mode", "mode": "default"})
    talk.prompt("Why is the cart empty after a reload? — 장바구니")
    talk.calls("Grep", "cart.py", pattern="def load")
    talk.calls("Read", "def load(): ...", file_path=f"{FOLDER}/shop/cart.py")
    talk.says("The cart is empty because the session cookie expires at once. " * 12)
    talk.calls("TodoWrite", "ok", todos=[{"content": "Keep the cookie", "status": "pending"}])
    talk.add({"type": "queue-operation", "operation": "enqueue", "content": "and add a test"})
    talk.add({"type": "queue-operation", "operation": "remove"})
    talk.edits("shop/cart.py")
    talk.runs("pytest -q", "1 failed", status=1)
    talk.prompt("[Request interrupted by user]")
    talk.prompt("yes, the second one")
    talk.edits("shop/session.py")
    talk.runs("pytest -q", "3 passed")
    talk.runs("git commit -m x", "[main 1a2b3c4] fix: keep the cart's cookie")
    talk.lines.append(b'{"broken\n')
    talk.lines.append(b"\xff\xfe\n")
    talk.prompt("/compact")
    talk.prompt([{"type": "image", "source": {}}])
    joined = talk.lines.pop().rstrip()
    talk.says("It shows the cart of a guest, which has another cookie than that of a customer.")
    talk.lines[-1] = joined + talk.lines[-1]  # two objects on a line
    talk.prompt("thanks", timestamp="2026-11-19T00:00:00Z")  # a clock set back
    return talk


DATA = b"".join(long_talk().lines)


@pytest.mark.slow
@settings(
    max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None
)
@given(cuts=st.lists(st.integers(0, len(DATA)), max_size=8))
def test_where_earlier_reads_stopped_makes_no_difference(tmp_path: Path, cuts: list[int]) -> None:
    """In the middle of a line and of a character, too."""
    file = tmp_path / f"{SESSION}.jsonl"
    session = None
    for cut in [*sorted(cuts), len(DATA)]:
        file.write_bytes(DATA[:cut])
        session = read(file, session)
    assert session == read(file)


def test_a_session(tmp_path: Path) -> None:
    kept = read(long_talk().write(tmp_path / f"{SESSION}.jsonl"))
    session = kept.session
    assert (session.id, session.agent, session.folder) == (SESSION, "claude", FOLDER)
    assert (session.branch, session.version, session.parent) == ("main", "2.1.329", "")
    assert (session.began, session.ended[:10]) == ("2026-11-19T00:00:00.000Z", "2026-11-20")
    origins = [record.origin for record in prompts(kept)]
    assert sorted(origins) == [*[events.PROMPT] * 4, events.QUEUED], "a bare /compact is none"
    assert session.tool_calls == 8
    assert session.unread == 2
    assert session.records[0].id == "3f2a91c0-p1"
    assert session.records[-1].kind == SUMMARY


@pytest.mark.parametrize("change", ["shrank", "changed"])
def test_a_file_that_is_another_one_is_read_from_the_start(tmp_path: Path, change: str) -> None:
    file = long_talk().write(tmp_path / f"{SESSION}.jsonl")
    before = read(file)
    other = DATA.replace(b"empty after", b"wrong after") if change == "changed" else DATA[:-400]
    file.write_bytes(other)
    assert read(file, before) == read(file)
    assert ("wrong after" in whole_text(read(file, before))) == (change == "changed")


def test_a_line_that_is_being_written_waits_for_its_end(tmp_path: Path) -> None:
    talk = Talk()
    talk.prompt("Where is the login redirect?")
    talk.prompt("And the logout?")
    file = talk.write(tmp_path / f"{SESSION}.jsonl")
    whole = file.read_bytes()
    file.write_bytes(whole[:-20])
    session = read(file)
    assert [record.text for record in prompts(session)] == ["Where is the login redirect?"]
    assert session.session.unread == 0
    file.write_bytes(whole[:-1])  # all but the line feed: nothing more may come
    assert len(prompts(read(file, session))) == 2


def test_never_itself(tmp_path: Path) -> None:
    """Not what a hook put there, not where it is quoted, not a session that this product started."""
    fence = "<lessons>\nNotes from this team's lesson vault.\n- Cafe latte\n</lessons>"
    talk = Talk()
    talk.prompt(f"What is in the index?\n{fence}\nIn short.")
    talk.add({"type": "attachment", "attachment": {"type": "hook_success", "content": fence}})
    talk.says(f"I was shown this:\n{fence}\nand the index holds the rest of the vault's files.")
    talk.runs("pytest", f"FAILED\n{json.dumps(fence)}\n{fence[:-11]}", status=1)
    talk.prompt("Go on.<system-reminder>Cafe latte</system-reminder>")
    text = whole_text(read(talk.write(tmp_path / f"{SESSION}.jsonl")))
    assert "latte" not in text
    assert "In short." in text
    assert "the index holds" in text

    own = Talk()
    own.prompt(f"{events.MARKER}\nSummarise this session.", entrypoint="sdk-cli")
    own.says("A summary of a session, which is no session of the user's at all.")
    session = read(own.write(tmp_path / "own" / f"{SESSION}.jsonl"))
    assert session.records == ()


def test_subagents(tmp_path: Path) -> None:
    """A subagent's own transcript has a parent; inside a session's file it only works."""
    talk = Talk(isSidechain=True, agentId="ad79cef0")
    talk.prompt("Find where the cart is loaded.")
    talk.calls("Read", "...", file_path=f"{FOLDER}/shop/cart.py")
    talk.says("The cart is loaded in shop/cart.py by the function load.")
    own = read(talk.write(tmp_path / SESSION / "subagents" / "agent-ad79cef0.jsonl"))
    agent = own.session
    assert (agent.id, agent.parent, agent.prompts) == ("ad79cef0", SESSION, 0)
    assert [record.kind for record in own.records] == [PROMPT, OBSERVATION, SUMMARY]

    main = Talk()
    main.prompt("Where is the cart loaded?")
    main.lines += talk.lines
    main.says("A subagent looked: it is in shop/cart.py.")
    session = read(main.write(tmp_path / f"{SESSION}.jsonl"))
    (prompt, work, _) = session.records
    assert prompt.text == "Where is the cart loaded?"
    assert work.files_read == ("shop/cart.py",)
    assert "by the function load" not in work.text


def test_secrets_are_redacted_before_anything_is_cut(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A secret across the place of a cut would be half of one that no rule knows."""
    secret = "hunter2" * 20
    talk = Talk()
    talk.prompt(f"Why is {secret} refused?")
    talk.says("x" * 700 + f" {secret} " + "y" * 90)
    talk.runs(f"curl -u {secret} shop", f"{secret}\n" * 50, status=22)
    talk.calls("Grep", "", pattern=f"{secret}.*")
    talk.calls("mcp__tickets__create", f"no {secret}", is_error=True, title=secret)
    talk.calls("TodoWrite", "", todos=[{"content": f"Replace {secret}", "status": "pending"}])
    talk.prompt("Next.")
    file = talk.write(tmp_path / f"{SESSION}.jsonl")
    monkeypatch.setattr(moments, "redact", lambda text: text.replace(secret, "[redacted]"))
    session = read(file)
    assert "hunter2" not in whole_text(session)
    assert whole_text(session).count("[redacted]") >= 7


ODD: tuple[Any, ...] = (
    None,
    0,
    1.5,
    True,
    "",
    [],
    {},
    [None],
    "\ud800",
    [{"type": "text", "text": 1}],
    10**30,
)


@pytest.mark.slow
@settings(
    max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None
)
@given(seed=st.integers(0, 10**6))
def test_the_format_may_change_in_any_way(tmp_path: Path, seed: int) -> None:
    """A value of another type than expected is never fatal, and what is kept can be written."""
    chance = random.Random(seed)

    def changed(value: Any) -> Any:
        if chance.random() < 0.05:
            return chance.choice(ODD)
        if isinstance(value, dict):
            return {name: changed(inner) for name, inner in value.items()}
        return list(map(changed, value)) if isinstance(value, list) else value

    lines = [line for line in DATA.splitlines() if line.startswith(b'{"uuid') and b"}{" not in line]
    file = tmp_path / f"{SESSION}.jsonl"
    file.write_text("".join(json.dumps(changed(json.loads(line))) + "\n" for line in lines))
    session = read(file)
    json.dumps(asdict(session.session), ensure_ascii=False).encode()
    json.dumps([*map(asdict, session.moments)], ensure_ascii=False).encode()
    assert all(record.title for record in session.records)
