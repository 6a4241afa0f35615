"""LanceDB's compiled module answers as the package around it, and a release of another kind is named."""

from __future__ import annotations

import random
import shutil
import sys
import textwrap
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any, TypedDict

import numpy as np
import pyarrow as pa
import pytest

from tests.store.tables import DIMENSION, WORDS, connect, some_rows
from tests.support.commands import run
from tests.support.places import REPO
from vault_index.errors import IndexStateError
from vault_index.store.filters import LEVELS, any_of, below
from vault_index.store.lance import COMPACT_AFTER, LanceTable, Table, matrix
from vault_index.store.reader import Reader
from vault_index.store.schema import (
    DOCUMENTS,
    FULL_TEXT,
    IDENTIFIERS,
    JOURNAL,
    LESSONS,
    SKILLS,
    Schema,
)


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A table written in several commits, one of which is not in the text index; to be read only."""
    made = Table(tmp_path_factory.mktemp("filled"), DIMENSION)
    made.create()
    made.replace(some_rows(60, 1), [])
    made.replace(some_rows(20, 2), [])
    made.fold()
    rows = some_rows(5, 3)
    made.replace(rows, made.differing(rows, any_of("path", ["lessons/o'0.md"]))[1])
    return made.index


@pytest.fixture
def store(filled: Path, tmp_path: Path) -> Table:
    """A copy of that table, to be written."""
    shutil.copytree(filled, tmp_path / "store")
    return Table(tmp_path / "store", DIMENSION)


def ours(folder: Path, schema: Schema = LESSONS) -> LanceTable:
    return LanceTable(folder, DIMENSION, schema)


def both(folder: Path) -> tuple[LanceTable, Any]:
    """Return a table as we open it, and as LanceDB's package does."""
    return ours(folder), connect(folder).open_table(LESSONS.table)


def in_order(table: pa.Table) -> list[dict[str, Any]]:
    key = "_rowid" if "_rowid" in table.column_names else "id"
    return sorted(table.to_pylist(), key=lambda row: str(row[key]))


FILTERS = [
    None,
    "true",
    "false",
    any_of("path", ["lessons/o'3.md", "lessons/none.md"]),
    below(["devops"]),
    below(["it's"]),
    "confidence >= 3 AND created_at IS NOT NULL",
]


@pytest.mark.parametrize("where", FILTERS)
def test_both_read_the_same(filled: Path, where: str | None) -> None:
    one, other = both(filled)
    assert (one.version(), one.count()) == (other.version, other.count_rows())
    for columns in (None, ["id", "created_at"], ["id", "vector", "category_l0"]):
        for ids in (False, True):
            mine = one.scan(columns, where, ids=ids)
            asked = other.search().limit(None).with_row_id(ids).where(where or "true")
            theirs = (asked.select(columns) if columns else asked).to_arrow()
            assert set(mine.column_names) == set(theirs.column_names)
            assert in_order(mine) == in_order(theirs)
    some = [row["_rowid"] for row in in_order(one.scan(["id"], where, ids=True))][::-2]
    taken = one.rows_by_id(some, ["id", "text", "categories", "created_at"])
    theirs = other.take_row_ids(some).with_row_id().select(taken.column_names[:-1]).to_arrow()
    assert in_order(taken) == in_order(theirs)


@pytest.mark.parametrize(
    "text",
    ["heap", "Heap LOCK the", '"heap lock"', "größe café", "snake_case v1.2.3", "don't", "zyzzyva",
     "the and of", "heap^2 AND (lock OR *)", "staging " * 200],
)  # fmt: skip
def test_both_match_the_same_words(filled: Path, text: str) -> None:
    from lancedb.query import MatchQuery

    one, other = both(filled)
    for limit in (3, 1000):
        mine = one.begin_bm25(text, FULL_TEXT, limit)()
        asked = other.search(MatchQuery(text, FULL_TEXT), query_type="fts").limit(limit)
        theirs = asked.with_row_id(True).select(["_score"]).to_arrow()
        if limit == 3:  # equal scores: any of them may be left out
            assert sorted(mine["_score"].to_pylist()) == sorted(theirs["_score"].to_pylist())
        else:
            assert in_order(mine) == in_order(theirs)


