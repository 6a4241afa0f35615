"""The concepts of an Open Knowledge Format bundle: markdown with a `type`, of any version."""

from __future__ import annotations

import re

from vault_index.edit.formats.lesson_file import Draft, draft_of, stem_of, text_of
from vault_index.lesson.edits import set_keys
from vault_index.lesson.file import LessonFile
from vault_index.lesson.frontmatter import metadata_of
from vault_index.lesson.parse import parse_time

_RESERVED = ("index.md", "log.md")  # at each level of a bundle: a listing, a history


def read_okf(data: bytes, path: str) -> list[Draft]:
    """Read a concept, whose keys stay: one draft, or none for a listing, a history, or a deprecated one.

    The description goes before its text, where searches and agents see it. When the text was made, when
    a person confirmed it and what it is about become keys of a lesson. Raises LessonError.
    """
    file = LessonFile.of_text(text_of(data, path), path)
    keys = metadata_of(file)
    if path.rpartition("/")[2] in _RESERVED or keys.get("status") == "deprecated":
        return []
    about, body = " ".join(str(keys.get("description") or "").split()), file.text(file.body).strip()
    text = body if about in body else f"{about}\n\n{body}"
    generated, verified = keys.get("generated"), keys.get("verified")
    verifications = verified if isinstance(verified, list) else [verified]
    events = [each for each in verifications if isinstance(each, dict)]
    people = [each for each in events if str(each.get("by")).startswith("human:")]
    more = {
        "title": " ".join(re.split(r"[-_\s]+", stem_of(path))),
        "created": parse_time(
            generated.get("at") if isinstance(generated, dict) else keys.get("timestamp")
        ),
        "confirmed": max(
            filter(None, (parse_time(each.get("at")) for each in people)), default=None
        ),
        "source": str(keys.get("resource") or "") or None,
    }
    whole = "".join(file.lines[: file.body.start]) + text + "\n"
    new = {name: value for name, value in more.items() if value and not keys.get(name)}
    return draft_of(set_keys(whole.encode(), new, path).decode(), path, stem_of(path))
