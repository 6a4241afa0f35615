"""A review at a terminal: a proposal at a time, decided by a key.

Each decision is carried out before the next proposal is shown, so that it can end at any moment.
"""

from __future__ import annotations

import contextlib
import os
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from vault_index import client
from vault_index.entrypoints.cli import asking, completion, output
from vault_index.entrypoints.cli.output import from_here, json_option
from vault_index.errors import GitError, VaultError

# A proposal as a reviewer sees it: what it says, why it was proposed, what is like it, what finds
# it.

MAX_PLACE = 3  # as many as a hook injects
_LABEL = 8  # columns
_ADDED, _REMOVED = {"fg": "green"}, {"fg": "red"}

CardView = Mapping[str, Any]


def show_card(card: CardView, place: str = "") -> None:
    """Print a proposal that `review` returned. `place` is where it is among the others."""
    output.say(output.styled(card["title"], bold=True), f"  {place}" if place else "")
    output.say(" · ".join(_about(card)), indent=2)
    rows = [("why", card["why"])] if card["why"] else []
    rows += [("quote", f"“{' '.join(quote.split())}”") for quote in card["quotes"]]
    rows += _likeness(card)
    rows += [("check", _finding(finding)) for finding in card["findings"]]
    for label, text in rows:
        _row(label, text)
    for prompt in card["prompts"]:
        _show_prompt(prompt)
    output.say()
    if card["target"] and card["target"]["diff"]:
        show_diff(card["target"]["diff"])
    else:
        output.text(card["text"])


def card_line(proposal: CardView) -> str:
    """Return a proposal in a line: when, where to, its title, what there is to know of it."""
    about = [proposal["created"][:10], f"[{proposal['category'] or 'no category'}]"]
    about.append(proposal["title"])
    notes = [note for note, holds in _notes(proposal) if holds]
    if notes:
        about.append(f"({', '.join(notes)})")
    return "  ".join(filter(None, about))


def show_diff(diff: str) -> None:
    """Print a unified diff."""
    for text in diff.splitlines():
        style: dict[str, Any] = _ADDED if text.startswith("+") else {}
        style = _REMOVED if text.startswith("-") else style
        output.say(output.styled(text, **style))


def _notes(proposal: CardView) -> Iterator[tuple[str, bool]]:
    yield "a draft by rule", bool(proposal["is_draft"])
    yield f"changes {proposal['changes']}", bool(proposal["changes"])
    yield f"{len(proposal['findings'])} to look at", bool(proposal["findings"])
    yield f"expires {proposal['expires']}", bool(proposal["expires"])


def _about(card: CardView) -> Iterator[str]:
    suggested = f"{card['suggested']}?" if card["suggested"] else ""
    yield f"[{card['category'] or suggested or 'no category'}] {card['id']}"
    if card["type"]:
        yield str(card["type"])
    yield f"confidence {card['confidence']} of 5"
    if card["is_draft"]:
        yield "a draft by rule: its text is what was said"
    by = f"by {card['by']}, " if card["by"] else ""
    yield f"{by}{card['created'][:10]}"
    if card["session"]:
        yield f"session {card['session']}"
    if card["expires"]:
        yield f"expires {card['expires']}"


def _likeness(card: CardView) -> Iterator[tuple[str, str]]:
    target = card["target"]
    if target:
        yield "changes", target["problem"] or target["id"]
        if target["is_outdated"]:
            yield (
                "",
                "it says something else now than when this was proposed: merge, edit or reject",
            )
    if card["nearest"]:
        id, title, likeness = card["nearest"]
        yield "nearest", f"{likeness:.0%} like {id} ({title})"


def _finding(finding: CardView) -> str:
    return f"{finding['level']}: {finding['rule']}: {finding['message']}"


def _show_prompt(found: CardView) -> None:
    _row("silent" if found["is_silent"] else "fires", f"“{found['prompt']}”")
    now, then = found["now"], found["then"]
    today = f"{now['title']}, {_score(now)}" if now else "nothing"
    _row("", f"now   {today}")
    place = "" if then["place"] == 1 else f" in place {then['place']}"
    place = f", not among the first {MAX_PLACE}" if then["place"] > MAX_PLACE else place
    _row("", f"then  this one{place}, {_score(then)}{_judged(found)}")


