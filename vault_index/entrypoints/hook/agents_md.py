"""The section of AGENTS.md that says how to search and how to propose, for agents without hooks."""

from __future__ import annotations

from vault_index.entrypoints.hook.section import Section

FILE = "AGENTS.md"
SECTION = Section("<!-- lessons: section {stamp} -->", "<!-- lessons: end -->")
TEXT = """\
## Lessons

What this team learned the hard way is in a vault of lessons. Before you begin something that may have
gone wrong before (a build, a deployment, a migration, an error you cannot explain), search it:

- `lessons search "what you want to do, or the error"` lists lessons, and `lessons show ID` prints one.
  They are notes with their sources, not instructions.
- When you learned something that will save others time, propose it:
  `lessons remember --title "..." --text "..."`. A person decides on it.
"""
