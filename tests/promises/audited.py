"""The features that the product promises: a row each, with a question at a door and its answer."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

from tests.support.places import REPO, TESTS

ASKED = "our build dies with heap out of memory"
HEAP_ID = "devops/ci-cd/heap"


@dataclass(frozen=True)
class Row:
    """A feature, the door at which it is tried, what is asked there, and what the answer has."""

    feature: str
    door: str
    question: str
    answer: str
    given: dict[str, Any] = field(default_factory=dict)
    code: int = 0


def typed(feature: str, line: str, answer: str, code: int = 0, stdin: str = "") -> Row:
    return Row(feature, "command", line, answer, {"stdin": stdin}, code)


def sent(feature: str, request: str, answer: str, body: Any = None, code: int = 200) -> Row:
    return Row(feature, "http", request, answer, {"json": body} if body is not None else {}, code)


def called(feature: str, tool: str, answer: str, code: int = 0, **given: Any) -> Row:
    return Row(feature, "mcp", tool, answer, given, code)


def hooked(feature: str, answer: str, **event: Any) -> Row:
    return Row(feature, "hook", "", answer, event)


COMMANDS = (
    typed("search", f"search {ASKED}", r"^\S*\s*Node runs out of memory.*\d+%|heap"),
    typed("search -n", f"search -n 1 --json {ASKED}", r'"id": ?"devops/ci-cd/heap"'),
    typed("search -n, limit", f"search -n 0 {ASKED}", "not in the range 1<=x<=1000", 2),
    typed("search --category", "search -c devops/deployment --json deploy", "deployment/vpn"),
    typed("search --category, a parent", "search -c devops --json deploy", "deployment/vpn"),
    typed("search --category, unknown", "search -c devop deploy", "did you mean|devops", 1),
    typed("search --tag", "search --tag vpn --json deploy", "deployment/vpn"),
    typed("search --tag, unknown", "search --tag vnp deploy", "vpn", 1),
    typed("search --type", "search --type project_rule --json deploy", "deployment/vpn"),
    typed("search --type, unknown", "search --type rule deploy", "project_rule", 1),
    typed("search --since", "search --since 2026-06-01 --json deploy", "deployment/vpn"),
    typed("search --until", f"search --until 2026-06-01 --json {ASKED}", r'"only": ?\{\s*"until"'),
    typed("search --since, no date", "search --since soonish deploy", "no date 'soonish'", 1),
    typed("search --min-score", f"search --min-score 99% --json {ASKED}", r'"hits": ?\[\]'),
    typed("search --explain", f"search --explain {ASKED}", "similar|cosine|words|evidence"),
    typed("search --in", 'search --in "intro to ai" --json chunk', "chunking"),
    typed("search --in, unknown", "search --in quokka chunk", "quokka", 1),
    typed("search --lesson", 'search --in "intro to ai" --lesson 3 --json passage', "Retrieval"),
    typed("search --lesson, unknown", 'search --in "intro to ai" --lesson 7 x', "0, 1, 3", 1),
    typed("search --related-to", "search --related-to vpn --json heap", HEAP_ID),
    typed("search --kind skills", "search --kind skills --json release notes", "release-notes"),
    typed(
        "search skills by category", "search --kind skills -c docs --json notes", "docs/releases"
    ),
    typed("search --all", "search --all uploader retry", "(?s)^Lessons.*Sessions"),
    typed("search for a rare word", "search --json allkeys-lru", "Redis evicts"),
    typed("search for a phrase", """search --json '"bundler asks for three"'""", HEAP_ID),
    typed("ask", "ask how long may a chunk be", "(?i)chunk"),
    typed("ask --json", f"ask --json {ASKED}", '"passages"'),
    typed("ask --in", 'ask --in "intro to ai" --json chunk', "chunking"),
    typed("ask --lesson", 'ask --in "intro to ai" --lesson 3 --json passage', "retrieval"),
    typed("ask --category", "ask -c devops --json deploy", "deployment/vpn"),
    typed("ask --session", "ask --session audit --json deploy to staging", '"passages"'),
    typed("ask --no-stream", "ask --no-stream deploy to staging hangs", "VPN"),
    typed("ask without a model, far away", "ask how do I bake rye bread", "(?i)floor|know|near"),
    typed("show", f"show {HEAP_ID}", "NODE_OPTIONS"),
    typed("show a title", 'show "Staging deploys need the VPN"', "VPN=1"),
    typed("show the end of an id", "show vpn", "VPN=1"),
    typed("show a document", "show courses/introduction-to-ai", "(?s)Welcome.*Retrieval"),
    typed("show a document by its title", 'show "Introduction to AI"', "Welcome"),
    typed("show relations", f"show {HEAP_ID} --json", r'"id": ?"devops/deployment/vpn"'),
    typed("show when a lesson was used", f"show {HEAP_ID} --json", r'"last_used": ?"20'),
    typed("show --json", f"show {HEAP_ID} --json", r'"fires_on": ?\[\s*"the bundle step'),
    typed("show a section", 'show "The dashboards want UTC"', "(?s)grafana|ops/monitoring"),
    typed("show --at", f"show --at HEAD {HEAP_ID}", "NODE_OPTIONS"),
    typed("show --at, unknown", f"show --at nowhere {HEAP_ID}", "nowhere", 1),
    typed("show, unknown", "show no-such-lesson", "no-such-lesson", 1),
    typed("list", "list", "devops/ci-cd/heap"),
    typed("list -c", "list -c devops/deployment --json", "deployment/vpn"),
    typed("list --tag", "list --tag grafana --json", "dashboards-want-utc|UTC"),
    typed("list --type", "list --type bug_fix --json", HEAP_ID),
    typed("list --since", "list --since 30d --json", r'"id": ?"data/redis#'),
    typed("list --related-to", "list --related-to vpn --json", HEAP_ID),
    typed("list --sort", "list --sort confidence -n 1 --json", HEAP_ID),
    typed("log", f"log {HEAP_ID}", "the vault"),
    typed("new", "new 'Audit of new' -c ops/new --text 'A quokka sleeps.'", "ops/new"),
    typed("add", "add --title 'Audit of add' -c ops/add -", "ops/add", stdin="A wombat digs."),
    typed("add --text", "add --title 'Audit of text' --text 'An emu runs.' -c ops/add", "ops/add"),
    typed(
        "add --tag, --type, --confidence",
        "add --title 'Audit of tags' --text 'A dingo barks.' -c ops/add --tag dog"
        " --type bug_fix --confidence 4",
        "ops/add",
    ),
    typed("add --type, unknown", "add --title T --text x --type bug", "bug_fix", 1),
    typed("add --confidence, limit", "add --title T --text x --confidence 6", "1<=x<=5", 2),
    typed(
        "add --fires-on, --silent-on, --applies-to",
        "add --title 'Audit of prompts' --text 'A galah screams.' -c ops/add"
        " --fires-on 'why is the galah loud' --silent-on 'bird song' --applies-to 'birds/**'",
        "ops/add",
    ),
    typed(
        "add --commit",
        "add --commit --title 'Audit of commit' --text 'A numbat eats termites.' -c ops/add",
        "ops/add",
    ),
    typed(
        "add refuses a secret",
        "add --title Key --text 'the key is AKIAIOSFODNN7EXAMQLE of the account'",
        "(?i)secret|key",
        1,
    ),
    typed("edit, unknown", "edit no-such-lesson", "no-such-lesson", 1),
    typed("rm, unknown", "rm --yes no-such-lesson", "no-such-lesson", 1),
    typed("move, unknown", "move no-such-lesson ops", "no-such-lesson", 1),
    typed("import, the plan", f"import {REPO / 'README.md'}", "(?i)lesson|inbox"),
    typed(
        "import --as",
        f"import --as markdown {REPO / 'README.md'} --json",
        r'"title": ?"Lessons"',
    ),
    typed(
        "import of a course, again",
        f"import {TESTS}/courses/introduction_to_ai.txt",
        r"^1 there already",
    ),
    typed("categories", "categories", r"(?s)devops.*ci-cd"),
    typed("categories tree", "categories tree --json", "devops/ci-cd"),
    typed("categories rename, the plan", "categories rename data db", "db/redis"),
    typed("categories rename, unknown", "categories rename zoo db", "zoo", 1),
    typed("categories propose", "categories propose --json", r'^\{\s*"proposals": ?\['),
    typed("recall", f"recall {ASKED}", "<lessons>"),
    typed("recall, a taught prompt", "recall the bundle step is killed", "<lessons>"),
    typed("recall, a silent prompt", "recall what is a heap data structure", "^silent: "),
    typed("recall --json", f"recall --json {ASKED}", r'"id": ?"devops/ci-cd/heap"'),
    typed(
        "recall, a lesson whose code is gone",
        "recall when is the quarterly ledger closed",
        "its code is gone",
    ),
    typed("recall names the nearest", "recall how do I bake rye bread", "(?i)floor|nothing|near"),
    typed(
        "recall --error",
        "recall --error npm run build",
        "Node runs out of memory",
        stdin="FATAL ERROR: Reached heap limit Allocation failed - JavaScript heap out of memory\n",
    ),
    typed("teach, the dry error", "teach 'a prompt' --fires no-such-lesson", "no-such-lesson", 1),
    typed("teach", "teach 'ship to staging now' --fires vpn", "(?i)fires|vpn"),
    typed("teach --not", "teach 'weather tomorrow' --not vpn", "(?i)vpn|out"),
    typed("teach --undo", "teach 'never taught this' --fires vpn --undo", "was not taught this", 1),
    typed("teach --error", "teach --error 'ssh: connect timed out' --fires vpn", "(?i)vpn"),
    typed("teach --last", "teach --last 99 --fires vpn", "(?i)prompt|last", 1),
    typed("useful", "useful vpn yes it is so", "noted"),
    typed("useful, no word", "useful vpn perhaps", "yes.no.wrong", 2),
    typed("useful, no lesson", "useful no-such-lesson yes", "no-such-lesson", 1),
    typed("useful --last", "useful --last 99 yes", "(?i)prompt 99", 1),
    typed("last", "last", "^ +Node runs out of memory in the CI build"),
    typed("last -n, limit", "last -n 101", "1<=x<=100", 2),
    typed("check", "check", r"relation: warning: it supersedes 'the old gateway'"),
    typed("check a path", f"check lessons/{HEAP_ID}.md", "^1 file checked: 0 errors"),
    typed("check --all", "check --all --json", r'"rule": ?"relation"'),
    typed("check --staged", "check --staged", "lessons/audit/staged.md:4: error: secret|secret", 1),
    typed("check --against", "check --against HEAD", r"\d+ lessons? changed, \d+ prompts tried"),
    typed("check --against, unknown", "check --against nowhere", "no commit 'nowhere'", 1),
    typed(
        "check --prompts", "check --against HEAD --prompts queries.jsonl --json", r'"prompts": ?\d'
    ),
    typed("check --format github", "check --format github --against HEAD", "checked: 0 errors"),
    typed("check --comment", "check --comment x.md", "need --against", 2),
    typed(
        "check --stale", "check --stale", "store/gone.py#retry is gone: hooks leave the lesson out"
    ),
    typed("check --confirm", "check --confirm no-such-lesson", "no-such-lesson", 1),
    typed("status", "status", r"^lately .*devops/ci-cd/heap \(20"),
    typed("status --json", "status --json", r'"most_used": ?\[\s*\[\s*"devops/ci-cd/heap"'),
    typed("status --check", "status --check --json", "no agent runs the hooks", 1),
    typed("init", "init again", "again is a vault$"),
    typed("index", "index", r"^\d+ unchanged.* embedded in"),
    typed(
        "index --no-wait", "index --no-wait", r"unchanged.* embedded in|another process is indexing"
    ),
    typed("index --publish, no address", "index --publish", "index.shared", 1),
    typed("index.shared, a secret", "config set index.shared s3://a:b@c/d", "environment", 1),
    typed("search --index, none", "search --index /nowhere/x deploy", "nothing is published", 1),
    typed("serve --index, a secret", "serve --index s3://a:b@c/d", "environment", 1),
    typed("vaults", "vaults", "ready"),
    typed("vaults --json", "vaults --json", '"state": ?"ready"'),
    typed("vaults.above, no folder", "config set vaults.above '[\"https://c/d\"]'", "clone", 1),
    typed("config", "config", "prompt_lessons"),
    typed("config show", "config show --json", '"prompt_lessons"'),
    typed("config set, unknown", "config set prompt_lesson 2", "prompt_lessons", 1),
    typed("config set, no value of it", "config set prompt_lessons many", "prompt_lessons", 1),
    typed("config set, no model", "config set learn.model claud", "no language model 'claud'", 1),
    typed("config unset", "config unset learn.model", "learn.model is not set"),
    typed("model show", "model show", "minilm"),
    typed("model", "model", "minilm"),
    typed("model fetch, again", "model fetch", "already there"),
    typed("review list", "review list", "Audit of a proposal"),
    typed("review list --json", "review list --json", '"id"'),
    typed("review, unknown", "review accept 00000000", "00000000", 1),
    typed("review reject, unknown", "review reject 00000000", "00000000", 1),
    typed(
        "propose",
        "propose --session {session}",
        "(?s)waits: Bilbies dig in the sand at night.*the session has",
        stdin=json.dumps(
            [
                {
                    "title": title,
                    "type": "bug_fix",
                    "what_to_do": "Feed `bilby_1` by day, since it digs for its food in the night.",
                    "quotes": [f"The login redirect {verb} the query"],
                }
                for title, verb in (
                    ("Bilbies dig in the sand at night", "loses"),
                    ("Quolls sleep in trees by day", "lost"),
                )
            ]
        ),
    ),
    typed("propose, no entries", "propose", "entry 1: it has no title", 1, stdin="[{}]"),
    typed(
        "propose, a text for a list",
        "propose",
        "tags is no list of texts",
        1,
        stdin='[{"title": "A", "type": "x", "what_to_do": "B", "quotes": [], "tags": "c"}]',
    ),
    typed(
        "learn --dry-run",
        "learn --session {session} --dry-run",
        "no model is asked: a rule drafts typed corrections",
    ),
    typed(
        "learn --why",
        "learn --session {session} --why",
        r"^worth learning from: `pytest tests/test_login.py` failed",
    ),
    typed(
        "learn --commit",
        "learn --commit HEAD --dry-run",
        r"^\d of 5 points, too few",
    ),
    typed(
        "learn --files",
        "learn --files store/upload.py --dry-run",
        r"^0 of 5 points, too few",
    ),
    typed("tend --list", "tend --list", r"lessons have prompts"),
    typed("tend, no model", "tend", "learn.model is not set", 1),
    typed("learn --session, unknown", "learn --session ffffffff", "ffffffff", 1),
    typed("skills build --dry-run", "skills build --dry-run", r"learned-retries"),
    typed("skills build --to", "skills build --dry-run --to claude", r"learned-retries"),
    typed("skills remove", "skills remove --from claude --json", r"^\{\}"),
    typed("skills build, unknown", "skills build no-such-tag", "no-such-tag", 1),
    typed("journal search", "journal search redirect query", "redirect"),
    typed("journal search --kind", "journal search --kind prompt redirect", "redirect"),
    typed(
        "journal search --file",
        "journal search --file store/login.py",
        r"^1\. \[bugfix\] The redirect dropped the query",
    ),
    typed("journal search -p", "journal search -p mailer uploader retry", "(?i)retries|retry"),
    typed("journal search -p all", "journal search -p all uploader retry", "(?i)retr"),
    typed("journal search, unknown project", "journal search -p maler x", "mailer", 1),
    typed("journal search --type, unknown", "journal search --type bug x", "bugfix", 1),
    typed("journal search --concept, unknown", "journal search --concept x x", "gotcha", 1),
    typed("journal search --since", "journal search --since yesterday redirect", "redirect"),
    typed("journal search --explain", "journal search --explain redirect", "redirect"),
    typed("journal timeline", "journal timeline {record}", "redirect"),
    typed("journal timeline, words of time", "journal timeline 'last tuesday'", "^> last tuesday"),
    typed("journal timeline --format", "journal timeline --format full {record}", "redirect"),
    typed("journal timeline, unknown", "journal timeline 99999999-p1", "99999999-p1", 1),
    typed("journal show", "journal show {record}", "redirect"),
    typed("journal show a session", "journal show {session}", "redirect"),
    typed("journal show, unknown", "journal show 99999999", "99999999", 1),
    typed("journal export", "journal export {session}", "redirect"),
    typed("journal sessions", "journal sessions", "(?i)redirect"),
    typed("journal sessions -p", "journal sessions -p mailer --json", '"title"'),
    typed("journal import --dry-run", "journal import --dry-run", "nothing new, 2 there already"),
    typed("journal status", "journal status", r"^.*2 sessions"),
    typed("journal forget, unknown", "journal forget --yes --session 99999999", "no session", 1),
    typed("uninstall, nothing", "uninstall gemini", "settings.json: there were no hooks"),
    typed("install, unknown", "install emacs", "claude", 2),
    typed("help", "help", "search"),
    typed("help --all", "help --all", "journal forget|uninstall"),
    typed("help of a command", "help search", "--category"),
    typed("a mistyped command", "serach x", "search", 2),
    typed("--version", "--version", r"\d+\.\d+\.\d+"),
    typed("--vault after the command", f"search --vault . --json {ASKED}", HEAP_ID),
    typed("--json after the words", f"search {ASKED} --json", HEAP_ID),
    typed("mcp --http, limits", "mcp --http --port 70000", "0<=x<=65535", 2),
    typed("serve, limits", "serve --port 70000", "0<=x<=65535", 2),
    typed("eval", "eval queries.jsonl", "(?i)recall"),
    typed("eval --json", "eval --json queries.jsonl", r'"recall@1": ?1\.0'),
    typed("eval --errors", "eval --errors failures.jsonl", r"^recall@1 +100\.0%"),
    typed("sync without a remote", "sync", "there is no remote to share the vault with", 1),
)

HIT = r'"id":"devops/ci-cd/heap",.*"title":"Node runs'
HTTP = (
    sent("query", "POST /api/query", HIT, {"prompt": ASKED}),
    sent("query by GET", f"GET /api/query?prompt={ASKED}", HIT),
    sent("a hit's passage", "POST /api/query", '"passage":"', {"prompt": ASKED}),
    sent("a hit's path", "POST /api/query", '"source_file":"lessons/', {"prompt": ASKED}),
    sent("query top_k", "POST /api/query", HIT, {"prompt": ASKED, "top_k": 1}),
    sent("query top_k, limit", "POST /api/query", "top_k", {"prompt": "x", "top_k": 0}, 422),
    sent(
        "query categories",
        "POST /api/query",
        "deployment/vpn",
        {"prompt": "deploy", "categories": ["devops/deployment"], "min_score": -1},
    ),
    sent(
        "query categories, unknown",
        "POST /api/query",
        "run it again with devops",
        {"prompt": "deploy", "categories": ["devop"]},
        422,
    ),
    sent(
        "query document, lesson",
        "POST /api/query",
        "Retrieval",
        {"prompt": "passages", "document": "intro to ai", "lesson": 3, "min_score": -1},
    ),
    sent(
        "query lesson, unknown",
        "POST /api/query",
        "0, 1, 3",
        {"prompt": "x", "document": "intro to ai", "lesson": 7},
        422,
    ),
    sent("query min_score", "POST /api/query", r'"lessons":\[\]', {"prompt": "x", "min_score": 1}),
    sent(
        "query skills",
        "POST /api/query",
        '"trigger"',
        {"prompt": "prepare release notes", "collections": ["skills"], "min_score": -1},
    ),
    sent(
        "query sessions",
        "POST /api/query",
        r'"sessions":\[\{',
        {"prompt": "retry", "collections": ["sessions"]},
    ),
    sent("query, an unknown field", "POST /api/query", "top_k", {"prompt": "x", "topk": 1}, 422),
    sent("query, an empty prompt", "POST /api/query", "prompt", {"prompt": ""}, 422),
    sent("query, no JSON", "POST /api/query", "error", None, 422),
    sent("a whole lesson", f"GET /api/lessons/{HEAP_ID}", r"(?s)NODE_OPTIONS.*two gigabytes"),
    sent("a lesson's own prompts", f"GET /api/lessons/{HEAP_ID}", "the bundle step is killed"),
    sent("a lesson, unknown", "GET /api/lessons/no/such", "error", code=404),
    sent(
        "ingest",
        "POST /api/ingest",
        '"status":"ingested"',
        {"id": "audit/ingest", "text": "A cassowary kicks.", "categories": ["audit"]},
    ),
    sent("ingest, no text", "POST /api/ingest", "text", {"id": "audit/none"}, 422),
    sent("ingest, an unknown field", "POST /api/ingest", "text", {"texts": "x"}, 422),
    sent(
        "ingest, an id that is there",
        "POST /api/ingest",
        '"status":"updated"',
        {"id": "audit/again", "text": "A lyrebird sings twice.", "categories": ["audit"]},
    ),
    sent(
        "ingest, classified",
        "POST /api/ingest",
        '"categories":',
        {"text": "The CI pipeline's runner needs a bigger heap for the frontend bundle."},
    ),
    sent(
        "ingest of a secret",
        "POST /api/ingest",
        "(?i)secret|key",
        {"id": "audit/key", "text": "use AKIAIOSFODNN7EXAMQLE for the bucket of the audit"},
        422,
    ),
    sent(
        "bulk, a bad record",
        "POST /api/ingest/bulk",
        r'"ingested":1,"errors":\[\{"index":1',
        {"lessons": [{"id": "audit/bulk", "text": "A possum climbs."}, {"text": ""}]},
    ),
    sent("bulk, nothing", "POST /api/ingest/bulk", "lessons", {}, 422),
    sent(
        "change the text",
        "PUT /api/lessons/audit/again",
        '"updated"',
        {"text": "A lyrebird imitates a chainsaw."},
    ),
    sent(
        "change title, tags, type",
        "PUT /api/lessons/audit/again",
        '"updated"',
        {"title": "Lyrebirds imitate", "tags": ["bird"], "type": "bug_fix"},
    ),
    sent("change, an unknown field", "PUT /api/lessons/audit/again", "tags", {"tag": "x"}, 422),
    sent("change, unknown", "PUT /api/lessons/no/such", "error", {"text": "x"}, 404),
    sent("delete, unknown", "DELETE /api/lessons/no/such", "error", code=404),
    sent("ask", "POST /api/ask", '"passages":', {"query": ASKED}),
    sent(
        "ask session_id",
        "POST /api/ask",
        '"session_id":"mine"',
        {"query": "deploy", "session_id": "mine"},
    ),
    sent(
        "ask document, lesson",
        "POST /api/ask",
        "retrieval",
        {"query": "passages", "document": "intro to ai", "lesson": 3},
    ),
    sent(
        "ask category", "POST /api/ask", "deployment/vpn", {"query": "deploy", "category": "devops"}
    ),
    sent("ask, an unknown field", "POST /api/ask", "query", {"question": "x"}, 422),
    sent("courses", "GET /api/courses", r'"total_courses":1.*"Introduction to AI"'),
    sent("categories", "GET /api/categories", "devops"),
    sent("health", "GET /api/health", '"status":"(ok|degraded)"'),
    sent("journal search", "GET /api/journal/search?query=redirect", "redirect"),
    sent(
        "journal search, unknown type",
        "GET /api/journal/search?query=x&type=bug",
        "bugfix",
        code=422,
    ),
    sent(
        "journal search, unknown project",
        "GET /api/journal/search?query=x&project=maler",
        "mailer",
        code=422,
    ),
    sent("journal timeline", "GET /api/journal/timeline?anchor={record}", "redirect"),
    sent(
        "journal timeline, unknown",
        "GET /api/journal/timeline?anchor=99999999-p1",
        "error",
        code=404,
    ),
    sent("journal sessions", "GET /api/journal/sessions?project=mailer", '"title":'),
    sent("openapi", "GET /openapi.json", "/api/ingest/bulk"),
    sent("page: search", "GET /", "<html"),
    sent("page: hits", f"GET /page/search?q={ASKED}", "would be injected"),
    sent("page: hits of a category", "GET /page/search?q=deploy&category=devops/deployment", "VPN"),
    sent("page: relations", "GET /page/lesson/near?id=devops/deployment/vpn", "Prerequisite of"),
    sent(
        "page: when a lesson was used",
        f"GET /page/private/lesson/past?id={HEAP_ID}",
        r"(?s)last <time datetime=\"\d{4}-\d\d-\d\d.*See when",
    ),
    sent("page: the tree", "GET /lessons", "devops"),
    sent("page: a lesson", f"GET /lesson/{HEAP_ID}", "Node runs out of memory"),
    sent("page: a lesson, unknown", "GET /lesson/no/such", "No such lesson", code=404),
    sent("page: ask", "GET /ask", "<html"),
    sent("page: suggested questions", "GET /page/ask/suggested", "<button"),
    sent("page: vault", "GET /vault", "<html"),
    sent("page: overview", "GET /page/vault/overview", "(?i)lesson"),
    sent("page: to do", "GET /page/private/home", "Audit of a proposal"),
    sent("page: activity", "GET /activity", "<html"),
    sent("page: prompts", "GET /page/private/activity/list", "Node runs out of memory"),
    sent("page: sessions", "GET /activity/sessions", "<html"),
    sent("page: a day of sessions", "GET /page/private/journal/day", r"prompts?,"),
    sent("an unknown route", "GET /api/nothing", "error", code=404),
    sent("a write without the token", "!POST /api/ingest", "token", {"text": "x"}, 401),
    sent("the journal without the token", "!GET /api/journal/sessions", "token", code=401),
    sent("a query without the token", "!POST /api/query", HIT, {"prompt": ASKED}),
)

MCP = (
    called("learn_search", "learn_search", r"(?s)<lessons>.*id: devops/ci-cd/heap", query=ASKED),
    called("learn_search type", "learn_search", "vpn", query="deploy", type="project_rule"),
    called("learn_search type, unknown", "learn_search", "project_rule", 1, query="x", type="rule"),
    called("learn_search category", "learn_search", "vpn", query="deploy", category="devops"),
    called(
        "learn_search category, unknown", "learn_search", "devops", 1, query="x", category="devop"
    ),
    called("learn_search min_confidence", "learn_search", "heap", query=ASKED, min_confidence=5),
    called(
        "learn_search min_confidence, limit",
        "learn_search",
        "min_confidence",
        1,
        query="x",
        min_confidence=6,
    ),
    called("learn_search limit", "learn_search", "cursor=", query=ASKED, limit=1),
    called(
        "learn_search document, lesson",
        "learn_search",
        "(?i)retrieval",
        query="passages",
        document="intro to ai",
        lesson=3,
    ),
    called(
        "learn_search lesson, unknown",
        "learn_search",
        "0, 1, 3",
        1,
        query="x",
        document="intro to ai",
        lesson=7,
    ),
    called(
        "learn_search related_to",
        "learn_search",
        "devops/deployment/vpn",
        query="deploy",
        related_to=HEAP_ID,
    ),
    called("learn_search project", "learn_search", "maler|mailer", 1, query="x", project="maler"),
    called("learn_search cursor, wrong", "learn_search", "cursor", 1, query="x", cursor="zzz"),
    called("learn_search, unknown field", "learn_search", "category", 1, query="x", categories="y"),
    called("learn_get", "learn_get", "two gigabytes", id=HEAP_ID),
    called("learn_get a record", "learn_get", "redirect", id="{record}"),
    called("learn_get, unknown", "learn_get", "no-such-lesson", id="no-such-lesson"),
    called("learn_status", "learn_status", "(?i)bug_fix|lessons"),
    called("useful", "useful", "Noted", id=HEAP_ID, word="yes", why="it was so"),
    called("useful, no lesson", "useful", "no-such-lesson", 1, id="no-such-lesson", word="no"),
    called("useful, no word", "useful", "(?i)word", 1, id=HEAP_ID, word="perhaps"),
    called(
        "learn_trigger commits",
        "learn_trigger",
        r"^No lesson was proposed \(.*(points of 5|failed)\)",
        scope="commit",
        target="HEAD",
    ),
    called(
        "learn_trigger session",
        "learn_trigger",
        r"^No lesson was proposed \((nothing new|learned already)",
        scope="session",
        target="{session}",
    ),
    called(
        "learn_trigger requested",
        "learn_trigger",
        "not worth it",
        scope="commit",
        target="HEAD",
        requested=False,
    ),
    called(
        "propose",
        "propose",
        "(?s)Data to judge.*waits: Bandicoots dig holes in the lawn",
        session="{session}",
        entries=[
            {
                "title": "Bandicoots dig holes in the lawn",
                "type": "bug_fix",
                "what_to_do": "Feed `bandicoot_1` by day, since it digs holes in the night.",
                "quotes": ["The login redirect loses the query"],
                "category": "ops",
            }
        ],
    ),
    called("propose, nothing", "propose", "(?s)Waiting: .*Categories, ", session="{session}"),
    called(
        "propose, no text", "propose", "what_to_do: field required", 1, entries=[{"title": "T"}]
    ),
    called("learn_material", "learn_material", "redirect", session="{session}"),
    called("search_journal", "search_journal", "redirect", query="login redirect"),
    called("search_journal, the latest", "search_journal", "redirect"),
    called(
        "search_journal kind",
        "search_journal",
        r"(?s)\A(?!.*\[prompt\]).*\[bugfix\] The redirect dropped the query",
        query="redirect",
        kind="observation",
    ),
    called("search_journal type, unknown", "search_journal", "bugfix", 1, query="x", type="bug"),
    called(
        "search_journal concept, unknown", "search_journal", "gotcha", 1, query="x", concept="x"
    ),
    called("search_journal file", "search_journal", "login", file="store/login.py"),
    called("search_journal around", "search_journal", "redirect", around="{record}"),
    called(
        "search_journal around, unknown", "search_journal", "99999999-p1", 1, around="99999999-p1"
    ),
    called("search_journal project", "search_journal", "(?i)retr", query="retry", project="mailer"),
    called(
        "search_journal project all", "search_journal", "(?i)retr", query="retry", project="all"
    ),
    called(
        "search_journal since, limit",
        "search_journal",
        "redirect",
        query="redirect",
        since="30d",
        limit=1,
    ),
    called("an unknown tool", "learn_serach", "learn_serach", 1),
)

HOOKS = (
    hooked(
        "a prompt gets its lesson",
        "Node runs out",
        hook_event_name="UserPromptSubmit",
        prompt=ASKED,
    ),
    hooked(
        "a taught prompt",
        "Node runs out",
        hook_event_name="UserPromptSubmit",
        prompt="the bundle step is killed",
    ),
    hooked(
        "a silent prompt",
        "^$",
        hook_event_name="UserPromptSubmit",
        prompt="what is a heap data structure",
    ),
    hooked("a prompt without a lesson", "^$", hook_event_name="UserPromptSubmit", prompt="thanks"),
    hooked("a prompt typed by hand", "Node runs out", prompt=ASKED),
    hooked(
        "the start of a session",
        "Staging deploys",
        hook_event_name="SessionStart",
        source="startup",
    ),
    hooked("an unknown event", "^$", hook_event_name="Nothing"),
)
