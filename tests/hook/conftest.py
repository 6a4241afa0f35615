"""A vault that hooks ask, and no watcher of it after the test."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator

import pytest

from tests.support.watchers import watchers_of
from vault_index.vault import Vault
from vault_index.watch import launch


@pytest.fixture
def team(team: Vault) -> Iterator[Vault]:
    """The vault of the `FILES` of a module, indexed; whatever watches it at the end is ended."""
    yield team
    launch.stop()
    for pid in watchers_of(team.root):
        os.kill(pid, signal.SIGKILL)
