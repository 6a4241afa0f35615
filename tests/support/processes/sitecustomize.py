"""Python loads this first in each process of a test: few prompts, as in `few_prompts`."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType
from typing import Any

TITLES = 20
FITTED = ("vault_index.search.floor", "vault_index.search.failures")


class FewPrompts:
    """Finds the modules that fit floors, and leaves them a tenth of their prompts or failures."""

    @staticmethod
    def find_spec(
        name: str, path: Sequence[str] | None = None, _target: ModuleType | None = None
    ) -> ModuleSpec | None:
        spec = PathFinder.find_spec(name, path) if name in FITTED else None
        if spec is None or spec.loader is None:
            return None
        load: Any = spec.loader.exec_module

        def load_few(module: ModuleType) -> None:
            load(module)
            for each, whole in list(vars(module).items()):
                if each == "MAX_TITLES":
                    setattr(module, each, TITLES)
                elif each in ("foreign", "foreign_prompts"):
                    setattr(module, each, lambda *given, whole=whole: whole(*given)[::10])

        spec.loader.exec_module = load_few  # type: ignore[method-assign]  # of this loader alone
        return spec


if os.environ.get("TESTS_FEW_PROMPTS"):
    sys.meta_path.insert(0, FewPrompts)
