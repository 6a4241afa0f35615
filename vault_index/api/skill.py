"""Skills that are built of lessons: how near each is, building them, whether they are behind."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vault_index import api
from vault_index.api.question import Caller, command, question
from vault_index.learn.skills import build, cluster, deploy

if TYPE_CHECKING:
    from vault_index.check.finding import Finding
    from vault_index.vault import Vault


@question
def candidates(vault: Vault) -> dict[str, Any]:
    """List the `candidates`, a tag each, the nearest to a skill first: see `Cluster.as_json`.

    `built` says of each whether there is a skill of it.
    """
    built = build.existing(vault)
    listed = cluster.collect(vault, built)
    return {"candidates": [{**each.as_json(), "built": each.tag in built} for each in listed]}


@question
def compare(vault: Vault) -> tuple[Finding, ...]:
    """Return the findings on skills that are behind their lessons, or were changed by hand."""
    return tuple(build.findings(vault))


@question
def rate(vault: Vault, tags: Sequence[str] = ()) -> dict[str, Any]:
    """Return for `skills` that were built, or those of these tags, which of their prompts do right."""
    return {"skills": build.rates(vault, tags)}


@command
def build_ready(
    vault: Vault,
    caller: Caller,
    tags: Sequence[str] = (),
    dry_run: bool = False,
    force: bool = False,
) -> dict[str, Any]:
    """Build the skills that are ready, or those of these tags: `skills` as `Built` has them.

    Those that were written have `triggers`, searched in the index with them. `failed` is how many
    could not be built.
    """
    caller.index(vault)
    done = build.build(vault, tags, dry_run=dry_run, force=force)
    listed = [each.as_json() for each in done]
    written = [each.tag for each in done if each.state in build.WRITTEN]
    if written and not dry_run:
        caller.index(vault)
        rated = caller.ask(api.skill.rate(tags=written), settled=True)["skills"]
        rates = {each["tag"]: each for each in rated}
        for each in listed:
            if each["tag"] in rates:
                each["triggers"] = rates[each["tag"]]
    failed = sum(each.state == build.FAILED for each in done)
    return {"skills": listed, "failed": failed, "dry_run": dry_run}


@command
def deploy_built(vault: Vault, caller: Caller, project: str = "") -> dict[str, str]:
    """Copy the built skills to Claude Code, the user's or a project's: the state by folder."""
    del caller
    return deploy.copy(vault, deploy.folder_for(Path(project) if project else None))


@command
def withdraw_built(vault: Vault, caller: Caller, project: str = "") -> dict[str, str]:
    """Remove the copies that `deploy_built` made: the state by folder."""
    del vault, caller
    return deploy.remove(deploy.folder_for(Path(project) if project else None))
