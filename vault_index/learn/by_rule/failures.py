"""Failures of a session and their causes: repaired checks, errors whose cause the agent found."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

from vault_index.learn.by_rule import title
from vault_index.learn.material import Material, Repair, Said
from vault_index.transcripts import signs, tools, vocabulary

LEAST_POINTS = 4.5
_ENVIRONMENT = re.compile(
    r"command not found|not recognized|permission|denied|protected branch|GH\d{3}|\b40[13]\b|\b429\b"
    r"|exit(?:ed with)? code 12[67]"
    r"|no module named|cannot find module|module not found|ENOENT|ECONN|EACCES|ENOMEM|EADDRINUSE"
    r"|out of memory|heap|timed? ?out"
    r"|rate limit|deprecated|unsupported|incompatible|version mismatch|requires? \S+ version"
    r"|not installed|certificate|ssl|signing|locked"
    r"|already in use|no space|quota|unable to resolve|could not resolve|conflict|peer dep"
    r"|hook declined|disallowed|not allowed",
    re.IGNORECASE,
)
_MUNDANE = re.compile(
    r"code style issues|need(?:s)? (?:gofmt )?formatting|not formatted|gofmt|would reformat"
    r"|lint(?:er)? |unused (?:import|variable)|trailing"
    r"|undefined: |is not defined|undeclared|SyntaxError|unexpected (?:token|indent)"
    r"|imported and not used|declared and not used"
    r"|no such file or directory|No matches found|agent refused|nothing to commit|IndentationError"
    r"|NameError|cannot use|expected ';'"
    r"|file not found|ImportError: cannot import|F401|E501|prettier",
    re.IGNORECASE,
)
_REPORTS = re.compile(
    r"\b(?:error|fail\w*|broken|broke|crash\w*|bug|exception|traceback|denied|fatal|doesn't work"
    r"|not working|stopped|wrong|issue"
    r"|problem|weird|corrupt\w*|hang\w*|stuck|regress\w*|unable|cannot|can't|why|fix|Fehler|kaputt"
    r"|geht nicht|hata|çal\u0131şm\u0131yor|오류|에러"
    r""
    r"|실패|안 ?돼|エラー|失敗|動かない)\b",
    re.IGNORECASE,
)
_CONTRADICTED = re.compile(
    r"\b(?:still|again|not working|doesn't work|didn't work|broken|wrong|same (?:error|issue"
    r"|problem)|NO|nope|never|goddamn|maddening|regress"
    r"|are you sure|so hard|cannot fix|don't understand|painful"
    r"|weiterhin|immer noch|hâlâ|hala|여전히|まだ)\b",
)  # case of NO matters
_OWN_WORK = re.compile(
    r"^\W*(?:added|created|updated|wrote|fixed|changed|documented|linked|committed|removed|moved"
    r"|renamed)\b"
    r"|\bnot (?:caused|because|due)\b|\b(?:i|my|we just|i've|i'd|i'm|our (?:fix|change)"
    r"|just (?:added|fixed|wrote|changed)|the (?:new )?test|my (?:fix|test|change))\b",
    re.IGNORECASE,
)
_ONCE_MORE = re.compile(r"\b(?:again|step \d+|still)\b", re.IGNORECASE)
_NO_ERROR = re.compile(r"Exit code \d+$|===|\?|ok\b|PASS|---? PASS|.*\(cached\)$|> |\$ ")
_OF_TESTS = re.compile(
    r"^(?:--- FAIL|FAILED |E   |=== RUN|\s*assert )|AssertionError"
    r"|\b\d+ failed\b",
    re.MULTILINE,
)
_ABOUT_LINES = re.compile(
    r"\blines? \d+|\bspaces?\b.*\balign|\bindent|\bformatted\b|\bgofmt\b"
    r"|\btypo\b",
    re.IGNORECASE,
)
_LASTING = re.compile(
    r"\b(?:always|never|only|requires?|removed in|no longer|by default|does(?:n't| not) support"
    r"|read-only|overwrites?|registers?|silently|must"
    r"|cannot|can't|since version|in (?:Python|Node|Go|Rust|Java) ?\d|deprecated|before|until"
    r"|without|get(?:s)? )\b",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Failure:
    """Something that failed and why. `cause` is the agent's sentence, "" for a repair without one."""

    cause: str
    points: float
    number: int  # of the prompt
    repair: Repair | None = None


