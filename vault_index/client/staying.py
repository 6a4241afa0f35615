"""Asking for a process that stays: rather than load a model, it starts a watcher or waits for one."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from vault_index.errors import BusyError, WriteError
from vault_index.hotpath import protocol
from vault_index.vault import open_vault
from vault_index.watch import launch

START_SECONDS = 15  # a watcher that does not listen by then is hung
REPAIR_SECONDS = 30  # the watcher builds a first or a damaged index of a thousand in that time
REPAIR_POLL_SECONDS = 0.1


def from_next(root: str, question: Mapping[str, Any]) -> dict[str, Any] | None:
    """Ask again until the watcher, or the next one, answers; None where none will.

    Raises BusyError where that takes long.
    """
    if not open_vault(root).files()[0]:  # the watcher of an empty vault builds no index
        return None
    until = time.monotonic() + REPAIR_SECONDS
    while time.monotonic() < until:
        time.sleep(REPAIR_POLL_SECONDS)
        try:
            return protocol.ask(root, question, protocol.WATCHER_SECONDS)
        except protocol.NoWatcher:
            return from_started(root, question)
        except protocol.DeclinedForNow:
            if not open_vault(root).files()[0]:  # a watcher makes no first index of no lessons
                return None
        except protocol.Gone:
            continue
        except protocol.Declined:
            return None
        except protocol.NoAnswer:
            raise busy() from None
    raise BusyError("the watcher still builds the index", "ask again in a minute")


def busy() -> BusyError:
    """Return the error for a watcher that does not answer in time, with its model in memory."""
    return BusyError(
        f"the watcher did not answer within {protocol.WATCHER_SECONDS} s",
        "ask again; if it stays so, end it with `lessons watch --stop`",
    )


def from_started(root: str, question: Mapping[str, Any]) -> dict[str, Any] | None:
    """Start the watcher if the settings let anybody, and return its answer; None where it has none.

    Raises BusyError for one that runs and does not answer.
    """
    until = time.monotonic() + START_SECONDS
    try:
        opened = open_vault(root)
        if not opened.config.watch.autostart:
            return None
        launch.open_in_background(opened.root, opened.index_dir)
        while launch.is_running():
            try:
                return protocol.ask(root, question, protocol.WATCHER_SECONDS)
            except protocol.NotOpen:
                return None
            except protocol.NoWatcher:  # it starts
                if time.monotonic() > until:
                    raise busy() from None
                time.sleep(REPAIR_POLL_SECONDS)
        return None
    except protocol.DeclinedForNow:
        return from_next(root, question)
    except (WriteError, protocol.Declined):  # a read-only vault has no watcher
        return None
    except protocol.NoAnswer:
        raise busy() from None
