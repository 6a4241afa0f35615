"""Run PrecisionMemBench as it is, with the selection of hooks as the memory behind it.

    git clone https://github.com/tenurehq/precisionmembench && (cd precisionmembench && npm ci)
    python -m benchmarks.precision_mem precisionmembench

Its harness (MIT, by the authors of `tenure`; figures here are of commit aed5c2b) speaks HTTP to a
provider: `/reset`, `/add`, `/update` and `/search`. This is ours; nothing of the harness is copied or
changed but its list of providers, in a copy. Decisions of the mapping:

- A belief is a lesson: the text that the harness sends, with the first word, its name, as the title.
- A scope of a user is a vault, as a project of a team is: hooks search one vault.
- `/search` returns what a hook would inject for the query, at most three lessons above the floor,
  and not the twenty that it may return.
- Aliases are words in the text. Nobody teaches anything, and no belief is a rule.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from vault_index.edit import init
from vault_index.embed import download
from vault_index.index import reconcile
from vault_index.recall import select
from vault_index.vault import Vault, open_vault

NAME = "lessons"
PARTS = ("retrieval", "session-retrieval")
# of its README at that commit: passes of 77, mean precision, mean recall; turns of 12
OTHERS = {
    "tenure (its authors)": (77, 1.00, 1.00, 12),
    "supermemory": (44, 0.43, 0.55, 2),
    "gbrain": (34, 0.14, 0.17, 1),
    "yourmemory": (21, 0.17, 0.88, 1),
    "agentmemory": (7, 0.17, 0.97, 0),
    "plain vectors": (11, 0.09, 1.00, 0),
    "mem0": (9, 0.06, 0.99, 0),
}


class Memory:
    """Vaults of beliefs, one for each scope of a user, below a folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._vaults: dict[Path, Vault] = {}
        self._changed: set[Path] = set()

    def reset(self) -> None:
        """Forget everything."""
        self._vaults.clear()
        shutil.rmtree(self._folder, ignore_errors=True)

    def add(self, user: str, scope: str, id: str, text: str) -> None:
        """Write a belief as a lesson; one of that id is replaced."""
        root = self._root(user, scope)
        if root not in self._vaults:
            init(root)
            self._vaults[root] = open_vault(root)
        title = json.dumps((text.split() or [id])[0].replace("_", " "))
        file = self._vaults[root].lessons_dir / f"{id}.md"
        file.write_text(f"---\ntitle: {title}\n---\n{text}\n", "utf-8")
        self._changed.add(root)

    def find(self, user: str, scope: str, query: str) -> list[str]:
        """Return the ids of the beliefs that a hook would inject for a query."""
        vault = self._vaults.get(self._root(user, scope))
        if vault is None:
            return []
        if vault.root in self._changed:
            self._changed.remove(vault.root)
            reconcile.sync(vault)
        return [hit.lesson_id for hit in select.for_prompt(vault, query).hits]

    def _root(self, user: str, scope: str) -> Path:
        return self._folder / re.sub(r"\W", "-", user) / re.sub(r"\W", "-", scope)


@contextmanager
def serving(memory: Memory) -> Iterator[str]:
    """Answer the harness at an address while the `with` block runs, one request at a time."""
    lock = threading.Lock()

    class Handler(BaseHTTPRequestHandler):
        def _answer(self) -> None:
            length = int(self.headers.get("content-length") or 0)
            asked = json.loads(self.rfile.read(length) or b"{}")
            with lock:
                data = json.dumps(answer(memory, self.path, asked)).encode()
            self.send_response(200)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        do_POST = do_PUT = do_DELETE = _answer  # names of the standard library

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()


def answer(memory: Memory, path: str, asked: dict[str, Any]) -> dict[str, Any]:
    """Answer a request of the harness."""
    if path == "/reset":
        memory.reset()
    elif path in ("/add", "/update"):
        about = asked["metadata"]
        memory.add(asked["user_id"], str(about["scope"]), about["beliefId"], asked["text"])
    elif path == "/search":
        ids = memory.find(asked["user_id"], str(asked["scope"]), asked["query"])
        return {"results": [{"id": id} for id in ids[: asked.get("limit", 20)]]}
    return {"ok": True}


def run(clone: Path, scratch: Path) -> list[dict[str, Any]]:
    """Run both parts of the harness in a copy of a clone and return their reports."""
    copy = scratch / "harness"
    shutil.copytree(clone, copy, symlinks=True, ignore=shutil.ignore_patterns(".git"))
    providers = json.loads((copy / "providers.config.json").read_text())
    with serving(Memory(scratch / "vaults")) as url:
        ours = {
            "envVar": "LESSONS_URL",
            "defaultUrl": url,
            "seedDelayMs": 0,
            "supportsUpdate": True,
        }
        providers[NAME] = {**ours, "beliefToText": "canonical_name_aliases"}
        (copy / "providers.config.json").write_text(json.dumps(providers))
        return [_report(copy, part) for part in PARTS]


def _report(copy: Path, part: str) -> dict[str, Any]:
    """Run a part of the harness and return its report."""
    path = (
        f"{copy}/node_modules/.bin{os.pathsep}{os.environ['PATH']}"  # a Node of the clone, if any
    )
    environ = {**os.environ, "PATH": path, "MEMORY_PROVIDER": NAME, "RESEED": "true"}
    command = ["npx", "ava", f"src/{part}.external.eval.test.ts"]
    subprocess.run(command, cwd=copy, env=environ, capture_output=True, check=False)
    report = copy / "test-results" / f"{part}-report-{NAME}.json"
    written: dict[str, Any] = json.loads(report.read_text())
    return written


def main() -> None:
    """Run the benchmark and print our figures beside those of its README."""
    parser = argparse.ArgumentParser(description="Run PrecisionMemBench.")
    parser.add_argument("clone", type=Path, help="a clone of the benchmark, after `npm ci`")
    parser.add_argument("--json", type=Path, help="write both reports of the harness here")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="lessons-precision-") as scratch:
        os.environ.setdefault("LESSONS_HOME", str(Path(scratch) / "home"))
        download.fetch(Path(os.environ["LESSONS_HOME"]))
        reports = run(options.clone.resolve(), Path(scratch))
    if options.json:
        options.json.write_text(json.dumps(reports, indent=1))
    single, session = (report["retrieval"] for report in reports)
    figures = [single["totalPassed"], single["meanPrecision"], single["meanRecall"]]
    ours = (*figures, session["totalPassed"])
    sys.stdout.write(
        f"{single['activeRetrievalPasses']} active passes, p50 {single['p50LatencyMs']} ms\n"
    )
    for name, (passes, precision, recall, turns) in {"ours": ours, **OTHERS}.items():
        shown = f"precision {precision:.2f}  recall {recall:.2f}  {turns}/12"
        sys.stdout.write(f"{name:22} {passes:3}/77  {shown}\n")


if __name__ == "__main__":
    main()
