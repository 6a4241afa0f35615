"""The shape of the package: what may import what, what loads when, what is public and documented."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

import vault_index
from tests.conftest import run

PACKAGE = Path(vault_index.__file__).parent
REPO = PACKAGE.parent

# A module imports only from rungs above this line's own; siblings never import each other.
LADDER = [
    "errors silence locate stats native atomic characters yaml_bounds categories",
    "index_files small_json passages hit names filters lesson config files quote lance",
    "frontmatter_edit git renames lesson_body",
    "ownership",
    "manifest store injections once",
    "git_hooks aside merge body_edit formats",
    "embed",
    "vault rows certainty",
    "check",
    "difference history classify catalog skills",
    "listing",
    "index search get render add trust move",
    "floor update delete",
    "recall evaluate condition duplicates",
    "share watch importing",
    "entrypoints",
]
HEAVY = ("lancedb", "pyarrow", "numpy", "ollama", "ctranslate2", "tokenizers", "git", "yaml")
RUNG = {name: number for number, names in enumerate(LADDER) for name in names.split()}


def imported_by(file: Path) -> set[str]:
    """Give the top-level parts of this package that a file imports, inside functions too."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(file.read_text("utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module:
            parts = node.module.split(".")
            if parts[0] == "vault_index":
                found |= {parts[1]} if len(parts) > 1 else {alias.name for alias in node.names}
        elif isinstance(node, ast.Import):
            found |= {a.name.split(".")[1] for a in node.names if a.name.startswith("vault_index.")}
    return found


@pytest.mark.parametrize("name", sorted(RUNG))
def test_modules_import_only_from_below(name: str) -> None:
    module = PACKAGE / f"{name}.py"
    files = [module] if module.exists() else sorted((PACKAGE / name).rglob("*.py"))
    for file in files:
        wrong = {other for other in imported_by(file) - {name} if RUNG[other] >= RUNG[name]}
        assert not wrong, f"{file.relative_to(REPO)} imports {sorted(wrong)}"


def test_every_module_stands_on_the_ladder() -> None:
    there = {path.stem if path.suffix == ".py" else path.name for path in PACKAGE.iterdir()
             if path.suffix == ".py" or (path / "__init__.py").exists()}  # fmt: skip
    assert there - {"__init__", "__main__"} == set(RUNG)


@pytest.mark.parametrize(
    "code",
    [
        "import vault_index",
        "from vault_index.entrypoints.cli import main; main(['--help'])",
        "from vault_index.entrypoints.cli import main; main(['search', '--help'])",
        "import vault_index.entrypoints.hook_client",
    ],
)
def test_nothing_heavy_is_loaded_before_it_is_needed(code: str) -> None:
    probe = (
        f"import sys, atexit; atexit.register(lambda: print(*sys.modules, file=sys.stderr)); {code}"
    )
    done = subprocess.run([sys.executable, "-c", probe], capture_output=True, text=True, check=True)
    assert not set(HEAVY) & set(done.stderr.split())


def test_the_hook_client_loads_only_a_little_of_the_standard_library() -> None:
    probe = "import sys; a = set(sys.modules); import vault_index.entrypoints.hook_client; "
    probe += "print(*sorted(set(sys.modules) - a))"
    done = subprocess.run([sys.executable, "-c", probe], capture_output=True, text=True, check=True)
    ours = {name for name in done.stdout.split() if name.startswith("vault_index")}
    assert ours == {"vault_index", "vault_index.entrypoints", "vault_index.entrypoints.hook_client"}
    assert not {"re", "json", "pathlib", "subprocess", "asyncio"} & set(done.stdout.split())


def test_the_public_list() -> None:
    assert vault_index.__all__ == ["Hit", "Lesson", "Vault", "VaultError", "open_vault"]
    assert all(getattr(vault_index, name) for name in vault_index.__all__)


