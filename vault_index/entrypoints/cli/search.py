"""The commands that search: search, recall, eval."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from vault_index import api
from vault_index.api import codec
from vault_index.entrypoints.cli import context, options, output
from vault_index.errors import NoVaultError
from vault_index.store import times

if TYPE_CHECKING:
    from vault_index.errors import VaultError
    from vault_index.retrieval.hit import Hit, HitList, Query


@options.command("search", 'lessons search -c devops/ci-cd "heap out of memory"', paged=True)
@click.argument("query", nargs=-1, required=True)
@options.number("-n -k k", None, 1, 1000, "How many; 5, or as the settings say.")
@options.categories("Only in or below it; repeatable.")
@options.tags("Only with this tag; repeatable: any of them.")
@options.lesson_type("Only of this type: ")
@options.since_changed
@options.date("--until", times.until, "Only as old as that, or older.")
@options.percent("--min-score", "Leave out what scores less: 35, or 35%.")
@options.flag("--explain", "Show each term of the scores, and what was left out.")
@click.option("--in", "within", metavar="NAME", help="Only in this document or category, by name.")
@options.lesson_number
@options.related_to
@options.choice(
    "--kind kinds",
    "lessons skills",
    "What to find; repeatable; without: lessons.",
    multiple=True,
)
@options.flag("--all everything", "Also in the sessions of the journal.")
@options.published
def search_command(
    query: tuple[str, ...],
    everything: bool,
    **options: Any,
) -> options.Answers:
    """Find the lessons that answer QUERY, best first.

    With --kind skills, find the skills. --in takes a name as you remember it: "intro to ai" finds
    "Introduction to AI", and with --lesson 3 only that lesson of it. With --all, sessions of every
    project and time follow the lessons.
    """
    from vault_index.entrypoints.wording import hits

    wanted, only = _query(" ".join(query), **options)
    settled = bool(wanted.within or "skills" in wanted.kinds)
    is_counted = output.is_for_agent() and not hasattr(context.place(), "uri")
    find = api.learn.find if is_counted else api.search.find
    try:
        answer = context.ask(find(query=wanted), settled=settled)
    except NoVaultError as error:
        if not everything or context.place() or os.environ.get("LESSONS_VAULT"):
            raise
        yield from _sessions_alone(wanted, error)
        return
    if not (answer.hits or "skills" in wanted.kinds):  # which have categories of their own
        context.refuse_unknown(wanted.categories, wanted.filters.tags, wanted.filters.type)
    if everything:
        found = context.ask(api.journal.search(text=wanted.text, k=wanted.k, since=""))
    sessions = {"sessions": [hit.as_json() for hit in found.hits]} if everything else {}
    yield _as_json(answer, wanted, only) | sessions
    if everything:
        output.row(output.styled(hits.HEADINGS["lessons"], bold=True))
    _show(answer, wanted, options["kinds"])
    if everything:
        output.say()
        from vault_index.entrypoints.cli import journal

        output.row(output.styled(hits.HEADINGS["sessions"], bold=True))
        journal.print_hits(found)
    if wanted.explain:
        _explain(answer)


def _sessions_alone(wanted: Query, error: VaultError) -> options.Answers:
    """Search the sessions where there is no vault: the journal needs none."""
    from vault_index.entrypoints.cli import journal

    context.note(f"note: sessions alone: {error.message}")
    found = context.ask(api.journal.search(text=wanted.text, k=wanted.k, since=""))
    yield {"hits": [], "sessions": [hit.as_json() for hit in found.hits]}
    journal.print_hits(found)


def _query(text: str, *, kinds: tuple[str, ...], **options: Any) -> tuple[Query, dict[str, Any]]:
    """Return the search that options ask for, and the options that narrow it to some lessons."""
    from vault_index.retrieval.hit import Query
    from vault_index.store.filters import Filter

    narrowing = ("tags", "type", "since", "until")
    only = {name: value for name in narrowing if (value := options.pop(name))}
    only |= {"tags": list(only["tags"])} if "tags" in only else {}
    of_lessons = options["within"] or options["related_to"] or only
    if of_lessons and kinds and "lessons" not in kinds:
        named_options = "--in, --related-to, --tag, --type, --since and --until"
        raise click.UsageError(f"{named_options} are for lessons")
    options |= {"k": options["k"] or 0, "filters": codec.from_json(Filter, only)}
    project = context.project() if "skills" in kinds else ""
    return Query(text, kinds=kinds or ("lessons",), project=project, **options), only


def _as_json(answer: HitList, wanted: Query, only: dict[str, Any]) -> dict[str, Any]:
    listed = [hit.as_json() | {"injected": _is_injected(hit, answer)} for hit in answer.hits]
    values: dict[str, Any] = {"hits": listed, "floor": answer.floor, "text_only": answer.text_only}
    values |= {"skills_floor": answer.skills_floor} if "skills" in wanted.kinds else {}
    values |= {"in": answer.place} if wanted.within else {}
    values |= {"only": only} if only else {}
    values |= {"without_quotes": answer.unquoted} if answer.unquoted else {}
    if wanted.explain:
        values["dropped"] = [{**hit.as_json(), "why": why} for hit, why in answer.dropped]
    return values


def _show(answer: HitList, wanted: Query, kinds: tuple[str, ...]) -> None:
    from vault_index.entrypoints.wording import for_agents, hits

    if answer.text_only and answer.embedder != "none":
        context.note_once(f"note: full text only: {answer.text_only}")
    if answer.place:
        context.note(f"in {answer.place}")
    if answer.unquoted:
        context.note(hits.without_quotes(answer.unquoted))
    if output.is_for_agent() and not wanted.explain:
        output.text(for_agents.found(answer, wanted.text))
        return
    if not answer.hits:
        context.note(_nothing(kinds))
    width = output.screen_width()
    are_above = [hit.is_above(answer.floor) for hit in answer.hits if hit.kind == "lessons"]
    silent_from = hits.silent_from(are_above)
    for number, hit in enumerate(answer.hits, start=1):
        if width and number - 1 == silent_from < len(are_above):
            line = "--- below the floor: hooks inject none of these ---"
            output.row(output.styled(line, dim=True))
        first, *rest = hits.lines(hit, number, min(100, width or 100))
        output.row(output.styled(first, bold=True))
        for line in rest:
            output.row(line)
        if hit.withheld:
            context.note(f"warning: {hit.path}: hooks leave it out: {hit.withheld}")
    if width and hits.is_out_of_order(answer.hits):
        output.row(output.styled(hits.OUT_OF_ORDER, dim=True))


def _nothing(kinds: tuple[str, ...]) -> str:
    """Return the reason for no hit: nothing matches, or there is no lesson yet."""
    is_local = not hasattr(context.place(), "uri")
    if is_local and "skills" not in kinds and not any(context.vault().lessons_dir.rglob("*.md")):
        return 'the vault has no lesson yet; write the first: lessons add "what you learned"'
    return f"no {' or '.join(kinds)[:-1] or 'lesson'} matches"


def _is_injected(hit: Hit, answer: HitList) -> bool:
    floor = answer.floor if hit.kind == "lessons" else answer.skills_floor
    return floor is not None and hit.reason >= floor


def _explain(answer: HitList) -> None:
    from vault_index.entrypoints.wording import hits
    from vault_index.retrieval.hit import parts_of

    least = "not measured yet" if answer.floor is None else parts_of(answer.floor)
    output.say()
    whole = answer.whole_floor
    from_there = "" if whole is None else f", whole lessons from {parts_of(whole)} on"
    output.say(f"floor {least}: a hook injects nothing below{from_there}")
    if any(hit.kind == "skills" for hit in answer.hits) and answer.skills_floor is not None:
        output.say(f"floor of skills {parts_of(answer.skills_floor)}")
    for hit in answer.hits:
        silent = "" if _is_injected(hit, answer) else ", below the floor"
        output.row(f"  {hits.evidence(hit)}{silent}: {hit.lesson_id}")
    for hit, why in answer.dropped[:10]:
        output.row(f"  {hits.evidence(hit)}, dropped, {why}: {hit.lesson_id}")


@options.command("recall", 'lessons recall "our build dies with heap out of memory"', paged=True)
@click.argument("query", nargs=-1)
@options.flag("--error is_error", "For a failed command QUERY: its output is on stdin.")
def recall_command(query: tuple[str, ...], is_error: bool) -> options.Answers:
    """Print what an agent would get for the prompt QUERY.

    With --error, what it would get when a command failed: make 2>&1 | lessons recall --error make
    """
    from vault_index.entrypoints.wording import hits

    text = " ".join(query)
    if is_error:
        printed = sys.stdin.buffer.read().decode("utf-8", "replace")
        answer = context.ask(api.search.recall_failure(output=printed, command=text))
    elif text:
        question = api.search.recall(query=text, project=context.project())
        answer = context.ask(question, settled=True)
    else:
        raise click.UsageError("Missing argument 'QUERY...'.")
    yield {
        "text": answer.text,
        "hits": [hit.as_json() for hit in answer.hits],
        "skills": [hit.as_json() for hit in answer.skills],
        "floor": answer.floor,
        "silent": answer.silent,
        "near": answer.near and answer.near.as_json(),
        "left_out": answer.left_out,
    }
    if answer.text:
        output.text(answer.text)
    else:
        near, floor, beside = answer.near, answer.floor, ""
        if near and floor is not None:
            beside = hits.nearest(
                answer.silent, near.title, near.reason, floor, by_words=near.by_words
            )
            beside = f" {beside}"
        context.note(f"silent: {answer.silent}{beside}")


MAX_MISTAKES = 20  # prompts of `eval`


@options.command("eval", "lessons eval queries.jsonl --lessons lessons.jsonl")
@click.argument("queries", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@options.file(
    "--lessons", "Lessons as JSON lines (id, title, text, category), instead of the vault."
)
@options.flag("--errors is_error", "QUERIES are failed commands.")
@options.percent("--leave-out", "Take out so many lessons: their prompts should get nothing then.")
@click.option("--seed", type=int, default=0, help="Choose others to take out.")
def eval_command(
    queries: Path,
    lessons: Path | None,
    is_error: bool,
    leave_out: float | None,
    seed: int,
) -> options.Answers:
    """Measure recall and false injections over labelled prompts.

    QUERIES holds a JSON object a line: query, relevant (a list of lesson ids, empty if silence is
    right), kind. Each figure is explained, and the prompts that went wrong are named. With --errors
    an object has command and error, which is what was printed, in place of query.
    """
    question = api.state.measure(queries=str(queries), errors=is_error, left_out=bool(leave_out))
    if lessons is None and not leave_out:
        figures = context.ask(question)
    else:
        from vault_index.api.state import scratch_vault  # `api.state` makes questions

        with scratch_vault(
            str(lessons or ""), context.place() or "", leave_out or 0.0, seed
        ) as scratch:
            figures = context.ask(question, of=scratch)
    yield figures
    _print_figures(figures)
    _print_mistakes(figures, queries)


def _print_figures(figures: dict[str, Any]) -> None:
    from vault_index.retrieval.evaluate import EXPLAINED

    for key, meaning in EXPLAINED.items():
        figure = "" if key == "by_kind" else _figure(figures[key])
        output.row(f"{key:<14}{figure:<8}", output.styled(f"  {meaning}", dim=True))
    for kind, of_kind in figures["by_kind"].items():
        output.row(f"  {kind or '(no kind)':<12}{_figure(of_kind)}")


def _print_mistakes(figures: dict[str, Any], queries: Path) -> None:
    """Name the ids that no lesson has, the prompts that were missed and those injected falsely."""
    for mistake in figures["unknown"]:
        context.note(
            f"warning: {queries}:{mistake['line']}: no lesson {mistake['id']!r}: counted as missed"
        )
    for key, title in (
        ("missed", "missed: no right lesson among the first 3"),
        ("injected_falsely", "injected although no lesson answers"),
    ):
        mistakes = figures[key]
        if mistakes:
            output.say(output.styled(f"{title} ({len(mistakes)})", bold=True))
        for mistake in mistakes[:MAX_MISTAKES]:
            rank = f", right one at {mistake['rank']}" if mistake["rank"] else ""
            first = f"first {mistake['first']}" if mistake["first"] else "nothing found"
            output.row(f"  {mistake['line']}: {mistake['query']!r:.80} ({first}{rank})")
        if len(mistakes) > MAX_MISTAKES:
            output.say(f"  and {len(mistakes) - MAX_MISTAKES} more: all with --json")


def _figure(value: Any) -> str:
    if isinstance(value, dict):
        return "  ".join(f"{key} {_figure(each)}" for key, each in value.items())
    return "-" if value is None else f"{value:.1%}" if isinstance(value, float) else str(value)
