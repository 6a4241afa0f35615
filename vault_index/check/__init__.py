"""Findings about files: shape, secrets, prompt injection, conflict markers.

Skills and the vault's settings, which come before an agent as well, are checked for all but the
shape. A check needs nothing but the file and changes nothing; `duplicates` compares lessons.

An error keeps a file out of the vault on every way in (`refuse_errors`), and what came in another way
out of an agent's context: the index asks `withheld` when it reads a file. A warning that holds keeps a
lesson out of an agent's context, too, until the user releases its text (`store.ownership`).
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from vault_index import config, files, git
from vault_index.check import frontmatter, harmless, prompt_injection, secrets, time_limit
from vault_index.check.finding import ERROR, WARNING, Finding
from vault_index.check.kept import KeptFindings
from vault_index.errors import GitUnavailableError, LessonError, NoRepositoryError, VaultError
from vault_index.hotpath import index_files
from vault_index.lesson import parse, portable, skill
from vault_index.lesson.file import MAX_BYTES, decode, unix_lines
from vault_index.store import released
from vault_index.store.filters import UNCHECKED
from vault_index.text.blocks import composed
from vault_index.vault import FOLDER, SETTINGS, printable, shown

if TYPE_CHECKING:
    from vault_index.vault import Vault

__all__ = ["ERROR", "WARNING", "Finding", "KeptFindings"]

SETTINGS_RULE, SKILL_RULE = "settings", "skill"
FILES_AT_ONCE = 100  # read, and in one question to the watcher


@dataclass(frozen=True, slots=True)
class Candidate:
    """A file to check. `path` is relative to `lessons/`, or to the vault's root for other files."""

    path: str
    data: bytes
    as_on_disk: bool = True
    is_lesson: bool = True

    @property
    def shown(self) -> str:
        return shown(self.path) if self.is_lesson else self.path


@dataclass(frozen=True, slots=True)
class Selection:
    """Files to check, by path and whether it is a lesson: there may be more than memory holds.

    `read` reads some of them. Raises VaultError for one that cannot be read. `unlisted` says why git did
    not list the skills that it tracks.
    """

    files: Sequence[tuple[str, bool]]
    read: Callable[[Sequence[tuple[str, bool]]], Iterable[Candidate]]
    unlisted: str = ""

    def __len__(self) -> int:
        return len(self.files)

    def __iter__(self) -> Iterator[Candidate]:
        return (candidate for batch in self.batches() for candidate in batch)

    def batches(self) -> Iterator[list[Candidate]]:
        for start in range(0, len(self.files), FILES_AT_ONCE):
            yield list(self.read(self.files[start : start + FILES_AT_ONCE]))


def everything(vault: Vault, only: Collection[str] | None = None) -> Selection:
    """Return all lesson files of a vault, and the other files of its repository that agents read.

    With `only`, those that are shown as one of these paths.
    """
    pairs = [(file.path, True) for file in vault.files()[0]]
    others, unlisted = _besides_lessons(vault)
    pairs += [(path, False) for path in others]
    if only is not None:
        pairs = [each for each in pairs if (shown(each[0]) if each[1] else each[0]) in only]
    return Selection(pairs, partial(_from_disk, vault), unlisted)


def named(vault: Vault, paths: Sequence[str]) -> Selection:
    """Return files and the content of folders, by any of their paths. Raises VaultError for others."""
    root = os.path.realpath(vault.root)
    paths = [*map(files.as_on_disk, paths)]
    folder = f"{root}/{vault.lessons_dir.name}"
    places = {f"{folder}/{file.path}": (file.path, True) for file in vault.files()[0]}
    others, unlisted = _besides_lessons(vault)
    for other in others:
        places[os.path.normpath(f"{root}/{other}")] = other, False
    wanted: dict[tuple[str, bool], None] = {}
    for path in paths:
        real = os.path.realpath(path)
        below = [places[file] for file in places if f"{file}/".startswith(f"{real}/")]
        if not below and not f"{real}/".startswith(f"{root}/"):
            hint = "name files of it, or --vault"
            raise VaultError(f"{path}: not in the vault {vault.root}", hint)
        if not below and unlisted:
            raise VaultError(f"{path}: no lesson file, and no skill that is known: {unlisted}")
        if not below:
            hint = f"name a file or folder in {vault.lessons_dir}"
            raise VaultError(f"{path}: no lesson file", hint)
        wanted |= dict.fromkeys(below)
    return Selection(list(wanted), partial(_from_disk, vault))


