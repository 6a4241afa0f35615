"""What an analysis would send, and to whom, before anything is sent."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from vault_index.config import Config
from vault_index.learn.stages import Planned

_HERE = ("localhost", "")


@dataclass(frozen=True, slots=True)
class Plan:
    """The calls of an analysis; none without a model. `receiver` is who gets them, in words."""

    model: str = ""
    receiver: str = ""
    leaves: bool = False  # this machine
    calls: tuple[Planned, ...] = ()

    def as_json(self) -> dict[str, Any]:
        """Return plain values."""
        return {
            "model": self.model,
            "receiver": self.receiver,
            "leaves": self.leaves,
            "stages": [
                {"stage": call.stage, "chars": call.chars, "tokens": call.tokens}
                for call in self.calls
            ],
            "chars": sum(call.chars for call in self.calls),
            "tokens": sum(call.tokens for call in self.calls),
        }

    def __str__(self) -> str:
        if not self.model:
            return "no model is asked: rules make drafts, and nothing leaves this machine"
        total = self.as_json()
        calls = f"{len(self.calls)} call{'' if len(self.calls) == 1 else 's'}"
        calls += ", each once more if its answer does not fit"
        size = (
            f"at most {total['chars']:,} characters, about {total['tokens']:,} tokens, in {calls}"
        )
        away = "leaves this machine" if self.leaves else "stays on this machine"
        return f"{size}, for {self.model}: {self.receiver}; it {away}"


def of(config: Config, calls: tuple[Planned, ...]) -> Plan:
    """Return the plan for calls of the model in the settings."""
    receiver, leaves = _receiver(config)
    return Plan(config.learn_model, receiver, leaves, calls)


def _receiver(config: Config) -> tuple[str, bool]:
    """Return who gets what is sent to a model, and whether that is another machine."""
    door, _, model = config.learn_model.partition(":")
    if door == "ollama":
        host = config.ollama_host if "//" in config.ollama_host else f"//{config.ollama_host}"
        name = urlsplit(host).hostname or ""
        cloud = model.endswith("-cloud") or ":cloud" in model
        away = cloud or not _is_here(name)
        return (f"Ollama at {name or 'localhost'}" + " and its cloud" * cloud), away
    if door == "openai":
        name = urlsplit(config.llm_openai_url).hostname or ""
        return f"the server {name or '(none is set)'}", not _is_here(name)
    if door == "claude":
        return "Anthropic, through your own claude", True
    return "Anthropic", True


def _is_here(host: str) -> bool:
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return host in _HERE
    return address.is_loopback or address.is_unspecified