def _judged(found: CardView) -> str:
    """Return a note where a prompt would do what it should not."""
    is_found = found["then"]["is_above"] and found["then"]["place"] <= MAX_PLACE
    if is_found == found["is_silent"]:
        return ": it should stay silent" if is_found else ": it should be found"
    return ""


def _score(found: CardView) -> str:
    return f"{max(0, found['score']):.0%}, {'above' if found['is_above'] else 'below'} the floor"


def _row(label: str, text: str) -> None:
    head = output.styled(f"{label:<{_LABEL}}", dim=True)
    output.say(head, text, indent=_LABEL)


def summary(counts: Sequence[tuple[int, str]]) -> str:
    """Return what was done in a line: `2 accepted, 1 skipped`."""
    return ", ".join(f"{count} {what}" for count, what in counts if count)


# What `lessons accept` and `lessons reject` share: several proposals, or all of a session.

session_option = click.option(
    "--session", default="", metavar="ID", help="All that this session taught."
)


def each_proposal(
    named: str | None,
    ids: Sequence[str],
    session: str,
    as_json: bool,
    decide: Callable[[str], dict[str, Any]],
    show: Callable[[dict[str, Any]], None],
) -> None:
    """Decide about proposals in their order, and print each; the first error ends it.

    As JSON one id gives one object, several and a session a list.
    """
    if bool(ids) == bool(session):
        raise click.UsageError("name proposals by their IDs, or a session with --session")
    is_one = len(ids) == 1
    if session:
        listed = asking.ask(named, "proposals", {"session": session})["proposals"]
        if not listed:
            hint = "see the ids of sessions with `lessons review --json`"
            raise VaultError(f"no proposal of a session {session!r:.80} waits", hint)
        ids = [proposal["id"] for proposal in listed]
    decided: list[dict[str, Any]] = []
    try:
        for id in ids:
            decided.append(decide(id))
            if not as_json:
                show(decided[-1])
    finally:
        if as_json and decided:
            output.json(decided[0] if is_one else decided)


_KEYS = "[a]ccept [e]dit [m]erge [s]kip [r]eject [c]ategory [w]hole session [q]uit [?]"
_HELP = """\
a  accept: write the lesson, or the change, into the vault
e  edit it in your editor; it is checked again
m  merge: add it to the end of the nearest lesson, after a look at the diff
s  skip: it waits for the next review
r  reject: it goes for good, and nothing like it comes back, however worded
c  name another category
w  accept or reject all that its session taught
q  quit; the rest waits"""

Card = dict[str, Any]


