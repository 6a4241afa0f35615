"""What agents were given, and what a person teaches about it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from vault_index.edit import teach
from vault_index.errors import VaultError
from vault_index.recall import injected
from vault_index.store import injections

if TYPE_CHECKING:
    from vault_index.api import Caller
    from vault_index.vault import Vault


def list_(
    vault: Vault,
    session: str = "",
    lesson: str = "",
    only: str = "",
    since: str = "",
    only_prompts: bool = False,
    limit: int = 50,
    offset: int = 0,
) -> dict[str, Any]:
    """Return what agents got at which prompt, the latest first: `records`, `totals`, `times`, `more`.

    `session` is the beginning of an id and `lesson` a part of one; `only` is "answered" or "silent",
    `since` ISO 8601; `only_prompts` leaves out the starts of sessions. Of a record `text` is the prompt
    where a file still has it, and of a silence `near` is the lesson that came nearest to the `floor`.
    `lessons` have `score`, `outcome`, the list they were `taught` it in, and `is_taught`: whether a
    taught prompt fired them. See `injected.page`.
    """
    if only not in injected.ONLY:
        raise VaultError(f"no kind of record {only!r:.40}", "choose answered or silent")
    chosen = injected.Chosen(session, lesson, only, since, only_prompts)
    return injected.page(vault, chosen, max(1, limit), max(0, offset))


def teach_lesson(
    vault: Vault,
    caller: Caller,
    name: str,
    kind: str,
    prompt: str = "",
    session: str = "",
    key: str = "",
    undo: bool = False,
) -> dict[str, Any]:
    """Write into a lesson that it fires at a prompt, or stays out; with `undo` take that back.

    `kind` is fires_on or silent_on. The prompt is `prompt` or, of a record, that of the `session`
    with the hash `key`, as far as its text was kept. The answer: `id`, `title`, `path`, the `prompt`
    as written, `kind`, `changed`, and whether it `acts`: whether an agent would get the lesson for
    it now, or not, as taught; `silent` says why nothing comes.
    """
    if kind not in (teach.FIRES, teach.SILENT):
        raise VaultError(f"no list of prompts {kind!r:.40}", "choose fires_on or silent_on")
    entry: Any = caller.ask({"ask": "show", "with": {"name": name}})["entry"]
    mark = injected.mark_of(vault, entry["id"], session, key or _key(prompt)) if undo else None
    if undo and mark and not prompt.strip():
        prompts = (each for each in entry[kind] if _key(each) == mark["written"])
        prompt = next(prompts, "")
    prompt = prompt if prompt.strip() else injected.prompt_of(vault, session, key)
    if not prompt.strip():
        raise VaultError("the text of this prompt was not kept", "type the prompt, or words of it")
    if undo:
        moved = bool(mark and mark.get("moved"))
        change = teach.undo(vault, entry, prompt, kind, moved=moved)
    else:
        change = teach.write(vault, entry, prompt, kind)
    written = "" if undo else _key(change.prompt)
    injections.mark(
        vault.index_dir, entry["id"], session, key or _key(prompt), written, kind, change.moved
    )
    asked = {"ask": "recall", "with": {"query": change.prompt}}
    now = caller.ask(asked, settled=True)
    comes = entry["id"] in [hit["lesson_id"] for hit in now["hits"]]
    return {
        "id": entry["id"],
        "title": entry["title"],
        "path": str(change.file),
        "prompt": change.prompt,
        "kind": kind,
        "changed": change.changed,
        "acts": undo or comes is (kind == teach.FIRES),
        "silent": now["silent"],
    }


def _key(prompt: str) -> str:
    return injections.key_of(" ".join(prompt.split()))
