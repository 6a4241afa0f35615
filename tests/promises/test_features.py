"""Each feature of the list can be dropped: the rest tells its story without it."""

from __future__ import annotations

import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

from tests.support.places import REPO
from vault_index.features import FEATURES

# In a process for each feature, a fork of one that has loaded the packages of others: the list is
# shorter there, and what only the feature needs cannot be loaded.
STORY = """
import json, os, sys
from pathlib import Path
import click.testing, fastapi.testclient, frontmatter, git, jinja2, markdown_it, numpy, yaml

for name in sys.argv[1:]:
    fork = os.fork()
    if not fork:
        break
    os.waitpid(fork, 0)
else:
    sys.exit()
os.chdir(name)
os.environ.update(HOME=os.path.abspath("home"), LESSONS_HOME=os.path.abspath("home/.lessons"))
from vault_index import features

gone = [each for each in features.FEATURES if name in (each.name, *each.needs.split())]
features.FEATURES = tuple(each for each in features.FEATURES if each not in gone)
kept = {part for each in features.FEATURES for part in each.code.split()}
out = {f"vault_index.{part}" for each in gone for part in each.code.split() if part not in kept}


class Out:
    def find_spec(self, module, path=None, target=None):
        parts = module.split(".")
        if out & {".".join(parts[:end]) for end in range(1, len(parts) + 1)}:
            raise ImportError(f"{module} is a part of {name}")


sys.meta_path.insert(0, Out())
from click.testing import CliRunner
from vault_index.entrypoints.cli import main
from vault_index.recall import respond
from vault_index.hotpath.hook_event import Event
from vault_index.vault import open_vault


def run(*words):
    done = CliRunner().invoke(main, words)
    assert done.exit_code == 0, (words, done.output)
    return done.output


run("init", "team")
os.chdir("team")
lesson = Path("lessons/heap.md")
lesson.write_text("---\\ntitle: Raise the heap of the build\\n---\\nThe frontend build needs 4 GB.\\n")
Path("own.md").write_text("---\\ntitle: Deploys need the VPN\\n---\\nA deploy hangs without it.\\n")
run("add", "own.md")
assert "Deploys need the VPN" in run("search", "deploy hangs")
asked = "why does the frontend build need a heap?"
event = Event("UserPromptSubmit", "one", prompt=asked, cwd=os.getcwd())
vault = open_vault(".", floor=0.0)
answer = respond.respond(vault, event, by="hook", ms=1.0)
assert "Raise the heap" in answer["hookSpecificOutput"]["additionalContext"]
respond.respond(vault, Event("SessionStart", "two", cwd=os.getcwd()), by="hook", ms=1.0)
lesson.write_text(lesson.read_text().replace("4 GB", "six gigabytes"))
assert "six gigabytes" in run("search", "heap of the frontend build")
run("check")
for agent in ["claude", *(each.name for each in features.agents())]:
    run("install", agent)
    assert agent in json.loads(run("status", "--json"))["hooks"]["agents"]
refused = CliRunner().invoke(main, ["install", name])
assert refused.exit_code == 2 and "is not one of 'claude'" in refused.output
assert f"'{name}'" not in refused.output.partition("is not one of")[2]
listed = run("help", "--all")
if name != "pages":
    from fastapi.testclient import TestClient
    from vault_index.entrypoints.web.app import application
    from vault_index.entrypoints.web.vault_client import VaultClient

    page = TestClient(application(VaultClient(vault), print))
    addresses = [each.page[0] for each in gone if each.page]
    assert page.get("/").status_code == page.get("/lessons").status_code == 200
    assert [page.get(address).status_code for address in addresses] == [404] * len(addresses)
names = [word for each in gone for _, _, names in each.commands for word in names.split()]
assert not [name for name in names if f"\\n  {name} " in listed]
print(name)
"""


@pytest.mark.slow
def test_the_rest_lives_without_a_feature(tmp_path: Path) -> None:
    names = [each.name for each in FEATURES]
    for name in names:
        (tmp_path / name).mkdir()
    done = subprocess.run(
        [sys.executable, "-c", STORY, *names],
        cwd=tmp_path,
        env={
            "PATH": "/usr/local/bin:/usr/bin:/bin",
            "LESSONS_EMBEDDER": "none",
            "LESSONS_WATCH_AUTOSTART": "false",
            "PYTHONPATH": str(REPO),
        },
        capture_output=True,
        text=True,
    )
    assert done.stdout.split() == names, done.stderr


def test_what_a_feature_names_is_there() -> None:
    """Its methods are checked by mypy; these names are texts."""
    for feature in FEATURES:
        for part in feature.code.split():
            assert import_module(f"vault_index.{part}"), part
        for commands in feature.commands:
            assert import_module(f"vault_index.entrypoints.cli.{commands.module}"), commands


def test_what_a_feature_adds_is_loaded_when_it_is_called() -> None:
    for feature in FEATURES:
        for toolset in filter(None, [feature.tools()]):
            assert isinstance(toolset.about(), str), feature.name
        assert all(routes.routes for routes in feature.routes()), feature.name
