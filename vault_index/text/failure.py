"""A failed command's output: its error lines, a stable signature, a query to search for.

Only text: whoever stores any of it redacts it first.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, groupby

from vault_index.text import blocks
from vault_index.text.words import is_unspaced, terms_of

# Characters of an output: a compiler says it first, the rest last.
MAX_HEAD, MAX_TAIL = 16_000, 48_000
MAX_LINE = 400  # characters of a line
MAX_LINES = 3  # that tell
MAX_COMMAND = 200  # characters of a command in a query
MAX_QUERY = 1500  # characters of a query: the model reads no more
LONG_LINE = 200  # a longer one is a dump
MIN_NAME = 8  # letters of a word that is specific by itself
MUCH = 10  # more than a line can weigh
MAX_ABOVE = 2  # lines of a message above the one that names its place

_ANSI = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|[@-Z\\-_])")
_ODD = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b-\u200f\u202a-\u202e\u2060\ufeff]")
_STATUS = re.compile(r"(?:Exit code|exit status:?|Command failed with exit code) (\d+)\.?$")

# Lines that are no message: rules, carets, frames of a stack, what a tool adds to any failure.
_NOISE = re.compile(
    r"""[\W_]*$|\d+(?:\s+\S+)?$
    | File[ ]".*",[ ]line[ ]\d+ | at[ ][^ ]+([ ]\(.*\)|:\d+:\d+)?$ | at[ ].*\(.*:\d+:\d+\)$
    | from[ ]\S+:\d+:in[ ]
    | \S+\.\w+:\d+:in[ ]['`][^:]*$ | goroutine[ ]\d+ | [\w./-]+\.\w+:\d+:[ ]in[ ]\S+$
    | Traceback[ ]\(most | The[ ]above[ ]exception | During[ ]handling[ ]of
    | \(Use[ ]`node | Node\.js[ ]v
    | npm[ ](?:ERR!|error)[ ](?:A[ ]complete[ ]log|\s*/|code[ ]ELIFECYCLE|errno|path|cwd)
    | npm[ ](?:warn|notice|verb) | hint: | note:[ ]run[ ]with
    | (?:Try|Run)[ ].*(?:--help|-h\b|[ ]help\b) | usage: | See[ ]
    | make(?:\[\d+\])?:[ ](?:\*\*\*|Entering|Leaving) | For[ ]more[ ]information
    | This[ ]error[ ]originates
    | (?:Downloading|Collecting|Using[ ]cached|Installing|Compiling|Updating|Finished|Running
    |Requirement)\b
    | go:[ ](?:downloading|finding) | \d+[ ]+\| | \|[ ] | --> | \u276f | [>$%+][ ] | \.\.\.
    | ====|____|----
    | (?:FAILED|ERROR)[ ]\S+\.py | \d+[ ](?:passed|failed|errors?|tests?|examples?)\b | Ran[ ]\d+
    | Finished[ ]in""",
    re.VERBOSE | re.IGNORECASE,
)
_NAME = re.compile(
    r"""\b(?:[A-Za-z_]\w*(?:\.|::))*[A-Z]\w*(?:Error|Exception|Failure|Fault|Denied|NotFound
    |Violation|Timeout)\b
    | \b(?:E[A-Z]{4,}|ERR_[A-Z_]+|SIG[A-Z]{3,}|[A-Z]{1,4}\d{3,5}|SC\d{4}|SQLSTATE\[?\w+)\b""",
    re.VERBOSE,
)
_NO_NAMES = frozenset("ERROR ERRORS EXCEPTION FAILURE FAILURES".split())
_SAYS = re.compile(
    r"""\b(?:error|fatal|panic|exception|err!|failure|abort(?:ed|ing)?|critical)\b\S{0,12}[:!\]]?
    | \bE\d{3,5}\b""",
    re.VERBOSE | re.IGNORECASE,
)
_MEANS = re.compile(
    r"""\b(?:cannot|can't|couldn't|could[ ]not|unable|not[ ](?:found|allowed|permitted|supported
    |defined|valid|an?|a)
    | no[ ](?:such|matching|module|space|default|route|rule|changes) | denied | refused | failed
    | invalid | illegal
    | unexpected | undefined | missing | unknown | unrecognized | unsupported | already
    | exceeded | conflicts?
    | required?s? | must | expected | does[ ]not | doesn't | is[ ]not | isn't | timed[ ]out
    | deprecated | ambiguous
    | too[ ](?:many|long|large|deep|few) | mismatch\w* | incompatible | forbidden | unauthorized
    | rejected
    | locked | in[ ]use | not | killed | reset | unreachable | violates?|duplicate)\b(?!\()""",
    re.VERBOSE | re.IGNORECASE,
)
_SUMMARY = re.compile(
    r"(?:error: )?(?:could not compile|aborting due|script .* exited|process completed"
    r"|command failed|the command .* (?:failed|exited)|lifecycle script|recipe .* failed"
    r"|subprocess-exited|build failed|exited with|.*\bexit (?:code|status) \d+|error \d+$)",
    re.IGNORECASE,
)
# What a line that only counts is made of, beside numbers, names in quotes and paths: a tool closes with
# "Found 2 errors in 1 file (checked 3 source files)", whatever it found.
_COUNTING = frozenset(
    """error problem warning failure issue file source violation offense hint note info information
    diagnostic suggestion found checked failed detected inspected generated emitted reported listing
    processed encountered skipped fixable potentially autofixable remaining fatal total and in of the
    same a for with on to at that are is can be by due previous option fix starting m s""".split()
)
_QUOTED = re.compile(r"`[^`]*`|'[^']*'|\"[^\"]*\"")
_SENTENCE = re.compile(r"[.!]\s")

# A line of a program's source, which agents often show before they run it.
_SOURCE = re.compile(
    r"""(?:const|let|var|import|from|def|class|return|if|elif|else|for|while|function|func|fn|use|using
    |package|public|private|export|raise|throw|try|except|catch|finally|with|async|await|assert|print\w*
    |echo|set|exit|console|logger|logging|log|self|this)\b(?!:[ ])
    | [@})\]#] | //|/\*|\*[/ ] | -[ ]\w+: | ["']{3} | ["'][\w-]+["']\s*: | </|<\w+[ >].*>$
    | (?!\w[\w.]*:[ ]).*[;{}(,\[\\=]$ | [\w.]+\((?!\d) | [\w.]+[ ]*[-+:]?=[ ]
    | \w+:[ ](?:true|false|\d+)$""",
    re.VERBOSE,
)
_SHOWS = frozenset("cat bat head tail less more nl sed awk grep rg jq diff xxd".split())
_FILE_ALONE = re.compile(r"[\w./\\@+-]+\.\w{1,5}")
_FILE = re.compile(r"(?=.*[A-Za-z])[\w.+@-]{2,}")  # a name

# What is another in each run. Names in quotes stay: another module has another cure.
_URL = re.compile(r"\b[a-z][a-z+]{1,9}://[^\s'\"<>)\]]+", re.IGNORECASE)
_PATH = re.compile(
    r"(?<![\w<])(?<!<n>)(?<!<hash>)(?<!<path>)"
    r"(?:[A-Za-z]:\\|~?/|\.{1,2}/|[\w.@+-]+[/\\](?=[\w.@+-]*[/\\.]))[\w.@+~/\\-]*(?::\d+)*"
)
_CHANGING = (
    (
        re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(?::\d\d)?(?:[.,]\d+)?(?:Z|[+-]\d\d:?\d\d)?"),
        "<time>",
    ),
    (re.compile(r"\b\d{1,2}:\d\d:\d\d(?:[.,]\d+)?\b"), "<time>"),
    (_URL, "<url>"),
    (_PATH, "<path>"),
    (re.compile(r"\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b", re.IGNORECASE), "<hash>"),
    (re.compile(r"\b0x[0-9a-f]+\b", re.IGNORECASE), "<hash>"),
    (re.compile(r"\b(?=[a-f]*\d)(?=\d*[a-f])[0-9a-f]{7,64}\b", re.IGNORECASE), "<hash>"),
)
# a status of HTTP says what happened, other numbers do not
_NUMBER = re.compile(
    r"((?:\bhttp(?:/[\d.]+)?|\bstatus(?:[ ]code)?|\bcode|\berror|\breturned)\W{1,3}[45]\d\d\b)"
    r"|(?<![\w.])[+-]?\d+(?:[.,:]\d+)*(?=(?:ms|s|[kmg]i?b?|%)?(?!\w))",
    re.IGNORECASE,
)
_PLACE = re.compile(r"<(?:path|url|time|hash|n)>")

# What tests of the user's own say, and what is no failure of a command.
_ASSERTION = re.compile(
    r"""AssertionError|\bassert\b.*==|assertion.*(?:failed|left)|expect\(|---[ ]FAIL|Failure/Error
    | expected:?[ ].*(?:\bgot\b|but[ ]was|\bto[ ](?:be|equal|deep)\b|\breceived\b)|\b(?:Expected
    |Received):
    | left[ ]==[ ]right|XCTAssert|\bwant\b.*\bgot\b|\bgot\b.*\bwant\b|Failed[ ]asserting|opentest4j
    | \bTests?:?[ ].*\d+[ ]failed|^\d+[ ]failed|examples?,[ ]\d+[ ]failure""",
    re.VERBOSE | re.IGNORECASE,
)
_STOPPED = re.compile(
    r"user doesn't want|tool use was rejected|command timed out|request interrupted"
    r"|permission to use|was blocked by|hook error",
    re.IGNORECASE,
)
_TEST = re.compile(r"\b(?:test_\w{3,}|Test[A-Z]\w{2,}|\w{3,}(?:_test|_spec|\.test|\.spec))\b")

_SPLIT = re.compile(r"&&|\|\|?|;|\n|(?<![\d>])&(?![\d>&])")
_BEFORE = frozenset("sudo time env command exec npx bunx uvx pipenv nohup nice timeout".split())
_SEQUENCE = re.compile(r"&&|\|\||;|\n")
_ENDS_MAKE = re.compile(r"make(?:\[\d+\])?: \*\*\*")
_WRITES = re.compile(r"(?<![\d>])>|<<|\s(?:-i|--in-place)\b")
_BESIDE = frozenset("cd tail head grep echo true fi done export set source".split())
_NO_PROGRAM = re.compile(r"[-<>&\d]|.*=")  # an option, a redirection, a variable
_GENERAL = frozenset(
    """a an and at by code command could error errors exit failed failure fatal file for found from in
    is it line no not of on or such the to unable was with traceback most recent call last test tests
    session starts short summary info failures""".split()
)


@dataclass(frozen=True)
class Failure:
    """A failed command. `lines` are those that say why, `output` all that may be matched, cleaned."""

    command: str
    program: str
    lines: tuple[str, ...]
    output: tuple[str, ...]

    @property
    def queries(self) -> tuple[str, str, str]:
        command, lines = self.command[:MAX_COMMAND], "\n".join(self.lines)
        whole = "\n".join([self.command[: 2 * MAX_COMMAND], *self.output])
        return f"{command}\n{lines}".strip(), lines or command, whole[:MAX_QUERY]

    @cached_property
    def normal(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(map(normalise, self.output)))

    @cached_property
    def signature(self) -> str:
        """Return the signature of a failure, equal in two runs: 16 hexadecimal digits."""
        same = "\n".join([self.program, *map(normalise, self.lines)])
        return hashlib.sha256(same.encode("utf-8", "replace")).hexdigest()[:16]

    @property
    def names(self) -> tuple[str, ...]:
        names = (name for line in self.lines for name in _NAME.findall(line))
        return tuple(dict.fromkeys(name for name in names if name not in _NO_NAMES))

    @property
    def is_assertion(self) -> bool:
        return any(map(_ASSERTION.search, self.lines))

    @property
    def tests(self) -> frozenset[str]:
        return frozenset(name.casefold() for line in self.output for name in _TEST.findall(line))

    @property
    def is_none(self) -> bool:
        """Whether nothing failed that a lesson could be about: no message, or a call that was stopped."""
        return not self.lines or any(map(_STOPPED.search, self.lines))

    def has(self, line: str) -> bool:
        """Whether a taught line stands in the output, whatever changes from run to run."""
        wanted = normalise(line)
        return bool(wanted) and any(_stands_in(wanted, each) for each in self.normal)


def read(command: str, output: str) -> Failure:
    """Parse a failed command and its output; of a long output its two ends."""
    lines = [line.strip() for line in clean(output)]
    printed = [line for line in lines if not _STATUS.match(line)]
    program = program_of(command)
    one_line = " ".join(" ".join(clean(command[: 4 * MAX_COMMAND])).split())
    shown = _shown_before(command)
    if shown:
        printed = _printed_last(printed, command, shown)
    why = telling(printed, program, after_source=bool(shown))
    return Failure(one_line, program, tuple(why), tuple(printed))


def without_escapes(text: str) -> str:
    """Return a text without what steers a terminal: colours, links; the words of a link stay."""
    return _ANSI.sub("", text) if "\x1b" in text else text


def clean(output: str) -> list[str]:
    """Return the lines of an output as a terminal would show them, without colours; none is empty."""
    if len(output) > MAX_HEAD + MAX_TAIL:
        output = f"{output[:MAX_HEAD]}\n{output[-MAX_TAIL:]}"
    output = without_escapes(output).replace("\r\n", "\n")
    visible = (line.rstrip("\r").rpartition("\r")[2] for line in output.split("\n"))
    lines = (_ODD.sub("", line)[:MAX_LINE].rstrip() for line in visible)
    return [line for line in lines if line.strip()]


def excerpt(command: str, output: str, size: int) -> str:
    """Return the lines of an output that say why, then its first and last ones, within a size."""
    lines = [blocks.ends(line, LONG_LINE) for line in clean(output)]
    why, numbers = read(command, output).lines, range(len(lines))
    telling = (number for number in numbers if lines[number].strip() in why)
    ends = chain.from_iterable(zip(numbers, numbers[::-1], strict=True))
    chosen = set[int]()
    for number in (*telling, *ends):
        if number not in chosen and size >= len(lines[number]):
            chosen.add(number)
            size -= len(lines[number]) + 1
    shown = groupby(numbers, lambda number: number in chosen)
    runs = ([lines[number] for number in run] if is_shown else ["[...]"] for is_shown, run in shown)
    return "\n".join(chain.from_iterable(runs))


def telling(lines: Iterable[str], program: str = "", *, after_source: bool = False) -> list[str]:
    """Return at most `MAX_LINES` lines that say what failed, in their order.

    The first of lines that say as much count, but the last `after_source`: a file that was shown.
    """
    each = list(dict.fromkeys(lines))
    scored = [
        (_weight(line, program) - MUCH * (after_source and _is_source(line)), number, line)
        for number, line in enumerate(each)
        if any(map(str.isalpha, line)) and not _NOISE.match(line)
    ]
    if any(words_of_line(line) for _, _, line in scored if not _only_counts(line)):
        scored = [line for line in scored if not _only_counts(line[2])]
    if not scored:
        return [line for line in each if any(map(str.isalpha, line))][-1:]
    first = -1 if after_source else 1
    best = sorted(scored, key=lambda line: (-line[0], first * line[1]))[:MAX_LINES]
    chosen = [line for line in best if line[0] >= best[0][0] - 2 and line[0] > 0] or best[:1]
    return [line for _, _, line in sorted(chosen, key=lambda line: line[1])]


def _only_counts(line: str) -> bool:
    """Whether the first sentence of a line says no more than how much was found or checked."""
    first = _SENTENCE.split(line, maxsplit=1)[0]
    if not any(map(str.isdigit, first)):
        return False
    named = _PATH.sub(" ", _QUOTED.sub(" ", first)).replace("(s)", "s")
    words = re.findall(r"[^\W\d_]+", named.casefold())
    return bool(words) and all(word in _COUNTING or word[:-1] in _COUNTING for word in words)


def normalise(line: str) -> str:
    """Return a line without the parts that change from run to run: paths, numbers, hashes, times; folded.

    Twice is as good as once.
    """
    for pattern, name in _CHANGING:
        line = pattern.sub(name, line)
    line = _NUMBER.sub(lambda match: match[0] if match[1] else "<n>", line)
    return " ".join(line.split()).casefold()


def words_of_line(line: str) -> list[str]:
    """Return the words of a line of output without those that change from run to run."""
    return terms_of(_PLACE.sub(" ", normalise(line)))


def is_specific(line: str) -> bool:
    """Whether a taught line is more than any failure says: two words, or a long one, of its own."""
    specific = [word for word in words_of_line(line) if word not in _GENERAL]
    return len(specific) > 1 or any(len(word) >= MIN_NAME for word in specific)


def program_of(command: str) -> str:
    """Return the program that the last part of a command runs; "" without one."""
    for part in reversed(_SPLIT.split(command[:4000])):
        each = _words_of_call(part)
        name = _name_of_call(each)
        if not name or name in _BESIDE:
            continue
        if name in ("python", "python3") and "-m" in part.split() and len(each) > 1:
            return each[1]
        return re.sub(r"^(python|ruby|pip)\d[\d.]*$", r"\1", name)
    return ""


def _words_of_call(part: str) -> list[str]:
    each = [word for word in part.split() if not _NO_PROGRAM.match(word)]
    while each and each[0].rpartition("/")[2] in _BEFORE:
        each = each[1:]
    return each


def _name_of_call(words: Sequence[str]) -> str:
    return words[0].rpartition("/")[2].strip("\"'()`") if words else ""


def _shown_before(command: str) -> list[str]:
    """Return the names of the files that a command shows before its last part runs; [] for none."""
    return [
        name
        for part in _SEQUENCE.split(command[:4000])[:-1]
        if _name_of_call(_words_of_call(part.partition("|")[0])) in _SHOWS
        and not _WRITES.search(part)
        for name in _files_of(part)
    ]


def _files_of(part: str) -> list[str]:
    words = (word.strip("\"'").rpartition("/")[2] for word in _words_of_call(part)[1:])
    return [word for word in words if _FILE.fullmatch(word)]


def _printed_last(lines: list[str], command: str, shown: Collection[str]) -> list[str]:
    """Return the lines that the last part of a command printed, after those of the files it showed.

    They begin with the first line that names a place in one of the files, or the program, or with what
    stands above that within a line; where none does, with the first of the last lines that tell.
    """
    program = program_of(command) or "bash"
    files = {*shown, *_files_of(_SEQUENCE.split(command[:4000])[-1])}
    names = "|".join(map(re.escape, files))
    location = re.compile(rf"(.*?)\b(?:{names})(?:[:(]|\", line |: line )\d")
    begins = re.compile(rf"Traceback \(most|{re.escape(program)}: ")
    for index, line in enumerate(lines):
        if _ENDS_MAKE.match(line):
            continue
        if begins.match(line):
            return lines[index:]
        if named := location.match(line):
            is_within = " " in named[1]
            above = lines[max(0, index - MAX_ABOVE) : index] if is_within else []
            ends = [number for number, each in enumerate(above, start=1) if _is_source(each)]
            return lines[index - len(above) + max(ends, default=0) :]
    why = telling(lines, program, after_source=True)
    return lines[min(map(lines.index, why), default=0) :]


def _is_source(line: str) -> bool:
    return bool(_SOURCE.match(line))


def _weight(line: str, program: str) -> float:
    text = re.sub(r"^E {2,}", "", line)
    weight = 2.0 * bool(_NAME.search(text)) + 2 * bool(_SAYS.search(text))
    weight += 1.5 * bool(_MEANS.search(text)) + line.startswith("E  ")
    if program and text.startswith((f"{program}:", f"bash: {program}:")):
        weight += 1
    weight -= 3 * bool(_SUMMARY.match(text)) + 0.5 * (len(text) > LONG_LINE)
    is_place = not words_of_line(line) or _FILE_ALONE.fullmatch(line)
    return weight or -float(bool(is_place))


def _stands_in(wanted: str, line: str) -> bool:
    start = line.find(wanted)
    while start >= 0:
        end = start + len(wanted)
        before, after = line[start - 1 : start], line[end : end + 1]
        if not _is_inside(before, wanted[0]) and not _is_inside(after, wanted[-1]):
            return True
        start = line.find(wanted, start + 1)
    return False


def _is_inside(near: str, edge: str) -> bool:
    """Whether an edge of a line is within a word, as the character beside it goes on with it."""
    return near.isalnum() and edge.isalnum() and not (is_unspaced(near) or is_unspaced(edge))
