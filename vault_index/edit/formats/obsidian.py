"""Notes of an Obsidian vault: markdown with wikilinks, embeds, callouts, comments and inline tags."""

from __future__ import annotations

import re

from vault_index.edit.formats.lesson_file import Draft, draft_of, pieces, stem_of, text_of
from vault_index.lesson.edits import set_keys
from vault_index.lesson.file import LessonFile
from vault_index.lesson.frontmatter import metadata_of
from vault_index.lesson.parse import parse_file

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
    if _TEMPLATES.search(path) or has_sign(text, _PLACEHOLDER):
        return []
    file = LessonFile.of_text(text, path)
    metadata_of(file)  # raises for what no vault could read
    body = file.text(file.body).rstrip()
    if not body:
        return []
    plain, tags = plain_markdown(body)
    text = "".join(file.lines[: file.body.start]) + plain + "\n"
    lessons = parse_file(text.encode(), path)
    if tags and lessons:
        lesson_tags = list(lessons[0].tags)
        names = {tag.lower().lstrip("#") for tag in lesson_tags}
        new = [tag for tag in tags if tag.lower() not in names]
        if new:
            text = set_keys(text.encode(), {"tags": lesson_tags + new}, path).decode()
    return draft_of(text, path, stem_of(path))


def plain_markdown(body: str) -> tuple[str, list[str]]:
    """Return a note's body as plain markdown, and the tags in it, each once."""
    tags: dict[str, str] = {}
    written = []
    for is_code, piece in pieces(body):
        if not is_code:
            piece = _INLINE.sub(lambda match: _plain(match, tags), _CALLOUT.sub(_quote, piece))
        written.append(piece)
    return "".join(written), list(tags.values())


def has_sign(text: str, sign: re.Pattern[str] = _SIGN) -> bool:
    """Whether text outside code has a sign: a wikilink, a comment or a callout."""
    prose = (piece for is_code, piece in pieces(text) if not is_code)
    return any(match["sign"] for piece in prose for match in sign.finditer(piece))


def _plain(match: re.Match[str], tags: dict[str, str]) -> str:
    """Return the text in place of a link, an embed or a comment; add a tag to `tags` and keep it."""
    if match["code"] is not None:
        return match.group()
    if match["comment"] is not None:
        return ""
    if match["tag"] is not None:
        tag = match["tag"].strip("/")
        if re.search(r"[^\W\d_]", tag):  # "#123" is an issue
            tags.setdefault(tag.lower(), tag)
        return match.group()
    note, _, part = match["target"].partition("#")
    if match["embed"] and _ATTACHMENT.search(note.strip()):
        return ""
    note = note.partition("^")[0] or part
    return (match["alias"] or "").strip() or note.strip() or match.group()


def _quote(match: re.Match[str]) -> str:
    title = match["title"].strip() or match["kind"].partition("|")[0].strip().capitalize()
    return f"{match['quote']}**{title}**"
