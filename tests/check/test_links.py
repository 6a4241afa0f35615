"""Links between lessons: one that leads nowhere is named."""

from __future__ import annotations

import pytest

from tests.support.commands import run
from tests.support.files import MakeVault, lesson_text

pytestmark = pytest.mark.slow


def found(make_vault: MakeVault, text: str) -> list[str]:
    vault = make_vault({"adr/0002-new.md": text, "adr/0001-old.md": lesson_text("Old", "Was so.")})
    done = run("lessons", "check", cwd=vault.root, check=False)
    return [line for line in done.out.splitlines() if "dead-link" in line]


@pytest.mark.parametrize(
    "link",
    [
        "[2](2-gone.md)",
        "[there](../adr/0003-other.md#decision)",
        "[a name](<0009-nine.md>)",
        '[titled](0008-eight.md "of old")',
    ],
)
def test_a_link_to_a_lesson_that_is_gone_is_named(make_vault: MakeVault, link: str) -> None:
    (line,) = found(make_vault, f"# New\n\nIt replaces {link} since May.\n")
    assert line.startswith("lessons/adr/0002-new.md:3: dead-link: warning: no file is at this link")


@pytest.mark.parametrize(
    "text",
    [
        "[1](0001-old.md), [again](./0001-old.md#why), [up](../adr/0001-old.md)",
        "[elsewhere](https://example.com/a.md), `[code](gone.md)`",
        "```\n[code](gone.md)\n```",
    ],
)
def test_a_link_that_leads_on_or_is_code_is_fine(make_vault: MakeVault, text: str) -> None:
    assert found(make_vault, f"# New\n\n{text}\n") == []


def test_a_prerequisite_that_no_lesson_is_is_a_warning(make_vault: MakeVault) -> None:
    text = "# New\n\nDo it.\n\n## Related\n\n- prerequisite: adr/0001-old\n- prerequisite: Nobody\n"
    (line,) = found(make_vault, text)
    assert line.startswith("lessons/adr/0002-new.md:8: dead-link: warning: no lesson is this")
    assert line.endswith("Nobody")
