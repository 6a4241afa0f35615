"""The features that the rest can live without, in one list: a table of contents of the product.

The core - vault, index, search, hooks, watcher, doors - walks `FEATURES` and names none of them.
A test drops each in turn and tells a short story with the others.

A feature is a class: it overrides the methods of `Feature` by which it adds to the core, and its settings
are above it. This module is at the bottom, where the core can walk it, and each method loads what it
calls, from anywhere: a hook loads only the features that its event needs.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar

from vault_index.hotpath.agents import Agent, translated
from vault_index.text.setting_kinds import Folders, Positive, Price, Texts, Uri

if TYPE_CHECKING:
    from fastapi import APIRouter

    from vault_index.check.finding import Trouble
    from vault_index.config import Config
    from vault_index.entrypoints.mcp.tools import Toolset
    from vault_index.entrypoints.recording import JournalStatus
    from vault_index.learn.runs import LearnStatus
    from vault_index.learn.skills.build import SkillsStatus
    from vault_index.publish import Published, VectorsStatus
    from vault_index.publish.vectors import SharedVectors
    from vault_index.retrieval.documents import DocumentsStatus
    from vault_index.retrieval.hit import Hit
    from vault_index.share.packages import OtherVaults
    from vault_index.store.sync import Progress
    from vault_index.vault import Vault
    from vault_index.watch.current import SharedEmbedder
    from vault_index.watch.journal import JournalWatch

Status = TypeVar("Status")  # a frozen dataclass, whose fields `lessons status --json` prints


class Commands(NamedTuple):
    """Commands of a feature, in a section of `lessons help`."""

    section: str
    module: str  # of `entrypoints.cli`
    names: str


class NavigationPage(NamedTuple):
    """A page in the navigation."""

    address: str
    name: str


@dataclass(frozen=True, slots=True)
class AskedPrompt:
    """A prompt for which features look for more than lessons."""

    text: str
    folder: Path | None  # that it was typed in
    given: Collection[str]  # ids of what the session has
    text_only: bool  # there is no time to embed it


class Feature:
    """A part of the product. It overrides what it adds to the core; here is what it adds by default."""

    name: str
    code: str = ""  # modules and folders that no other part loads: they can be removed with it
    needs: str = ""  # the features without which it has nothing to do
    table: str = ""  # the table of its settings in a settings file
    settings: type | None = None  # the settings of that table
    shared: str = ""  # those that `vault.toml` may set
    variables: Mapping[str, str] = {}  # variable -> setting
    commands: Sequence[Commands] = ()
    toolset: str = "lessons"  # the set that its MCP tools belong to: `lessons mcp --tools`
    page: NavigationPage | None = None
    private: str = ""  # the beginning of routes that need the token
    agent: Agent | None = None  # that can be wired up

    # an agent

    def at_project(self, vault: Vault, folder: Path) -> None:
        """Note that an agent works in a folder."""

    def at_prompt(self, vault: Vault, prompt: AskedPrompt) -> Sequence[Hit]:
        """Return the hits that a prompt gets beside lessons, the best first."""
        return ()

    def at_start(self, config: Config, folder: Path, session: str) -> str:
        """Return the text for the start of a session; "" for none."""
        return ""

    def nudge(self, vault: Vault, folder: Path, session: str) -> str:
        """Return a line for the person at the start of a session; "" for none. Raises WriteError."""
        return ""

    # a vault

    def at_init(self, folder: Path) -> None:
        """Inform the user about a vault that was made, or was there."""

    def at_full_pass(self, vault: Vault) -> bool:
        """Do work that can wait until the watcher is quiet; return whether there is more to do."""
        return False

    def watch(self, embedder: SharedEmbedder, say: Callable[[str], None]) -> JournalWatch | None:
        """Return a part of the watcher, which looks around and answers questions of its own."""
        return None

    def vectors(self, vault: Vault, index: Path) -> SharedVectors | None:
        """Return the vectors that others made for an index. Raises EmbedderError."""
        return None

    def publish(
        self,
        vault: Vault,
        index: Callable[[], Any],
        progress_of: Callable[[str], Progress],
        engine: str,
    ) -> Published | None:
        """Bring the index up to date by `index`, publish it, and return the counts of published rows."""
        return None

    # doors

    def troubles(self, vault: Vault) -> Iterable[Trouble]:
        """Look for what is wrong, for `lessons status --check`."""
        return ()

    def tools(self) -> Toolset | None:
        """Return a set of MCP tools."""
        return None

    def routes(self) -> Sequence[APIRouter]:
        """Return routes of HTTP and of pages."""
        return ()


class FeatureWithStatus(Feature, Generic[Status]):
    """A feature with a part of `lessons status`."""

    def status(self, vault: Vault) -> Status:
        """Look at the feature's state. Raises VaultError."""
        raise NotImplementedError

    def status_lines(self, status: Status) -> Iterable[str]:
        """Yield it for people, a line each."""
        raise NotImplementedError


