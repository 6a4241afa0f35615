"""Stand-ins for the parts that are built beside this one."""

from __future__ import annotations

import importlib.util
import sys
from types import SimpleNamespace
from typing import Any

import pytest


@pytest.fixture(autouse=True)
def stand_ins(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let `significance` and `by_rule` be there before they are."""
    if importlib.util.find_spec("vault_index.learn.significance") is None:

        def of(material: Any, ignored: Any = ()) -> Any:
            points = 3 * len(material.repairs) + 3 * len(material.prompts)
            addend = SimpleNamespace(name="said", points=points, why="said")
            values = {"points": points, "addends": [vars(addend)]}
            return SimpleNamespace(points=points, addends=(addend,), as_json=lambda: values)

        module = SimpleNamespace(of=of)
        monkeypatch.setitem(sys.modules, "vault_index.learn.significance", module)
    if importlib.util.find_spec("vault_index.learn.by_rule") is None:
        module = SimpleNamespace(entries=lambda _material: [])
        monkeypatch.setitem(sys.modules, "vault_index.learn.by_rule", module)
