"""Two people edit one lesson file: what git's merge makes of it, and that nothing is lost."""

from __future__ import annotations

from itertools import permutations
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support import merges
from tests.support.commands import run
from tests.support.files import write
from vault_index.lesson import merge
from vault_index.lesson.parse import parse_file

BASE = """\
---
title: Heap
tags: [node, ci]
confidence: 3
---
Raise the heap.

## Lesson: One
First.

## Lesson: Two
Second.
"""


def merged(ours: str, theirs: str, base: str = BASE) -> str:
    """Merge without a conflict, in both directions."""
    found = merge.files(base.encode(), ours.encode(), theirs.encode())
    turned = merge.files(base.encode(), theirs.encode(), ours.encode())
    assert found is not None
    assert turned is not None
    assert found.conflicts == ()
    assert found == turned
    return found.data.decode()


def conflicting(ours: str, theirs: str, base: str = BASE) -> tuple[str, tuple[str, ...]]:
    found = merge.files(base.encode(), ours.encode(), theirs.encode())
    assert found is not None
    return found.data.decode(), found.conflicts


def test_both_add_a_section() -> None:
    ours = BASE + "\n## Lesson: Ours\nMine.\n"
    theirs = BASE + "\n## Lesson: Theirs\nYours.\n"
    assert merged(ours, theirs) == BASE + (
        "\n## Lesson: Ours\nMine.\n\n## Lesson: Theirs\nYours.\n"
    )


def test_different_keys_of_the_same_frontmatter() -> None:
    ours = BASE.replace("confidence: 3", "confidence: 5")
    theirs = BASE.replace("title: Heap", "title: Raise the heap").replace(
        "confidence: 3\n", "confidence: 3\nsource: wiki  # the old one\n"
    )
    assert merged(ours, theirs) == theirs.replace("confidence: 3", "confidence: 5")


def test_lists_are_sets() -> None:
    ours = BASE.replace("[node, ci]", "[node, ci, heap]")
    theirs = BASE.replace("[node, ci]", "[node, build]")
    assert "tags: [node, build, heap]\n" in merged(ours, theirs)
    globs = BASE.replace("confidence: 3", "applies_to: ['db/**'{}]")
    text = merged(globs.format(", ci.yml"), globs.format(", '*.sql'"), globs.format(""))
    assert "applies_to: [db/**, '*.sql', ci.yml]\n" in text


@pytest.mark.parametrize("key", ["updated", "confirmed"])
def test_the_later_date_of_two(key: str) -> None:
    dated = BASE.replace("confidence: 3", f"{key}: {{}}")
    text = merged(
        dated.format("2026-03-01"), dated.format("2026-02-01"), dated.format("2026-01-01")
    )
    assert f"{key}: 2026-03-01\n" in text


def test_comments_above_what_both_changed_stay() -> None:
    base = "---\n# what it is about\ntags: [a]\n\n# by hand\nupdated: 2026-01-01\n---\nText.\n"
    ours = base.replace("[a]", "[a, b]").replace("by hand", "by us").replace("-01-01", "-03-01")
    theirs = base.replace("[a]", "[a, c]").replace("-01-01", "-02-01")
    assert merged(ours, theirs, base) == ours.replace("[a, b]", "[a, b, c]")
    theirs = theirs.replace("by hand", "by them")
    assert "# by them\n# by us\nupdated: 2026-03-01\n" in merged(ours, theirs, base)


def test_a_list_with_comments_is_merged_by_its_lines() -> None:
    base = "---\ntags:\n- a\n- b  # why\n# these, too\n- c\n- d\n---\nText.\n"
    ours, theirs = base.replace("- a\n", "- z\n- a\n"), base.replace("- d", "- D")
    assert merged(ours, theirs, base) == ours.replace("- d", "- D")
    theirs = base.replace("- a\n", "- y\n- a\n")
    text, conflicts = conflicting(ours, theirs, base)
    assert conflicts == ("tags",)
    assert text.count("- b  # why\n# these, too\n") == 2
    sharp = "---\ntags: [C#]\n---\nText.\n"
    found = merged(sharp.replace("#]", "#, a]"), sharp.replace("#]", "#, b]"), sharp)
    assert "tags: [C#, a, b]\n" in found


