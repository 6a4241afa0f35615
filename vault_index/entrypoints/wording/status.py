"""The state of a vault, of its watcher and of its settings in words."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vault_index import features
from vault_index.retrieval.hit import percent_of
from vault_index.store import times
from vault_index.text.words import ago, count

if TYPE_CHECKING:
    from vault_index.config import Setting
    from vault_index.entrypoints.doctor import Hooks
    from vault_index.git import Worktree
    from vault_index.share import packages
    from vault_index.status import IndexState, Report
    from vault_index.store.injections import Summary, Week

MAX_NAMES = 5  # of settings, in a line
MAX_FOLDERS = 3  # that no vault takes, in a line


def lines(state: Report, watcher: Mapping[str, Any] | None, hooks: Hooks) -> Iterator[str]:
    """Yield the state of a vault for people, a line each."""
    yield f"vault      {state.vault}"
    yield f"git        {_repository(state.git)}"
    yield f"embedder   {state.embedder}"
    yield from _index(state.index, state.lessons or 0)
    for what in state.state:
        yield f"state      {what}"
    yield f"settings   {_changed(state.settings)}"
    if state.categories:
        unfiled = state.unfiled and count(state.unfiled, "lesson")
        proposed = f"; in none: {unfiled}, see `lessons categories propose`" if unfiled else ""
        yield f"categories {len(state.categories)}{proposed}"
    yield from _used(state.injections)
    for feature, part in zip(features.with_status(), state.parts, strict=True):
        yield from feature.status_lines(part)
    places = ", ".join(hooks.installed) or "not installed: run `lessons install claude`"
    yield f"hooks      {places}"
    yield f"watcher    {watcher_line(watcher)}"


def _repository(repository: Worktree | None) -> str:
    if not repository:
        return "not a repository: lessons have no author and no date"
    if repository.error:
        return repository.error
    changed = repository.uncommitted
    dirty = f", {count(changed, 'file')} not committed" if changed else ""
    head = f" at {repository.head}" if repository.head else ", no commit yet"
    return f"{repository.branch}{head}{dirty}"


def _index(index: IndexState, lessons: int) -> Iterator[str]:
    if index.error:
        yield f"index      {index.error}"
        return
    held = f"{count(lessons, 'lesson')} in {count(index.files, 'file')}"
    size, age = f"{index.bytes / 1e6:.1f} MB", ago(index.age_seconds)
    yield f"index      {held}, {size}, written {age}"
    if index.lacking:
        of = f"{index.lacking:,} of {count(index.files, 'file')}"
        yield f"vectors    still to be made for {of}; words find them meanwhile"
    yield f"floor      {_floors(index)}"


def _floors(index: IndexState) -> str:
    whole, line = index.floor, index.line_floor
    if whole is None or line is None:
        return "none"
    floors = f"{percent_of(whole)}%" + (f", lines {percent_of(line)}%" if line < whole else "")
    if index.waits_for:
        named = f"those of {index.waits_for} are measured: `lessons index` does it"
        return f"{floors}, by words alone until {named}"
    return f"{floors}, by words alone" if index.by_words else floors


def _used(injected: Summary) -> Iterator[str]:
    if line := _asked(*injected.weeks[:2]):
        yield f"agents     {line}"
    if injected.missed:
        yield f"missed     {count(injected.missed, 'answer')}, at prompts or starts of sessions"
    if failures := injected.failures:
        answered, again = injected.failures_answered, injected.came_again
        yield f"failures   {count(failures, 'failed command')}, {answered} answered; {again} came again"
    if not injected.prompts:
        yield "prompts    none searched for yet"
        return
    took = ""
    if injected.p50_ms is not None and injected.p90_ms is not None:
        took = f"; p50 {injected.p50_ms:.0f} ms, p90 {injected.p90_ms:.0f} ms"
    searched = f"{injected.prompts} searched for since {injected.since}"
    yield f"prompts    {searched}, {injected.answered} answered{took}"
    for lesson_id, uses in injected.most_used[:3]:
        yield f"{uses:>8}x  {lesson_id}"
    if injected.last_used:
        lately = (f"{id} ({times.local(when)[:10]})" for id, when in injected.last_used[:3])
        yield f"lately     {', '.join(lately)}"
    if injected.never_used:
        some = ", ".join(injected.some_never_used[:3])
        yield f"never used {count(injected.never_used, 'lesson')}, such as {some}"


def above_command(around: Sequence[str], named: Sequence[str] = ()) -> str:
    """Return the command by which prompts search vaults as well, besides those that are named."""
    value = json.dumps([*around, *named], ensure_ascii=False)
    return f"lessons config set vaults.above {shlex.quote(value)}"


def other_vaults(part: packages.OtherVaults) -> Iterator[str]:
    """Yield the vaults around one that it does not search, and the lessons that no vault takes."""
    if part.vaults_around:
        how = above_command(part.vaults_around, part.vaults_above)
        yield f"around     {' and '.join(part.vaults_around)}, not searched here; to change it: {how}"
    if part.in_no_vault:
        yield f"no vault   {in_no_vault(part.in_no_vault)}"


def in_no_vault(folders: Sequence[str]) -> str:
    """Return which folders with lessons no vault takes, and the command that makes one a vault."""
    from vault_index.check.finding import from_here

    names = [f"{from_here(Path(folder))}/" for folder in folders]
    more = f" and {len(names) - MAX_FOLDERS} more" if len(names) > MAX_FOLDERS else ""
    first = shlex.quote(from_here(Path(folders[0]).parent))
    return f"{', '.join(names[:MAX_FOLDERS])}{more}; to make one there: lessons init {first}"


def _asked(week: Week, before: Week) -> str:
    """Return the agents' own searches and reads, beside the lessons that came; "" where neither is."""
    searched, read = count(week.searches, "search", "searches"), count(week.reads, "read")
    came = f"lessons came {count(week.came, 'time')}"
    was = f"{before.searches:,}, {before.reads:,} and {before.came:,}" if before.is_used else ""
    if not (week.is_used or was):
        return ""
    text = f"in 7 days: {searched} and {read} of their own, {came}"
    return f"{text}; in the 7 before: {was}" if was else text


def _changed(settings: Sequence[Setting]) -> str:
    from vault_index import config  # with TOML, 9 ms of each command's help

    names = [each.name for each in settings if each.origin != config.DEFAULT]
    more = f" and {len(names) - MAX_NAMES} more" if len(names) > MAX_NAMES else ""
    return f"{', '.join(names[:MAX_NAMES]) or 'none changed'}{more}; all: `lessons config`"


def setting_value(value: Any) -> str:
    """Return a setting's value in a line, as TOML writes it as far as that is short."""
    if value is None:
        return "unset"
    if isinstance(value, dict) or (isinstance(value, (list, tuple)) and len(value) > 3):
        return count(len(value), "entry", "entries")
    return json.dumps(value, ensure_ascii=False, default=str)


def watcher_line(state: Mapping[str, Any] | None) -> str:
    """Return the state of a watcher for people, in a line."""
    if state is None:
        return "not running"
    if "pid" not in state:
        return str(state["trouble"])
    lessons = "no index yet" if state["lessons"] is None else count(state["lessons"], "lesson")
    parts = [f"pid {state['pid']}", f"up {state['seconds']} s", lessons]
    parts.append(count(state["questions"], "question"))
    parts += ["indexing"] if state["indexing"] else []
    parts += ["looking every few seconds"] if state["events"] == "polling" else []
    parts += [f"last: {state['last']}"] if state["last"] else []
    parts += [f"trouble: {state['trouble']}"] if state["trouble"] else []
    return ", ".join(parts)
