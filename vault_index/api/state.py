"""Commands about a vault as a whole: make one, index it, show its state and settings, measure it."""

from __future__ import annotations

import random
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vault_index import features, status
from vault_index.api.measuring import measure_embedder
from vault_index.api.question import Caller, command
from vault_index.config import Setting
from vault_index.edit import InitResult, add, init
from vault_index.errors import VaultError
from vault_index.retrieval import evaluate
from vault_index.share import git_hooks
from vault_index.store.sync import Stats
from vault_index.vault import Vault, open_vault

if TYPE_CHECKING:
    from vault_index.publish import Published


def make_vault(folder: str) -> tuple[InitResult, git_hooks.HooksResult]:
    """Make a vault in a folder, with its git hooks and merge driver."""
    return init(Path(folder)), git_hooks.set_up(Path(folder))


@command
def index(
    vault: Vault,
    caller: Caller,
    rebuild: bool = False,
    wait: bool = True,
    fetch: bool = True,
    read_all: bool = True,
) -> Stats:
    """Bring the index up to date.

    `rebuild` builds a new one and swaps it in; `read_all` reads each file, however it looks from
    outside. Without `wait` nothing happens while another process is indexing, and without `fetch`
    the model stays where it is. The floors of an embedder are measured the first time.
    """
    options = {"rebuild": rebuild, "wait": wait, "fetch": fetch, "read_all": read_all}
    stats = caller.index(vault, **options) or Stats()
    if not stats.busy:
        measure_embedder(vault, caller)
    return stats


@command
def publish_index(vault: Vault, caller: Caller, engine: str = "") -> Published:
    """Bring the index up to date and publish it: see `publish`.

    The `engine` that embeds is this process, or `ray` or the address of a cluster.
    """
    index = partial(caller.index, vault, read_all=True)
    for feature in features.FEATURES:
        if published := feature.publish(vault, index, caller.progress_of, engine):
            return published
    raise VaultError("publishing is no part of this program", "install all of lessons-vault")


@command
def report(vault: Vault, caller: Caller) -> status.Report:
    """Return the state of a vault, its parts by features among them."""
    del caller
    return status.of(vault)


@command
def settings(vault: Vault, caller: Caller) -> list[Setting]:
    """List the settings in force, with who set each. Each ignored setting is a note."""
    del caller
    return status.settings(vault)


@command
def measure(
    vault: Vault, caller: Caller, queries: str, errors: bool = False, left_out: bool = False
) -> dict[str, Any]:
    """Measure recall and false injections over the labelled prompts of a file: see `evaluate.measure`.

    With `errors` it holds failed commands. `left_out` says that lessons were taken out of the vault.
    """
    prompts = evaluate.load(Path(queries), errors=errors)
    caller.index(vault)
    measure_embedder(vault, caller)
    return evaluate.measure(vault, prompts, caller.progress_of("searching"), left_out=left_out)


@contextmanager
def scratch_vault(
    lessons: str, vault: str = "", share: float = 0.0, seed: int = 0
) -> Iterator[str]:
    """Make a vault to be measured, and remove it at the end.

    It has the JSON lines in a file, or the lesson files of a vault, without a random `share` of them.
    """
    chance = random.Random(seed)
    with tempfile.TemporaryDirectory(prefix="lessons-eval-") as folder:
        init(Path(folder))
        if lessons:
            lines = [
                line for line in evaluate.read_lines(Path(lessons)) if chance.random() >= share
            ]
            add.from_json_lines(open_vault(folder), lines)
        else:
            whole, part = open_vault(vault or None), open_vault(folder)
            for source in whole.files()[0]:
                if chance.random() >= share:
                    copy = part.lessons_dir / source.path
                    copy.parent.mkdir(parents=True, exist_ok=True)
                    shutil.copyfile(whole.lessons_dir / source.path, copy)
        yield folder
