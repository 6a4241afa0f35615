"""The page of the vault in numbers: what it holds, what is used, what needs a look.

Lessons are counted for anybody. Texts that agents received and the state of this machine are private.
"""

from __future__ import annotations

from fastapi import APIRouter
from fastapi.responses import HTMLResponse

from vault_index import api
from vault_index.entrypoints import doctor
from vault_index.entrypoints.web.render import fragment, page
from vault_index.entrypoints.web.vault_client import Client
from vault_index.entrypoints.words import status
from vault_index.store import moments
from vault_index.vault import open_vault

PRIVATE = "/page/private/vault"
MAX_ROWS = 200  # of a table; the line below it says how many more there are
LABEL = 11  # columns that a line of `lessons status` begins with
HEALTH = ("git", "embedder", "index", "floor", "also", "learning", "journal", "hooks", "state")

routes = APIRouter(include_in_schema=False)


@routes.get("/vault")
def vault() -> HTMLResponse:
    """Show the page."""
    return page("vault.html", at="/vault", title="Vault")


@routes.get("/page/vault/overview")
def overview(client: Client) -> HTMLResponse:
    """Show the vault in numbers."""
    numbers = client.ask(api.document.overview())
    health = client.ask(api.search.health())
    return fragment(
        "vault_overview.html",
        **numbers,
        degraded=moments.local(health.degraded_since),
        missing=client.shown_error(health.text_only),
        shown_categories=numbers["categories"][:MAX_ROWS],
        most=max((each["lessons"] for each in numbers["categories"]), default=1),
    )


@routes.get(f"{PRIVATE}/state")
def state(client: Client) -> HTMLResponse:
    """Show what agents used, and the health of the vault on this machine."""
    answer, notes = client.look(api.state.report())
    vault = open_vault(client.root)
    answer |= doctor.state(vault)
    troubles = doctor.examine(str(client.root), whole=False)
    lines = [(line[:LABEL].strip(), client.shown(line[LABEL:])) for line in status.lines(answer)]
    health = [line for line in lines if line[0] in HEALTH]
    return fragment(
        "vault_state.html",
        used=answer["injections"],
        proposals=answer["proposals"],
        health=[*health, ("watcher", client.shown(status.watcher_line(answer["watcher"])))],
        problems=[(each.about, client.shown(f"{each.what}: {each.fix}")) for each in troubles],
        settings=[text for label, text in lines if label == "settings"],
        notes=notes,
    )


@routes.get(f"{PRIVATE}/stale")
def stale(client: Client) -> HTMLResponse:
    """Show which lessons should be looked at again, and why."""
    answer, notes = client.look(api.injection.stale_lessons())
    return fragment("vault_stale.html", **answer, notes=notes, most=MAX_ROWS)


@routes.get(f"{PRIVATE}/check")
def check(client: Client) -> HTMLResponse:
    """Check all files of the vault."""
    (findings, files), notes = client.look(api.share.check_files())
    findings = sorted(findings, key=lambda each: each.severity)  # errors first
    values = {"findings": findings, "files": files, "notes": notes}
    return fragment("vault_check.html", **values, most=MAX_ROWS)