@dataclass(frozen=True, slots=True)
class JournalTable:
    """The settings of `[journal]`."""

    retention_days: int = 0  # days that sessions are kept; 0: for ever
    window_days: int = 90  # days that a search looks back; 0: all
    session_start: bool = True  # a session's start gets what was done here last
    exclude: Texts = ()  # globs of paths that the journal does not name


class JournalFeature(FeatureWithStatus["JournalStatus"]):
    """Sessions are recorded on this machine and can be searched."""

    name = "journal"
    code = (
        "journal.archive journal.backlog journal.capture journal.recap "
        "journal.forget journal.importing journal.index journal.observe journal.record "
        "retrieval.journal client.journal entrypoints.recording "
        "entrypoints.cli.journal entrypoints.wording.journal"
    )
    table = "journal"
    settings = JournalTable
    commands = (Commands("Sessions", "journal", "journal"),)
    toolset = "journal"
    page = NavigationPage("/activity/sessions", "Sessions")
    private = "/api/journal"

    def at_start(self, config: Config, folder: Path, session: str) -> str:
        from vault_index.journal import recap

        return recap.section(config, folder, session)

    def watch(self, embedder: SharedEmbedder, say: Callable[[str], None]) -> JournalWatch:
        from vault_index.watch import journal

        return journal.JournalWatch(embedder, say)

    def status(self, vault: Vault) -> JournalStatus:
        from vault_index.entrypoints import recording

        return recording.state(vault)

    def status_lines(self, status: JournalStatus) -> Iterator[str]:
        from vault_index.entrypoints.wording import journal

        return journal.status_lines(status)

    def troubles(self, vault: Vault) -> Iterator[Trouble]:
        from vault_index.entrypoints import recording

        return recording.journal(vault)

    def tools(self) -> Toolset:
        from vault_index.entrypoints.mcp import journal

        return journal.TOOLS

    def routes(self) -> Sequence[APIRouter]:
        from vault_index.entrypoints.web import journal

        return journal.routes, journal.page_routes


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


class LearnFeature(FeatureWithStatus["LearnStatus"]):
    """Sessions, commits and files become proposals, which a person reviews."""

    name = "learn"
    code = (
        "learn.agent_entries learn.at_end learn.by_agent learn.by_rule learn.cost learn.diff "
        "learn.grounding learn.gate learn.gather learn.material learn.refuted learn.runs learn.nudge "
        "learn.orders learn.run learn.significance learn.stages learn.tend learn.timeline proposals "
        "api.tending entrypoints.cli.proposals entrypoints.wording.proposals"
    )
    needs = "journal"
    table = "learn"
    settings = LearnTable
    shared = "significance min_files min_lines exclude"
    commands = (
        Commands("Sessions", "proposals", "learn review tend"),
        Commands("For agents and programs", "proposals", "propose"),
    )

    def nudge(self, vault: Vault, folder: Path, session: str) -> str:
        from vault_index.learn import nudge

        return nudge.line(vault, folder, session)

    def status(self, vault: Vault) -> LearnStatus:
        from vault_index.learn import runs

        return runs.in_status(vault)

    def status_lines(self, status: LearnStatus) -> Iterator[str]:
        from vault_index.entrypoints.wording import proposals

        return proposals.status_lines(status)

    def tools(self) -> Toolset:
        from vault_index.entrypoints.mcp import learning

        return learning.TOOLS

    def routes(self) -> Sequence[APIRouter]:
        from vault_index.entrypoints.web import review

        return (review.routes,)


@dataclass(frozen=True, slots=True)
class SkillsTable:
    """The settings of `[skills]`."""

    least_lessons: int = 5  # lessons of a tag from which a skill is built
    least_confidence: float = 4.0  # their mean, 1..5
    least_uses: int = 10  # how often agents were given them


class SkillsFeature(FeatureWithStatus["SkillsStatus"]):
    """Skills of the project are suggested at prompts, and built from lessons of a tag."""

    name = "skills"
    code = "learn.skills.build entrypoints.cli.skills"
    table = "skills"
    settings = SkillsTable
    shared = "least_lessons least_confidence least_uses"
    commands = (Commands("For agents and programs", "skills", "skills"),)

    def at_project(self, vault: Vault, folder: Path) -> None:
        from vault_index.index import skills

        skills.register(vault, folder)

    def at_prompt(self, vault: Vault, prompt: AskedPrompt) -> list[Hit]:
        from vault_index.recall import select

        return select.skills(vault, prompt.text, prompt.folder, prompt.given, prompt.text_only)

    def status(self, vault: Vault) -> SkillsStatus:
        from vault_index.learn.skills import build

        return build.state(vault)

    def status_lines(self, status: SkillsStatus) -> Iterator[str]:
        from vault_index.entrypoints.wording import hits

        return hits.skills_line(status)

    def troubles(self, vault: Vault) -> Iterator[Trouble]:
        from vault_index.learn.skills import build

        return build.troubles(vault)


