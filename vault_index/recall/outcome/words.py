"""The words of a lesson by which one sees that it was followed: flags, names, paths, commands, versions.

Each has a weight: how surely somebody who writes it has it from the lesson. A clause says which part a
word has in the lesson: advice, what the lesson warns of, or the failure that it is about.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache

from vault_index.lesson import passages
from vault_index.transcripts.vocabulary import STOP_WORDS

ADVICE, AGAINST, SYMPTOM = "advice", "against", "symptom"
PROGRAM = "$"  # in front of a word: as a program that is run, `$pnpm`
RUN = "$ "  # in front of two: a program and its first word, `$ buf generate`
MAX_CHARS = 20_000  # of a lesson that are read
CACHED = 4096  # texts of steps: several lessons are compared with each
MIN_FAILURE = 3  # words of a failure that is recognised by them
SURE = 0.9  # weight of a word that nobody writes by chance
OF_PLACE = 0.4  # weight of a file beside such a word: work in it need not be the advice
MIN_DOCUMENTS = 20  # lessons; among fewer, how often a word occurs says nothing

_TOKEN = re.compile(
    r"--?[A-Za-z][\w-]*|[@$]?[A-Za-z_][\w$]*(?:(?:::|[./:@-])+[\w$*]+)*|\.[a-z][\w.-]+"
    r"|v?\d+(?:\.\d+)+(?:-\w+)?"
)
_WORD = re.compile(r"[\w-]+")
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

_CAMEL = re.compile(r"[a-z][a-z0-9]*(?:[A-Z][a-z0-9]*)+|(?:[A-Z][a-z0-9]+){2,}")
_CONSTANT = re.compile(r"[A-Z][A-Z0-9]*_[A-Z0-9_]+")
_ENDING = re.compile(r"\.[a-z]\w{0,4}$")
_ACRONYM = re.compile(r"[A-Z][A-Z0-9]{2,9}")
_VERSION = re.compile(r"v?\d+(?:\.\d+)+(?:-\w+)?")
_SEPARATORS = re.compile(r"&&|\|\|?|;|\n|\$\(|`")
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*=\S*")
_WRAPPERS = frozenset("sudo time env exec command nohup npx bunx uvx".split())
# Words that are in every second session, whatever the lesson.
_COMMON = frozenset(
    """
    -- --help --version --force --all --verbose --quiet --json --yes --stat --oneline --name --port
    --no-verify --amend --short --version -m -c readme.md package.json pyproject.toml requirements.txt
    makefile dockerfile main.py index.js index.ts app.py setup.py __init__.py tsconfig.json cargo.toml
    go.mod claude.md agents.md changelog.md license .gitignore .env config.toml settings.json src/
    dev/null node_modules main.go main.rs --format user.email user.name
    stdout stderr stdin e.g i.e etc. and/or true false none null self str int list dict foo bar todo
    api json yaml toml html css http https url sql utf-8 cli git github docker python node npm bash shell
    linux the and ci pr id ids __main__ __name__ n/a
    """.split()
)
_COMMON_PROGRAMS = frozenset(
    """
    import from def class end if for while do done then fi else elif return let const var function func
    select insert update delete create with try except print raise begin require include case when esac
    not and or main c e i x y set get new use type package module install run build start stop
    ls cd cat echo grep rg find sed awk head tail wc mkdir rm mv cp touch chmod which pwd sort uniq xargs
    git python python3 pytest npm node npx pip pip3 bash sh curl make docker kubectl go cargo ruff mypy
    uv yarn tsc eslint test true export source sleep kill ps diff tee date env jq gh terraform
    """.split()
)
_COMMON_RUNS = frozenset(
    f"{RUN}{command}"
    for command in (
        "git status|git diff|git log|git add|git commit|git push|git pull|git checkout|git switch|"
        "git branch|git show|git stash|git rebase|git merge|git fetch|git restore|git clone|"
        "npm install|npm test|npm run|npm start|npm i|pip install|python -m|python3 -m|go test|"
        "go build|go run|cargo build|cargo test|cargo run|docker build|docker run|docker ps|"
        "docker compose|make test|make build|uv run|yarn install|pnpm install|pnpm test|terraform plan|"
        "terraform apply|terraform init|kubectl get|kubectl apply|gh pr"
    ).split("|")
)


@dataclass(frozen=True, slots=True)
class Marks:
    """The words by which one lesson is recognised, with weights, 0..1, by their part in it.

    `failure` are the words of the sentences about its failure, and `about` those of its title.
    """

    advice: Mapping[str, float]
    against: frozenset[str] = frozenset()
    symptoms: Mapping[str, float] = field(default_factory=dict)
    failure: tuple[frozenset[str], ...] = ()
    about: frozenset[str] = frozenset()


def marks_of(title: str, text: str) -> Marks:
    """Return what a lesson is recognised by; no advice for one that names nothing."""
    weights: dict[str, dict[str, float]] = {ADVICE: {}, AGAINST: {}, SYMPTOM: {}}
    failures: list[frozenset[str]] = []
    for part, clause, weighed in _clauses(text):
        for word, weight in weighed:
            weights[part][word] = max(weights[part].get(word, 0.0), weight)
        if part == SYMPTOM:  # what a program prints stands in it by itself
            quoted = [span[2] for span in _SPAN.finditer(clause)]
            said = map(plain_words, (clause, *quoted))
            failures += [plain for plain in said if len(plain) >= MIN_FAILURE]
    advised = {
        word: weight
        for word, weight in weights[ADVICE].items()
        if weight and word not in weights[AGAINST] and word not in weights[SYMPTOM]
    }
    if any(weight >= SURE and not _is_place(word) for word, weight in advised.items()):
        advised |= {
            word: min(weight, OF_PLACE) for word, weight in advised.items() if _is_place(word)
        }
    return Marks(
        advised,
        frozenset(weights[AGAINST]) - set(advised),
        {word: weight for word, weight in weights[SYMPTOM].items() if weight},
        tuple(failures),
        plain_words(title),
    )


def _is_place(word: str) -> bool:
    """Whether a word is the name of a file or folder: where to do what a lesson says."""
    return not word.startswith((PROGRAM, "-")) and ("/" in word or bool(_ENDING.search(word)))


def by_rarity(marks: Marks, documents: Mapping[str, int], count: int) -> Marks:
    """Return the marks with the weight of words that many of `count` lessons have lowered.

    `documents` says how many lessons have a word.
    """
    if count < MIN_DOCUMENTS:
        return marks
    whole = math.log(count)
    rare = {
        word: weight * min(1.0, math.log(count / documents.get(word, 1)) / whole * 1.5)
        for word, weight in marks.advice.items()
    }
    return replace(marks, advice=rare)


@lru_cache(maxsize=CACHED)
def words_in(text: str) -> frozenset[str]:
    """Return the words of a text as a lesson's marks have them."""
    return frozenset(form for token in _TOKEN.findall(text) for form in _forms(token))


