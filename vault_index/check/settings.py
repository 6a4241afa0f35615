"""Whether the settings of a vault say what their author means: `lessons/vault.toml`."""

from __future__ import annotations

import re
from collections.abc import Iterator

from vault_index import config
from vault_index.check.finding import Finding

RULE = "settings"


def findings(path: str, data: bytes) -> Iterator[Finding]:
    """Find unknown keys, keys that are not a vault's to set, and values of a wrong type."""
    text = data.decode("utf-8", "replace")
    for key, message in config.vault_problems(data):
        yield Finding(path, _line(text, key, message), RULE, message)


def _line(text: str, key: str, message: str) -> int:
    """Return the line of a key, or the one that the TOML parser names; else 1."""
    name = re.escape(key.rpartition(".")[2])
    pattern = rf"(?m)^\s*(?:\w+\.)?[\"']?{name}[\"']?\s*[.=]|^\s*\[{re.escape(key)}[\].]"
    match = re.search(pattern, text) if key else None
    if match:
        return text.count("\n", 0, match.end()) + 1
    named = re.search(r"at line (\d+)", message)
    return int(named[1]) if named else 1
