"""The journal of a user, as its tests begin."""

from __future__ import annotations

from pathlib import Path

import pytest

from vault_index import config
from vault_index.journal.journal import Journal


@pytest.fixture
def journal(own_world: Path) -> Journal:
    """An empty journal, in which nothing is recorded yet."""
    return Journal(config.load())
