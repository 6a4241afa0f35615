"""Material as learning gets it, and a language model that says what a test tells it to say."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from vault_index.learn.material import CHANGED, SESSION, FileChange, Material
from vault_index.llm import backend
from vault_index.llm.backend import Usage
from vault_index.llm.metered import Model
from vault_index.transcripts.moments import AGENT, EDIT, FAILED, PERSON, RAN, Moment

SESSION_ID = "3f2a91c0-0000-4000-8000-000000000001"
DIFF = """\
diff --git a/docs/login.md b/docs/login.md
--- a/docs/login.md
+++ b/docs/login.md
@@ -1 +1,2 @@
 # Login
+The redirect keeps what stands behind the question mark.
diff --git a/tests/test_login.py b/tests/test_login.py
--- a/tests/test_login.py
+++ b/tests/test_login.py
@@ -3,0 +4,2 @@
+def test_redirect_keeps_query():
+    assert redirect("/home", query="next=cart").url == "/home?next=cart"
diff --git a/store/login.py b/store/login.py
--- a/store/login.py
+++ b/store/login.py
@@ -10,3 +10,3 @@ def after_login(request):
-    return redirect(path)
+    return redirect(path + request.query_string())
"""


HEAP = (  # a lesson that was there
    "When the frontend build in CI dies with ENOMEM, raise the heap of node: set NODE_OPTIONS to"
    " --max-old-space-size=4096 in the job, since webpack holds all source maps in memory at once."
)
PROMPT = "The login redirect loses the query string, please correct that"
CORRECTION = "No, do not touch nginx.conf, the query is dropped in after_login() already"
CHECK = "pytest tests/test_login.py"
MOMENTS = (
    Moment(PERSON, PROMPT),
    Moment(FAILED, "AssertionError: /home != /home?next=cart\n1 failed in 0.12s", CHECK),
    Moment(AGENT, "I will change the rewrite rule in nginx.conf."),
    Moment(PERSON, CORRECTION, is_correction=True),
    Moment(
        EDIT,
        '+    assert redirect("/home", query="next=cart").url == "/home?next=cart"',
        "tests/test_login.py",
    ),
    Moment(
        EDIT,
        "-    return redirect(path)\n+    return redirect(path + request.query_string())",
        "store/login.py",
    ),
    Moment(RAN, "", CHECK),
    Moment(AGENT, "The redirect dropped the query since it was built from the path alone."),
)


def a_material(**changes: Any) -> Material:
    """Return a session in which a test failed, the person corrected the agent, and the test passed."""
    material = Material(
        scope=SESSION,
        target=SESSION_ID,
        project="shop",
        moments=MOMENTS,
        session=SESSION_ID,
        began="2026-11-20T14:02:33Z",
        ended="2026-11-20T14:09:00Z",
        subjects=("Fix the login redirect",),
        changes=(
            FileChange("docs/login.md", CHANGED, 1, 0),
            FileChange("tests/test_login.py", CHANGED, 2, 0),
            FileChange("store/login.py", CHANGED, 1, 1),
        ),
        diff=DIFF,
    )
    return replace(material, **changes)


def an_entry(**changes: Any) -> dict[str, Any]:
    """Return an entry as a model answers it, good enough to become a proposal."""
    entry = {
        "type": "bug_fix",
        "title": "after_login() must pass the query string on",
        "summary": "`redirect(path)` in store/login.py drops the query string.",
        "explanation": "Build the address in `after_login()` from the path and"
        " `request.query_string()`, not from the path alone; nginx.conf is not the cause.",
        "problem": "AssertionError: /home != /home?next=cart after a login.",
        "when": "A redirect of the shop must keep its parameters.",
        "when_not": "The target has parameters of its own.",
        "tags": ["login", "redirect"],
        "category": "",
        "confidence": 4,
        "prompts": ["After signing in the parameters of the address are gone"],
        "quotes": ["AssertionError: /home != /home?next=cart 1 failed"],
    }
    return {**entry, **changes}


PARTS: dict[str, dict[str, Any]] = {
    "what": {
        "summary": "The redirect after a login keeps the query string.",
        "files": [{"path": "store/login.py", "role": "the login", "change": "keeps the query"}],
    },
    "why": {
        "problem": "The cart was empty after a login.",
        "reasons": ["after_login() dropped the query string; a rewrite rule is no cure"],
        "trade_offs": ["a longer address for a cart that stays"],
        "alternatives": ["a rewrite rule in nginx.conf"],
    },
    "patterns": {
        "patterns": [{"name": "Addresses by one function", "applicability": "all redirects"}],
        "practices": ["test a redirect with a query"],
    },
}


def stage_of(asked: str) -> str:
    """Return which stage a request is for, by the schema in it."""
    schema, _ = json.JSONDecoder().raw_decode(asked.rpartition("schema:\n")[2])
    key = next(iter(schema["properties"]))
    return {"summary": "what", "problem": "why"}.get(key, str(key))


def good_answer(stage: str, *entries: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a good model answers in a stage."""
    return {"entries": list(entries)} if stage == "entries" else PARTS[stage]


class ScriptedModel(Model):
    """A model whose answers are texts that a function makes of the stage; it counts them."""

    def __init__(self, answers: Callable[[str], str]) -> None:
        self.name = "scripted:model"
        self.has_key = False
        self.usage = Usage()
        self.asked: list[tuple[str, str, str]] = []  # stage, system, prompt with the schema
        self._answers = answers

    @classmethod
    def that_says(cls, *entries: Mapping[str, Any]) -> ScriptedModel:
        """Return a model that answers well, with these entries."""
        return cls(lambda stage: json.dumps(good_answer(stage, *entries)))

    def complete_json(
        self, system: str, prompt: str, keys: Mapping[str, Mapping[str, Any]]
    ) -> dict[str, Any]:
        """Return the answer of the script, checked as any model's answer is."""
        asked = backend.with_schema(prompt, keys)
        stage = stage_of(asked)
        self.asked.append((stage, system, asked))
        self.usage += Usage(1, (len(system) + len(asked)) // 4, 50, 0.5)
        return backend.parse_json(self._answers(stage), keys, self.name)

    @property
    def sent(self) -> int:
        """All characters that it was sent."""
        return sum(len(system) + len(asked) for _, system, asked in self.asked)
