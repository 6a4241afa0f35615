"""The tools of agents: which read, change, search or run something, and what is kept of a call."""

from __future__ import annotations

import posixpath
import re
import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

# Programs that test, build or lint, and programs of which only some first words do.
_CHECKS = frozenset(
    "pytest tox nox mypy ruff black pyright jest vitest mocha tsc eslint prettier biome golangci-lint"
    " shellcheck phpunit rspec rubocop make just task ninja cmake bazel gradle gradlew mvn playwright"
    " gofmt goreleaser pre-commit actionlint".split()
)
_CHECKS_OF = {
    "go": "test build vet run install mod generate",
    "cargo": "test build check clippy run fmt nextest llvm-cov",
    "git": "push rebase merge cherry-pick pull",
    "uv": "sync build",
    "dotnet": "test build",
    "swift": "test build",
    "mix": "test compile",
    "terraform": "plan validate apply",
    "docker": "build compose",
    **dict.fromkeys(
        ("npm", "pnpm", "yarn", "bun", "deno"), "test build lint check typecheck ci install dev"
    ),
}
_RUNNERS = frozenset(
    "sudo time env command exec npx bunx uvx poetry pipenv nix xargs timeout".split()
)
_RUNNERS_OF = {"uv": "run tool", "npm": "run", "pnpm": "run exec", "yarn": "run", "bun": "run x",
               "mise": "run exec x", "poetry": "run", "bundle": "exec"}  # fmt: skip
_MODULES = frozenset("pytest unittest mypy ruff compileall build tox".split())  # of `python -m`
_SEPARATOR = re.compile(r"&&|\|\|?|;|\n|\(|\)|&(?!\d|>)")
MAX_COMMAND = 4_000  # characters that are looked at
_COMMIT = re.compile(r"\bgit\s+(?:-\S+\s+\S+\s+)*commit\b")
_COMMITTED = re.compile(r"^\[[^\]\n]*?[0-9a-f]{7,40}\] (.+)$", re.MULTILINE)
_HEREDOC = re.compile(r"<<-?\s*['\"]?(\w+)['\"]?[ \t]*\n\s*(.+)")
_HERE_DOCUMENT = re.compile(r"(?ms)(<<-?[ \t]*['\"]?(\w+)['\"]?)[^\n]*\n.*?(?:^[ \t]*\2\b|\Z)")
_LONG_QUOTATION = re.compile(r"\"[^\"\n]*\n[^\"]*\"|'[^'\n]*\n[^']*'")
_MESSAGE = re.compile(r"""\s-(?:a?m|-message)[ =]?(?:"((?:[^"\\]|\\.)*)"|'([^']*)')""", re.DOTALL)
# Lines by which checks say that they failed, though `| tail` hides their status.
_FAILED = re.compile(
    r"(?m)^(?:FAIL\b|FAILED\b|--- FAIL|E   |panic:|fatal:|error(?:\[\w+\])?:|Error:|npm ERR!|make: \*\*\*"
    r"|Traceback \(most|Build FAILED|.{0,80}\berror TS\d+:|\S+:\d+:\d+: (?:error|undefined|cannot)"
    r"|.{0,60}\b[1-9]\d* (?:failed|failures?|errors?)\b)"
)
# What the last lines of a command say that failed, though its status is 0.
LAST_LINES, MAX_END = 5, 4_000
_SAYS_AT_END = re.compile(
    r"(?im)^(?:\S{1,40}: )?(?:error|fatal|fatal error)(?:\[\w+\])?: \S"
    r"|^\S{1,60}: (?:.{0,80}: )?(?:command )?(?:not found|no matches found)(?:: \S|$)"
    r"|^.{1,100} not found\.?$|^no matches\b|^usage: \S"
)
_TRACEBACK = re.compile(
    r"(?s)^Traceback \(most recent call last\):\n.*\n\w[\w.]*(?:Error|Exception|Exit)\b",
    re.MULTILINE,
)
_HELP = re.compile(r"\s(?:--help|-h|help|--usage)(?:\s|$)")
_STATEMENTS = re.compile(r"&&|\|\||;|\n")
_NO_STATEMENT = frozenset("done fi esac } )".split())
_SHOWERS = frozenset(
    "cat head tail sed nl less bat awk grep egrep fgrep rg ag ack find ls tree diff jq curl wget echo"
    " printf strings journalctl man".split()
)
_SHOWERS_OF = {"git": "log show diff grep blame stash", "gh": "run api pr issue",
               "docker": "logs", "kubectl": "logs describe"}  # fmt: skip
