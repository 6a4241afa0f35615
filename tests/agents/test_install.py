"""`lessons install AGENT` puts the hooks where each agent reads them; `uninstall` takes out just that."""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path
from typing import Any

import pytest

from tests.support.commands import BIN, Ran, run
from tests.support.files import write
from tests.support.terminals import at_terminal
from vault_index.entrypoints import agents
from vault_index.hotpath.agents import AGENTS

EVENTS = {"UserPromptSubmit", "SessionStart", "PostToolUseFailure", "PreToolUse", "SubagentStart"}
OTHERS: dict[str, Any] = {
    "model": "opus",
    "permissions": {"allow": ["Bash(git *)"], "deny": []},
    "hooks": {
        "UserPromptSubmit": [{"hooks": [{"type": "command", "command": "date"}]}],
        "Stop": [
            {"matcher": "", "hooks": [{"type": "command", "command": "/bin/say-lessons-hooked"}]}
        ],
    },
    "note": "Größe 🔥",
}
FORMATS = {
    "tabs": json.dumps(OTHERS, indent="\t", ensure_ascii=False) + "\n",
    "one line": json.dumps(OTHERS, separators=(",", ":")),
    "windows": json.dumps(OTHERS, indent=2).replace("\n", "\r\n") + "\r\n",
    "half a character": '{"note": "\\ud83d"}\n',
    "a number": '{"x": 1.0e5, "y": 123456789012345678901234567890}',
    "switches": '{"hooks": {"enabled": true}}',
    "a byte order mark": '\ufeff{"x": 1}',
}
JSON_AGENTS = ["codex", "gemini", "cursor", "copilot"]
OWN = {
    "claude": ".claude/settings.json",
    "codex": ".codex/hooks.json",
    "gemini": ".gemini/settings.json",
    "cursor": ".cursor/hooks.json",
    "copilot": ".copilot/hooks/lessons.json",
    "opencode": ".config/opencode/plugins/lessons.js",
}
SHARED = OWN | {"copilot": ".github/hooks/lessons.json", "opencode": ".opencode/plugins/lessons.js"}
TIMEOUTS = {
    "claude": dict.fromkeys(EVENTS, 5) | {"SessionStart": 10},
    "codex": {"UserPromptSubmit": 5, "SessionStart": 10, "SubagentStart": 5},
    "gemini": {"BeforeAgent": 5000, "SessionStart": 10_000, "PreCompress": 5000},  # milliseconds
    "cursor": {"beforeSubmitPrompt": 5, "sessionStart": 10},
    "copilot": {"UserPromptSubmit": 5, "SessionStart": 10},
}


def install(agent: str, project: Path, *words: str, check: bool = True) -> Ran:
    return run("lessons", "install", agent, *words, cwd=project, check=check)


def uninstall(agent: str, project: Path, *words: str, check: bool = True) -> Ran:
    return run("lessons", "uninstall", agent, *words, cwd=project, check=check)


def ours(settings: Path) -> dict[str, dict[str, Any]]:
    """Return our hook by event."""
    values = json.loads(settings.read_bytes())
    lists = [(event, list_) for event, list_ in values["hooks"].items() if isinstance(list_, list)]
    entries = [(event, entry) for event, list_ in lists for entry in list_ if entry != "x"]
    hooks = [(event, hook) for event, entry in entries for hook in entry.get("hooks", [entry])]
    return {event: hook for event, hook in hooks if re.search(r"lessons-hook\b", str(hook))}


UNASKED = [f"Bash(lessons {command}:*)" for command in ("show", "search", "propose")]


def test_a_permission_of_before_is_kept_and_the_others_are_added(tmp_path: Path) -> None:
    settings = write(
        tmp_path / "settings.json", json.dumps({"permissions": {"allow": UNASKED[:1]}})
    )
    assert agents.CLAUDE.missing_permissions(settings) == UNASKED[1:]
    agents.CLAUDE.allow(settings)
    assert json.loads(settings.read_text())["permissions"]["allow"] == UNASKED


@pytest.mark.slow
def test_claude_is_asked_for_once_about_search_show_and_propose(
    project: Path, own_world: Path
) -> None:
    """Issue 55, row 15: `/lessons:learn` needs `lessons propose`."""
    settings = own_world / ".claude" / "settings.json"
    question = f"propose new ones, without asking you ({', '.join(UNASKED)})? [y/N]:"
    asked = [("record sessions on this machine?", "n\r"), ("propose new ones", "y\r")]
    code, shown = at_terminal("lessons", "install", "claude", cwd=project, typed=asked)
    assert code == 0, shown
    assert question in " ".join(shown.split())
    assert json.loads(settings.read_text())["permissions"]["allow"] == UNASKED
    assert "without asking you" not in at_terminal("lessons", "install", "claude", cwd=project,
                                                   typed=asked[:1])[1]  # fmt: skip


