"""Worth an analysis: a table of worked cases, addend by addend, on diffs of real repositories."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from tests.learn.projects import a_project
from tests.support.commands import run
from tests.support.files import commit, write
from vault_index.features import LearnTable
from vault_index.learn import gather, significance
from vault_index.learn.material import Material
from vault_index.transcripts.moments import EDIT, FAILED, PERSON, RAN, REFUSED, Moment
from vault_index.vault import Vault, open_vault

BEFORE = {
    "shop/__init__.py": "",
    "shop/cart.py": "def total(items):\n    return sum(items)\n",
    "shop/pay.py": "from shop.cart import total\n\nprint(total([1]))\n",
    "shop/old_names.py": "".join(f"name_{n} = {n}\n" for n in range(30)),
    "web/app.ts": "export function start() {}\n",
    "pyproject.toml": '[project]\nname = "shop"\ndependencies = [\n    "httpx>=0.28",\n]\n',
    "package.json": '{\n  "version": "1.0.0",\n  "dependencies": {\n    "left-pad": "1.0.0"\n  }\n}\n',
    "go.mod": "module shop\n\ngo 1.24\n",
    "README.md": "A shop.\n",
}  # fmt: skip
SMALL = {"shop/pay.py": "from shop.cart import total\n\nprint(total([2]))\n"}
CORRECTED = (Moment(PERSON, "No, use euros", is_correction=True),)
REFUSAL = (Moment(PERSON, "not on this branch"), Moment(REFUSED, "", "git push"))
REPAIR = (
    Moment(FAILED, "1 failed", "pytest -q"),
    Moment(EDIT, "", "a.py"),
    Moment(RAN, "", "pytest -q"),
)


@dataclass(frozen=True)
class Case:
    """A change of a project, and the addends that it has."""

    name: str
    addends: Mapping[str, int]
    files: Mapping[str, str] = field(default_factory=lambda: SMALL)
    moved: tuple[str, str] | None = None
    subject: str = "Charge two"
    moments: Sequence[Moment] = ()


def lines(count: int) -> str:
    return "".join(f"line {number}\n" for number in range(count))


CASES = [
    Case("a small change", {}),
    Case("five files", {"files": 3}, {f"docs/{n}.md": "text\n" for n in range(5)}),
    Case(
        "four files and a lock file", {}, {**{f"{n}.md": "x\n" for n in range(4)}, "uv.lock": "x\n"}
    ),
    Case("150 lines", {"lines": 2}, {"notes.md": lines(150)}),
    Case(
        "149 lines, and many of a vendor's", {}, {"notes.md": lines(149), "vendor/a.md": lines(900)}
    ),
    Case(
        "a dependency of Python",
        {"new pattern": 5},
        {"pyproject.toml": BEFORE["pyproject.toml"].replace("]\n", '    "tenacity>=9",\n]\n')},
    ),
    Case(
        "a newer version is no new dependency",
        {},
        {
            "package.json": BEFORE["package.json"].replace(
                '"left-pad": "1.0.0"', '"left-pad": "2.0.0"'
            )
        },
    ),
    Case("a new kind of file", {"new pattern": 5}, {"shop/query.sql": "SELECT 1;\n"}),
    Case("a new module", {"new pattern": 5}, {"shop/tax/vat.py": "RATE = 20\n"}),
    Case("a subject that says fixed", {"subject": 2}, subject="cart: fixed the sum of nothing"),
    Case("a prefix is no fix", {}, subject="Use another prefix, as the debugger does"),
    Case("a moved module", {"architecture": 4}, {}, ("shop/old_names.py", "shop/names.py")),
    Case("CI", {"architecture": 4}, {"Makefile": "all:\n\ttrue\n"}),
    Case("two corrections", {"corrections": 1}, moments=CORRECTED * 2),
    Case("one correction, a refusal, a repair", {}, moments=CORRECTED + REFUSAL + REPAIR),
    Case(
        "all of it",
        {
            **{"files": 3, "lines": 2, "new pattern": 5, "subject": 2, "architecture": 4},
            "corrections": 1,
        },
        {
            **{f"db/migrations/{n}.py": lines(40) for n in range(5)},
            "go.mod": "module shop\n\ngo 1.24\n\nrequire example.org/money v1.2.3\n",
        },
        subject="Refactoring: security of payments improved",
        moments=(*CORRECTED * 2, *REFUSAL * 2, *REPAIR),
    ),
]


@pytest.fixture(scope="module")
def origin(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return a_project(tmp_path_factory.mktemp("origin") / "shop", BEFORE)


def material(case: Case, origin: Path, folder: Path, vault: Vault) -> Material:
    run("git", "clone", "-q", str(origin), str(folder), cwd=origin)
    for path, content in case.files.items():
        write(folder / path, content)
    if case.moved:
        run("git", "mv", *case.moved, cwd=folder)
    commit(folder, case.subject)
    made = gather.commits(vault, "HEAD", folder)
    return replace(made, moments=tuple(case.moments))


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_worked_cases(
    case: Case, origin: Path, tmp_path: Path, make_vault: Callable[..., Vault]
) -> None:
    result = significance.score(material(case, origin, tmp_path / "shop", make_vault()))
    assert {addend.name: addend.points for addend in result.addends} == case.addends
    assert result.points == sum(case.addends.values())
    assert all(addend.why for addend in result.addends)


@pytest.mark.parametrize(
    ("settings", "is_worth"),
    [("", False), ("min_files = 1\n", False), ("min_files = 1\nmin_lines = 2\n", True)],
)
def test_58_13_the_settings_say_how_many_files_and_lines_give_points(
    settings: str, is_worth: bool, origin: Path, tmp_path: Path, make_vault: Callable[..., Vault]
) -> None:
    """A vault may set them, and with them a small change is learned from unasked."""
    vault = make_vault({"vault.toml": f"[learn]\n{settings}"})
    in_force = open_vault(vault.root).config[LearnTable]
    small = material(Case("a small change", {}), origin, tmp_path / "shop", vault)
    result = significance.score(small, in_force)
    assert result.is_worth(in_force.significance) == is_worth
    assert [each.why for each in result.addends] == ["1 file", "2 lines"][: settings.count("\n")]
