"""The shape of the package: what may import what, what loads when, what is public and documented."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

import click
import pytest

import vault_index
from tests.support import documents
from tests.support.commands import run, typed
from tests.support.indexed import of_this_repository
from vault_index import errors
from vault_index.entrypoints.cli import MORE, SECTIONS, main

PACKAGE = Path(vault_index.__file__).parent
REPO = PACKAGE.parent

# A folder (or module of the package's top) imports only from the rungs above its own.
LADDER = [
    "errors hotpath native text",
    "features",
    "files config lesson git model_http state",
    "store embed llm",
    "vault",
    "check",
    "transcripts",
    "index journal",
    "publish",
    "retrieval",
    "recall",
    "ask edit share",
    "proposals",
    "learn",
    "status",
    "api",
    "watch",
    "client",
    "entrypoints",
]
HOOK = ".entrypoints.hook.client"
HEAVY = ("lancedb", "pyarrow", "numpy", "ollama", "ctranslate2", "tokenizers", "git", "yaml",
         "markdown_it", "mcp", "fastapi", "starlette", "uvicorn", "pydantic", "anyio",
         "httpx")  # fmt: skip
RUNG = {name: number for number, names in enumerate(LADDER) for name in names.split()}


def module_of(file: Path) -> str:
    """Return the name of a file's module within the package: `retrieval.floor`, `retrieval`."""
    parts = file.relative_to(PACKAGE).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


@cache
def tree_of(file: Path) -> ast.Module:
    return ast.parse(file.read_text("utf-8"))


@pytest.fixture(scope="module", autouse=True)
def trees_for_this_module() -> Iterator[None]:
    """Parse each file once for these tests, and keep nothing after them."""
    yield
    tree_of.cache_clear()


MODULES = {module_of(file): file for file in PACKAGE.rglob("*.py")}


def imported_by(file: Path, *, for_types: bool = True) -> set[str]:
    """Return the modules of this package that a file imports, inside functions too."""
    tree = tree_of(file)
    skipped: set[ast.AST] = set()
    if not for_types:
        for block in ast.walk(tree):
            if isinstance(block, ast.If) and ast.unparse(block.test) == "TYPE_CHECKING":
                skipped |= set(ast.walk(block))
    return names_of(node for node in ast.walk(tree) if node not in skipped)


def imported_when_loaded(file: Path) -> set[str]:
    """Return the modules of this package that a file imports at its top, not for types alone."""
    return names_of(tree_of(file).body)


def names_of(nodes: Iterable[ast.AST]) -> set[str]:
    """Return the modules of this package that imports name."""
    names: set[str] = set()
    for node in nodes:
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "vault_index":
            base = (node.module or "").removeprefix("vault_index").removeprefix(".")
            for alias in node.names:
                inner = f"{base}.{alias.name}".removeprefix(".")
                names.add(inner if inner in MODULES else base)
        elif isinstance(node, ast.Import):
            names |= {
                alias.name.removeprefix("vault_index.")
                for alias in node.names
                if alias.name.startswith("vault_index.")
            }
    return names - {""}


@pytest.mark.parametrize("name", sorted(RUNG))
def test_folders_import_only_from_rungs_above(name: str) -> None:
    for module, file in MODULES.items():
        if module.split(".")[0] != name:
            continue
        # each feature's methods load what they call, from anywhere: see `features`
        imported = imported_when_loaded(file) if module == "features" else imported_by(file)
        others = {other.split(".")[0] for other in imported} - {name}
        wrong = {other for other in others if RUNG[other] >= RUNG[name]}
        assert not wrong, f"{file.relative_to(REPO)} imports {sorted(wrong)}"


def test_every_folder_is_on_the_ladder() -> None:
    assert {name.split(".")[0] for name in MODULES} - {"", "__main__"} == set(RUNG)


DOORS = ("cli", "hook", "mcp", "web")
# commands that start another door
STARTERS = {"cli.servers": {"mcp", "web"}, "cli.install": {"hook"}, "serving.": {"web"}}


@pytest.mark.slow
def test_doors_import_no_other_door() -> None:
    """They share `wording` and the modules of `entrypoints` beside them."""
    for module, file in MODULES.items():
        door, _, rest = module.removeprefix("entrypoints.").partition(".")
        if not module.startswith("entrypoints."):
            continue
        others = {
            name.split(".")[1] for name in imported_by(file) if name.startswith("entrypoints.")
        }
        wrong = (others & set(DOORS)) - {door} - STARTERS.get(f"{door}.{rest}", set())
        assert not wrong, f"{file.relative_to(REPO)} imports {sorted(wrong)}"


