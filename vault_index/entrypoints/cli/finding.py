"""`lessons search`, `recall`, `index`, `eval`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from vault_index.entrypoints.cli import completion, moments, output, ready, terminal

if TYPE_CHECKING:
    from vault_index.hit import Hit
    from vault_index.vault import Vault

MISTAKES_SHOWN = 20  # prompts of `eval`

_json = click.option("--json", "as_json", is_flag=True, help="Print JSON.")


@click.command(epilog='Example: lessons search -c devops/ci-cd "heap out of memory"')
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
    help="Show so many passages around a hit.",
)
@click.option("--at", metavar="REV", help="What the vault knew at a commit, tag or date.")
@_json
@click.pass_obj
def search(
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
    """Find the lessons that answer QUERY, best first; with --kind skills, the skills.

    --in takes a name as you remember it: "intro to ai" finds "Introduction to AI".
    """
    from vault_index.hit import Hit

    asked: dict[str, Any] = {
        "query": " ".join(query),
        "k": k,
        "categories": categories,
        "min_score": min_score,
        "explain": explain,
        "kinds": kinds or ("lessons",),
        "within": within,
        "neighbours": neighbours,
        "only": _only(tags, type_, since, until),
    }
    if (within or asked["only"]) and kinds and "lessons" not in kinds:
        raise click.UsageError("--in, --tag, --type, --since and --until are for lessons")
    if "skills" in kinds:
        asked["project"] = _project(named)
    settled = bool(within or "skills" in kinds)
    if at is None:
        found = ready.ask(named, "search", settled=settled, **asked)
    else:
        found = _as_it_was(named, at, asked)
    floors = {"lessons": found["floor"], "skills": found["skills_floor"]}
    if as_json:
        answer: dict[str, Any] = {"hits": [_with_floor(hit, floors) for hit in found["hits"]]}
        answer |= {"floor": found["floor"], "text_only": found["text_only"]}
        answer |= {"skills_floor": found["skills_floor"]} if "skills" in kinds else {}
        answer |= {"in": found["place"]} if within else {}
        answer |= {"only": asked["only"]} if asked["only"] else {}
        if explain:
            answer["dropped"] = [{**hit, "why": why} for hit, why in found["dropped"]]
        output.json(answer)
        return
    _show(found, kinds)
    if explain:
        dropped = [(Hit.from_json(hit), why) for hit, why in found["dropped"]]
        _explain(list(map(Hit.from_json, found["hits"])), dropped, floors)


def _only(
    tags: tuple[str, ...], type: str | None, since: str | None, until: str | None
) -> dict[str, Any]:
    """Return what narrows lessons down, by name, without what was not given."""
    only: dict[str, Any] = {"tags": list(tags), "type": type}
    only["since"] = moments.since(since) if since else None
    only["until"] = moments.until(until) if until else None
    return {key: value for key, value in only.items() if value}


def _show(found: dict[str, Any], kinds: tuple[str, ...]) -> None:
    from vault_index import render
    from vault_index.hit import Hit

    if found["text_only"] and found["embedder"] != "none":
        ready.note(f"note: full text only: {found['text_only']}")
    if found["place"]:
        ready.note(f"in {found['place']}")
    if not found["hits"]:
        ready.note(f"no {' or '.join(kinds)[:-1] or 'lesson'} matches")
    width = terminal.width()
    silent_from = _silent_from(found) if width else None
    for number, values in enumerate(found["hits"], start=1):
        if number - 1 == silent_from:
            least = f"below the floor ({100 * found['floor']:.0f}%): hooks inject none of these"
            output.row(output.styled(f"--- {least} ---", dim=True))
        near = values.pop("neighbours", [])
        hit = Hit.from_json(values)
        first, *rest = render.terminal([hit], number, width=min(100, width or 100)).splitlines()
        output.row(output.styled(first, bold=True))
        for line in rest:
            output.row(line)
        if hit.withheld:
            ready.note(f"warning: {hit.path}: hooks leave it out: {hit.withheld}")
        for position, title, text in near:
            mark = " <- found" if position == hit.position else ""
            output.row(output.styled(f"--- {position}: {title}{mark}", dim=True))
            output.text(text)


def _silent_from(found: dict[str, Any]) -> int | None:
    """Return the place of the first lesson from which on hooks would inject none; None: no such one."""
    if found["floor"] is None:
        return None
    above = [hit["score"] >= found["floor"] for hit in found["hits"] if hit["kind"] == "lessons"]
    while above and not above[-1]:
        above.pop()
    lessons = sum(hit["kind"] == "lessons" for hit in found["hits"])
    return len(above) if len(above) < lessons else None


def _as_it_was(named: str | None, revision: str, asked: dict[str, Any]) -> dict[str, Any]:
    """Search the vault of a commit, whose index is built once and kept for a while."""
    from vault_index import history
    from vault_index.entrypoints import requests

    vault = ready.open_vault(named)
    past, commit = history.at(vault, revision)
    ready.bring_up_to_date(past)
    ready.note(f"note: as of commit {commit[:10]}")
    found = requests.search(past, **asked)
    history.signed(vault, commit, [*found["hits"], *(hit for hit, _ in found["dropped"])])
    return found


def _project(named: str | None) -> str:
    """Have the skills of the project around this folder known, and give the folder."""
    from vault_index import skills

    here = Path.cwd()
    skills.register(ready.open_vault(named), here)
    return str(here)


def _with_floor(hit: dict[str, Any], floors: dict[str, float | None]) -> dict[str, Any]:
    least = floors[hit["kind"]]
    return {**hit, "injected": least is not None and hit["score"] >= least}


def _explain(
    hits: list[Hit], dropped: list[tuple[Hit, str]], floors: dict[str, float | None]
) -> None:
    from vault_index import render

    least = floors["lessons"]
    shown = "not fitted yet" if least is None else f"{least:.3f}"
    output.say()
    output.say(f"floor {shown}: a hook injects nothing that scores less")
    if any(hit.kind == "skills" for hit in hits) and floors["skills"] is not None:
        output.say(f"floor of skills {floors['skills']:.3f}")
    for hit in hits:
        least = floors[hit.kind]
        silent = "" if least is not None and hit.score >= least else ", below the floor"
        output.row(f"  {render.evidence(hit)}{silent}: {hit.lesson_id}")
    for hit, why in dropped[:10]:
        output.row(f"  {render.evidence(hit)}, dropped, {why}: {hit.lesson_id}")


@click.command(epilog='Example: lessons recall "our build dies with heap out of memory"')
@click.argument("query", nargs=-1, required=True)
@_json
@click.pass_obj
def recall(named: str | None, query: tuple[str, ...], as_json: bool) -> None:
    """Print what an agent would be given for the prompt QUERY, or nothing."""
    project = _project(named)
    found = ready.ask(named, "recall", settled=True, query=" ".join(query), project=project)
    if as_json:
        answer = {key: found[key] for key in ("text", "hits", "skills", "floor", "silent")}
        output.json(answer)
    elif found["text"]:
        output.text(found["text"])
    else:
        ready.note(f"silent: {found['silent']}")


@click.command(epilog="Example: lessons index --rebuild")
@click.option("--rebuild", is_flag=True, help="Build everything anew beside the index, then swap.")
@click.option("--no-wait", is_flag=True, help="Do nothing if another process is indexing.")
@click.option("--no-fetch", is_flag=True, hidden=True)  # for the watcher, which does it beside this
@click.option("--floor", "only_floor", is_flag=True, hidden=True)  # for the watcher
@_json
@click.pass_obj
def index(
    named: str | None,
    rebuild: bool,
    no_wait: bool,
    no_fetch: bool,
    only_floor: bool,
    as_json: bool,
) -> None:
    """Bring the index up to date with the lesson files."""
    import dataclasses

    vault = ready.open_vault(named)
    if only_floor:
        ready.fit_floor(vault)
        return
    stats = ready.bring_up_to_date(
        vault, rebuild=rebuild, wait=not no_wait, fetch=not no_fetch, read_all=not no_wait
    )
    if as_json:
        output.json(dataclasses.asdict(stats))
        return
    if stats.busy:
        output.say("another process is indexing")
        return
    output.say(f"{stats} in {stats.seconds:.1f} s")
    if stats.rebuilt:
        output.say(f"built anew: {stats.rebuilt}")
    for problem in stats.problems:
        output.say(f"{problem.path}:{problem.line}: {problem.message}")


@click.command("eval", epilog="Example: lessons eval queries.jsonl --lessons lessons.jsonl")
@click.argument("queries", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option(
    "--lessons",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Lessons as JSON lines (id, title, text, category), instead of the vault.",
)
@_json
@click.pass_obj
def eval_(named: str | None, queries: Path, lessons: Path | None, as_json: bool) -> None:
    """Measure recall and false injections over labelled prompts.

    QUERIES holds a JSON object a line: query, relevant (a list of lesson ids, empty if silence is
    right), kind. Each figure is explained, and the prompts that went wrong are named.
    """
    import tempfile

    from vault_index import add, evaluate

    prompts = evaluate.load(queries)
    with tempfile.TemporaryDirectory(prefix="lessons-eval-") as scratch:
        if lessons is None:
            vault = ready.open_vault(named)
        else:
            add.init(Path(scratch))
            vault = ready.open_vault(scratch)
            add.from_json_lines(vault, evaluate.read_lines(lessons))
        figures = _measured(vault, prompts)
    if as_json:
        output.json(figures)
        return
    _print_figures(figures)
    _print_mistakes(figures, queries)


def _print_figures(figures: dict[str, Any]) -> None:
    from vault_index.evaluate import EXPLAINED

    for key, what in EXPLAINED.items():
        value = figures[key]
        shown = (
            "" if key == "by_kind" else _line(value) if isinstance(value, dict) else _figure(value)
        )
        output.row(f"{key:<14}{shown:<8}", output.styled(f"  {what}", dim=True))
    for kind, of_kind in figures["by_kind"].items():
        output.row(f"  {kind or '(no kind)':<12}{_line(of_kind)}")


def _print_mistakes(figures: dict[str, Any], queries: Path) -> None:
    """Name the ids that no lesson has, the prompts that were missed and those injected falsely."""
    for one in figures["unknown"]:
        ready.note(f"warning: {queries}:{one['line']}: no lesson {one['id']!r}: counted as missed")
    for key, what in (
        ("missed", "missed: no right lesson among the first 3"),
        ("injected_falsely", "injected although no lesson answers"),
    ):
        mistakes = figures[key]
        if mistakes:
            output.say(output.styled(f"{what} ({len(mistakes)})", bold=True))
        for one in mistakes[:MISTAKES_SHOWN]:
            rank = f", right one at {one['rank']}" if one["rank"] else ""
            first = f"first {one['first']}" if one["first"] else "nothing found"
            output.row(f"  {one['line']}: {one['query']!r:.80} ({first}{rank})")
        if len(mistakes) > MISTAKES_SHOWN:
            output.say(f"  and {len(mistakes) - MISTAKES_SHOWN} more: all with --json")


def _measured(vault: Vault, prompts: Any) -> dict[str, Any]:
    from vault_index import evaluate

    ready.bring_up_to_date(vault)
    with ready.progress("searching") as show:
        return evaluate.measure(vault, prompts, show)


def _line(values: dict[str, Any]) -> str:
    return "  ".join(f"{key} {_figure(value)}" for key, value in values.items())


def _figure(value: Any) -> str:
    return "-" if value is None else f"{value:.3f}" if isinstance(value, float) else str(value)
