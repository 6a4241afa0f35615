"""Prompts that get nothing, whatever the vault holds: recognised by their form, before any search.

Nothing loads with it: the hook asks this of each prompt, and `re` takes half as long to load as Python
takes to start.
"""

from __future__ import annotations

TYPE_CHECKING = False  # typing takes 3 ms to load
if TYPE_CHECKING:
    from collections.abc import Iterator

MIN_CHARS = 10  # of a prompt that says what it is about
MIN_DIGITS = 3  # of a code: fewer choose an answer
MAX_CHATTER_WORDS = 14
MAX_CHARS = 10_000  # a longer prompt is no acknowledgement

# Claude Code itself sends these in place of a prompt
_NOT_TYPED = (
    "<task-notification",
    "<command-",
    "<local-command",
    "<system-reminder",
    "<bash-",
    "<teammate",
)

# An acknowledgement opens like this ...
_OPENERS = (
    "yes yep yeah yup ya no nope nah ok okay k sure fine right thanks thank thx ty great perfect nice "
    "cool awesome lovely excellent brilliant good looks sounds lgtm approved agreed correct exactly "
    "done stop wait hold hang hm hmm hmmm oh ah alright "
    "that's thats that never nevermind actually wow haha lol"
).split()  # fmt: skip
# ... and goes on with nothing but these.
_CHATTER = frozenset(
    (
        "a about after all already also am an and any are as at back bad be because before below "
        "better big bit both but by bye can change changes come commit could day diff didn't did do "
        "does doesn't don't each edit else even everything exactly far few file files finally fine "
        "first for from get give go going good got great green had has have haven't here hold how's i "
        "i'd i'll i'm i've idea if in instead is isn't it it's its job just keep kind last later left "
        "less let let's like little long looks lot make many me mean meant mentioned merge minimal "
        "minute moment more morning much my myself need never new next nice night not nothing now of "
        "off ok on once one only open option or other others our out over passes perfect plan please "
        "point pr push quick quite read ready really remaining revert right run same say second see "
        "shall ship short shorter should simple simpler small smaller so some something soon sorry "
        "sounds step stop such sure table take tell tests thank thanks that that's the their them then "
        "there they thing things think third this those three through till to today together tomorrow "
        "too touch try two undo until up us version very wait want warnings was way we we'll well "
        "went were what's will with won't work worked working works would yes yet you you're your "
        "again ahead already approve ci continue implementation proceed when where"
    ).split()
) | frozenset(_OPENERS)
_WORK = frozenset(
    "undo revert commit push merge open run edit tests pr ci diff table version".split()
)


def _is_name(prompt: str) -> bool:
    """Whether a short prompt is one word, or has a code: a lesson may have just that."""
    return len(prompt.split()) == 1 or any(map(str.isdigit, prompt))


def _is_slash_command(text: str) -> bool:
    """Whether a text begins with a slash, a letter, and then letters, digits and `_:.-` to a blank."""
    first = text[: MAX_CHARS + 1].split(maxsplit=1)[0] if text else ""
    name = first.removeprefix("/")
    begins = name[:1].isascii() and name[:1].isalpha()
    return name != first and begins and all(char.isalnum() or char in "_:.-" for char in name)


def _words(text: str) -> Iterator[str]:
    word = ""
    for char in text:
        if char.isalnum() or char in "_'":
            word += char
        elif word:
            yield word
            word = ""
    if word:
        yield word


def _is_chatter(word: str) -> bool:
    return word in _CHATTER or (word.isdigit() and len(word) < MIN_DIGITS)


def why_skipped(prompt: str) -> str:
    """Return the reason for which a prompt gets no search; "" if it deserves one.

    No search for: prompts under 10 characters but for a lone name or code, slash commands, lines for
    the shell, messages of the agent's machinery, and acknowledgements: up to 14 words that open like
    one and hold no word of substance. "undo the last commit" is searched for, "no, undo that" is not.
    """
    text = prompt.strip()
    if len(text) < MIN_CHARS and not _is_name(text):
        return f"fewer than {MIN_CHARS} characters"
    if _is_slash_command(text):
        return "a slash command"
    if text.startswith("!"):  # the agent's shell mode: no model reads it as a request
        return "a line for the shell"
    if text.startswith(_NOT_TYPED):
        return "not typed by a person"
    if len(text) > MAX_CHARS:
        return ""
    words = []
    for word in _words(text.lower().replace("\u2019", "'")):
        words.append(word)
        if not _is_chatter(word) or len(words) > MAX_CHATTER_WORDS:
            return ""
    if not words:
        return "no words"
    opens = words[0] in _OPENERS
    return "an acknowledgement" if opens or not _WORK & set(words) else ""
