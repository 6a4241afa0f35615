"""The journal's records of a session as parts of a material, with or without its transcript.

A person may have edited the session file or deleted records of it, and the settings may leave paths out:
what the transcript still has of that is not taken from there.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from vault_index.journal.left_out import LeftOut
from vault_index.journal.record import OBSERVATION, PROMPT, Command, Record, Session
from vault_index.learn.material import Repair, Said
from vault_index.learn.material_of.replay import Replay
from vault_index.transcripts import shell, signs, vocabulary


@dataclass(slots=True)
class Parts:
    """Prompts, narrative and repairs that belong together."""

    prompts: list[Said] = field(default_factory=list)
    narrative: list[str] = field(default_factory=list)
    repairs: list[Repair] = field(default_factory=list)


def of_records(session: Session) -> Parts:
    """Return the parts by the records alone: the transcript is gone."""
    parts = Parts()
    for record in session.records:
        if record.kind == PROMPT:
            parts.prompts.append(_said(record, len(parts.narrative)))
        elif record.kind == OBSERVATION:
            parts.repairs += _repairs(record, len(parts.prompts) - 1)
            if record.text:
                parts.narrative.append(record.text)
    return parts


def of_replay(replay: Replay, session: Session, out: LeftOut) -> Parts:
    """Return the parts by the transcript, as far as the records still have them."""
    prompts = {uuid: each for each in session.records if each.kind == PROMPT for uuid in each.uuids}
    told = "\n\n".join(each.text for each in session.records if each.kind == OBSERVATION)
    parts, numbers, firsts = Parts(), dict[int, int](), list[int]()
    for text in replay.narrative:
        firsts.append(len(parts.narrative))
        if text in told:
            parts.narrative.append(text)
    firsts.append(len(parts.narrative))
    for number, (uuid, said) in enumerate(zip(replay.uuids, replay.prompts, strict=True)):
        record = prompts.get(uuid)
        if record is not None:
            numbers[number] = len(parts.prompts)
            kept = _shown(said, session, out)
            parts.prompts.append(
                replace(
                    kept,
                    text=record.text,
                    answers=record.context,
                    record=record.id,
                    first=firsts[said.first],
                )
            )
    for repair in replay.repairs:
        if repair.prompt in numbers or repair.prompt < 0:
            shown = _without(repair, session, out)
            parts.repairs.append(replace(shown, prompt=numbers.get(repair.prompt, -1)))
    return parts


def _said(record: Record, first: int) -> Said:
    is_refusal, corrects = signs.kind_of_prompt(record.text, record.context, record.origin)
    return Said(
        record.text,
        record.context,
        is_correction=corrects,
        is_refusal=is_refusal,
        record=record.id,
        origin=record.origin,
        first=first,
    )


def _repairs(record: Record, number: int) -> Iterator[Repair]:
    """Yield the checks of an observation that failed and passed."""
    if not record.files_modified:
        return
    waiting: dict[str, Command] = {}
    for command in record.commands:
        check = shell.same_as(command.text)
        if command.failed and shell.is_check(command.text):
            waiting[check] = command
        elif command.status == 0 and check in waiting:
            yield Repair(
                command.text,
                waiting.pop(check).output,
                "",
                files=record.files_modified,
                conclusion=vocabulary.cause([record.text]),
                prompt=number,
            )


def _shown(said: Said, session: Session, out: LeftOut) -> Said:
    """Return a prompt without what was changed of files that are left out."""
    kept = _kept(session, out, said.files, [Command(line) for line in said.did])
    is_whole = kept.files_modified == said.files
    return replace(
        said,
        files=kept.files_modified,
        change=said.change if is_whole else "",
        did=tuple(command.text for command in kept.commands),
    )


def _without(repair: Repair, session: Session, out: LeftOut) -> Repair:
    """Return a repair without outputs and changes that may be of files that are left out."""
    outputs = [Command(repair.command, output=text) for text in (repair.failed, repair.passed)]
    kept = _kept(session, out, repair.files, outputs)
    is_whole = kept.files_modified == repair.files
    return replace(
        repair,
        command=kept.commands[0].text,
        failed=kept.commands[0].output,
        passed=kept.commands[1].output,
        files=kept.files_modified,
        change=repair.change if is_whole else "",
    )


def _kept(
    session: Session, out: LeftOut, paths: Sequence[str], commands: Sequence[Command]
) -> Record:
    record = Record(
        *("", OBSERVATION, 0, "", "", ""), files_modified=tuple(paths), commands=tuple(commands)
    )
    if not paths and not commands:
        return record
    return out.apply(replace(session, records=(record,))).records[0]


def transcript_of(session: Session) -> Path | None:
    """Return the agent's file of a session, None if it is gone."""
    file = Path(session.transcript)
    return file if session.transcript and file.is_file() else None
