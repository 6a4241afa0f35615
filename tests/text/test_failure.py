"""A failed command: the lines that say why, and what is the same from run to run."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from vault_index.text import failure

PYTEST = """Exit code 1
============================= test session starts ==============================
collected 60 items
tests/test_a.py .............................F                            [100%]
=================================== FAILURES ===================================
_______________________________ test_lazy_load _________________________________
tests/test_a.py:12: in test_lazy_load
    order.lines
.venv/lib/python3.12/site-packages/sqlalchemy/orm/attributes.py:566: in __get__
    return self.impl.get(state, dict_)
E   sqlalchemy.exc.MissingGreenlet: greenlet_spawn has not been called; can't call await_only() here
=========================== short test summary info ============================
FAILED tests/test_a.py::test_lazy_load - sqlalchemy.exc.MissingGreenlet: gree...
1 failed, 59 passed in 2.31s"""
NPM = """npm warn deprecated inflight@1.0.6: This module is not supported
npm error code ERESOLVE
npm error ERESOLVE unable to resolve dependency tree
npm error Found: react@18.2.0
npm error A complete log of this run can be found in: /home/me/.npm/_logs/2026-01-02T03_04_x.log"""


def test_long_outputs_are_reduced_to_the_lines_that_say_what_failed() -> None:
    seen = failure.read("cd api && uv run pytest -q", PYTEST)
    assert "greenlet_spawn has not been called" in "\n".join(seen.lines)
    assert len(seen.lines) <= failure.MAX_LINES
    assert not seen.is_assertion
    npm = failure.read("npm install", NPM)
    assert "npm error ERESOLVE unable to resolve dependency tree" in npm.lines
    assert npm.names == ("ERESOLVE",)


@pytest.mark.parametrize(
    ("command", "program"),
    [
        ("cd web && NODE_ENV=test npx jest src --ci 2>&1 | tail -5", "jest"),
        ("python3 -m pytest tests -q", "pytest"),
        ("sudo /usr/bin/docker compose up", "docker"),
        ("python3.12 run.py", "python"),
        ("export A=1; make", "make"),
        ("", ""),
    ],
)
def test_the_program_is_that_of_the_last_part(command: str, program: str) -> None:
    assert failure.program_of(command) == program


def test_what_changes_from_run_to_run_is_not_in_the_signature() -> None:
    first = "E   OSError: [Errno 98] port 5432 in use by /tmp/pytest-1/db at 2026-01-02T03:04:05Z"
    again = "E   OSError: [Errno 98] port 5433 in use by /tmp/pytest-77/db at 2026-11-25T13:00:00Z"
    other = "E   OSError: [Errno 98] no socket in /tmp/pytest-77/db at 2026-11-25T13:00:00Z"
    one, two, three = (failure.read("pytest", text).signature for text in (first, again, other))
    assert one == two != three
    assert failure.read("make test", first).signature != one


def test_a_taught_line_is_found_whatever_changes() -> None:
    seen = failure.read("pytest", PYTEST)
    assert seen.has("greenlet_spawn has not been called")
    assert seen.has("Greenlet_Spawn  has not been called")
    assert not seen.has("greenlet_spawn has not been call")  # not a part of a word
    assert not seen.has("")
    port = failure.read("npm start", "Error: listen EADDRINUSE: address already in use :::3000")
    assert port.has("listen EADDRINUSE: address already in use :::8080")


@pytest.mark.parametrize(
    "line",
    ["error", "Exit code 1", "not found", "   ", "12:30:11", "Traceback (most recent call last):"],
)
def test_a_line_that_any_failure_has_is_not_specific(line: str) -> None:
    assert not failure.is_specific(line)


@pytest.mark.parametrize(
    "output",
    [
        "\x1b[31m\x1b[1mERROR\x1b[0m: port \x1b]8;;http://x\x07already\x1b]8;;\x07 allocated",
        "ERROR: port already allocated\r\n",
        " 10%\r 50%\rERROR: port already allocated",
        "\0\0\x07ERROR: port already\u200b allocated\x08",
    ],
)
def test_colours_line_ends_progress_and_binary_are_no_part_of_it(output: str) -> None:
    assert failure.read("docker up", output).lines == ("ERROR: port already allocated",)


@pytest.mark.parametrize(
    ("command", "output"),
    [
        ("pytest", "E   AssertionError: assert 1 == 2"),
        ("npx jest", "expect(received).toBe(expected)"),
        ("go test ./...", "--- FAIL: TestPrice (0.00s)\n    price_test.go:3: got 1, want 2"),
        ("cargo test", "assertion `left == right` failed"),
    ],
)
def test_assertions_of_tests_are_known(command: str, output: str) -> None:
    assert failure.read(command, output).is_assertion


@pytest.mark.parametrize(
    "output",
    [
        "",
        "Exit code 1",
        "Command timed out after 2m 0.0s",
        "The user doesn't want to proceed with this tool use.",
    ],
)
def test_what_says_nothing_or_was_stopped_is_none(output: str) -> None:
    assert failure.read("make", output).is_none


@given(st.text(max_size=400), st.text(max_size=2000))
@example("", "0/A")
@example("", "/:0/9Z AA1aAA0")
def test_any_text_is_read(command: str, output: str) -> None:
    seen = failure.read(command, output)
    assert len(seen.lines) <= failure.MAX_LINES
    assert len(seen.signature) == 16
    assert all(len(line) <= failure.MAX_LINE and "\n" not in line for line in seen.output)
    assert seen.signature == failure.read(command, output).signature
    for line in seen.lines:
        assert failure.normalise(failure.normalise(line)) == failure.normalise(line)
        assert seen.has(line) or not failure.normalise(line)


@given(st.text(alphabet="\x1b[]0123456789;mKabc \r\n/.:'\"<>-", max_size=300))
def test_control_sequences_never_stay(output: str) -> None:
    assert all("\x1b" not in line and "\r" not in line for line in failure.clean(output))
