"""Signs of a lesson: what can show in a session that its advice was followed.

A sign is a *command* with its first words or one of its flags (`$ git read-tree`, `$ git log --follow`),
a *setting* with its value (`pool_pre_ping=true`, `datetime.now(utc)`) or a *name* of code. Paths,
branches and plain words do not count. A clause says which part a word has in the lesson: advice, what
the lesson warns of, or the failure that it is about.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence, Set
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import pairwise

from vault_index.lesson import passages
from vault_index.transcripts.vocabulary import STOP_WORDS

ADVICE, AGAINST, SYMPTOM = "advice", "against", "symptom"
RUN = "$ "  # in front of a command: a program and its first words, or a flag of theirs
MAX_CHARS = 20_000  # of a lesson that are read
CACHED = 4096  # texts of steps: several lessons are compared with each
MIN_FAILURE = 3  # words of a failure that is recognised by them
MIN_NAME = 4  # letters
MIN_USUAL, USUAL_SHARE = 3, 0.02  # lessons that have a sign, and their share, for it to be usual

_SHELLS = frozenset("bash sh shell zsh console fish".split())
_FENCE = re.compile(r"(?ms)^(`{3,}|~{3,})(?![`~])([^\n]*)\n(.*?)(?:^\1[`~]*[ \t]*$|\Z)")
_SPAN = re.compile(r"(?<!`)(`{1,3})(?!`)([^`\n](?:[^\n]*?[^`\n])?)\1(?!`)")
_CLAUSES = re.compile(r"(?i)(?:[.!?:;](?=\s|$)|,\s+(?=(?:but|then|and then|so|set|use|run|add|raise|"
                      r"create|put|install|choose|write|do|call|pass|not|never|which)\b)|\n\s*\n|\n[-*] )"
                      r"|,\s|\bbut\b"
)  # fmt: skip
_NOT = re.compile(
    r"(?i)\b(?:do not|don't|does not|never|not|avoid|instead of|rather than|no longer|without|stop|"
    r"unlike|neither|nor)\b"
)
_FAILS = re.compile(
    r"(?i)\b(?:when|if|fails?|failed|dies|crash(?:es)?|hangs?|breaks?|errors?|says?|raises?|complains?|"
    r"refuses?|lost|prints?|doubles?|reports?|after a change|is about)\b"
)
_ORDERS = re.compile(
    r"(?i)\b(?:use|run|set|add|create|put|install|call|pass|write|choose|raise|log with|switch to"
    r"|they are in|it is in|are in|is in|lives? in|needs?)\b"
)

_NAME = re.compile(r"(?<![\w/@-])(?:--)?[A-Za-z_]\w*(?:-\w+)*(?![\w/-]|\.[a-z]\w{0,4}\b(?!\())")
# of a name that nobody writes by chance: a flag, a constant, snake and camel case
_SHAPE = re.compile(
    r"--\w[\w-]{5,}|_*[A-Za-z]\w*_\w+|[a-z][a-z0-9]+(?:[A-Z][a-z0-9]*)+|(?:[A-Z][a-z0-9]+){2,}"
)
_SETTING = re.compile(
    r"(?<![\w.])(?:[A-Za-z]\w*_\w+|[a-z]+[A-Z]\w*|[A-Za-z_]\w*(?:\.\w+)+)"
    r"(?:[ \t]?[=:][ \t]?[\"'`]?[\w./%+-]*\w|\([^()\n]{2,40}\))|\b\w{3,}\([\"'][^()\"'\n]{3,40}[\"']\)"
)
WORD = re.compile(r"--[A-Za-z][\w-]*|\w+(?:-\w+)*")
_PLAIN = re.compile(r"[a-z][\w:-]*")  # a word of a command that is no path and no place for one
_FLAG = re.compile(r"--?[A-Za-z][\w-]*")
_PROMPTS = re.compile(r"^[ \t]*[$%>\u276f] (.+)$", re.MULTILINE)
_SEPARATORS = re.compile(r"&&|\|\|?|;|\n|\$\(|`")
_WRAPPERS = re.compile(
    r"^(?:(?:sudo|time|env|exec|command|nohup|npx|bunx|uvx|uv run|poetry run|bundle exec|mise exec)\s+"
    r"|--\s+|[A-Za-z_]\w*=\S*\s+|\$\s+)+"
)
# Programs whose commands have commands: `gh pr checks`; of others the third word is an argument.
_NESTED = frozenset("gh docker npm pnpm yarn mise go cargo kubectl aws gcloud az uv".split())
_OF_SHELL = frozenset("echo printf cd export source set".split())
_LOOKS = frozenset("cat grep rg find sed awk head tail wc ls less cut sort uniq diff".split())
# Commands and flags of every second session, whatever the lesson: they prove nothing by themselves.
_EVERYDAY = frozenset(
    f"{RUN}{program} {word}"
    for line in (
        "git status diff log add commit push pull checkout switch branch show stash rebase merge fetch"
        " restore clone config remote tag init reset|npm install test run start i ci|pip install"
        "|python -m|python3 -m|go test build run mod install|cargo build test run"
        "|docker build run ps compose|make test build|mise run install|brew install"
        "|terraform plan apply init|kubectl get apply|gh pr api issue run repo auth"
    ).split("|")
    for program, *words in [line.split()]
    for word in words
) | {f"{RUN}gh pr {verb}" for verb in ("create", "view", "list", "diff", "merge", "checks")}
_PROGRAMS = frozenset(command.split()[1] for command in _EVERYDAY)
_EVERYDAY_FLAGS = frozenset(
    """--help --version --force --all --verbose --quiet --json --yes --stat --oneline --name --port
    --no-verify --amend --short --global --local --list --cached --hard --soft --name-only --format
    --pretty --date --title --body --message --limit --output --no-edit
    -m -c -v -f -p -n -r -a -q -e -y -i -s -t -u -x -b -l -rf -la -sl""".split()
)


@dataclass(frozen=True, slots=True)
class Marks:
    """The signs of one lesson's advice, and what it says of failures.

    `named` are the words by which one speaks of it, and `failures` those of each sentence about its
    failure.
    """

    commands: frozenset[str] = frozenset()
    settings: frozenset[str] = frozenset()
    names: frozenset[str] = frozenset()
    named: frozenset[str] = frozenset()
    failures: tuple[frozenset[str], ...] = ()

    @property
    def signs(self) -> frozenset[str]:
        """All that its advice may be recognised by."""
        return self.commands | self.settings | self.names | self.named

    @property
    def can_prove(self) -> bool:
        """Whether a session could show that the advice was followed."""
        return bool(self.commands or self.settings or len(self.names) > 1)

    def without(self, usual: Set[str]) -> Marks:
        """Return the marks without the signs that prove nothing, as they were there or are usual."""
        return replace(
            self,
            commands=frozenset(
                each
                for each in self.commands - usual
                if not ((flag := each.rpartition(" ")[2]).startswith("--") and flag in usual)
            ),
            settings=self.settings - usual,
            names=self.names - usual,
            named=self.named - usual,
        )


def marks_of(text: str) -> Marks:
    """Return what the advice of a lesson is recognised by; nothing for one that names nothing."""
    code: dict[str, list[str]] = {ADVICE: [], AGAINST: [], SYMPTOM: []}
    prose, shell = list[str](), list[str]()
    failures: list[frozenset[str]] = []
    for part, clause, pieces, is_shell in _clauses(text):
        code[part] += pieces
        if part == ADVICE:
            prose.append(clause)
            shell += pieces if is_shell else []
        if part == SYMPTOM:  # what a program prints stands in it by itself
            failures += [plain_words(each) for each in (clause, *pieces)]
    warned = {*_named(code[AGAINST]), *_named(code[SYMPTOM])}
    commands = {command for line in shell for command in _commands(line)}
    programs = {command.split()[1] for command in commands}
    return Marks(
        frozenset(_proving(commands)),
        settings_in("\n".join(code[ADVICE])),
        names_in("\n".join(prose)) - warned - _EVERYDAY_FLAGS,
        frozenset((_named(code[ADVICE]) | programs - _PROGRAMS - _LOOKS) - warned),
        tuple(words for words in failures if len(words) >= MIN_FAILURE),
    )


def usual_in(texts: Sequence[str]) -> frozenset[str]:
    """Return the signs and words that many of these lessons have: they show nothing of one."""
    counts = Counter[str]()
    for text in texts:
        counts.update(marks_of(text).signs.union(map(str.lower, WORD.findall(text))))
    least = max(MIN_USUAL, USUAL_SHARE * len(texts))
    return frozenset(sign for sign, count in counts.items() if count >= least)


def _named(pieces: list[str]) -> set[str]:
    """Return the words of code by which one speaks of it: its names, and what is all of a piece."""
    whole = {piece.lower() for piece in pieces if len(piece) >= MIN_NAME and WORD.fullmatch(piece)}
    return whole.union(*map(names_in, pieces))


def _proving(commands: Set[str]) -> Iterator[str]:
    """Yield the commands that prove something: no everyday one, none that is a part of another."""
    for command in commands:
        last = command.rpartition(" ")[2]
        if last in _EVERYDAY_FLAGS or command in _EVERYDAY or command.split()[1] in _OF_SHELL:
            continue
        if not any(other.startswith(f"{command} ") for other in commands):
            yield command


@lru_cache(maxsize=CACHED)
def names_in(text: str) -> frozenset[str]:
    """Return the names of code in a text, lower case: by their shape, without paths."""
    return frozenset(name.lower() for name in _NAME.findall(text) if _SHAPE.fullmatch(name))


@lru_cache(maxsize=CACHED)
def settings_in(text: str) -> frozenset[str]:
    """Return the settings and calls in a text with their values, without case, spaces and quotes."""
    found = (re.sub(r"[\s\"'`]", "", setting).lower() for setting in _SETTING.findall(text))
    return frozenset(setting for setting in found if len(setting) > MIN_NAME)


@lru_cache(maxsize=CACHED)
def commands_in(text: str) -> frozenset[str]:
    """Return the commands that a shell would run, each with its first words and with each flag."""
    return frozenset(_commands(text))


@lru_cache(maxsize=CACHED)
def done_by(command: str) -> frozenset[str]:
    """Return the names and settings of a shell command, without those of what only looks."""
    does = "\n".join(
        segment
        for segment in _SEPARATORS.split(command[:MAX_CHARS])
        if _WRAPPERS.sub("", f"{segment.strip()} ", count=1).partition(" ")[0] not in _LOOKS
    )
    return names_in(does) | settings_in(does)


@lru_cache(maxsize=CACHED)
def there_in(text: str) -> frozenset[str]:
    """Return all that a text may have said before: its words, settings, and commands in its code."""
    spans = "\n".join(span[2] for span in _SPAN.finditer(text))
    words = frozenset(word.lower() for word in WORD.findall(text))
    return words | names_in(text) | settings_in(text) | commands_in(spans)


@lru_cache(maxsize=CACHED)
def commands_typed(prompt: str) -> frozenset[str]:
    """Return the commands that a prompt may name in its prose: "run buf generate, please"."""
    said = [word.strip(".,;:!?`'\"()").lower() for word in prompt[:MAX_CHARS].split()]
    pairs = [f"{RUN}{first} {second}" for first, second in pairwise(said)]
    longer = (f"{pair} {third}" for pair, third in zip(pairs, said[2:], strict=False))
    return frozenset([*pairs, *longer])


def plain_words(text: str) -> frozenset[str]:
    """Return the words of a sentence that say something, without endings, lower case."""
    words = re.findall(r"[a-z][a-z0-9_]{2,}", text.lower())
    return frozenset(_stem(word) for word in words if word not in STOP_WORDS)


def _stem(word: str) -> str:
    for ending in ("ing", "ies", "es", "ed", "s"):
        if word.endswith(ending) and len(word) - len(ending) >= 4:
            return word.removesuffix(ending)
    return word


def _commands(text: str) -> Iterator[str]:
    for segment in _SEPARATORS.split(text[:MAX_CHARS]):
        words = _WRAPPERS.sub("", f"{segment.strip(' ()')} ", count=1).split()
        if not words or not re.fullmatch(r"[\w./~-]*?[a-zA-Z][\w.-]*", words[0]):
            continue
        program = words[0].rpartition("/")[2].lower()
        head = f"{RUN}{program}"
        if words[1:2] == ["-C"]:  # of git and make: where to run
            yield f"{head} -C"
            del words[1:3]
        left = 2 if program in _NESTED else 1
        for word in (word.strip("'\"") for word in words[1:]):
            flag = _FLAG.match(word)
            if flag:
                yield f"{head} {flag[0]}"
            elif left and _PLAIN.fullmatch(word):
                head, left = f"{head} {word}", left - 1
                yield head
            else:
                left = 0


def _clauses(text: str) -> Iterator[tuple[str, str, list[str], bool]]:
    """Yield the clauses of a lesson: the part of each, its text, its code, and whether that is shell."""
    structured = passages.parts_of(text[:MAX_CHARS])
    if structured.problem:
        yield SYMPTOM, structured.problem, _spans(structured.problem), True
    advice = "\n\n".join(filter(None, (structured.summary, structured.explanation)))
    end = 0
    for block in _FENCE.finditer(advice):
        above = advice[end : block.start()]
        yield from _prose(above)
        typed = "\n".join(_PROMPTS.findall(block[3]))
        is_shell = bool(typed) or block[2].strip().lower() in _SHELLS
        yield _part_of_block(above), block[3], [typed or block[3]], is_shell
        end = block.end()
    yield from _prose(advice[end:])


def _part_of_block(above: str) -> str:
    """Return the part of a block of code by the end of the line above it."""
    line = above.strip().rpartition("\n")[2]
    clauses = [clause for clause in _CLAUSES.split(line) if clause.strip()]
    pieces = [part for part, piece in _pieces(clauses[-1]) if piece.strip()] if clauses else []
    return pieces[-1] if pieces else ADVICE


def _spans(text: str) -> list[str]:
    return [span[2] for span in _SPAN.finditer(text)]


def _prose(text: str) -> Iterator[tuple[str, str, list[str], bool]]:
    """Yield the clauses of prose, as `_clauses` does."""
    spans: list[str] = []

    def hide(match: re.Match[str]) -> str:
        spans.append(match[0])
        return f"\x00{len(spans) - 1}\x00"

    for clause in filter(str.strip, _CLAUSES.split(_SPAN.sub(hide, text))):
        for part, piece in _pieces(clause):
            shown = re.sub(r"\x00(\d+)\x00", lambda match: spans[int(match[1])], piece)
            yield part, shown, _spans(shown), True


def _pieces(clause: str) -> Iterator[tuple[str, str]]:
    """Yield the pieces of a clause: what follows *not* is against, what leads to it is not."""
    fails, orders = _FAILS.search(clause), _ORDERS.search(clause)
    if fails and (orders is None or orders.start() > fails.start()):
        yield SYMPTOM, clause[: orders.start()] if orders else clause
        clause = clause[orders.start() :] if orders else ""
    refused = _NOT.search(clause)
    if refused is None:
        yield ADVICE, clause
        return
    yield ADVICE, clause[: refused.start()]
    rest = clause[refused.end() :]
    again = _ORDERS.search(rest)
    if again and "," in rest[: again.start()]:
        yield ADVICE, rest[again.start() :]
        rest = rest[: again.start()]
    yield AGAINST, rest