@lru_cache(maxsize=CACHED)
def words_run(command: str) -> frozenset[str]:
    """Return the words of a shell command, its programs and their first words among them."""
    return words_in(command) | frozenset(_programs(command))


def plain_words(text: str) -> frozenset[str]:
    """Return the words of a sentence that say something, without endings, lower case."""
    return frozenset(
        _stem(word)
        for word in re.findall(r"[a-z][a-z0-9_]{2,}", text.lower())
        if word not in STOP_WORDS
    )


def _stem(word: str) -> str:
    for ending in ("ing", "ies", "es", "ed", "s"):
        if word.endswith(ending) and len(word) - len(ending) >= 4:
            return word.removesuffix(ending)
    return word


_Weighed = Iterator[tuple[str, float]]


def _clauses(text: str) -> Iterator[tuple[str, str, _Weighed]]:
    """Yield the clauses of a lesson: the part that each has, its text, its words with their weight."""
    structured = passages.parts_of(text[:MAX_CHARS])
    if structured.problem:
        yield SYMPTOM, structured.problem, _weighed(structured.problem)
    advice = "\n\n".join(filter(None, (structured.summary, structured.explanation)))
    end = 0
    for block in _FENCE.finditer(advice):
        above = advice[end : block.start()]
        yield from _prose(above)
        yield _part_of_block(above), block[3], _weighed_block(block[2].strip().lower(), block[3])
        end = block.end()
    yield from _prose(advice[end:])


def _part_of_block(above: str) -> str:
    """Return the part of a block of code by the end of the line above it."""
    line = above.strip().rpartition("\n")[2]
    clauses = [clause for clause in _CLAUSES.split(line) if clause.strip()]
    pieces = [part for part, piece in _pieces(clauses[-1]) if piece.strip()] if clauses else []
    return pieces[-1] if pieces else ADVICE


def _prose(text: str) -> Iterator[tuple[str, str, _Weighed]]:
    """Yield the clauses of prose, as `_clauses` does."""
    spans: list[str] = []

    def hide(match: re.Match[str]) -> str:
        spans.append(match[0])
        return f"\x00{len(spans) - 1}\x00"

    for clause in filter(str.strip, _CLAUSES.split(_SPAN.sub(hide, text))):
        for part, piece in _pieces(clause):
            shown = re.sub(r"\x00(\d+)\x00", lambda match: spans[int(match[1])], piece)
            yield part, shown, _weighed(shown)


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


