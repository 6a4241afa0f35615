"""Names that are nearly right."""

from __future__ import annotations

import pytest

from vault_index.text.words import nearest


@pytest.mark.parametrize(
    ("typed", "meant"),
    [("dev", "development"), ("develpment", "development"), ("xyz", "")],
)
def test_the_nearest_name_begins_so_or_is_spelled_so(typed: str, meant: str) -> None:
    assert nearest(typed, ["devops/ci-cd", "devops", "development/backend", "development"]) == meant