def of_names(vault: Vault, among: Collection[str]) -> Iterator[Finding]:
    """Find lesson files, `among` some, that are one file on other disks, or that some cannot hold.

    Names are one that differ in their case, or their form of Unicode, alone.
    """
    alike: dict[str, list[str]] = {}
    paths = [file.path for file in vault.files()[0]]
    for path in sorted(paths, key=lambda each: (composed(each) != each, each)):
        alike.setdefault(portable.key(path), []).append(path)
    for first, *others in alike.values():
        for other in others:
            path, kept = (other, first) if other in among else (first, other)
            if path not in among:
                continue
            where = "on disks that ignore case" if path.isascii() else f"here {path!a}"
            message = f"the same name as {shown(kept)}, {where}: keep one of them"
            yield Finding(shown(path), 1, "same-name", message)
    for path in sorted(among):
        if why := portable.problem(path):
            yield Finding(shown(path), 1, "file-name", f"{why}: rename it", WARNING)


def staged(vault: Vault) -> Selection:
    """Return the files for agents that the next commit adds or changes, as they are staged."""
    top, prefix = _top_and_prefix(vault)
    places: dict[tuple[str, bool], tuple[str, str]] = {}
    for path, blob in git.staged(top).items():
        kind = _kind(path, prefix)
        is_lesson = kind == _LESSON
        base = prefix + (f"{vault.lessons_dir.name}/" if is_lesson else "")
        inside = os.path.relpath(path, base or ".")
        if kind and not (is_lesson and any(part.startswith(".") for part in inside.split("/"))):
            places[inside, is_lesson] = path, blob

    def read(some: Sequence[tuple[str, bool]]) -> Iterator[Candidate]:
        contents = git.staged_contents(top, [places[each][1] for each in some], MAX_BYTES)
        for (inside, is_lesson), data in zip(some, contents, strict=True):
            try:
                is_same = _read(top / places[inside, is_lesson][0]) == data
            except OSError:
                is_same = False
            # git stages names that the vault passes over, because they are not UTF-8 or have breaks
            yield Candidate(printable(inside), data, is_same, is_lesson)

    return Selection(list(places), read)


def of_text(
    candidate: Candidate,
    categories: Collection[str] = (),
    seconds: float = time_limit.RULE_SECONDS,
    *,
    orders: bool = True,
    words: bool = True,
    kept: KeptFindings | None = None,
) -> list[Finding]:
    """Check the words of a file; `categories` are of other lessons, to compare with.

    In a file that is not a lesson, only errors of prompt injection count. A rule that takes more than
    `seconds` of processor time is itself an error: nothing is shared unchecked. Without `orders`, prompt
    injection is left out, five sixths of the time, unless what it finds is `kept`. Without `words`, only
    the form is checked.
    """
    where = candidate.shown
    findings: list[Finding] = []
    too_long = len(candidate.data) > MAX_BYTES
    if candidate.is_lesson:
        data = candidate.data[: MAX_BYTES + 1]
        findings = frontmatter.findings(candidate.path, data, where, categories)
    elif too_long:
        findings = [not_checked(where, f"the file is longer than {MAX_BYTES:,} bytes")]
    elif where == shown(SETTINGS):
        findings = list(_of_settings(where, candidate.data))
    else:
        try:
            skill.read(candidate.data, where, "")
        except LessonError as error:  # no agent can use it
            message = error.message.removeprefix(f"{where}: ")
            findings = [Finding(where, error.line, SKILL_RULE, message)]
    if words and not too_long:
        findings = sorted([*findings, *_of_words(candidate, seconds, orders, kept)])
    return findings


