"""The parts of a lesson beside its text: the prompts that it is for, tags, a category."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from pathlib import PurePosixPath

from vault_index.hotpath import chatter
from vault_index.learn.by_rule import stated, title
from vault_index.learn.material import Material
from vault_index.transcripts import events, signs

MOST_FIRES, MOST_TAGS = 3, 5
LEAST_LIKENESS = 2.8
LEAST_SUBJECT = 4  # words that say what a prompt is about
LEAST_LINES = 3  # of a prompt with an output
MOST_SENTENCES = 8  # of a long prompt
_LOOKED_AT = 3_000  # characters of a prompt
LEAST_WORDS, MOST_CHARS = 4, 200  # of a prompt that somebody may type again
_OUTPUT = re.compile(r"::|\S@\S|<[^>]+>|\s{3,}|\.\.\.$|[%$] \S+/|\[[\w/]+ [0-9a-f]{7,}\]")
_WORD = re.compile(r"[^\W\d_]{3,}")
_COMMON = frozenset(
    "the and for that this with not are was but you can have has from all our its what when how why"
    " should would could does did don't will"
    " just into also then than them they there here which been about make want need like only some"
    " any let get now use used using one two"
    " file files code please add new see look still work works working before after where more"
    " again same other each".split()
)
# where the session had no prompt on another subject
_ELSEWHERE = (
    "Write a friendly welcome mail for new customers",
    "Which colours suit the landing page of a bakery?",
    "Translate the holiday greeting into Portuguese",
)
_LANGUAGES = {
    ending: language
    for language, endings in {
        "python": "py",
        "go": "go",
        "rust": "rs",
        "typescript": "ts tsx",
        "javascript": "js jsx mjs",
        "java": "java",
        "kotlin": "kt",
        "ruby": "rb",
        "php": "php",
        "csharp": "cs",
        "swift": "swift",
        "c": "c",
        "cpp": "cpp",
        "shell": "sh",
        "sql": "sql",
        "vue": "vue",
        "terraform": "tf",
        "css": "css",
        "html": "html",
        "yaml": "yml yaml",
        "toml": "toml",
        "docs": "md",
    }.items()
    for ending in endings.split()
}
_TOOLS = frozenset(
    "git npm pnpm yarn pip uv pytest mypy ruff docker go cargo make just mise terraform kubectl gh"
    " eslint prettier vitest jest tsc gradle"
    " mvn cmake poetry tox pre-commit brew goreleaser golangci-lint".split()
)
_PLACES = (
    (
        r"(?:^|/)\.github/|\.gitlab-ci|\.circleci/|Jenkinsfile|azure-pipelines|goreleaser",
        "devops/ci-cd",
    ),
    (r"(?:^|/)(?:Dockerfile|docker-compose|compose\.ya?ml)|\.dockerfile$", "devops/docker"),
    (r"\.tf$|(?:^|/)(?:helm|k8s|kubernetes|charts|terraform|deploy)/", "devops/deployment"),
    (r"(?:^|/)(?:CLAUDE|AGENTS)\.md$|(?:^|/)\.claude/", "workflow/claude-code"),
    (r"\.(?:tsx|jsx|vue|svelte|css|scss)$", "development/frontend"),
)


def words(text: str) -> set[str]:
    """Return the words of a text that say what it is about."""
    return {word for word in map(str.lower, _WORD.findall(text)) if word not in _COMMON}


def fires_on(material: Material, number: int, text: str, told: Collection[int]) -> tuple[str, ...]:
    """Return the prompts that somebody might type again where a lesson with this text would help.

    `number` is the prompt that taught it; those that were `told` something are no requests, and the ones
    before them led there. For a prompt with an output it is the line about the error.
    """
    subject = words(text)
    asked = [
        (at, sentences)
        for at, sentences in _requests(material)
        if at not in told
        if not material.prompts[at].is_correction and not material.prompts[at].is_refusal
    ]
    before = [at for at, _ in asked if at <= number][::-1]
    near = dict(zip(before, (2.0, 1.2, 0.6), strict=False))
    scored = []
    for at, sentences in asked:
        whole = len(words(material.prompts[at].text[:_LOOKED_AT]) & subject)
        best = max(
            sentences, key=lambda sentence: (len(words(sentence) & subject), len(sentence) > 30)
        )
        own = len(words(best) & subject)
        error = _error_in(material.prompts[at].text) if at == number else ""
        if error:
            own, best = 4, error
        subject_of_all = 1.0 if at == asked[0][0] else 0.0
        likeness = min(own, 4) + 0.3 * min(whole, 6) + near.get(at, 0.0) + subject_of_all
        scored.append((likeness, at, best))
    scored.sort(reverse=True)
    chosen = [request for points, _, request in scored if points >= LEAST_LIKENESS][:MOST_FIRES]
    if not chosen:
        chosen = [request for _, _, request in scored[:1]]
    if not chosen:
        chosen = [sentences[0] for _, sentences in _requests(material)[:1]]
    return tuple(dict.fromkeys(chosen))


def _error_in(prompt: str) -> str:
    """Return the line of an output in a prompt that names the error, "" for a prompt without one."""
    if prompt.count("\n") < LEAST_LINES:
        return ""
    line = signs.error_line(prompt)
    is_error = re.search(r"\b(?:error|fatal|denied|exception|cannot|failed)\b", line, re.IGNORECASE)
    return line if is_error and 20 <= len(line) <= MOST_CHARS and line in prompt else ""


def silent_on(material: Material, text: str, fires: Sequence[str]) -> tuple[str, ...]:
    """Return a prompt on another subject, of the session if it has one."""
    subject = words(" ".join([text, *fires]))
    others = [
        (-len(words(sentences[0])), sentences[0])
        for at, sentences in _requests(material)
        if not words(material.prompts[at].text[:_LOOKED_AT]) & subject
        if not material.prompts[at].is_correction and not material.prompts[at].is_refusal
        if len(words(sentences[0])) >= LEAST_SUBJECT
    ]
    if others:
        return (min(others)[1],)
    return (next((each for each in _ELSEWHERE if not words(each) & subject), _ELSEWHERE[0]),)


def _requests(material: Material) -> list[tuple[int, list[str]]]:
    """Return what somebody may type again of each prompt, whole or a sentence, with its number."""
    result = []
    for number, said in enumerate(material.prompts):
        if said.origin in (events.PLAN, events.SHELL_COMMAND, events.ANSWER):
            continue
        text = said.text.strip()
        if said.origin == events.SLASH_COMMAND:
            text = text.partition(" ")[2].strip()
        is_short = len(text) <= MOST_CHARS and "\n" not in text
        candidates = [text] if is_short else title.sentences(text)[:MOST_SENTENCES]
        requests = [each for each in candidates if _is_request(each)]
        if requests:
            result.append((number, requests))
    return result


def _is_request(text: str) -> bool:
    """Whether somebody may type a text again: no output, no outburst, no acknowledgement."""
    if len(text) > MOST_CHARS or len(text) < chatter.MIN_CHARS or _OUTPUT.search(text):
        return False
    if stated.FOUL.search(text):
        return False
    return not text.isascii() or (
        len(text.split()) >= LEAST_WORDS and not chatter.why_skipped(text)
    )


def tags(files: Iterable[str], commands: Iterable[str], names: Iterable[str]) -> tuple[str, ...]:
    """Return tags by the kinds of files, the programs and what the text names."""
    result: dict[str, None] = {}
    for command in commands:
        for word in re.findall(r"[\w.-]+", command)[:40]:
            if word in _TOOLS:
                result[word] = None
    for name in names:
        if name.lower() in _TOOLS:
            result[name.lower()] = None
        ending = PurePosixPath(name).suffix.lstrip(".").lower()
        if ending in _LANGUAGES:
            result[_LANGUAGES[ending]] = None
    for file in files:
        ending = PurePosixPath(file).suffix.lstrip(".").lower()
        if ending in _LANGUAGES:
            result[_LANGUAGES[ending]] = None
    return tuple(result)[:MOST_TAGS]


def category(files: Sequence[str]) -> str:
    """Return the category that the paths of files make evident, "" if they do not."""
    for form, path in _PLACES:
        there = sum(bool(re.search(form, file)) for file in files)
        if there and there * 2 > len(files):
            return path
    return ""
