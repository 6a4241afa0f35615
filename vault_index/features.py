"""The features that the rest can live without, in one list: a table of contents of the product.

The core - vault, index, search, hooks, watcher, doors - walks `FEATURES` and names none of them.
A test drops each in turn and tells a short story with the others.

An addition is named `module:name` below this package, as an entry point is, and loads when
it is called: a hook loads only the features that its event needs. Its settings are here.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any

from vault_index.hotpath.agents import Agent, translated

# Kinds of values of settings: `config` converts a value by the name of its kind.
Cosine = float
Weights = str
Variable = str
Positive = int
Temperature = float | None
Price = float | None
Uri = str
Texts = tuple[str, ...]
Folders = Texts


@dataclass(frozen=True, slots=True)
class JournalTable:
    """The settings of `[journal]`."""

    retention_days: int = 0  # days that sessions are kept; 0: for ever
    window_days: int = 90  # days that a search looks back; 0: all
    session_start: bool = True  # a session's start gets what was done here last
    exclude: Texts = ()  # globs of paths that the journal does not name


@dataclass(frozen=True, slots=True)
class LearnTable:
    """The settings of `[learn]`."""

    model: str = ""  # the model that learns, such as "claude"; "" for none
    auto: bool = False  # learn from a session when it ends
    stages: int = 1  # calls for an analysis; 4 for a model that needs small steps
    significance: int = 5  # points from which a session without failure is worth it
    min_files: Positive = 5  # changed files that give a session points
    min_lines: Positive = 150  # changed lines that give it points
    max_entries: int = 0  # proposals from a session, at most 20; 0: 3 to 6 by its length
    nudge: bool = True  # a session's start says what the last one taught
    tokens: int = 12_000  # tokens that a model is sent of a session
    input_price: Price = None  # dollars for a million tokens that learn.model is sent
    output_price: Price = None  # the same for those that it writes; unset: no cost is shown
    exclude: Texts = ()  # globs of paths that nothing is learned from


@dataclass(frozen=True, slots=True)
class SkillsTable:
    """The settings of `[skills]`."""

    least_lessons: int = 5  # lessons of a tag from which a skill is built
    least_confidence: float = 4.0  # their mean, 1..5
    least_uses: int = 10  # how often agents were given them


@dataclass(frozen=True, slots=True)
class AskTable:
    """The settings of `[ask]`."""

    model: str = ""  # the model that answers; "" for passages alone
    max_searches: int = 2  # searches for a question, at most
    history: int = 2  # exchanges of a conversation that a model is sent again
    record: bool = False  # keep conversations, as long as sessions


@dataclass(frozen=True, slots=True)
class IndexTable:
    """The settings of `[index]`."""

    shared: Uri = ""  # the address of a team's vectors: s3://..., a folder


@dataclass(frozen=True, slots=True)
class VaultsTable:
    """The settings of `[vaults]`."""

    above: Folders = ()  # folders of vaults that prompts search as well, nearest first


@dataclass(frozen=True, slots=True)
class Feature:
    """A part of the product, with what it adds to the core; each field is empty where it adds nothing."""

    name: str
    what: str  # a sentence for the table of contents
    code: str  # modules and folders that no other part loads
    needs: str = ""  # the features without which it has nothing to do
    table: str = ""  # the table of its settings in a settings file
    settings: type | None = None  # the settings of that table
    shared: str = ""  # those that `vault.toml` may set
    variables: Mapping[str, str] = field(default_factory=dict)  # variable -> setting
    at_project: str = ""  # (vault, folder): an agent works in a folder
    at_prompt: str = ""  # (vault, prompt, folder, ids that were given, text_only) -> hits
    at_start: str = ""  # (config, folder, session) -> what the start of a session gets to read
    nudge: str = ""  # (vault, folder, session) -> a line for the person at a session's start, or ""
    at_init: str = ""  # (folder): a vault was made there, or was there
    watch: str = ""  # (embedder, say) -> a part of the watcher: start, look, questions, answer
    at_full_pass: str = ""  # (vault) -> whether it has more to do: the watcher is quiet
    agent: Agent | None = None  # that can be wired up
    state: str = ""  # (vault) -> its part of the state, a dataclass, for `lessons status`
    lines: str = ""  # (that part) -> lines of `lessons status`
    vectors: str = ""  # (vault, index folder) -> vectors that others made
    publish: str = ""  # (vault, index, progress, engine) -> what was published
    checks: str = ""  # (vault) -> troubles, for `lessons status --check`
    commands: tuple[tuple[str, str, str], ...] = ()  # section of the help, module, names
    tools: str = ""  # a set of MCP tools
    toolset: str = "lessons"  # the set that they belong to: `lessons mcp --tools`
    routes: tuple[str, ...] = ()  # of HTTP and of pages
    page: tuple[str, ...] = ()  # its address and name in the navigation
    private: str = ""  # the beginning of routes that need the token


def _hooks_in(agent: Agent) -> Feature:
    code = agent.installer.partition(":")[0]
    return Feature(agent.name, f"Hooks in {agent.title}.", code, agent=agent)


FEATURES = (
    Feature(
        "journal",
        "Sessions are recorded on this machine and can be searched.",
        "journal.archive journal.backlog journal.capture journal.recap "
        "journal.forget journal.importing journal.index journal.observe journal.record "
        "search.journal client.journal entrypoints.recording "
        "entrypoints.cli.journal entrypoints.wording.journal",
        table="journal",
        settings=JournalTable,
        at_start="journal.recap:section",
        watch="watch.journal:JournalWatch",
        state="entrypoints.recording:state",
        lines="entrypoints.wording.journal:status_lines",
        checks="entrypoints.recording:journal",
        commands=(("Sessions", "journal", "journal"),),
        tools="entrypoints.mcp.journal:TOOLS",
        toolset="journal",
        routes=("entrypoints.web.journal:routes", "entrypoints.web.journal:page_routes"),
        page=("/activity/sessions", "Sessions"),
        private="/api/journal",
    ),
    Feature(
        "learn",
        "Sessions, commits and files become proposals, which a person reviews.",
        "learn.at_end learn.by_agent learn.by_rule learn.cost learn.diff learn.grounding "
        "learn.gate learn.gather learn.material learn.runs learn.nudge learn.run "
        "learn.significance learn.stages learn.tend learn.timeline proposals api.tending "
        "entrypoints.cli.proposals entrypoints.wording.proposals",
        needs="journal",
        table="learn",
        settings=LearnTable,
        shared="significance min_files min_lines exclude",
        nudge="learn.nudge:line",
        state="learn.runs:in_status",
        lines="entrypoints.wording.proposals:status_lines",
        commands=(
            ("Sessions", "proposals", "learn review tend"),
            ("For agents and programs", "proposals", "propose"),
        ),
        tools="entrypoints.mcp.learning:TOOLS",
        routes=("entrypoints.web.review:routes",),
    ),
    Feature(
        "skills",
        "Skills of the project are suggested at prompts, and built from lessons of a tag.",
        "learn.skills.build entrypoints.cli.skills",
        table="skills",
        settings=SkillsTable,
        shared="least_lessons least_confidence least_uses",
        at_project="index.skills:register",
        at_prompt="recall.select:skills",
        state="learn.skills.build:state",
        lines="entrypoints.wording.hits:skills_line",
        checks="learn.skills.build:troubles",
        commands=(("For agents and programs", "skills", "skills"),),
    ),
    Feature(
        "ask",
        "A question gets an answer from lessons and journal, with its sources.",
        "ask api.asking entrypoints.cli.ask entrypoints.web.ask",
        table="ask",
        settings=AskTable,
        commands=(("Lessons", "ask", "ask"),),
        routes=("entrypoints.web.ask:routes", "entrypoints.web.ask:page_routes"),
        page=("/ask", "Ask"),
    ),
    Feature(
        "publish",
        "Vectors and rows are shared in an object store; a cluster embeds them.",
        "publish",
        table="index",
        settings=IndexTable,
        variables={"LESSONS_INDEX_SHARED": "shared"},
        at_full_pass="publish:compare_some",
        state="publish:state",
        lines="entrypoints.wording.hits:vectors_line",
        vectors="publish:taking",
        publish="publish:publish",
        checks="publish:troubles",
    ),
    Feature(
        "documents",
        "Sections of a file make a document, a course among them, that can be read whole.",
        "api.document",
        state="search.documents:state",
        lines="entrypoints.wording.hits:documents_line",
    ),
    Feature(
        "above",
        "Prompts are answered from other vaults of the user as well.",
        "",
        table="vaults",
        settings=VaultsTable,
        at_init="entrypoints.cli.sharing:offer_others",
        state="share.packages:state",
        lines="entrypoints.wording.status:other_vaults",
        at_full_pass="watch.current:take_in_above",
        commands=(("This machine", "sharing", "vaults"),),
    ),
    Feature(
        "pages",
        "HTTP and pages on this machine, in a process of their own.",
        "entrypoints.web",
        commands=(("Vault", "servers", "open"), ("For agents and programs", "servers", "serve")),
    ),
    *(_hooks_in(each) for each in translated() if each.hooks),
)


def adding(what: str) -> Iterator[Any]:
    """Yield what each feature adds of a kind, loaded now, in the order of the list."""
    for feature in FEATURES:
        yield from loaded(getattr(feature, what))


def loaded(named: str | tuple[str, ...]) -> Iterator[Any]:
    """Yield what one or several `module:name` are; nothing for ""."""
    for each in filter(None, (named,) if isinstance(named, str) else named):
        module, _, name = each.partition(":")
        yield getattr(import_module(f"vault_index.{module}"), name)


def agents() -> Iterator[Agent]:
    """Yield the agents beside Claude Code that can be wired up."""
    for feature in FEATURES:
        if feature.agent:
            yield feature.agent
