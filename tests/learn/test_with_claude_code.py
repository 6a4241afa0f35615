"""With the real agent: four stages and one, through the user's own claude; no hook fires, nothing stays.

The CLI comes from npm; its model is a stub on loopback, so nothing leaves the machine.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.learn.materials import a_material, an_entry, good_answer, stage_of
from tests.support.claude_code import environment
from tests.support.files import MakeVault, commit, write
from tests.support.messages_api import Blocks, MessagesApi, last_text, text
from vault_index import client
from vault_index.api.learn import lessons_by
from vault_index.learn import record, run
from vault_index.vault import open_vault

pytestmark = [pytest.mark.claude_code, pytest.mark.slow, pytest.mark.timeout(600)]

WITNESS = "import sys; print(sys.stdin.read().strip(), file=open(sys.argv[1], 'a'))"
HOOKS = ("SessionStart", "UserPromptSubmit", "Stop", "SessionEnd")
AROUND_CHARS = 2_000  # of a request beyond instructions and prompt: 1,900 in 2.1.329


def answer(request: dict[str, Any]) -> Blocks:
    """Answer as a good model does."""
    content = json.loads(last_text(request))
    blocks = [{"text": content}] if isinstance(content, str) else content
    asked = "\n".join(block.get("text", "") for block in blocks)
    return [text(json.dumps(good_answer(stage_of(asked), an_entry())))]


@pytest.mark.parametrize("stages", [4, 1])
def test_an_analysis_is_so_many_lean_requests(
    claude: Path,
    api: MessagesApi,
    own_world: Path,
    make_vault: MakeVault,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    stages: int,
) -> None:
    fired = tmp_path / "fired.jsonl"
    hook = {"type": "command", "command": sys.executable, "args": ["-c", WITNESS, str(fired)]}
    settings = {"hooks": {event: [{"hooks": [hook]}] for event in HOOKS}}
    write(own_world / ".claude" / "settings.json", json.dumps(settings))
    chosen = "stages = 4\n" if stages == 4 else ""
    write(own_world / "config.toml", f'[learn]\nmodel = "claude"\n{chosen}')
    vault = make_vault({})
    commit(vault.root)
    for name, value in environment(api, own_world).items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("PATH", f"{claude.parent}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("LESSONS_EMBEDDER", "none")
    monkeypatch.chdir(vault.root)
    api.answer = answer

    notes: list[str] = []
    vault = open_vault(vault.root)
    caller = run.Caller(
        notes.append,
        lambda *_: None,
        lessons_by(lambda question: client.ask(vault, question)),
    )
    answered = run.learn_from(vault, caller, a_material())

    assert answered["status"] == record.PROPOSED, answered["trouble"]
    assert len(api.requests) == stages
    sent = sum(len(json.dumps(request)) for request in api.requests)
    assert sent > 0
    assert sent <= answered["plan"]["chars"] * 1.1 + AROUND_CHARS * stages
    assert all(not request.get("tools") for request in api.requests)
    assert notes[0].endswith("Anthropic, through your own claude; it leaves this machine")
    assert answered["usage"]["calls"] == stages
    assert answered["usage"]["cost"] is not None
    assert not fired.exists()
    assert not [file for file in own_world.rglob("*.jsonl") if ".claude" in file.parts]
