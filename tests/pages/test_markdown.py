"""Lessons as HTML: what anybody may have written stays text, and only an allow-list of tags comes out."""

from __future__ import annotations

import re
import time
from html.parser import HTMLParser

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vault_index.entrypoints.web import markdown
from vault_index.entrypoints.web.markdown import MAX_CHARS, html_of

PATH = "lessons/devops/heap.md"
TAGS = {
    *("p", "span", "h3", "h4", "h5", "h6", "ul", "ol", "li", "blockquote", "em", "strong"),
    *("code", "pre"),
    *("a", "hr", "br", "small", "div", "table", "thead", "tbody", "tr", "th", "td"),
}
ATTRIBUTES = {
    ("a", "href"),
    ("a", "rel"),
    ("ol", "start"),
    ("pre", "tabindex"),
    ("div", "tabindex"),
    ("div", "class"),
    ("span", "class"),
}
TRICKS = [
    "<script>alert(1)</script>",
    "<ScRiPt\n>alert(1)</sCrIpT >",
    "<img src=x onerror=alert(1)>",
    "<svg/onload=alert(1)><math><mi xlink:href=javascript:alert(1)>",
    "<iframe srcdoc='<script>alert(1)</script>'></iframe><base href=//evil.example>",
    "<style>@import 'http://evil.example'</style><link rel=stylesheet href=//evil.example>",
    "<form action=http://evil.example><input name=key></form><meta http-equiv=refresh content=0>",
    "<!-- --><!--><img src=x onerror=alert(1)>--><![CDATA[<script>alert(1)</script>]]>",
    "</pre></code></main></body></html><script>alert(1)</script>",
    "[a](javascript:alert(1)) [a](JaVaScRiPt:alert(1)) [a](  javascript:alert(1))",
    "[a](&#106;avascript:alert(1)) [a](java&#10;script:alert(1)) [a](java&Tab;script:alert(1))",
    "[a](vbscript:x) [a](data:text/html;base64,PHNjcmlwdD4=) [a](file:///etc/passwd)",
    "[a](javascript&colon;alert(1)) [a](\\javascript:alert(1)) [a](\x01javascript:alert(1))",
    "[a](//evil.example) [a](/\\evil.example) [a](\\\\evil.example) [a](http:evil.example)",
    "[a]: javascript:alert(1)\n\n[a] [a][a] ![a][a]",
    "<javascript:alert(1)> <data:text/html,x> <vbscript:x> <ssh://host/> <blob:x>",
    '[a](http://a.example/"onmouseover="alert(1)) [a](http://a.example "x\\" onclick=\\"y")',
    '![x](http://evil.example/pixel.gif) ![x" onerror="alert(1)](http://evil.example/p.gif)',
    "![x](data:image/svg+xml;base64,PHN2Zz4=) ![x](javascript:alert(1)) ![x](/page/private/x)",
    "[![x](http://a.example/i.png)](javascript:alert(1)) ![a ![b](c) <img>](http://x.example)",
    "[a](/page/private/agents/list) [a](/api/journal/search) [a](/static/x) [a](/docs)",
    "[a](../../../etc/passwd.md) [a](../../out.md) [a](/etc/passwd) [a](..%2f..%2fx.md)",
    '```js onload=alert(1) "><script>\n</code></pre><script>alert(1)</script>\n```',
    "`<script>` ``<img onerror=x>`` &lt;script&gt; &#60;script&#62;",
    "| <script> | [a](javascript:x) |\n|:--|:-:|\n| <img onerror=x> | ![x](http://e.example) |",
    "1234567890. a\n\n99999999999. b\n",
    "# <script>\n## <img onerror=x>\n####### seven\n<h1 id=x onclick=y>z</h1>",
    "\u202etxt.exe\u202c \x1b[31mred\x00 \ud800 \u2028<script>\u2029",
]
WORDS = (
    *("[", "](", ")", "![", "<", ">", "`", "```", "\n", "\n\n", "    ", "|", "|-|\n", "# ", "- "),
    *("> ", "1. ", '"', "'", "&", "&#106;", ";", "javascript:", "data:", "http://", "//", "\\"),
    *("<script>", "<img src=x onerror=y>", "on", "=", "a", "é", "\x00", "\u202e", "*"),
    *("_", "---\n"),
)