def _of_settings(path: str, data: bytes) -> Iterator[Finding]:
    """Find unknown keys, keys that are not a vault's to set, and values of a wrong type."""
    text = data.decode("utf-8", "replace")
    for problem in config.vault_problems(data):
        key, message, line = problem.key, problem.reason, 1
        name = re.escape(key.rpartition(".")[2])
        written = rf"(?m)^\s*(?:\w+\.)?[\"']?{name}[\"']?\s*[.=]|^\s*\[{re.escape(key)}[\].]"
        if key and (match := re.search(written, text)):
            line = text.count("\n", 0, match.end()) + 1
        elif by_parser := re.search(r"at line (\d+)", message):
            line = int(by_parser[1])
        severity = WARNING if problem.is_gone else ERROR
        yield Finding(path, line, SETTINGS_RULE, message, severity)


def _of_words(
    candidate: Candidate,
    seconds: float,
    orders: bool = True,
    kept: KeptFindings | None = None,
) -> list[Finding]:
    """Check the text that an agent or a stranger would read, whatever the shape of the file."""
    if kept is not None and (before := kept.get(candidate)) is not None:
        return before
    where = candidate.shown
    try:
        text = unix_lines(decode(candidate.data, candidate.path))
    except LessonError:
        text = candidate.data.decode("utf-8", "replace")
    findings: list[Finding] = []
    is_complete = orders
    for name, rule, seen in (
        ("secrets", secrets.findings, secrets.readable(candidate.data)),
        (prompt_injection.RULE, prompt_injection.findings, text),
        (frontmatter.RULE, frontmatter.conflict_markers, text),
    ):
        if rule is prompt_injection.findings and not orders:
            continue
        try:
            found = time_limit.within(seconds, rule, where, seen)
        except time_limit.TooSlow:
            is_complete = False
            found = [not_checked(where, f"the rule {name} takes more than {seconds:.3g} s")]
        if name != "secrets" and not candidate.is_lesson:
            found = [finding for finding in found if finding.severity == ERROR]
        findings += found
    if kept is not None and is_complete:
        kept.put(candidate, findings)
    return findings


class Withheld(NamedTuple):
    """Why hooks leave out what a file holds, such as "line 3: secret: ..."; "" if they do not.

    `until` is the name of the text that the user can release, "" for an error: it has to be corrected.
    """

    why: str
    until: str = ""


def withheld(
    path: str,
    data: bytes,
    home: Path | None = None,
    *,
    is_lesson: bool = True,
    kept: KeptFindings | None = None,
) -> Withheld:
    """Return the reason for which hooks leave out a file, for the user whose folder `home` is.

    Wrong frontmatter is not a reason: it harms no agent.
    """
    candidate = Candidate(path, data, is_lesson=is_lesson)
    findings = _of_words(candidate, time_limit.RULE_SECONDS, kept=kept)
    return _withheld(candidate, findings, home)


def withheld_if_kept(path: str, data: bytes, home: Path, kept: KeptFindings) -> Withheld:
    """Return the same for a lesson that was checked before, else that it is `UNCHECKED`."""
    candidate = Candidate(path, data)
    findings = kept.get(candidate)
    return Withheld(UNCHECKED) if findings is None else _withheld(candidate, findings, home)


def _withheld(candidate: Candidate, findings: list[Finding], home: Path | None) -> Withheld:
    findings = harmless.settled(findings, home=home) if home else findings
    errors = _errors(findings)
    if errors:
        return Withheld(_reason(min(_named(candidate, errors))))
    holding = [finding for finding in findings if finding.holds]
    name = released.name_of(candidate.data) if holding else ""
    if not holding or (home and released.has(home, name)):
        return Withheld("")
    return Withheld(f"{_reason(min(holding))}; if agents may get it: {_command(candidate)}", name)


def with_command(
    candidate: Candidate,
    findings: Iterable[Finding],
    home: Path,
    noted: Callable[[], Collection[str]] | None = None,
) -> list[Finding]:
    """Return findings of a file as they are for the user whose folder `home` is, with what to type.

    One that holds names the command, unless the text is released; so does a secret that may be none.
    `noted` is as for `harmless.settled`.
    """
    listed = _named(candidate, harmless.settled(findings, noted, home))
    if not any(finding.holds for finding in listed):
        return listed
    if released.has(home, released.name_of(candidate.data)):
        return [replace(finding, holds=False) for finding in listed]
    addition = f"; hooks leave it out; if agents may get it: {_command(candidate)}"
    return [
        replace(finding, message=finding.message + addition) if finding.holds else finding
        for finding in listed
    ]


