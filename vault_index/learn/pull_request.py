"""The review of a pull request -> material: threads that led to a change, and dismissals with a reason.

A thread was adopted where a commit after its first comment touches the lines that it is about. It counts
if a person began it; the words of a program never do, but a person's reason against them does.

    {"pull": {...}, "comments": [...], "commits": [{..., "files": [...]}], "events": [...]}

is what the command reads through `gh api`, as GitHub answers: the pull request, its review comments, its
commits with their files, and the events of its issue. A file may hold the same.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from vault_index import files
from vault_index.errors import VaultError
from vault_index.journal.redact import redact
from vault_index.learn import timeline
from vault_index.learn.material import CHANGED, PULL, Entry, FileChange, Material
from vault_index.learn.timeline import Moment
from vault_index.share import github
from vault_index.text.quote import clean
from vault_index.transcripts import vocabulary

MAX_BYTES = 64 * 1024 * 1024  # of a recorded answer
MAX_COMMITS = 100  # whose files are asked for
MAX_THREADS = 50  # of a pull request, persons' first
MAX_LINES = 12  # of a change that goes with a thread
NEAR = 3  # lines between the line of a comment and a change that answers it
_URL = re.compile(r"https://([\w.-]+)/([\w-][\w.-]*)/([\w-][\w.-]*)/pull/(\d{1,9})(?:[/?#].*)?")
_BOT = re.compile(
    r"(?i)\[bot\]$|(?:^|[-_])bot$|^(?:copilot|coderabbit|codecov|sonarcloud|dependabot)\b"
)
_BY_PROGRAM = re.compile(  # what a person's account posts for an agent
    r"(?i)^\W*\[[^\]\n]{0,40}\b(?:agent|bot|ai)\b[^\]\n]{0,40}\]|\U0001f916|\bgenerated (?:by|with) "
)
_HEAD = re.compile(r"@@ -\d+(?:,\d+)? \+\d+(?:,\d+)? @@")
# what has no end reaches to the end, as GitHub shows it: no part of a text is read twice
_CODE = re.compile(r"(?ms)^[ \t]*(```|~~~).*?(?:^[ \t]*\1[^\n]*$|\Z)|^>.*?$|<!--.*?(?:-->|\Z)")
_DISMISSES = re.compile(
    r"(?i)\b(?:on purpose|intentional\w*|by design|deliberate\w*|won't fix|not (?:needed|necessary|a bug)"
    r"|never happens?|can't happen|expected|keep (?:it|this)|leave (?:it|this)|false positive|no need)\b"
)

Json = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Thread:
    """A thread of a review: what a person said in it, about which file, and what came of it."""

    text: str
    path: str
    url: str
    who: str
    change: str = ""  # lines with - and + of the commit that answered it
    commit: str = ""
    by_bot: bool = False  # a program began it

    @property
    def why(self) -> str:
        """Return what is known of it, for whoever reviews the proposal."""
        came = f"adopted in {self.commit[:10]}" if self.commit else "dismissed with a reason"
        return " ".join(filter(None, [f"a review by {self.who}, {came}:", self.url]))


def material(target: str) -> Material:
    """Return the material of a pull request, by its address or a file of what GitHub answered.

    Raises VaultError for others, and where `gh` does not answer.
    """
    match = _URL.fullmatch(target.strip())
    answers = _asked(*match.groups()) if match else _read(target)
    pull, said = _object(answers.get("pull")), threads(answers)
    moments = [Moment(timeline.COMMIT, redact(clean(_text(pull, "title"))))]
    for each in said:
        moments.append(Moment(timeline.PERSON, each.text, each.path, is_correction=True))
        moments += [Moment(timeline.EDIT, each.change, each.path)] if each.change else []
    paths = dict.fromkeys(each.path for each in said if each.path)
    return Material(
        *(PULL, _text(pull, "html_url") or Path(target).name, _text(pull, "base", "repo", "name")),
        moments=tuple(each for each in moments if each.text),
        began=_text(pull, "created_at"),
        ended=_text(pull, "merged_at") or _text(pull, "updated_at"),
        changes=tuple(FileChange(path, CHANGED) for path in paths),
        threads=tuple((each.text, each.path, each.why) for each in said),
    )


def with_threads(entries: Sequence[Entry], of: Material) -> list[Entry]:
    """Return entries with the file and the thread that each rests on, by its quotes."""
    placed = []
    for entry in entries:
        for text, path, why in of.threads:
            if any(" ".join(each.split()) in " ".join(text.split()) for each in entry.quotes):
                entry = replace(entry, applies_to=(path,) if path else (), why=why)
                break
        placed.append(entry)
    return placed


def threads(answers: Json) -> list[Thread]:
    """Return the threads that teach something: adopted ones first, those that a program began last."""
    author = _text(answers, "pull", "user", "login")
    comments, commits, events = (
        _objects(answers.get(name)) for name in ("comments", "commits", "events")
    )
    by_root: dict[Any, list[Json]] = {}
    for comment in sorted(comments, key=lambda each: str(each.get("created_at"))):
        by_root.setdefault(comment.get("in_reply_to_id") or comment.get("id"), []).append(comment)
    there = [_thread(each, author, commits) for each in by_root.values()]
    taught = [each for each in (*there, *map(_dismissal, events)) if each]
    taught.sort(key=lambda each: (each.by_bot, not each.commit))
    return taught[:MAX_THREADS]


def _thread(comments: Sequence[Json], author: str, commits: Sequence[Json]) -> Thread | None:
    """Return what a thread teaches, None for nothing."""
    root = comments[0]
    by_bot, path, who = _is_bot(root), _text(root, "path"), _text(root, "user", "login")
    commit, change = _answer(root, commits)
    if change and not by_bot and who != author and (text := _prose(root, "body")):
        return Thread(text, path, _text(root, "html_url"), who, change, commit)
    for reply in [] if change else comments[1:]:  # lines that changed say that it was no dismissal
        text = "" if _is_bot(reply) else _prose(reply, "body")
        has_reason = _DISMISSES.search(text) or vocabulary.has_reason(text)
        if has_reason and _text(reply, "user", "login") != who:
            by = _text(reply, "user", "login")
            return Thread(text, path, _text(reply, "html_url"), by, by_bot=by_bot)
    return None


def _dismissal(event: Json) -> Thread | None:
    """Return the review that a person dismissed with a reason; None for another event."""
    reason = _prose(event, "dismissed_review", "dismissal_message")
    if event.get("event") != "review_dismissed" or not reason or _is_bot(event, "actor"):
        return None
    return Thread(reason, "", _text(event, "html_url"), _text(event, "actor", "login"))


def _answer(root: Json, commits: Sequence[Json]) -> tuple[str, str]:
    """Return the first commit after a comment that touches its lines, and those that it changed."""
    hunk = [line[1:].strip() for line in _text(root, "diff_hunk").splitlines()[1:]]
    size = _line(root, "line") - _line(root, "start_line") + 1 if _line(root, "start_line") else 1
    lines = {line for line in hunk[-max(1, min(size, 50)) :] if len(line) > 2}
    path = root.get("path")
    for commit in commits:
        if _text(commit, "commit", "committer", "date") <= _text(root, "created_at"):
            continue
        for file in _objects(commit.get("files")):
            is_it = path in (file.get("filename"), file.get("previous_filename"))
            if is_it and (change := _touching(_text(file, "patch"), lines)):
                return _text(commit, "sha"), change
    return "", ""


def _line(comment: Json, name: str) -> int:
    value = comment.get(name) or comment.get(f"original_{name}")
    return value if type(value) is int else 0


def _touching(patch: str, lines: set[str]) -> str:
    """Return the changed lines of a patch that are near one of these lines; "" for none."""
    for hunk in _HEAD.split(patch)[1:]:
        every = hunk.splitlines()[1:]
        changed = [at for at, line in enumerate(every) if line[:1] in ("-", "+")]
        before = ((at, line) for at, line in enumerate(every) if line[:1] in (" ", "-"))
        there = [at for at, line in before if line[1:].strip() in lines]
        near = [at for at in changed if any(abs(at - place) <= NEAR for place in there)]
        if near:
            first, last = min(near), max(near)
            shown = [every[at] for at in changed if first - NEAR <= at <= last + NEAR]
            return redact(clean("\n".join(shown[:MAX_LINES])))
    return ""


def _prose(value: Json, *names: str) -> str:
    """Return what a person wrote: without code, quotations and remarks that markdown hides."""
    body = _text(value, *names).replace("\r\n", "\n")
    return redact(clean(_CODE.sub("", body))).strip()


def _is_bot(value: Json, name: str = "user") -> bool:
    is_bot = _text(value, name, "type") == "Bot" or _BOT.search(_text(value, name, "login"))
    return bool(is_bot or _BY_PROGRAM.search(_text(value, "body")))


def _text(value: Any, *names: str) -> str:
    """Return the text below names within names, "" without one."""
    for name in names:
        value = _object(value).get(name)
    return str(value or "")


def _object(value: Any) -> Json:
    return value if isinstance(value, dict) else {}


def _objects(value: Any) -> list[Json]:
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []


# Reading what GitHub answered.


def _read(target: str) -> Json:
    """Read a file of answers. Raises VaultError."""
    data = files.read_if_any(Path(target), MAX_BYTES)
    if data is None:
        hint = "name an address such as https://github.com/OWNER/NAME/pull/12, or a file"
        raise VaultError(f"there is no file {target!r:.200}", hint)
    try:
        answers = json.loads(data)
    except (ValueError, RecursionError):
        answers = None
    if not isinstance(answers, dict) or "comments" not in answers:
        hint = "see `lessons learn --pr` in docs/learn.md"
        raise VaultError(f"{target!r:.200} holds no recorded pull request", hint)
    return answers


def _asked(host: str, owner: str, name: str, number: str) -> Json:
    """Ask GitHub through the user's own `gh`. Raises VaultError."""
    pull = f"repos/{owner}/{name}/pulls/{number}"
    commits = [dict(each) for each in github.pages(host, f"{pull}/commits")][-MAX_COMMITS:]
    for commit in commits:
        sha = _text(commit, "sha")
        if re.fullmatch(r"[0-9a-f]{40,64}", sha):
            commit["files"] = github.ask(host, f"repos/{owner}/{name}/commits/{sha}").get("files")
    return {
        "pull": github.ask(host, pull),
        "comments": github.pages(host, f"{pull}/comments"),
        "commits": commits,
        "events": github.pages(host, f"repos/{owner}/{name}/issues/{number}/events"),
    }
