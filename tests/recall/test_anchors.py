"""Anchors: a lesson says that its code changed, and stays out where the code is gone."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tests.support.commands import run
from tests.support.files import MakeVault, commit, write
from tests.support.proposing import proposed
from vault_index.index import reconcile
from vault_index.lesson.parse import Anchor, anchor_of
from vault_index.recall import anchors, select
from vault_index.vault import Vault

PYTHON = """\
import time

LIMIT = 3


@traced
async def retry(call):
    for _ in range(LIMIT):
        call()

    return None


def other(
    a,
):
    return a


class Upload:
    def send(self):
        return 1
"""
GO = "package a\n\nfunc (u *Upload) Send(x int) error {\n\tif x {\n\t}\n\treturn nil\n}\n\nvar b = 1\n"
NOTES = "# Top\n\n## How to retry\n\nTwice.\n\n### Why\n\nSo.\n\n## Other\n\nNo.\n"
ASKED = "the upload to the store is tried again and again"


@pytest.mark.parametrize(
    ("text", "name", "first", "last"),
    [
        (PYTHON, "retry", "async def retry(call):", "    return None"),
        (PYTHON, "other", "def other(", "    return a"),
        (PYTHON, "Upload.send", "    def send(self):", "        return 1"),
        (PYTHON, "LIMIT", "LIMIT = 3", "LIMIT = 3"),
        (GO, "Send", "func (u *Upload) Send(x int) error {", "}"),
        (NOTES, "how-to-retry", "## How to retry", "So."),
    ],
)
def test_a_region_is_a_definition_or_a_section(text: str, name: str, first: str, last: str) -> None:
    lines = [line for line in anchors.region(text.splitlines(), name) if line.strip()]
    assert (lines[0], lines[-1]) == (first, last)


@pytest.mark.parametrize(
    "text", ["/etc/passwd", "../x.py#y", "a/../../b", "~/.ssh/id", "", "#name"]
)
def test_an_anchor_leads_nowhere_else(text: str) -> None:
    assert anchor_of(text) is None


def test_an_anchor_follows_no_link(tmp_path: Path) -> None:
    write(tmp_path / "secret", "x")
    (tmp_path / "top").mkdir()
    (tmp_path / "top" / "link").symlink_to(tmp_path / "secret")
    assert anchors.state(tmp_path / "top", Anchor("link")) == anchors.GONE


@pytest.fixture
def team(make_vault: MakeVault, text_only: None) -> Vault:
    """A vault with a lesson about `retry`, as somebody confirmed it."""
    head = f"fires_on: [{ASKED}]\nanchors: [store/upload.py#retry]\n"
    text = f"---\ntitle: Retry uploads\n{head}---\nRetry three times, then give up.\n"
    vault = make_vault({"store/retry.md": text, "ops/logs.md": "Rotate the logs each night.\n"})
    write(vault.root / "store" / "upload.py", PYTHON)
    commit(vault.root, "a vault")
    run("lessons", "check", "--confirm", "store/retry", cwd=vault.root)
    reconcile.sync(vault)
    return vault


def given(vault: Vault) -> str:
    return select.for_prompt(vault, ASKED, text_only=True).text


@pytest.mark.slow
def test_confirmed_code_is_hashed_and_a_change_is_said_in_the_line(team: Vault) -> None:
    lesson = (team.lessons_dir / "store/retry.md").read_text()
    assert re.search(r"anchors: \[['\"]?store/upload.py#retry@[0-9a-f]{8}['\"]?\]", lesson)
    assert "Retry three times" in given(team)
    assert "changed" not in given(team)
    write(team.root / "store/upload.py", PYTHON.replace("return None", "raise"))
    said = "the code that it is about changed since somebody confirmed it: store/upload.py#retry\n"
    assert said in given(team)
    stale = run("lessons", "check", "--stale", cwd=team.root).out
    assert "lessons/store/retry.md: store/upload.py#retry changed since it was confirmed\n" in stale
    run("lessons", "check", "--confirm", "store/retry", cwd=team.root)
    reconcile.sync(team)
    assert "changed" not in given(team)


@pytest.mark.slow
@pytest.mark.parametrize("what", ["renamed", "deleted"])
def test_where_its_code_is_gone_a_lesson_stays_out_and_is_listed(team: Vault, what: str) -> None:
    if what == "deleted":
        (team.root / "store/upload.py").unlink()
    else:
        write(team.root / "store/upload.py", PYTHON.replace("def retry", "def attempt"))
    injection = select.for_prompt(team, ASKED, text_only=True)
    assert injection.text == ""
    assert injection.silent.endswith("its code is gone: `lessons check --stale`")
    stale = run("lessons", "check", "--stale", cwd=team.root).out
    assert "store/upload.py#retry is gone: hooks leave the lesson out" in stale
    assert "Retry uploads" in run("lessons", "search", ASKED, cwd=team.root).out  # people find it


@pytest.mark.slow
def test_what_an_agent_proposes_is_about_the_code_that_changed_and_that_it_names(
    team: Vault,
) -> None:
    write(team.root / "store/upload.py", PYTHON.replace("return None", "raise"))
    text = "After three tries `retry` raises, so catch what it raises in the caller."
    entry = {"title": "Uploads raise at the end", "type": "bug_fix", "quotes": []}
    entries = json.dumps([{**entry, "what_to_do": text}])
    run("lessons", "propose", cwd=team.root, stdin=entries)
    listed = run("lessons", "review", "list", "--json", cwd=team.root).out
    (waiting,) = json.loads(listed)
    assert waiting["anchors"] == ["store/upload.py#retry"]
    ran = run("lessons", "review", "accept", waiting["id"], "--category", "store", cwd=team.root)
    assert re.search(
        r"store/upload.py#retry@[0-9a-f]{8}", (team.root / ran.out.split()[-1]).read_text()
    )


DIFF = """\
diff --git a/store/upload.py b/store/upload.py
--- a/store/upload.py
+++ b/store/upload.py
@@ -7,3 +7,4 @@ async def retry(call):
     for _ in range(LIMIT):