@dataclass(frozen=True, slots=True)
class AskTable:
    """The settings of `[ask]`."""

    model: str = ""  # the model that answers; "" for passages alone
    max_searches: int = 2  # searches for a question, at most
    history: int = 2  # exchanges of a conversation that a model is sent again
    record: bool = False  # keep conversations, as long as sessions


class AskFeature(Feature):
    """A question gets an answer from lessons and journal, with its sources."""

    name = "ask"
    code = "ask api.asking entrypoints.cli.ask entrypoints.web.ask"
    table = "ask"
    settings = AskTable
    commands = (Commands("Lessons", "ask", "ask"),)
    page = NavigationPage("/ask", "Ask")

    def routes(self) -> Sequence[APIRouter]:
        from vault_index.entrypoints.web import ask

        return ask.routes, ask.page_routes


@dataclass(frozen=True, slots=True)
class IndexTable:
    """The settings of `[index]`."""

    shared: Uri = ""  # the address of a team's vectors: s3://..., a folder


class PublishFeature(FeatureWithStatus["VectorsStatus"]):
    """Vectors and rows are shared in an object store; a cluster embeds them."""

    name = "publish"
    code = "publish"
    table = "index"
    settings = IndexTable
    variables = {"LESSONS_INDEX_SHARED": "shared"}

    def at_full_pass(self, vault: Vault) -> bool:
        from vault_index import publish

        return publish.compare_some(vault)

    def vectors(self, vault: Vault, index: Path) -> SharedVectors:
        from vault_index import publish

        return publish.taking(vault, index)

    def publish(
        self,
        vault: Vault,
        index: Callable[[], Any],
        progress_of: Callable[[str], Progress],
        engine: str,
    ) -> Published:
        from vault_index import publish

        return publish.publish(vault, index, progress_of, engine)

    def status(self, vault: Vault) -> VectorsStatus:
        from vault_index import publish

        return publish.state(vault)

    def status_lines(self, status: VectorsStatus) -> Iterator[str]:
        from vault_index.entrypoints.wording import hits

        return hits.vectors_line(status)

    def troubles(self, vault: Vault) -> Iterator[Trouble]:
        from vault_index import publish

        return publish.troubles(vault)


class DocumentsFeature(FeatureWithStatus["DocumentsStatus"]):
    """Sections of a file make a document, a course among them, that can be read whole."""

    name = "documents"
    code = "api.document"

    def status(self, vault: Vault) -> DocumentsStatus:
        from vault_index.retrieval import documents

        return documents.state(vault)

    def status_lines(self, status: DocumentsStatus) -> Iterator[str]:
        from vault_index.entrypoints.wording import hits

        return hits.documents_line(status)


@dataclass(frozen=True, slots=True)
class VaultsTable:
    """The settings of `[vaults]`."""

    above: Folders = ()  # folders of vaults that prompts search as well, nearest first


class AboveFeature(FeatureWithStatus["OtherVaults"]):
    """Prompts are answered from other vaults of the user as well."""

    name = "above"
    table = "vaults"
    settings = VaultsTable
    commands = (Commands("This machine", "sharing", "vaults"),)

    def at_init(self, folder: Path) -> None:
        from vault_index.entrypoints.cli import sharing

        sharing.offer_others(folder)

    def at_full_pass(self, vault: Vault) -> bool:
        from vault_index.watch import current

        current.take_in_above(vault)
        return False

    def status(self, vault: Vault) -> OtherVaults:
        from vault_index.share import packages

        return packages.state(vault)

    def status_lines(self, status: OtherVaults) -> Iterator[str]:
        from vault_index.entrypoints.wording.status import other_vaults

        return other_vaults(status)


class PagesFeature(Feature):
    """HTTP and pages on this machine, in a process of their own."""

    name = "pages"
    code = "entrypoints.web"
    commands = (
        Commands("Vault", "servers", "open"),
        Commands("For agents and programs", "servers", "serve"),
    )


class AgentFeature(Feature):
    """The hooks in an agent beside Claude Code: see `hotpath.agents`."""

    def __init__(self, agent: Agent) -> None:
        self.name = agent.name
        self.code = agent.installer.partition(":")[0]
        self.agent = agent


FEATURES: tuple[Feature, ...] = (
    JournalFeature(),
    LearnFeature(),
    SkillsFeature(),
    AskFeature(),
    PublishFeature(),
    DocumentsFeature(),
    AboveFeature(),
    PagesFeature(),
    *(AgentFeature(agent) for agent in translated() if agent.hooks),
)


def agents() -> list[Agent]:
    """Return the agents beside Claude Code that can be wired up."""
    return [feature.agent for feature in FEATURES if feature.agent]


def with_status() -> list[FeatureWithStatus[Any]]:
    """Return the features with a part of `lessons status`, in the order of the list."""
    return [feature for feature in FEATURES if isinstance(feature, FeatureWithStatus)]
