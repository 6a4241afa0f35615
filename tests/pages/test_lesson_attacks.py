"""Attacks on what the page of a lesson writes: each is refused, and no file is another afterwards."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.support.files import lesson_text, write
from tests.support.serving import Serving, serving, tree_of
from tests.support.shown_vaults import TEXT_ONLY, shown_vault

SEEN = lesson_text("Heap", "Raise the heap.")
ROUTE = "/page/private/lesson/"


@pytest.fixture(scope="module")
def attacked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serving]:
    """A server of a vault with links that lead out of it, and nothing of it changed at the end."""
    folder = tmp_path_factory.mktemp("attacked-pages")
    shown = shown_vault(folder, {"heap.md": SEEN})
    root = shown.root
    write(root / "README.md", SEEN)
    write(folder / "outside.md", SEEN)
    (root / "lessons/linked").symlink_to(folder)
    (root / "lessons/link.md").symlink_to(folder / "outside.md")
    with serving(root, shown.home, **TEXT_ONLY, EDITOR="gedit") as served:
        assert served.ask("GET", "/lesson/heap", token=False).status_code == 200
        before = tree_of(root)
        yield served
        assert tree_of(root) == before
        assert (folder / "outside.md").read_text() == SEEN


def save(path: str, **others: Any) -> dict[str, Any]:
    return {"path": path, "text": "Mine.\n", "seen": SEEN, **others}


@pytest.mark.parametrize(
    "path",
    [
        *("../outside.md", "lessons/../README.md", "lessons/../../outside.md", "README.md"),
        *("/etc/hosts.md", "lessons/linked/outside.md", "lessons/link.md", "lessons/vault.toml"),
        *("lessons/.git/config.md", "lessons/%2e%2e/README.md", "lessons/new.md", "heap.md", ""),
    ],
)
def test_only_a_lesson_of_the_vault_is_written(attacked: Serving, path: str) -> None:
    for name, body in (
        ("save", save(path)),
        ("changes", {"path": path, "seen": SEEN}),
        ("check", {"path": path, "text": "Mine.\n"}),
    ):
        if name == "check" and path in ("lessons/new.md", "lessons/%2e%2e/README.md"):
            continue  # a text is checked by itself
        if name == "check" and "link" in path:
            continue
        answer = attacked.ask("POST", ROUTE + name, json=body)
        assert answer.status_code in (409, 422), (name, answer.text)
        assert str(attacked.root.parent) not in answer.text
        assert "Raise the heap" not in answer.text


@pytest.mark.parametrize("name", ["save", "check", "changes", "open"])
def test_other_pages_and_other_users_cannot_write(attacked: Serving, name: str) -> None:
    body = {**save("lessons/heap.md"), "id": "heap"}
    foreign = {"origin": "https://evil.example"}
    assert attacked.ask("POST", ROUTE + name, json=body, token=False).status_code == 401
    assert attacked.ask("POST", ROUTE + name, json=body, headers=foreign).status_code == 403
    form = {"content-type": "application/x-www-form-urlencoded"}
    assert attacked.ask("POST", ROUTE + name, content=b"a=b", headers=form).status_code == 415
    assert attacked.ask("GET", ROUTE + name).status_code == 405


@pytest.mark.parametrize(
    "change",
    [
        {"text": ""},
        {"text": "   \n"},
        {"text": "a\0b"},
        {"text": "x" * 2_100_000},
        {"text": 5},
        {"text": "---\ntitle: [\n---\nx\n"},
        {"text": "AWS_SECRET_ACCESS_KEY=q8Lr2Vn0XsT5uKd9Zb3EwYcAf7HgJp1MoRi6NtQe\n"},
        {"seen": "something else\n"},
        {"seen": ""},
        {"path": None},
    ],
)
def test_what_is_wrong_is_not_written(attacked: Serving, change: dict[str, Any]) -> None:
    answer = attacked.ask("POST", ROUTE + "save", json={**save("lessons/heap.md"), **change})
    assert answer.status_code in (409, 413, 422), answer.text
    assert "q8Lr2Vn0XsT5uKd9Zb3" not in answer.text
    half = b'{"path": "lessons/heap.md", "text": "\\ud800", "seen": "x"}'
    json = {"content-type": "application/json"}
    assert attacked.ask("POST", ROUTE + "save", content=half, headers=json).status_code == 422


@pytest.mark.slow
def test_an_id_runs_nothing(attacked: Serving) -> None:
    for id in ("../outside", "linked/outside", "link", "$(touch x)", "--help", "a\nb", ""):
        assert attacked.ask("POST", ROUTE + "open", json={"id": id}).status_code == 404
    for commit in ("HEAD", "--output=x", "HEAD:README.md", ""):
        answer = attacked.ask("GET", ROUTE + "patch", params={"id": "heap", "commit": commit})
        assert answer.status_code == 200
        assert "no line is another" in answer.text
