"""Files made to cost time or memory: they are refused, cut short or read, and nothing hangs.

Limits are of processor time and memory, held by the system: a busy machine changes neither.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.support.amounts import amount
from tests.support.commands import run
from tests.support.files import write
from tests.support.places import REPO
from vault_index import check
from vault_index.errors import LessonError
from vault_index.lesson import frontmatter, parse

CPU_SECONDS = amount(15, 60)  # for one file; each takes a tenth of that
MEMORY = 3 << 30
LIMITED = f"""\
import resource, sys, time
resource.setrlimit(resource.RLIMIT_DATA, ({MEMORY}, {MEMORY}))
def each():
    for name in sys.argv[1:]:
        limit = int(time.process_time()) + {CPU_SECONDS}
        resource.setrlimit(resource.RLIMIT_CPU, (limit, resource.RLIM_INFINITY))
        print(name, flush=True)
        yield open(name, "rb").read()
"""  # the system ends a process that takes too much
PROBE = """\
from vault_index import check
from vault_index.errors import LessonError
from vault_index.lesson import parse, passages
for data in each():
    try:
        for one in parse.parse_file(data, "a.md"):
            str(one)
            for passage in passages.cut(one.text):
                passages.prose(passage)
    except LessonError as error:
        assert len(error.message) < 1000
    for finding in check.of_text(check.Candidate("a.md", data)):
        print(finding)
"""


def assert_bounded(code: str, texts: Mapping[str, str | bytes], folder: Path) -> None:
    """Run code over texts in a process of its own, which names the file that takes too much."""
    files = [write(folder / name, content) for name, content in texts.items()]
    done = run(sys.executable, "-c", LIMITED + code, *files, cwd=REPO)
    assert done.code == 0, (done.out.splitlines()[-1:], done.err[-2000:])
    assert all(len(line) < 1000 for line in done.out.splitlines())


def head(yaml: str) -> str:
    """Return a lesson with this frontmatter."""
    return f"---\n{yaml}\n---\nText.\n"


def bomb(last: str) -> str:
    """Return YAML in which each list holds the one before nine times."""
    lines = ["a0: &a0 [lol, lol, lol]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 10)]
    return "\n".join([*lines, last])


MERGES = "\n".join(
    ["m0: &m0 {a: b}"] + [f"m{n}: &m{n} {{<<: [{', '.join([f'*m{n - 1}'] * 9)}]}}" for n in range(1, 10)]
)  # fmt: skip
PART = amount(4, 1)  # the part of a megabyte that files have whose time grows with their length
FILES: dict[str, str | bytes] = {
    "alias bomb in title": head(bomb("title: *a9")),
    "alias bomb in tags": head(bomb("tags: *a9")),
    "alias bomb in an unknown key": head(bomb("other: *a9")),
    "aliases of a long text": head(f"x: &x {'y' * 9000}\ntags: [{', '.join(['*x'] * 9000)}]"),
    "an alias in itself": head("title: &a [*a]"),
    "merge keys": head(MERGES),
    "deep lists": head("title: " + "[" * 60_000),
    "deep mappings": head("\n".join(" " * n + "a:" for n in range(400))),
    "nothing but dashes": "---\n" + "-" * (1_000_000 // PART) + "x\n---\n",
    "huge frontmatter": head("\n".join(f"k{n}: v" for n in range(80_000 // PART))),
    "many lines and a bad date": head("\n".join(["a: 1"] * 20_000 + ["created: 2025-99-99"])),
    "a number of base 60": head("confidence: " + "1:" * 30_000 + "1"),
    "a hexadecimal number": head("confidence: 0x" + "f" * 100_000 + "\ntitle: [0xff]"),
    "a decimal number": head("confidence: " + "9" * 100_000),
    "dates": head("created: 9999999-01-01\ntitle: 9999-12-31T23:59:59-23:59"),
    "a tag of Python": head("title: !!python/object/apply:os.system ['true']"),
    "a tag of a hundred thousand letters": head(f"title: !{'x' * 100_000} y"),
    "one line": b"a" * 50_000_000,
    "one line below the limit": b"a " * (500_000 // PART),
    "headings": "# a\n" * (250_000 // PART),
    "sections": "## Lesson: a\n" * (75_000 // PART),
    "fences": "```\n~~~\n" * (120_000 // PART),
    "links": "[](" * (300_000 // PART),
    "a path of dashes": "a-" * (500_000 // PART),
    "keys and values": "password" * (60_000 // PART) + "\n" + "machine " * (60_000 // PART),
    "spaces": "token" + " " * (500_000 // PART) + "x",
    "tags": "<a " * (200_000 // PART) + "<!--" * (100_000 // PART),
    "nul": b"a\0b" * 100_000,
    "half a character": "\ud800".encode("utf-8", "surrogatepass") * 1000,
}


@pytest.mark.slow
@pytest.mark.parametrize("part", range(4))
def test_a_hostile_file_costs_a_bounded_amount(part: int, tmp_path: Path) -> None:
    assert_bounded(PROBE, dict([*FILES.items()][part::4]), tmp_path)


@pytest.mark.parametrize(
    "name",
    [one for one in FILES if "alias" in one or one in ("merge keys", "deep lists", "one line")],
)
def test_what_costs_too_much_is_refused_with_a_reason(name: str) -> None:
    content = FILES[name]
    data = content.encode() if isinstance(content, str) else content
    with pytest.raises(LessonError, match=r"alias|itself|nested|longer|larger"):
        parse.parse_file(data, "a.md")


def test_ordinary_aliases_are_read() -> None:
    text = "---\na: &a [x, y]\ntags: *a\nother: {<<: {k: v}}\n---\nText.\n"
    assert parse.parse_file(text.encode(), "a.md")[0].tags == ("x", "y")


def test_a_value_that_cannot_be_printed_has_a_name() -> None:
    assert frontmatter.brief(16**5000) == "a very long number"
    assert frontmatter.brief("x" * 10**6) == "'" + "x" * 59


@pytest.mark.slow
def test_a_rule_that_takes_too_long_is_a_finding(monkeypatch: pytest.MonkeyPatch) -> None:
    def slow(_path: str, _text: str) -> list[check.Finding]:
        import re

        re.match(r"(a+)+$", "a" * 40 + "b")
        return []

    monkeypatch.setattr(check.secrets, "findings", slow)
    found = check.of_text(check.Candidate("a.md", b"Text.\n"), seconds=0.3)
    assert [(one.rule, one.severity) for one in found] == [("not-checked", check.ERROR)]
    assert "secrets" in found[0].message
