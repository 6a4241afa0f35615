"""A pull request: `check --against`, and the steps of `action.yml` run on a repository here."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest
import yaml

from tests.support.commands import BIN, run
from tests.support.files import MakeVault, commit, lesson_text, write
from tests.support.places import REPO
from vault_index.vault import Vault

pytestmark = pytest.mark.slow

KILLED, DIES, HANGS = (
    "the bundle step is killed",
    "the bundler dies without a word",
    "the deploy to staging hangs",
)


def lesson(title: str, text: str, *prompts: str) -> str:
    return lesson_text(title, text).replace("---\n", f"---\nfires_on: {list(prompts)}\n", 1)


@pytest.fixture
def changed(make_vault: MakeVault, text_only: None) -> Vault:
    """A vault whose head adds, changes and removes a lesson of the commit before."""
    vault = make_vault(
        {
            "build/heap.md": lesson("Heap", "Raise the heap of the build.", KILLED),
            "ops/queue.md": lesson("Old queue", "Drain it.", "the queue is stuck, @everyone `now`"),
            "ops/logs.md": lesson(
                "Logs", "Rotate the logs each night.", "the disk is full of logs"
            ),
        }
    )
    commit(vault.root, "base")
    write(vault.lessons_dir / "build/heap.md", lesson("Heap", "Raise the heap.", DIES))
    vpn = lesson("Staging deploys need the VPN", "Set VPN=1 for the deploy to staging.", HANGS)
    write(vault.lessons_dir / "ops/vpn.md", vpn)
    (vault.lessons_dir / "ops/queue.md").unlink()
    write(vault.root / "prompts.txt", f"# typed lately\n\n{KILLED}\nhow do I bake rye bread\n")
    commit(vault.root, "head")
    return vault


def test_what_a_change_newly_fires_at_is_said_at_a_terminal_and_in_json(changed: Vault) -> None:
    words = ["check", "--against", "HEAD~", "--prompts", "prompts.txt"]
    shown = run("lessons", *words, cwd=changed.root).out
    assert shown.splitlines()[0] == "3 lessons changed, 6 prompts tried."
    assert f"Heap (build/heap, changed)\n  newly fires at: {DIES}\n" in shown
    answer = run("lessons", *words, "--json", cwd=changed.root).json
    assert {each["id"]: (each["newly"], each["no_longer"]) for each in answer["lessons"]} == {
        "ops/vpn": ([HANGS], []),
        "build/heap": ([DIES], [KILLED]),
        "ops/queue": ([], ["the queue is stuck, @everyone `now`"]),
    }
    assert answer["findings"] == []
    same = run("lessons", "check", "--against", "HEAD", cwd=changed.root)
    assert same.out == "0 lessons changed, 3 prompts tried.\n"


def test_lessons_about_what_a_change_touches_are_named_and_are_no_error(
    changed: Vault, tmp_path: Path
) -> None:
    for number in (1, 2):
        head = f"---\ntitle: Wait {number}\nanchors: [app.py#wait]\n---\n"
        write(changed.lessons_dir / f"wait-{number}.md", f"{head}{number} s are enough.\n")
    write(changed.root / "app.py", "def wait():\n    pass\n")
    commit(changed.root, "with anchors")
    write(changed.root / "app.py", "def wait():\n    return 1\n")
    commit(changed.root, "code alone")
    words = ["check", "--against", "HEAD~", "--comment", str(tmp_path / "comment.md")]
    shown = run("lessons", *words, cwd=changed.root)
    assert "\nThis change touches what 2 lessons are about:\n  Wait 1 (wait-1): " in shown.out
    assert (tmp_path / "comment.md").read_text().splitlines()[5:8] == [
        "This change touches what 2 lessons are about:",
        "- `Wait 1` (`wait-1`): `it changes app.py#wait`",
        "- `Wait 2` (`wait-2`): `it changes app.py#wait`",
    ]
    write(changed.lessons_dir / "wait-1.md", lesson("Wait", "Corrected with the code."))
    answer = run("lessons", *words, "--json", cwd=changed.root).json
    assert [each["lesson"] for each in answer["touched"]] == ["wait-2"]


def test_only_what_changed_is_checked(changed: Vault) -> None:
    write(changed.lessons_dir / "ops/logs.md", "---\nconfidence: 9\n---\nRotate.\n")
    commit(changed.root, "wrong")
    here = run("lessons", "check", "--against", "HEAD~", cwd=changed.root, check=False)
    assert here.code == 1
    assert "lessons/ops/logs.md:2:" in here.out
    write(changed.lessons_dir / "ops/vpn.md", lesson("VPN", "Set VPN=1.", HANGS))
    commit(changed.root, "another")
    run("lessons", "check", "--against", "HEAD~", cwd=changed.root)


def test_without_a_vault_before_all_is_new_and_an_unknown_commit_is_an_error(
    changed: Vault,
) -> None:
    branch = run("git", "branch", "--show-current", cwd=changed.root).out.strip()
    run("git", "switch", "-q", "--orphan", "empty", cwd=changed.root)
    run("git", "commit", "-q", "--allow-empty", "-m", "nothing", cwd=changed.root)
    run("git", "switch", "-q", branch, cwd=changed.root)
    answer = run("lessons", "check", "--against", "empty", "--json", cwd=changed.root).json
    assert {each["state"] for each in answer["lessons"]} == {"new"}
    done = run("lessons", "check", "--against", "nowhere", cwd=changed.root, check=False)
    assert (done.code, done.err.splitlines()[0]) == (1, "Error: no commit 'nowhere'")


GH = """\
#!/bin/sh
# Stands for gh: a comment is a file, and each call a line of the log.
echo "$@" >> "$GH_LOG"
for word; do case "$word" in body=@*) cp "${word#body=@}" "$GH_COMMENT";; esac; done
case "$*" in *--jq*) [ ! -f "$GH_COMMENT" ] || printf '7\\n8\\n';; esac  # of two pages
"""


class Runner:
    """Runs the steps of action.yml, one after the other, as GitHub's runner does."""

    def __init__(self, folder: Path, workspace: Path, base: str) -> None:
        self.temp, self.workspace = folder / "temp", workspace
        self.log, self.comment = folder / "gh.log", folder / "comment.md"
        self.summary = folder / "summary.md"
        (self.temp / "lessons" / "bin").mkdir(parents=True)  # as if installed by an earlier step
        (self.temp / "lessons" / "bin" / "lessons").symlink_to(BIN / "lessons")
        gh = write(folder / "bin" / "gh", GH)
        gh.chmod(0o755)
        self.environment = {
            **os.environ,
            "PATH": f"{gh.parent}:{os.environ['PATH']}",
            "RUNNER_TEMP": str(self.temp),
            "GITHUB_STEP_SUMMARY": str(self.summary),
            "GH_LOG": str(self.log),
            "GH_COMMENT": str(self.comment),
        }
        self.values = {
            "github.action_path": str(REPO),
            "github.event.pull_request.base.sha": base,
            "github.event.pull_request.number": "12",
            "github.repository": "team/app",
            "github.token": "of-the-job",
        }

    def run(self, **inputs: str) -> tuple[bool, str]:
        """Return whether all steps went well, and what they printed."""
        action = yaml.safe_load((REPO / "action.yml").read_text())
        given = {name: each["default"] for name, each in action["inputs"].items()} | inputs
        values = self.values | {f"inputs.{name}": value for name, value in given.items()}

        def filled(text: str) -> str:
            return re.sub(r"\$\{\{ ([\w.]+) \}\}", lambda match: values[match[1]], text)

        is_well, printed = True, ""
        for step in action["runs"]["steps"]:
            assert {*step} <= {"name", "shell", "env", "run", "working-directory", "if"}
            assert "${{" not in step["run"], "what a pull request says is no text of a script"
            if not is_well and step.get("if") != "always()":
                continue
            env = {name: filled(value) for name, value in step.get("env", {}).items()}
            done = subprocess.run(
                ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]],
                cwd=self.workspace / filled(step.get("working-directory", ".")),
                env=self.environment | env,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                check=False,
            )
            is_well = is_well and done.returncode == 0
            printed += done.stdout
        return is_well, printed


