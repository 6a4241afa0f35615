"""Are the drafts from reviews worth keeping? By labels that a reader wrote before any draft was made.

    python -m benchmarks.reviews FOLDER

FOLDER has recorded reviews, a file each, as `lessons learn --pr FILE` reads them. `reviews.jsonl` has 200
threads of two public projects (git-repo and the replication plugin of Gerrit, Apache-2.0): the address
of each, and what a reader who saw only the threads would keep. Their texts are not in this repository:
both projects publish reviews and patch sets in git (`refs/changes/*`), from which recordings were made.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from benchmarks import instruments
from benchmarks.instruments import Row
from vault_index.learn import by_rule, pull_request

LABELS = Path(__file__).with_name("reviews.jsonl")


def rows(folder: Path) -> Iterator[Row]:
    """Yield how many threads led to a change, how many became drafts, and the share worth keeping."""
    labels = {each["url"]: each["worth"] for each in map(json.loads, LABELS.open())}
    threads, answered, worth = 0, 0, Counter[str]()
    for file in sorted(folder.rglob("*.json")):
        comments = json.loads(file.read_bytes())["comments"]
        threads += sum(each.get("html_url") in labels for each in comments)
        material = pull_request.material(str(file))
        whys = [why for _, _, why in material.threads]
        answered += sum(why.rpartition(" ")[2] in labels for why in whys)
        for draft in pull_request.with_threads(by_rule.of_review(material.moments), material):
            url = draft.why.rpartition(" ")[2]
            if url in labels:
                worth[labels[url]] += 1
    yield "threads with a label", threads, "threads"
    yield "led to a change, or dismissed with a reason", answered, "threads"
    yield "drafts by rules", worth.total(), "drafts"
    kept = worth["yes"] + worth["maybe"] / 2
    yield "worth keeping (a maybe is half)", 100 * kept / max(1, worth.total()), "%"
    deserve = sum(each == "yes" for each in labels.values())
    yield "of the threads that deserve it", 100 * worth["yes"] / deserve, "%"


if __name__ == "__main__":
    list(instruments.shown(rows(Path(sys.argv[1]))))