class Review:
    """Goes through the proposals of these ids. `commit` makes a commit of each accepted one."""

    def __init__(self, named: str | None, ids: Sequence[str], commit: bool) -> None:
        self._named = named
        self._ids = list(ids)
        self._commit = commit
        self._done: Counter[str] = Counter()
        self._decided: set[str] = set()  # ids, also those of a whole session
        self._card: Card = {}
        self._category = ""  # that was chosen for the one that is shown
        self._actions: dict[str, Callable[[], bool]] = {
            "a": self._accept,
            "e": self._edit,
            "m": self._merge,
            "s": self._skip,
            "r": self._reject,
            "c": self._choose_category,
            "w": self._decide_session,
        }

    def run(self) -> None:
        """Show each and do as the keys say, until the last or the end of the terminal."""
        try:
            for number, id in enumerate(self._ids, start=1):
                if id not in self._decided and not self._review(id, number):
                    break
        finally:
            left = len(self._ids) - len(self._decided)
            counts = [(self._done[what], what) for what in ("accepted", "merged", "rejected")]
            with contextlib.suppress(OSError):  # the terminal was closed
                asking.note(summary([*counts, (left, "left")]))

    def _review(self, id: str, number: int) -> bool:
        """Ask until one proposal is decided or skipped; False for quit."""
        self._category = ""
        try:
            self._show(id, number)
        except VaultError as error:
            _complain(error)  # it is gone: accepted or rejected elsewhere meanwhile
            self._decided.add(id)
            return True
        while True:
            key = output.press(_KEYS)
            if key in (output.END, "q"):
                return False
            action = self._actions.get(key)
            if action is None:
                output.text(_HELP, err=True)
                continue
            try:
                if action():
                    return True
            except VaultError as error:
                _complain(error)
                if not self._waits(id):  # decided elsewhere, or only its commit failed
                    self._decided.add(id)
                    return True

    def _waits(self, id: str) -> bool:
        try:
            return any(each["id"] == id for each in self._ask("proposals")["proposals"])
        except VaultError:
            return True

    def _show(self, id: str, number: int = 0) -> None:
        """Read a proposal as it is now, and show it."""
        (self._card,) = self._ask("review", id=id)["proposals"]
        place = f"{number} of {len(self._ids)}" if number else ""
        output.say()
        show_card(self._card, place)
        output.say()

    def _accept(self) -> bool:
        self._accept_one(self._card["id"], self._category or self._card["suggested"])
        return True

    def _accept_one(self, id: str, category: str) -> None:
        values = {"category": category, "commit": self._commit}
        accepted = self._decide("accepted", "accept proposal", id, **values)
        asking.note(f"accepted: {accepted['path']}")

    def _reject(self) -> bool:
        self._reject_one(self._card["id"])
        return True

    def _reject_one(self, id: str) -> None:
        self._decide("rejected", "reject proposal", id)
        asking.note("rejected")

    def _skip(self) -> bool:
        return True

    def _edit(self) -> bool:
        seen = self._card["source"]
        if not seen:
            asking.note("it cannot be read: correct its file, or reject it")
            return False
        text = seen
        while True:
            saved = edited(text, client.open_vault(self._named).root)
            if saved is None or saved == seen:
                asking.note("nothing was changed")
                return False
            text = saved
            try:
                self._ask("edit proposal", id=self._card["id"], text=text, seen=seen)
                break
            except VaultError as error:
                _complain(error)
                if output.press("[e]dit it again, or any other key to leave it as it was") != "e":
                    return False
        self._show(self._card["id"])
        return False

    def _merge(self) -> bool:
        target = self._card["target"] or {"problem": "it changes none"}
        into = "" if target["problem"] else target["id"]
        into = into or (self._card["nearest"] or [""])[0]
        if not into:
            asking.note("no lesson is like it")
            return False
        planned = self._ask("merge proposal", id=self._card["id"], into=into)
        show_diff(planned["diff"])
        if output.press(f"add it to {planned['id']}? [y]es, or any other key for no") != "y":
            return False
        values = {"into": planned["id"], "seen": planned["before"], "commit": self._commit}
        merged = self._decide("merged", "merge proposal", self._card["id"], **values, write=True)
        asking.note(f"merged: {merged['path']}")
        return True

    def _choose_category(self) -> bool:
        now = self._category or self._card["category"] or self._card["suggested"]
        typed = output.ask(f"category (now {now or 'none'}):").strip()
        self._category = typed or self._category
        if typed:
            asking.note(f"to be accepted in {typed}")
        return False

    def _decide_session(self) -> bool:
        session = self._card["session"]
        if not session:
            asking.note("it is from no session")
            return False
        listed = self._ask("proposals", session=session)["proposals"]
        for each in listed:
            output.say(f"  {each['id']}  {card_line(each)}")
        key = output.press(f"[a]ccept or [r]eject all {len(listed)}, or any other key for neither")
        if key not in ("a", "r"):
            return False
        for each in listed:
            if key == "r":
                self._reject_one(each["id"])
            else:
                (card,) = self._ask("review", id=each["id"])["proposals"]
                is_shown = each["id"] == self._card["id"]
                chosen = self._category if is_shown else ""
                self._accept_one(each["id"], chosen or card["suggested"])
        return True

    def _decide(self, what: str, name: str, id: str, **values: Any) -> dict[str, Any]:
        """Carry out a decision and count it, also one of which only the commit failed."""
        try:
            answer = self._ask(name, id=id, **values)
        except GitError:
            if not self._waits(id):
                self._count(id, what)
            raise
        self._count(id, what)
        return answer

    def _count(self, id: str, what: str) -> None:
        self._decided.add(id)
        self._done[what] += 1

    def _ask(self, name: str, **values: Any) -> dict[str, Any]:
        return asking.ask(self._named, name, values)


def _complain(error: VaultError) -> None:
    asking.note(f"Error: {error.message}")
    if error.hint:
        asking.note(f"Try: {error.hint}")