@pytest.fixture
def runner(changed: Vault, tmp_path: Path) -> Runner:
    """A runner with a shallow clone of the head, as a checkout of a pull request is."""
    base = run("git", "rev-parse", "HEAD~", cwd=changed.root).out.strip()
    run("git", "config", "uploadpack.allowAnySHA1InWant", "true", cwd=changed.root)
    clone = tmp_path / "clone"
    run("git", "clone", "-q", "--depth=1", f"file://{changed.root}", clone, cwd=tmp_path)
    return Runner(tmp_path / "runner", clone, base)


def test_the_action_annotates_and_fails_and_comments_all_the_same(runner: Runner) -> None:
    write(runner.workspace / "lessons/ops/vpn.md", "---\nconfidence: 9\n---\nSet VPN=1.\n")
    is_well, printed = runner.run()
    assert not is_well
    assert re.search(
        r"(?m)^::error file=lessons/ops/vpn.md,line=2,title=[\w-]+::.*confidence", printed
    )
    assert "`lessons check` has 1 error: see the annotations." in runner.comment.read_text()
    runner.comment.unlink()
    runner.run(comment="false")
    assert not runner.comment.exists()


def test_the_hook_of_pre_commit_refuses_a_secret(changed: Vault) -> None:
    (hook,) = yaml.safe_load((REPO / ".pre-commit-hooks.yaml").read_text())
    assert re.search(hook["files"], "lessons/ops/key.md")
    assert re.search(hook["files"], "vaults/team/lessons/vault.toml")
    assert not re.search(hook["files"], "src/app.py")
    write(changed.lessons_dir / "ops/key.md", "The key is AKIAIOSFODNN7EXAMQLE of the account.\n")
    run("git", "add", "-A", cwd=changed.root)
    done = run(*hook["entry"].split(), cwd=changed.root, check=False)
    assert done.code == 1
    assert "lessons/ops/key.md:1" in done.out