@pytest.mark.slow
def test_no_circles_inside_a_folder() -> None:
    imports = {name: imported_by(file, for_types=False) for name, file in MODULES.items()}
    for name in MODULES:
        ahead, seen = set(imports[name]) - {name}, set[str]()
        while ahead:
            other = ahead.pop()
            assert other != name, f"{name} imports itself, by way of {sorted(seen)}"
            if other.split(".")[0] == name.split(".")[0] and other not in seen:
                seen.add(other)
                ahead |= imports[other]


def test_the_hot_path_is_the_standard_library_and_itself() -> None:
    for file in sorted((PACKAGE / "hotpath").rglob("*.py")):
        for node in ast.walk(tree_of(file)):
            if isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom):
                names = [node.module or ""]
            else:
                continue
            for name in names:
                allowed = name.split(".")[0] in sys.stdlib_module_names
                allowed = allowed or f"{name}.".startswith("vault_index.hotpath.")
                assert allowed, f"{file.name}: {name}"


@pytest.mark.slow
def test_conditions_on_tables_are_written_in_one_module() -> None:
    sql = re.compile(
        r"\b(LIKE|IN \(|IS NULL|IS NOT NULL|array_has|NOT \w+ AND|is_whole AND)|[!=]= ?'| AND "
    )
    for module, file in MODULES.items():
        if module in (
            "store.filters",
            "embed.cache",
            "files.cache",
            "state",
        ) or "state" in imported_by(file):
            continue  # the others have SQLite's
        for node in ast.walk(tree_of(file)):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                assert not sql.search(node.value), f"{module}:{node.lineno}: {node.value!r:.60}"


def test_the_top_of_the_repository_is_settled() -> None:
    """GitHub and pre-commit look for `action.yml` and `.pre-commit-hooks.yaml` there."""
    settled = "pyproject.toml vault_index lessons tests .githooks README.md .ci .claude-plugin"
    settled += (
        " .gitignore .gitattributes LICENSE CHANGELOG.md ARCHITECTURE.md CONTRIBUTING.md docs"
    )
    settled += " benchmarks action.yml .pre-commit-hooks.yaml"
    tracked = run("git", "ls-tree", "--name-only", "HEAD", cwd=REPO, check=False).out.split()
    assert set(tracked) <= set(settled.split())


def test_the_top_of_the_package_is_a_page() -> None:
    there = [path for path in PACKAGE.iterdir() if path.name not in ("__pycache__", "py.typed")]
    assert len(there) <= 35


@pytest.mark.parametrize(
    "code",
    [
        "import vault_index",
        "from vault_index.entrypoints.cli import main; main(['--help'])",
        "from vault_index.entrypoints.cli import main; main(['search', '--help'])",
        "import vault_index.entrypoints.hook.client",
    ],
)
def test_nothing_heavy_is_loaded_before_it_is_needed(code: str) -> None:
    probe = (
        f"import sys, atexit; atexit.register(lambda: print(*sys.modules, file=sys.stderr)); {code}"
    )
    done = subprocess.run([sys.executable, "-c", probe], capture_output=True, text=True, check=True)
    assert not set(HEAVY) & set(done.stderr.split())


def test_help_loads_few_modules() -> None:
    """How long it takes is for a benchmark, `commands`: a test on a busy machine cannot know."""
    probe = "import sys, atexit; from vault_index.entrypoints.cli import main; "
    probe += "atexit.register(lambda: print(*sys.modules, file=sys.stderr)); main(['--help'])"
    done = subprocess.run([sys.executable, "-c", probe], capture_output=True, text=True, check=True)
    ours = [name for name in done.stderr.split() if name.startswith("vault_index")]
    assert len(ours) <= 55


def test_the_hook_client_loads_only_a_little_of_the_standard_library() -> None:
    probe = "import sys; a = set(sys.modules); import vault_index.entrypoints.hook.client; "
    probe += "print(*sorted(set(sys.modules) - a))"
    done = subprocess.run([sys.executable, "-c", probe], capture_output=True, text=True, check=True)
    ours = {name for name in done.stdout.split() if name.startswith("vault_index")}
    assert ours == {
        f"vault_index{name}"
        for name in ("", ".entrypoints", ".entrypoints.hook", HOOK, ".hotpath", ".hotpath.log")
    }
    big = {"re", "json", "pathlib", "subprocess", "asyncio", "sqlite3"}
    assert not big & set(done.stdout.split())


