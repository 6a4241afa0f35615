"""Sixty secrets in a session and its diff: the model gets none, and no file has one."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.learn.materials import an_entry, good_answer, stage_of
from tests.support.commands import run
from tests.support.conversations import Conversation
from tests.support.files import MakeVault, commit, write
from tests.support.model_server import ModelServer
from tests.support.planted import SECRETS
from vault_index.check import secrets
from vault_index.learn import diff

PROMPT = "The login redirect loses the query string"
PLANTED = [*SECRETS, f"the deploy key of staging is AKIA{'ZK7Q2MXW4NB3VLTE'}"]


def pieces(text: str) -> list[str]:
    """Return the secret pieces of a text; of one of several lines the longest."""
    spans = [text[begin:end] for begin, end, _ in secrets.spans(text)]
    return [max(span.splitlines(), key=len).strip() for span in spans]


@pytest.mark.slow
@pytest.mark.parametrize("stages", [4, 1])
def test_no_secret_reaches_the_model_or_a_file(
    make_vault: MakeVault, own_world: Path, monkeypatch: pytest.MonkeyPatch, stages: int
) -> None:
    monkeypatch.setenv("LESSONS_EMBEDDER", "none")
    settings = f'[learn]\nmodel = "ollama:small"\nstages = {stages}\ntokens = 60000\n'
    (own_world / "config.toml").write_text(settings)
    vault = make_vault({})
    write(vault.root / "app.py", "limit = 1\n")
    commit(vault.root)
    talk = Conversation(vault.root, "leaky").asks(PROMPT)
    for number, secret in enumerate(PLANTED):
        match number % 4:
            case 0:
                talk.asks(f"No, not that way: {secret}")
            case 1:
                talk.says(f"I see it in the output now: {secret}")
            case 2:
                talk.runs(f"pytest tests/test_{number}.py", f"1 failed\n{secret}", failed=True)
                talk.runs(f"pytest tests/test_{number}.py", f"1 passed\n{secret}")
            case _:
                talk.edits("app.py", f"# {number}", f"# {secret}")
    write(vault.root / "app.py", "limit = 4096\n" + "\n".join(PLANTED) + "\n")
    run("lessons", "journal", "import", cwd=vault.root)
    with ModelServer() as server:
        monkeypatch.setenv("OLLAMA_HOST", server.url)
        echo = an_entry(problem="\n".join(PLANTED[:40]), quotes=[PROMPT])
        kept = an_entry(quotes=[PROMPT])
        server.answer = lambda body: json.dumps(
            good_answer(stage_of(body["messages"][-1]["content"]), echo, kept)
        )
        answer = run("lessons", "learn", "--session", talk.id, "--json", cwd=vault.root)
        sent = json.dumps(server.chats, ensure_ascii=False)
    assert len(server.chats) == stages
    assert "[redacted: " in sent
    assert [each["reason"] for each in answer.json["dropped"]] == ["it holds a secret"]
    assert len(answer.json["proposals"]) == 1
    folders = [folder for folder in own_world.iterdir() if folder.name != ".claude"]
    files = [file for folder in folders for file in folder.rglob("*") if file.is_file()]
    written = "\n".join(file.read_bytes().decode("utf-8", "replace") for file in files)
    everything = [sent, json.dumps(answer.json, ensure_ascii=False), written]
    assert len(PLANTED) == 60
    for secret in PLANTED:
        for piece in pieces(secret):
            assert piece
            assert not any(piece in text for text in everything), secret


@pytest.mark.parametrize(
    ("hunk", "shown"),
    [
        (" password:\n-  {old}\n+  {new}\n",
         " password:\n-  [redacted: secret]\n+  [redacted: secret]\n"),
        (" machine git.internal\n   login ci\n-  password {old}\n+  password {new}\n",
         " machine git.internal\n   login ci\n"
         "-  password [redacted: password in a netrc line]\n"
         "+  password [redacted: password in a netrc line]\n"),
        (" -----BEGIN PRIVATE KEY-----\n-MIIEpAIBAAKCAQEA7{old}\n-w4Nb3==\n+MIIEpAIBAAKCAQEA8{new}\n"
         "+kJHd7==\n -----END PRIVATE KEY-----\n", None),
        (" kJHd7Qa9{old}\n-kJHd7Qa9Zx==\n+q5Hd7Qa9Zx==\n -----END RSA PRIVATE KEY-----\n", None),
    ],
)  # fmt: skip
def test_a_change_is_redacted_as_what_it_was_and_what_it_became(
    hunk: str, shown: str | None
) -> None:
    old, new = "Old" + "Hunter77xyz", "New" + "Hunter88xyz"
    head = "--- a/app.yml\n+++ b/app.yml\n@@ -1,3 +1,3 @@\n"
    text = diff.clean(head + hunk.format(old=old, new=new))
    for secret in (old, new, "w4Nb3", "kJHd7", "Qa9Zx"):
        assert secret not in text
    assert text.count("\n") == 3 + hunk.count("\n") or shown is None
    assert shown is None or text == head + shown


def test_a_change_without_secrets_stays_as_it_is() -> None:
    text = (
        "diff --git a/q.sql b/q.sql\n--- a/q.sql\n+++ b/q.sql\n@@ -1,4 +1,4 @@ begin\n"
        " select 1\n--- the first\n+-- the second\n \n+++ i\n\\ No newline at end of file\n"
    )
    assert diff.clean(text) == text