def failures(material: Material) -> list[Failure]:
    """Return what failed and may fail again, a repair with its cause counting once."""
    causes = {each.number: each for each in _causes(material)}
    repaired = [_of_repair(each, causes.get(each.prompt)) for each in material.repairs]
    there = [each for each in repaired if each]
    told = {each.cause for each in there}
    return [*there, *(each for each in causes.values() if each.cause not in told)]


def _of_repair(repair: Repair, cause: Failure | None = None) -> Failure | None:
    """Return the failure that was repaired; None for one that only its moment knew."""
    if cause and not repair.is_own and vocabulary.cause_strength(repair.conclusion) < 2:
        repair = replace(repair, conclusion=cause.cause)
    if not tools.is_check(repair.command):
        return None
    line = signs.error_line(repair.failed)
    is_environment = bool(_ENVIRONMENT.search(repair.failed))
    if _MUNDANE.search(line) and not (is_environment and repair.conclusion):
        return None
    if repair.is_own and (not is_environment or _OF_TESTS.search(repair.failed)):
        return None
    if not repair.change:
        return None
    strength = vocabulary.cause_strength(repair.conclusion)
    has_error = bool(error_of(repair))
    points = 2.0 + (1.5 if is_environment else 0) + min(strength, 3) + (0.5 if has_error else -1)
    points += 0.5 if repair.passed else 0
    points -= 1 if repair.is_own else 0
    if points < (3.5 if is_environment else 4):
        return None
    return Failure(repair.conclusion if strength else "", points + 1, repair.prompt, repair)


def is_report(said: Said | None) -> bool:
    """Whether a prompt reports that something failed."""
    return said is not None and bool(_REPORTS.search(said.text))


def error_of(repair: Repair) -> str:
    """Return the line of the output that says what was wrong, "" if all only say that something was."""
    best = ""
    for line in map(str.strip, repair.failed.splitlines()):
        if _ENVIRONMENT.search(line) and not _NO_ERROR.match(line):
            best = best or line
    line = best or signs.error_line(repair.failed)
    bare = re.sub(
        r"\b(?:fail(?:ed|ure)?s?|error|exit code|task|tests?|\d+|ok|ERROR|FAIL)\b"
        r"|[^\w ]",
        "",
        line,
        flags=re.I,
    )
    return line if bare.split() and not _NO_ERROR.match(line) else ""


def _causes(material: Material) -> Iterator[Failure]:
    """Yield the best cause that the agent named after each prompt."""
    prompts = material.prompts
    for number, said in enumerate(prompts):
        end = prompts[number + 1].first if number + 1 < len(prompts) else len(material.narrative)
        texts = material.narrative[said.first : end]
        after = next((each.text[:300] for each in prompts[number + 1 :] if each.text[0] != "/"), "")
        best: Failure | None = None
        for text in texts:
            for sentence in vocabulary.sentences(text):
                points = _points(sentence, said, after)
                if points >= LEAST_POINTS and (best is None or points >= best.points):
                    best = Failure(sentence, points, number)
        if best:
            yield best


def _points(sentence: str, said: Said, after: str) -> float:
    strength = vocabulary.cause_strength(sentence)
    if strength < 2 or not title.is_prose(sentence):
        return 0
    points = {2: 1.5, 3: 2.5, 4: 3.0}[strength]
    points += min(2.0, 0.75 * len(title.names(sentence)))
    points += 1 if is_report(said) else 0
    points += 0.5 if said.files else -1  # where nothing was changed, nothing shows that it is so
    points += 0.75 if _LASTING.search(sentence) else 0
    points -= 2 if _CONTRADICTED.search(after) else 0
    points -= 2 if _OWN_WORK.search(sentence) else 0
    points -= 2 if _ABOUT_LINES.search(sentence) else 0
    points -= 1.5 if title.is_vague(title.without_fillers(sentence)) else 0
    points -= 1 if _ONCE_MORE.search(sentence) else 0
    return points


def short_command(command: str) -> str:
    """Return the check in a command by its first words: `just fmt`, `git push`."""
    return tools.same_as(command)
