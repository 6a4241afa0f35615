"""The tools of agents: which read, change, search or run something, and what is kept of a call."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from vault_index.transcripts import shell

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
_KEPT = {
    EDIT: ("file_path", "notebook_path", "path"),
    READ: ("file_path", "notebook_path", "path"),
    SEARCH: ("pattern", "query"),
    TODO: ("subject", "status", "taskId"),
}
_SHORT = 500  # characters of a value that is not the point of its call
MAX_TEXT = 100_000  # characters of a text that a call replaces or writes
_FILE = re.compile(r"^\*\*\* (Update|Add|Delete) File: (.*)$")
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


def kept_input(
    kind: str, values: Mapping[str, Any], edits: Iterable[Edit], clean: Clean
) -> dict[str, Any]:
    """Return what is kept of a call's input, each text cleaned before it is shortened."""
    kept: dict[str, Any] = {}
    for name in _KEPT.get(kind, ()):
        if isinstance(value := values.get(name), str) and value:
            kept[name] = clean(value)[:_SHORT]
    if kind == SHELL:
        kept["command"] = clean(shell.text_of(values.get("command") or values.get("cmd")))
        kept["is_background"] = values.get("run_in_background") is True
    elif kind == EDIT:
        if isinstance(values.get("input"), str):
            kept["files"] = [clean(edit.path) for edit in edits]
    elif kind == TODO:
        kept["todos"] = _todos(values, clean)
    return kept


def files_of(values: Mapping[str, Any]) -> list[str]:
    """Return the paths that a call of a reading or editing tool names."""
    paths = list(values.get("files", ()))
    path = values.get("file_path") or values.get("notebook_path") or values.get("path")
    return [*paths, path] if path else paths


def shown_path(path: str, folder: str, current: str = "") -> str:
    """Return a path relative to `folder`, absolute outside of it. `current`: where it was named."""
    windows = bool(_DRIVE.match(path) or _DRIVE.match(folder) or _DRIVE.match(current))
    path, folder, current = (_plain(text, windows) for text in (path, folder, current))
    if not _is_absolute(path):
        if not current or not _is_absolute(current):
            return posixpath.normpath(path)
        path = posixpath.join(current, path)
    path = posixpath.normpath(path)
    prefix = f"{folder.rstrip('/')}/"
    return path.removeprefix(prefix) if len(prefix) > 1 else path


def _plain(path: str, windows: bool) -> str:
    return path.replace("\\", "/") if windows else path


def _is_absolute(path: str) -> bool:
    return path.startswith("/") or bool(_DRIVE.match(path))


def shown_to_user(tool: str, values: Mapping[str, Any]) -> str:
    """Return the text of a call that the user reads: a plan, or questions with their choices."""
    if tool == "ExitPlanMode":
        return str(values.get("plan") or "")
    if tool != QUESTION:
        return ""
    lines = []
    for question in _list(values.get("questions")):
        if isinstance(question, dict):
            lines.append(str(question.get("question") or ""))
            for option in _list(question.get("options")):
                if isinstance(option, dict):
                    label, about = option.get("label") or "", option.get("description") or ""
                    lines.append(f"- {label}: {about}")
    return "\n".join(lines)


def exits(kind: str, values: Mapping[str, Any]) -> bool:
    """Whether a call without an error has ended well: a command that runs on has not ended."""
    return kind == SHELL and not values.get("is_background")


def is_result_kept(kind: str, values: Mapping[str, Any], text: str) -> bool:
    """Whether a result counts though it is no error: of a commit, or of a check that says it failed."""
    if kind == TODO:
        return True
    command = str(values.get("command") or "")
    if kind != SHELL or not command:
        return False
    return shell.is_commit(command) or (shell.is_check(command) and shell.says_failed(text))


def _todos(values: Mapping[str, Any], clean: Clean) -> list[tuple[str, str]]:
    todos = _list(values.get("todos") or values.get("plan"))
    return [
        (
            clean(str(todo.get("content") or todo.get("step") or ""))[:_SHORT],
            str(todo.get("status")),
        )
        for todo in todos
        if isinstance(todo, dict)
    ]


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def edits_of(values: Mapping[str, Any]) -> list[Edit]:
    """Return the changes that the input of an editing call asks for."""
    path = str(values.get("file_path") or values.get("notebook_path") or values.get("path") or "")
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
    """Yield the changes of a patch in the form of `apply_patch`."""
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
