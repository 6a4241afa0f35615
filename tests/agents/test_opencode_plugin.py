"""The plugin of opencode, run by Node: what it asks our hook, and what it does to a message."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.support.commands import run
from tests.support.files import write
from vault_index.entrypoints import agents

pytestmark = pytest.mark.slow

# gives the plugin a list of events and messages, and prints the messages as they are afterwards
HARNESS = """\
import { readFileSync } from "node:fs";
import { Lessons } from "./lessons.mjs";
const hooks = await Lessons({ directory: "/shop" });
for (const [kind, input, output] of JSON.parse(readFileSync(0, "utf8"))) {
  await hooks[kind](input, output);
  if (output) console.log(JSON.stringify(output.parts ?? [{ text: output.output }]));
}
"""
# answers what it was asked, on one line
ECHO = "#!/bin/sh\nprintf '%s\\n' \"$* $(cat)\"\n"


def created(session: str, **info: str) -> list[Any]:
    event = {"type": "session.created", "properties": {"info": {"id": session, **info}}}
    return ["event", {"event": event}]


def message(session: str, *parts: dict[str, Any], id: str = "msg_1") -> list[Any]:
    own = [{"id": "prt_1", "messageID": id, "type": "text", "text": "heap"}, *parts]
    return ["chat.message", {"sessionID": session}, {"message": {"id": id}, "parts": own}]


def play(folder: Path, script: str | None, *steps: list[Any]) -> list[list[dict[str, Any]]]:
    """Return the parts of each message after the plugin had it."""
    node = shutil.which("node")
    if node is None:
        assert not os.environ.get("CI"), "CI must have node"
        pytest.skip("no node on this machine")
    hook = folder / "my tools" / "lessons-hook"
    if script is not None:
        write(hook, script).chmod(0o755)
    agents.AGENTS["opencode"].install(folder / "lessons.mjs", str(hook))
    harness = write(folder / "harness.mjs", HARNESS)
    done = run(node, harness, cwd=folder, stdin=json.dumps(steps))
    assert done.err == ""
    return [json.loads(line) for line in done.out.splitlines()]


def asked(part: dict[str, Any]) -> dict[str, Any]:
    words, _, event = part["text"].partition(" {")
    assert words == "--agent opencode"
    event = json.loads("{" + event)
    assert event.pop("cwd") == "/shop"
    return dict(event)


def test_a_new_session_and_each_prompt(tmp_path: Path) -> None:
    first, second = play(tmp_path, ECHO, created("s1"), message("s1"), message("s1", id="msg_2"))
    start, prompt = first[1:]
    base = {"session_id": "s1", "prompt_id": "msg_1"}
    assert asked(start) == {**base, "hook_event_name": "SessionStart", "source": "startup"}
    assert asked(prompt) == {**base, "hook_event_name": "UserPromptSubmit", "prompt": "heap"}
    for part in (start, prompt):  # the model's alone, and kept beside the prompt
        assert (part["type"], part["synthetic"], part["messageID"]) == ("text", True, "msg_1")
    ids = [part["id"] for part in first]
    assert ids == sorted(set(ids))
    assert [asked(part)["hook_event_name"] for part in second[1:]] == ["UserPromptSubmit"]


def test_a_session_that_was_compacted_says_so_with_its_next_prompt(tmp_path: Path) -> None:
    def compacted(session: str) -> list[Any]:
        event = {"type": "session.compacted", "properties": {"sessionID": session}}
        return ["event", {"event": event}]

    steps = created("s1"), message("s1"), compacted("s1"), message("s1", id="msg_2")
    _, second, third = play(tmp_path, ECHO, *steps, message("s1", id="msg_3"))
    start, prompt = map(asked, second[1:])
    assert (start["hook_event_name"], start["source"]) == ("SessionStart", "compact")
    assert prompt["hook_event_name"] == "UserPromptSubmit"
    assert [asked(part)["hook_event_name"] for part in third[1:]] == ["UserPromptSubmit"]


def test_the_task_of_a_subagent_is_no_prompt(tmp_path: Path) -> None:
    (parts,) = play(tmp_path, ECHO, created("s2", parentID="s1"), message("s2"))
    assert len(parts) == 1


def called(exit: int | None, tool: str = "bash") -> list[Any]:
    """Return what opencode 1.18.33 gives to a plugin after a tool."""
    call = {"tool": tool, "sessionID": "s1", "callID": "c1", "args": {"command": "make"}}
    output = {"title": "make", "output": "boom", "metadata": {"output": "boom", "exit": exit}}
    return ["tool.execute.after", call, output]


def test_only_a_command_that_fails_asks_and_the_answer_follows_its_output(tmp_path: Path) -> None:
    steps = (called(2), called(0), called(None), called(1, "edit"))
    failed, *others = (parts[0]["text"] for parts in play(tmp_path, ECHO, *steps))
    output, _, told = failed.partition("\n\n")
    assert output == "boom"
    assert asked({"text": told}) == {
        "session_id": "s1",
        "hook_event_name": "PostToolUseFailure",
        "tool_name": "Bash",
        "tool_input": {"command": "make"},
        "tool_use_id": "c1",
        "error": "Exit code 2\nboom",
    }
    assert others == ["boom"] * 3


@pytest.mark.parametrize(
    "script",
    ["#!/bin/sh\n", "#!/bin/sh\necho half; exit 3\n", "no program\n", None],
    ids=["silent", "fails", "broken", "missing"],
)
def test_a_hook_without_an_answer_changes_nothing(tmp_path: Path, script: str | None) -> None:
    long = "x" * 1_000_000  # a hook that ends before it has read all
    big = {"id": "prt_2", "type": "text", "text": long}
    one, two = play(tmp_path, script, created("s1"), message("s1"), message("s1", big))
    assert (len(one), len(two)) == (1, 2)
