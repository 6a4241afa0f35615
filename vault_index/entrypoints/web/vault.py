"""Vault: whether it is well, what it holds, and how it is set.

Lessons are counted for anybody. Texts that agents received and the state of this machine are private.
"""

from __future__ import annotations

from fastapi import APIRouter
from fastapi.responses import HTMLResponse

from vault_index import api
from vault_index.entrypoints import doctor
from vault_index.entrypoints.web.render import fragment, page
from vault_index.entrypoints.web.vault_client import Client
from vault_index.entrypoints.wording import status
from vault_index.vault import open_vault

PRIVATE = "/page/private/vault"
MAX_ROWS = 200  # of a table; the line below it says how many more there are
LABEL = 11  # columns that a line of `lessons status` begins with
HEALTH = "git embedder index floor agents also learning journal hooks watcher state".split()

routes = APIRouter(include_in_schema=False)


@routes.get("/vault")
def vault() -> HTMLResponse:
    """Show the page."""
    return page("vault.html", at="/vault", title="Vault")


@routes.get("/page/vault/overview")
def overview(client: Client) -> HTMLResponse:
    """Show the vault in numbers."""
    overview = client.ask(api.document.overview())
    health = client.ask(api.search.health())
    missing = client.shown_error(health.searched.text_only)
    degraded = {"degraded": health.degraded_since, "missing": missing, "lacking": health.lacking}
    courses = client.ask(api.document.courses())
    return fragment("vault_overview.html", overview=overview, courses=courses, **degraded)


@routes.get(f"{PRIVATE}/state")
def state(client: Client) -> HTMLResponse:
    """Show what agents used, and the health of the vault on this machine."""
    answer, notes = client.look(api.state.report())
    vault = open_vault(client.root)
    status_lines = status.lines(answer, doctor.watcher(vault), doctor.hooks(vault))
    troubles = doctor.examine(str(client.root), whole=False)
    lines = [(line[:LABEL].strip(), client.shown(line[LABEL:])) for line in status_lines]
    return fragment(
        "vault_state.html",
        used=answer.injections,
        health=[line for line in lines if line[0] in HEALTH],
        problems=[
            (each.about, client.shown(each.what), client.shown(each.fix)) for each in troubles
        ],
        settings=[text for label, text in lines if label == "settings"],
        notes=notes,
    )


@routes.post(f"{PRIVATE}/check")
def check(client: Client) -> HTMLResponse:
    """Check all files of the vault, and which lessons should be looked at again."""
    (findings, files), notes = client.look(api.share.check_files())
    stale, more = client.look(api.injection.stale_lessons())
    findings = sorted(findings, key=lambda each: each.severity)  # errors first
    values = {"findings": findings, "files": files, "notes": [*notes, *more], "stale": stale}
    return fragment("vault_check.html", **values, most=MAX_ROWS)
