"""What belongs to a lesson beside its text: the prompts that it is for, tags, a category."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from pathlib import PurePosixPath

from vault_index.hotpath import chatter
from vault_index.journal import events
from vault_index.learn.by_rule import prose
from vault_index.learn.material import Material

MOST_FIRES, MOST_TAGS = 3, 5
LEAST_WORDS, MOST_CHARS = 4, 200  # of a prompt that somebody may type again
_WORD = re.compile(r"[^\W\d_]{3,}")
_COMMON = frozenset(
    "the and for that this with not are was but you can have has from all our its what when how why should would could does did don't will"
    " just into also then than them they there here which been about make want need like only some any let get now use used using one two"
    " file files code please add new see look still work works working before after where more again same other each".split()
)
# where the session had no prompt on another subject
_ELSEWHERE = (
    "Write a friendly welcome mail for new customers",
    "Which colours suit the landing page of a bakery?",
    "Translate the holiday greeting into Portuguese",
)
_LANGUAGES = {
    "py": "python", "go": "go", "rs": "rust", "ts": "typescript", "tsx": "typescript", "js": "javascript", "jsx": "javascript",
    "mjs": "javascript", "java": "java", "kt": "kotlin", "rb": "ruby", "php": "php", "cs": "csharp", "swift": "swift", "c": "c",
    "cpp": "cpp", "sh": "shell", "sql": "sql", "vue": "vue", "tf": "terraform", "css": "css", "html": "html", "yml": "yaml",
    "yaml": "yaml", "toml": "toml", "md": "docs",
}  # fmt: skip
_TOOLS = frozenset(
    "git npm pnpm yarn pip uv pytest mypy ruff docker go cargo make just mise terraform kubectl gh eslint prettier vitest jest tsc gradle"
    " mvn cmake poetry tox pre-commit brew goreleaser golangci-lint".split()
)
_PLACES = (
    (re.compile(r"(?:^|/)\.github/|\.gitlab-ci|\.circleci/|Jenkinsfile|azure-pipelines|\.travis\.yml|goreleaser"), "devops/ci-cd"),
    (re.compile(r"(?:^|/)(?:Dockerfile|docker-compose|compose\.ya?ml)|\.dockerfile$"), "devops/docker"),
    (re.compile(r"\.tf$|(?:^|/)(?:helm|k8s|kubernetes|charts|terraform|deploy)/"), "devops/deployment"),
    (re.compile(r"(?:^|/)CLAUDE\.md$|(?:^|/)AGENTS\.md$|(?:^|/)\.claude/"), "workflow/claude-code"),
    (re.compile(r"\.(?:tsx|jsx|vue|svelte|css|scss)$"), "development/frontend"),
)  # fmt: skip


def words(text: str) -> set[str]:
    """Return the words of a text that say what it is about."""
    return {word for word in map(str.lower, _WORD.findall(text)) if word not in _COMMON}


def fires_on(material: Material, number: int, text: str) -> tuple[str, ...]:
    """Return the prompts that somebody might type again where a lesson with this text would help.

    `number` is the prompt that taught it: the request before it led there.
    """
    subject = words(text)
    scored = []
    for at, request in _requests(material):
        common = len(words(request) & subject)
        distance = number - at
        near = 2.0 if distance == 0 else 1.5 if distance == 1 else 0.8 if 0 < distance <= 3 else 0.0
        if common == 0 and distance not in (0, 1):
            continue
        points = min(common, 4) + near
        scored.append((points, -abs(distance), request))
    scored.sort(reverse=True)
    best = [request for points, _, request in scored if points >= 2.5][:MOST_FIRES]
    return tuple(dict.fromkeys(best or [request for _, _, request in scored[:1]]))


def silent_on(material: Material, text: str, fires: Sequence[str]) -> tuple[str, ...]:
    """Return a prompt on another subject, of the session if it has one."""
    subject = words(" ".join([text, *fires]))
    others = [
        (len(words(request) & subject), -len(words(request)), request)
        for _, request in _requests(material)
        if request not in fires and len(words(request)) >= 3
    ]
    if others and min(others)[0] == 0:
        return (min(others)[2],)
    return (next((each for each in _ELSEWHERE if not words(each) & subject), _ELSEWHERE[0]),)


def _requests(material: Material) -> list[tuple[int, str]]:
    """Return the prompts as somebody may type them again, each with its number."""
    result = []
    for number, said in enumerate(material.prompts):
        if said.origin in (events.PLAN, events.SHELL_COMMAND, events.ANSWER):
            continue
        text = said.text.strip()
        if said.origin == events.SLASH_COMMAND:
            text = text.partition(" ")[2].strip()
        request = text if len(text) <= MOST_CHARS and "\n" not in text else _first_sentence(text)
        if (len(request.split()) >= LEAST_WORDS and not chatter.why_skipped(request)) or (
            request and not request.isascii() and len(request) >= chatter.MIN_CHARS
        ):
            result.append((number, request))
    return result


def _first_sentence(text: str) -> str:
    for sentence in prose.sentences(text):
        if len(sentence) <= MOST_CHARS and len(sentence.split()) >= LEAST_WORDS:
            return sentence
    return ""


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
        there = sum(bool(form.search(file)) for file in files)
        if there and there * 2 > len(files):
            return path
    return ""
