"""Settings: one frozen `Config`, made by one `load()`; a table of a settings file is a field of it.

Later wins: defaults < the vault's `vault.toml` < the user's `config.toml` < environment < flags.

`vault.toml` comes with a clone and is not trusted: it may set budgets, the floor, the taxonomy and
keywords. Endpoints, models and anything outside the vault come from the user alone. Unknown keys and
wrong values are ignored, and `Config.unknown_keys` lists them.
"""

from __future__ import annotations

import functools
import os
import re
import tomllib
from collections.abc import Iterator, Mapping, Set
from dataclasses import Field, dataclass, field, fields, is_dataclass, replace
from pathlib import Path
from typing import Any, TypeVar, get_type_hints

from vault_index.errors import SettingsError, hint_for
from vault_index.features import FEATURES, Feature
from vault_index.hotpath import index_files
from vault_index.text.setting_kinds import (
    Cosine,
    Folders,
    Positive,
    Temperature,
    Texts,
    Variable,
    Weights,
    kind_of,
)
from vault_index.text.words import nearest

Table = TypeVar("Table")
_MAX_SHOWN_CHARS = 80  # of a value or a key that is wrong
DEFAULT = "default"  # the origin of a setting that nobody set
# a setting is named as a settings file spells it with its table: `learn.model`
_TABLES_OF = {each.table: each for each in FEATURES if each.settings}  # by their table
VAULT_KEYS = frozenset(
    {"prompt_lessons", "prompt_skills", "prompt_tokens", "session_lessons", "token_budget"}
    | {"session_sources", "floor", "taxonomy", "keywords", "watch.autostart"}
    | {"search.weights", "search.hits", "search.min_similarity"}
    | {f"{each.table}.{name}" for each in FEATURES for name in each.shared.split()}
)
_REMOVED = frozenset({"measure", "trusted_keys"})  # a file that has one gets a warning
_ENVIRONMENT = {
    "LESSONS_EMBEDDER": "embedder",
    "LESSONS_OLLAMA_MODEL": "ollama_model",
    "OLLAMA_HOST": "ollama_host",
    "LESSONS_WATCH_AUTOSTART": "watch.autostart",
    **{
        variable: f"{each.table}.{name}"
        for each in FEATURES
        for variable, name in each.variables.items()
    },
}
_CHOICES = {
    "embedder": ("minilm", "minilm+use", "ollama", "none"),
    "trust": ("all", "committed-only"),
}
_ADDRESS = re.compile(r"[a-z+]+://|[\w.-]+@[\w.-]+:")  # of a git repository


@dataclass(frozen=True, slots=True)
class UnknownKey:
    """A key of a settings file that needs an edit, and is ignored until then."""

    file: str
    key: str  # as the file spells it: `learn.tokens`
    reason: str

    @property
    def is_gone(self) -> bool:
        return self.key in _REMOVED

    def __str__(self) -> str:
        return f"{self.file}: ignored: {self.reason}"


@dataclass(frozen=True, slots=True)
class WatchTable:
    """The settings of `[watch]`."""

    autostart: bool = True  # hooks start the watcher


@dataclass(frozen=True, slots=True)
class LlmTable:
    """The settings of `[llm]`."""

    openai_url: str = ""  # of a server for `openai:MODEL`, such as http://127.0.0.1:8080/v1
    calls_a_day: int = 100  # calls of language models in a day; 0: none
    tokens_a_day: int = 500_000  # their tokens in a day, questions and answers
    timeout_seconds: int = 600  # for an answer
    max_tokens: Positive = 4000  # of an answer, at most; claude thinks with 12,000 more
    temperature: Temperature = None  # 0..2; unset: 0; Anthropic and claude choose
    openai_key_variable: Variable = "OPENAI_API_KEY"  # the variable that holds the key
    anthropic_key_variable: Variable = "ANTHROPIC_API_KEY"  # the same for the Messages API


