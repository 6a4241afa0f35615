"""The floor's quantile rises in small vaults, and is what it was in large ones."""

from __future__ import annotations

from vault_index.search import floor


def test_the_share_rises_as_a_vault_gets_smaller() -> None:
    sizes = (100_000, 1870, 935, 624, 187, 9, 0)
    shares = [floor.share_of(size) for size in sizes]
    assert shares == sorted(shares)
    assert floor.share_of(1870) == floor.share_of(100_000) == floor.QUANTILE
    assert 0.97 < floor.share_of(187) <= floor.SMALLEST_VAULT
    assert floor.share_of(0) == floor.SMALLEST_VAULT < 1
