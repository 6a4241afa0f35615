"""What tests share: the real model, fetched once as a user's would be, vaults in real git repos, and
the real command line through its entry points."""

from __future__ import annotations

import gc
import os
import shutil
import sys
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from pathlib import Path

import hypothesis
import pytest

from tests.support import claude_code, three_lessons
from tests.support.commands import run
from tests.support.files import write
from tests.support.homes import GIT_OF_TESTS, add_model, at_home, locked, make_home, shared_folder
from tests.support.indexed import copy_of, full_text_vault, with_words
from tests.support.messages_api import MessagesApi
from tests.support.places import REPO
from tests.support.serving import Answering, Serving, answering, serving
from tests.support.shown_vaults import TEXT_ONLY, ShownVault, shown_vault
from vault_index.edit import init
from vault_index.entrypoints.cli.output import AGENT_VARIABLES
from vault_index.index import reconcile
from vault_index.vault import Vault, open_vault

REPOSITORY = REPO
# hundreds of processes start, and none shall compile all its modules anew: users have them compiled
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False
gc.disable()  # until all tests are collected
OUTSIDE = ("claude_code", "other_agents", "browser", "language_model", "ray")  # programs of others
hypothesis.settings.register_profile("busy machine", deadline=None)
hypothesis.settings.load_profile("busy machine")
NO_HURRY = ("LESSONS_DEADLINE_MS", "LESSONS_FAILURE_DEADLINE_MS")  # on a busy machine, too


def pytest_addoption(parser: pytest.Parser) -> None:
    """Let `--rewrite-transcripts` write what commands print into `tests/transcripts`."""
    parser.addoption("--rewrite-transcripts", action="store_true", help="as the commands print")


def pytest_xdist_auto_num_workers() -> int:
    """Start a worker for each processor that is ours: more would leave none for who waits for them."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@pytest.hookimpl(wrapper=True)
def pytest_collection_modifyitems(
    config: pytest.Config, items: list[pytest.Item]
) -> Generator[None, None, None]:
    """Mark the tests that ask the real model, so that CI can repeat them with other arithmetic.

    Programs of others are slow, too. What takes long comes first in the share of each worker.
    """
    for item in items:
        if "with_model" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.model)
        if any(item.get_closest_marker(name) for name in OUTSIDE):
            item.add_marker(pytest.mark.outside)
            item.add_marker(pytest.mark.slow)
    yield  # what `-m` excludes is gone then
    workers: int = getattr(config, "workerinput", {}).get("workercount", 1)
    items[:] = _slow_first(items, workers)


def pytest_collection_finish() -> None:
    """Leave modules and collected tests out of each later collection of garbage: a tenth of the time."""
    gc.collect()
    gc.freeze()
    gc.enable()


def _slow_first(items: Sequence[pytest.Item], workers: int) -> list[pytest.Item]:
    """Order tests so that each worker's share begins with slow ones and ends with quick ones.

    `--dist worksteal` hands out shares in a row, and takes from the end of the longest: a worker that
    has begun a slow test last would be waited for.
    """
    outside: list[pytest.Item] = []
    slow: list[pytest.Item] = []
    quick: list[pytest.Item] = []
    groups = (outside, slow, quick)
    for item in items:
        is_outside = item.get_closest_marker("outside") is not None
        is_slow = item.get_closest_marker("slow") is not None
        (outside if is_outside else slow if is_slow else quick).append(item)
    order: list[pytest.Item] = []
    for left in range(workers, 0, -1):
        size = sum(map(len, groups)) // left
        sizes = [len(outside) // left, len(slow) // left]
        for group, number in zip(groups, [*sizes, size - sum(sizes)], strict=True):
            order += group[:number]
            del group[:number]
    return order


@pytest.fixture(scope="session")
def model_home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A user's folder (`LESSONS_HOME`) with the built-in model, fetched by the command.

    One for all of the processes that run tests side by side.
    """
    home = shared_folder(tmp_path_factory) / "home-with-model"
    home.mkdir(exist_ok=True)
    with locked(home):
        run("lessons", "model", "fetch", cwd=home, env=at_home(home), timeout=300)
    return home


@pytest.fixture(scope="session")
def home_with_repository(tmp_path_factory: pytest.TempPathFactory, model_home: Path) -> Path:
    """A user's folder with the model, and in it a vault `team` of this repository's lessons, indexed.

    One for all of the processes that run tests side by side.
    """
    home = shared_folder(tmp_path_factory) / "home-with-repository"
    home.mkdir(exist_ok=True)
    with locked(home):
        if not (home / "team").exists():
            add_model(make_home(home), model_home)
            shutil.copytree(REPOSITORY / "lessons", home / "making" / "lessons")
            run("lessons", "index", cwd=home / "making", env=at_home(home))
            (home / "making").rename(home / "team")
    return home


