"""Texts that look like a secret and that a person called harmless.

`lessons check --confirm ID` notes it in the frontmatter, where a review and the history show it:

    harmless: ["sha256:3f9a1c7be204d58e"]

Each is the hash of a word at which the check for secrets stops (`secrets.fingerprint`): another secret in
that file is still an error. The author of a file writes its frontmatter as well, so this machine keeps
what its user said, and a line alone is not believed:

    the line is there, and the user said it                        no finding
    the line is there and came with a commit; the user did not     a warning that holds the lesson back
    the line is new, in what is written or committed or pushed     an error
    there is no line                                               an error
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable
from dataclasses import replace
from pathlib import Path

from vault_index import config
from vault_index.check import secrets
from vault_index.check.finding import ERROR, Finding
from vault_index.lesson import edits
from vault_index.store import released

FINGERPRINT = re.compile(r"sha256:[0-9a-f]{16}")  # as `secrets.fingerprint` makes them
_NOBODY = "and nobody on this machine did"


def say(fingerprints: Iterable[str], home: Path | None = None) -> None:
    """Keep that the user of this machine called these harmless. Raises WriteError."""
    for each in fingerprints:
        released.add(home or config.home_folder(), each)


def is_said(finding: Finding, home: Path | None = None) -> bool:
    """Whether the user of this machine called all harmless that a finding is about."""
    folder = home or config.home_folder()
    return bool(finding.fingerprints) and all(
        released.has(folder, each) for each in finding.fingerprints
    )


def settled(
    findings: Iterable[Finding],
    noted: Callable[[], Collection[str]] | None = None,
    home: Path | None = None,
) -> list[Finding]:
    """Return the findings without those that the user called harmless, as far as the file says so.

    `noted` returns the fingerprints that a line may have which nobody on this machine wrote, because
    they came with a commit; for others the finding is an error. Without `noted` all may.
    """
    kept: list[Finding] = []
    for each in findings:
        is_noted = bool(each.fingerprints) and each.severity != ERROR
        if is_noted and is_said(each, home):
            continue
        is_new = is_noted and noted is not None and not set(each.fingerprints) <= set(noted())
        kept.append(_refused(each) if is_new else each)
    return kept


def _refused(finding: Finding) -> Finding:
    message = f"{finding.message}, {_NOBODY}"
    return replace(finding, severity=ERROR, holds=False, message=message)


def noted(data: bytes | None) -> frozenset[str]:
    """Return the fingerprints of the texts that a file has and calls harmless."""
    if data is None:
        return frozenset()
    found = secrets.findings("", secrets.readable(data))
    return frozenset(
        each for finding in found if finding.severity != ERROR for each in finding.fingerprints
    )


def unsaid(data: bytes, home: Path | None = None) -> list[Finding]:
    """Return the texts of a file that look like secrets and that this user did not call harmless."""
    found = secrets.findings("", secrets.readable(data))
    return [each for each in found if each.severity == ERROR or not is_said(each, home)]


def with_line(data: bytes, path: str, home: Path | None = None) -> bytes:
    """Return a file with a line for what the user of this machine called harmless in it.

    Raises LessonError for frontmatter that cannot be edited.
    """
    found = list(secrets.findings("", secrets.readable(data)))
    if not any(each.severity == ERROR and is_said(each, home) for each in found):
        return data
    fingerprints = [
        each for finding in found if is_said(finding, home) for each in finding.fingerprints
    ]
    listed = edits.keys_of(data, path).get(secrets.HARMLESS)
    before = listed if isinstance(listed, list) else [listed] if listed else []
    return edits.set_keys(
        data, {secrets.HARMLESS: list(dict.fromkeys([*before, *fingerprints]))}, path
    )


def command(findings: Iterable[Finding]) -> str:
    """Return the command that says of a text outside the vault's files that it is harmless."""
    fingerprints = [each for finding in findings for each in finding.fingerprints]
    return f"lessons check --confirm {' '.join(dict.fromkeys(fingerprints))}"