@pytest.mark.parametrize("warm", [False, True])
def test_the_nearest_rows_are_those_of_all_vectors(filled: Path, warm: bool) -> None:
    reader = Reader(filled, DIMENSION)
    if warm:
        reader.load(warm=True)
    asked = some_rows(1, 7)[0]["vector"]
    rows = reader.scan(["vector"], ids=True)
    every = dict(zip(rows["_rowid"].to_pylist(), matrix(rows, DIMENSION) @ asked, strict=True))
    places, cosines = reader.nearest(asked, 5)
    assert list(cosines) == sorted(cosines, reverse=True)
    assert np.allclose([every[id] for id in reader.ids[places].tolist()], cosines, atol=1e-5)
    assert np.allclose([every[id] for id in reader.ids.tolist()], reader.cosines(asked), atol=1e-5)


@pytest.mark.slow
def test_both_make_the_same_table(tmp_path: Path) -> None:
    """The indexes are those that the package makes, and so is what a merge leaves."""
    from lancedb.index import FTS, BTree, LabelList

    single = ("id", "lesson_id", "path", "content_hash")
    one = ours(tmp_path / "ours")
    one.create()
    made = connect(tmp_path / "ours").open_table(LESSONS.table)
    plain = pa.schema([pa.field(each.name, each.type, each.nullable) for each in made.schema])
    other = connect(tmp_path / "theirs").create_table(LESSONS.table, schema=plain)
    other.set_unenforced_primary_key("id")
    for column in (*single, *LEVELS):
        other.create_index(column, config=BTree() if column in single else LabelList())
    other.create_index(
        FULL_TEXT, config=FTS(with_position=False, stem=True, remove_stop_words=True)
    )
    whole = FTS(
        with_position=False, base_tokenizer="whitespace", max_token_length=100,
        stem=False, remove_stop_words=False,
    )  # fmt: skip
    other.create_index(IDENTIFIERS, config=whole)
    rows = pa.Table.from_pylist(list(some_rows(40, 1)), schema=plain)
    merge = other.merge_insert("id").when_matched_update_all().when_not_matched_insert_all()
    for some, delete in ((rows.slice(0, 10), False), (rows.slice(5, 35), True)):
        one.merge_arrow(some, delete=delete)
        (merge.when_not_matched_by_source_delete(None) if delete else merge).execute(some)
    one.delete("path = 'lessons/o''1.md'")
    other.delete("path = 'lessons/o''1.md'")
    one.optimize(None)
    other.optimize()
    tables = [connect(tmp_path / name).open_table(LESSONS.table) for name in ("ours", "theirs")]
    assert tables[0].schema.equals(tables[1].schema, check_metadata=True)
    kinds = [
        sorted((each.name, each.index_type, each.columns) for each in table.list_indices())
        for table in tables
    ]
    assert kinds[0] == kinds[1]
    assert in_order(one.scan(None)) == in_order(other.to_arrow())
    theirs = ours(tmp_path / "theirs")
    for word in WORDS:
        scores = [
            door.begin_bm25(word, FULL_TEXT, 100)()["_score"].to_pylist() for door in (one, theirs)
        ]
        assert sorted(scores[0]) == sorted(scores[1])


@pytest.mark.parametrize("schema", [LESSONS, SKILLS, DOCUMENTS], ids=lambda schema: schema.table)
@pytest.mark.parametrize("dimension", [0, DIMENSION])
def test_each_table_has_the_columns_of_its_rows(
    tmp_path: Path, schema: Schema, dimension: int
) -> None:
    made = Table(tmp_path, dimension, schema)
    assert not made.exists()
    made.create()
    made.fold()
    columns = set(schema.row.__annotations__) - (set() if dimension else {"vector"})
    assert set(ours(tmp_path, schema).scan(None).column_names) == columns
    indexed = {*schema.indexed, *schema.indexed_lists, schema.full_text, schema.exact_text} - {""}
    made_of = connect(tmp_path).open_table(schema.table).list_indices()
    assert {column for index in made_of for column in index.columns} == indexed
    assert {*schema.shown, *indexed} <= columns
    empty = Reader(tmp_path, dimension, schema)
    assert empty.count() == len(empty.ids) == 0
    if dimension:
        assert len(empty.nearest(np.ones(DIMENSION, np.float32), 5)[0]) == 0


