"""Print the lines of code by part of the package, beside the last release's.

    python .ci/size.py             # the table
    python .ci/size.py --release   # note the figures as the release's, in .ci/size.json

A line of code is no blank line, no comment and no docstring. The parts are the features of
`vault_index.features`, and the folders of what no feature owns. Nothing fails: size follows from
what the product does, and a reader of the changelog should find what the growth is for.
"""

from __future__ import annotations

import ast
import io
import json
import sys
import tokenize
from collections import Counter
from pathlib import Path

from vault_index.features import FEATURES

REPO = Path(__file__).parents[1]
PACKAGE = REPO / "vault_index"
RELEASED = Path(__file__).with_name("size.json")
SHARE = 0.02  # growth that asks for a sentence in the changelog
_NO_CODE = (tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT)


def lines_of_code(text: str) -> int:
    """Count the lines of a module that have code on them."""
    lines: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type not in (*_NO_CODE, tokenize.ENDMARKER):
            lines.update(range(token.start[0], token.end[0] + 1))
    for node in ast.walk(ast.parse(text)):
        body = getattr(node, "body", None)
        first = body[0] if isinstance(body, list) and body else None
        value = first.value if isinstance(first, ast.Expr) else None
        if first and isinstance(value, ast.Constant) and isinstance(value.value, str):
            lines.difference_update(range(first.lineno, (first.end_lineno or 0) + 1))
    return len(lines)


def part_of(module: str) -> str:
    """Return the feature that owns a module, such as `journal.capture`, or its folder."""
    for feature in FEATURES:
        owned = [] if feature.agent else feature.code.split()  # agents share a module
        if any(module == name or module.startswith(f"{name}.") for name in owned):
            return feature.name
    folder, _, rest = module.partition(".")
    if folder == "entrypoints" and "." in rest:
        return f"entrypoints/{rest.partition('.')[0]}"
    return folder if rest else "top level"


def measure() -> dict[str, int]:
    """Count the lines of code of each part, the largest part first."""
    counts: Counter[str] = Counter()
    for file in PACKAGE.rglob("*.py"):
        module = ".".join(file.relative_to(PACKAGE).with_suffix("").parts)
        counts[part_of(module.removesuffix(".__init__"))] += lines_of_code(file.read_text("utf-8"))
    return dict(counts.most_common())


def main() -> None:
    """Print the table, or note it as the release's."""
    counts = measure()
    if sys.argv[1:] == ["--release"]:
        RELEASED.write_text(json.dumps(counts, indent=1) + "\n", "utf-8")
        return
    released = json.loads(RELEASED.read_text("utf-8"))
    print(f"{'lines of code':28} {'now':>7} {'release':>8}")
    for part in dict.fromkeys([*counts, *released]):
        now, before = counts.get(part, 0), released.get(part, 0)
        print(f"{part:28} {now:7,} {before:8,}{f' {now - before:+,}' if now != before else ''}")
    now, before = sum(counts.values()), sum(released.values())
    print(f"{'all':28} {now:7,} {before:8,} {100 * (now / before - 1):+.1f}%")
    if now > before * (1 + SHARE):
        print(f"over {SHARE:.0%}: CHANGELOG.md should have a sentence on what the growth is for")


if __name__ == "__main__":
    main()