def test_the_public_list() -> None:
    names = "Hit Lesson Vault VaultError __version__ add open_vault search".split()
    assert vault_index.__all__ == dir(vault_index) == names
    assert all(getattr(vault_index, name) for name in vault_index.__all__)


@pytest.mark.slow
def test_modules_and_functions_stay_small() -> None:
    for file in PACKAGE.rglob("*.py"):
        lines = file.read_text("utf-8").splitlines()
        assert len(lines) <= 700, f"{file.name} has {len(lines)} lines"
        for node in ast.walk(tree_of(file)):
            if isinstance(node, ast.FunctionDef):
                length = (node.end_lineno or 0) - node.lineno + 1
                assert length <= 50, f"{file.name}: {node.name} has {length} lines"


# Classes of one name that stand for several things, each with its reason.
SHARED_NAMES: dict[str, str] = {}


def test_a_class_name_stands_for_one_thing() -> None:
    """Issue 59: 40 names stood for two to six classes each, `Record`, `Plan` and `Event` among them."""
    homes: dict[str, list[str]] = {}
    for module, file in MODULES.items():
        for node in ast.walk(tree_of(file)):
            if isinstance(node, ast.ClassDef):
                homes.setdefault(node.name, []).append(module)
    shared = {name: modules for name, modules in homes.items() if len(modules) > 1}
    assert shared.keys() == SHARED_NAMES.keys(), shared


# Names that tell the tense or the rest, not the thing; and fields of that name, each with its reason.
TENSE = {"said", "there", "own", "made", "every", "place"}
TENSE_FIELDS = {
    "api/lesson.py own": "JSON of `lessons categories`",
    "ask/passages.py place": "as in `ask/respond`",
    "ask/respond.py place": "JSON of an answer's search",
    "entrypoints/web/review.py said": "JSON for the page",
    "journal/record.py place": "stored with a session",
    "retrieval/hit.py place": "JSON of `lessons search`",
    "retrieval/hit.py said": "as the column of `store/delivery`",
    "store/delivery.py said": "a column",
    "store/schema.py place": "a column",
    "transcripts/moments.py place": "a column",
}


def test_variables_name_the_thing() -> None:
    """Issue 59: 577 variables were called `said`, `there`, `own`, `made`, `every` or `place`."""
    found = set()
    for file in PACKAGE.rglob("*.py"):
        for node in ast.walk(tree_of(file)):
            stored = isinstance(getattr(node, "ctx", None), ast.Store)
            name = node.arg if isinstance(node, ast.arg) else ""
            name = node.id if stored and isinstance(node, ast.Name) else name
            name = node.attr if stored and isinstance(node, ast.Attribute) else name
            if name.strip("_") in TENSE:
                found.add(f"{file.relative_to(PACKAGE)} {name}")
    assert found == TENSE_FIELDS.keys()


def test_fields_are_given_by_name() -> None:
    """Issue 59: no `Agent(*("codex", ...))`, which saves a line and hides which field is which."""
    for module, file in MODULES.items():
        for node in ast.walk(tree_of(file)):
            if isinstance(node, ast.Call) and ast.unparse(node.func).split(".")[-1][:1].isupper():
                packed = [each for each in node.args if isinstance(each, ast.Starred)]
                literal_ones = [each for each in packed if isinstance(each.value, ast.Tuple)]
                assert not literal_ones, f"{module}:{node.lineno}: {ast.unparse(node):.80}"


@pytest.mark.slow
def test_few_imports_hide_in_functions_or_behind_another_name() -> None:
    """Doors and questions load what they need; elsewhere it is a circle or a cost."""
    hidden, renamed = [], []
    for file in PACKAGE.rglob("*.py"):
        where = str(file.relative_to(PACKAGE))
        tree = tree_of(file)
        imports = [
            node
            for node in ast.walk(tree)
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("vault_index")
        ]
        renamed += [where for node in imports for alias in node.names if alias.asname]
        if not where.startswith(
            (
                "features.py",
                "api/",
                "client/",
                "entrypoints/",
                "git/",
                "embed/",
                "store/",
                "publish/",
            )
        ):
            functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
            inside = {inner for function in functions for inner in ast.walk(function)}
            hidden += [where for node in imports if node in inside]
    assert len(hidden) <= 11, hidden
    assert len(renamed) <= 5, renamed


