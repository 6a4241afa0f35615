"""Generic entries are dropped, specific ones are kept: a table of twenty of each."""

from __future__ import annotations

from vault_index.learn import evidence

GENERIC = [
    "Write tests before you change the code. Tests catch regressions early and document the "
    "behaviour.",
    "Handle errors properly. Always catch exceptions and log them with enough context to debug.",
    "Follow best practices when you design an API. Use meaningful names and keep functions small.",
    "Understand the codebase before making changes. Read the existing code and follow its "
    "conventions.",
    "Validate user input. Never trust data that comes from outside the system.",
    "Keep functions short and focused. Each function should have a single responsibility.",
    "Use version control and commit often. Small commits are easier to review.",
    "Avoid code duplication. Extract common logic into helper functions so that it is reusable.",
    "Use `try`/`except` around code that may fail, and raise an `Exception` with a clear message.",
    "Run the tests after each change. If a test fails, find the root cause before you go on.",
    "Document your code. A good `README` helps new developers to get started quickly.",
    "Use async functions for I/O. They improve performance and make the application scalable.",
    "Configuration belongs in configuration files. Do not hard-code values such as a URL in "
    "the code.",
    "Log errors at the appropriate level so that problems in production can be debugged.",
    "Refactor regularly to reduce technical debt and keep the code base maintainable.",
    "Pin the versions of dependencies to make builds reproducible and avoid surprises.",
    "Use descriptive variable names. Names such as `x` or `data` say nothing to the reader.",
    "Check edge cases: empty lists, None values and very large inputs should be handled.",
    "Break large tasks into smaller steps, and verify each of them before you continue.",
    "When debugging, reproduce the problem first, then narrow it down systematically.",
]
SPECIFIC = [
    "Raise the heap in the frontend build: `NODE_OPTIONS=--max-old-space-size=4096`, or "
    "webpack dies with ENOMEM.",
    "`redirect(path)` in store/login.py drops the query string; build it from `path + query`.",
    "The uploader retries five times with a fixed pause of 2 seconds: the S3 gateway refuses "
    "bursts.",
    "LanceDB 0.40 keeps two file descriptors open after each `optimize()`: reopen the table "
    "now and then.",
    "Never deploy on a Friday after 15:00: the signing server `sign01` is down until Monday.",
    'pytest-asyncio 0.23 needs `loop_scope="session"` on the fixture `db_pool`, else it '
    "closes too early.",
    "Migrations run with `SET lock_timeout = '2s'`, because `ALTER TABLE orders` waits "
    "behind the nightly report.",
    "Claude Code ignores `cwd` in a plugin's .mcp.json, so the server finds its folder by "
    "CLAUDE_PROJECT_DIR.",
    "The flag `--no-verify` is forbidden here; the hook in .githooks/pre-commit regenerates "
    "`schema.sql`.",
    "`git stash` in the release script loses the generated CHANGELOG.md; use a worktree in "
    "build/release.",
    "Redis returns WRONGTYPE when `cart:{id}` was written by the old worker as a hash: "
    "delete it in v2_cleanup.",
    "Dates from the ERP export are in Europe/Vienna without a zone; parse_erp_date() adds it.",
    "The mock of `PaymentGateway` must return `pending` first, or the retry path of "
    "`charge_order` is not run.",
    "On macOS `renamex_np` fails with ENOTSUP on FAT volumes, so move_file() falls back to "
    "link and unlink.",
    "GitHub Actions caches `~/.cache/pip` by the hash of pyproject.toml; a change of extras "
    "needs key v3.",
    "Use `select_for_update(skip_locked=True)` in jobs/queue.py: two workers took the same "
    "job twice.",
    "Tailwind 4 reads no tailwind.config.js; put the colours into `@theme` in app.css.",
    "The watcher must close the socket before `os.fork()`: the child kept port 7731 open and "
    "serve failed.",
    "In `tests/support/commands.py` a fork of a warm process runs `lessons`; set PATH to "
    "force a real start.",
    "Postgres 16 plans `IN (subquery)` over `events` badly; the report uses a CTE and takes "
    "300 ms, not 40 s.",
]


def rates(generic: list[str], some_specific: list[str]) -> tuple[int, int]:
    """Return how many generic texts are dropped, and how many specific ones are kept."""
    dropped = sum(evidence.is_generic(text) for text in generic)
    return dropped, sum(not evidence.is_generic(text) for text in some_specific)


def test_the_rule_on_the_tables_it_was_fitted_to() -> None:
    assert rates(GENERIC, SPECIFIC) == (19, 20)  # descriptive names: `x` and `data` are two names


def test_words_of_the_project_count() -> None:
    text = "The ledger rounds each posting before the settlement, so that Postings match the statement."
    assert evidence.points(text, {"ledger", "posting", "settlement"}) > evidence.points(text) + 1


PLAIN_RULES = [  # what a person said, and what a lesson makes of it
    ("Fix the test, not the code\n\nIn the reset tests the code is right; expectations are outdated.",
     "fix the test, the code is right"),
    ("Commit only what works\n\nEach commit holds working code, none a broken state.",
     "keep each commit with working code please, no micro-commits of a broken state"),
    ("Where a symptom shows is not its cause\n\nThe stop hook shows it and does not cause it.",
     "we see it on the stop hook, it doesn't mean the stop hook caused it"),
]  # fmt: skip


def test_a_plain_rule_is_particular_by_what_the_person_said() -> None:
    for text, quote in PLAIN_RULES:
        assert evidence.is_generic(text) or "stop hook" in text
        assert not evidence.is_generic(text, (), [quote])
    elsewhere = ["please push the branch of the mobile team to staging"]
    dropped = sum(evidence.is_generic(text, (), elsewhere) for text in GENERIC)
    assert dropped >= 16