-        call()
+        call(timeout=3)
@@ -20,2 +21,4 @@ class Upload:
+    def send_all(self):
+        return 1
diff --git a/Makefile b/Makefile
--- a/Makefile
+++ b/Makefile
@@ -1 +1 @@
-all: test
+all: build
"""


def test_anchors_are_proposed_of_what_a_diff_changed_and_a_lesson_names() -> None:
    assert anchors.proposed(DIFF, "`retry` needs a timeout") == ("store/upload.py#retry",)
    assert anchors.proposed(DIFF, "use send_all and not retry") == (
        "store/upload.py#retry",
        "store/upload.py#send_all",
    )
    assert anchors.proposed(DIFF, "the target all of `Makefile` builds") == ("Makefile",)
    assert anchors.proposed(DIFF, "nothing of it") == ()


@pytest.mark.slow
def test_an_accepted_proposal_has_the_hash_of_its_day(team: Vault, own_world: Path) -> None:
    proposed(team, "Send all at once", "Call send for each part.", "store")
    (waiting,) = run("lessons", "review", "list", "--json", cwd=team.root).json
    (file,) = own_world.rglob(f"{waiting['id']}.md")
    text = file.read_text()
    file.write_text(
        text.replace(
            "created:",
            "anchors: [store/upload.py#Upload.send, of/another.py#repository]\ncreated:",
            1,
        )
    )
    run("lessons", "review", "accept", waiting["id"], cwd=team.root)
    (lesson,) = team.lessons_dir.glob("store/send*.md")
    assert re.search(r"anchors: \[store/upload.py#Upload.send@[0-9a-f]{8}\]", lesson.read_text())