_REDIRECTION = re.compile(r"\d?>>?(?:&\d|\s*\S+)")
_READERS = ("cat", "head", "tail", "sed", "nl", "less", "bat")
_FILE_NAME = re.compile(r"[\w./@+~-]*\.\w{1,8}")
_CHANGERS = frozenset("mv rm cp tee patch touch mkdir ln chmod rmdir".split())
_CHANGERS_OF = {
    "git": "mv rm apply commit push merge rebase cherry-pick revert restore reset tag am",
    "go": "get mod",
    **dict.fromkeys(
        ("npm", "pnpm", "yarn", "uv", "cargo", "pip"), "install add remove upgrade update"
    ),
}
_WRITTEN = re.compile(r"(?<![\d&=>-])>{1,2}[ \t]*([\w./~-]+)")  # `> a.py`, not `2>&1`


def text_of(command: Any) -> str:
    """Return a command as one text; an agent may write it as a list of words."""
    if isinstance(command, list):
        words = list(map(str, command))
        if len(words) == 3 and words[1] in ("-c", "-lc"):  # bash -lc "..."
            return words[2]
        return shlex.join(words)
    return str(command or "")


@lru_cache(maxsize=256)
def is_check(command: str) -> bool:
    """Whether a command tests, builds, lints or pushes: its failure and its passing mean something."""
    return any(_is_check(part.split()) for part in _SEPARATOR.split(without_data(command)))


def _is_check(words: list[str]) -> bool:
    while words:
        program, rest = words[0].rsplit("/", 1)[-1], words[1:]
        if program in _CHECKS:
            return True
        if program in ("python", "python3") and rest[:1] == ["-m"]:
            return rest[1:2] != [] and rest[1] in _MODULES
        has_words = program in _CHECKS_OF or program in _RUNNERS_OF
        options = [word for word in rest if not word.startswith("-")] if has_words else []
        if options and options[0].split(":")[0] in _CHECKS_OF.get(program, "").split():
            return True
        if options and options[0] in _RUNNERS_OF.get(program, "").split():
            words = options[1:]
            if program in ("npm", "pnpm", "yarn", "bun", "mise"):  # scripts have names of their own
                return any(
                    re.match(r"test|build|lint|check|type|fmt|format", word) for word in words
                )
        elif program in _RUNNERS or "=" in words[0] or program.isdigit():
            words = rest
        else:
            return False
    return False


@lru_cache(maxsize=256)
def is_commit(command: str) -> bool:
    """Whether a command makes a commit, or opens a pull request."""
    text = without_data(command)
    return bool(_COMMIT.search(text)) or "gh pr create" in text


def says_failed(output: str) -> bool:
    """Whether the output of a check says that it failed."""
    return bool(_FAILED.search(output))


def fails(command: str, output: str) -> bool:
    """Whether a command whose status is 0 failed: a check by its output, others by its last lines.

    `build | tail` has the status of `tail`. Files and history that a command shows say nothing.
    """
    if is_check(command) and says_failed(output):
        return True
    end = output.rstrip()[-MAX_END:]
    last = "\n".join(end.splitlines()[-LAST_LINES:])
    is_failure = _SAYS_AT_END.search(last) or _TRACEBACK.search(end)
    return bool(is_failure) and not _HELP.search(command) and not _shows(command)


def _shows(command: str) -> bool:
    """Whether the last part of a command shows what files, a history or a network have."""
    for statement in reversed(_STATEMENTS.split(without_data(command))):
        words = [word for word in statement.strip(" ({").split() if "=" not in word]
        while words and words[0] in (*_RUNNERS, "do", "then", "else"):
            words = words[1:]
        if words and words[0] not in _NO_STATEMENT:
            return words[0] in _SHOWERS or (
                words[1:2] != [] and (words[1] in _SHOWERS_OF.get(words[0], "").split())
            )
    return False


def subjects(command: str, output: str) -> list[str]:
    """Return the subjects of the commits that a command made: as git printed them, else as given."""
    if not _COMMIT.search(without_data(command)):
        return []
    if printed := _COMMITTED.findall(output):
        return [subject.strip() for subject in printed]
    after = command[command.find("commit") :]
    if heredoc := _HEREDOC.search(after):
        return [heredoc[2].strip()]
    if message := _MESSAGE.search(after):
        given = (message[1] or message[2] or "").strip().splitlines()
        return given[:1]
    return []


