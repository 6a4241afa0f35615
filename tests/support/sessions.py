"""A session of the journal, small and whole."""

from __future__ import annotations

from vault_index.journal.record import Command, ReadTo, Record, Session

ID = "3f2a91c0-0000-4000-8000-000000000001"


def a_session(id: str = ID, project: str = "shop", folder: str = "/code/shop") -> Session:
    """Return a session with a prompt, an observation and a summary."""
    short = id[:8]
    return Session(
        id=id,
        agent="claude",
        transcript=f"/agent/{id}.jsonl",
        project=project,
        folder=folder,
        branch="main",
        began="2026-11-20T14:02:33.120Z",
        ended="2026-11-20T14:09:00.000Z",
        version="2.1.329",
        prompts=1,
        tool_calls=3,
        read=ReadTo(1200, "00ff00ff00ff00ff", 1, 3400, {"turn": 1}),
        records=(
            Record(
                id=f"{short}-p1",
                kind="prompt",
                number=1,
                at="2026-11-20T14:02:33.120Z",
                title="Keep the query when the login redirects",
                text="Keep the query when the login redirects",
                uuids=(f"{short}-u1",),
                origin="prompt",
                branch="main",
            ),
            Record(
                id=f"{short}-o1.1",
                kind="observation",
                number=1,
                at="2026-11-20T14:05:10.000Z",
                title="The redirect keeps its query",
                text="The test failed before the edit and passes after it.",
                uuids=(f"{short}-u1", f"{short}-u2"),
                branch="main",
                type="bugfix",
                facts=("The old code dropped everything behind the question mark.",),
                concepts=("problem-solution",),
                files_read=("tests/test_login.py",),
                files_modified=("login.py",),
                commands=(
                    Command("pytest -q tests/test_login.py", 1, True, "1 failed"),
                    Command("pytest -q tests/test_login.py", 0),
                ),
                errors=("AssertionError: /home != /home?next=cart",),
            ),
            Record(
                id=f"{short}-s",
                kind="summary",
                number=1,
                at="2026-11-20T14:09:00.000Z",
                title="Keep the query when the login redirects",
                text="",
                fields={
                    "request": "Keep the query when the login redirects",
                    "completed": "login.py keeps the query.",
                    "next_steps": "Deploy it.",
                },
            ),
        ),
    )
