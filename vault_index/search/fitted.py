"""Floors and the like that are fitted to an index: a file beside it each, read once while it stays."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from vault_index import files
from vault_index.embed import minilm
from vault_index.errors import VaultError
from vault_index.store import ownership

if TYPE_CHECKING:
    from vault_index.vault import Vault

REFIT_SHARE = 0.1  # of the lessons changed in number since the fit

SMALL = 20  # lessons: fewer say nothing of what lessons of their subject score
MAX_TITLES = 150  # that are asked for, each without its lesson: more take longer and say no more
# How much the usual floors count beside the titles of a vault, which are few and no prompts. On half
# sets of three kinds the floor that a tenth of their unanswered prompts pass is .43 to .59 of evidence,
# their titles' floor .45 to .59, and the two have little to do with each other: by the titles alone
# from .01 to .21 pass, by both .04 to .15. Other embedders have other scales.
USUAL_WHOLE, USUAL_LINE = 2 / 3, 1 / 2

T = TypeVar("T")
_loaded: dict[Path, tuple[object, Any]] = {}


def load(vault: Vault, name: str, kind: Callable[..., T]) -> T | None:
    """Return the fit that was saved under a name for the index; None without one."""
    try:
        file = vault.open_index().store.index / name
        stamp = files.stamp(file)
        known = _loaded.get(file)
        if known is None or known[0] != stamp:
            known = _loaded[file] = stamp, kind(**json.loads(ownership.read_text(file)))
        fitted: T = known[1]
        return fitted
    except (OSError, ValueError, TypeError, VaultError):
        return None


def save(vault: Vault, name: str, fitted: Any) -> None:
    """Save a dataclass that was fitted to the index. Raises WriteError."""
    index = vault.open_index().store.index
    data = json.dumps(asdict(fitted), ensure_ascii=False).encode()
    files.replace_file(index / name, data)


def has_outgrown(vault: Vault, lessons: int) -> bool:
    """Whether the number of lessons changed too much since a fit."""
    return abs(vault.open_index().lessons - lessons) > REFIT_SHARE * max(1, lessons)


def quantile(values: Sequence[float], share: float) -> float:
    """Return the value that `share` of the values do not exceed, interpolated; 0.0 for none."""
    import numpy as np

    return float(np.quantile(values, share)) if values else 0.0


def passed_by(values: Sequence[float], share: float) -> float:
    """Return the floor that a share of the unanswered prompts of a vault's subject pass.

    `values` are the evidence for each title without its lesson. Some titles have siblings that do answer
    them, the more the larger a vault is; so the upper half is taken to be the mirror of the lower.
    """
    if share >= 0.5:
        return quantile(values, 1 - share)
    return 2 * quantile(values, 0.5) - quantile(values, share)


@dataclass(frozen=True, slots=True)
class Floors:
    """The evidence from which on a lesson comes whole, and that from which on its line comes."""

    whole: float
    line: float


def floors_of(
    like: Sequence[float],
    foreign: Sequence[float],
    passing: Floors,
    passing_foreign: Floors,
    usual: Floors | None,
) -> Floors:
    """Return the floors that these shares of unanswered prompts pass.

    `like` is the evidence for titles without their lessons, `foreign` that for prompts on other subjects.
    `usual` are the floors of other vaults by the same embedder, which count beside the titles.
    """
    whole, line = passed_by(like, passing.whole), passed_by(like, passing.line)
    if usual is not None and like:
        whole += USUAL_WHOLE * (usual.whole - whole)
        line += USUAL_LINE * (usual.line - line)
    whole = max(whole, quantile(foreign, 1 - passing_foreign.whole))
    return Floors(whole, min(whole, max(line, quantile(foreign, 1 - passing_foreign.line))))


def floors_of_both(
    vault: Vault,
    like: Sequence[Sequence[float]],
    foreign: Sequence[Sequence[float]],
    passing: Floors,
    passing_foreign: Floors,
    usual: Floors,
) -> tuple[float, float, float, float]:
    """Return the floors with vectors and those for full text alone, of pairs of evidence for both.

    The usual floors are those with the vectors of the built-in model.
    """
    shares = passing, passing_foreign
    known = usual if vault.open_index().embedder.startswith(minilm.NAME) else None
    both = [
        floors_of([each[at] for each in like], [each[at] for each in foreign], *shares, some)
        for at, some in enumerate((known, None))
    ]
    return both[0].whole, both[0].line, both[1].whole, both[1].line


@dataclass(frozen=True, slots=True)
class OfIndex:
    """The floors of an index, with vectors and for full text alone."""

    whole: float
    line: float
    whole_text: float
    line_text: float
    lessons: int

    def floors(self, *, text_only: bool = False) -> Floors:
        if text_only:
            return Floors(self.whole_text, self.line_text)
        return Floors(self.whole, self.line)


def foreign_prompts(file: str = "foreign_prompts.txt") -> list[str]:
    """List the prompts that no lesson answers: acknowledgements, chit-chat, other people's code..."""
    lines = (Path(__file__).parent / file).read_text("utf-8").splitlines()
    return [line for line in lines if line and not line.startswith("# ")]