@pytest.mark.slow
def test_what_is_public_is_documented() -> None:
    for file in PACKAGE.rglob("*.py"):
        tree = tree_of(file)
        assert ast.get_docstring(tree), f"{file.name} does not say what it is"
        for node in tree.body:
            if isinstance(node, ast.FunctionDef | ast.ClassDef) and node.name[0] != "_":
                assert ast.get_docstring(node), f"{file.name}: {node.name}"


# A sentence that begins with a clause for its subject, or with a genitive, is read twice.
TURNED = re.compile(
    r"(?:\A|[.!?]\s+|\n\s*\n\s*)(?:What|Who|Whoever|Of|Where)\b|\b(?:is|are) none\b"
)
# *Return*, *Yield*, *Whether* or an imperative: nothing that a function gives, tells or is
GIVES = re.compile(r"(?:Gives?|Tells?)\b")
NO_VERB = re.compile(r"(?:Returns|Yields|Takes|Puts|Says|A|An|About|Few|How|It|Its|Only|This)\b")


def docstrings() -> Iterator[tuple[str, ast.AST, str]]:
    """Yield all docstrings of the package, each with its place."""
    for file in PACKAGE.rglob("*.py"):
        for node in ast.walk(tree_of(file)):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Module):
                where = f"{file.relative_to(REPO)}:{getattr(node, 'lineno', 1)}"
                yield where, node, ast.get_docstring(node) or ""


@pytest.mark.slow
def test_docstrings_begin_with_their_subject() -> None:
    wrong = [
        f"{where}: {found[0]}" for where, _, text in docstrings() if (found := TURNED.search(text))
    ]
    assert not wrong, wrong


@pytest.mark.slow
def test_docstrings_say_what_comes_back() -> None:
    """*Return*, *Whether* or an imperative: a function gives and tells nobody anything."""
    wrong = [
        f"{where}: {text[:40]}"
        for where, node, text in docstrings()
        if GIVES.match(text)
        or (NO_VERB.match(text) and not isinstance(node, ast.ClassDef | ast.Module))
    ]
    assert not wrong, wrong


# The command line prints `Try: {hint}`; a command is one, too.
IMPERATIVES = set(
    "add allow amend ask begin change check choose clone close commit compare correct create delete "
    "edit end free give install keep look make move name pass pipe put read reinstall remove "
    "rename report run save see set shorten split start switch type upgrade use wait write".split()
)
COMMANDS = re.compile(r"git (?!repo)|lessons [a-z]+ ?|rm ")
ERRORS = {name for name, value in vars(errors).items() if name.endswith("Error")}


def hints_of(file: Path) -> Iterator[tuple[int, str]]:
    """Yield the literal hints of errors that a file raises, with their lines; "{}" for values."""
    tree = tree_of(file)
    named = {
        target.id: node.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Assign)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call) or ast.unparse(node.func).split(".")[-1] not in ERRORS:
            continue
        place = 2 if ast.unparse(node.func).endswith("LessonError") else 1
        hints: list[ast.expr] = node.args[place : place + 1]
        hints += [keyword.value for keyword in node.keywords if keyword.arg == "hint"]
        for hint in hints:
            value = named.get(hint.id, hint) if isinstance(hint, ast.Name) else hint
            choices = [value.body, value.orelse] if isinstance(value, ast.IfExp) else [value]
            for choice in choices:
                text = literal(choice)
                if text:
                    yield node.lineno, text


def literal(node: ast.expr) -> str:
    if isinstance(node, ast.JoinedStr):
        return "".join(
            str(part.value) if isinstance(part, ast.Constant) else "{}" for part in node.values
        )
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ""


@pytest.mark.slow
def test_hints_say_what_to_do() -> None:
    known = set(" ".join((SECTIONS | MORE).values()).split())
    wrong = []
    for file in PACKAGE.rglob("*.py"):
        for line, hint in hints_of(file):
            words = hint.replace(":", " ").replace(",", " ").split()
            is_command = COMMANDS.match(hint) and (words[0] != "lessons" or words[1] in known)
            if hint.endswith("?") or not (words[0] in IMPERATIVES or is_command):
                wrong.append(f"{file.relative_to(REPO)}:{line}: {hint}")
    assert not wrong, wrong


def test_each_command_fits_into_a_line_of_the_help() -> None:
    context = click.Context(main)
    for name in " ".join((SECTIONS | MORE).values()).split():
        command = main.get_command(context, name)
        assert command is not None
        assert len(command.get_short_help_str(1000)) < 60, name