@pytest.fixture(scope="session", autouse=True)
def home_of_fixtures(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Keep fixtures that several tests share out of the developer's own home, too.

    Git has the same author in all tests, and reads no settings of this machine.
    """
    home = make_home(tmp_path_factory.mktemp("shared") / "home")
    with pytest.MonkeyPatch.context() as patch:
        for name in [name for name in os.environ if name.startswith("GIT_")]:
            patch.delenv(name)
        for name, value in {**GIT_OF_TESTS, "GIT_CONFIG_GLOBAL": os.devnull}.items():
            patch.setenv(name, value)
        patch.setenv("LESSONS_HOME", str(home))
        patch.setenv("LESSONS_WATCH_AUTOSTART", "false")
        for name in NO_HURRY:
            patch.setenv(name, "60000")
        yield home


@pytest.fixture(scope="session")
def shelves(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder for what one test makes and others copy."""
    return tmp_path_factory.mktemp("shelves")


@pytest.fixture(scope="module")
def shelf(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The vault of the `FILES` of a module, or of three lessons, indexed for full text alone: its
    tests copy it."""
    files = getattr(request.module, "FILES", three_lessons.FILES)
    return full_text_vault(tmp_path_factory.mktemp("shelf") / "team", files)


@pytest.fixture
def text_only(monkeypatch: pytest.MonkeyPatch) -> None:
    """Search by words alone, as somebody does who wants no model."""
    monkeypatch.setenv("LESSONS_EMBEDDER", "none")


@pytest.fixture
def team(shelf: Path, tmp_path: Path, text_only: None) -> Vault:
    """A copy of that vault, for the test alone."""
    return copy_of(shelf, tmp_path / "team")


@pytest.fixture(scope="module")
def shown(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> ShownVault:
    """The vault of the `FILES` of a module, of a user with a home of its own."""
    return shown_vault(tmp_path_factory.mktemp("served"), request.module.FILES)


@pytest.fixture(scope="module")
def served(shown: ShownVault) -> Iterator[Serving]:
    """A server of that vault, for full text alone and without a watcher."""
    with serving(shown.root, shown.home, **TEXT_ONLY) as server:
        yield server


@pytest.fixture(scope="module")
def answers(shown: ShownVault) -> Iterator[Answering]:
    """The application for that vault, in this process."""
    with answering(shown.root, shown.home, **TEXT_ONLY) as asked:
        yield asked


@pytest.fixture(autouse=True)
def own_world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Keep each test out of the developer's own home, settings and vault: an empty one of its own.

    There is no model in it, and none is fetched: `with_model` gives the real one.
    """
    home = make_home(tmp_path / "home")
    for name in list(os.environ):
        is_ours = name.startswith(("LESSONS_", "CLAUDE", "OLLAMA_", "ANTHROPIC_", "OPENAI_"))
        if is_ours or name in AGENT_VARIABLES:  # an agent may run the tests
            monkeypatch.delenv(name)
    monkeypatch.delenv("GIT_CONFIG_GLOBAL")  # the home is the test's own
    monkeypatch.setenv("LESSONS_HOME", str(home))
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("LESSONS_WATCH_AUTOSTART", "false")  # tests of the watcher start their own
    for name in NO_HURRY:
        monkeypatch.setenv(name, "60000")
    return home


@pytest.fixture
def with_model(own_world: Path, model_home: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Let the test's world have the real model. Gives the `LESSONS_HOME` that holds it."""
    add_model(own_world, model_home)
    return own_world


@pytest.fixture
def make_vault(tmp_path: Path) -> Callable[..., Vault]:
    """Make vaults: `make_vault({"devops/heap.md": "text of the file"}, name="team")`.

    With `words` they have the embedder of these tests, with `indexed` an index.
    """

    def make(
        files: Mapping[str, str | bytes] | None = None,
        name: str = "team",
        words: bool = False,
        indexed: bool = False,
    ) -> Vault:
        root = tmp_path / name
        init(root)
        for path, content in (files or {}).items():
            write(root / "lessons" / path, content)
        vault = open_vault(root)
        if words:
            with_words(vault)
        if indexed:
            reconcile.sync(vault)
        return vault

    return make


@pytest.fixture(scope="session")
def claude(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The real Claude Code, installed once for all processes that run tests side by side."""
    folder = shared_folder(tmp_path_factory) / "claude-code"
    folder.mkdir(exist_ok=True)
    with locked(folder):
        return claude_code.installed(folder)


@pytest.fixture
def api() -> Iterator[MessagesApi]:
    """The stub that stands for the agent's model."""
    with MessagesApi() as serving:
        yield serving