@pytest.mark.parametrize("before", [{}, {"permissions": {"allow": ["Bash(git *)"], "deny": []}}])
def test_claude_may_read_lessons_unasked_until_it_is_uninstalled(
    before: dict[str, Any], tmp_path: Path
) -> None:
    settings = write(tmp_path / "settings.json", json.dumps(before))
    agents.install(settings, "/bin/lessons-hook")
    assert agents.CLAUDE.missing_permissions(settings) == UNASKED
    agents.CLAUDE.allow(settings)
    assert agents.CLAUDE.missing_permissions(settings) == []
    had = before.get("permissions", {}).get("allow", [])
    assert json.loads(settings.read_text())["permissions"]["allow"] == [*had, *UNASKED]
    agents.uninstall(settings)
    assert (json.loads(settings.read_text()) if settings.exists() else {}) == before


@pytest.mark.parametrize("name", ["arguments", "reader", "sessions"])
def test_no_agent_is_taken_for_another(name: str) -> None:
    """As one would be that inherits from another agent."""
    values = [value for agent in AGENTS if (value := getattr(agent, name))]
    assert len(values) == len({*values})


@pytest.mark.parametrize("agent", ["claude", *JSON_AGENTS])
def test_install_writes_the_hooks_in_the_agents_form(
    project: Path, own_world: Path, agent: str
) -> None:
    settings = own_world / OWN[agent]
    assert install(agent, project).out == f"{settings}: hooks installed\n"
    hooks = ours(settings)
    assert {event: hook["timeout"] for event, hook in hooks.items()} == TIMEOUTS[agent]
    more: dict[str, Any] = {"claude": {"type", "args"}, "cursor": set()}  # without a shell: `args`
    more |= {"codex": {"type", "statusMessage"}}  # by which its dialog names a hook
    for hook in hooks.values():
        words = "" if agent == "claude" else f" --agent {agent}"
        assert hook["command"] == f"{BIN / 'lessons-hook'}{words}"
        assert hook.keys() - {"command", "timeout"} == more.get(agent, {"type"})
    values = json.loads(settings.read_bytes())
    assert values.get("version") == (1 if agent in ("cursor", "copilot") else None)


@pytest.mark.parametrize("agent", OWN)
def test_twice_changes_nothing_and_uninstall_leaves_nothing(
    project: Path, own_world: Path, agent: str
) -> None:
    settings = own_world / OWN[agent]
    install(agent, project)
    after = settings.read_bytes()
    # settings may hold secrets one day
    assert agent == "opencode" or settings.stat().st_mode & 0o077 == 0
    assert install(agent, project).out == f"{settings}: hooks were there already\n"
    assert settings.read_bytes() == after
    assert uninstall(agent, project).out == f"{settings}: hooks removed\n"
    assert not settings.exists()
    assert uninstall(agent, project).out == f"{settings}: there were no hooks\n"


WITH_COMMANDS = [name for name, agent in agents.AGENTS.items() if agent.profile.command_file]


@pytest.mark.parametrize("agent", WITH_COMMANDS)
def test_what_a_user_types_comes_and_goes_with_the_hooks(
    project: Path, own_world: Path, agent: str
) -> None:
    commands = agents.command_files(agents.AGENTS[agent], agents.AGENTS[agent].place(None))
    said = install(agent, project).err
    told = {
        "learn": "Call `propose` of the MCP server `lessons`",
        "tend": "run `lessons review accept --batch ID`",
    }
    for (file, _, text), (name, instruction) in zip(commands, told.items(), strict=True):
        assert f"{file}: a command" in said
        written = file.read_text()
        assert text in written
        assert instruction in written
        if (
            agent == "codex"
        ):  # reads a skill of the name of its folder, and front matter at its top only
            assert file == own_world / f".codex/skills/lessons-{name}/SKILL.md"
            assert re.match(
                rf"---\n# lessons: \w+\nname: lessons-{name}\ndescription: .+\n---\n", written
            )
        if agent == "gemini":
            assert tomllib.loads(written).keys() == {"description", "prompt"}
    before = [file.read_text() for file, _, _ in commands]
    install(agent, project)
    assert [file.read_text() for file, _, _ in commands] == before
    uninstall(agent, project)
    assert not any(file.exists() for file, _, _ in commands)


