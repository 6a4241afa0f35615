"""Write our hooks into the settings of an agent, and take exactly them out again.

A settings file is JSON and the user's: all else in it stays, in its order.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from vault_index.entrypoints.agents import section
from vault_index.errors import SettingsError
from vault_index.hotpath.agents import ALWAYS, Agent, Hook

# The program that agents run for us: where it is, and whether they will find it.

COMMAND = "lessons-hook"
NEW_MODE = 0o600  # of a settings file: agents keep keys in theirs


def why_not_found(command: str) -> str:
    """Return the reason for which an agent or git may not find a command; "" if it will.

    They start from anywhere, so the PATH of an active virtual environment does not count.
    """
    active = os.environ.get("VIRTUAL_ENV")
    folders = os.environ.get("PATH", os.defpath).split(os.pathsep)
    lasting = [folder for folder in folders if not active or Path(folder).parent != Path(active)]
    if shutil.which(command, path=os.pathsep.join(lasting)):
        return ""
    if shutil.which(command):
        return f"{command} is on the PATH only while the environment {active} is active"
    return f"{command} is not on the PATH"


def path_command() -> str:
    """Return the shell command that puts our commands on the PATH for good."""
    here = Path(sys.argv[0]).absolute().parent
    here = here if (here / COMMAND).is_file() else Path(sys.executable).parent
    local = Path.home() / ".local" / "bin"
    linked = " ".join(shlex.quote(str(here / name)) for name in ("lessons", COMMAND))
    link = f"mkdir -p {shlex.quote(str(local))} && ln -sf {linked} {shlex.quote(str(local))}/"
    on_path = str(local) in os.environ.get("PATH", "").split(os.pathsep)
    return link if on_path else f'{link} && export PATH={shlex.quote(str(local))}:"$PATH"'


def hook_command(shared: bool) -> str:
    """Return the command that agents should run: its name if it is `shared` and on the PATH.

    Otherwise its full path, which is found from any environment.
    """
    beside = Path(sys.argv[0]).absolute().parent / COMMAND
    on_path = shutil.which(COMMAND)
    if shared and on_path:
        return COMMAND
    if beside.is_file():
        return str(beside)
    script = Path(on_path or Path(sys.executable).parent / COMMAND)
    if not script.is_file():
        why = f"{COMMAND} is not installed beside this command"
        raise SettingsError(why, "reinstall the package")
    return str(script)


BOM = "\ufeff"  # that Windows' editors begin a file with
# in the place of a number with a point or an exponent, until it is written as it was spelled
_SPELLED = f"number-{os.urandom(8).hex()} "
# a text of JSON, or a comment: `//` within a text begins none
_TEXT_OR_COMMENT = re.compile(r'"(?:\\.|[^"\\])*"|//[^\n]*|/\*.*?\*/', re.DOTALL)


@dataclass(frozen=True)
class HookSettings:
    """The settings of an agent that hold hooks: `{"hooks": {event: [...]}}`."""

    profile: Agent

    @property
    def name(self) -> str:
        return self.profile.name

    def place(self, project: Path | None) -> Path:
        """Return the file in a project; without one the user's own."""
        profile = self.profile
        if project is not None:
            return project / profile.file
        return Path(profile.of_user(profile.own_file or profile.file))

    def runs_hooks(self, file: Path) -> bool:
        return self.events()[0] in self.events_in(file)

    def events_in(self, file: Path) -> set[str]:
        try:
            return set(self.commands(file))
        except SettingsError:
            return set()

    def events(self, when: str = ALWAYS) -> list[str]:
        return [hook.event for hook in self.profile.hooks.get(when, ())]

    def install(self, settings: Path, command: str, wanted: Sequence[str] = (ALWAYS,)) -> bool:
        """Add the hooks that are `wanted` to a settings file; others in it stay as they are.

        False if it has them already. Raises SettingsError for a file that is not a JSON object or has
        comments, and leaves it alone.
        """
        before, values, has_comments = self.read(settings)
        hooks = self._hooks(settings, values)
        missing = [
            hook
            for when in wanted
            for hook in self.profile.hooks.get(when, ())
            if not any(self._is_ours(group, hook.tools) for group in hooks.get(hook.event, []))
        ]
        if not missing:
            return False
        entries = [(hook.event, self._entry(command, hook)) for hook in missing]
        if has_comments:
            lines = ", ".join(f'"{event}": [{json.dumps(new)}]' for event, new in entries)
            why = f"{settings} has comments, which would be lost; it was left alone"
            raise SettingsError(why, f'write this into its "hooks": {lines}')
        for event, entry in entries:
            hooks.setdefault(event, []).append(entry)
        values = {**self.profile.beside, **values, "hooks": hooks}
        section.write(settings, _dump(values, before), before, NEW_MODE)
        return True

    def uninstall(self, settings: Path) -> bool:
        """Take the hooks out of a settings file, and the file if it has nothing else.

        False if it has none. Raises SettingsError.
        """
        text, values, has_comments = self.read(settings)
        hooks = values.get("hooks")
        if text is None or not isinstance(hooks, dict):
            return False
        has_ours = False
        for event in list(hooks):
            groups = _groups(hooks, event)
            if any(map(self._is_ours, groups)):
                has_ours = True
                rest = [
                    group_rest
                    for group in groups
                    if (group_rest := self._without_ours(group)) is not None
                ]
                hooks[event] = rest
                if not rest:
                    del hooks[event]
        if not has_ours:
            return False
        if has_comments:
            why = f"{settings} has comments, which would be lost; it was left alone"
            raise SettingsError(why, f"remove the hooks that run {COMMAND}")
        if not hooks:
            del values["hooks"]
        allowed = _allowed(values)
        if ours := [rule for rule in self.profile.permissions if rule in allowed]:
            allowed[:] = [rule for rule in allowed if rule not in ours]
            if not allowed:
                del values["permissions"]["allow"]
            if not values["permissions"]:
                del values["permissions"]
        is_empty = not values or values == self.profile.beside
        section.write(settings, None if is_empty else _dump(values, text), text)
        return True

    def missing_permissions(self, settings: Path) -> list[str]:
        """Return our permissions that a file does not have. Raises SettingsError."""
        allowed = _allowed(self.read(settings)[1]) if self.profile.permissions else []
        return [rule for rule in self.profile.permissions if rule not in allowed]

    def allow(self, settings: Path) -> None:
        """Add the permissions that are missing in a file. Raises SettingsError."""
        before, values, has_comments = self.read(settings)
        missing = self.missing_permissions(settings)
        permissions = values.setdefault("permissions", {})
        if has_comments or not isinstance(permissions, dict):
            raise SettingsError(f"{settings} was left alone", f"allow {', '.join(missing)} in it")
        permissions["allow"] = [*_allowed(values), *missing]
        section.write(settings, _dump(values, before), before, NEW_MODE)

    def commands(self, settings: Path) -> dict[str, str]:
        """Return our hooks in a settings file: the program by the event. Raises SettingsError."""
        hooks = self.read(settings)[1].get("hooks")
        hooks = hooks if isinstance(hooks, dict) else {}
        return {
            event: program
            for when in self.profile.hooks
            for event in self.events(when)
            for group in _groups(hooks, event)
            for hook in self._hooks_of(group)
            if (program := self._program(hook)) is not None
        }

    def read(self, settings: Path) -> tuple[str | None, dict[str, Any], bool]:
        """Return the text of a file, what it holds, and whether it has comments.

        None, {} and False without one. Raises SettingsError.
        """
        text, has_comments = section.read(settings, "JSON"), False
        if text is None:
            return None, {}, False
        bare = text.removeprefix(BOM)
        try:
            values = _loads(bare) if bare.strip() else {}
        except (ValueError, RecursionError) as error:
            values = _without_comments(bare) if self.profile.has_comments else None
            has_comments = True
            if values is None:
                why = f"{settings} is not JSON ({error}); it was left alone"
                raise SettingsError(why, "correct it, then run this again") from None
        if not isinstance(values, dict):
            why = f"{settings} is not a JSON object; it was left alone"
            raise SettingsError(why, "correct it first")
        return text, values, has_comments

    def fatal_keys(self, settings: Path) -> list[str]:
        """Return the keys for which the agent reads nothing of the file. Raises SettingsError."""
        return (
            [key for key in self.read(settings)[1] if key not in self.profile.only]
            if self.profile.only
            else []
        )

    def _hooks(self, settings: Path, values: dict[str, Any]) -> dict[str, Any]:
        hooks = values.get("hooks", {})
        # of Gemini CLI's own keys among them, one is a switch
        if not isinstance(hooks, dict) or not all(
            isinstance(groups, list) or (isinstance(groups, bool) and event not in self.events())
            for event, groups in hooks.items()
        ):
            why = f'{settings}: its "hooks" are not what {self.profile.title} reads'
            raise SettingsError(why, "correct it first")
        return hooks

    def _entry(self, command: str, wanted: Hook) -> dict[str, Any]:
        line = (
            f"{shlex.quote(command)}{self.profile.arguments}" if self.profile.arguments else command
        )
        hook: dict[str, Any] = {"type": "command"} if self.profile.is_grouped else {}
        hook["command"] = line
        if self.profile.exec_form:
            hook["args"] = []
        hook["timeout"] = wanted.timeout
        if wanted.says:
            hook["statusMessage"] = f"lessons: {wanted.says}"
        limited = {"matcher": wanted.tools} if wanted.tools else {}
        return {**limited, "hooks": [hook]} if self.profile.is_grouped else {**limited, **hook}

    def _hooks_of(self, group: Any) -> list[Any]:
        if not self.profile.is_grouped:
            return [group]
        hooks = group.get("hooks") if isinstance(group, dict) else None
        return hooks if isinstance(hooks, list) else []

    def _is_ours(self, group: Any, tools: str = "") -> bool:
        limit = group.get("matcher") if isinstance(group, dict) else None
        is_for = not (tools and limit and {*tools.split("|")}.isdisjoint(str(limit).split("|")))
        return is_for and any(self._program(hook) is not None for hook in self._hooks_of(group))

    def _program(self, hook: Any) -> str | None:
        command = hook.get("command") if isinstance(hook, dict) else None
        if not isinstance(command, str):
            return None
        if not self.profile.exec_form:
            try:
                command = (shlex.split(command) or [""])[0]
            except ValueError:  # a quote without its end
                return None
        return command if re.split(r"[\\/]", command)[-1] == COMMAND else None

    def _without_ours(self, group: Any) -> Any:
        if not self._is_ours(group):
            return group
        others = [hook for hook in self._hooks_of(group) if self._program(hook) is None]
        return {**group, "hooks": others} if others else None


