"""A prompt is told from chatter by its form, without the expressions that say what that form is."""

from __future__ import annotations

import re
import subprocess
import sys

from hypothesis import example, given
from hypothesis import strategies as st

from vault_index.hotpath import chatter

SLASH_COMMAND = re.compile(r"/[a-zA-Z][\w:.-]*(\s|$)")
WORD = re.compile(r"[\w']+")
PIECES = ["yes", "undo", "the last", "lock_timeout", "12", "/fix", *" \n/:.-'\xa0"]


@given(st.lists(st.sampled_from(PIECES) | st.text(max_size=3), max_size=20).map("".join))
@example("/lessons:learn")
@example("/usr/bin/env fails")
@example("no, undo that")
@example("e\u0301tat d\u2019avant")
def test_the_form_is_as_the_expressions_say(prompt: str) -> None:
    text = prompt.strip()
    assert chatter._is_slash_command(text) == bool(SLASH_COMMAND.match(text))
    assert [*chatter._words(text)] == WORD.findall(text)


def test_what_a_hook_asks_of_each_prompt_loads_nothing() -> None:
    program = (
        "import sys; before = {*sys.modules}; import vault_index.hotpath.chatter;"
        "print(*sorted({name.partition('.')[0] for name in {*sys.modules} - before}))"
    )
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["vault_index"]
