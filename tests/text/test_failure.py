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


MYPY = """Exit code 1
shop/cart.py:3: error: Incompatible return value type (got "int", expected "str")  [return-value]
Found 1 error in 1 file (checked 1 source file)"""
ESLINT = """Exit code 1

/srv/web/cart.mjs
  1:7   error    'total' is assigned a value but never used  no-unused-vars

\u2716 1 problem (1 error, 0 warnings)
  1 error and 0 warnings potentially fixable with the `--fix` option."""
STYLELINT = """Exit code 2
cart.css
  1:3   \u2716  Empty block                      block-no-empty

\u2716 3 problems (3 errors, 0 warnings)
  2 errors potentially fixable with the "--fix" option."""
RUFF = """Exit code 1
cart.py:1:8: F401 [*] `os` imported but unused
Found 1 error.
[*] 1 fixable with the `--fix` option."""
ANSIBLE_LINT = """Exit code 2
yaml[trailing-spaces]: Trailing spaces
site.yml:4

WARNING  Listing 1 violation(s) that are fatal
Failed: 1 failure(s), 0 warning(s) in 1 files processed of 1 encountered. Last profile that met the
validation criteria was 'min'."""
CARGO = """Exit code 101
error[E0308]: mismatched types
 --> src/main.rs:2:18
error: aborting due to 1 previous error
warning: `shop` (bin "shop") generated 1 warning
error: could not compile `shop` (bin "shop") due to 1 previous error; 1 warning emitted"""
TSC = """Exit code 2
src/cart.ts:3:7 - error TS2322: Type 'string' is not assignable to type 'number'.

Found 1 error in src/cart.ts:3"""


@pytest.mark.parametrize(
    ("command", "output", "why"),
    [
        ("mypy shop", MYPY, "Incompatible return value"),
        ("npx eslint .", ESLINT, "no-unused-vars"),
        ("npx stylelint cart.css", STYLELINT, "block-no-empty"),
        ("ruff check", RUFF, "F401"),
        ("ansible-lint site.yml", ANSIBLE_LINT, "trailing-spaces"),
        ("cargo build", CARGO, "mismatched types"),
        ("npx tsc", TSC, "TS2322"),
    ],
)
def test_a_line_that_only_counts_is_no_message(command: str, output: str, why: str) -> None:
    assert [line for line in failure.read(command, output).lines if why not in line] == []


@pytest.mark.parametrize("line", ["Found 3 errors.", "2 problems (2 errors)", "error: 1 failure"])
def test_a_line_that_only_counts_is_better_than_none(line: str) -> None:
    assert failure.read("lint .", f"Exit code 1\nsrc/cart.js\n{line}").lines == (line,)


@pytest.mark.parametrize(
    "line",
    [
        "error: 3 files are missing",
        "error: cannot open 1 file",
        "found 2 versions of react",
        "error TS2322: 1 is not a file",
    ],
)
def test_a_count_of_something_else_is_a_message(line: str) -> None:
    assert line in failure.read("build", f"{line}\nFound 1 error in 1 file").lines


JS = """const fs = require('fs')
if (!fs.existsSync('config.json')) throw new Error('the config must not be missing: not found')
module.exports = undefinedThing.x
"""
NODE = """/srv/web/load.js:3
module.exports = undefinedThing.x
                 ^

ReferenceError: undefinedThing is not defined
    at Object.<anonymous> (/srv/web/load.js:3:18)
    at Module._compile (node:internal/modules/cjs/loader:1521:14)

Node.js v20.20.2"""
PY = '''"""It must not be negative: an unknown key is an unexpected error."""
raise ValueError("invalid: not found")
import requests
'''
PYTHON = """Traceback (most recent call last):
  File "/srv/api/load.py", line 3, in <module>
ModuleNotFoundError: No module named 'requests'"""
C = """#include <stdio.h>
/* error: must not be missing */
int main(void) { return y; }
"""
GCC = """load.c: In function 'main':
load.c:3:25: error: 'y' undeclared (first use in this function)"""
MAKE = """ls: cannot access '/none': No such file or directory
make: *** [Makefile:2: all] Error 2"""


@pytest.mark.parametrize(
    ("command", "shown", "printed", "why"),
    [
        ("cat load.js; node load.js", JS, NODE, "ReferenceError: undefinedThing is not defined"),
        ("cd web && cat load.js && node load.js", JS, NODE, "undefinedThing is not defined"),
        ("sed -n 1,40p load.py\npython3 load.py", PY, PYTHON, "No module named 'requests'"),
        ("head -30 load.c; gcc load.c", C, GCC, "'y' undeclared"),
        ("cat Makefile && make", '\t@echo "error: not found"\n', MAKE, "cannot access"),
        ("cat notes.md; node load.js", "Error: EACCES is not allowed\n", NODE, "undefinedThing"),
    ],
)
def test_what_failed_is_what_the_last_part_printed(
    command: str, shown: str, printed: str, why: str
) -> None:
    seen = failure.read(command, f"Exit code 1\n{shown}{printed}")
    assert why in seen.lines[0]
    assert len(seen.lines) == 1
    assert shown.splitlines()[0].strip() not in seen.output


def test_a_call_of_require_is_no_message() -> None:
    printed = "the worker stopped\nconst fs = require('fs')"
    assert failure.read("npm start", printed).lines == ("the worker stopped",)
