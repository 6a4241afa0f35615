"""Measure answers with sources: is the source that is cited a right one, and what takes how long?

    python -m benchmarks.asking                    # some five minutes
    python -m benchmarks.asking --eval ../shared/eval --json out.json

A scripted model uses the tool with the question as it is and cites the first passage; another cites the
one that has most words of the question, as if it read them. The questions are
the prompts of the evaluation set that a lesson answers; the share is over those for which the search
returns a labelled lesson at all: over the first 50 of these, and over all. 50 evenly spaced questions
are shown, too, of which some 28 are found: a few points there are noise. Times are of this machine,
without a model.

    python -m benchmarks.asking --questions benchmarks/asking_questions.json

asks the whole command: of a note, of several, deep in a long one, what none says, follow-ups, the
journal. They were written from the notes (MIT) before anything was measured. A right passage is one that
has the words of the answer. The scripted model searches for the question, with the one before it.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import tempfile
import time
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, cast

from benchmarks import instruments
from benchmarks.instruments import Row
from tests.learn.projects import taken
from tests.support.conversations import about_redirects, about_retries
from tests.support.model_server import ModelServer
from vault_index import api, client
from vault_index.api import codec
from vault_index.ask import respond
from vault_index.ask.citations import check
from vault_index.ask.passages import MAX_CHARS, SearchRequest, SearchResult, find
from vault_index.ask.respond import ANSWERED, FAILED, UNKNOWN, Answer
from vault_index.ask.sentences import words_of
from vault_index.ask.tool import NAME
from vault_index.embed import download
from vault_index.features import AskTable
from vault_index.llm.backend import TOOL, ModelQuestion, Reply, Take, ToolCall
from vault_index.retrieval import evaluate
from vault_index.retrieval.evaluate import LabelledPrompt
from vault_index.retrieval.measuring import quantile
from vault_index.store import filters
from vault_index.vault import Vault

QUESTIONS = 50
LONG_ANSWER = "A statement [1], and one of a number that was not returned [99]. `a[7]`\n\n" * 1_300


class Reader:
    """A model that searches for the question as it is, and cites the first passage.

    One that `reads` cites the passage that has most words of the question. One with more `searches`
    makes the same again, as a careless one does.
    """

    name = "scripted:reader"
    can_call_tools = True

    def __init__(self, *, reads: bool = False, searches: int = 1) -> None:
        self._reads = reads
        self._searches = searches

    def converse(self, question: ModelQuestion, take: Take | None = None) -> Reply:
        """Return the calls of the tool, then an answer."""
        if sum(turn.role == TOOL for turn in question.after) < self._searches:
            return Reply("", calls=(ToolCall("1", NAME, {"query": question.prompt}),))
        number = _fitting(question.prompt, question.after[-1].text) if self._reads else 1
        text = f"It is as the passage says [{number}]."
        if take is not None:
            take(text)
        return Reply(text)


def _fitting(asked: str, result: str) -> int:
    """Return the number of the passage with most words of a question, of several the first."""
    parts = re.split(r"(?m)^\[(\d+)\] ", result)
    words = words_of(asked)
    texts = zip(parts[1::2], parts[2::2], strict=True)
    return max((len(words & words_of(text)), -int(number)) for number, text in texts)[1] * -1


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description="Measure answers with sources.")
    parser.add_argument("--eval", type=Path, default=instruments.EVAL, help="the evaluation set")
    parser.add_argument("--json", type=Path, help="also write the figures here")
    parser.add_argument("--questions", type=Path, metavar="FILE", help="only these, by the command")
    options = parser.parse_args()
    instruments.EVAL = options.eval
    with tempfile.TemporaryDirectory(prefix="lessons-asking-") as scratch:
        os.environ.setdefault("LESSONS_HOME", f"{scratch}/home")
        os.environ["LESSONS_WATCH_AUTOSTART"] = "false"
        download.fetch(Path(os.environ["LESSONS_HOME"]))
        vault = instruments.eval_vault(Path(scratch) / "eval")
        if options.questions:
            os.environ["HOME"] = scratch
            figure_rows = _by_command(vault, json.loads(options.questions.read_text("utf-8")))
        else:
            figure_rows = _rows(vault, evaluate.load(options.eval / "queries.jsonl"))
        rows = list(instruments.shown(figure_rows))
    if options.json:
        figures = {what: {"value": figure, "unit": unit} for what, figure, unit in rows}
        options.json.write_text(json.dumps(figures, indent=2) + "\n")


def _rows(vault: Vault, prompts: list[LabelledPrompt]) -> Iterator[Row]:
    answerable = [prompt for prompt in prompts if prompt.relevant]
    for name, model in (("first", Reader()), ("one with most words", Reader(reads=True))):
        outcomes = [_outcome(vault, prompt, model) for prompt in answerable]
        of_found = [cited for is_there, cited in outcomes if is_there][:QUESTIONS]
        what = f"the {name} is cited"
        yield f"{what}: right of the first {len(of_found)} that are found", _share(of_found), ""
        yield from _cited(outcomes, f"{what}, all {len(answerable)}")
        chosen = [outcomes[n * len(outcomes) // QUESTIONS] for n in range(QUESTIONS)]
        yield from _cited(chosen, f"{what}, {QUESTIONS} evenly spaced")
    for searches in (1, 2):
        model = Reader(searches=searches)
        sent = [_outcome(vault, prompt, model)[0] for prompt in answerable]
        yield f"a labelled lesson is among the passages of {searches} searches", _share(sent), ""
        deep = [_is_sent(vault, *each, searches) for each in _deep(vault)]
        yield f"{len(deep)} lines deep in long notes: sent by {searches} searches", _share(deep), ""
    others = [prompt for prompt in prompts if not prompt.relevant]
    unknown = [_asked(vault, prompt, Reader()).status == UNKNOWN for prompt in others]
    yield f"{len(others)} prompts without an answer: the vault does not know", _share(unknown), ""
    yield from _times(vault, answerable[:QUESTIONS])


def _by_command(vault: Vault, questions: list[dict[str, Any]]) -> Iterator[Row]:
    """Ask each question by the command, of a scripted model that searches once, and twice."""
    for talk in (about_retries(vault.root), about_redirects(vault.root)):
        taken(talk)
    kinds = list(dict.fromkeys(each["kind"] for each in questions))
    with ModelServer() as server:
        server.answer = lambda body: "" if server.calls(body) else "It is as the passages say [1]."
        for searches in (1, 2):
            ask = AskTable(model="ollama:reader", max_searches=searches)
            llm = replace(vault.config.llm, calls_a_day=1_000)
            config = replace(vault.config, ollama_host=server.url, llm=llm).with_tables(ask)
            asked = Vault(vault.root, config)
            right = {kind: list[bool]() for kind in kinds}
            for each in questions:
                server.calls = partial(_calls, each, searches)
                right[each["kind"]].append(_is_right(asked, each))
                if not right[each["kind"]][-1]:
                    print(f"  {searches} searches: {each['asked'][-1]}")  # noqa: T201
            for kind, those in right.items():
                yield f"{kind}: right with {searches} searches, of {len(those)}", sum(those), ""
            answerable = [one for kind in kinds if kind != UNANSWERABLE for one in right[kind]]
            yield f"a right passage is sent, {searches} searches", _share(answerable), ""


UNANSWERABLE = "unanswerable"


def _calls(question: dict[str, Any], searches: int, body: dict[str, Any]) -> list[tuple[str, str]]:
    """Return the searches that the model asks for next."""
    after = [each["role"] for each in body["messages"]]
    searched = len(after) - 1 - max(at for at, role in enumerate(after) if role == "user")
    kind = "journal" if question["kind"] == "journal" else "lessons"
    turn = sum(role == "user" for role in after)
    text = " ".join(question["asked"][:turn])
    return [(NAME, json.dumps({"query": text, "kind": kind}))] if searched < 2 * searches else []


def _is_right(vault: Vault, question: dict[str, Any]) -> bool:
    """Whether the words of the answer are in what is sent; of what no note says, all of it is weak."""
    session = ""
    for text in question["asked"]:
        answer = client.ask(vault, api.asking.ask(query=text, session_id=session))
        session = answer.session_id
        assert answer.status != FAILED, answer.trouble
    passages = answer.passages
    if question["kind"] == UNANSWERABLE:
        return all(each.is_weak for each in passages)
    return all(any(words in each.text for each in passages) for words in question["words"])


def _outcome(vault: Vault, prompt: LabelledPrompt, model: Reader) -> tuple[bool, bool]:
    """Whether a labelled lesson is among the passages, and whether one is cited."""
    answer = _asked(vault, prompt, model)
    is_there = bool(prompt.relevant & {each.id for each in answer.passages})
    is_cited = bool(prompt.relevant & {each.id for each in answer.sources})
    return answer.status == ANSWERED and is_there, is_cited


def _deep(vault: Vault) -> list[tuple[str, str]]:
    """Return (line, query) of the second half of long notes: some words of the line, and the title."""
    chosen = []
    for row in vault.open_index().store.rows(("title", "text"), filters.WHOLE):
        text = row["text"]
        lines = [line for line in text[len(text) // 2 :].split("\n") if len(line) > 80]
        if len(text) > 1.2 * MAX_CHARS and lines:
            line = lines[len(lines) // 2]
            words = [word for word in line.split() if len(word) > 4][:8:2]
            chosen.append((line.strip()[:60], f"{row['title']} {' '.join(words)}"))
    return chosen[:: max(1, len(chosen) // QUESTIONS)]


def _is_sent(vault: Vault, line: str, query: str, searches: int) -> bool:
    prompt = LabelledPrompt(query, frozenset(), "")
    answer = _asked(vault, prompt, Reader(searches=searches))
    return any(line in passage.text for passage in answer.passages)


def _cited(outcomes: list[tuple[bool, bool]], name: str) -> Iterator[Row]:
    are_cited = [is_cited for is_there, is_cited in outcomes if is_there]
    yield f"{name}: the search returns a labelled lesson", len(are_cited) / len(outcomes), ""
    yield f"{name}: of these the cited source is one", _share(are_cited), ""


def _asked(vault: Vault, prompt: LabelledPrompt, model: Any) -> Answer:
    search = partial(find, vault)
    return respond.answer(prompt.query, model, search, lambda _: None, max_searches=2)


def _times(vault: Vault, prompts: list[LabelledPrompt]) -> Iterator[Row]:
    parts: dict[str, list[float]] = {
        "search for passages": [],
        "the same with the sentences that answer": [],
        "all but the search and the model": [],
    }
    for prompt in prompts:
        for name, best in (("search for passages", False), (list(parts)[1], True)):
            vault.query_vectors = {}  # each question is embedded, as it would be
            began = time.perf_counter()
            question = api.asking.search(wanted=SearchRequest(prompt.query, best=best))
            values = question.answer(vault)
            parts[name].append(1000 * (time.perf_counter() - began))
        result, reader = find(vault, SearchRequest(prompt.query)), cast(Any, Reader())
        began = time.perf_counter()
        respond.answer(prompt.query, reader, partial(_same, result), lambda _: None)
        parts["all but the search and the model"].append(1000 * (time.perf_counter() - began))
        assert json.dumps(codec.to_json(values))
    for name, times in parts.items():
        yield f"{name}, p50", quantile(times, 0.5), "ms"
        yield f"{name}, p90", quantile(times, 0.9), "ms"
    began = time.perf_counter()
    check(LONG_ANSWER, range(1, 7))
    yield (
        f"citations of an answer of {len(LONG_ANSWER):,} characters",
        1000 * (time.perf_counter() - began),
        "ms",
    )


def _same(result: SearchResult, _: SearchRequest) -> SearchResult:
    return result


def _share(those: list[bool]) -> float:
    return sum(those) / max(1, len(those))


if __name__ == "__main__":
    main()