@click.command("review", epilog="Example: lessons review --commit")
@completion.proposal(required=False)
@click.option("--session", default="", metavar="ID", help="Only what this session taught.")
@click.option("--commit", is_flag=True, help="Commit the file of each accepted one, and no other.")
@json_option
@click.pass_obj
def review_command(
    named: str | None, proposal_id: str | None, session: str, commit: bool, as_json: bool
) -> None:
    """Review what waits: accept, edit, merge or reject each.

    At a terminal one after the other, by single keys; in a pipe they are listed. ID is the id of a
    proposal or its beginning, and --session the id that `lessons proposals` shows, or its beginning.
    """
    values = {"id": proposal_id or "", "session": session}
    if as_json or not (sys.stdin.isatty() and sys.stdout.isatty()):
        _list(asking.ask(named, "review", values)["proposals"], as_json)
        return
    waiting = asking.ask(named, "proposals", values)["proposals"]
    if not waiting:
        asking.note("no proposals wait")
        return
    pass

    Review(named, [each["id"] for each in waiting], commit).run()


def _list(proposals: list[dict[str, Any]], as_json: bool) -> None:
    if as_json:
        output.json(proposals)
        return
    if not proposals:
        asking.note("no proposals wait")
    for number, proposal in enumerate(proposals):
        if number:
            output.say()
        show_card(proposal)


@click.command("accept", epilog="Example: lessons accept 3f9a -c devops/ci-cd --commit")
@completion.several_proposals()
@session_option
@click.option(
    *("-c", "--category"),
    default="",
    help="Where it belongs, instead of where it says.",
    shell_complete=completion.categories,
)
@click.option("--commit", is_flag=True, help="Commit its file, and no other.")
@json_option
@click.pass_obj
def accept_command(
    named: str | None,
    proposal_ids: tuple[str, ...],
    session: str,
    category: str,
    commit: bool,
    as_json: bool,
) -> None:
    """Make proposals lessons, and print their paths.

    ID is the id of a proposal or its beginning: see `lessons proposals`. One that is a change of a
    lesson changes it.
    """
    root = client.open_vault(named).root

    def accept(id: str) -> dict[str, Any]:
        values = {"id": id, "category": category, "commit": commit}
        return asking.ask(named, "accept proposal", values)

    def show(accepted: dict[str, Any]) -> None:
        output.say(from_here(root / accepted["path"], root))

    each_proposal(named, proposal_ids, session, as_json, accept, show)


@click.command("reject", epilog="Example: lessons reject 3f9a")
@completion.several_proposals()
@session_option
@json_option
@click.pass_obj
def reject_command(
    named: str | None, proposal_ids: tuple[str, ...], session: str, as_json: bool
) -> None:
    """Remove proposals for good: nothing like them comes back.

    ID is the id of a proposal or its beginning: see `lessons proposals`. Its text is not kept.
    """

    def reject(id: str) -> dict[str, Any]:
        return asking.ask(named, "reject proposal", {"id": id})

    def show(rejected: dict[str, Any]) -> None:
        output.say(f"rejected {rejected['id']}: {rejected['title']}")

    each_proposal(named, proposal_ids, session, as_json, reject, show)


BY = "command line"


@click.command(
    "remember",
    epilog='Example: lessons remember --title "Heap" --text "Raise the heap." -c devops/ci-cd',
)
@click.option("--title", required=True, help="What was learned, in a line.")
@click.option("--text", default="-", help="What to do and why; `-`, the default, reads stdin.")
@click.option(
    *("-c", "--category"),
    default="",
    help="Where it belongs.",
    shell_complete=completion.categories,
)
@click.option(
    "--tag", "tags", multiple=True, help="A tag; repeatable.", shell_complete=completion.tags
)
@click.option("--fires-on", multiple=True, help="A prompt that must find it; repeatable.")
@json_option
@click.pass_obj
def remember_command(
    named: str | None,
    title: str,
    text: str,
    category: str,
    tags: tuple[str, ...],
    fires_on: tuple[str, ...],
    as_json: bool,
) -> None:
    """Propose a lesson, for a person to accept or reject.

    It waits outside the vault, is checked like a commit, and no agent gets it before that.
    """
    if text == "-":
        if sys.stdin.isatty():
            raise click.UsageError("pass --text, or pipe the text in")
        text = sys.stdin.buffer.read().decode("utf-8", "replace")
    values = {"title": title, "text": text, "category": category, "by": BY}
    proposed = asking.ask(
        named, "remember", {**values, "tags": list(tags), "fires_on": list(fires_on)}
    )
    if as_json:
        output.json(proposed)
        return
    output.say(
        output.styled(proposed["id"], bold=True), f" {proposed['status']}: {proposed['title']}"
    )
    for finding in proposed["findings"]:
        output.say(f"  {finding['level']}: {finding['rule']}: {finding['message']}", indent=2)
    for id, near, likeness in proposed["near"]:
        output.say(f"  {likeness:.0%} like {id} ({near})", indent=2)


