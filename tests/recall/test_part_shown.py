"""An agent sees the part of a lesson that its prompt asks for, and where the rest is."""

from __future__ import annotations

import re

import pytest

from tests.recall.test_lines import with_floors
from tests.support.files import MakeVault, lesson_text
from vault_index.recall import select
from vault_index.recall.respond import for_failure
from vault_index.text import excerpt, failure

FILLER = "The queue of the gateway was slow on some days of the winter and nobody knew the cause."
OTHERS = {
    f"{n}.md": lesson_text(f"Note {n}", f"It rained on day {n}; the fence was painted.")
    for n in range(12)
}
REST = "[...] The rest by `learn_get` or `lessons show`: ID gate"


def shown(make_vault: MakeVault, text: str, prompt: str, whole: float = 0.02) -> str:
    """Return the block that a prompt gets of a vault with a lesson on the gateway."""
    vault = with_floors(
        make_vault(OTHERS | {"gate.md": lesson_text("The gateway", text)}), whole, 0.02
    )
    return select.for_prompt(vault, prompt).text


def test_the_piece_with_the_rare_word_is_shown(make_vault: MakeVault) -> None:
    """Issue 57, 2: the piece that is nearest by its vector lacks what was asked for."""
    deep = "For tenants with quokkafish set the limit to 40."
    text = f"{f'{FILLER} ' * 12}\n\n{deep}\n\n{f'{FILLER} ' * 12}"
    prompt = "the queue of the gateway was slow on some days: quokkafish"
    block = shown(make_vault, text, prompt)
    assert deep in block
    assert REST in block


def test_of_pieces_with_as_rare_words_the_nearest_is_shown() -> None:
    pieces = ["Wombats wait.", "Nothing.", "For quokkafish set 40."]
    rare = {"quokkafish": 1.0, "wombats": 1.0}
    for nearest, shown in zip(pieces, (pieces[0], pieces[0], pieces[2]), strict=True):
        assert excerpt.of_long(" ".join(pieces), pieces, nearest, rare) == shown
        assert excerpt.of_long(" ".join(pieces), pieces, nearest, {}) == nearest


RUNBOOK = f"""## Meaning

{FILLER} {FILLER} {FILLER} The alert fires at 80%.

## Impact

{FILLER} {FILLER} {FILLER} Customers wait.

## Mitigation

Restart the gateway with `gate restart --drain`.

### Second step

Then call the owner.
"""


@pytest.mark.parametrize("times", [1, 3])
def test_what_to_do_comes_before_what_it_means(make_vault: MakeVault, times: int) -> None:
    text = RUNBOOK.replace(FILLER, f"{FILLER} " * times)
    files = OTHERS | {
        "gate.md": lesson_text("The gateway", text),
        "vault.toml": "prompt_tokens = 200\n",
    }
    vault = with_floors(make_vault(files), 0.02, 0.02)
    for given in (
        select.for_prompt(vault, "the queue of the gateway was slow: nobody knew the cause"),
        for_failure(vault, failure.read("gate check", "error: queue of the gateway was slow")),
    ):
        assert "gate restart --drain" in given.text
        assert given.text.index("gate restart") < given.text.index("Then call the owner")
        assert given.text.partition("gate restart")[0].count(FILLER) == 0
        assert REST in given.text


def test_after_what_to_do_comes_the_piece_with_the_rare_word(make_vault: MakeVault) -> None:
    text = RUNBOOK.replace(FILLER, f"{FILLER} " * 3).replace("Customers", "The quokkafish")
    block = shown(make_vault, text, "the queue of the gateway was slow: does a quokkafish wait")
    assert block.index("gate restart --drain") < block.index("The quokkafish wait")


def test_a_lesson_that_is_shown_whole_has_no_mark_and_keeps_its_order(
    make_vault: MakeVault,
) -> None:
    block = shown(make_vault, RUNBOOK, "the queue of the gateway was slow: nobody knew the cause")
    assert "The rest" not in block
    assert block.index("## Meaning") < block.index("## Impact") < block.index("## Mitigation")


TABLE = """| service | owner |
|---|---|
| search | Anna |
| billing | Boris |
"""


@pytest.mark.parametrize(
    ("prompt", "line"),
    [
        (
            "who is the owner of the gateway's billing",
            "- The gateway: | billing | Boris | (ID gate)",
        ),
        ("who is the owner of the gateway's mail", "- The gateway (ID gate)"),
    ],
)
def test_a_pointer_has_the_row_that_matches_or_its_title_alone(
    make_vault: MakeVault, prompt: str, line: str
) -> None:
    """Issue 57, 2: another row of the table named a wrong owner."""
    block = shown(make_vault, TABLE, prompt, whole=9.0)
    assert line in block.splitlines()
    assert "Anna" not in block


def test_a_word_of_the_title_makes_no_row_match() -> None:
    rows = "| the owner of search | Anna |\n| of billing | Boris |"
    assert excerpt.matching_sentence(rows, "the owner of mail", "Owners of services") == ""
    found = excerpt.matching_sentence(rows, "the owner of billing", "Owners of services")
    assert re.search("Boris", found)
    assert "Anna" not in found


def test_sections_without_a_heading_that_says_what_to_do_stay(make_vault: MakeVault) -> None:
    for text in ("", "Just text.", "# One\n\nText.\n\n# Two\n\n```\n# Fix\n```"):
        assert excerpt.in_order_of_use(text) == text