@pytest.mark.parametrize("agent", SHARED)
def test_in_a_project(
    project: Path, own_world: Path, agent: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(BIN), prepend=":")
    settings = project / SHARED[agent]
    assert install(agent, project, "--project").out == f"{settings}: hooks installed\n"
    assert str(BIN) not in settings.read_text()  # the others have it elsewhere
    assert not (own_world / OWN[agent]).exists()
    assert uninstall(agent, project, "--project").out == f"{settings}: hooks removed\n"
    assert not settings.exists()


@pytest.mark.parametrize("agent", ["claude", *JSON_AGENTS])
@pytest.mark.parametrize("text", FORMATS.values(), ids=FORMATS)
def test_uninstall_leaves_what_was_there_in_its_order(
    own_world: Path, agent: str, text: str
) -> None:
    settings = write(own_world / OWN[agent], text)
    settings.chmod(0o640)
    wiring = agents.AGENTS[agent]
    assert wiring.install(settings, "lessons-hook")
    assert ours(settings).keys() == TIMEOUTS[agent].keys()
    assert not wiring.install(settings, "lessons-hook")
    assert wiring.uninstall(settings)
    left, before = json.loads(settings.read_bytes()), json.loads(text.encode())
    left = {key: value for key, value in left.items() if key != "version"}  # these agents need it
    assert json.dumps(left) == json.dumps(before)
    assert settings.stat().st_mode & 0o777 == 0o640


SPELLED = '\ufeff{"a": 1e999, "b": [-0.0, 1.10, 3.141592653589793238], "c": "1e999", "d": 1E5}'


@pytest.mark.parametrize("agent", ["claude", *JSON_AGENTS])
def test_numbers_stay_as_they_are_spelled_and_so_does_a_byte_order_mark(
    own_world: Path, agent: str
) -> None:
    """`1e999` was written back as `Infinity`, which no agent reads."""
    settings = write(own_world / OWN[agent], SPELLED)
    wiring = agents.AGENTS[agent]
    wiring.install(settings, "lessons-hook")
    wiring.uninstall(settings)
    left = (
        "".join(settings.read_text().split())
        .replace(',"version":1', "")
        .replace('"version":1,', "")
    )
    assert left == "".join(SPELLED.split())


def test_what_is_no_number_of_JSON_is_left_alone(own_world: Path, project: Path) -> None:
    settings = write(own_world / OWN["claude"], '{"x": NaN}')
    assert "is not JSON (NaN is no number" in install("claude", project, check=False).err
    assert settings.read_text() == '{"x": NaN}'


@pytest.mark.parametrize("there", [True, False], ids=["to a file", "to nothing yet"])
def test_settings_that_are_a_link_stay_one(own_world: Path, tmp_path: Path, there: bool) -> None:
    settings, target = own_world / OWN["claude"], tmp_path / "dotfiles" / "claude.json"
    if there:
        write(target, FORMATS["tabs"])
    settings.parent.mkdir()
    settings.symlink_to(target)
    agents.install(settings, "lessons-hook")
    assert ours(target).keys() == EVENTS
    agents.uninstall(settings)
    assert settings.is_symlink()
    assert target.exists() == there


BROKEN = ["{not json", "[]", "[" * 100_000, '{"hooks": []}', '{"hooks": {"X": "y"}}', b'"\xff"']


@pytest.mark.parametrize("agent", ["claude", *JSON_AGENTS])
@pytest.mark.parametrize("text", BROKEN, ids=lambda text: str(text)[:20])
def test_broken_settings_are_left_alone(
    project: Path, own_world: Path, agent: str, text: str | bytes
) -> None:
    settings = write(own_world / OWN[agent], text)
    before = settings.read_bytes()
    ran = install(agent, project, check=False)
    assert (ran.code, ran.out) == (1, "")
    error, hint = ran.err.splitlines()
    assert (error.startswith(f"Error: {settings}"), hint.startswith("Try: ")) == (True, True)
    assert "Traceback" not in uninstall(agent, project, check=False).err
    assert settings.read_bytes() == before


COMMENTED = '{\n  // my theme, see https://example.org\n  "theme": "da//rk" /* yes */\n}\n'