def _weighed(clause: str) -> Iterator[tuple[str, float]]:
    """Yield the words of a clause that can be recognised, each with its weight."""
    for span in _SPAN.finditer(clause):
        yield from _weighed_code(span[2])
    for token in _TOKEN.findall(_SPAN.sub(" ", clause)):
        for form in _forms(token):
            if weight := _weight(form, token):
                yield form, weight


def _weighed_code(code: str, *, is_shell: bool = True) -> Iterator[tuple[str, float]]:
    """Yield the words of code. A plain word counts where it is all of a span: `pnpm`, `clock`."""
    is_word = _WORD.fullmatch(code) is not None
    for token in _TOKEN.findall(code):
        for form in _forms(token):
            weight = _weight(form, token, in_code=True)
            if not weight and is_word and len(form) >= 3 and form not in _COMMON:
                weight = 0.5 if form not in _COMMON_PROGRAMS else 0.0
            yield form, weight
    if is_shell:
        for command in _programs(code):
            yield command, _weight_of_program(command)


def _weighed_block(language: str, code: str) -> Iterator[tuple[str, float]]:
    """Yield the words of a block of code; of one with prompts only those of what is typed."""
    typed = re.findall(r"^[ \t]*[$%] (.+)$", code, re.MULTILINE)
    is_shell = bool(typed) or language in _SHELLS
    return _weighed_code("\n".join(typed) or code, is_shell=is_shell)


def _forms(token: str) -> Iterable[str]:
    """Return a token as it is compared: whole and, of a path or dotted name, also its end."""
    token = token.strip(".:@$*").rstrip("-/")
    lower = token.lower()
    forms = {lower}
    if "/" in lower:
        forms.add(lower.rpartition("/")[2])
        pieces = lower.split("/")
        forms.update("/".join(pieces[start:]) for start in range(1, min(len(pieces) - 1, 6)))
    elif "." in lower and not _VERSION.fullmatch(lower):
        forms.add(lower.rpartition(".")[2])
    if ":" in lower:
        forms.update(piece for piece in lower.split(":") if piece)
    if "@" in lower:
        forms.update(piece for piece in lower.split("@") if piece)
    return [form for form in forms if len(form) > 1]


def _weight(form: str, token: str, *, in_code: bool = False) -> float:
    """Return how surely a word comes from the lesson that has it, by its shape."""
    if form in _COMMON or len(form) < 3:
        return 0.0
    if form.startswith("--"):
        return 1.0 if len(form) >= 8 else 0.6
    if form.startswith("-"):
        return 0.0
    if _VERSION.fullmatch(form):
        return 0.6 if in_code or form.count(".") > 1 else 0.4
    if "/" in form:
        return 1.0 if len(form) >= 6 and (in_code or re.search(r"\.\w{1,5}$", form)) else 0.0
    whole = token.rpartition("/")[2].rpartition(".")[2] if form != token.lower() else token
    if _CONSTANT.fullmatch(whole) or "_" in form.strip("_"):
        return 1.0
    if _CAMEL.fullmatch(whole):
        return 0.9
    if re.search(r"\.\w{1,5}$", form):
        return 0.9 if len(form) >= 7 else 0.4
    if not in_code:
        return 0.35 if _ACRONYM.fullmatch(token) else 0.0
    if "-" in form or ":" in form:
        return 0.9 if len(form) >= 7 else 0.5
    return 0.0


def _programs(text: str) -> Iterator[str]:
    """Yield the programs that a shell would run, each also with its first word."""
    for segment in _SEPARATORS.split(text[:4000]):
        words = segment.split()
        while words and (
            _ASSIGNMENT.fullmatch(words[0]) or words[0] in _WRAPPERS or words[0] == "$"
        ):
            words = words[1:]
        if not words or not re.fullmatch(r"[\w./~-]*?[a-zA-Z][\w.-]+", words[0]):
            continue
        program = words[0].rpartition("/")[2].lower()
        if not program[:1].isalnum():
            continue
        yield PROGRAM + program
        if len(words) > 1 and re.fullmatch(r"[a-z][\w:.-]*|-m", words[1]):
            yield f"{RUN}{program} {words[1]}"


def _weight_of_program(command: str) -> float:
    if command.startswith(RUN):
        return 0.0 if command in _COMMON_RUNS else 0.9
    return 0.0 if command[len(PROGRAM) :] in _COMMON_PROGRAMS | _COMMON else 1.0