@click.command("proposals", epilog="Example: lessons proposals 3f9a --json")
@completion.proposal(required=False)
@json_option
@click.pass_obj
def proposals_command(named: str | None, proposal_id: str | None, as_json: bool) -> None:
    """List proposed lessons, or print one.

    ID is the id of a proposal or its beginning. `lessons review` shows more and decides.
    """
    listed = asking.ask(named, "proposals", {"id": proposal_id or ""})["proposals"]
    if as_json:
        output.json(listed[0] if proposal_id else listed)
    elif proposal_id:
        _show(listed[0])
    elif not listed:
        asking.note("no proposals wait")
    else:
        output.rows(
            (output.styled(each["id"], bold=True), f"  {card_line(each)}") for each in listed
        )


def _show(proposal: dict[str, Any]) -> None:
    output.say(output.styled(proposal["title"], bold=True))
    filed = proposal["category"] or "no category"
    by = f" · by {proposal['by']}" if proposal["by"] else ""
    draft = " · a draft by rule" if proposal["is_draft"] else ""
    draft += f" · session {proposal['session']}" if proposal["session"] else ""
    until = f", expires {proposal['expires']}" if proposal["expires"] else ""
    output.say(f"[{filed}] {proposal['id']}{by}{draft}, {proposal['created'][:10]}{until}")
    for name in ("tags", "fires_on", "silent_on", "quotes"):
        if proposal[name]:
            output.say(f"{name}: {', '.join(proposal[name])}", indent=2)
    for finding in proposal["findings"]:
        output.say(f"  {finding['level']}: {finding['rule']}: {finding['message']}", indent=2)
    for id, title, likeness in proposal["near"]:
        output.say(f"  {likeness:.0%} like {id} ({title})", indent=2)
    output.say()
    output.text(proposal["text"])


# The user's editor.

# editors with a window of their own; any other needs the terminal that a server does not have
WITH_WINDOW = frozenset(
    "bbedit code code-insiders codium cursor gedit geany gnome-text-editor gvim idea kate kwrite leafpad"
    " mate mousepad mvim notepadqq pluma pycharm subl sublime_text windsurf xed zed zeditor".split()
)


def command_of(root: Path) -> str:
    """Return the command of the user's editor. Raises VaultError without one."""
    import shutil

    from vault_index import git

    named = (os.environ.get(name, "").strip() for name in ("VISUAL", "EDITOR"))
    command = next(filter(None, named), "") or git.editor(root)
    if not command and (shutil.which("vi") is None or not sys.stdin.isatty()):
        why = "vi is not installed" if shutil.which("vi") is None else "vi needs a terminal"
        hint = "set EDITOR to your editor, for example: export EDITOR=nano"
        raise VaultError(f"no editor is named and {why}", hint)
    return command or "vi"


def opened(file: Path, root: Path) -> bool:
    """Open a file in the user's editor beside this process; False where that needs a terminal."""
    import shlex
    import subprocess
    import threading

    try:
        words = shlex.split(command_of(root))
        if not words or Path(words[0]).name not in WITH_WINDOW:
            return False
        nowhere = subprocess.DEVNULL
        process = subprocess.Popen(
            [*words, str(file)],
            stdin=nowhere,
            stdout=nowhere,
            stderr=nowhere,
            start_new_session=True,
        )
    except (VaultError, OSError, ValueError):
        return False
    threading.Thread(target=process.wait, daemon=True, name="editor").start()
    return True


def edited(text: str, root: Path) -> str | None:
    """Return a text as the user saved it in an editor; None if nothing was saved. Raises VaultError."""
    command = command_of(root)
    try:
        return click.edit(text, editor=command, extension=".md")
    except click.ClickException as error:
        raise VaultError(f"the editor {command!r} failed: {error.message}", "set EDITOR") from None