@pytest.mark.parametrize("agent", ["gemini", "cursor"])
def test_comments_are_never_lost(project: Path, own_world: Path, agent: str) -> None:
    """Such a file is left alone, and the error has the lines to write into it by hand."""
    settings = write(own_world / OWN[agent], COMMENTED)
    ran = install(agent, project, check=False)
    assert ran.code == 1
    assert settings.read_text() == COMMENTED
    lines = ran.err.split('Try: write this into its "hooks": ')[1]
    by_hand = COMMENTED.replace("/* yes */", f', "hooks": {{{lines}}}')
    write(settings, by_hand)
    assert install(agent, project).out == f"{settings}: hooks were there already\n"
    run("lessons", "init", cwd=project)
    assert run("lessons", "status", "--json", cwd=project).json["hooks"]["agents"] == [agent]
    assert "remove the hooks" in uninstall(agent, project, check=False).err
    assert settings.read_text() == by_hand


@pytest.mark.parametrize("agent", [*SHARED, "agents-md"])
def test_a_link_that_came_with_a_repository_is_not_followed(
    project: Path, tmp_path: Path, agent: str
) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    run("git", "init", "-q", project, cwd=tmp_path)
    top = Path(SHARED.get(agent, "AGENTS.md")).parts[0]
    (project / top).symlink_to(elsewhere)
    run("git", "add", "-A", cwd=project)
    where = () if agent == "agents-md" else ("--project",)
    ran = install(agent, project, *where, check=False)
    assert ran.code == 1
    assert "is a link that the repository brought" in ran.err
    assert list(elsewhere.iterdir()) == []


# failures, of agents that do not tell them

AFTER_COMMANDS = {
    "codex": {"PostToolUse": "Bash"},
    "gemini": {"AfterTool": "run_shell_command"},
    "cursor": {"postToolUse": "Shell"},
    "copilot": {"PostToolUse": "bash|powershell"},
}


@pytest.mark.parametrize("agent", JSON_AGENTS)
def test_a_hook_after_every_command_comes_only_where_it_is_asked_for(
    project: Path, own_world: Path, agent: str
) -> None:
    settings = own_world / OWN[agent]
    install(agent, project)
    assert ours(settings).keys() == TIMEOUTS[agent].keys()
    assert install(agent, project, "--failures").out == f"{settings}: hooks installed\n"
    hooks = ours(settings)
    (event, tools), *_ = AFTER_COMMANDS[agent].items()
    assert hooks.keys() == {*TIMEOUTS[agent], event}
    assert json.loads(settings.read_bytes())["hooks"][event][0]["matcher"] == tools
    assert "there already" in install(agent, project).out
    uninstall(agent, project)
    assert not settings.exists()


# the journal


def test_recording_ends_with_the_last_agent_that_tells_of_turns(
    project: Path, own_world: Path
) -> None:
    install("claude", project, "--journal")
    install("codex", project, "--journal")
    wired = {"UserPromptSubmit", "SessionStart", "SubagentStart", "Stop"}
    assert ours(own_world / OWN["codex"]).keys() == wired
    recorded = own_world / "journal" / "recorded"
    uninstall("claude", project)
    assert recorded.read_text().splitlines()[-1] == "*"
    status = run("lessons", "journal", "status", cwd=project).out
    assert str(own_world / OWN["codex"]) in status
    assert "no longer recorded" in uninstall("codex", project).out
    assert "*" not in recorded.read_text().splitlines()


@pytest.mark.slow
def test_status_knows_every_agent(project: Path, own_world: Path) -> None:
    run("lessons", "init", cwd=project)
    for agent in OWN:
        install(agent, project)
    status = run("lessons", "status", "--json", cwd=project).json["hooks"]
    assert status["agents"] == sorted(OWN)
    assert status["installed"] == [str(own_world / OWN[agent]) for agent in OWN]


def test_install_says_that_the_agents_own_memory_is_on(project: Path) -> None:
    claude, codex = (agents.AGENTS[name].place(None) for name in ("claude", "codex"))
    assert "claude's own memory is on: its notes" in install("claude", project).err
    assert "memory" not in install("claude", project).err
    for off in ({"autoMemoryEnabled": False}, {"env": {"CLAUDE_CODE_DISABLE_AUTO_MEMORY": "1"}}):
        claude.write_text(json.dumps(off))
        assert "memory" not in install("claude", project).err
    assert "memory" not in install("codex", project).err
    codex.unlink()
    codex.with_name("config.toml").write_text("[features]\nmemories = true\n")
    assert "codex's own memory is on: Codex then" in install("codex", project).err
