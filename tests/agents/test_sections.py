"""The section in AGENTS.md and the plugin of opencode: between markers."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.commands import Ran, run
from tests.support.files import write
from vault_index.entrypoints import agents

TEXTS = ["# Rules\n\nNo tabs.\n", "# Größe 🔥", "# Rules\r\n\r\nNo tabs.\r\n", "\ufeff# Rules\n"]


def lessons(project: Path, *words: str, check: bool = True) -> Ran:
    return run("lessons", *words, cwd=project, check=check)


@pytest.mark.parametrize("text", TEXTS)
def test_in_and_out_leaves_the_text(project: Path, text: str) -> None:
    file = write(project / "AGENTS.md", text)
    assert agents.SECTION.put(file, agents.TEXT)
    written = file.read_bytes()
    assert written.startswith(text.encode())
    assert ("\r\n" in text) == (b"\r\n" in written)
    assert not agents.SECTION.put(file, agents.TEXT)
    assert file.read_bytes() == written
    assert agents.SECTION.take_out(file)
    assert file.read_bytes().rstrip() == text.encode().rstrip()
    assert not agents.SECTION.take_out(file)


def test_a_file_that_was_made_is_removed(project: Path) -> None:
    lessons(project, "install", "agents-md")
    text = (project / "AGENTS.md").read_text()
    for command in ("lessons search", "lessons show ID", "lessons propose"):
        assert f"`{command}" in text
    lessons(project, "uninstall", "agents-md")
    assert not (project / "AGENTS.md").exists()


def test_a_section_that_somebody_edited_is_reported_and_left_alone(project: Path) -> None:
    file = write(project / "AGENTS.md", "# Rules\n")
    lessons(project, "install", "agents-md")
    edited = file.read_text().replace("## Lessons", "## Lessons, please")
    file.write_text(edited)
    for verb in ("install", "uninstall"):
        ran = lessons(project, verb, "agents-md", check=False)
        assert ran.code == 1
        assert "somebody edited the section" in ran.err
        assert file.read_text() == edited


@pytest.mark.parametrize("lost", ["<!-- lessons: section", "<!-- lessons: end"])
def test_a_marker_that_is_gone(project: Path, lost: str) -> None:
    file = project / "AGENTS.md"
    lessons(project, "install", "agents-md")
    lines = [line for line in file.read_text().splitlines() if not line.startswith(lost)]
    file.write_text("\n".join(lines))
    ran = lessons(project, "install", "agents-md", check=False)
    assert "does not have its two marker lines" in ran.err
    assert file.read_text() == "\n".join(lines)


def test_it_belongs_to_a_project(project: Path) -> None:
    refused = lessons(project, "install", "agents-md", "--user", check=False)
    assert "a file of a project" in refused.err


def test_a_plugin_that_somebody_edited_is_left_alone(project: Path) -> None:
    file = project / ".opencode" / "plugins" / "lessons.js"
    lessons(project, "install", "opencode", "--project")
    file.write_text(file.read_text().replace("5000", "50"))
    ran = lessons(project, "install", "opencode", "--project", check=False)
    assert "somebody edited" in ran.err
    assert agents.AGENTS["opencode"].commands(file)  # it runs all the same