@pytest.mark.slow
def test_only_one_module_prints() -> None:
    """What comes from elsewhere may hold what a terminal obeys: `output` makes all of it safe."""
    prints = ("echo", "secho", "style", "echo_via_pager", "confirm", "prompt", "progressbar")
    for file in PACKAGE.rglob("*.py"):
        if file.name in ("output.py", "client.py"):  # which prints JSON in ASCII
            continue
        for node in ast.walk(tree_of(file)):
            if not isinstance(node, ast.Call):
                continue
            called = ast.unparse(node.func)
            wrong = called == "print" or called.startswith(("sys.stdout.w", "sys.stderr.w"))
            wrong = wrong or called in {f"click.{name}" for name in prints}
            assert not wrong, f"{file.relative_to(REPO)}:{node.lineno}: use output, not {called}"


@pytest.mark.slow
def test_readme_commands_run(with_model: Path, tmp_path: Path) -> None:
    team = tmp_path / "team"
    team.mkdir()
    (team / "prompts.jsonl").write_text(
        '{"query": "deploy to staging hangs", "kind": "mine",'
        ' "relevant": ["devops/deployment/staging-deploys-need-the-vpn"]}\n'
    )
    (team / "CLAUDE.md").write_text(
        "# Rules\n\n- Never deploy on a Friday, nobody is there to repair it.\n"
    )
    run("git", "init", "-q", "--bare", tmp_path / "team.git", cwd=tmp_path)
    run("git", "init", "-q", team, cwd=tmp_path)
    run("git", "remote", "add", "origin", tmp_path / "team.git", cwd=team)
    commands = documents.commands()
    assert len(commands) >= 14
    for command in sorted(commands, key=lambda one: one != "lessons init"):
        typed(command, cwd=team)
    assert not (with_model / "models" / "minilm").exists()  # the last one removed the model


def test_readme_install_lines_are_what_ci_runs() -> None:
    script = (REPO / ".ci" / "run").read_text("utf-8")
    text = (REPO / "README.md").read_text("utf-8")
    lines = re.findall(r"(?m)^.*\bpip install .+ && .+$", text)
    assert len(lines) == 2
    assert all(line in script for line in lines)


@pytest.mark.slow
def test_readme_transcript_is_what_is_printed(
    tmp_path: Path, with_model: Path, home_with_repository: Path
) -> None:
    vault = of_this_repository(home_with_repository, with_model, tmp_path / "here")
    text = documents.page("first-hour")
    shown = text.split('$ lessons recall "our build dies with heap out of memory"\n')[1]
    shown = shown.split("$ lessons recall")[0].rstrip()
    printed = run(
        "lessons", "recall", "our build dies with heap out of memory", cwd=vault.root
    ).out.rstrip()
    signed = re.compile(r" · .*")  # author and date are those of the clone
    percent = re.compile(r"\((\d+)%\)")  # differs by processor: see README, "Tune"
    begin, end = percent.sub("", signed.sub("", shown)).split("> ...\n")  # a long lesson is cut
    whole = percent.sub("", signed.sub("", printed))
    assert (whole.startswith(begin), whole.endswith(end)) == (True, True)
    there, here = (int(percent.findall(text)[0]) for text in (shown, printed))
    assert abs(there - here) < 5


OF_OTHERS = re.compile(
    r"(?<!ownership)\.read_(?:bytes|text)\(|(?<![\w.])open\(|\.open\(\"r|os\.open\("
)
# what reads files of the package itself, of the user's own folder, or streams and devices
READERS = {
    *("hotpath/index_files.py", "files/__init__.py", "state.py", "embed/cache.py"),
    *("embed/download.py", "embed/minilm.py", "store/ownership.py", "entrypoints/guard.py"),
    *("entrypoints/token.py", "store/released.py", "check/time_limit.py"),
    *("hotpath/log.py", "hotpath/agents.py", "entrypoints/hook/client.py", "watch/events.py"),
    *("entrypoints/serving.py", "entrypoints/cli/servers.py", "entrypoints/agents/opencode.py"),
    *("entrypoints/web/render.py", "learn/skills/render.py", "check/pattern.py"),
    *("hotpath/protocol.py", "retrieval/measuring.py", "check/kept.py", "files/cache.py"),
}


def test_files_that_others_may_have_placed_are_read_by_one_function() -> None:
    """A pipe would be waited for, and a device would be read without end."""
    for file in PACKAGE.rglob("*.py"):
        if str(file.relative_to(PACKAGE)) not in READERS:
            for number, line in enumerate(file.read_text().splitlines(), 1):
                is_own = "__file__" in line or "_PROMPTS" in line
                assert is_own or not OF_OTHERS.search(line), f"{file}:{number}: {line.strip()}"