@dataclass(frozen=True, slots=True)
class SearchTable:
    """The settings of `[search]`."""

    weights: Weights = ""  # of rank-weighted search, such as "60/30/5/5"
    hits: int = 0  # of a search; 0: 5, and 10 for an agent
    min_similarity: Cosine = 0.6  # cosine below which rank-weighted search finds nothing


@dataclass(frozen=True, slots=True)
class Config:
    """Every setting, with its default and unit."""

    home: Path  # the user's folder: settings, models, the log of hooks that found no vault
    vault: Path | None = None  # your default vault
    embedder: str = (
        "minilm"  # minilm (built in) | minilm+use (16 languages) | ollama | none (full text only)
    )
    ollama_model: str = "nomic-embed-text"  # the embedding model of Ollama
    ollama_host: str = "127.0.0.1:11434"  # the address of Ollama
    prompt_lessons: int = 3  # lessons per prompt, at most; 0: lines only
    prompt_skills: int = 1  # skills per prompt, at most; 0 switches them off
    prompt_tokens: int = 600  # tokens per prompt, at most; a token is 4 characters
    session_lessons: int = 8  # lessons at the start of a session, at most
    token_budget: int = 2000  # tokens at the start of a session, at most
    session_sources: Texts = ("startup", "clear", "compact")  # which session starts get lessons
    receipt: bool = True  # you see the titles of the lessons that a prompt got
    pointers: bool = True  # a lesson that may help comes as a line; a start says how to search
    floor: float | None = None  # score below which hooks are silent; unset: two, of the embedder
    trust: str = "all"  # all | committed-only: what hooks inject; commands find everything
    trusted_authors: Texts = ()  # names or addresses: hooks inject what they committed last
    watch: WatchTable = WatchTable()
    llm: LlmTable = LlmTable()
    search: SearchTable = SearchTable()
    taxonomy: Texts = ()  # category paths; empty: the default ones
    keywords: Mapping[str, str] = field(default_factory=dict)  # phrase -> category
    tables: Mapping[type, Any] = field(default_factory=dict)  # the settings of features
    unknown_keys: tuple[UnknownKey, ...] = ()  # keys of files that need an edit
    origins: Mapping[str, str] = field(default_factory=dict, compare=False)  # who set what

    def __getitem__(self, table: type[Table]) -> Table:
        """Return a feature's settings, by their class."""
        settings: Table = self.tables.get(table) or table()
        return settings

    @property
    def is_built_in(self) -> bool:
        """Whether the embedder is the built-in one, alone or with the one for other languages."""
        return self.embedder.startswith("minilm")

    def with_tables(self, *tables: object) -> Config:
        return replace(self, tables={**self.tables, **{type(each): each for each in tables}})

    def warnings(self) -> list[str]:
        """Return a line for people for each of some keys that need an edit, and one for the others."""
        lines = [*map(str, self.unknown_keys[:_MAX_WARNINGS])]
        if rest := len(self.unknown_keys) - len(lines):
            lines.append(f"{rest} more settings need an edit: run `lessons status --check`")
        return [f"warning: {line}" for line in lines]


_MAX_WARNINGS = 3  # each command has them


def _settings() -> dict[str, Field[Any]]:
    """Return the field of each setting by its name, in the order of `Config`."""
    named: dict[str, Field[Any]] = {}
    for each in fields(Config):
        if is_dataclass(each.default):
            named |= {f"{each.name}.{inner.name}": inner for inner in fields(each.default)}
        elif each.name not in ("home", "tables", "unknown_keys", "origins"):
            named[each.name] = each
    for table, feature in _TABLES_OF.items():
        named |= {f"{table}.{inner.name}": inner for inner in fields(feature.settings or Feature)}
    return named


SETTINGS = _settings()
_TABLES = frozenset(name.partition(".")[0] for name in SETTINGS if "." in name)


_CORE_TABLES = {
    each.name: type(each.default) for each in fields(Config) if is_dataclass(each.default)
}


