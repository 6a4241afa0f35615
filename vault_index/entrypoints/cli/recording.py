"""Begin and end to record sessions in the journal, for `install`, `uninstall` and `init`."""

from __future__ import annotations

import sys
from pathlib import Path

from vault_index.entrypoints.cli import asking, output

ABOUT = """\
The journal keeps what you asked and what was done and decided in sessions with Claude Code, so that you
and your agent find it again. It reads the transcripts that are on this disk already, leaves out secrets,
and keeps markdown files in {folder}: yours alone, never committed, no model asked. Remove what you like
with `lessons journal forget`."""


def begin(folder: Path | None) -> None:
    """Record the sessions of a project or, for None, of all, and say so. Raises VaultError."""
    from vault_index import config
    from vault_index.journal import projects
    from vault_index.journal.journal import Journal

    journal = Journal(config.load())
    new = projects.record(journal, str(folder) if folder else projects.ALL)
    whose = f"sessions in {folder}" if folder else "all sessions"
    verb = "recorded from now on" if new else "recorded already"
    output.say(f"{whose} are {verb}, in {journal.folder}")
    if new:
        asking.note("note: those of before: lessons journal import")


def end(folder: Path | None) -> None:
    """Record no more sessions of a project or, for None, none at all; say so if any were."""
    from vault_index import config
    from vault_index.journal import projects
    from vault_index.journal.journal import Journal

    journal = Journal(config.load())
    if projects.recorded_folders(journal) and projects.stop_recording(
        journal, str(folder) if folder else projects.ALL
    ):
        output.say(f"sessions are no longer recorded; {journal.folder} stays")


def offer(folder: Path) -> None:
    """Ask on a terminal, once, whether to record the sessions of a project, and install the hooks."""
    from vault_index import config
    from vault_index.entrypoints.hook import claude_plugin, claude_settings, program
    from vault_index.journal import projects
    from vault_index.journal.journal import Journal

    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        return
    journal = Journal(config.load())
    if projects.recorded(journal, str(folder)):
        return
    output.say(" ".join(ABOUT.format(folder=journal.folder).split()), err=True)
    if not output.confirm("record the sessions of this project?"):
        asking.note("no; later: lessons install claude --journal")
        return
    if claude_plugin.enabled_by(None) is None:
        settings = claude_settings.claude_settings(None)
        command = program.hook_command(shared=False)
        claude_settings.install(settings, config.home_folder(), command, journal=True)
        output.say(f"{settings}: hooks installed")
    begin(folder)
