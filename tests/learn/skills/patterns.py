"""Twelve patterns of two tags, as a team would write them, and prompts that nobody wrote them for."""

from __future__ import annotations

import json
from typing import NamedTuple

from vault_index.lesson.passages import Parts, text_of


class Said(NamedTuple):
    """A lesson before it is a file."""

    name: str
    title: str
    parts: Parts
    fires_on: tuple[str, ...]
    silent_on: tuple[str, ...]


RETRIES = (
    Said(
        "backoff",
        "Back off exponentially with jitter between retries",
        Parts(
            summary="Wait 2^n times 200 ms plus a random part before the next attempt, five at most.",
            explanation="All clients that lost the server at one moment come back at one moment"
            " otherwise.\n\n```python\ndelay = min(30, 0.2 * 2**attempt) * random.uniform(0.5, 1)\n"
            "time.sleep(delay)\n```",
            problem="After an outage the service fell over again: every client retried at once.",
            when="A client calls a server that many other clients call.",
            when_not="A person waits for the answer: fail at once and let them decide.",
            pro=("the server recovers",),
            con=("the last attempt comes late",),
            related=(("related", "Stop calling a dead service with a circuit breaker"),),
        ),
        (
            "all our workers hammer the api again right after it comes back up",
            "how long should the client sleep between attempts",
        ),
        ("the animation should ease out more slowly",),
    ),
    Said(
        "idempotency",
        "Send an idempotency key with every POST that is retried",
        Parts(
            summary="Make a key per operation, send it as `Idempotency-Key`, keep it over retries.",
            explanation="```python\nkey = str(uuid4())  # once, outside of the loop\n"
            'client.post(url, json=order, headers={"Idempotency-Key": key})\n```',
            problem="A time-out hid that the order was taken, and the retry ordered it twice.",
            when="A request changes something and may be sent again.",
            when_not="GET, PUT and DELETE are idempotent by themselves.",
        ),
        (
            "customers are charged twice when the payment request times out",
            "is it safe to resend this POST",
        ),
        ("customers want to pay in two instalments",),
    ),
    Said(
        "which-status",
        "Retry 429 and 5xx, never other 4xx",
        Parts(
            summary="Only errors that pass by themselves are worth another attempt.",
            explanation="Take 408, 425, 429, 500, 502, 503 and 504 as retryable; the rest are bugs.",
            problem="A wrong token was sent forty times and the account was locked.",
            when="Code decides by the status of a response whether to try again.",
            when_not="The server documents other rules.",
        ),
        (
            "should the client try again after a 401 or a 400",
            "which http errors are worth retrying",
        ),
        ("return 404 when the invoice does not exist",),
    ),
    Said(
        "retry-after",
        "Obey Retry-After before your own delay",
        Parts(
            summary="Where the response has Retry-After, wait that long, and not the own delay.",
            explanation="It is seconds or a date. Cap it, as a server may say a day.",
            problem="We were banned by a provider because we asked again during its pause.",
            when="The response is 429 or 503 and has the header.",
        ),
        ("we keep getting rate limited with 429 by the provider", "parse the retry-after header"),
        ("limit the number of rows per page",),
    ),
    Said(
        "budget",
        "Cap retries by a deadline for the whole operation",
        Parts(
            summary="Hand a deadline down the calls; retry only while there is time left.",
            explanation="Three layers with three attempts each are 27 calls and minutes of waiting.",
            problem="A page took four minutes to fail, as each layer retried the one below.",
            when="Several layers of a call may retry.",
            con=("every signature takes a deadline",),
        ),
        (
            "the request hangs for minutes before it finally fails with retries in every layer",
            "where do we put the timeout for the whole call chain",
        ),
        ("the deadline of the project moves to friday",),
    ),
    Said(
        "breaker",
        "Stop calling a dead service with a circuit breaker",
        Parts(
            summary="After five failures in a row fail at once for 30 s, then let one call through.",
            problem="Threads waited for a dead dependency until none was left for other work.",
            when="A dependency may be away for minutes.",
            when_not="There is a queue in between already.",
        ),
        (
            "one dead downstream service takes all our threads with it",
            "fail fast when the dependency is down",
        ),
        ("the electrician changes the fuse in the office",),
    ),
)
MIGRATIONS = (
    Said(
        "lock-timeout",
        "Set lock_timeout before DDL on a busy table",
        Parts(
            summary="`SET lock_timeout = '2s'` and try again beats a queue behind an ALTER TABLE.",
            problem="An ALTER TABLE waited for a long query, and every query waited behind it.",
            when="A migration changes a table that is in use.",
        ),
        (
            "the alter table blocked every query in production",
            "add a column to the orders table without downtime",
        ),
        ("lock the front door of the warehouse",),
    ),
    Said(
        "concurrently",
        "Create indexes CONCURRENTLY and outside a transaction",
        Parts(
            summary="`CREATE INDEX CONCURRENTLY` does not block writes; it cannot be in a transaction.",
            explanation="A failed one leaves an INVALID index: drop it before the next attempt.\n\n"
            "```sql\nCREATE INDEX CONCURRENTLY orders_by_day ON orders (day);\n```",
            problem="Writes stood still for twenty minutes while an index was built.",
            when="The table has more than some thousand rows.",
            when_not="The table is new in the same migration.",
        ),
        (
            "creating an index locks writes on the big table",
            "CREATE INDEX CONCURRENTLY cannot run inside a transaction block",
        ),
        ("index the markdown files for the search",),
    ),
    Said(
        "expand-contract",
        "Rename a column in three releases",
        Parts(
            summary="Add the new column, write both, read the new one, and only then drop the old.",
            problem="The old release crashed while the new one was rolled out.",
            when="Two releases run side by side during a deploy.",
            con=("it takes three releases",),
        ),
        (
            "rename a database column while the old release is still running",
            "drop the old column from the users table",
        ),
        ("rename the variable in this function",),
    ),
    Said(
        "batches",
        "Backfill in batches with their own transactions",
        Parts(
            summary="Update a thousand rows at a time by primary key, commit, pause, go on.",
            problem="One UPDATE over forty million rows filled the disk with dead rows.",
            when="A migration fills a column of a large table.",
        ),
        (
            "fill the new column for forty million existing rows",
            "the backfill update runs for hours and bloats the table",
        ),
        ("bake the bread in two batches",),
    ),
    Said(
        "not-valid",
        "Add constraints NOT VALID, then validate",
        Parts(
            summary="`ADD CONSTRAINT ... NOT VALID` is quick; `VALIDATE CONSTRAINT` blocks no writes.",
            problem="Adding a foreign key scanned the table under an exclusive lock.",
            when="A constraint is added to a table with rows.",
        ),
        (
            "adding a foreign key constraint takes forever on production",
            "make the column not null without locking the table",
        ),
        ("validate the email address in the signup form",),
    ),
    Said(
        "down",
        "Write the way back of a migration, and run it in CI",
        Parts(
            summary="Each migration has a downgrade, and CI goes up, down and up again.",
            problem="A rollback failed at night, since the downgrade had never been run.",
            when="Migrations are applied by the deploy.",
            when_not="Data is dropped: say so in the downgrade and raise.",
        ),
        (
            "the rollback of the last schema migration failed",
            "test that our alembic downgrade works",
        ),
        ("roll back the last commit in git",),
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
        f"backend/{tag}/{said.name}.md": lesson(said, tag, confidence)
        for tag, several in BY_TAG.items()
        for said in several
    }


def lesson(said: Said, tag: str, confidence: int = 5) -> str:
    """Return the file of a lesson."""
    return (
        f"---\ntitle: {json.dumps(said.title)}\ntags: [{tag}]\ntype: code_pattern\n"
        f"confidence: {confidence}\nfires_on: {json.dumps(said.fires_on)}\n"
        f"silent_on: {json.dumps(said.silent_on)}\n---\n{text_of(said.parts)}\n"
    )


def ids(tag: str) -> list[str]:
    """Return the ids of a tag's lessons."""
    return [f"backend/{tag}/{said.name}" for said in BY_TAG[tag]]