def annotation_of(name: str) -> Any:
    """Return the type of a setting, with its kind: see `setting_kinds`."""
    table, _, key = name.rpartition(".")
    owner = _CORE_TABLES.get(table) or (_TABLES_OF[table].settings if table else Config)
    return _annotations(owner or Feature)[key]


@functools.cache
def _annotations(owner: type) -> dict[str, Any]:
    return get_type_hints(owner, include_extras=True)


@dataclass(frozen=True, slots=True)
class Setting:
    """A setting in force: its name as settings files spell it, its value, and who set it."""

    name: str
    value: Any
    origin: str  # DEFAULT | the path of a settings file | a variable | flags


def settings_in_force(config: Config) -> list[Setting]:
    """Return every setting with its origin, in the order of `Config`; the user's folder first."""
    return [
        Setting(name, _value(config, name), config.origins.get(name, DEFAULT))
        for name in ("home", *SETTINGS)
    ]


def _value(config: Config, name: str) -> Any:
    table, _, key = name.rpartition(".")
    return getattr(_table(config, table) if table else config, key)


def _table(config: Config, name: str) -> Any:
    feature = _TABLES_OF.get(name)
    return config[feature.settings] if feature and feature.settings else getattr(config, name)


def home_folder(environ: Mapping[str, str] | None = None) -> Path:
    """Return the user's folder: `$LESSONS_HOME`, else `~/.lessons`."""
    return Path(index_files.home_folder(os.environ if environ is None else environ))


def load(
    vault_toml: Path | None = None,
    environ: Mapping[str, str] | None = None,
    flags: Mapping[str, Any] | None = None,
) -> Config:
    """Read all settings. A file that is not there is as good as an empty one.

    Raises SettingsError, naming file and key, for TOML that does not parse and for wrong values of the
    user and of variables.
    """
    environ = os.environ if environ is None else environ
    named = {"home": "LESSONS_HOME"} if environ.get("LESSONS_HOME") else {}
    config = Config(home=home_folder(environ), origins=named)
    problems: list[UnknownKey] = []
    if vault_toml is not None:
        shown = f"{index_files.FOLDER}/{index_files.SETTINGS}"
        values, problems = _allowed(_read(vault_toml, follow=False), shown)
        config = _with(config, values, str(vault_toml))
    user_file = str(config.home / "config.toml")
    values, unknown = _known(_read(Path(user_file)), user_file, frozenset(SETTINGS))
    problems += [*unknown, *_without_addresses(values, user_file)]
    config = replace(_with(config, values, user_file), unknown_keys=tuple(problems))
    for variable, name in _ENVIRONMENT.items():
        if environ.get(variable):
            config = _with(config, {name: environ[variable]}, variable)
    chosen = {name: value for name, value in (flags or {}).items() if value is not None}
    values, unknown = _known(chosen, "flags", frozenset(SETTINGS))
    if unknown:
        raise SettingsError(f"flags: {unknown[0].reason}", f"use one of {', '.join(SETTINGS)}")
    return _with(config, values, "flags")


def vault_problems(data: bytes) -> list[UnknownKey]:
    """Return the troubles of a `vault.toml` by key; the key is "" where it is no TOML."""
    file = index_files.SETTINGS
    try:
        values = tomllib.loads(data.decode("utf-8"))
    except (ValueError, RecursionError) as error:
        return [UnknownKey(file, "", f"not TOML: {error}")]
    return _allowed(values, file)[1]


def _allowed(values: Mapping[str, Any], file: str) -> tuple[dict[str, Any], list[UnknownKey]]:
    settings, problems = _known(values, file, VAULT_KEYS)
    for name in list(settings):
        try:
            checked(name, settings[name])
        except SettingsError as error:
            reason = "; ".join(filter(None, (error.message, error.hint)))
            problems.append(UnknownKey(file, name, reason))
            del settings[name]
    return settings, problems


