"""Built skills are copied to where Claude Code loads them, and taken out again."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.learn.skills.test_build import NAME, built, folder, shelf, team
from tests.support.files import write
from vault_index.learn.skills import build
from vault_index.vault import Vault

__all__ = ["shelf", "team"]

pytestmark = pytest.mark.slow


def test_copies_follow_and_go_and_what_somebody_changed_stays(team: Vault, tmp_path: Path) -> None:
    built(team)
    top = build.folder_for(tmp_path / "project")
    assert top == tmp_path / "project/.claude/skills"
    copied = build.copy(team, top)
    assert copied[str(top / NAME)] == "new"
    for name in ("SKILL.md", "reference.md"):
        assert (top / NAME / name).read_bytes() == (folder(team) / name).read_bytes()
    assert set(build.copy(team, top).values()) == {"unchanged"}
    write(top / NAME / "reference.md", "mine")
    assert build.copy(team, top)[str(top / NAME)] == build.KEPT
    removed = build.remove(top)
    assert removed[str(top / NAME)] == build.KEPT
    assert [each.name for each in top.iterdir()] == [NAME]


def test_another_skill_of_that_name_is_left_alone(team: Vault, tmp_path: Path) -> None:
    built(team)
    own = write(tmp_path / NAME / "SKILL.md", "# My own\n\nText.\n")
    assert build.copy(team, tmp_path)[str(tmp_path / NAME)] == build.KEPT
    assert NAME not in {Path(each).name for each in build.remove(tmp_path)}
    assert own.read_text() == "# My own\n\nText.\n"