def test_different_paragraphs_of_one_section() -> None:
    base = "One.\n\nTwo.\n\nThree.\n"
    assert (
        merged(base.replace("One", "1"), base.replace("Three", "3"), base) == "1.\n\nTwo.\n\n3.\n"
    )


def test_one_takes_a_section_out_and_the_other_adds_one() -> None:
    ours = BASE.replace("## Lesson: One\nFirst.\n\n", "")
    theirs = BASE + "\n## Lesson: Three\nThird.\n"
    assert merged(ours, theirs) == ours + "\n## Lesson: Three\nThird.\n"


def test_what_both_changed_stands_between_markers_and_all_the_rest_is_merged() -> None:
    ours = BASE.replace("First.", "Mine.").replace("confidence: 3", "confidence: 4")
    theirs = BASE.replace("First.", "Yours.").replace("title: Heap", "title: The heap")
    text, conflicts = conflicting(ours, theirs)
    assert conflicts == ("## Lesson: One",)
    assert text == BASE.replace("confidence: 3", "confidence: 4").replace(
        "title: Heap", "title: The heap"
    ).replace(
        "## Lesson: One\nFirst.\n",
        "<<<<<<< ours\n## Lesson: One\nMine.\n=======\n## Lesson: One\nYours.\n>>>>>>> theirs\n",
    )


def test_a_key_that_both_set_is_a_conflict() -> None:
    text, conflicts = conflicting(BASE.replace(": 3", ": 4"), BASE.replace(": 3", ": 5"))
    assert conflicts == ("confidence",)
    assert "<<<<<<< ours\nconfidence: 4\n=======\nconfidence: 5\n>>>>>>> theirs\n" in text


def test_a_section_taken_out_here_and_changed_there_is_a_conflict() -> None:
    ours = BASE.replace("## Lesson: One\nFirst.\n\n", "")
    text, conflicts = conflicting(ours, BASE.replace("First.", "First of all."))
    assert conflicts == ("## Lesson: One",)
    assert "First of all." in text


def test_both_made_the_file() -> None:
    ours, theirs = "---\ntitle: A\n---\nMine.\n", "---\ntitle: A\n---\nYours.\n"
    text, conflicts = conflicting(ours, theirs, base="")
    assert conflicts == ("the text",)
    assert text.count("title: A") == 1
    assert "Mine." in text
    assert "Yours." in text


def test_headings_in_a_code_fence_are_no_sections() -> None:
    base = "```md\n## Not a section\n```\n\nEnd.\n"
    assert merged(base.replace("End", "The end"), base + "\n## Yes\nText.\n", base) == (
        "```md\n## Not a section\n```\n\nThe end.\n\n## Yes\nText.\n"
    )


def test_line_ends_comments_and_order_stay() -> None:
    base = "---\r\n# who\r\nowner: ada\r\ntitle: A\r\n---\r\nText.\r\n"
    found = merged(base.replace("ada", "bob"), base.replace("Text", "More text"), base)
    assert found == base.replace("ada", "bob").replace("Text", "More text")


def test_a_line_with_another_end_does_not_turn_all_of_them() -> None:
    ours = BASE.replace("Raise the heap.\n", "Raise the heap.\r\n").replace("First", "1")
    theirs = ours.replace("1.", "First.").replace("Second", "2")
    assert merged(ours, theirs) == BASE.replace("First", "1").replace("Second", "2")
    mostly = ours.replace("\r\n", "\n").replace("\n", "\r\n").replace("heap.\r\n", "heap.\n")
    found = merged(mostly, theirs.replace("\r\n", "\n").replace("\n", "\r\n"))
    assert found.count("\n") == found.count("\r\n")