class PricedRow(TypedDict):
    id: str
    price: float


def test_59_2_a_column_of_a_type_that_no_row_has_is_named() -> None:
    with pytest.raises(TypeError, match=r"PricedRow\.price: no column has the type .*float"):
        Schema(table="priced", row=PricedRow, indexed=("id",)).arrow(0)


def test_a_hash_is_a_column_of_64_bits() -> None:
    kinds = JOURNAL.arrow(0)
    assert (kinds.field("turn").type, kinds.field("place").type) == (pa.int64(), pa.int32())


def test_what_a_table_refuses(store: Table, tmp_path: Path) -> None:
    door = ours(store.index)
    holes = some_rows(2, 9)
    holes[1]["vector"] = np.full(DIMENSION, np.nan, np.float32)
    schema = door.scan(None).schema
    with pytest.raises(IndexStateError, match="NaN"):
        door.merge_arrow(pa.Table.from_pylist(list(holes), schema=schema), delete=False)
    for columns, where in ((["nowhere"], None), (None, "nowhere = 1")):
        with pytest.raises(IndexStateError, match="nowhere"):
            door.scan(columns, where)
    with pytest.raises(IndexStateError, match="none"):
        ours(tmp_path, replace(LESSONS, table="none")).count()


@pytest.mark.slow
def test_a_pinned_reader_reads_what_was_there_and_others_what_is(store: Table) -> None:
    pinned = Reader(store.index, DIMENSION)
    follower = Table(store.index, DIMENSION)
    before = pinned.count()
    assert follower.count() == before
    places, _ = pinned.matches("heap")
    shown = pinned.take(places[::-1])
    code = f"""
        from pathlib import Path
        from tests.store.tables import DIMENSION, some_rows
        from vault_index.store.lance import Table
        store = Table(Path({str(store.index)!r}), DIMENSION)
        store.merge(some_rows(4, 5), delete=True)
        store.fold()
    """
    run(sys.executable, "-c", textwrap.dedent(code), cwd=REPO)
    assert follower.count() == 4
    assert {row["id"] for row in follower.rows(["id"])} == {f"5-{at}@0" for at in range(4)}
    assert pinned.count() == len(pinned.rows(["id"])) == before
    assert pinned.take(places[::-1]) == shown


def test_rows_come_in_the_order_they_are_asked_for(store: Table) -> None:
    reader = Reader(store.index, DIMENSION)
    rows = reader.take(range(reader.count()))
    places = random.Random(4).sample(range(len(rows)), len(rows))
    for is_in_memory in (False, True):
        if is_in_memory:
            reader.load(warm=True)
        assert [row["id"] for row in reader.take(places)] == [rows[at]["id"] for at in places]


def test_a_warm_reader_answers_as_a_cold_one(store: Table) -> None:
    cold, warm = Reader(store.index, DIMENSION), Reader(store.index, DIMENSION)
    warm.load(warm=True)
    ids = [row["lesson_id"] for row in cold.take(range(3))]
    assert warm.shown_of(ids) == cold.shown_of(ids)
    assert warm.wholes("lesson_id", "title") == cold.wholes("lesson_id", "title")
    assert list(map(list, warm.families)) == list(map(list, cold.families))
    vectors = [reader.of_lessons([*ids, "nowhere"]) for reader in (cold, warm)]
    assert vectors[0].keys() == vectors[1].keys() == {*ids}
    assert all(np.array_equal(vectors[0][id], vectors[1][id]) for id in ids)


