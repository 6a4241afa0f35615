"""What is asked and what is answered, a file per route: `tests/web/transcripts/*.http`.

A request is as the REST clients of editors write it; below it comes the answer, field by field, with
its status. `TOKEN` stands for the token. Times, scores and hashes differ from run to run: a number
with a fraction is shown as `0.5`. After a change of the answers, rewrite the files and read the diff:

    pytest tests/web/test_http_transcripts.py --rewrite-transcripts
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx
import jsonschema
import pytest
from starlette.testclient import TestClient

from tests.support import documents
from tests.support.chat_server import ChatServer
from tests.support.commands import run
from tests.support.conversations import about_redirects, about_retries
from tests.support.files import MakeVault, commit, lesson_text, write
from tests.support.homes import add_model, make_home
from tests.support.places import TESTS
from tests.support.serving import Serving, serving
from vault_index.entrypoints.web.app import application
from vault_index.entrypoints.web.vault_client import VaultClient
from vault_index.watch import launch

TRANSCRIPTS = TESTS / "web" / "transcripts"
NAMES = "health categories courses query ask journal refused ingest ingest-bulk lessons".split()
COURSE = TESTS / "courses" / "introduction_to_ai.txt"
FILES = {
    "devops/ci-cd/heap.md": "---\ntitle: Raise the heap\ntags: [node, ci]\ntype: bug_fix\n"
    "created: 2025-11-15T10:30:00Z\n---\n"
    "When the build dies with heap out of memory, set NODE_OPTIONS=--max-old-space-size=4096.\n",
    "devops/docker/limits.md": lesson_text("Container limits", "Set a memory limit of 2 GB."),
    "conventions.md": "## Lesson: Dates are UTC\nStore dates in UTC.\n\n"
    "## Lesson: Ids are opaque\nDo not parse an id.\n",
}
SKILL = "---\nname: review-pr\ndescription: Review a pull request for bugs\n---\nRead the diff.\n"
REPLACED = (
    (r"\b20\d\d-\d\d-\d\dT[\d:.]+(Z|\+00:00)", "2026-01-05T10:00:00+00:00"),
    (r"\b[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\b", "SESSION"),
    (r'"session_id": "[\w-]{32}"', '"session_id": "ID"'),
    (r"\b(?=[a-f]*\d)[0-9a-f]{8}(?=-[pos]\b|-[pos]\d|\")", "SESSION1"),
)


@pytest.fixture(scope="module")
def chat() -> Iterator[ChatServer]:
    """A model that searches for what it is asked, in the course where that is named."""

    def search(asked: str) -> dict[str, Any] | None:
        if "corse" in asked:
            return {
                "query": "merge both lists",
                "document": "intro to AI corse",
                "lesson_number": 3,
            }
        return None if asked == "hello" else {"query": asked}

    def words(body: dict[str, Any]) -> list[str]:
        said = body["messages"][-1]["content"]
        if said == "hello":
            return ["Hello. ", "I answer from the lessons of your team."]
        if "NODE_OPTIONS" in said:
            return ["Raise the heap: ", "`NODE_OPTIONS", "` [1]."]
        return ["By rank and not by score [1]", ", since their scales differ [1][7]."]

    with ChatServer() as server:
        server.search, server.words = search, words
        yield server


@pytest.fixture(scope="module")
def team(
    tmp_path_factory: pytest.TempPathFactory, model_home: Path, chat: ChatServer
) -> Iterator[Serving]:
    """A served vault of four lessons, a course and a skill with a watcher, and two sessions."""
    folder = tmp_path_factory.mktemp("served")
    home, root = make_home(folder / "home"), folder / "team"
    add_model(home, model_home)
    chat.configure(home)
    with pytest.MonkeyPatch.context() as patch:
        for name in ("HOME", "LESSONS_HOME"):
            patch.setenv(name, str(home))
        patch.delenv("CLAUDE_CONFIG_DIR", raising=False)
        run("lessons", "init", root, cwd=folder)
        for path, text in FILES.items():
            write(root / "lessons" / path, text)
        run("lessons", "import", COURSE, "--write", cwd=root)
        write(root / "skills" / "review-pr" / "SKILL.md", SKILL)
        commit(root, "What the heap taught us")
        about_redirects(root, began=datetime.now(UTC) - timedelta(hours=2))  # not at the same time
        about_retries(root)
        run("lessons", "journal", "import", "--since", "all", cwd=root)
        with serving(root, home, LESSONS_WATCH_AUTOSTART="true") as served:
            yield served
        assert launch.is_running()  # the watcher answered, and stays for others
        launch.stop()


@pytest.mark.slow
def test_routes_answer_as_their_transcripts_and_the_readme_say(
    team: Serving, request: pytest.FixtureRequest
) -> None:
    for name in NAMES:  # those that read come first
        file = TRANSCRIPTS / f"{name}.http"
        before = file.read_text("utf-8")
        exchanges = re.split(r"(?m)^(?=### )", before)[1:]
        after = "\n".join(_answered(team, exchange) for exchange in exchanges)
        if request.config.getoption("--rewrite-transcripts"):
            file.write_text(after, "utf-8")
        else:
            assert after == before
    _check_page(team)
    loaded = Path(f"/proc/{team.process.pid}/maps").read_text()
    assert "ctranslate2" not in loaded  # the model is in the watcher, once


@pytest.mark.slow
def test_each_route_has_a_transcript(make_vault: MakeVault) -> None:
    asked = "\n".join(file.read_text("utf-8") for file in TRANSCRIPTS.glob("*.http"))
    paths = application(VaultClient(make_vault()), print).openapi()["paths"]
    assert {file.stem for file in TRANSCRIPTS.glob("*.http")} == set(NAMES)
    for path, methods in paths.items():
        for method in methods:
            pattern = rf"(?m)^{method.upper()} {re.escape(path.partition('{')[0])}"
            assert re.search(pattern, asked), f"{method} {path}"
            answer = methods[method]["responses"]["200"]["content"]["application/json"]
            assert answer["schema"], f"{method} {path} answers with anything"


def _check_form(team: Serving, method: str, path: str, answer: httpx.Response) -> None:
    """Fail for an answer that is not as `/openapi.json` says."""
    openapi = team.ask("GET", "/openapi.json").json()
    for route, methods in openapi["paths"].items():
        if re.fullmatch(re.sub(r"\{\w+\}", ".+", route), path) and method.lower() in methods:
            kind = "200" if answer.is_success else "4XX"
            form = methods[method.lower()]["responses"][kind]["content"]["application/json"]
            schema = {**form["schema"], "components": openapi["components"]}
            jsonschema.validate(answer.json(), schema)


def _check_page(team: Serving) -> None:
    """Run the commands of the page on HTTP; what they print has what it shows."""
    section = documents.page("http")
    _, commands, _, shown, *_ = re.split(r"```(?:sh|json)?\n", section)
    first, *requests = commands.splitlines()
    assert first == "lessons serve"
    home = team.token_file.parent
    for command, line in zip(requests, shown.splitlines(), strict=True):
        here = command.replace(":7731", f":{team.port}").replace("~/.lessons", str(home))
        printed = _rounded(run("bash", "-c", here, cwd=home).json)
        assert _shown(printed, json.loads(line)) == _rounded(json.loads(line))
    team.ask("DELETE", f"/api/lessons/{json.loads(line)['id']}")


def _shown(printed: Any, line: Any) -> Any:
    """Return the printed values that a line names."""
    if isinstance(line, dict):
        return {key: _shown(printed[key], each) for key, each in line.items()}
    if isinstance(line, list):
        return [_shown(*pair) for pair in zip(printed, line, strict=True)]
    return printed


def _answered(team: Serving, exchange: str) -> str:
    """Return an exchange with its request as it is, and today's answer, in its documented form."""
    asked = exchange.partition("\nHTTP ")[0].rstrip()
    _title, line, *rest = asked.split("\n")
    method, _, path = line.partition(" ")
    above, _, body = "\n".join(rest).partition("\n\n")
    headers = dict(header.split(": ", 1) for header in above.splitlines() if header)
    headers = {name: value.replace("TOKEN", team.token) for name, value in headers.items()}
    content = body.encode()
    answer = team.ask(method, path, token=False, headers=headers, content=content)
    if answer.headers["content-type"].startswith("text/event-stream"):
        text = _events(answer.text)
    else:
        _check_form(team, method, path.partition("?")[0], answer)
        text = json.dumps(_rounded(answer.json()), indent=2, ensure_ascii=False)
    text = text.replace(str(team.root), "ROOT")
    for pattern, word in REPLACED:
        text = re.sub(pattern, word, text)
    return f"{asked}\n\nHTTP {answer.status_code}\n{text}\n"


def test_docs_shows_each_route_in_the_frame_of_the_pages(make_vault: MakeVault) -> None:
    app = application(VaultClient(make_vault()), print)
    shown = TestClient(app, base_url="http://127.0.0.1").get("/docs")
    assert shown.status_code == 200
    assert '<nav class="pages"' in shown.text
    assert "http" not in shown.headers["content-security-policy"]  # no other host
    for path, methods in app.openapi()["paths"].items():
        for method in methods:
            assert f"<code>{method.upper()} {path}</code>" in shown.text
    assert "<code>source_file</code>" in shown.text


def _events(stream: str) -> str:
    """Return a stream of events with the values of each as they are rounded."""

    def rounded(data: re.Match[str]) -> str:
        return f"data: {json.dumps(_rounded(json.loads(data[1])), ensure_ascii=False)}"

    return re.sub(r"(?m)^data: (.*)$", rounded, stream).rstrip("\n")


def _rounded(value: Any) -> Any:
    """Return JSON values with each fraction as the same one."""
    if isinstance(value, dict):
        return {key: _rounded(each) for key, each in value.items()}
    if isinstance(value, list):
        return [_rounded(each) for each in value]
    return 0.5 if isinstance(value, float) else value
