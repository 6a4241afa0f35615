"""The wheel and the sdist: all of the package, the same from both ways, and nothing else."""

from __future__ import annotations

import re
import shutil
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

from tests.support.commands import run
from tests.support.places import REPO

NOT_SOURCE = (".git", ".v*", "*venv*", "build", "dist", "__pycache__", "*.egg-info", ".*_cache")
PLUGIN = REPO / ".claude-plugin"
BESIDE = {"pyproject.toml", "README.md", "LICENSE", "PKG-INFO", "setup.cfg"}

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, bytes]]:
    """The files of the wheel that comes from the source, of the sdist, and of the wheel out of that."""
    folder = tmp_path_factory.mktemp("built")
    source = folder / "source"  # building writes into it
    shutil.copytree(REPO, source, ignore=shutil.ignore_patterns(*NOT_SOURCE), symlinks=True)
    build = (sys.executable, "-m", "build", "--no-isolation", source)
    run(*build, "--wheel", "--outdir", folder / "direct", cwd=folder)
    shutil.rmtree(source / "build")
    run(*build, "--outdir", folder / "both", cwd=folder)  # the wheel from the sdist
    (direct,) = (folder / "direct").glob("*.whl")
    (indirect,) = (folder / "both").glob("*.whl")
    (sdist,) = (folder / "both").glob("*.tar.gz")
    return {
        "wheel": of_wheel(direct),
        "wheel of the sdist": of_wheel(indirect),
        "sdist": of_sdist(sdist),
    }


def of_wheel(path: Path) -> dict[str, bytes]:
    with zipfile.ZipFile(path) as wheel:
        return {name: wheel.read(name) for name in wheel.namelist()}


def of_sdist(path: Path) -> dict[str, bytes]:
    """Return the files of an sdist, by their path below its one folder."""
    files = {}
    with tarfile.open(path) as sdist:
        for member in sdist:
            if data := sdist.extractfile(member):
                files[member.name.partition("/")[2]] = data.read()
    return files


def of_source() -> dict[str, bytes]:
    package = REPO / "vault_index"
    files = (file for file in package.rglob("*") if file.is_file())
    return {
        str(file.relative_to(REPO)): file.read_bytes()
        for file in files
        if "__pycache__" not in file.parts
    }


def test_the_wheel_has_every_file_of_the_package_and_no_other(
    built: dict[str, dict[str, bytes]],
) -> None:
    """Patterns, prompts, weights and vocabularies, too; no tests, no lessons, nobody's settings."""
    wheel = {name: data for name, data in built["wheel"].items() if ".dist-info/" not in name}
    source = of_source()
    assert sorted(wheel) == sorted(source)
    assert wheel == source


def test_the_sdist_has_the_package_and_what_builds_it(built: dict[str, dict[str, bytes]]) -> None:
    sdist = {
        name: data
        for name, data in built["sdist"].items()
        if not name.startswith("lessons_vault.egg")
    }
    assert sorted(sdist) == sorted({*of_source(), *BESIDE})


def test_the_sdist_builds_the_same_wheel(built: dict[str, dict[str, bytes]]) -> None:
    assert built["wheel of the sdist"] == built["wheel"]


def test_nothing_tells_users_to_fetch_the_package_by_its_name() -> None:
    """The registry has another program as vault-index, and ours comes from its repository."""
    by_name = re.compile(
        r"(?:pip|pipx|uv tool) install (?:--?\S+ )*['\"]?(?:vault-index|lessons-vault)"
    )
    places = [REPO / "README.md", *(REPO / "vault_index").rglob("*.*"), *PLUGIN.rglob("*.*")]
    texts = [place for place in places if place.suffix in (".md", ".py", ".sh", ".json", ".js")]
    assert len(texts) > 100
    assert not [place for place in texts if by_name.search(place.read_text("utf-8"))]
