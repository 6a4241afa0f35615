"""Markdown that anybody may have written -> HTML that is harmless by construction.

No tag, attribute or address of the text is passed on. The parser only says what there is, and each
kind of token that `_Writer` knows has HTML of its own here; HTML in the text is text. So nothing runs,
nothing loads, and a link leads to the web, a mail address or one of our own pages.
"""

from __future__ import annotations

import functools
import posixpath
import re
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

from markupsafe import Markup, escape

from vault_index.characters import visible
from vault_index.entrypoints.web.pages.render import address_of_lesson
from vault_index.hotpath import locate
from vault_index.lesson import parse

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from markdown_it import MarkdownIt
    from markdown_it.rules_core import StateCore
    from markdown_it.token import Token

MAX_CHARS = 100_000  # of a text that is rendered: forty pages
MAX_LINES = 10_000
# In a longer paragraph, or a text with more brackets, marks are text: some cost n * n steps.
MAX_PROSE = 6_000  # characters
MAX_BRACKETS = 5_000
MAX_NESTING = 40  # what is deeper is left out
TOP = 3  # the level of a text's highest heading: the page has levels 1 and 2
LOWEST = 6

_TAGS = {
    **{"paragraph": "p", "bullet_list": "ul", "list_item": "li", "blockquote": "blockquote"},
    **{"em": "em", "strong": "strong", "thead": "thead", "tbody": "tbody", "tr": "tr"},
    **{"th": "th", "td": "td"},
}
_BLOCKS = frozenset(_TAGS) - {"em", "strong"}
# a block that scrolls can be reached by keyboard
_SCROLLING = '<div class="scroll" tabindex="0"><table>'
_OWN_PAGE = re.compile(r"/(?:\?|lesson/|documents$|ask$)")
_MAIL = re.compile(r"[^\s@<>\"]+@[^\s@<>\"]+")


def html_of(text: str, path: str = "") -> Markup:
    """Return a markdown text as HTML without anything that acts.

    `path` is the file that the text is from, below the vault's root: links from it to other lesson
    files lead to their pages. Headings begin at level 3.
    """
    shown, left = _bounded(text)
    writer = _Writer(_parser().parse(visible(shown)), path)
    html = Markup("").join(writer.html())
    if left:
        html += Markup("<p><em>{} more characters are in the file.</em></p>").format(f"{left:,}")
    return html


def _bounded(text: str) -> tuple[str, int]:
    """Return as much of a text as is rendered, whole lines if possible, and how much is left out."""
    shown = "".join(text.splitlines(keepends=True)[:MAX_LINES])[:MAX_CHARS]
    if len(shown) < len(text) and "\n" in shown:
        shown = shown[: shown.rindex("\n") + 1]
    return shown, len(text) - len(shown)


@functools.cache
def _parser() -> MarkdownIt:
    from markdown_it import MarkdownIt  # takes 65 ms

    options = {"html": False, "maxNesting": MAX_NESTING}
    parser = MarkdownIt("commonmark", options).enable("table")
    parser.core.ruler.before("inline", "bound", _bound)
    return parser


def _bound(state: StateCore) -> None:
    """Have paragraphs that would take seconds taken as text without marks."""
    from markdown_it.token import Token

    longest = -1 if state.src.count("[") > MAX_BRACKETS else MAX_PROSE
    for token in state.tokens:
        if token.type == "inline" and len(token.content) > longest:
            token.type = "prose"
            token.children = [Token("text", "", 0, content=token.content)]


class _Writer:
    """The tokens of one text, and what was written of them."""

    def __init__(self, tokens: Sequence[Token], path: str) -> None:
        self._tokens = tokens
        self._path = path
        levels = [int(token.tag[1]) for token in tokens if token.type == "heading_open"]
        self._lower = TOP - min(levels, default=TOP)
        self._links: list[str] = []  # the ends of the links that are open

    def html(self) -> Iterable[Markup]:
        """Yield the HTML of the tokens."""
        for token in self._tokens:
            if token.type in ("inline", "prose"):
                for child in token.children or ():
                    yield Markup(self._of(child))
            elif not token.hidden:
                yield Markup(self._of(token))

    def _of(self, token: Token) -> str:
        """Return the HTML of a token; what is not known here is text."""
        kind, _, side = token.type.rpartition("_")
        if kind in _TAGS:
            mark = "/" if side == "close" else ""
            return f"<{mark}{_TAGS[kind]}>" + "\n" * bool(mark and kind in _BLOCKS)
        match token.type:
            case "heading_open" | "heading_close":
                level = min(LOWEST, int(token.tag[1]) + self._lower)
                return f"<h{level}>" if side == "open" else f"</h{level}>\n"
            case "ordered_list_open":
                start = token.attrGet("start")
                return f'<ol start="{int(start)}">' if start is not None else "<ol>"
            case "ordered_list_close":
                return "</ol>\n"
            case "table_open":
                return _SCROLLING
            case "table_close":
                return "</table></div>\n"
            case "hr":
                return "<hr>\n"
            case "softbreak":
                return "\n"
            case "hardbreak":
                return "<br>\n"
            case "code_inline":
                return f"<code>{escape(token.content)}</code>"
            case "fence" | "code_block":
                return _code(token)
            case "link_open":
                return self._open_link(str(token.attrGet("href") or ""))
            case "link_close":
                return self._links.pop() if self._links else ""
            case "image":
                return self._image(token)
        return str(escape(token.content))

    def _open_link(self, address: str) -> str:
        shown = _shown_address(address, self._path)
        self._links.append("</a>" if shown else "")
        return _link(shown) if shown else ""

    def _image(self, token: Token) -> str:
        """Return a link to an image, which a page never loads, or its description where it has none."""
        address = _shown_address(str(token.attrGet("src") or ""), "")
        text = f"image: {_plain(token) or address or 'without a description'}"
        if any(self._links) or not address:
            return str(escape(text))
        return f"{_link(address)}{escape(text)}</a>"


def _link(address: str) -> str:
    return f'<a href="{escape(address)}" rel="noreferrer noopener">'


def _code(token: Token) -> str:
    """Return a block of code, under the language that its author named."""
    language = token.info.split()[0][:40] if token.info.strip() else ""
    label = f"<small>{escape(language)}</small>" if language else ""
    return f'{label}<pre tabindex="0"><code>{escape(token.content)}</code></pre>\n'


def _plain(token: Token) -> str:
    """Return the words of an image's description."""
    if token.children is None:
        return token.content
    return "".join(
        _plain(child) if child.type == "image" else child.content for child in token.children
    )


def _shown_address(address: str, path: str) -> str:
    """Return an address that a link may have; "" for any other."""
    if "\\" in address or any(ord(char) <= ord(" ") for char in address):
        return ""
    try:
        parts = urlsplit(address)
    except ValueError:
        return ""
    if parts.scheme in ("http", "https"):
        return address if parts.netloc else ""
    if parts.scheme == "mailto":
        return address if _MAIL.fullmatch(unquote(parts.path)) else ""
    if parts.scheme or parts.netloc:
        return ""
    if address.startswith("/"):
        return address if _OWN_PAGE.match(address) else ""
    return _of_lesson(unquote(parts.path), unquote(parts.fragment), path)


def _of_lesson(target: str, section: str, path: str) -> str:
    """Return the page of the lesson file that a link in another file means; "" if it is none."""
    file = posixpath.normpath(posixpath.join(posixpath.dirname(path), target))
    folder, _, below = file.partition("/")
    if not path or not target.endswith(".md") or folder != locate.FOLDER or not below:
        return ""
    return address_of_lesson(parse.id_of(below) + f"#{section}" * bool(section))
