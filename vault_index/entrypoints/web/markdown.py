"""Markdown that anybody may have written -> HTML that is harmless by construction.

HTML in the text is text: the parser makes all tags, and each attribute and address is checked. So nothing
runs, nothing loads, and a link leads to the web, a mail address or one of our pages.
"""

from __future__ import annotations

import functools
import posixpath
import re
from collections.abc import Callable, Sequence
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
# Code is coloured in these languages, as long as that takes a moment whatever it says.
LANGUAGES = frozenset(
    "bash sh shell zsh console python py pycon javascript js typescript ts jsx tsx json yaml yml toml "
    "ini html css sql go rust java kotlin c cpp csharp ruby php swift docker dockerfile diff xml nginx "
    "terraform hcl powershell lua graphql".split()
)
MAX_CODE = 2_000  # characters of a block
MAX_COLOURED = 10_000  # characters of a text
BEFORE_CHARS = 80  # of an excerpt before the first word that is marked

_OWN_PAGE = re.compile(r"/(?:lessons(?:\?|$)|lesson/|ask$)")
_MAIL = re.compile(r"[^\s@<>\"]+@[^\s@<>\"]+")


Mark = Callable[[re.Match[str]], str]


def _highlight(match: re.Match[str]) -> str:
    return f"<mark>{escape(match[0])}</mark>"


def html_of(
    text: str, path: str = "", marked: re.Pattern[str] | None = None, mark: Mark = _highlight
) -> Markup:
    """Return a markdown text as HTML without anything that acts.

    `path` is the file that the text is from, below the vault's root: links from it to other lesson
    files lead to their pages. Headings begin at level 3. `mark` makes HTML of what is `marked`,
    outside of code and links.
    """
    shown, hidden = _bounded(text)
    # the ends of the links that are open
    env: dict[str, Any] = {"path": path, "links": [], "marked": marked, "mark": mark}
    parser = _parser()
    tokens = parser.parse(visible(shown), env)
    levels = [int(token.tag[1]) for token in tokens if token.type == "heading_open"]
    env["lower"] = TOP - min(levels, default=TOP)
    html = Markup(parser.renderer.render(tokens, parser.options, env))
    if hidden:
        html += Markup("<p><em>{} more characters are in the file.</em></p>").format(f"{hidden:,}")
    return html


def excerpt_of(text: str, chars: int, marked: re.Pattern[str] | None, title: str = "") -> Markup:
    """Return a piece of a markdown text without its marks, from about the first marked word on.

    A heading that repeats the title is left out.
    """
    tokens = _parser().parse(text[: 10 * MAX_PROSE], {})
    blocks = [" ".join(_words_of(token).split()) for token in tokens if token.content.strip()]
    plain = " ".join(block for block in blocks if block != title)
    match = marked.search(plain) if marked else None
    begin = match.start() - BEFORE_CHARS if match and match.start() > BEFORE_CHARS else 0
    shown = plain[begin : begin + chars]
    shown = f"… {shown.partition(' ')[2] or shown}" if begin else shown
    if begin + chars < len(plain):
        shown = f"{shown.rpartition(' ')[0] or shown} …"
    return with_marks(shown, marked)


def _words_of(token: Token) -> str:
    """Return the words of a block, its links and its images."""
    if not token.children:
        return token.content
    return "".join(child.content or " " * child.type.endswith("break") for child in token.children)


def _bounded(text: str) -> tuple[str, int]:
    """Return the part of a text that is rendered, whole lines if possible, and the size of the rest."""
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

    Tags are the parser's. No attribute comes from a text, but the number that begins a list.
    """

    def renderToken(self, tokens: Sequence[Token], idx: int, options: Any, env: Any) -> str:
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
        return "</table></div>\n"

    def fence(self, tokens: Sequence[Token], idx: int, _options: Any, env: Any) -> str:
        """Write a block of code, under the language that its author named."""
        token = tokens[idx]
        language = token.info.split()[0][:40] if token.info.strip() else ""
        env["coloured"] = env.get("coloured", 0) + len(token.content)
        is_short = len(token.content) <= MAX_CODE and env["coloured"] <= MAX_COLOURED
        is_coloured = is_short and language.lower() in LANGUAGES
        code = _coloured(token.content, language.lower()) if is_coloured else escape(token.content)
        label = f"<small>{escape(language)}</small>" if language else ""
        return f'{label}<pre tabindex="0"><code>{code}</code></pre>\n'

    def code_block(self, tokens: Sequence[Token], idx: int, options: Any, env: Any) -> str:
        return self.fence(tokens, idx, options, env)

    def text(self, tokens: Sequence[Token], idx: int, _options: Any, env: Any) -> str:
        marked = None if any(env["links"]) else env["marked"]
        return with_marks(tokens[idx].content, marked, env["mark"])

    prose = text  # one whose marks were not looked at

    def code_inline(self, tokens: Sequence[Token], idx: int, *_: object) -> str:
        """Write code within a line, without the parser's own attributes."""
        return f"<code>{escape(tokens[idx].content)}</code>"

    def link_open(self, tokens: Sequence[Token], idx: int, _options: Any, env: Any) -> str:
        address = _shown_address(str(tokens[idx].attrGet("href") or ""), env["path"])
        env["links"].append("</a>" if address else "")
        return _link(address) if address else ""

    def link_close(self, _tokens: Sequence[Token], _idx: int, _options: Any, env: Any) -> str:
        return str(env["links"].pop())

    def image(self, tokens: Sequence[Token], idx: int, options: Any, env: Any) -> str:
        address = _shown_address(str(tokens[idx].attrGet("src") or ""), "")
        words = self.renderInlineAsText(tokens[idx].children or [], options, env)
        text = f"image: {words or address or 'without a description'}"
        if any(env["links"]) or not address:
            return str(escape(text))
        return f"{_link(address)}{escape(text)}</a>"


@functools.lru_cache(maxsize=256)
def _coloured(code: str, language: str) -> str:
    from pygments import highlight  # a tenth of a second
    from pygments.formatters import HtmlFormatter
    from pygments.lexers import get_lexer_by_name

    lexer = get_lexer_by_name(language, stripnl=False, ensurenl=False)
    return str(highlight(code, lexer, HtmlFormatter(nowrap=True)))


def with_marks(text: str, marked: re.Pattern[str] | None, mark: Mark = _highlight) -> Markup:
    """Return a text as HTML with each match in a mark of its own."""
    text, html, end = visible(text), "", 0
    for match in marked.finditer(text) if marked else ():
        html += f"{escape(text[end : match.start()])}{mark(match)}"
        end = match.end()
    return Markup(html) + escape(text[end:])


def title_with_marks(title: str, marked: re.Pattern[str] | None) -> Markup:
    """Return a title as HTML: what is between backticks as code, what matches in a mark."""
    parts = title.split("`")
    if len(parts) % 2 == 0:  # one backtick is without its pair
        return with_marks(title, marked)
    html = (with_marks(part, marked) for part in parts)
    tags = (
        Markup("<code>{}</code>").format(each) if index % 2 else each
        for index, each in enumerate(html)
    )
    return Markup("").join(tags)


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
