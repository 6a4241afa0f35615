"""Names that are nearly right."""

from __future__ import annotations

import pytest

from vault_index.text.words import meant


@pytest.mark.parametrize(
    ("typed", "name"),
    [("dev", "development"), ("develpment", "development"), ("xyz", "")],
)
def test_the_nearest_name_begins_so_or_is_spelled_so(typed: str, name: str) -> None:
    assert meant(typed, ["devops/ci-cd", "devops", "development/backend", "development"]) == name