@pytest.mark.slow
def test_old_versions_are_counted_and_dropped(store: Table) -> None:
    for seed in range(COMPACT_AFTER):
        store.replace(some_rows(1, 100 + seed), [])
    one, other = both(store.index)
    assert one.count_versions() == len(other.list_versions()) > COMPACT_AFTER
    one.optimize(timedelta(milliseconds=1))
    assert one.count_versions() == len(other.list_versions()) < COMPACT_AFTER
    assert store.count() == one.count() == other.count_rows()


USE = """
from vault_index.store.reader import Reader
from vault_index.store.lance import Table
from tests.store.tables import DIMENSION, some_rows
store = Table(Path(sys.argv[1]), DIMENSION)
store.create()
store.replace(some_rows(30, 1), [])
store.fold()
pinned = Reader(store.index, DIMENSION)
places, _ = pinned.matches("heap")
assert len(places) == len(pinned.take(places)) > 0
assert len(pinned.nearest(some_rows(1, 2)[0]["vector"], 5)[0]) == 5
assert len(pinned.rows(["id"])) == pinned.count() == 30
"""


def python(code: str, folder: Path = REPO) -> str:
    """Run code in a process of its own, and give what it prints."""
    words = [sys.executable, "-c", "import sys; from pathlib import Path\n" + code, str(folder)]
    return run(*words, cwd=REPO).out.strip()


@pytest.mark.slow
def test_the_lancedb_that_is_installed_fits(tmp_path: Path) -> None:
    said = python(USE + "print(*sys.modules)", tmp_path).split()
    assert "pyarrow" in said
    assert not {"lancedb", "asyncio", "lance_namespace", "pyarrow.compute"} & set(said)


CHANGES = {
    "the first call takes other arguments": "module.connect = lambda uri: None",
    "the first call answers at once": "module.connect = lambda *all: module",
    "the first call is gone": "del module.connect",
    "the first call never answers": (
        "import asyncio; module.connect = lambda *all: asyncio.get_running_loop().create_future()"
    ),
    "the first call fails": "module.connect = lambda *all: 1 / 0",
}


@pytest.mark.slow
@pytest.mark.parametrize("change", CHANGES)
def test_a_release_that_is_otherwise_is_named_in_the_error(tmp_path: Path, change: str) -> None:
    code = f"""
from vault_index import errors, native
native.CALL_SECONDS = 0.1
module = native.load("lancedb", "_lancedb")
{CHANGES[change]}
from vault_index.store.lance import Table
try:
    Table(Path(sys.argv[1]), 4).create()
except errors.VaultError as error:
    print(type(error).__name__, error.message, error.hint)
"""
    said = python(code, tmp_path)
    assert said.startswith("VaultError this release of LanceDB cannot be used: ")
    assert "pip install" in said


def test_a_server_goes_on_while_a_compiled_module_looks_for_asyncio() -> None:
    """Its loop runs in another thread, and asks for asyncio by name at each request."""
    code = """
import asyncio, threading
import anyio.to_thread
from vault_index import native
answers = []
async def answer():
    answers.append(await anyio.to_thread.run_sync(lambda: "answered"))
def call():
    loop = sys.modules["asyncio"].get_running_loop()
    served = threading.Thread(target=asyncio.run, args=(answer(),))
    served.start()
    served.join()
    future = loop.create_future()
    loop.call_soon_threadsafe(future.set_result, answers)
    return future
before = asyncio.get_running_loop
print(native.introduce(call), asyncio.get_running_loop is before)
"""
    assert python(code) == "['answered'] True"


def test_a_call_that_is_broken_off_is_cancelled() -> None:
    code = """
import signal
from vault_index import native
signal.signal(signal.SIGINT, signal.default_int_handler)  # in the background it may be ignored
told = []
def call():
    loop = sys.modules["asyncio"].get_running_loop()
    future = loop.create_future()
    future.add_done_callback(lambda future: told.append(future.cancelled()))
    loop.call_soon_threadsafe(signal.raise_signal, signal.SIGINT)
    return future
try:
    native.introduce(call)
except KeyboardInterrupt:
    print(told)
"""
    assert python(code) == "[True]"