@lru_cache(maxsize=256)
def without_data(command: str) -> str:
    """Return a command without the text of its here-documents and quotations of several lines."""
    command = command[:MAX_COMMAND]
    if "\n" not in command:
        return command
    return _LONG_QUOTATION.sub('""', _HERE_DOCUMENT.sub(r"\1", command))


@lru_cache(maxsize=256)
def same_as(command: str) -> str:
    """Return the identity of a check across runs: the program and its first words.

    Folder, redirections, filters behind a pipe and options are left out: `go test ./... 2>&1 | tail`
    after changes is the check that failed as `cd x && go test -run TestA ./...`.
    """
    parts = [part.strip() for part in _SEPARATOR.split(without_data(command))]
    parts = [part for part in parts if part and not part.startswith("cd ")] or [command]
    check = next((part for part in parts if _is_check(part.split())), "")
    part = check or parts[0]
    words = _REDIRECTION.sub("", part).split()
    words = [word for word in words if "=" not in word]
    if words[1:2] == ["-m"] and len(words) > 2:  # python -m pytest
        return words[2]
    words = [word for word in words if not word.startswith("-")] or words
    if not check:
        return " ".join(words)
    if words[0] in _RUNNERS_OF and words[1:2] and words[1] in _RUNNERS_OF[words[0]].split():
        return " ".join(words[:3])
    return " ".join(
        words[:2] if words[0] in _CHECKS_OF or words[0] in ("make", "just") else words[:1]
    )


def reads(command: str) -> list[str]:
    """Return the files that a command shows: `cat a.py`, `sed -n 1,80p a.py`."""
    paths: list[str] = []
    for part in _SEPARATOR.split(without_data(command)):
        words = [word.strip("\"'") for word in part.split()]
        if words and words[0] in _READERS and "-i" not in words and ">" not in part:
            names = [word for word in words[1:] if not word.startswith("-")]
            names = names[1:] if words[0] == "sed" else names
            paths += filter(_FILE_NAME.fullmatch, names)
    return paths


@lru_cache(maxsize=256)
def is_change(command: str) -> bool:
    """Whether a command changes files or what others see of them: `git mv`, `sed -i`, `> a.py`."""
    text = without_data(command)
    if any(not path.startswith(("/dev/", "/tmp/")) for path in _WRITTEN.findall(text)):
        return True
    for part in _SEPARATOR.split(text):
        words = [word for word in part.split() if "=" not in word] or [""]
        second = words[1] if len(words) > 1 else ""
        if words[0] in _CHANGERS or second in _CHANGERS_OF.get(words[0], "").split():
            return True
        if words[0] in ("sed", "perl") and any(re.match(r"-\w*i", word) for word in words[1:]):
            return True
    return False


EDIT, READ, SEARCH, SHELL, TODO, OTHER = "edit", "read", "search", "shell", "todo", "other"
QUESTION = "AskUserQuestion"
_KINDS = {
    EDIT: "Edit MultiEdit Write NotebookEdit apply_patch replace write_file",
    READ: "Read NotebookRead read_file view_image",
    SEARCH: "Grep Glob LS WebSearch WebFetch ToolSearch grep_files list_dir",
    SHELL: "Bash PowerShell exec_command shell shell_command local_shell_call",
    TODO: "TodoWrite TaskCreate TaskUpdate update_plan",
}
_KIND = {name: kind for kind, names in _KINDS.items() for name in names.split()}
_PATHS = ("file_path", "notebook_path", "path")
_SHORT = 500  # characters of a value that is not the point of its call
MAX_TEXT = 100_000  # characters of a text that a call replaces or writes
_FILE = re.compile(r"^\*\*\* (Update|Add|Delete) File: (.*)$")
_ERROR_IN_TEXT = re.compile(r"\s*(?:MCP error|Error\b|\{\s*\"error\")")
_DRIVE = re.compile(r"^[A-Za-z]:[\\/]|^\\\\")  # or a share of Windows
Clean = Callable[[str], str]


@dataclass(frozen=True, slots=True)
class Edit:
    """A change of a file by a call of a tool. `is_whole`: `new` is all of the file."""

    path: str  # as the call names it
    old: str
    new: str
    is_whole: bool = False


def kind_of(tool: str) -> str:
    """Return the kind of a tool; OTHER for tools of servers and those that start subagents."""
    return _KIND.get(tool, OTHER)


