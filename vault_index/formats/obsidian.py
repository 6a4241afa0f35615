"""Notes of an Obsidian vault: markdown with wikilinks, embeds, callouts, comments and inline tags."""

from __future__ import annotations

import re

from vault_index.formats.draft import Draft, stem_of
from vault_index.formats.file_text import pieces, text_of
from vault_index.formats.markdown_files import draft_of
from vault_index.frontmatter_edit import set_keys
from vault_index.lesson import parse_file, split_frontmatter

_SPAN = r"(?P<code>(?<!`)(?P<ticks>`+)(?!`)[^\n]*?(?<!`)(?P=ticks)(?!`))"
_INLINE = re.compile(
    rf"""{_SPAN}
    | (?<![\w%])%%(?P<comment>.*?)%%
    | (?<!\w)(?P<embed>!?)\[\[(?!\s) (?P<target>[^\[\]|\n]*?) (?:\\?\|(?P<alias>[^\[\]\n]*))? \]\]
    | (?<!\S)\#(?P<tag>[\w/-]+)""",
    re.VERBOSE | re.DOTALL,
)
_CALLOUT = re.compile(
    r"^(?P<quote>[ \t]*>[> \t]*)\[!(?P<kind>[^\]\n]+)\][+-]?[ \t]*(?P<title>[^\n]*)$", re.MULTILINE
)
_ATTACHMENT = re.compile(
    r"\.(?:png|jpe?g|gif|svg|webp|bmp|avif|pdf|mp[34]|m4a|wav|ogg|flac|mov|webm|mkv|canvas|base"
    r"|excalidraw(?:\.md)?)$",
    re.IGNORECASE,
)
_SIGN = re.compile(
    rf"{_SPAN}|(?P<sign>(?<!\w)\[\[[^\s\[\]][^\[\]\n]*\]\]|(?<![\w%])%%.*?%%|^[ \t]*>[> \t]*\[![\w-]+\])",
    re.MULTILINE | re.DOTALL,
)
_PLACEHOLDER = re.compile(
    _SPAN + r"|(?P<sign>\{\{(?:title|date|time)(?::[^}\n]{0,80})?\}\}|<%\*?\s*tp\..{0,1000}?%>)",
    re.DOTALL,
)
_TEMPLATES = re.compile(r"(?:^|/)[_\d. -]*templates?/", re.IGNORECASE)


def read_obsidian(data: bytes, path: str) -> list[Draft]:
    """Read a note: one draft, or none when it has no text or is a template for notes.

    Raises LessonError, with the line, for what no vault could read.
    """
    text = text_of(data, path)
    if _TEMPLATES.search(path) or _has(_PLACEHOLDER, text):
        return []
    _, body = split_frontmatter(text, path)
    if not body:
        return []
    whole = text.rstrip()
    plain, tags = plain_markdown(body)
    text = whole[: len(whole) - len(body)] + plain + "\n"
    lessons = parse_file(text.encode(), path)
    if tags and lessons:
        own = list(lessons[0].tags)
        known = {tag.lower().lstrip("#") for tag in own}
        new = [tag for tag in tags if tag.lower() not in known]
        if new:
            text = set_keys(text.encode(), {"tags": own + new}, path).decode()
    return draft_of(text, path, stem_of(path))


def plain_markdown(body: str) -> tuple[str, list[str]]:
    """Write a note's body as plain markdown; give the tags that stand in it too, each once."""
    tags: dict[str, str] = {}
    written = [
        piece
        if code
        else _INLINE.sub(lambda found: _plain(found, tags), _CALLOUT.sub(_quote, piece))
        for code, piece in pieces(body)
    ]
    return "".join(written), list(tags.values())


def looks_like_obsidian(text: str) -> bool:
    """Tell whether text outside code has a wikilink, a comment or a callout."""
    return _has(_SIGN, text)


def _has(sign: re.Pattern[str], text: str) -> bool:
    return any(
        found["sign"] for code, piece in pieces(text) if not code for found in sign.finditer(piece)
    )


def _plain(found: re.Match[str], tags: dict[str, str]) -> str:
    """Give what stands for a link, an embed or a comment; note a tag and leave it where it is."""
    if found["code"] is not None:
        return found.group()
    if found["comment"] is not None:
        return ""
    if found["tag"] is not None:
        tag = found["tag"].strip("/")
        if re.search(r"[^\W\d_]", tag):  # "#123" is an issue
            tags.setdefault(tag.lower(), tag)
        return found.group()
    note, _, part = found["target"].partition("#")
    if found["embed"] and _ATTACHMENT.search(note.strip()):
        return ""
    note = note.partition("^")[0] or part
    return (found["alias"] or "").strip() or note.strip() or found.group()


def _quote(found: re.Match[str]) -> str:
    title = found["title"].strip() or found["kind"].partition("|")[0].strip().capitalize()
    return f"{found['quote']}**{title}**"
