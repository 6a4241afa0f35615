"""How changes are gathered into bursts."""

from __future__ import annotations

import contextlib
import random
import shutil
import sys
import threading
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path

import pytest

from vault_index.watch.events import FileEvents


@pytest.fixture
def events(tmp_path: Path) -> Iterator[FileEvents]:
    """The events of a folder, from now on."""
    folder = tmp_path / "lessons"
    (folder / "devops").mkdir(parents=True)
    (folder / "devops" / "heap.md").write_text("heap")
    said: list[str] = []
    watching = FileEvents(folder, said.append)
    watching.arm()
    assert said == []
    yield watching
    watching.close()


@pytest.mark.slow
def test_a_burst_is_one(events: FileEvents, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("vault_index.watch.events.DEBOUNCE_SECONDS", 1.5)  # a busy machine pauses
    monkeypatch.setattr("vault_index.watch.events.MAX_BURST_SECONDS", 60)
    for number in range(50):
        (events.folder / f"{number}.md").write_text("text")
    assert events.wait(60)
    assert not events.wait(0.5)


@pytest.mark.parametrize("name", ["devops/heap.md", "new.md", "vault.toml", "deep/er/new.md"])
def test_what_matters(events: FileEvents, name: str) -> None:
    file = events.folder / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("new")
    assert events.wait(60)


@pytest.mark.skipif(sys.platform != "linux", reason="others report events later")
def test_a_save_is_counted_at_once(events: FileEvents) -> None:
    file, beside = events.folder / "devops" / "heap.md", events.folder / "sedTEQ8Xb"
    for number in range(100):
        before = events.count()
        if number % 2:
            file.write_text(str(number))
        else:
            beside.write_text(str(number))
            beside.replace(file)
        assert events.count() > before
    file.read_text()
    before = events.count()
    file.read_text()
    assert events.count() == before


@pytest.mark.slow
def test_folders_moved_and_deleted_in_a_hurry(tmp_path: Path) -> None:
    watching = FileEvents(tmp_path, print)
    watching.arm()
    choose = random.Random(1)
    for _ in range(4_000):
        one, other = (tmp_path / choose.choice("abcdef") for _ in range(2))
        with contextlib.suppress(OSError):
            what = choose.random()
            if what < 0.5:
                (one / choose.choice("123") / choose.choice("xyz")).mkdir(parents=True)
            elif what < 0.7:
                shutil.rmtree(one)
            else:
                one.rename(other / choose.choice("456"))
        watching.arm()  # as the watcher does in each turn
    while watching.wait(1):
        watching.arm()
    (tmp_path / "last").mkdir()
    while watching.wait(1):
        watching.arm()
    (tmp_path / "last" / "new.md").write_text("new")
    assert watching.wait(60)
    watching.close()


@pytest.mark.slow
def test_reading_and_other_files_do_not_matter(events: FileEvents) -> None:
    (events.folder / "devops" / "heap.md").read_text()
    list((events.folder / "devops").iterdir())
    (events.folder / ".heap.md.swp").write_text("swap")
    (events.folder / "notes.txt").write_text("text")
    assert not events.wait(0.5)


def test_wake_and_hurry_end_the_wait(events: FileEvents) -> None:
    threading.Timer(0.1, events.wake).start()
    assert not events.wait(60)
    threading.Timer(0.1, events.hurry).start()
    assert events.wait(60)


@pytest.mark.skipif(
    sys.platform != "linux",
    reason="inotify is in Linux alone; elsewhere the public observer is the only one",
)
@pytest.mark.parametrize("gone", ["InotifyFD", "InotifyConstants", "Mask"])
def test_without_a_name_of_watchdogs_own_its_public_observer_hears(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, gone: str
) -> None:
    """As in a release after 7.1, with which the class that is not documented was tried."""
    import watchdog.observers.inotify  # has what it needs itself

    seen: list[str] = []
    file = tmp_path / "heap.md"
    with monkeypatch.context() as patch:
        patch.delattr(f"{watchdog.observers.inotify_c.__name__}.{gone}")
        watching = FileEvents(tmp_path, seen.append)
        watching.arm()
    try:
        (line,) = seen
        assert line.startswith("watchdog's own observer hears, as ")
        assert gone in line
        file.write_text("new")
        assert watching.wait(60)
    finally:
        watching.close()


@pytest.mark.skipif(
    sys.platform != "linux",
    reason="inotify is in Linux alone; elsewhere the public observer is the only one",
)
def test_after_a_thread_that_failed_the_public_observer_hears(tmp_path: Path) -> None:
    seen: list[str] = []
    watching = FileEvents(tmp_path, seen.append)
    watching.arm()
    watching.lost("AttributeError: read_events")
    assert watching.arm()
    assert seen == ["watching again: AttributeError: read_events"]
    watching.wait(60)  # of the failure
    (tmp_path / "heap.md").write_text("new")
    assert watching.wait(60)
    watching.close()


@pytest.mark.parametrize(
    ("package", "release"), [("watchdog", "7.1."), ("lancedb", "0.40."), ("gitpython", "3.")]
)
def test_the_releases_whose_private_doors_were_tried(package: str, release: str) -> None:
    """`watch/events.py`, `store/lance.py` and `git/run.py` use what is not documented."""
    assert version(package).startswith(release)
