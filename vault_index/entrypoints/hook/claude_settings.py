"""Wire the hooks into an agent's settings, and take exactly them out again."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import sys
from pathlib import Path
from typing import Any

from vault_index import files, git
from vault_index.errors import SettingsError
from vault_index.lesson.digest import hash_of

EVENTS = {"UserPromptSubmit": 5, "SessionStart": 10}  # timeout in seconds, past our own deadline
# of the journal, only where asked for; SessionEnd waits no longer than its own budget for it
JOURNAL_EVENTS = {"Stop": 5, "SubagentStop": 5, "PreCompact": 5, "SessionEnd": 5}
COMMAND = "lessons-hook"


def claude_settings(project: Path | None) -> Path:
    """Return the settings.json of a project; without one the user's (`$CLAUDE_CONFIG_DIR`)."""
    if project is not None:
        return project / ".claude" / "settings.json"
    named = os.environ.get("CLAUDE_CONFIG_DIR")
    return (Path(named) if named else Path.home() / ".claude") / "settings.json"


def refuse_committed_links(project: Path) -> None:
    """Raise SettingsError if a project's settings are a link that came with its repository.

    Its author chose where such a link leads; the user's own links are followed.
    """
    settings = claude_settings(project)
    for place in (settings.parent, settings):
        listed = ("ls-files", "--", str(place.relative_to(project)))
        if place.is_symlink() and git.command(project, *listed, check=False):
            raise SettingsError(
                f"{place} is a link that the repository brought; it was not followed",
                "remove the link, or install for yourself: lessons install claude --user",
            )


def install(settings: Path, home: Path, command: str, *, journal: bool = False) -> bool:
    """Add the hooks to settings.json, which keeps all else. False if it has them already.

    Those of the journal come with `journal`; without it they stay as they are.

    A copy of the file is kept in the user's folder, so that `uninstall` can restore it to the byte.
    Raises SettingsError for a file that is not a JSON object, and leaves it alone.
    """
    before, values = _read(settings)
    hooks = values.setdefault("hooks", {})
    if not isinstance(hooks, dict) or not all(isinstance(v, list) for v in hooks.values()):
        raise SettingsError(
            f'{settings}: its "hooks" are not what Claude Code reads', "correct it first"
        )
    wanted = EVENTS | (JOURNAL_EVENTS if journal else {})
    missing = [event for event in wanted if not any(map(_is_ours, hooks.get(event, [])))]
    had_ours = any(_is_ours(group) for groups in hooks.values() for group in groups)
    for event in missing:
        hook = {"type": "command", "command": command, "args": [], "timeout": wanted[event]}
        hooks.setdefault(event, []).append({"hooks": [hook]})
    if not missing:
        return False
    after = _dump(values, before)
    _write(settings, after, before)
    kept = _kept(settings, home)
    if had_ours:  # not a state to go back to; the one of before our first hook is
        first = _copy(kept)
        if first.get("after") != before:
            kept.unlink(missing_ok=True)
            return True
        before = first["before"]
    with files.writing(kept.parent):
        kept.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        copy = {"settings": str(settings), "before": before, "after": after}
        files.replace_file(kept, json.dumps(copy).encode())
    return True


def uninstall(settings: Path, home: Path) -> bool:
    """Take the hooks out of settings.json. False if it has none. Raises SettingsError."""
    text, values = _read(settings)
    hooks = values.get("hooks")
    if text is None or not isinstance(hooks, dict):
        return False
    has_ours = False
    for event in list(hooks):
        groups = hooks[event]
        if isinstance(groups, list) and any(map(_is_ours, groups)):
            has_ours = True
            hooks[event] = [kept for group in groups if (kept := _without_ours(group)) is not None]
            if not hooks[event]:
                del hooks[event]
    if not has_ours:
        return False
    if not hooks:
        del values["hooks"]
    kept = _kept(settings, home)
    copy = _copy(kept)
    before = copy["before"] if copy.get("after") == text else _dump(values, text)
    if before is None:  # there was no file before
        target = settings.resolve()
        files.remove_file(target, expected=text.encode(), within=target.parent)
    else:
        _write(settings, before, text)
    kept.unlink(missing_ok=True)
    return True


def is_installed(settings: Path) -> bool:
    """Whether settings.json runs our hook on prompts."""
    try:
        return "UserPromptSubmit" in commands(settings)
    except SettingsError:
        return False


def records_sessions(settings: Path) -> bool:
    """Whether settings.json runs our hook at the end of turns, for the journal."""
    try:
        return set(JOURNAL_EVENTS) <= set(commands(settings))
    except SettingsError:
        return False


