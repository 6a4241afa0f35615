"""Twelve patterns of two tags, as a team would write them, and prompts that nobody wrote them for."""

from __future__ import annotations

import json

# name, title, text, two prompts that should find it, one that should not
RETRIES = (
    (
        "backoff",
        "Back off exponentially with jitter between retries",
        "Wait 2^n times 200 ms plus a random part before the next attempt, five at most.",
        "all our workers hammer the api again right after it comes back up",
        "how long should the client sleep between attempts",
        "the animation should ease out more slowly",
    ),
    (
        "idempotency",
        "Send an idempotency key with every POST that is retried",
        "Make a key per operation, send it as `Idempotency-Key`, keep it over retries.",
        "customers are charged twice when the payment request times out",
        "is it safe to resend this POST",
        "customers want to pay in two instalments",
    ),
    (
        "which-status",
        "Retry 429 and 5xx, never other 4xx",
        "Only errors that pass by themselves are worth another attempt.",
        "should the client try again after a 401 or a 400",
        "which http errors are worth retrying",
        "return 404 when the invoice does not exist",
    ),
    (
        "retry-after",
        "Obey Retry-After before your own delay",
        "Where the response has Retry-After, wait that long, and not the own delay.",
        "we keep getting rate limited with 429 by the provider",
        "parse the retry-after header",
        "limit the number of rows per page",
    ),
    (
        "budget",
        "Cap retries by a deadline for the whole operation",
        "Hand a deadline down the calls; retry only while there is time left.",
        "the request hangs for minutes before it finally fails with retries in every layer",
        "where do we put the timeout for the whole call chain",
        "the deadline of the project moves to friday",
    ),
    (
        "breaker",
        "Stop calling a dead service with a circuit breaker",
        "After five failures in a row fail at once for 30 s, then let one call through.",
        "one dead downstream service takes all our threads with it",
        "fail fast when the dependency is down",
        "the electrician changes the fuse in the office",
    ),
)
MIGRATIONS = (
    (
        "lock-timeout",
        "Set lock_timeout before DDL on a busy table",
        "`SET lock_timeout = '2s'` and try again beats a queue behind an ALTER TABLE.",
        "the alter table blocked every query in production",
        "add a column to the orders table without downtime",
        "lock the front door of the warehouse",
    ),
    (
        "concurrently",
        "Create indexes CONCURRENTLY and outside a transaction",
        "`CREATE INDEX CONCURRENTLY` does not block writes; it cannot be in a transaction.",
        "creating an index locks writes on the big table",
        "CREATE INDEX CONCURRENTLY cannot run inside a transaction block",
        "index the markdown files for the search",
    ),
    (
        "expand-contract",
        "Rename a column in three releases",
        "Add the new column, write both, read the new one, and only then drop the old.",
        "rename a database column while the old release is still running",
        "drop the old column from the users table",
        "rename the variable in this function",
    ),
    (
        "batches",
        "Backfill in batches with their own transactions",
        "Update a thousand rows at a time by primary key, commit, pause, go on.",
        "fill the new column for forty million existing rows",
        "the backfill update runs for hours and bloats the table",
        "bake the bread in two batches",
    ),
    (
        "not-valid",
        "Add constraints NOT VALID, then validate",
        "`ADD CONSTRAINT ... NOT VALID` is quick; `VALIDATE CONSTRAINT` blocks no writes.",
        "adding a foreign key constraint takes forever on production",
        "make the column not null without locking the table",
        "validate the email address in the signup form",
    ),
    (
        "down",
        "Write the way back of a migration, and run it in CI",
        "Each migration has a downgrade, and CI goes up, down and up again.",
        "the rollback of the last schema migration failed",
        "test that our alembic downgrade works",
        "roll back the last commit in git",
    ),
)
BY_TAG = {"http-retries": RETRIES, "database-migrations": MIGRATIONS}

# Prompts that no lesson carries, and the tag that they are for; "" for none.
HELD_OUT = (
    ("our cron job retries the webhook too aggressively", "http-retries"),
    ("make the http client retry on failures", "http-retries"),
    ("the upstream api returns 503 every now and then, what do we do", "http-retries"),
    ("add retry logic to the billing client", "http-retries"),
    ("orders show up twice after a network timeout", "http-retries"),
    ("write a migration that adds an index to events", "database-migrations"),
    ("the deploy got stuck on a schema migration waiting for a lock", "database-migrations"),
    ("split the name column into first and last name", "database-migrations"),
    ("add a unique constraint to the email column in postgres", "database-migrations"),
    ("how do we change a column type on a huge table", "database-migrations"),
    ("the button is not centered on mobile", ""),
    ("write a unit test for the date parser", ""),
    ("explain what this regular expression does", ""),
    ("update the readme with the new install steps", ""),
    ("the docker image is too large", ""),
    ("why does the typescript build fail with TS2345", ""),
)


def files_of(confidence: int = 5) -> dict[str, str]:
    """Return the lesson files of both tags by path."""
    return {
        f"backend/{tag}/{name}.md": lesson(title, [tag], text, fires_on, [silent], confidence)
        for tag, several in BY_TAG.items()
        for name, title, text, *fires_on, silent in several
    }


def lesson(
    title: str,
    tags: list[str],
    text: str = "",
    fires_on: list[str] | None = None,
    silent_on: list[str] | None = None,
    confidence: int = 5,
) -> str:
    """Return the file of a pattern."""
    keys = {"title": title, "tags": tags, "type": "code_pattern", "confidence": confidence}
    keys |= {"fires_on": fires_on or [], "silent_on": silent_on or []}
    lines = [f"{key}: {json.dumps(value, ensure_ascii=False)}" for key, value in keys.items()]
    return "\n".join(["---", *lines, "---", text or f"About {title}.", ""])


def ids(tag: str) -> list[str]:
    """Return the ids of a tag's lessons."""
    return [f"backend/{tag}/{name}" for name, *_ in BY_TAG[tag]]