def test_blank_lines_with_spaces_above_the_text_do_not_grow() -> None:
    base = BASE.replace("---\nRaise", "---\n\n  \n\t\nRaise")
    ours, theirs = base.replace("First", "1"), base.replace("Second", "2")
    assert merged(ours, theirs, base) == ours.replace("Second", "2")


@pytest.mark.parametrize(
    "broken", ["---\ntitle: [\n---\nText\n", "---\n{a: 1,\nb: 2}\n---\n", "---\na: 1\na: 2\n---\n"]
)
def test_what_cannot_be_taken_apart_is_left_to_git(broken: str) -> None:
    assert merge.files(BASE.encode(), broken.encode(), BASE.replace("3", "4").encode()) is None


@pytest.mark.slow
def test_what_the_merge_fails_at_gets_the_markers_of_git(tmp_path: Path) -> None:
    base = BASE.replace("confidence: 3", "updated: {by: ada}")
    sides = [base, base.replace("ada", "bob"), base.replace("ada", "eve")]
    files = [write(tmp_path / f"{n}.md", side) for n, side in enumerate(sides)]
    with pytest.raises(TypeError):  # mappings have no order: none is the later one
        merge.files(*(side.encode() for side in sides))
    ran = run("lessons", "merge-driver", *files, cwd=tmp_path, check=False)
    assert ran.code == 1
    assert "Traceback" not in ran.err
    assert files[1].read_text() == base.replace(
        "updated: {by: ada}\n",
        "<<<<<<< ours\nupdated: {by: bob}\n=======\nupdated: {by: eve}\n>>>>>>> theirs\n",
    )


RENAMED = BASE.replace("## Lesson: Two", "## Lesson: Second")


def test_a_section_that_both_rename_differently_is_a_conflict_and_kept_once_on_each_side() -> None:
    theirs = BASE.replace("## Lesson: Two", "## Lesson: The other")
    text, conflicts = conflicting(RENAMED, theirs)
    assert conflicts == ("## Lesson: Two",)
    assert text == BASE.replace(
        "## Lesson: Two\nSecond.\n",
        "<<<<<<< ours\n## Lesson: Second\nSecond.\n=======\n"
        "## Lesson: The other\nSecond.\n>>>>>>> theirs\n",
    )


def test_a_section_renamed_here_and_edited_there_gets_both() -> None:
    theirs = BASE.replace("Second.\n", "Second.\n\nAnd more.\n")
    assert merged(RENAMED, theirs) == RENAMED.replace("Second.\n", "Second.\n\nAnd more.\n")
    longer = "## Lesson: A\n1, at some length.\n\n2, at some length.\n\n3, at some length.\n"
    ours = longer.replace("Lesson: A", "Lesson: B").replace("3,", "Three,")
    theirs = longer.replace("1,", "One,")
    assert merged(ours, theirs, longer) == ours.replace("1,", "One,")


def test_a_section_renamed_here_and_taken_out_there_is_a_conflict() -> None:
    text, conflicts = conflicting(RENAMED, BASE.replace("## Lesson: Two\nSecond.\n", ""))
    assert conflicts == ("## Lesson: Two",)
    assert "## Lesson: Second\nSecond.\n" in text


def test_a_section_that_both_rename_alike_is_there_once() -> None:
    theirs = RENAMED.replace("First.", "1st.")
    assert merged(RENAMED, theirs) == theirs
    ours, theirs = RENAMED + "\nOurs.\n", RENAMED.replace("First.", "1st.")
    assert merged(ours, theirs) == ours.replace("First.", "1st.")


def test_a_section_renamed_here_and_moved_there() -> None:
    first = "## Lesson: One\nFirst.\n"
    theirs = BASE.replace(f"{first}\n", "") + f"\n{first}"
    assert merged(RENAMED, theirs) == theirs.replace("## Lesson: Two", "## Lesson: Second")