def commands(settings: Path) -> dict[str, str]:
    """Return our hooks in settings.json: the command by the event. Raises SettingsError."""
    hooks = _read(settings)[1].get("hooks")
    hooks = hooks if isinstance(hooks, dict) else {}
    ours: dict[str, str] = {}
    for event in EVENTS | JOURNAL_EVENTS:
        groups = hooks.get(event)
        for group in groups if isinstance(groups, list) else ():
            for hook in filter(_is_our_hook, group["hooks"] if _is_ours(group) else ()):
                ours[event] = str(hook["command"])
    return ours


def are_disabled(settings: Path) -> bool:
    """Whether settings.json switches all hooks off. Raises SettingsError."""
    return _read(settings)[1].get("disableAllHooks") is True


def plugins(settings: Path) -> dict[str, Any]:
    """Return the plugins that settings.json enables or disables. Raises SettingsError."""
    chosen = _read(settings)[1].get("enabledPlugins")
    return chosen if isinstance(chosen, dict) else {}


def other_scopes(settings: Path, project: Path) -> list[tuple[Path, str]]:
    """Return the other settings of the user and this project that run our hooks, with their scope."""
    places = [(claude_settings(None), "--user"), (claude_settings(project), "--project")]
    return [(place, scope) for place, scope in places if place != settings and is_installed(place)]


def why_not_found(command: str) -> str:
    """Return why an agent or git may not find a command; "" if it will.

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
    own = Path.home() / ".local" / "bin"
    linked = " ".join(shlex.quote(str(here / name)) for name in ("lessons", COMMAND))
    link = f"mkdir -p {shlex.quote(str(own))} && ln -sf {linked} {shlex.quote(str(own))}/"
    on_path = str(own) in os.environ.get("PATH", "").split(os.pathsep)
    return link if on_path else f'{link} && export PATH="{own}:$PATH"'


def hook_command(shared: bool) -> str:
    """Return the command that agents should run: its name if it is `shared` and on the PATH.

    Otherwise its full path, which is found from any environment.
    """
    beside = Path(sys.argv[0]).absolute().parent / COMMAND
    on_path = shutil.which(COMMAND)
    if shared and on_path:
        return COMMAND
    script = (
        str(beside) if beside.is_file() else on_path or str(Path(sys.executable).parent / COMMAND)
    )
    if not Path(script).is_file():
        raise SettingsError(
            f"{COMMAND} is not installed beside this command", "reinstall the package"
        )
    return script


def _read(settings: Path) -> tuple[str | None, dict[str, Any]]:
    try:
        text = settings.read_bytes().decode("utf-8")  # read_text() would change line ends
        values = json.loads(text) if text.strip() else {}
    except FileNotFoundError:
        return None, {}
    except (ValueError, RecursionError) as error:
        raise SettingsError(
            f"{settings} is not JSON ({error}); it was left alone",
            "correct it, then run this again",
        ) from None
    except OSError as error:
        raise SettingsError(f"{settings} cannot be read: {error.strerror}") from None
    if not isinstance(values, dict):
        raise SettingsError(
            f"{settings} is not a JSON object; it was left alone", "correct it first"
        )
    return text, values


def _write(settings: Path, text: str, before: str | None) -> None:
    """Replace the text that was read, through a link if the file is one, and keep its permissions."""
    target = settings.resolve()
    with files.writing(target):
        target.parent.mkdir(parents=True, exist_ok=True)
    expected = None if before is None else before.encode()
    files.put_file(target, text.encode(), expected=expected, within=target.parent, mode=0o600)


def _dump(values: dict[str, Any], like: str | None) -> str:
    """Return JSON written as the file was: with its indentation, line ends and escapes."""
    like = like or ""
    indent = re.search(r"\n([ \t]+)\S", like)
    escaped = "\\u" in like and like.isascii()
    text = json.dumps(values, indent=indent[1] if indent else 2, ensure_ascii=escaped)
    text += "" if like and not like.endswith("\n") else "\n"
    return text.replace("\n", "\r\n") if "\r\n" in like else text


def _is_ours(group: Any) -> bool:
    hooks = group.get("hooks") if isinstance(group, dict) else None
    return isinstance(hooks, list) and any(map(_is_our_hook, hooks))


def _is_our_hook(hook: Any) -> bool:
    command = hook.get("command") if isinstance(hook, dict) else None
    return isinstance(command, str) and re.split(r"[\\/]", command)[-1] == COMMAND


def _without_ours(group: Any) -> Any:
    if not _is_ours(group):
        return group
    others = [hook for hook in group["hooks"] if not _is_our_hook(hook)]
    return {**group, "hooks": others} if others else None


def _kept(settings: Path, home: Path) -> Path:
    return home / "installed" / f"{hash_of(str(settings.absolute()))[:16]}.json"


def _copy(kept: Path) -> dict[str, Any]:
    """Return what settings.json was before and after our hooks; empty where nobody knows."""
    try:
        copy = json.loads(kept.read_text("utf-8"))
    except (OSError, ValueError):
        return {}
    return copy if isinstance(copy, dict) and {"before", "after"} <= {*copy} else {}