def _known(
    values: Mapping[str, Any], file: str, names: Set[str]
) -> tuple[dict[str, Any], list[UnknownKey]]:
    """Return the settings of these names in a file, and its keys that need an edit."""
    underlined = {name.replace(".", "_"): name for name in (*SETTINGS, *_REMOVED)}
    flat: dict[str, Any] = {}
    for key, value in values.items():
        if key in _TABLES and isinstance(value, Mapping):
            flat |= {f"{key}.{inner}": each for inner, each in value.items()}
        else:
            flat[underlined.get(key, key)] = value
    settings, problems = {}, []
    for key, value in sorted(flat.items()):
        if key in names or key in _TABLES:
            settings[key] = value
        elif key in SETTINGS:
            reason = f"a vault may not set {key!r}: it is for each user's own"
            problems.append(UnknownKey(file, key, reason))
        else:
            problems.append(UnknownKey(file, key, unknown_key(key, names)))
    return settings, problems


def _without_addresses(values: dict[str, Any], file: str) -> Iterator[UnknownKey]:
    """Take the addresses of repositories out of lists of folders; yield what to do about them."""
    for key, value in values.items():
        if key in SETTINGS and annotation_of(key) == Folders and isinstance(value, list):
            values[key] = [each for each in value if not _ADDRESS.match(str(each))]
            if values[key] != value:
                reason = f"an address in {key}: clone it yourself, and name the folder"
                yield UnknownKey(file, key, reason)


def unknown_key(key: str, names: Set[str]) -> str:
    """Return the message for a key that is no setting, with the name that is most like it."""
    if key in _REMOVED:
        return f"the setting {key!r} is gone: remove it"
    near = nearest(key, names)
    return f"unknown setting {_brief(key)}" + (f": did you mean {near!r}?" if near else "")


def _brief(value: object) -> str:
    text = repr(value)
    return text if len(text) <= _MAX_SHOWN_CHARS else f"{text[:_MAX_SHOWN_CHARS]}…"


def _read(path: Path, *, follow: bool = True) -> dict[str, Any]:
    """Read a TOML file, which in a clone may be a link, a pipe, or larger than memory."""
    most = index_files.MAX_SETTINGS_BYTES
    try:
        data = index_files.read(path, most + 1, follow=follow)
        if len(data) > most:
            raise SettingsError(f"{path}: larger than {most >> 20} MB", "shorten it")
        return tomllib.loads(data.decode("utf-8-sig"))  # Windows' editors begin it with a mark
    except FileNotFoundError:
        return {}
    except (ValueError, RecursionError) as error:  # not UTF-8 and huge numbers are ValueErrors too
        raise SettingsError(f"{path}: not TOML: {error}", "correct or remove the file") from None
    except OSError as error:
        why, hint = f"{path}: cannot be read: {error.strerror}", "make it a file that you may read"
        raise SettingsError(why, hint_for(error, hint)) from None


def _with(config: Config, values: Mapping[str, Any], where: str) -> Config:
    for name, value in values.items():
        try:
            new = checked(name, value)
        except SettingsError as error:
            raise SettingsError(f"{where}: {error.message}", error.hint) from None
        table, _, key = name.rpartition(".")
        if not table:
            config = replace(config, **{key: new})
            continue
        changed = replace(_table(config, table), **{key: new})
        is_core = table not in _TABLES_OF
        config = replace(config, **{table: changed}) if is_core else config.with_tables(changed)
    return replace(config, origins={**config.origins, **dict.fromkeys(values, where)})


def checked(name: str, value: Any) -> Any:
    """Return a value as `Config` has it. Raises SettingsError, which does not name the file."""
    if name in _TABLES:
        raise SettingsError(f"{name} must be a table: [{name}]")
    if value not in (choices := _CHOICES.get(name, (value,))):
        raise SettingsError(f"no {name} {_brief(value)}", f"choose one of {', '.join(choices)}")
    kind = kind_of(annotation_of(name))
    try:
        return kind.convert(value)
    except (TypeError, ValueError, KeyError, RuntimeError):  # the last: ~nobody has no home
        message = f"{name} must be {kind.words}, not {_brief(value)}"
        raise SettingsError(message, kind.hint) from None
