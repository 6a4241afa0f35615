"""A session file: what is written comes back, people read it, and damage is named."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from vault_index.errors import VaultError
from vault_index.journal import session_file
from vault_index.journal.record import FIELDS, KINDS, TYPES, Command, ReadTo, Record, Session

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


HOSTILE = (
    "---", "```", "````", "## Prompt 1 · 14:02: x", "<!-- record {} -->", "\\<!-- record {} -->",
    "**Facts**", "\\**Facts**", "**Commands**", "$ ls", "\\$ ls", "> quoted", "- item", "  ", "",
    "[exit 0]", "\r", "\u2028", "\x85", "# title", "<!--", "-->", "a: b", "naïve 한국어 🙂",
)  # fmt: skip
texts = st.one_of(
    st.text(max_size=12),
    st.lists(st.one_of(st.sampled_from(HOSTILE), st.text(max_size=4)), max_size=5).map("\n".join),
)
many = st.lists(texts, max_size=3).map(tuple)
commands = st.builds(
    Command, text=texts, status=st.none() | st.integers(-9, 255), failed=st.booleans(), output=texts
)
records = st.builds(
    Record,
    id=texts,
    kind=st.sampled_from(KINDS),
    number=st.integers(0, 99),
    at=texts | st.just("2026-11-20T14:02:33.120Z"),
    title=texts,
    text=texts,
    uuids=many,
    branch=texts,
    origin=texts,
    context=texts,
    type=texts | st.sampled_from(TYPES),
    facts=many,
    concepts=many,
    files_read=many,
    files_modified=many,
    commands=st.lists(commands, max_size=2).map(tuple),
    errors=many,
    fields=st.dictionaries(st.sampled_from(FIELDS) | texts, texts, max_size=4),
)
reads = st.builds(
    ReadTo, st.integers(0), texts, st.integers(0), st.integers(0), st.dictionaries(texts, texts)
)
sessions = st.builds(
    Session,
    id=texts.filter(bool),
    agent=texts,
    transcript=texts,
    project=texts,
    folder=texts | st.sampled_from(["007", "1", "a: b", "/home/me/my shop", "C:\\shop", "true"]),
    prompts=st.integers(0),
    errors=st.integers(0),
    tool_calls=st.integers(0),
    read=reads,
    records=st.lists(records, max_size=3).map(tuple),
)


@pytest.mark.slow
@settings(deadline=None, max_examples=80, suppress_health_check=[HealthCheck.too_slow])
@given(sessions)
def test_any_session_comes_back_as_it_was(session: Session) -> None:
    data = session_file.dump(session)
    assert session_file.parse(data, "a.md") == session
    assert session_file.dump(session_file.parse(data, "a.md")) == data


def test_a_person_can_read_it() -> None:
    text = session_file.dump(a_session()).decode()
    assert text.startswith("---\nsession: 3f2a91c0-0000-4000-8000-000000000001\nagent: claude\n")
    for line in (
        "# Keep the query when the login redirects",
        "## Prompt 1 · 14:02: Keep the query when the login redirects",
        "### Observation · 14:05 · bugfix · problem-solution: The redirect keeps its query",
        "- The old code dropped everything behind the question mark.",
        "$ pytest -q tests/test_login.py",
        "[exit 1, failed]",
        "**Next steps**",
    ):
        assert line in text.splitlines()


def test_what_a_person_edited_is_what_is_read() -> None:
    text = session_file.dump(a_session()).decode()
    text = text.replace(": The redirect keeps its query", ": A better title")
    text = (
        text.replace("- The old code", "\n- Added by hand.\n\n- The old code") + "\nMy own note.\n"
    )
    start, end = text.index("<!-- record"), text.index("<!-- record", text.index("<!-- record") + 1)
    session = session_file.parse((text[:start] + text[end:]).encode(), "a.md")
    assert [record.kind for record in session.records] == ["observation", "summary"]
    assert session.records[0].title == "A better title"
    assert session.records[0].facts[0] == "Added by hand."


@pytest.mark.parametrize(
    ("old", "new", "where"),
    [
        ("---\n", "", "a.md:1: "),
        ("session: ", "session ", "a.md:2: "),
        ("prompts: 1", "prompts: many", "a.md:11: "),
        ('<!-- record {"id"', '<!-- record {"id', "a.md:18: not a record"),
        ("```\n\n**Errors**", "\n\n**Errors**", "a.md:23: not a record: a fence"),
    ],
)
def test_damage_is_named_with_its_line(old: str, new: str, where: str) -> None:
    text = session_file.dump(a_session()).decode()
    assert old in text
    with pytest.raises(VaultError) as raised:
        session_file.parse(text.replace(old, new, 1).encode(), "a.md")
    assert raised.value.message.startswith(where), raised.value.message
    assert raised.value.hint
