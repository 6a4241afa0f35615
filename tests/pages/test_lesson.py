"""The page of a lesson: read it, see what is around it and its past, write it in a form."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.support.browser import barriers, visiting
from tests.support.commands import run
from tests.support.files import MakeVault, commit, lesson_text, write
from tests.support.serving import Answering, Serving, answering
from tests.support.shown_vaults import ShownVault, shown_vault

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Dialog, Page

pytestmark = pytest.mark.slow

HEAP = """\
---
title: Node runs out of memory in the CI build
categories: [devops/ci-cd, frontend]
tags: [node, ci]
type: bug_fix
confidence: 4
created: 2025-11-15T10:30:00Z
ticket: CI-1234
fires_on: ["node heap memory build"]
silent_on: ["docker images prune"]
---
# Why

The build dies with `ENOMEM`. Raise the heap, see [images](../docker/images.md) and
[the manual](https://nodejs.example/heap):

```sh
NODE_OPTIONS=--max-old-space-size=4096 npm run build
```

| runner | memory |
|--------|--------|
| small  | 2 GB   |
| large  | 8 GB   |
"""
COURSE = """\
---
title: A course
---
# A course

## Lesson: First
Begin with it.

## Lesson: Second
Go on.

## Lesson: Third
End with it.
"""
SECRET = "Deploy with AWS_SECRET_ACCESS_KEY=q8Lr2Vn0XsT5uKd9Zb3EwYcAf7HgJp1MoRi6NtQe"


@pytest.fixture(scope="module")
def shown(tmp_path_factory: pytest.TempPathFactory) -> ShownVault:
    """A vault of two commits, of which the second renames a file."""
    files = {
        "build/memory.md": HEAP.replace("4096", "2048"),
        "docker/images.md": lesson_text("Prune docker images", "docker prune"),
        "course.md": COURSE,
    }
    shown = shown_vault(tmp_path_factory.mktemp("lesson-page"), files)
    commit(shown.root, "Keep what we learned")
    (shown.root / "lessons/build/memory.md").unlink()
    write(shown.root / "lessons/build/heap.md", HEAP)
    commit(shown.root, "Four gigabytes <b>are</b> needed")
    write(shown.root / "lessons/odd/leaked.md", lesson_text("The key", SECRET))
    return shown


def opened(page: Page) -> Page:
    """Wait until all parts of a lesson's page are there, and its script."""
    page.locator("html[data-ready] #lesson").wait_for()
    return page


def dismissed(page: Page) -> list[str]:
    """Dismiss each dialog of a page, and return the list that their types come into."""
    types: list[str] = []

    def dismiss(dialog: Dialog) -> None:
        types.append(dialog.type)
        dialog.dismiss()

    page.on("dialog", dismiss)
    return types


def test_a_lesson_is_shown_with_all_that_is_known_of_it(answers: Answering) -> None:
    id = "build/heap"
    shown = answers.ask("GET", f"/lesson/{id}", token=False).text
    assert '<h1 tabindex="-1">Node runs out of memory in the CI build</h1>' in shown
    for word in ("devops/ci-cd", "node", "bug_fix", "2025-11-15", "CI-1234", "Ada Lovelace"):
        assert word in shown
    for link in ("/lessons?c=devops%2Fci-cd", "/lesson/docker/images", "/new?id=build%2Fheap"):
        assert f'href="{link}"' in shown
    prompts = answers.ask("GET", f"/page/lesson/prompts?id={id}", token=False).text
    assert prompts.count(">passes<") == 2
    past = answers.ask("GET", f"/page/private/lesson/past?id={id}").text
    assert "Four gigabytes &lt;b&gt;are&lt;/b&gt; needed" in past
    newest, oldest = re.findall(r'data-src="([^"]+)"', past)
    patch = answers.ask("GET", newest.replace("&amp;", "&")).text
    assert '<span class="removed">-NODE_OPTIONS=--max-old-space-size=2048' in patch
    assert '<span class="added">+NODE_OPTIONS=--max-old-space-size=4096' in patch
    assert answers.ask("GET", oldest.replace("&amp;", "&")).status_code == 200


def test_a_title_shows_code_and_what_is_hardly_like_it_is_not_related(
    make_vault: MakeVault, with_model: Path
) -> None:
    vault = make_vault(
        {
            "pin.md": lesson_text("Pin `uv` in CI", "Pin the version of uv in the CI job."),
            "pin-too.md": lesson_text("Pin uv in CI jobs", "Pin the version of uv in each CI job."),
            "far.md": lesson_text("Telescope mounts", "A mount drifts when it is cold."),
        }
    )
    run("lessons", "index", cwd=vault.root)
    with answering(vault.root, with_model) as served:
        assert "Pin <code>uv</code> in CI" in served.ask("GET", "/lesson/pin", token=False).text
        assert "Pin <code>uv</code> in CI" in served.ask("GET", "/lessons", token=False).text
        near = served.ask("GET", "/page/lesson/near?id=pin", token=False).text
        assert "Pin uv in CI jobs" in near
        assert "Telescope" not in near


def test_the_form_lists_the_categories(answers: Answering) -> None:
    form = answers.ask("GET", "/page/private/lesson/form").text
    assert '<option value="devops/ci-cd">' in form


def test_a_lesson_of_a_course_leads_to_the_others(answers: Answering) -> None:
    shown = answers.ask("GET", "/lesson/course%23second", token=False).text
    for other, name in (("first", "← First"), ("third", "Third →"), ("first", "First")):
        assert re.search(rf'href="/lesson/course%23{other}"[^>]*>{name}</a>', shown)
    assert "3 lessons in A course" in shown


def test_a_lesson_that_is_not_there_names_the_nearest(answers: Answering) -> None:
    answer = answers.ask("GET", "/lesson/build/heep", token=False)
    assert answer.status_code == 404
    assert 'href="/lesson/build/heap"' in answer.text
    for odd in ("%00", "..%2f..%2fetc/passwd", "a" * 2000, "%3Cscript%3Eodd", "x%23y%23z", "%20"):
        answer = answers.ask("GET", f"/lesson/{odd}", token=False)
        assert answer.status_code == 404
        assert "<script>odd" not in answer.text
        assert "root:x:" not in answer.text


@pytest.fixture
def scratch(shown: ShownVault, served: Serving, request: pytest.FixtureRequest) -> Path:
    """A lesson of this test alone, that the server knows."""
    id = re.sub(r"\W", "-", request.node.name)[:60]
    return write(
        shown.root / "lessons" / "scratch" / f"{id}.md",
        b"---\r\ntitle: Scratch   # of ours\r\n---\r\nFirst.\r\nSecond.\r\n",
    )


def id_of(file: Path) -> str:
    return f"scratch/{file.stem}"


def form_of(page: Page, path: str) -> Page:
    """Return the page with the form, once its fields are there."""
    page.goto(page.url.split("/lesson/")[0].rstrip("/") + path)
    page.get_by_role("button", name="Save").wait_for()
    return page


@pytest.mark.browser
def test_fields_are_edited_and_the_rest_of_the_file_stays(
    browser: Browser, served: Serving, scratch: Path, axe: str
) -> None:
    with visiting(browser, served) as visit:
        page = opened(visit.go(f"/lesson/{id_of(scratch)}"))
        page.get_by_placeholder("Add a prompt").fill("the build is killed")
        page.get_by_role("button", name="Add").click()
        page.locator(".checks", has_text="the build is killed").wait_for()
        page.get_by_role("link", name="Edit").click()
        page.get_by_label("Tags").fill("node\nci")
        page.get_by_label("Confidence").select_option("4")
        page.get_by_label("Comes whatever it scores at").fill("the build dies")
        page.get_by_label("Comes at the first edit").fill("migrations/**")
        assert barriers(page, axe) == []
        page.get_by_role("button", name="Save").click()
        opened(page).get_by_text("migrations/**").wait_for()
        data = scratch.read_bytes()
        assert data.startswith(b"---\r\ntitle: Scratch   # of ours\r\n")
        assert data.endswith(b"\r\n---\r\nFirst.\r\nSecond.\r\n")
        for line in (b"tags: [node, ci]", b"confidence: 4", b"fires_on: [the build dies]"):
            assert b"\r\n" + line + b"\r\n" in data
        page.get_by_role("link", name="Edit").click()
        page.get_by_label("Title").fill("Another title")
        page.get_by_label("Tags").fill("")
        page.get_by_label("Confidence").select_option("not said")
        page.get_by_label("What was learned").fill("All is new.")
        page.get_by_role("button", name="Save").click()
        page.get_by_role("heading", level=1, name="Another title").wait_for()
        data = scratch.read_bytes()
        assert b"title: Another title   # of ours" in data
        assert data.endswith(b"---\r\nAll is new.\r\n")
        assert b"tags" not in data
        assert b"confidence" not in data


@pytest.mark.browser
def test_a_lesson_is_written_checked_and_deleted(
    browser: Browser, served: Serving, shown: ShownVault
) -> None:
    file = shown.root / "lessons/ops/pin-it.md"
    with visiting(browser, served) as visit:
        page = form_of(visit.go("/"), "/new?error=npm%20ERR!%20code%20ELIFECYCLE%20137")
        page.get_by_label("Title").fill("Pin it")
        page.get_by_label("Category 1").fill("ops")
        page.get_by_label("What was learned").fill(SECRET)
        page.get_by_role("button", name="Save").click()
        refused = page.locator("label", has_text="What was learned").locator("#said")
        refused.get_by_text("secret").wait_for()  # at its field, and no line of the file
        assert "line" not in refused.inner_text()
        field = page.get_by_label("What was learned")
        assert field.get_attribute("aria-invalid") == "true"
        assert not file.exists()
        visit.errors.clear()  # the browser notes each answer of status 4xx
        page.get_by_label("What was learned").fill("Pin the version.")
        page.get_by_role("button", name="Save").dblclick()
        page.get_by_role("heading", level=1, name="Pin it").wait_for()
        opened(page)
        assert "ELIFECYCLE 137" in file.read_text()
        other = page.context.new_page()
        other.goto(page.url)
        page.once("dialog", lambda dialog: dialog.accept())
        page.get_by_role("button", name="Delete").click()
        page.get_by_text("It is deleted.").wait_for()
        other.get_by_text("It was deleted or renamed.").wait_for()
        assert not file.exists()


@pytest.mark.browser
def test_a_file_that_somebody_else_saved_is_kept(
    browser: Browser, served: Serving, scratch: Path
) -> None:
    with visiting(browser, served) as visit:
        dialogs = dismissed(visit.page)
        page = form_of(visit.go("/"), f"/new?id={id_of(scratch)}")
        page.get_by_label("What was learned").fill("Mine.")
        theirs = scratch.read_bytes() + b"Theirs.\r\n"
        scratch.write_bytes(theirs)
        page.get_by_role("button", name="Save").click()
        page.get_by_text("was saved since it was opened here").wait_for()
        assert page.get_by_label("What was learned").input_value() == "Mine."
        assert scratch.read_bytes() == theirs
        visit.errors.clear()  # the browser notes each answer of status 4xx
        with page.expect_event("dialog"):
            page.evaluate("setTimeout(() => location.assign('/'), 0)")
        assert page.get_by_label("What was learned").input_value() == "Mine."
    assert dialogs == ["beforeunload"]