def kept_of(
    kind: str, values: Mapping[str, Any], edits: Iterable[Edit], clean: Clean
) -> dict[str, Any]:
    """Return the kept part of a call's input, each text cleaned before it is shortened.

    `command` and `is_background` of a shell, `files` that it names, `text` that is looked for, todos.
    """
    if kind == SHELL:
        command = clean(text_of(values.get("command") or values.get("cmd")))
        return {"command": command, "is_background": values.get("run_in_background") is True}
    if kind == SEARCH:
        return {"text": clean(str(values.get("pattern") or values.get("query") or ""))[:_SHORT]}
    if kind != TODO:
        paths = [edit.path for edit in edits] if kind == EDIT else [_path_in(values)]
        named = dict.fromkeys(paths) if kind in (EDIT, READ) else ()
        return {"files": [clean(path) for path in named if path]}
    named = {name: values.get(name) for name in ("subject", "status", "taskId")}
    short: dict[str, Any] = {
        name: clean(value)[:_SHORT] for name, value in named.items() if isinstance(value, str)
    }
    todos = _dicts(values.get("todos") or values.get("plan"))
    texts = [str(todo.get("content") or todo.get("step") or "") for todo in todos]
    states = [str(todo.get("status")) for todo in todos]
    return short | {"todos": [*zip((clean(text)[:_SHORT] for text in texts), states, strict=True)]}


def _path_in(values: Mapping[str, Any]) -> str:
    return str(next(filter(None, map(values.get, _PATHS)), ""))


def relative_path(path: str, folder: str, current: str = "") -> str:
    """Return a path relative to `folder`, absolute outside of it. `current`: where it was named."""
    if any(map(_DRIVE.match, (path, folder, current))):
        path, folder, current = (text.replace("\\", "/") for text in (path, folder, current))
    if not _is_absolute(path):
        if not _is_absolute(current):
            return posixpath.normpath(path)
        path = posixpath.join(current, path)
    path = posixpath.normpath(path)
    prefix = f"{folder.rstrip('/')}/"
    return path.removeprefix(prefix) if len(prefix) > 1 else path


def _is_absolute(path: str) -> bool:
    return path.startswith("/") or bool(_DRIVE.match(path))


def shown_to_user(tool: str, values: Mapping[str, Any]) -> str:
    """Return the text of a call that the user reads: a plan, or questions with their choices."""
    if tool == "ExitPlanMode":
        return str(values.get("plan") or "")
    if tool != QUESTION:
        return ""
    lines = []
    for question in _dicts(values.get("questions")):
        lines.append(str(question.get("question") or ""))
        for option in _dicts(question.get("options")):
            lines.append(f"- {option.get('label') or ''}: {option.get('description') or ''}")
    return "\n".join(lines)


def is_result_needed(kind: str, values: Mapping[str, Any], text: str) -> bool:
    """Whether a result without an error counts: of todos, of a commit, or of what failed all the same."""
    if kind == TODO:
        return True
    if kind == OTHER:  # some servers of tools put their errors into the text alone
        return bool(_ERROR_IN_TEXT.match(text))
    command = str(values.get("command") or "")
    if kind != SHELL or not command:
        return False
    return is_commit(command) or fails(command, text)


def _dicts(value: Any) -> list[dict[str, Any]]:
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []


def edits_of(values: Mapping[str, Any]) -> list[Edit]:
    """Return the changes that the input of an editing call asks for."""
    path = _path_in(values)
    if isinstance(values.get("input"), str):
        return list(_patched(values["input"][: 10 * MAX_TEXT]))
    if "content" in values:
        return [Edit(path, "", _text(values["content"]), is_whole=True)]
    several = values.get("edits")
    each = several if isinstance(several, list) else [values]
    return [
        Edit(path, _text(edit.get("old_string")), _text(edit.get("new_string", edit.get("new_source"))))
        for edit in each
        if isinstance(edit, Mapping)
    ]  # fmt: skip


def _patched(patch: str) -> Iterator[Edit]:
    path, old, new, is_whole = "", list[str](), list[str](), False
    for line in [*patch.splitlines(), "*** Update File: "]:
        if match := _FILE.match(line):
            if path:
                yield Edit(path, "\n".join(old), "\n".join(new), is_whole)
            path, old, new, is_whole = match[2].strip(), [], [], match[1] == "Add"
        elif line[:1] in ("-", " ") and not is_whole:
            old.append(line[1:])
        if line[:1] in ("+", " "):
            new.append(line[1:])


def _text(value: Any) -> str:
    return value[:MAX_TEXT] if isinstance(value, str) else ""
