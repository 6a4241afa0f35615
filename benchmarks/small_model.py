"""Count what a real small instruct model gets right and wrong in `learn` and `ask`, and what is caught.

    python -m benchmarks.small_model --model FILE.gguf --eval ../shared/eval --sessions FOLDER

It is served by llama.cpp (`pip install -e '.[test-models]'`); some twenty minutes for a model of half a
billion parameters on two processors. The schema must hold, invented quotes and citations must not pass.
How often the model is right says more of the model than of this product.
"""

from __future__ import annotations

import argparse
import os
import re
import tempfile
from collections import Counter
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from benchmarks import instruments
from benchmarks.instruments import Row
from tests.llm.llama_server import llama_server
from vault_index import api, client, llm
from vault_index.api.learn import lessons_by
from vault_index.ask import respond
from vault_index.ask.passages import find
from vault_index.ask.respond import Answer
from vault_index.config import Config, LlmTable
from vault_index.embed import download
from vault_index.features import LearnTable
from vault_index.journal import capture
from vault_index.learn import grounding, run, stages, timeline
from vault_index.learn.material import SESSION, Material
from vault_index.learn.orders import without_orders
from vault_index.llm.backend import ModelQuestion, Reply, Take
from vault_index.retrieval import evaluate
from vault_index.retrieval.evaluate import LabelledPrompt
from vault_index.transcripts import reading
from vault_index.transcripts.moments import FAILED
from vault_index.vault import Vault

CONTEXT = 6_144  # tokens
BUDGET, MAX_ANSWER = 3_000, 1_500  # tokens that are sent, and of an answer
_NUMBER = re.compile(r"\[(\d{1,3})\]")


def main() -> None:
    """Run the measurement and print its rows."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--model", type=Path, required=True, help="a model in the format GGUF")
    parser.add_argument("--eval", type=Path, default=instruments.EVAL, help="the evaluation set")
    parser.add_argument("--sessions", type=Path, help="a folder with transcripts")
    parser.add_argument("--most", type=int, default=10, help="sessions, and questions of a kind")
    parser.add_argument("--threads", type=int, default=1, help="more are slower on a busy machine")
    options = parser.parse_args()
    instruments.EVAL = options.eval
    with tempfile.TemporaryDirectory(prefix="lessons-model-") as scratch:
        os.environ.setdefault("LESSONS_HOME", f"{scratch}/home")
        os.environ["LESSONS_WATCH_AUTOSTART"] = "false"
        home = Path(os.environ["LESSONS_HOME"])
        download.fetch(home)
        indexed = instruments.eval_vault(Path(scratch) / "eval")
        with llama_server(options.model, CONTEXT, options.threads) as address:
            name = f"openai:{options.model.stem}"
            config = Config(
                home=home,
                llm=LlmTable(openai_url=f"{address}/v1", max_tokens=MAX_ANSWER, calls_a_day=1_000),
            ).with_tables(LearnTable(model=name, tokens=BUDGET))
            vault = Vault(indexed.root, config)
            if options.sessions:
                list(instruments.shown(learned(vault, options.sessions, options.most)))
            queries = options.eval / "queries.jsonl"
            list(instruments.shown(asked(vault, name, queries, options.most)))


def learned(vault: Vault, folder: Path, most: int) -> Iterator[Row]:
    """Learn from the shortest sessions in which something failed, one answer each."""
    materials = sorted(_materials(folder), key=lambda each: sum(map(len, each.texts)))[:most]
    counts, reasons = Counter[str](), Counter[str]()
    for material in materials:
        answer = run.learn_from(vault, _caller(vault), material, force=True)
        print(f"  {material.target[:8]}: {answer.status} {answer.trouble}", flush=True)  # noqa: T201  # progress
        counts[f"ended as {answer.status!r}"] += 1
        counts["calls"] += answer.usage.calls
        counts["entries"] += len(answer.proposals) + len(answer.dropped)
        counts["proposals"] += len(answer.proposals)
        reasons.update(each.reason for each in answer.dropped)
        sent = timeline.plain(stages.shown(material, vault.config, stages.Request()))
        texts = grounding.texts_of([sent])
        for each in answer.proposals:
            (kept,) = client.ask(vault, api.proposal.select(id=each.id))
            invented = [q for q in kept.quotes if not any(q in text for text in texts)]
            counts["proposals with an invented quote"] += bool(invented)
            print(f"  {kept.title!r}: {kept.quotes}")  # noqa: T201  # to be read by a person
    yield "learn: sessions", len(materials), ""
    counts.setdefault("proposals with an invented quote", 0)
    counts.update({f"dropped: {why}": count for why, count in reasons.items()})
    for what, count in counts.items():
        yield f"learn: {what}", count, ""


def _materials(folder: Path) -> Iterator[Material]:
    for file in sorted(folder.rglob("*.jsonl")):
        agent = reading.agent_of(file) if file.parent.name != "subagents" else ""
        moments = capture.read(file, agent).moments if agent == "claude" else ()
        if any(each.kind == FAILED for each in moments):
            seen, _ = without_orders(timeline.of_session(moments))
            yield Material(SESSION, file.stem, moments=seen, session=file.stem)


def _caller(vault: Vault) -> run.LearnCaller:
    lessons = lessons_by(lambda question: client.ask(vault, question))
    return run.LearnCaller(lambda _: None, lambda *_: None, lessons)


def asked(vault: Vault, name: str, file: Path, most: int) -> Iterator[Row]:
    """Ask what a note answers, and what none does."""
    prompts = evaluate.load(file)
    for what, group in (
        ("answerable", [each for each in prompts if each.relevant]),
        ("unanswerable", [each for each in prompts if not each.relevant]),
    ):
        some = [group[number * len(group) // most] for number in range(most)]
        counts = Counter[str]()
        for prompt in some:
            answer, written = _answer(vault, name, prompt.query)
            print(f"  {prompt.query}: {answer.answer[:300]!r}", flush=True)  # noqa: T201  # to be read
            counts.update(_judged(prompt, answer, written))
        for which, count in sorted(counts.items()):
            yield f"ask, {len(some)} {what}: {which}", count, ""


def _answer(vault: Vault, name: str, text: str) -> tuple[Answer, list[str]]:
    """Return the answer, and what the model wrote."""
    written: list[str] = []

    model = llm.open_model(name, vault.config)
    converse = model.converse

    def listening(question: ModelQuestion, take: Take | None = None) -> Reply:
        reply = converse(question, take)
        written.append(reply.text)
        return reply

    model.converse = listening  # type: ignore[method-assign]  # to hear what is struck later

    search = partial(find, vault)
    answer = respond.answer(text, model, search, lambda _: None, max_searches=2)
    return answer, written


def _judged(prompt: LabelledPrompt, answer: Answer, written: list[str]) -> Iterator[str]:
    """Yield what holds of an answer."""
    yield f"ended as {answer.status!r}"
    if answer.search:
        yield "a search was made"
    numbers = {each.number for each in answer.passages}
    if any(int(number) not in numbers for text in written for number in _NUMBER.findall(text)):
        yield "wrote a number that was not found, which is struck"
    sources = {each.number for each in answer.sources}
    if any(int(number) not in sources for number in _NUMBER.findall(answer.answer)):
        yield "WRONG: a number without a source was not struck"
    if answer.sources:
        yield "cites"
    if prompt.relevant & {each.id for each in answer.sources}:
        yield "cites a note that answers"
    elif prompt.relevant & {each.id for each in answer.passages}:
        yield "had a note that answers, and does not cite it"


if __name__ == "__main__":
    main()
