"""Measure how many verbatim quotes of real transcripts the gate refuses.

    python -m benchmarks.quotes FOLDER

Of each transcript of Claude Code below a folder it takes lines of five words or more, 12 of each kind:
what was printed, what failed, what the agent said and what a person typed. Each is looked up as the
quote of an entry is. Not counted is what Claude Code itself puts below a result.
"""

from __future__ import annotations

import argparse
import json
import random
import re
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks import instruments
from benchmarks.instruments import Row
from vault_index.journal import capture
from vault_index.learn import gather, grounding
from vault_index.proposals.draft import words
from vault_index.transcripts import reading
from vault_index.transcripts.moments import PERSON

OF_A_KIND = 12
_REMINDER = re.compile(r"(?s)<system-reminder>.*?</system-reminder>")


def main() -> None:
    """Print how many quotes of each kind were looked up and refused."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, help="a folder with transcripts")
    list(instruments.shown(rows(parser.parse_args().folder)))


def rows(folder: Path) -> Iterator[Row]:
    """Count the quotes and those that are refused, by kind."""
    asked, refused = Counter[str](), Counter[str]()
    for file in sorted(folder.rglob("*.jsonl")):
        if file.parent.name in ("subagents", "other-agents"):
            continue
        read = capture.read(file, reading.agent_of(file), outputs=True).moments
        heard = gather.as_heard(read)
        texts = grounding.texts_of(text for each in heard for text in (each.text, each.about))
        typed = [each.text for each in heard if each.kind == PERSON]
        for kind, lines in _lines(file).items():
            chosen = random.Random(file.name).sample(lines, min(OF_A_KIND, len(lines)))
            asked[kind] += len(chosen)
            refused[kind] += sum(not grounding.proven([each], texts, (), typed) for each in chosen)
    for kind, count in asked.items():
        yield f"quotes of what {kind}", count, "lines"
        yield f"refused of what {kind}", refused[kind], "lines"


def _lines(file: Path) -> dict[str, list[str]]:
    """Return the lines of a transcript by kind, each once."""
    found: dict[str, dict[str, None]] = defaultdict(dict)
    for raw in file.read_text("utf-8", "replace").splitlines():
        for kind, text in _texts(raw):
            lines = map(str.strip, _REMINDER.sub("", text).splitlines())
            found[kind] |= dict.fromkeys(line for line in lines if 20 <= len(line) <= 400)
    return {
        kind: [line for line in lines if len(words(line)) >= 5] for kind, lines in found.items()
    }


def _texts(raw: str) -> Iterator[tuple[str, str]]:
    try:
        record: dict[str, Any] = json.loads(raw)
    except ValueError:
        return
    if record.get("isSidechain") or record.get("isApiErrorMessage"):
        return  # a subagent's, and what the program says in the agent's place
    message = record.get("message")
    content = message.get("content") if isinstance(message, dict) else None
    for block in content if isinstance(content, list) else ():
        if record.get("type") == "assistant" and block.get("type") == "text":
            yield "the agent said", block["text"]
        elif block.get("type") == "tool_result":
            parts = block.get("content") or ""
            if isinstance(parts, list):
                parts = "\n".join(each.get("text", "") for each in parts)
            yield ("failed" if block.get("is_error") else "was printed"), parts
    is_typed = record.get("type") == "user" and not record.get("isMeta")
    if isinstance(content, str) and is_typed and not re.match(r"\s*<[a-z-]+[ >]", content):
        yield "a person typed", content


if __name__ == "__main__":
    main()
