"""The words of a text, as LanceDB's tokenizer has them, and their stems.

Chinese, Japanese and Korean have no blanks between words, or endings that hide them: each pair of
neighbours in a run of theirs is a word, in the index, in a query and wherever words are compared.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache
from itertools import pairwise

from vault_index.text.blocks import composed

WORD = re.compile(r"[^\W_]+")
_TERM = re.compile(r"--?[a-z][\w-]*|[^\W\d_][\w']*|\w*\d\w*[a-z]\w*")
# the letters of Chinese, Japanese and Korean, for a class of a regular expression
UNSPACED = (
    "\u1100-\u11ff\u2e80-\u2fdf\u3005-\u3007\u3041-\u309f\u30a1-\u30fa\u30fc-\u30ff\u3105-\u318e"
    "\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\ua960-\ua97c\uac00-\ud7fb\uf900-\ufaff\uff66-\uffdc"
    "\U00020000-\U0003ffff"
)
_RUN = re.compile(f"[{UNSPACED}]+")
_TURKISH = str.maketrans("İı", "ii")  # whose small letters LanceDB takes apart, and leaves
# the words that LanceDB leaves out
INDEX_STOP_WORDS = frozenset(
    """i me my myself we our ours ourselves you your yours yourself yourselves he him his himself she her
    hers herself it its itself they them their theirs themselves what which who whom this that these
    those am is are was were be been being have has had having do does did doing a an the and but if or
    because as until while of at by for with about against between into through during before after
    above below to from up down in out on off over under again further then once here there when where
    why how all any both each few more most other some such no nor not only own same so than too very
    s t can will just don should now d ll m o re ve y ain aren couldn didn doesn hadn hasn haven isn ma
    mightn mustn needn shan shouldn wasn weren won wouldn""".split()
)
# with what prompts say besides
STOP_WORDS = INDEX_STOP_WORDS | {"get", "got", "please", "use", "using"}
# small words of German, Spanish, French, Italian, Portuguese and Dutch that are no English
SMALL_WORDS = frozenset(
    """aber als auch auf aus bei bitte das dass dem den der des ein eine einem einen einer für ich
    im ist kann mit nach nicht noch nur oder sich sie sind und uns vom von warum wenn wie wir wird
    zu zum zur como con cuando de del desde en esta este esto hay la las lo los más mi muy para pero
    por porque que qué su sus también un una unas unos ya au aux avec ce ces cette comme dans du
    elle est et il ils je le les leur mais ne nous ou où par pas plus pour pourquoi qu qui sa sans
    ses si sont sur une vous che ci come da dal dei della delle di gli ha ho nel nella non perché
    più sono uno ao aos em isso na não nas nos os pela pelo quando sem ser um uma aan bij dat deze
    dit een er het hoe ik met naar niet nog om ook op te uit van voor waar wat wij ze zijn""".split()
)
# pairs that are grammar, or that any request has: Kana, particles, polite endings
_SAYS_NOTHING = re.compile(
    r"[\u3041-\u309f]{2}|[的了吗呢吧嗎們们].|.[的了吗呢吧嗎們们]"
    r"|什么|怎么|这个|那个|一个|可以|没有|如果|因为|所以|但是|需要|不要|帮我|一下|为什|如何|时候|现在|应该|一些"
    r"|什麼|怎麼|這個|那個|一個|沒有|為什|時候|現在|應該|請問|请问|请把|請把"
    r"|습니|니다|세요|주세|해주|하는|하고|에서|으로|입니|어떻|떻게|하면|있는|있습|합니|는데|해야|되는|하지|지금"
)
_ENDINGS = "ations ation ings ing edly ied ies ers ed er es ly s e".split()
_MIN_STEM = 3
MAX_NAME = 80  # characters of a mistyped name: the time that it takes grows with their square
FOREIGN_LETTERS = 0.3  # of a text's letters: another script
ACCENTED, FOREIGN_WORDS = 0.04, 0.08  # shares of letters and words of a text in another language


def small(text: str) -> str:
    """Return a text in small letters; the Turkish I with and without a dot are one."""
    return text.translate(_TURKISH).lower()


def split_unspaced(text: str) -> str:
    """Split unspaced scripts into pairs of characters. Idempotent."""
    if text.isascii():
        return text
    return _RUN.sub(_pairs, composed(text).translate(_TURKISH))


def _pairs(run: re.Match[str]) -> str:
    whole = run[0]
    return f" {' '.join(map(''.join, pairwise(whole))) or whole} "


def words_of(text: str) -> list[str]:
    """Return the words of a text in small letters, in their order."""
    return WORD.findall(split_unspaced(text).lower())


def terms_of(text: str) -> list[str]:
    """Return the words, flags and codes of a text, folded, in order."""
    return _TERM.findall(split_unspaced(text).casefold())


def says_nothing(word: str) -> bool:
    """Whether a word of a query that is not English says nothing of its subject."""
    return word in SMALL_WORDS or (not word.isascii() and _SAYS_NOTHING.fullmatch(word) is not None)


def searched_words(text: str) -> list[str]:
    """Return the words of a text that are searched for, in their order."""
    words = words_of(text)
    return [word for word in words if word not in INDEX_STOP_WORDS and not says_nothing(word)]


def count(number: int, noun: str, plural: str = "") -> str:
    """Return a number with its noun: `1 file`, `2,000 files`, with a `plural` of its own `2 entries`."""
    return f"{number:,} {noun if number == 1 else plural or f'{noun}s'}"


def ago(seconds: float) -> str:
    """Return an age in words, such as "5 minutes ago"."""
    for unit, size in (("days", 86_400), ("hours", 3600), ("minutes", 60)):
        if seconds >= 2 * size:
            return f"{seconds // size:.0f} {unit} ago"
    return f"{count(round(max(0, seconds)), 'second')} ago"


def nearest(name: str, names: Iterable[str], least: float = 0.6) -> str:
    """Return the name nearest to a mistyped one; "" if all are less like it than `least`, 0 to 1."""
    import difflib

    return next(iter(difflib.get_close_matches(name[:MAX_NAME], list(names), 1, least)), "")


def meant(name: str, names: Iterable[str]) -> str:
    """Return the name that a short or mistyped one means; "" for none. `dev` means `development`."""
    names = list(names)
    longer = [each for each in names if len(name) > 1 and each.startswith(name)]
    return min(longer, key=lambda each: (each.count("/"), each)) if longer else nearest(name, names)


@lru_cache(maxsize=65_536)
def stem_of(word: str) -> str:
    """Return about what LanceDB's stemmer leaves of an English word."""
    for ending in _ENDINGS:
        stem = word.removesuffix(ending)
        if stem != word and len(stem) >= _MIN_STEM:
            return stem[:-1] if stem[-1] == stem[-2] and stem[-1] not in "lsz" else stem
    return word


def is_foreign(text: str) -> bool:
    """Whether a text is in another language than English, by its letters and small words."""
    letters = [char for char in text if char.isalpha()]
    accented = sum(not char.isascii() for char in letters)
    words = words_of(text)
    small = sum(word in SMALL_WORDS for word in words)
    return accented > ACCENTED * len(letters) or small > FOREIGN_WORDS * len(words)


def is_unspaced(char: str) -> bool:
    """Whether a character is of a language whose words have no blanks between them."""
    return _RUN.match(char) is not None
