"""`lessons config set`: the line of one key changes, and no other byte of the file."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.files import write
from vault_index.edit import settings
from vault_index.errors import SettingsError

FILE = """\
# mine
vault = "~/team"  # the default

[learn]
auto = false
exclude = ["a"]

[ask]
model = "claude"
"""


@pytest.mark.parametrize(
    ("name", "typed", "line"),
    [
        ("learn.auto", "true", "auto = true"),
        ("learn.model", "claude:sonnet", 'model = "claude:sonnet"'),
        ("learn.model", "7", 'model = "7"'),
        ("learn.exclude", '["b", "c"]', 'exclude = ["b", "c"]'),
        ("receipt", "false", "receipt = false"),
        ("floor", "0.3", "floor = 0.3"),
        ("skills.least_uses", "3", "least_uses = 3"),
    ],
)
def test_a_line_changes_and_no_other(tmp_path: Path, name: str, typed: str, line: str) -> None:
    file = write(tmp_path / "config.toml", FILE)
    settings.write(file, name, typed)
    before, after = FILE.splitlines(), file.read_text().splitlines()
    assert line in after
    changed = [each for each in before if each not in after]
    assert [each.split(" = ")[0] for each in changed] in ([], [line.split(" = ")[0]])


@pytest.mark.parametrize(
    ("before", "name", "typed", "after"),
    [
        ("[learn]\nauto = false # why\n", "learn.auto", "true", "[learn]\nauto = true # why\n"),
        ("learn = {auto = false}\n", "learn.auto", "true", "learn = {auto = true}\n"),
        ("learn.auto = false\n", "learn.auto", "true", "learn.auto = true\n"),
        (
            '[learn]\nexclude = [\n  "a", # of old\n]\nauto = false\n',
            "learn.exclude",
            "[]",
            "[learn]\nexclude = []\nauto = false\n",
        ),
        (
            "[learn]\r\nauto = false\r\n",
            "learn.model",
            "claude",
            '[learn]\r\nauto = false\r\nmodel = "claude"\r\n',
        ),
        ("# mine\n\n", "receipt", "false", "# mine\nreceipt = false\n\n"),
        ("[learn]\nauto = false", "learn.auto", "true", "[learn]\nauto = true"),
    ],
)
def test_comments_line_ends_and_other_spellings_stay(
    tmp_path: Path, before: str, name: str, typed: str, after: str
) -> None:
    """Issue 59, section 3."""
    file = write(tmp_path / "config.toml", before.encode())
    settings.write(file, name, typed)
    assert file.read_bytes() == after.encode()


def test_a_byte_order_mark_is_read_and_stays(tmp_path: Path) -> None:
    file = write(tmp_path / "config.toml", b"\xef\xbb\xbf" + FILE.encode())
    settings.write(file, "learn.auto", "true")
    assert file.read_bytes() == b"\xef\xbb\xbf" + FILE.replace("false", "true").encode()


def test_what_is_unset_is_gone_and_nothing_else(tmp_path: Path) -> None:
    file = write(tmp_path / "config.toml", FILE)
    before = tomllib.loads(FILE)
    settings.write(file, "ask.record", "true")
    settings.write(file, "ask.record", None)
    settings.write(file, "ask.model", None)  # which is not there
    after = tomllib.loads(file.read_text())
    assert {**after, "ask": {}} == {**before, "ask": {}}


@pytest.mark.slow
@given(st.lists(st.sampled_from(["learn.auto", "watch.autostart", "receipt"]), min_size=1))
def test_what_is_set_is_what_is_read(names: list[str]) -> None:
    from tempfile import TemporaryDirectory

    with TemporaryDirectory() as folder:
        file = Path(folder, "deep/config.toml")
        for name in names:
            settings.write(file, name, "true")
        values = tomllib.loads(file.read_text())
    flat = {f"{key}.{own}" for key in values if key != "receipt" for own in values[key]}
    assert flat | ({"receipt"} & {*values}) == {*names}


@pytest.mark.parametrize(
    ("name", "typed", "text", "says"),
    [
        ("learn.autos", "true", "", "did you mean 'learn.auto'"),
        ("learn.auto", "perhaps", "", "learn.auto must be true or false"),
        ("learn.auto", "true", "learn_auto = false\n", "in more than one line"),
        ("learn.auto", "true", 'learn = "off"\n', "learn is not a table"),
        ("learn.auto", "true", "[[learn]]\n", "learn is not a table"),
        ("receipt", "true", "= broken", "config.toml"),
    ],
)
def test_what_a_line_cannot_change_is_an_error(
    tmp_path: Path, name: str, typed: str, text: str, says: str
) -> None:
    file = write(tmp_path / "config.toml", text)
    with pytest.raises(SettingsError, match=says):
        settings.write(file, name, typed)
    assert file.read_text() == text
