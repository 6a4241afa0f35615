"""A review at a terminal: a proposal at a time, decided by a key.

Each decision is carried out before the next proposal is shown, so that it can end at any moment.
"""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from vault_index import api
from vault_index.entrypoints.cli import context, output
from vault_index.entrypoints.wording import proposals
from vault_index.errors import VaultError
from vault_index.lesson.category import NO_CATEGORY

if TYPE_CHECKING:
    from vault_index.api.proposal import Card

LABEL_COLUMNS = 11
MAX_CATEGORIES = 20  # that are listed to choose from, the largest
ADDED, REMOVED = {"fg": "green"}, {"fg": "red"}


def show_card(card: Card, position: str = "") -> None:
    """Print the grounds to decide on a proposal. `position` is such as "2 of 5"."""
    output.say(output.styled(card.title, bold=True), f"  {position}" if position else "")
    output.say(output.styled(proposals.origin(card), dim=True))
    for text in filter(None, (proposals.summary(card), proposals.quoted(card))):
        output.say(text)
    is_ready, state = proposals.state(card)
    output.say(output.styled(state, fg="green" if is_ready else "yellow"))


def show_details(card: Card) -> None:
    """Print everything else that is known of a proposal, with its text or its diff."""
    output.say(proposals.about(card), indent=2)
    for label, text in proposals.rows(card):
        head = output.styled(f"{label:<{LABEL_COLUMNS}}", dim=True)
        output.say(head, text, indent=LABEL_COLUMNS)
    output.say()
    if card.target and card.target.diff:
        show_diff(card.target.diff)
    else:
        show_text(card.text)


def show_text(text: str) -> None:
    """Print the text of a lesson: sentences break between words, code stays as it is."""
    is_code = False
    for line in text.splitlines():
        is_fence = line.lstrip().startswith(("```", "~~~"))
        (output.text if is_code or is_fence or not line else output.say)(line)
        is_code = is_code != is_fence


def show_diff(diff: str) -> None:
    """Print a unified diff."""
    for text in diff.splitlines():
        style: dict[str, Any] = ADDED if text.startswith("+") else {}
        style = REMOVED if text.startswith("-") else style
        output.say(output.styled(text, **style))


def ask_category(card: Card) -> str:
    """Ask for the category of a proposal that names none; `.` is an answer, too: see `accept`."""
    usual = f"Enter for {card.fitting}, " if card.fitting else ""
    chosen = ""
    while not chosen:
        typed = output.ask(f"category of {card.title!r}? ({usual}{NO_CATEGORY} for none)").strip()
        chosen = typed or card.fitting
    context.note_new_categories([chosen])
    return chosen


_KEYS = (
    "[a]ccept [e]dit [m]erge [s]kip [r]eject [u]ndo [c]ategory [p]rompts [t]ext [w]hole session"
    " [q]uit [?]"
)
_REJECTS = "reworded it may come again: [r]eject it, or any other key for no"
_HELP = """\
a  accept: write the lesson, or the change, into the vault
e  edit it in your editor; it is checked again
m  merge: add it to the end of the nearest lesson, after a look at the diff
s  skip: it waits for the next review
r  reject, after a second r; with its quote or prompt it is recognised
u  take back the last one that was rejected
c  name another category
p  its prompts and lines of output, to strike one
t  its text or diff, all quotes, the nearest lesson, what its prompts find
w  accept or reject all that its session taught
q  quit; the rest waits"""


