"""Markdown that anybody may have written -> HTML that is harmless by construction.

HTML in the text is text: tags are those of the parser, and no attribute or address of the text is passed
on unchecked. So nothing runs, nothing loads, and a link leads to the web, a mail address or one of our
own pages.
"""

from __future__ import annotations

import functools
import posixpath
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

from markdown_it import MarkdownIt
from markdown_it.renderer import RendererHTML
from markdown_it.token import Token
from markupsafe import Markup, escape

from vault_index.entrypoints.web.render import address_of_lesson
from vault_index.hotpath import index_files
from vault_index.lesson import parse
from vault_index.text.quote import visible

if TYPE_CHECKING:
    from markdown_it.rules_core import StateCore

MAX_CHARS = 100_000  # of a text that is rendered: forty pages
MAX_LINES = 10_000
# In a longer paragraph, or a text with more brackets, marks are text: some cost n * n steps.
MAX_PROSE = 6_000  # characters
MAX_BRACKETS = 5_000
MAX_NESTING = 40  # what is deeper is left out
TOP = 3  # the level of a text's highest heading: the page has levels 1 and 2
LOWEST = 6

_OWN_PAGE = re.compile(r"/(?:\?|lesson/|documents$|ask$)")
_MAIL = re.compile(r"[^\s@<>\"]+@[^\s@<>\"]+")


def html_of(text: str, path: str = "") -> Markup:
    """Return a markdown text as HTML without anything that acts.

    `path` is the file that the text is from, below the vault's root: links from it to other lesson
    files lead to their pages. Headings begin at level 3.
    """
    shown, left = _bounded(text)
    env: dict[str, Any] = {"path": path, "links": []}  # the ends of the links that are open
    parser = _parser()
    tokens = parser.parse(visible(shown), env)
    levels = [int(token.tag[1]) for token in tokens if token.type == "heading_open"]
    env["lower"] = TOP - min(levels, default=TOP)
    html = Markup(parser.renderer.render(tokens, parser.options, env))
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
    options = {"html": False, "xhtmlOut": False, "maxNesting": MAX_NESTING}
    parser = MarkdownIt("commonmark", options, renderer_cls=_Renderer).enable("table")
    parser.core.ruler.before("inline", "bound", _bound)
    return parser


def _bound(state: StateCore) -> None:
    """Have paragraphs that would take seconds taken as text without marks."""
    longest = -1 if state.src.count("[") > MAX_BRACKETS else MAX_PROSE
    for token in state.tokens:
        if token.type == "inline" and len(token.content) > longest:
            token.type = "prose"


class _Renderer(RendererHTML):
    """The parser's own HTML, with levels, links and images as our pages have them.

    Tags are those of the parser. No attribute comes from a text, but the number that begins a list.
    """

    def renderToken(self, tokens: Sequence[Token], idx: int, options: Any, env: Any) -> str:
        """Write a tag."""
        token = tokens[idx]
        start = token.attrs.get("start")
        token.attrs = {} if start is None else {"start": int(start)}
        if token.type.startswith("heading_"):
            token.tag = f"h{min(LOWEST, int(token.tag[1]) + env['lower'])}"
        return super().renderToken(tokens, idx, options, env)

    def table_open(self, *_: object) -> str:
        """Begin a block that scrolls, and can be reached by keyboard."""
        return '<div class="scroll" tabindex="0"><table>\n'

    def table_close(self, *_: object) -> str:
        """End what a table began."""
        return "</table></div>\n"

    def fence(self, tokens: Sequence[Token], idx: int, *_: object) -> str:
        """Write a block of code, under the language that its author named."""
        token = tokens[idx]
        language = token.info.split()[0][:40] if token.info.strip() else ""
        label = f"<small>{escape(language)}</small>" if language else ""
        return f'{label}<pre tabindex="0"><code>{escape(token.content)}</code></pre>\n'

    def code_block(self, tokens: Sequence[Token], idx: int, *_: object) -> str:
        """Write a block of code that is only indented."""
        return self.fence(tokens, idx)

    def prose(self, tokens: Sequence[Token], idx: int, *_: object) -> str:
        """Write a text whose marks were not looked at."""
        return str(escape(tokens[idx].content))

    def link_open(self, tokens: Sequence[Token], idx: int, _options: Any, env: Any) -> str:
        """Begin a link that may be one."""
        address = _shown_address(str(tokens[idx].attrGet("href") or ""), env["path"])
        env["links"].append("</a>" if address else "")
        return _link(address) if address else ""

    def link_close(self, _tokens: Sequence[Token], _idx: int, _options: Any, env: Any) -> str:
        """End a link, if it began."""
        return str(env["links"].pop())

    def image(self, tokens: Sequence[Token], idx: int, options: Any, env: Any) -> str:
        """Write a link to an image, which a page never loads, or its description where it has none."""
        address = _shown_address(str(tokens[idx].attrGet("src") or ""), "")
        words = self.renderInlineAsText(tokens[idx].children or [], options, env)
        text = f"image: {words or address or 'without a description'}"
        if any(env["links"]) or not address:
            return str(escape(text))
        return f"{_link(address)}{escape(text)}</a>"


def _link(address: str) -> str:
    return f'<a href="{escape(address)}" rel="noreferrer noopener">'


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
    return _lesson_page(unquote(parts.path), unquote(parts.fragment), path)


def _lesson_page(target: str, section: str, path: str) -> str:
    """Return the page of the lesson file that a link in another file means; "" for any other file."""
    file = posixpath.normpath(posixpath.join(posixpath.dirname(path), target))
    folder, _, below = file.partition("/")
    if not path or not target.endswith(".md") or folder != index_files.FOLDER or not below:
        return ""
    return address_of_lesson(parse.id_of(below) + f"#{section}" * bool(section))