def _allowed(values: Mapping[str, Any]) -> list[Any]:
    permissions = values.get("permissions")
    allowed = permissions.get("allow") if isinstance(permissions, dict) else None
    return allowed if isinstance(allowed, list) else []


def _groups(hooks: Mapping[str, Any], event: str) -> list[Any]:
    groups = hooks.get(event)
    return groups if isinstance(groups, list) else []


def _loads(text: str) -> Any:
    """Parse JSON, its numbers as `_dump` writes them. Raises ValueError, RecursionError."""

    def refuse(name: str) -> Any:
        raise ValueError(f"{name} is no number of JSON")

    # a float would lose digits, and `1e999` would become `Infinity`
    return json.loads(text, parse_float=lambda spelled: _SPELLED + spelled, parse_constant=refuse)


def _without_comments(text: str) -> Any:
    bare = _TEXT_OR_COMMENT.sub(lambda match: match[0] if match[0][0] == '"' else " ", text)
    try:
        return _loads(bare) if bare != text else None
    except (ValueError, RecursionError):
        return None


def _dump(values: dict[str, Any], like: str | None) -> str:
    """Return JSON with the indentation that the file has, its escapes, numbers and byte order mark."""
    indent = re.search(r"\n([ \t]+)\S", like or "")
    escaped = "\\u" in (like or "")
    text = json.dumps(values, indent=indent[1] if indent else 2, ensure_ascii=escaped)
    text = re.sub(f'"{_SPELLED}([^"]*)"', r"\1", text)
    return f"{BOM if (like or '').startswith(BOM) else ''}{text}\n"
