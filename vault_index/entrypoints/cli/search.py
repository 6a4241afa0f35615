"""The commands that search: search, recall, eval."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from vault_index.entrypoints.cli import asking, completion, output
from vault_index.entrypoints.cli.output import json_option, project_of
from vault_index.recall.block import named, signed
from vault_index.search.hit import Hit, percent_of
from vault_index.search.query import TERMS
from vault_index.text.quote import clean, visible_line

if TYPE_CHECKING:
    from vault_index.search.query import Query


@click.command("search", epilog='Example: lessons search -c devops/ci-cd "heap out of memory"')
@click.argument("query", nargs=-1, required=True)
@click.option("-k", default=5, show_default=True, type=click.IntRange(1, 1000), help="How many.")
@click.option(
    *("-c", "--category", "categories"),
    multiple=True,
    help="Only in or below it; repeatable.",
    shell_complete=completion.categories,
)
@click.option(
    *("--tag", "tags"),
    multiple=True,
    help="Only with this tag; repeatable: any of them.",
    shell_complete=completion.tags,
)
@click.option(
    *("--type", "type_"),
    help="Only of this type: code_pattern, bug_fix, architecture, project_rule.",
    shell_complete=completion.types,
)
@click.option("--since", metavar="DATE", help="Only new or changed since: 2026-03-31, or 30d, 8w.")
@click.option("--until", metavar="DATE", help="Only as old as that, or older.")
@click.option("--min-score", type=float, help="Leave out what scores less.")
@click.option(
    "--explain", is_flag=True, help="Show each term of the scores, and what was left out."
)
@click.option("--in", "within", metavar="NAME", help="Only in this document or category, by name.")
@click.option(
    "--kind",
    "kinds",
    multiple=True,
    type=click.Choice(["lessons", "skills"]),
    help="What to find; repeatable; without: lessons.",
)
@click.option(
    "--neighbours",
    default=0,
    type=click.IntRange(0, 50),
    help="Show that many passages before and after a hit.",
)
@click.option("--at", metavar="REV", help="What the vault knew at a commit, tag or date.")
@json_option
@click.pass_obj
def search_command(
    named: str | None,
    query: tuple[str, ...],
    k: int,
    categories: tuple[str, ...],
    tags: tuple[str, ...],
    type_: str | None,
    since: str | None,
    until: str | None,
    min_score: float | None,
    explain: bool,
    within: str,
    kinds: tuple[str, ...],
    neighbours: int,
    at: str | None,
    as_json: bool,
) -> None:
    """Find the lessons that answer QUERY, best first.

    With --kind skills, find the skills. --in takes a name as you remember it: "intro to ai" finds
    "Introduction to AI".
    """
    from vault_index.search.hit import Hit
    from vault_index.search.query import Query
    from vault_index.store import filters

    only = _only(tags, type_, since, until)
    if (within or only) and kinds and "lessons" not in kinds:
        raise click.UsageError("--in, --tag, --type, --since and --until are for lessons")
    asked = Query(
        " ".join(query), k, categories, within, kinds or ("lessons",), filters.from_json(only),
        min_score, project_of(named) if "skills" in kinds else "", explain, neighbours,
    )  # fmt: skip
    if at is None:
        settled = bool(within or "skills" in kinds)
        answer = asking.ask(named, "search", asked.to_json(), settled=settled)
    else:
        answer = asking.ask_as_of(named, at, "search", asked.to_json())
        asking.note(f"note: as of commit {answer['commit'][:10]}")
    floors = {"lessons": answer["floor"], "skills": answer["skills_floor"]}
    if as_json:
        output.json(_as_json(answer, asked, floors, only))
        return
    _show(answer, kinds)
    if explain:
        dropped = [(Hit.from_json(hit), why) for hit, why in answer["dropped"]]
        _explain(list(map(Hit.from_json, answer["hits"])), dropped, floors)


def _as_json(
    answer: dict[str, Any], asked: Query, floors: dict[str, Any], only: dict[str, Any]
) -> dict[str, Any]:
    shown: dict[str, Any] = {"hits": [_with_floor(hit, floors) for hit in answer["hits"]]}
    shown |= {"floor": answer["floor"], "text_only": answer["text_only"]}
    shown |= {"skills_floor": answer["skills_floor"]} if "skills" in asked.kinds else {}
    shown |= {"in": answer["place"]} if asked.within else {}
    shown |= {"only": only} if only else {}
    if asked.explain:
        shown["dropped"] = [{**hit, "why": why} for hit, why in answer["dropped"]]
    return shown


def _only(
    tags: tuple[str, ...], type: str | None, since: str | None, until: str | None
) -> dict[str, Any]:
    """Return what narrows lessons down, by name, without what was not given."""
    only: dict[str, Any] = {"tags": list(tags), "type": type}
    only["since"] = output.since(since) if since else None
    only["until"] = output.until(until) if until else None
    return {key: value for key, value in only.items() if value}


def _show(answer: dict[str, Any], kinds: tuple[str, ...]) -> None:
    from vault_index.search.hit import Hit

    if answer["text_only"] and answer["embedder"] != "none":
        asking.note(f"note: full text only: {answer['text_only']}")
    if answer["place"]:
        asking.note(f"in {answer['place']}")
    if not answer["hits"]:
        asking.note(f"no {' or '.join(kinds)[:-1] or 'lesson'} matches")
    width = output.screen_width()
    silent_from = _silent_from(answer) if width else None
    for number, values in enumerate(answer["hits"], start=1):
        if number - 1 == silent_from:
            least = f"below the floor ({100 * answer['floor']:.0f}%): hooks inject none of these"
            output.row(output.styled(f"--- {least} ---", dim=True))
        near = values.pop("neighbours", [])
        hit = Hit.from_json(values)
        first, *rest = terminal([hit], number, width=min(100, width or 100)).splitlines()
        output.row(output.styled(first, bold=True))
        for line in rest:
            output.row(line)
        if hit.withheld:
            asking.note(f"warning: {hit.path}: hooks leave it out: {hit.withheld}")
        for position, title, text in near:
            mark = " <- found" if position == hit.position else ""
            output.row(output.styled(f"--- {position}: {title}{mark}", dim=True))
            output.text(text)


def _silent_from(answer: dict[str, Any]) -> int | None:
    """Return the place of the first lesson from which on hooks would inject none; None: no such one."""
    if answer["floor"] is None:
        return None
    above = [hit["score"] >= answer["floor"] for hit in answer["hits"] if hit["kind"] == "lessons"]
    while above and not above[-1]:
        above.pop()
    lessons = sum(hit["kind"] == "lessons" for hit in answer["hits"])
    return len(above) if len(above) < lessons else None


def _with_floor(hit: dict[str, Any], floors: dict[str, float | None]) -> dict[str, Any]:
    least = floors[hit["kind"]]
    return {**hit, "injected": least is not None and hit["score"] >= least}


def _explain(
    hits: list[Hit], dropped: list[tuple[Hit, str]], floors: dict[str, float | None]
) -> None:

    least = floors["lessons"]
    shown = "not fitted yet" if least is None else f"{least:.3f}"
    output.say()
    output.say(f"floor {shown}: a hook injects nothing that scores less")
    if any(hit.kind == "skills" for hit in hits) and floors["skills"] is not None:
        output.say(f"floor of skills {floors['skills']:.3f}")
    for hit in hits:
        least = floors[hit.kind]
        silent = "" if least is not None and hit.score >= least else ", below the floor"
        output.row(f"  {evidence(hit)}{silent}: {hit.lesson_id}")
    for hit, why in dropped[:10]:
        output.row(f"  {evidence(hit)}, dropped, {why}: {hit.lesson_id}")


@click.command("recall", epilog='Example: lessons recall "our build dies with heap out of memory"')
@click.argument("query", nargs=-1, required=True)
@json_option
@click.pass_obj
def recall_command(named: str | None, query: tuple[str, ...], as_json: bool) -> None:
    """Print what an agent would get for the prompt QUERY."""
    values = {"query": " ".join(query), "project": project_of(named)}
    answer = asking.ask(named, "recall", values, settled=True)
    if as_json:
        output.json(
            {key: answer[key] for key in ("text", "hits", "skills", "floor", "silent", "near")}
        )
    elif answer["text"]:
        output.text(answer["text"])
    else:
        asking.note(f"silent: {answer['silent']}{_nearest(answer)}")


def _nearest(answer: dict[str, Any]) -> str:
    """Return the nearest lesson of a silence, with its score and the floor."""
    if not answer["near"] or answer["floor"] is None:
        return ""
    near = Hit.from_json(answer["near"])
    return f" (nearest: {near.title}, {near.percent}%; the floor is {percent_of(answer['floor'])}%)"


MISTAKES_SHOWN = 20  # prompts of `eval`


@click.command("eval", epilog="Example: lessons eval queries.jsonl --lessons lessons.jsonl")
@click.argument("queries", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option(
    "--lessons",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Lessons as JSON lines (id, title, text, category), instead of the vault.",
)
@json_option
@click.pass_obj
def eval_command(named: str | None, queries: Path, lessons: Path | None, as_json: bool) -> None:
    """Measure recall and false injections over labelled prompts.

    QUERIES holds a JSON object a line: query, relevant (a list of lesson ids, empty if silence is
    right), kind. Each figure is explained, and the prompts that went wrong are named.
    """
    values = {"queries": str(queries)}
    if lessons is None:
        figures = asking.ask(named, "eval", values)
    else:
        from vault_index.api import state

        with state.scratch_vault(str(lessons)) as scratch:
            figures = asking.ask(scratch, "eval", values)
    if as_json:
        output.json(figures)
        return
    _print_figures(figures)
    _print_mistakes(figures, queries)


def _print_figures(figures: dict[str, Any]) -> None:
    from vault_index.search.evaluate import EXPLAINED

    for key, meaning in EXPLAINED.items():
        value = figures[key]
        shown = (
            "" if key == "by_kind" else _line(value) if isinstance(value, dict) else _figure(value)
        )
        output.row(f"{key:<14}{shown:<8}", output.styled(f"  {meaning}", dim=True))
    for kind, of_kind in figures["by_kind"].items():
        output.row(f"  {kind or '(no kind)':<12}{_line(of_kind)}")


def _print_mistakes(figures: dict[str, Any], queries: Path) -> None:
    """Name the ids that no lesson has, the prompts that were missed and those injected falsely."""
    for mistake in figures["unknown"]:
        asking.note(
            f"warning: {queries}:{mistake['line']}: no lesson {mistake['id']!r}: counted as missed"
        )
    for key, title in (
        ("missed", "missed: no right lesson among the first 3"),
        ("injected_falsely", "injected although no lesson answers"),
    ):
        mistakes = figures[key]
        if mistakes:
            output.say(output.styled(f"{title} ({len(mistakes)})", bold=True))
        for mistake in mistakes[:MISTAKES_SHOWN]:
            rank = f", right one at {mistake['rank']}" if mistake["rank"] else ""
            first = f"first {mistake['first']}" if mistake["first"] else "nothing found"
            output.row(f"  {mistake['line']}: {mistake['query']!r:.80} ({first}{rank})")
        if len(mistakes) > MISTAKES_SHOWN:
            output.say(f"  and {len(mistakes) - MISTAKES_SHOWN} more: all with --json")


def _line(values: dict[str, Any]) -> str:
    return "  ".join(f"{key} {_figure(value)}" for key, value in values.items())


def _figure(value: Any) -> str:
    return "-" if value is None else f"{value:.3f}" if isinstance(value, float) else str(value)


# Hits as text for a terminal.


def terminal(hits: Sequence[Hit], first: int = 1, *, width: int = 100) -> str:
    """Return ranked hits for people: two or three lines each, numbered from `first`."""
    out = []
    for number, hit in enumerate(hits, start=first):
        text = " ".join(clean(hit.text[: 40 * width]).split())
        filed = ", ".join(hit.filed_under) or hit.type
        about = visible_line(f"[{filed}] {hit.path}{signed(hit.author, hit)}")
        out.append(
            f"{number}. {visible_line(named(hit))} ({hit.percent}%{', taught' * bool(hit.taught)})\n"
            f"   {about}\n"
            f"   {text[: width - 4] + ('…' if len(text) > width - 4 else '')}".rstrip()
        )
    return "\n".join(out)


def evidence(hit: Hit) -> str:
    """Return the terms of a hit's score in one line."""
    parts = f"{hit.score:.3f} = {' + '.join(f'{name} {term:.3f}' for name, term in hit.terms)}"
    if hit.no_reason:
        parts += f", of which {hit.reason:.3f} counts for the floor"
    terms = (f"{term:.3f} {name}" for term, name in zip(hit.weighted, TERMS, strict=False))
    by_weights = f"{sum(hit.weighted):.3f} = {' + '.join(terms)}; " if hit.weighted else ""
    return f"{by_weights}{parts}, confidence {hit.confidence}"
