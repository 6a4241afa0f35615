"""The text of a language model in a session's records, and the text by rule that it stands for.

A model's text takes the place of the text by rule: it is what is shown and searched. The text by rule
stays beside it, in `fields` of the record, under the name of its place with `rule_` before it. When
the session goes on, a model's text stays where a rule still says the same as then.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from vault_index.journal.record import FIELDS, SUMMARY, Record, Session

RULE = "rule_"
_TITLE, _TEXT = "title", "text"


def with_text(record: Record, texts: Mapping[str, str]) -> Record:
    """Return a record with a model's texts: `title` and `text`, of a summary its FIELDS.

    Empty ones leave the text by rule in its place.
    """
    before = by_rule(record)
    places = FIELDS if record.kind == SUMMARY else (_TITLE, _TEXT)
    texts = {place: texts[place] for place in places if texts.get(place, "").strip()}
    rules = {f"{RULE}{place}": _at(before, place) for place in texts}
    if record.kind == SUMMARY:
        return replace(before, fields={**before.fields, **texts, **rules})
    return _placed(before, texts, {**before.fields, **rules})


def by_rule(record: Record) -> Record:
    """Return a record as rules made it."""
    rules = {
        name.removeprefix(RULE): text
        for name, text in record.fields.items()
        if name.startswith(RULE)
    }
    if not rules:
        return record
    fields = {name: text for name, text in record.fields.items() if not name.startswith(RULE)}
    if record.kind == SUMMARY:
        texts = {name: rules.get(name, text) for name, text in fields.items()}
        return replace(record, fields={name: text for name, text in texts.items() if text})
    return _placed(record, rules, fields)


def session_by_rule(session: Session) -> Session:
    """Return a session with its records as rules made them."""
    return replace(session, records=tuple(map(by_rule, session.records)))


def carried_over(before: Session | None, after: Session) -> Session:
    """Return a session that went on, with a model's text where a rule says the same as before."""
    if before is None or not before.refined:
        return after
    olds = {record.id: record for record in before.records}
    records = [
        _carried(olds[record.id], record) if record.id in olds else record
        for record in after.records
    ]
    return replace(after, refined=before.refined, records=tuple(records))


def _carried(old: Record, new: Record) -> Record:
    if new == old:
        return new
    texts = {
        name.removeprefix(RULE): _at(old, name.removeprefix(RULE))
        for name, text in old.fields.items()
        if name.startswith(RULE) and _at(new, name.removeprefix(RULE)) == text
    }
    return with_text(new, texts) if texts else new


def _placed(record: Record, texts: Mapping[str, str], fields: Mapping[str, str]) -> Record:
    title, text = texts.get(_TITLE, record.title), texts.get(_TEXT, record.text)
    return replace(record, title=title, text=text, fields=fields)


def _at(record: Record, place: str) -> str:
    if record.kind == SUMMARY:
        return record.fields.get(place, "")
    return record.title if place == _TITLE else record.text