def test_modules_and_functions_stay_small() -> None:
    for file in PACKAGE.rglob("*.py"):
        lines = file.read_text("utf-8").splitlines()
        assert len(lines) <= 400, f"{file.name} has {len(lines)} lines"
        for node in ast.walk(ast.parse("\n".join(lines))):
            if isinstance(node, ast.FunctionDef):
                length = (node.end_lineno or 0) - node.lineno + 1
                assert length <= 60, f"{file.name}: {node.name} has {length} lines"


def test_what_is_public_is_documented() -> None:
    for file in PACKAGE.rglob("*.py"):
        tree = ast.parse(file.read_text("utf-8"))
        assert ast.get_docstring(tree), f"{file.name} does not say what it is"
        for node in tree.body:
            if isinstance(node, ast.FunctionDef | ast.ClassDef) and node.name[0] != "_":
                assert ast.get_docstring(node), f"{file.name}: {node.name}"


def test_only_one_module_prints() -> None:
    """What comes from elsewhere may hold what a terminal obeys: `output` makes all of it safe."""
    prints = ("echo", "secho", "style", "echo_via_pager", "confirm", "prompt", "progressbar")
    for file in PACKAGE.rglob("*.py"):
        if file.name in ("output.py", "hook_client.py"):  # which prints JSON in ASCII
            continue
        for node in ast.walk(ast.parse(file.read_text("utf-8"))):
            if not isinstance(node, ast.Call):
                continue
            called = ast.unparse(node.func)
            wrong = called == "print" or called.startswith(("sys.stdout.w", "sys.stderr.w"))
            wrong = wrong or called in {f"click.{name}" for name in prints}
            assert not wrong, f"{file.relative_to(REPO)}:{node.lineno}: use output, not {called}"


def readme_commands() -> list[str]:
    text = (REPO / "README.md").read_text("utf-8")
    return re.findall(r"(?m)^\$ (.+)$", text)


def test_readme_commands_run(with_model: Path, tmp_path: Path) -> None:
    team = tmp_path / "team"
    team.mkdir()
    (team / "prompts.jsonl").write_text(
        '{"query": "deploy to staging hangs", "kind": "mine",'
        ' "relevant": ["devops/deployment/staging-deploys-need-the-vpn"]}\n'
    )
    (team / "CLAUDE.md").write_text(
        "# Rules\n\n- Never deploy on a Friday, nobody is there to mend it.\n"
    )
    run("git", "init", "-q", "--bare", tmp_path / "team.git", cwd=tmp_path)
    run("git", "init", "-q", team, cwd=tmp_path)
    run("git", "remote", "add", "origin", tmp_path / "team.git", cwd=team)
    commands = readme_commands()
    assert len(commands) >= 14
    for command in sorted(commands, key=lambda one: one != "lessons init"):
        run(
            "bash",
            "-c",
            command,
            cwd=team,
            env={"PATH": f"{Path(sys.executable).parent}:/usr/bin:/bin"},
        )
    assert not (with_model / "models" / "minilm").exists()  # the last one removed the model


def test_readme_install_lines_are_what_ci_runs() -> None:
    script = (REPO / ".ci" / "run").read_text("utf-8")
    text = (REPO / "README.md").read_text("utf-8")
    lines = re.findall(r"(?m)^pip install .+$", text)
    assert len(lines) == 2
    assert all(line in script for line in lines)


def test_readme_transcript_is_what_is_printed(with_model: Path) -> None:
    text = (REPO / "README.md").read_text("utf-8")
    shown = text.split('$ lessons recall "our build dies with heap out of memory"\n')[1]
    shown = shown.split("$ lessons recall")[0].rstrip()
    printed = run(
        "lessons", "recall", "our build dies with heap out of memory", cwd=REPO
    ).out.rstrip()
    signed = re.compile(r" · .*")  # author and date are those of the clone
    percent = re.compile(r"\((\d+)%\)")  # differs by processor: see README, "Tune"
    assert percent.sub("", signed.sub("", printed)) == percent.sub("", signed.sub("", shown))
    there, here = (int(percent.findall(text)[0]) for text in (shown, printed))
    assert abs(there - here) < 5
