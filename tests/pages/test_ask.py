"""The page that asks, in a real browser, with a real server whose model searches and then writes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.support.browser import nothing_is_in_the_way, visiting
from tests.support.chat_server import ChatServer
from tests.support.files import lesson_text
from tests.support.homes import make_home
from tests.support.serving import Serving, serving
from tests.support.shown_vaults import TEXT_ONLY, shown_vault

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

pytestmark = pytest.mark.browser

ROLLBACK = (
    "Staging is a copy of production.\n\nRoll back a staging deploy with `make rollback`. "
    "It takes a minute. <script>document.title = 'hacked'</script>"
)
EVIL = "<img src=x onerror=\"document.title = 'hacked'\">"
FILES = {
    "devops/rollback.md": "---\ntitle: Staging rollbacks\nlink: https://example.com/rollbacks\n"
    f"fires_on: [how do we roll back a staging deploy?]\n---\n{ROLLBACK}\n",
    "devops/evil.md": lesson_text(f"{EVIL} {'verylong' * 40}", "How to undo a staging deploy."),
    "heap.md": lesson_text("Heap of the build", "Raise the heap when its memory is full."),
}
ASKED = "how do we roll back a staging deploy?"
AGAIN = "who can roll back a staging deploy?"
ANSWER = ["Run ", "**`make rollback`** ", "[1], ", f"not {EVIL} ", "[99]:\n\n", "- [1] once\n",
          "- `code [1]`\n", "\n[a link](javascript:alert)"]  # fmt: skip


@pytest.fixture(scope="module")
def chat() -> Iterator[ChatServer]:
    with ChatServer() as server:
        yield server


@pytest.fixture(autouse=True)
def scripted(chat: ChatServer) -> Iterator[None]:
    chat.begin()
    chat.words = lambda _: ANSWER
    yield
    chat.release.set()


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory, chat: ChatServer) -> Iterator[Serving]:
    """A vault with hostile lessons, for full text alone; a model answers."""
    shown = shown_vault(tmp_path_factory.mktemp("asked"), FILES)
    chat.configure(shown.home)
    with serving(shown.root, shown.home, **TEXT_ONLY) as server:
        yield server


@pytest.fixture
def page(browser: Browser, served: Serving) -> Iterator[Page]:
    """The page that asks, visited with the key."""
    with visiting(browser, served) as visit:
        yield visit.go("/ask")


def ask(page: Page, question: str, *, until: str = "Answered, with 1 source") -> None:
    """Type a question, send it with Enter, and wait for the end of its answer."""
    asked_before = page.locator(".exchange").count()
    page.get_by_label("Your question").fill(question)
    page.keyboard.press("Enter")
    page.locator(".exchange").nth(asked_before).wait_for()  # the status is no longer of another one
    page.get_by_role("status").get_by_text(until).first.wait_for()


def test_a_conversation_is_read_by_anybody(page: Page, chat: ChatServer, axe: str) -> None:
    page.get_by_text("openai:scripted answers").wait_for()
    ask(page, ASKED)
    chat.words = lambda _: ["Undo it [1]", "[2]."]
    ask(page, "undo a staging deploy", until="Answered, with 2 sources")
    for citation in page.locator(".exchange").last.locator(".cite").all():
        citation.click()
    nothing_is_in_the_way(page, axe, "ask-conversation")


def test_an_answer_is_seen_as_it_is_written_and_harmless_at_its_end(
    page: Page, chat: ChatServer
) -> None:
    chat.release.clear()
    page.get_by_label("Your question").fill("how do we")
    page.keyboard.press("Shift+Enter")
    page.keyboard.type("roll back a staging deploy?")
    page.keyboard.press("Enter")
    written = page.locator(".written", has_text=f"[1], not {EVIL}")
    written.wait_for()  # as text, and the model has not ended
    assert page.get_by_role("button", name="Stop").is_visible()
    chat.release.set()
    answer = page.locator(".exchange .text")
    answer.wait_for()
    assert answer.locator("strong").inner_text() == "make rollback"
    assert "99" not in answer.inner_text()
    assert EVIL in answer.inner_text()
    assert page.locator(".exchange img, .exchange script").count() == 0
    assert answer.locator("a").count() == 0
    assert page.title() == "Ask · team"
    # a citation opens its source; code is no citation
    assert answer.get_by_role("button").all_inner_texts() == ["[1]", "[1]"]
    source = page.locator(".exchange details")
    assert source.get_attribute("open") is None
    answer.get_by_role("button").first.press("Enter")
    assert source.get_attribute("open") is not None
    assert source.get_by_text("lessons/devops/rollback.md:").is_visible()
    assert source.get_by_role("link").all_inner_texts() == ["Open the lesson", "example.com"]
    assert page.evaluate("document.activeElement.tagName") == "SUMMARY"


def test_what_is_suggested_comes_from_lessons_and_waits_for_its_reader(
    page: Page, chat: ChatServer
) -> None:
    page.get_by_role("button", name=ASKED).wait_for()
    shown = page.locator("#suggested").inner_text()
    assert "?" not in shown.replace(ASKED, "")  # a title with a question mark is no question
    page.get_by_role("button", name=ASKED).click()
    assert page.get_by_label("Your question").input_value() == ASKED
    assert chat.chats == []


def test_conversations_stay_in_the_browser_and_can_be_deleted(page: Page, chat: ChatServer) -> None:
    ask(page, ASKED)
    ask(page, AGAIN)
    said = [message["content"] for message in chat.chats[-1]["messages"]]
    assert ASKED in said  # the server was told which conversation goes on
    page.get_by_role("button", name="New").click()
    assert page.locator(".exchange").count() == 0
    ask(page, "raise the heap out of memory")
    page.get_by_label("Your question").fill("half of a")
    page.reload(wait_until="networkidle")
    assert page.get_by_label("Your question").input_value() == "half of a"
    assert page.locator("#conversations button").all_inner_texts() == [
        "raise the heap out of memory",
        ASKED,
    ]
    page.locator("#conversations").get_by_role("button", name=ASKED).click()
    assert page.locator(".exchange h2").all_inner_texts() == [ASKED, AGAIN]
    page.get_by_role("button", name="Delete").click()
    assert page.locator("#conversations button").all_inner_texts() == [
        "raise the heap out of memory"
    ]


def test_stop_ends_the_model_and_keeps_what_it_wrote(page: Page, chat: ChatServer) -> None:
    def endless() -> Iterator[str]:
        while not chat.is_left.wait(0.02):
            yield "word "

    chat.words = lambda _: endless()
    page.get_by_label("Your question").fill(ASKED)
    page.get_by_role("button", name="Ask Enter").click()
    page.locator(".written", has_text="word word").wait_for()
    page.get_by_role("button", name="Stop").click()
    page.get_by_text("Stopped.").wait_for()
    assert "word word" in page.locator(".exchange").inner_text()
    assert chat.is_left.wait(60)


def test_a_model_that_fails_and_a_question_that_the_vault_does_not_answer(
    page: Page, chat: ChatServer
) -> None:
    ask(page, "zzz qqq", until="Done")
    assert "The vault does not know" in page.locator(".exchange").inner_text()
    chat.status = 400
    ask(page, ASKED, until="Done")
    trouble = page.locator(".trouble").inner_text()
    assert trouble.startswith("openai:scripted failed:")
    assert "Try: " in trouble
    assert page.locator("details[open]").first.inner_text().count("make rollback") == 1


def test_without_a_model_the_sentences_are_set_off_and_without_the_key_it_says_how(
    browser: Browser, served: Serving, tmp_path: Path
) -> None:
    home = make_home(tmp_path / "other")
    with serving(served.root, home, LESSONS_EMBEDDER="none") as other:
        with visiting(browser, other) as visit:
            page = visit.go("/ask")
            page.get_by_text("No model is set").wait_for()
            ask(page, ASKED, until="Done")
            assert page.locator("mark").first.inner_text().startswith("Roll back a staging deploy")
            passage = page.locator(".source .passage").first  # issue 55, row 15: as on its own page
            assert passage.locator("code").first.inner_text() == "make rollback"
            assert "`" not in passage.inner_text()
            assert "[ask]" not in page.locator(".exchange").inner_text()
        context = browser.new_context()
        page = context.new_page()  # a refused request is an error of the console
        page.goto(f"{other.url}/ask", wait_until="networkidle")
        assert "lessons open" in page.locator("#state").inner_text()
        page.get_by_label("Your question").fill(ASKED)
        page.keyboard.press("Enter")
        page.locator(".trouble", has_text="lessons open").wait_for()
        context.close()
