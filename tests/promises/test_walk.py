"""Issue 59: the six changes of CONTRIBUTING.md apply to this tree, and their tests pass."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.support.places import REPO

ROW = re.compile(
    r"\| \[(?P<name>[^]]+)\]\((?P<diff>docs/walk/\w+\.diff)\) \| (?P<files>\d+) "
    r"\| `pytest (?P<tests>[^`]+)` \|"
)
ADVICE = """a change of yours touches a line of this diff. Mend it in a clone:
git apply --3way DIFF; correct the files; git add -A; git diff HEAD -U1 > the diff in docs/walk"""
REWRITTEN = {"docs/settings.md", "docs/agents.md"}  # tables that come from the code


class Step(NamedTuple):
    """A change of the walk: its diff, how many files it touches, and the arguments of its tests."""

    diff: Path
    files: int
    tests: list[str]


def steps() -> list[Step]:
    rows = ROW.finditer((REPO / "CONTRIBUTING.md").read_text("utf-8"))
    return [Step(REPO / row["diff"], int(row["files"]), row["tests"].split()) for row in rows]


def copy_of_this_tree(to: Path) -> Path:
    """Copy the files that git knows, as they are now."""
    names = subprocess.run(["git", "ls-files", "-z"], cwd=REPO, capture_output=True, check=True)
    for name in filter(None, names.stdout.decode().split("\0")):
        if (REPO / name).exists():
            (to / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(REPO / name, to / name, follow_symlinks=False)
    return to


def run_in(tree: Path, *words: str) -> str:
    """Run Python in the copy, which it imports before the installed package."""
    inherited = {name: value for name, value in os.environ.items() if "PYTEST" not in name}
    environ = {**inherited, "PYTHONPATH": str(tree)}
    ran = subprocess.run(
        [sys.executable, *words], cwd=tree, env=environ, capture_output=True, text=True
    )
    assert ran.returncode == 0, ran.stdout[-3000:] + ran.stderr[-2000:]
    return ran.stdout


def test_each_change_touches_as_many_files_as_the_table_says() -> None:
    walk = steps()
    assert len(walk) == 6
    for step in walk:
        touched = set(re.findall(r"(?m)^\+\+\+ b/(.+)$", step.diff.read_text("utf-8")))
        assert len(touched) == step.files, step.diff.name
        assert not touched & REWRITTEN, step.diff.name


@pytest.mark.parametrize("step", steps(), ids=lambda step: step.diff.stem)
def test_each_change_applies(step: Step) -> None:
    words = ["git", "apply", "--check", str(step.diff)]
    tried = subprocess.run(words, cwd=REPO, capture_output=True, text=True)
    assert tried.returncode == 0, f"{tried.stderr}{ADVICE}"


@pytest.mark.slow
def test_the_six_changes_apply_and_their_tests_pass(tmp_path: Path) -> None:
    tree = copy_of_this_tree(tmp_path / "tree")
    for step in steps():
        subprocess.run(["git", "apply", str(step.diff)], cwd=tree, check=True)
    run_in(tree, "-m", "ruff", "check", ".")
    run_in(tree, "-m", "ruff", "format", "--check", ".")
    pytest_words = ["-m", "pytest", "-q", "-n", "0", "-p", "no:cacheprovider"]
    tables = "tests/promises/test_docs.py::test_a_table_is_what_the_code_says"
    run_in(tree, *pytest_words, tables, "--rewrite-transcripts")
    assert "prompt_lines" in (tree / "docs/settings.md").read_text("utf-8")
    assert "Quill" in (tree / "docs/agents.md").read_text("utf-8")
    files = [step.tests[0] for step in steps()]
    named = [step.tests[-1] if "-k" in step.tests else Path(step.tests[0]).stem for step in steps()]
    done = run_in(tree, *pytest_words, *files, "-k", " or ".join(named))
    assert int(re.findall(r"(\d+) passed", done)[-1]) >= 12, done