def _named(candidate: Candidate, findings: Iterable[Finding]) -> list[Finding]:
    """Return findings of a file; one of a secret names the command that calls it harmless."""
    named: list[Finding] = []
    for each in findings:
        if each.fingerprints and each.severity == ERROR and candidate.path.endswith(".md"):
            command = harmless.command([each])
            line = f"add `{secrets.HARMLESS}: [{', '.join(each.fingerprints)}]` to its frontmatter"
            do = _command(candidate) if candidate.is_lesson else f"{line}, and run {command}"
            each = replace(each, message=f"{each.message}; if it is none: {do}")
        named.append(each)
    return named


def _command(candidate: Candidate) -> str:
    """Return the command to release a lesson's file. A person copies it: the shell reads a name only."""
    name = parse.id_of(candidate.path)
    try:
        first = parse.parse_file(candidate.data, candidate.path)[0].id
    except (LessonError, IndexError):
        first = ""
    section = "".join(first.partition("#")[1:])
    return f"lessons check --confirm {shlex.quote(name + section)}"


def refuse_errors(path: str, data: bytes, before: bytes | None = None) -> None:
    """Raise VaultError for an error in the new content of a file of the vault's folder.

    An error that the file had `before` does not count: a lesson can be corrected step by step.
    """
    earlier = [] if before is None else _errors(of_text(Candidate(path, before)))
    old = {_identity(finding) for finding in earlier}
    new = [finding for finding in errors_in(path, data, before) if _identity(finding) not in old]
    if new:
        raise VaultError(f"not written: {_reason(new[0])}", to_correct(new))


def errors_in(
    path: str, data: bytes, before: bytes | None = None, kept: KeptFindings | None = None
) -> list[Finding]:
    """Return the errors in what would be a file of the vault's folder, and was `before`, by line.

    A text that it calls harmless and did not before counts only if this user called it so.
    """
    noted = partial(harmless.noted, before)
    return sorted(_errors(harmless.settled(of_text(Candidate(path, data), kept=kept), noted)))


def first_error(path: str, data: bytes) -> Finding | None:
    """Return the first error in a new file for the vault's folder."""
    return next(iter(errors_in(path, data)), None)


def _identity(finding: Finding) -> tuple[str, str, tuple[str, ...]]:
    return finding.rule, finding.message, finding.fingerprints


def to_correct(errors: Sequence[Finding]) -> str:
    """Return the remedy for the errors in a text that is to become a lesson, first for the first."""
    if errors[0].fingerprints:
        return f"take it out; if it is no secret: {harmless.command(errors)}, then again"
    return "correct it; `lessons check` goes by the same rules"


def _errors(findings: Iterable[Finding]) -> list[Finding]:
    return [finding for finding in findings if finding.severity == ERROR]


def _reason(finding: Finding) -> str:
    return f"line {finding.line}: {finding.rule}: {finding.message}"


NOT_CHECKED = "not-checked"


def not_checked(where: str, why: str) -> Finding:
    """Return the finding that a file could not be checked."""
    return Finding(where, 1, NOT_CHECKED, f"{why}: shorten the file or split it")


def outgoing(
    vault: Vault, commits: Sequence[str], upstream: str
) -> Iterator[tuple[str, str, Finding]]:
    """Yield the secrets that commits, named as for `git rev-list`, would make public.

    As (commit, path from the repository's top, finding): in each version of a file that comes
    before an agent, and with the path "" in the messages of the commits that have such a version.
    Not what the user called harmless, nor what the file calls so at `upstream`, where it is public.
    """
    top, prefix = _top_and_prefix(vault)
    changing: dict[str, None] = {}
    for commit, path, data in git.outgoing(top, commits, lambda name: bool(_kind(name, prefix))):
        changing[commit] = None
        found = secrets.findings(path, secrets.readable(data))
        noted = partial(_noted_at, top, path, (upstream,))
        for finding in _errors(harmless.settled(found, noted)):
            if not harmless.is_said(finding):  # also where an earlier commit has no line for it
                yield commit, path, finding
    for commit, message in git.messages(top, changing):
        for finding in secrets.findings("", message):
            if not harmless.is_said(finding):
                yield commit, "", finding