def test_a_section_renamed_to_what_another_is_called_on_the_other_side_keeps_both() -> None:
    for theirs in (
        BASE + "\n## Lesson: Second\nThird.\n",
        BASE.replace("## Lesson: One", "## Lesson: Second"),
    ):
        text, conflicts = conflicting(RENAMED, theirs)
        assert conflicts == ("## Lesson: Second",)
        assert text.count("## Lesson: Second") == 2
        assert text.count("Second.\n") == 1
        assert "First." in text


def test_text_that_gets_a_heading_on_both_sides() -> None:
    ours, theirs = (BASE.replace("Raise", f"## Lesson: {n}\nRaise") for n in ("Zero", "Null"))
    text, conflicts = conflicting(ours, theirs)
    assert conflicts == ("the text",)
    assert text.count("Raise the heap.") == 2
    assert merged(ours, BASE.replace("First.", "1.")) == ours.replace("First.", "1.")


def test_a_line_that_both_move_to_different_sections_is_a_conflict() -> None:
    base = BASE + "\n## Lesson: Three\nThird.\n"
    left = base.replace("Raise the heap.\n", "Hello.\n")
    ours = left.replace("First.\n", "First.\nRaise the heap.\n")
    theirs = left.replace("Third.\n", "Third.\nRaise the heap.\n")
    text, conflicts = conflicting(ours, theirs, base)
    assert conflicts == ("## Lesson: One", "## Lesson: Three")
    assert text.count("Raise the heap.") == 2


def test_lessons_with_the_same_labels_are_not_one_that_was_renamed() -> None:
    form = "\n## Lesson: {}\n**Symptom:**\n{}\n\n**Fix:**\n{}\n"
    base = BASE + form.format("Heap", "Out of memory in CI.", "Raise the heap.")
    ours = BASE + form.format("VPN", "The deploy hangs forever.", "Switch it on first.")
    theirs = base.replace("Raise the heap.\n", "Raise the heap, to 4 GB.\n")
    text, conflicts = conflicting(ours, theirs, base)
    assert "## Lesson: Heap" in conflicts
    assert "Switch it on first.\n" in text


@pytest.mark.parametrize("block", range(4))
def test_of_random_merges_none_loses_or_doubles_a_line(block: int) -> None:
    """More of them: python -m benchmarks.merging."""
    clean = 0
    for seed in range(block * 100, block * 100 + 100):
        base, ours, theirs = merges.versions(seed)
        result = merge.files(base, ours, theirs)
        turned = merge.files(base, theirs, ours)
        assert result is not None
        assert turned is not None
        assert merges.faults(base, ours, theirs, result) == [], f"seed {seed}"
        assert sorted(result.conflicts) == sorted(turned.conflicts), f"seed {seed}"
        assert result.conflicts or result.data == turned.data, f"seed {seed}"
        clean += not result.conflicts
    assert clean >= 40  # a merge that is always a conflict would lose nothing, too


def test_the_driver_that_cannot_write_stops_the_merge(tmp_path: Path) -> None:
    sides = [BASE, BASE.replace("First", "1"), BASE.replace("Second", "2")]
    names = [write(tmp_path / f"in/{n}.md", side) for n, side in enumerate(sides)]
    (tmp_path / "link.md").symlink_to(names[1])
    ran = run(
        "lessons",
        "merge-driver",
        names[0],
        tmp_path / "link.md",
        names[2],
        cwd=tmp_path,
        check=False,
    )
    assert ran.code == 255
    assert "not merged" in ran.err
    assert names[1].read_text() == sides[1]


NAMES = ["alpha", "beta", "gamma", "delta"]