class Read(HTMLParser):
    """What a browser would make of it: tags with their attributes, and text."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.open: list[str] = []
        self.attributes: list[tuple[str, str, str]] = []
        self.words = ""
        self.others: list[str] = []
        self.feed(str(html))
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.open += [] if tag in ("hr", "br") else [tag]
        self.attributes += [(tag, name, value or "") for name, value in attrs]

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.words += data

    def handle_comment(self, data: str) -> None:
        self.others.append(data)

    def handle_decl(self, decl: str) -> None:
        self.others.append(decl)

    def unknown_decl(self, data: str) -> None:
        self.others.append(data)

    @property
    def links(self) -> list[str]:
        return [value for _, name, value in self.attributes if name == "href"]


def read(text: str) -> Read:
    """Render a text, and hold that there is nothing in it but what the allow-lists name."""
    page = Read(html_of(text, PATH))
    assert set(page.tags) <= TAGS
    assert {(tag, name) for tag, name, _ in page.attributes} <= ATTRIBUTES
    classes = {(tag, value) for tag, name, value in page.attributes if name == "class"}
    of_code = {value for tag, value in classes if tag == "span"}
    assert {value for tag, value in classes if tag != "span"} <= {"scroll"}
    assert all(re.fullmatch("[a-z0-9]{1,3}", str(value)) for value in of_code)
    assert not page.open
    assert not page.others
    for link in page.links:
        assert link.startswith(("http://", "https://", "mailto:", "/lesson/", "/lessons")), link
        assert not link.startswith("//")
        assert not set(link) & set("\"'<>\\ \n\t")
    return page


@pytest.mark.parametrize("text", TRICKS)
def test_what_would_run_or_load_is_text(text: str) -> None:
    read(text)
    for around in ("> {}", "- {}", "# {}", "**{}**", "[{}](http://a.example)", "| {} |\n|-|\n"):
        read(around.format(text))


@pytest.mark.slow
@settings(max_examples=300, deadline=None)
@given(st.lists(st.sampled_from(WORDS), max_size=40).map("".join))
def test_no_mixture_of_marks_becomes_anything_else(text: str) -> None:
    read(text)


def test_what_cannot_be_itself_is_shown_in_words() -> None:
    script = "Never write <script>alert(1)</script> there."
    assert read(script).words.strip() == script
    assert "\\u202e" in read("\u202etxt.exe").words  # it would turn the direction of text


def test_a_lesson_is_laid_out() -> None:
    page = read(
        "# Why\nRaise *the* **heap**:\n\n1. a\n2. b\n\n```sh\nnode\n```\n\n|a|b|\n|-|-|\n|1|2|"
    )
    assert page.tags == [
        *("h3", "p", "em", "strong", "ol", "li", "p", "li", "p")[:6],
        *("li", "small", "pre", "code"),
        *("div", "table", "thead", "tr", "th", "th", "tbody", "tr", "td", "td"),
    ]
    assert "shnode" in page.words


@pytest.mark.parametrize(
    ("text", "tags"),
    [("# a\n## b\n### c", ["h3", "h4", "h5"]), ("### c\n###### f", ["h3", "h6"]), ("## b", ["h3"])],
)
def test_headings_are_below_those_of_the_page(text: str, tags: list[str]) -> None:
    assert read(text).tags == tags


@pytest.mark.parametrize(
    ("target", "address"),
    [
        ("other.md", "/lesson/devops/other"),
        ("./other.md", "/lesson/devops/other"),
        ("../testing/a%20b.md", "/lesson/testing/a%20b"),
        ("notes.md#raise-it", "/lesson/devops/notes%23raise-it"),
        ("/lesson/devops/heap", "/lesson/devops/heap"),
        ("/lessons?c=devops", "/lessons?c=devops"),
        ("https://a.example/x?y=1&z=2#w", "https://a.example/x?y=1&z=2#w"),
        ("mailto:team@a.example", "mailto:team@a.example"),
    ],
)
def test_links_lead_to_the_web_and_to_other_lessons(target: str, address: str) -> None:
    assert read(f"[it]({target})").links == [address]


@pytest.mark.parametrize(
    "target",
    ["../../README.md", "../../../etc/x.md", "other.txt", "#part", "heap", "?c=x", "ftp://a", "/"],
)
def test_a_link_that_leads_elsewhere_is_its_words(target: str) -> None:
    page = read(f"[it]({target})")
    assert page.links == []
    assert page.words.strip() == "it"
    assert Read(html_of("[it](other.md)")).links == []  # nor a file without the lesson's path


def test_an_image_is_a_link_with_its_description() -> None:
    page = read(
        "![The graph](https://a.example/graph.png) ![](https://a.example/x.png) ![local](x.png)"
    )
    assert page.links == ["https://a.example/graph.png", "https://a.example/x.png"]
    assert "image: The graph" in page.words
    assert "image: https://a.example/x.png" in page.words
    assert "image: local" in page.words


@pytest.mark.parametrize(
    "text",
    ["[" * 10**6, "[a](b " * 10**5, "> " * 10**5, "*a **a " * 10**5, "\n" * 10**6, "a\n" * 10**6],
)
def test_a_text_of_a_million_marks_takes_a_moment(text: str) -> None:
    began = time.process_time()
    read(text)
    assert time.process_time() - began < 5


def test_a_very_long_text_ends_with_how_much_is_left_out() -> None:
    page = read("word\n" * 50_000)
    assert len(page.words) < MAX_CHARS + 100
    assert page.words.rstrip().endswith("more characters are in the file.")


def test_code_is_coloured_and_stays_what_it_says() -> None:
    shown = html_of("```sh\nNODE_OPTIONS=1 npm run build  # <b>\n```\n")
    assert '<span class="c1"># &lt;b&gt;</span>' in shown
    assert re.sub("<[^>]+>", "", shown).strip() == "shNODE_OPTIONS=1 npm run build  # &lt;b&gt;"
    plain = html_of("```nosuch\nx = 1\n```\n")
    assert '<pre tabindex="0"><code>x = 1\n</code></pre>' in plain


@pytest.mark.parametrize("text", ["\t\n", "e.", "a", "(", "'''", "{%", "<<A\n", "a: ", "=("])
def test_hostile_code_is_coloured_within_a_moment(text: str) -> None:
    began = time.process_time()
    for language in sorted(markdown.LANGUAGES):
        html_of(f"```{language}\n{text * (markdown.MAX_CODE // len(text))}\n```\n")
    assert time.process_time() - began < 0.5 * len(markdown.LANGUAGES)


DEEP = "Some words first. " * 30 + "Raise the `heap` of **node** now. " + "More words. " * 60


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("# Title\n\nRaise **the** `heap`.", "Raise the <mark>heap</mark>."),
        ("One.\n\n```sh\nheap 1\n```\n", "One. <mark>heap</mark> 1"),
        ("- a\n- the [heap](https://x.example)\n", "a the <mark>heap</mark>"),
        (DEEP, "Raise the <mark>heap</mark> of node now."),
        ("<b>heap</b> ![a <i>](x)", "&lt;b&gt;<mark>heap</mark>&lt;/b&gt; a &lt;i&gt;"),
    ],
)
def test_an_excerpt_is_words_around_the_first_marked_one(text: str, shown: str) -> None:
    excerpt = markdown.excerpt_of(text, 320, re.compile("heap"), "Title")
    assert shown in excerpt
    assert len(re.sub("<[^>]+>", "", excerpt)) < 400
    assert set(re.findall("<[^>]+>", excerpt)) <= {"<mark>", "</mark>"}