def noted_in_commits(vault: Vault, candidate: Candidate) -> frozenset[str]:
    """Return the fingerprints that commits here call harmless in a file, also one that is merged."""
    folder = f"{vault.lessons_dir.name}/" if candidate.is_lesson else ""
    return _noted_at(vault.root, f"{folder}{candidate.path}", ("HEAD", "MERGE_HEAD"))


def _noted_at(folder: Path, path: str, commits: Sequence[str]) -> frozenset[str]:
    versions = git.contents(folder, {each: (each, path) for each in commits if each})
    return frozenset().union(*map(harmless.noted, versions.values()))


def _read(file: Path) -> bytes:
    return index_files.read(file, MAX_BYTES + 1)


def _from_disk(vault: Vault, files: Iterable[tuple[str, bool]]) -> Iterator[Candidate]:
    for path, is_lesson in files:
        file = (vault.lessons_dir if is_lesson else vault.root) / path
        try:
            yield Candidate(path, _read(file), is_lesson=is_lesson)
        except OSError as error:
            raise VaultError(f"{file}: cannot be read: {error.strerror}") from None


_LESSON, _OTHER = "lesson", "other"
_SKILL_FILE = "skill.md"
_PROJECT_SKILLS = (".claude", "skills")


def _top_and_prefix(vault: Vault) -> tuple[Path, str]:
    """Return the top of the repository around a vault, and the vault's path in it: "" or `path/`."""
    try:
        top = git.top(vault.root)
    except NoRepositoryError:
        return vault.root, ""
    inside = os.path.relpath(os.path.realpath(vault.root), os.path.realpath(top))
    return top, "" if inside == "." else f"{inside}/"


def _kind(path: str, prefix: str) -> str:
    """Return the kind of a file for an agent, "" for none.

    `path` and the vault's `prefix` are from the repository's top. Skills count in the vault's `skills`
    and in each `.claude/skills`. Names are compared without case, as some file systems do.
    """
    parts = path.casefold().split("/")
    inside = path.removeprefix(prefix) if path.startswith(prefix) else ""
    if inside.startswith(f"{FOLDER}/") and inside.endswith(".md"):
        return _LESSON
    if inside == f"{FOLDER}/{SETTINGS}":  # names of categories are shown with each lesson
        return _OTHER
    if parts[-1] != _SKILL_FILE:
        return ""
    in_vault = inside.count("/") == 2 and inside.casefold().startswith("skills/")
    return _OTHER if in_vault or tuple(parts[-4:-2]) == _PROJECT_SKILLS else ""


def _besides_lessons(vault: Vault) -> tuple[list[str], str]:
    """Return the other files on disk, without links, that come before an agent.

    And why git did not list what it tracks, "" if it did.
    """
    top, prefix = _top_and_prefix(vault)
    names, unlisted = set[str](), ""
    try:
        names = {name for name in git.files(top) if _kind(name, prefix) == _OTHER}
    except GitUnavailableError as error:
        unlisted = "; ".join(filter(None, (error.message, error.hint)))
    # also where git does not track them, or is not there
    names.add(f"{prefix}{FOLDER}/{SETTINGS}")
    skills = "/".join(_PROJECT_SKILLS)
    for folder in (f"{prefix}skills", prefix + skills, skills):
        names |= {
            f"{folder}/{file.parent.name}/SKILL.md" for file in top.glob(f"{folder}/*/SKILL.md")
        }
    files = {name: top.resolve() / name for name in sorted(names)}
    plain = [name for name, file in files.items() if file.is_file() and file == file.resolve()]
    return [os.path.relpath(name, prefix or ".") for name in plain], unlisted