@st.composite
def versions(draw: st.DrawFn) -> str:
    """Make what one of several people makes of the same file: disjoint names come from `tag`."""
    keys = {"title": "Heap", "tags": "[node, ci]", "owner": "ada"}
    sections = {"One": "First.", "Two": "Second.", "Three": "Third."}
    for name in draw(st.lists(st.sampled_from(list(keys)), unique=True, max_size=2)):
        del keys[name]
    for name in draw(st.lists(st.sampled_from(NAMES), unique=True, max_size=3)):
        keys[name] = name
    if "tags" in keys:
        tags = draw(st.lists(st.sampled_from(["node", "ci", *NAMES]), unique=True, max_size=5))
        keys["tags"] = f"[{', '.join(tags)}]"
    for name in draw(st.lists(st.sampled_from(list(sections)), unique=True, max_size=2)):
        del sections[name]
    added = draw(st.lists(st.sampled_from(NAMES), unique=True, max_size=3))
    order = list(sections)
    for name in added:
        order.insert(draw(st.integers(0, len(order))), name)
    for name in draw(st.lists(st.sampled_from(list(sections) or [""]), unique=True, max_size=1)):
        if name:
            sections[name] = draw(st.sampled_from(["Changed.", "Changed too.", "First.\n\nMore."]))
    body = "\n".join(f"## Lesson: {n}\n{sections.get(n, f'{n} is new.')}\n" for n in order)
    frontmatter = "".join(f"{key}: {value}\n" for key, value in keys.items())
    return f"---\n{frontmatter}---\n{body}" if frontmatter else body


COMMON = """\
---
title: Heap
tags: [node, ci]
owner: ada
---
## Lesson: One
First.

## Lesson: Two
Second.

## Lesson: Three
Third.
"""


def texts_of(version: str) -> set[str]:
    return {one.text for one in parse_file(version.encode(), "a.md") if one.text}


@pytest.mark.slow
@settings(deadline=None)
@given(versions(), versions())
def test_no_lesson_is_lost(ours: str, theirs: str) -> None:
    found = merge.files(COMMON.encode(), ours.encode(), theirs.encode())
    assert found is not None
    base = texts_of(COMMON)
    for side, other in ((ours, theirs), (theirs, ours)):
        for text in texts_of(side) - base:
            changed = all(part in found.data.decode() for part in text.split("\n\n"))
            assert changed, f"{text!r} is in neither part of the merge"
        for text in texts_of(side) & base & texts_of(other):
            assert text in found.data.decode()


@pytest.mark.slow
@settings(deadline=None)
@given(versions(), versions())
def test_the_order_of_merging_does_not_matter(one: str, two: str) -> None:
    ours = merge.files(COMMON.encode(), one.encode(), two.encode())
    theirs = merge.files(COMMON.encode(), two.encode(), one.encode())
    assert ours is not None
    assert theirs is not None
    assert sorted(ours.conflicts) == sorted(theirs.conflicts)
    assert ours.conflicts or ours.data == theirs.data


@pytest.mark.slow
@settings(deadline=None)
@given(versions(), versions(), versions())
def test_of_three_branches_the_same_comes_together_in_any_order(
    one: str, two: str, three: str
) -> None:
    results = set()
    for first, *others in permutations([one, two, three]):
        data = first.encode()
        for other in others:
            found = merge.files(COMMON.encode(), data, other.encode())
            if found is None or found.conflicts:
                data = b"a conflict"
                break
            data = found.data
        results.add(frozenset(parts_of(data.decode())))
    assert len(results) == 1


def parts_of(version: str) -> set[str]:
    """Return the keys, the members of lists and the sections of a file, in no order."""
    frontmatter, _, body = version.removeprefix("---\n").partition("---\n")
    found = {" ".join(sorted(line.replace(",", " ").replace("[", " ").replace("]", " ").split()))
             for line in frontmatter.splitlines()}  # fmt: skip
    return found | {section.strip() for section in body.split("## Lesson: ")}
