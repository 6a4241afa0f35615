"""The summary of a session, by rule: six fields, made again whenever the session goes on."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from tests.support.transcripts import FOLDER, SESSION, Talk
from vault_index.journal import transcript
from vault_index.journal.record import FIELDS, SUMMARY
from vault_index.transcripts import reading


def summary(talk: Talk, tmp_path: Path) -> Mapping[str, str]:
    file = talk.write(tmp_path / f"{SESSION}.jsonl")
    session = transcript.read(file, reading.CLAUDE, None, lambda text: text)
    made = [record for record in session.records if record.kind == SUMMARY]
    assert len(made) <= 1
    if not made:
        return {}
    assert (made[0].id, made[0].at) == ("3f2a91c0-s", session.ended)
    assert list(made[0].fields) == [name for name in FIELDS if name in made[0].fields]
    return made[0].fields


def a_session() -> Talk:
    talk = Talk()
    talk.prompt("hi")
    talk.prompt("The cart is empty after a reload, please find out why.")
    talk.calls("Grep", "shop/cart.py", pattern="def load_cart")
    talk.calls("Read", "...", file_path=f"{FOLDER}/shop/cart.py")
    talk.says(
        "The cart is empty because the cookie of the session expires when the page is closed."
    )
    talk.prompt("no, don't change the cookie, store the cart")
    tasks = [("Store the cart", "completed"), ("Remove old carts", "pending")]
    talk.calls("TodoWrite", "", todos=[{"content": text, "status": is_} for text, is_ in tasks])
    talk.edits("shop/store.py")
    talk.runs("pytest -q", "9 passed")
    talk.runs("git commit -am x", "[main 1a2b3c4] feat: store the cart")
    talk.runs("make lint", "error: shop/store.py:3 unused import", status=2)
    talk.says(
        "The cart is stored in the database now.\n\n## Remaining\n\n- Carts of guests are not stored.\n"
        "\n## Notes\n\nThe table has an index."
    )
    return talk


def test_the_six_fields(tmp_path: Path) -> None:
    fields = summary(a_session(), tmp_path)
    assert fields["request"].startswith("The cart is empty after a reload")
    assert "shop/cart.py" in fields["investigated"]
    assert "`def load_cart`" in fields["investigated"]
    assert "because the cookie of the session expires" in fields["learned"]
    assert "feat: store the cart (shop/store.py)" in fields["completed"]
    assert "Passing: `pytest`" in fields["completed"]
    assert fields["next_steps"].splitlines() == [
        "Remove old carts", "Carts of guests are not stored.",
    ]  # fmt: skip
    assert "The user: no, don't change the cookie, store the cart" in fields["notes"]
    assert "`make lint`: error: shop/store.py:3 unused import" in fields["notes"]


def test_it_is_made_again_when_the_session_goes_on(tmp_path: Path) -> None:
    talk = a_session()
    assert "Not resolved" in summary(talk, tmp_path)["notes"]
    talk.prompt("do the rest")
    talk.edits("shop/store.py")
    talk.runs("make lint", "ok")
    done = [("Store the cart", "completed"), ("Remove old carts", "completed")]
    talk.calls("TodoWrite", "", todos=[{"content": text, "status": is_} for text, is_ in done])
    talk.says("Old carts are removed after a month, and the cart of a guest is stored as well.")
    fields = summary(talk, tmp_path)
    assert "Not resolved" not in fields["notes"]
    assert "next_steps" not in fields


def test_tasks_by_their_number(tmp_path: Path) -> None:
    talk = Talk()
    talk.prompt("Make a plan for the cart and begin.")
    talk.calls("TaskCreate", "Task #1 created successfully: Store it", subject="Store it")
    talk.calls("TaskCreate", "Task #2 created successfully: Remove it", subject="Remove it")
    talk.calls("TaskUpdate", "Updated task #1 status", taskId="1", status="completed")
    assert summary(talk, tmp_path)["next_steps"] == "Remove it"


def test_a_session_without_a_prompt_and_work_has_none(tmp_path: Path) -> None:
    talk = Talk()
    talk.prompt("/clear")
    talk.add({"type": "ai-title", "title": "Nothing"})
    assert summary(talk, tmp_path) == {}
