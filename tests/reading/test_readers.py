"""Transcripts of agents as events: what a person typed, what the agent did, what went wrong."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

import pytest

from vault_index.transcripts import claude_code, codex, events, tools
from vault_index.transcripts.events import TranscriptEvent, TranscriptReader


def user(content: Any, **values: Any) -> dict[str, Any]:
    record = {"type": "user", "uuid": "u", "message": {"role": "user", "content": content}}
    return record | {"timestamp": "2026-11-20T20:00:00Z", "sessionId": "s"} | values


def assistant(*blocks: dict[str, Any], **values: Any) -> dict[str, Any]:
    return {"type": "assistant", "uuid": "a", "message": {"content": list(blocks)}} | values


def read(*records: Any) -> list[TranscriptEvent]:
    """Read records as a transcript of Claude Code; a text is a line as it is."""
    return events_of(claude_code.ClaudeReader(), records)


def events_of(reader: TranscriptReader, records: Iterable[Any]) -> list[TranscriptEvent]:
    lines = [record if isinstance(record, str) else json.dumps(record) for record in records]
    return [*(event for line in lines for event in reader.events(line.encode())), *reader.end()]


def kinds(*records: Any) -> list[str]:
    return [event.kind for event in read(*records)]


def test_a_turn() -> None:
    call = {"type": "tool_use", "id": "t1", "name": "Bash", "input": {"command": "make"}}
    failed = {"type": "tool_result", "tool_use_id": "t1", "content": "no rule", "is_error": True}
    turn = read(
        user("Why does it fail?", gitBranch="main", cwd="/code"),
        assistant({"type": "text", "text": "I look."}),
        assistant(call),
        assistant(call),  # a message is written again as it grows
        user([failed]),
    )
    expected = [events.PROMPT, events.TEXT, events.TOOL_CALL, events.TOOL_RESULT]
    assert [event.kind for event in turn] == expected
    assert (turn[0].text, turn[0].branch, turn[0].folder) == ("Why does it fail?", "main", "/code")
    assert (turn[2].tool, turn[2].input) == ("Bash", {"command": "make"})
    assert (turn[3].call, turn[3].is_error, turn[3].text) == ("t1", True, "no rule")


@pytest.mark.parametrize(
    ("content", "kind", "text"),
    [
        ("<command-name>/review</command-name><command-args>now</command-args>",
         events.SLASH_COMMAND, "/review now"),
        ("/clear", events.SLASH_COMMAND, "/clear"),
        ("<bash-input>git log</bash-input>", events.SHELL_COMMAND, "git log"),
        ("[Request interrupted by user]", events.INTERRUPT, "[Request interrupted by user]"),
        ("Implement the following plan:\n1.", events.PLAN, "Implement the following plan:\n1."),
        ("/usr/bin is missing", events.PROMPT, "/usr/bin is missing"),
        ("<b>bold</b>", events.PROMPT, "<b>bold</b>"),
    ],
)  # fmt: skip
def test_what_a_record_of_the_user_is(content: str, kind: str, text: str) -> None:
    (event,) = read(user(content))
    assert (event.kind, event.text) == (kind, text)


@pytest.mark.parametrize(
    "record",
    [
        user("<task-notification>done</task-notification>"),
        user("<local-command-stdout>ok</local-command-stdout>"),
        user("Another Claude session sent a message: hi"),
        user("Base directory for this skill: /x"),
        user("Caveat", isMeta=True),
        user("of a subagent", isSidechain=True),
        {"type": "attachment", "attachment": {"type": "hook_success", "content": "<lessons>"}},
    ],
)
def test_what_a_program_put_there_is_nobodys_prompt(record: dict[str, Any]) -> None:
    assert events.PROMPTS.isdisjoint(kinds(record))


def test_a_program_that_runs_the_agent_is_marked_so() -> None:
    assert kinds(user("Review it.", entrypoint="sdk-cli")) == [events.AUTOMATED]
    assert kinds(user("Review it.", entrypoint="cli", promptSource="sdk")) == [events.PROMPT]


def test_what_is_odd_is_counted_and_never_fatal() -> None:
    lines = [
        "{half",
        json.dumps({"type": "new-thing"}),
        json.dumps(user("a")) + json.dumps(user("b")),
    ]
    lines += ["[1]", "\ufffd", json.dumps({"type": "user", "message": None})]
    reader = claude_code.ClaudeReader()
    read_events = events_of(reader, lines)
    assert [event.text for event in read_events] == ["a", "b"]
    assert reader.unread == 3


def test_codex_comes_through_the_same_door() -> None:
    records: list[dict[str, Any]] = [
        {"type": "session_meta", "payload": {"id": "s1", "cwd": "/code", "git": {"branch": "main"}}},
        {"type": "response_item", "payload": {"type": "message", "role": "user", "content": []}},
        {"type": "event_msg", "payload": {"type": "user_message", "message": "fix it"}},
        {"type": "response_item", "payload": {"type": "function_call", "name": "exec_command",
         "arguments": '{"cmd": "make"}', "call_id": "c"}},
        {"type": "response_item", "payload": {"type": "function_call_output", "call_id": "c",
         "output": "Process exited with code 2\nOutput:\nno rule"}},
        {"type": "event_msg", "payload": {"type": "agent_message", "message": "There is no rule."}},
    ]  # fmt: skip
    session = events_of(codex.CodexReader(), records)
    expected = [events.PROMPT, events.TOOL_CALL, events.TOOL_RESULT, events.TEXT]
    assert [event.kind for event in session] == expected
    assert (session[0].session, session[0].branch, session[0].text) == ("s1", "main", "fix it")
    assert session[1].input == {"cmd": "make"}
    assert session[2].is_error
    first = codex.CodexReader()
    begun = events_of(first, records[:4])
    assert [*begun, *events_of(codex.CodexReader(first.state()), records[4:])] == session
    records[0]["payload"]["originator"] = "codex_exec"
    automated = events_of(codex.CodexReader(), records)
    assert automated[0].kind == events.AUTOMATED
    for number, type, kind in (
        (2, "UserMessage", "text"),
        (-1, "AgentMessage", "Text"),
    ):  # of 0.171
        message = {"type": kind, "text": records[number]["payload"]["message"]}
        item = {"type": type, "content": [message, {"type": "local_image"}]}
        records[number]["payload"] = {"type": "item_completed", "item": item}
    newer = events_of(codex.CodexReader(), records)
    assert [(each.kind, each.text) for each in newer] == [(e.kind, e.text) for e in automated]
    assert newer[0].images == 1


def test_each_file_of_a_patch_is_an_edit() -> None:
    patch = "\n".join(
        [
            "*** Begin Patch",
            *("*** Update File: shop/cart.py", "@@", " week = 7", "-cookie = 1", "+cookie = week"),
            *("*** Add File: shop/new.py", "+now = 2"),
            "*** End Patch",
        ]
    )
    changed, added = tools.edits_of({"input": patch})
    assert changed == tools.Edit("shop/cart.py", "week = 7\ncookie = 1", "week = 7\ncookie = week")
    assert added == tools.Edit("shop/new.py", "", "now = 2", is_whole=True)