class Review:
    """Goes through the proposals of these ids. `commit` makes a commit of each accepted one."""

    def __init__(self, ids: Sequence[str], commit: bool) -> None:
        self._ids = list(ids)
        self._commit = commit
        self._done: Counter[str] = Counter()
        self._decided: set[str] = set()  # ids, also a whole session's
        self._rejected: list[str] = []  # ids, the last at the end
        self._card: Card
        self._category = ""  # that was chosen for the one that is shown
        self._actions: dict[str, Callable[[], object]] = {  # true: on to the next
            "a": self._accept,
            "e": self._edit,
            "m": self._merge,
            "s": lambda: True,  # it waits for the next review
            "r": self._reject,
            "u": self._take_back,
            "c": self._choose_category,
            "p": self._strike,
            "t": lambda: show_details(self._card),
            "w": self._decide_session,
        }

    def run(self) -> None:
        """Show each and do as the keys say, until the last or the end of the terminal."""
        try:
            for number, id in enumerate(self._ids, start=1):
                if id not in self._decided and not self._review(id, number):
                    break
        finally:
            left = len({*self._ids} - self._decided)
            counts = {what: self._done[what] for what in ("accepted", "merged", "rejected")}
            parts = [
                f"{number} {what}" for what, number in {**counts, "left": left}.items() if number
            ]
            with contextlib.suppress(OSError):  # the terminal was closed
                context.note(", ".join(parts))

    def _review(self, id: str, number: int) -> bool:
        """Ask until one proposal is decided or skipped; False for quit."""
        self._category = ""
        try:
            self._show(id, number)
        except VaultError as error:  # it is gone: accepted or rejected elsewhere meanwhile
            output.error(error.message, error.hint)
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
                output.error(error.message, error.hint)
                if not self._waits(id):  # it was decided elsewhere
                    self._decided.add(id)
                    return True

    def _waits(self, id: str) -> bool:
        try:
            return any(each.id == id for each in self._ask(api.proposal.select()))
        except VaultError:
            return True

    def _show(self, id: str, number: int = 0) -> None:
        (self._card,) = self._ask(api.proposal.cards(id=id))
        position = f"{number} of {len(self._ids)}" if number else ""
        output.say()
        show_card(self._card, position)
        output.say()

    def _accept(self) -> bool:
        self._accept_one(self._card, self._category)
        return True

    def _accept_one(self, card: Card, chosen: str) -> None:
        category = chosen or card.suggested
        if card.needs_category and not category:
            category = ask_category(card)
        command = api.proposal.accept(id=card.id, category=category, commit=self._commit)
        accepted = self._decide("accepted", card.id, command)
        context.note(f"accepted: {accepted.path}")

    def _reject(self) -> bool:
        if output.press(_REJECTS) != "r":
            return False
        self._reject_one(self._card.id)
        return True

    def _reject_one(self, id: str) -> None:
        self._decide("rejected", id, api.proposal.reject(id=id))
        self._rejected.append(id)
        context.note(f"rejected; [u]ndo, or later `lessons review reject --undo {id}`")

    def _take_back(self) -> bool:
        if not self._rejected:
            context.note("nothing was rejected in this review")
            return False
        back = self._ask(api.proposal.take_back(id=self._rejected[-1]))
        self._rejected.pop()
        self._decided.discard(back.id)
        self._done["rejected"] -= 1
        self._ids.append(back.id)  # it comes last
        context.note(f"it waits again, at the end: {back.title}")
        return False

    def _edit(self) -> bool:
        seen = self._card.source
        if not seen:
            context.note("it cannot be read: correct its file, or reject it")
            return False
        text = seen
        while True:
            saved = context.edit_text(text, context.vault().root)
            if saved is None or saved == seen:
                context.note("nothing was changed")
                return False
            text = saved
            try:
                self._ask(api.proposal.edit(id=self._card.id, text=text, seen=seen))
                break
            except VaultError as error:
                output.error(error.message, error.hint)
                if output.press("[e]dit it again, or any other key to leave it as it was") != "e":
                    return False
        self._show(self._card.id)
        return False

    def _merge(self) -> bool:
        into = proposals.into(self._card)
        if not into:
            context.note("no lesson is like it")
            return False
        planned = self._ask(api.proposal.merge(id=self._card.id, into=into))
        show_diff(planned.diff)
        if output.press(f"add it to {planned.id}? [y]es, or any other key for no") != "y":
            return False
        id = self._card.id
        command = api.proposal.merge(
            id=id, into=planned.id, seen=planned.before, commit=self._commit, write=True
        )
        merged = self._decide("merged", id, command)
        context.note(f"merged: {merged.path}")
        return True

    def _choose_category(self) -> bool:
        now = self._category or self._card.category or self._card.suggested
        with contextlib.suppress(VaultError):  # without an index
            counts = self._ask(api.lesson.count()).counts
            names = sorted(counts, key=lambda name: (-counts[name], name))[:MAX_CATEGORIES]
            output.say(", ".join(sorted(names)))
        typed = output.ask(f"category (now {now or 'none'}):").strip()
        self._category = typed or self._category
        if typed:
            context.note(f"to be accepted in {typed}")
        return False

    def _strike(self) -> bool:
        texts = proposals.answers(self._card)
        if not texts:
            context.note("it has no prompts")
            return False
        for number, (text, about) in enumerate(texts, start=1):
            output.say(f"  {number}  {text}", indent=5)
            output.say(output.styled(about, dim=True), indent=5)
        key = output.press("its number strikes one, or any other key for none")
        if not (key.isdigit() and 0 < int(key) <= len(texts)):
            return False
        text = texts[int(key) - 1][0]
        self._ask(api.proposal.strike(id=self._card.id, text=text))
        context.note(f"struck: {text}")
        self._show(self._card.id)
        return False

    def _decide_session(self) -> bool:
        session, batch = self._card.session, self._card.batch
        if not (session or batch):
            context.note("it is from no session")
            return False
        listed = self._ask(api.proposal.select(session=session, batch=batch))
        for each in listed:
            output.say(f"  {each.id}  {proposals.line(each)}")
            for text, _ in proposals.answers(each) if batch else ():
                output.say(f"    + {text}", indent=6)
        key = output.press(f"[a]ccept or [r]eject all {len(listed)}, or any other key for neither")
        if key not in ("a", "r"):
            return False
        for each in listed:
            if key == "r":
                self._reject_one(each.id)
            else:
                (card,) = self._ask(api.proposal.cards(id=each.id))
                is_shown = each.id == self._card.id
                chosen = self._category if is_shown else ""
                self._accept_one(card, chosen)
        return True

    def _decide(self, what: str, id: str, command: api.Question[api.Answer]) -> api.Answer:
        answer = self._ask(command)
        self._decided.add(id)
        self._done[what] += 1
        return answer

    def _ask(self, question: api.Question[api.Answer]) -> api.Answer:
        return context.ask(question)
