"""Which transcripts of agents grew, by their sizes: nobody says so where an agent was killed."""

from __future__ import annotations

import time
from pathlib import Path

from vault_index.journal import places, projects
from vault_index.journal.journal import Journal

SCAN_SECONDS = 10.0  # between two looks at all transcripts: hundreds of files
SCAN_SHARE = 0.01  # at most this share of the time goes into looking
FIRST_SECONDS = 2 * 86_400  # what changed since then may have grown before this process began


class Growth:
    """Remembers the sizes of transcripts from look to look; without anything recorded, none."""

    def __init__(self) -> None:
        self._seen: dict[Path, tuple[int, int]] | None = None
        self._next = 0.0

    def look(self, journal: Journal) -> list[Path]:
        """Return the transcripts that changed since the last look, at the first those of two days."""
        began = time.monotonic()
        if began < self._next:
            return []
        grown: list[Path] = []
        if projects.recorded_folders(journal):
            now = {file.path: (file.size, file.mtime) for file in places.transcripts()}
            if self._seen is None:
                oldest = 1e9 * (time.time() - FIRST_SECONDS)
                grown = [path for path, (_, mtime) in now.items() if mtime > oldest]
            else:
                grown = [path for path, stamp in now.items() if self._seen.get(path) != stamp]
            self._seen = now
        ended = time.monotonic()
        self._next = ended + max(SCAN_SECONDS, (ended - began) / SCAN_SHARE)
        return grown
