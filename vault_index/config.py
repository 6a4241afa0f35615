"""Settings: one frozen `Config`, made by one `load()`.

Later wins: defaults < the vault's `vault.toml` < the user's `config.toml` < environment < flags.

A vault comes from a repository someone cloned, so `vault.toml` is not trusted: it may set budgets,
the floor, the taxonomy and keywords. Endpoints, models and anything outside the vault come from the
user alone. Other keys and wrong values in `vault.toml`, and unknown keys of the user, stop nothing:
they are ignored, and `Config.ignored` lists them.
"""

from __future__ import annotations

import os
import stat
import tomllib
from collections.abc import Mapping, Set
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

from vault_index.errors import SettingsError
from vault_index.hotpath import index_files

MAX_BYTES = 1024 * 1024  # of a settings file
EMBEDDERS = ("minilm", "ollama", "none")
TRUST = ("all", "committed-only")
VAULT_KEYS = frozenset(
    {"prompt_lessons", "prompt_skills", "prompt_tokens", "session_lessons", "token_budget"}
    | {"session_sources", "floor", "taxonomy", "keywords", "watch_autostart"}
    | {"learn_significance", "learn_ignored", "search_weights", "search_min_similarity"}
    | {"skills_least_lessons", "skills_least_confidence", "skills_least_uses"}
)
_ENVIRONMENT = {
    "LESSONS_EMBEDDER": "embedder",
    "LESSONS_OLLAMA_MODEL": "ollama_model",
    "OLLAMA_HOST": "ollama_host",
    "LESSONS_WATCH_AUTOSTART": "watch_autostart",
}
_BOOLEANS = {"true": True, "1": True, "false": False, "0": False}


@dataclass(frozen=True, slots=True)
class Ignored:
    """A setting of a file that is not in force. `key` is as the file spells it: `learn.most`."""

    file: str
    key: str
    reason: str

    def __str__(self) -> str:
        return f"{self.file}: ignored: {self.reason}"


@dataclass(frozen=True, slots=True)
class Config:
    """Every setting, with its default and unit."""

    home: Path  # the user's folder: settings, models, the log of hooks that found no vault
    vault: Path | None = None  # the vault used when none is found by walking up
    embedder: str = "minilm"  # minilm (built in) | ollama | none (full text only)
    ollama_model: str = "nomic-embed-text"
    ollama_host: str = "127.0.0.1:11434"
    prompt_lessons: int = 3  # lessons per prompt, at most
    prompt_skills: int = 1  # skills per prompt, at most; 0 switches them off
    prompt_tokens: int = 600  # tokens per prompt, at most; a token is 4 characters
    session_lessons: int = 8  # lessons at the start of a session, at most
    token_budget: int = 2000  # tokens at the start of a session, at most
    session_sources: tuple[str, ...] = ("startup", "compact")  # which session starts get lessons
    receipt: bool = True  # a prompt that got lessons shows the person their titles in a line
    floor: float | None = None  # score below which hooks are silent; None: fitted to the vault
    trust: str = "all"  # all | committed-only: what hooks inject; commands find everything
    trusted_authors: tuple[
        str, ...
    ] = ()  # names or addresses: hooks inject what they committed last
    trusted_keys: tuple[str, ...] = ()  # fingerprints: hooks inject what was signed with them
    watch_autostart: bool = True  # hooks start the watcher when there is none; [watch] autostart
    journal_retention_days: int = 365  # days to keep a session after its end or import; 0: all
    journal_window_days: int = 90  # days that a search of the journal looks back; 0: all
    journal_session_start: bool = True  # a session's start gets what was done here last
    journal_left_out: tuple[str, ...] = ()  # globs of paths that the journal does not name
    llm_openai_url: str = ""  # of a server for `openai:MODEL`, such as http://127.0.0.1:8080/v1
    llm_calls_a_day: int = 100  # calls of language models in a day, of all commands; 0: none
    llm_tokens_a_day: int = 500_000  # their tokens in a day, questions and answers together
    ask_model: str = ""  # the model that answers questions, "ollama:MODEL"; "" for passages alone
    ask_max_searches: int = 1  # searches that a model may make for a question, at most
    ask_history: int = 2  # exchanges of a conversation that a model is sent again
    ask_record: bool = False  # keep conversations in private files, for as long as sessions
    learn_model: str = ""  # the model that analyses sessions, "ollama:MODEL"; "" for rules alone
    learn_auto: bool = False  # learn from a session when it ends
    learn_stages: int = 0  # calls for an analysis: 4 | 1; 0: as suits the model
    learn_significance: int = 5  # points from which a session is worth an analysis
    learn_most: int = 3  # proposals from a session, at most 20
    learn_tokens: int = 12_000  # tokens that a model is sent of a session, in all stages together
    learn_ignored: tuple[str, ...] = ()  # globs of paths that nothing is learned from
    learn_expire_days: int = 30  # days that a proposal waits for its review; 0: for ever
    search_weights: str = ""  # of rank-weighted search, such as "60/30/5/5"; "": evidence is summed
    search_min_similarity: float = 0.6  # cosine below which rank-weighted search finds nothing
    skills_least_lessons: int = 5  # lessons of a tag from which a skill is built
    skills_least_confidence: float = 4.0  # their mean, 1..5
    skills_least_uses: int = 10  # how often they were given to an agent, together
    taxonomy: tuple[str, ...] = ()  # category paths this vault uses; empty: the default ones
    keywords: Mapping[str, str] = field(default_factory=dict)  # phrase -> category
    ignored: tuple[Ignored, ...] = ()  # settings that are in a file and not in force
    origins: Mapping[str, str] = field(default_factory=dict, compare=False)  # who set what

    def warnings(self) -> list[str]:
        """Return a line for people for each setting that is ignored."""
        return [f"warning: {each}" for each in self.ignored]


TABLES = (
    "watch",
    "journal",
    "llm",
    "ask",
    "learn",
    "search",
    "skills",
)  # of a settings file: `[watch] autostart` is `watch_autostart`
DEFAULT = "default"  # the origin of a setting that nobody set
_GONE = frozenset(
    {"journal_refine", "journal_refine_a_day", "journal_prompt"}
)  # were settings once
_NOT_SETTINGS = frozenset({"home", "ignored", "origins"})
_SETTINGS = frozenset(each.name for each in fields(Config)) - _NOT_SETTINGS
_MAX_SHOWN_CHARS = 80  # of a value or a key that is wrong


@dataclass(frozen=True, slots=True)
class Setting:
    """A setting in force: its name as settings files spell it, its value, and who set it."""

    name: str
    value: Any
    origin: str  # DEFAULT | the path of a settings file | a variable | flags


def settings_in_force(config: Config) -> list[Setting]:
    """Return every setting with its origin, in the order of `Config`; the user's folder first."""
    names = [f.name for f in fields(config) if f.name not in ("ignored", "origins")]
    return [
        Setting(spelled(name), getattr(config, name), config.origins.get(name, DEFAULT))
        for name in names
    ]


def spelled(key: str) -> str:
    """Return the name of a field of `Config` as settings files spell it: `watch.autostart`."""
    for table in TABLES:
        if key.startswith(f"{table}_"):
            return f"{table}.{key.removeprefix(f'{table}_')}"
    return key


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
    ignored: list[Ignored] = []
    if vault_toml is not None:
        values, problems = _allowed(_read(vault_toml, follow=False))
        config = _with(config, values, str(vault_toml))
        shown = f"{index_files.FOLDER}/{index_files.SETTINGS}"
        ignored += [Ignored(shown, key, reason) for key, reason in problems]
    user_file = config.home / "config.toml"
    values, problems = _without_tables(_read(user_file))
    if problems:
        raise SettingsError(f"{user_file}: {problems[0][1]}")
    unknown = sorted(set(values) - _SETTINGS)
    ignored += [Ignored(str(user_file), spelled(key), _unknown(key, _SETTINGS)) for key in unknown]
    known = {key: value for key, value in values.items() if key in _SETTINGS}
    config = replace(_with(config, known, str(user_file)), ignored=tuple(ignored))
    for variable, key in _ENVIRONMENT.items():
        if environ.get(variable):
            config = _with(config, {key: environ[variable]}, variable)
    return _with(config, {k: v for k, v in (flags or {}).items() if v is not None}, "flags")


def vault_problems(data: bytes) -> list[tuple[str, str]]:
    """Return what is wrong with the text of a `vault.toml` as (key, message), the key "" for no TOML.

    Keys of a table are named with it: `watch.autostart`.
    """
    try:
        values = tomllib.loads(data.decode("utf-8"))
    except (ValueError, RecursionError) as error:
        return [("", f"not TOML: {error}")]
    return _allowed(values)[1]


def _allowed(values: Mapping[str, Any]) -> tuple[dict[str, Any], list[tuple[str, str]]]:
    """Return the settings that a vault may set and has right, and what is wrong as (key, message)."""
    flat, problems = _without_tables(values)
    allowed = {}
    for key, value in flat.items():
        shown = spelled(key)
        if key in VAULT_KEYS:
            try:
                _checked(key, value)
                allowed[key] = value
            except SettingsError as error:
                problems.append((shown, "; ".join(filter(None, (error.message, error.hint)))))
        elif key in _SETTINGS:
            problems.append((shown, f"a vault may not set {shown!r}: it is for each user's own"))
        else:
            problems.append((shown, _unknown(key, VAULT_KEYS)))
    return allowed, problems


def _unknown(key: str, names: Set[str]) -> str:
    """Return what to say of a key that is no setting, with the name that is most like it."""
    from difflib import get_close_matches

    if key in _GONE:
        return f"the setting {spelled(key)!r} is gone: remove it"
    near = get_close_matches(key[:_MAX_SHOWN_CHARS], names, 1)
    hint = f": did you mean {spelled(near[0])!r}?" if near else ""
    return f"unknown setting {_brief(spelled(key))}{hint}"


def _brief(value: object) -> str:
    """Return a value as Python writes it, cut where it is long."""
    shown = repr(value)
    return shown if len(shown) <= _MAX_SHOWN_CHARS else f"{shown[:_MAX_SHOWN_CHARS]}…"


def _read(path: Path, *, follow: bool = True) -> dict[str, Any]:
    """Read a TOML file; one of a clone may be a link out of it, a pipe, or larger than memory."""
    flags = os.O_RDONLY | os.O_NONBLOCK | (0 if follow else os.O_NOFOLLOW)
    try:
        with open(path, "rb", opener=lambda name, _flags: os.open(name, flags)) as file:
            data = file.read(MAX_BYTES + 1) if _is_file(file.fileno()) else b""
        if len(data) > MAX_BYTES:
            raise SettingsError(f"{path}: larger than {MAX_BYTES >> 20} MB", "shorten it")
        return tomllib.loads(data.decode("utf-8"))
    except FileNotFoundError:
        return {}
    except (ValueError, RecursionError) as error:  # not UTF-8 and huge numbers are ValueErrors too
        raise SettingsError(f"{path}: not TOML: {error}", "correct or remove the file") from None
    except OSError as error:
        raise SettingsError(f"{path}: cannot be read: {error.strerror}") from None


def _without_tables(values: Mapping[str, Any]) -> tuple[dict[str, Any], list[tuple[str, str]]]:
    """Return settings with those of a table named after it, `watch_autostart`, and what is no table."""
    flat = dict(values)
    problems = []
    for table in TABLES:
        inner = flat.pop(table, {})
        if isinstance(inner, dict):
            flat |= {f"{table}_{key}": value for key, value in inner.items()}
        else:
            problems.append((table, f"{table} must be a table: [{table}]"))
    return flat, problems


def _is_file(descriptor: int) -> bool:
    return stat.S_ISREG(os.fstat(descriptor).st_mode)


def _with(config: Config, values: Mapping[str, Any], where: str) -> Config:
    """Return a copy with values checked against the types of the fields."""
    unknown = sorted(set(values) - _SETTINGS)
    if unknown:
        raise SettingsError(
            f"{where}: unknown setting {unknown[0]!r}",
            f"use one of {', '.join(sorted(_SETTINGS))}",
        )
    origins = {**config.origins, **dict.fromkeys(values, where)}
    try:
        checked = {key: _checked(key, value) for key, value in values.items()}
    except SettingsError as error:
        raise SettingsError(f"{where}: {error.message}", error.hint) from None
    return replace(config, **checked, origins=origins)


def _checked_search(key: str, value: Any) -> None:
    """Raise SettingsError for weights, or a cosine, that no search could use."""
    if key == "search_weights":
        parts = value.split("/") if isinstance(value, str) else []
        numbers = [int(part) for part in parts if part.isdecimal() and len(part) < 6]
        if value != "" and not (len(parts) == len(numbers) == 4 and any(numbers)):
            raise SettingsError(
                f"{spelled(key)} must be four whole numbers, not {_brief(value)}",
                'write it like "60/30/5/5": vector, full text, confidence, use; "" for none',
            )
    elif key == "search_min_similarity" and isinstance(value, (int, float)) and value > 1:
        raise SettingsError(f"{spelled(key)} must be a cosine, 0 to 1, not {_brief(value)}")


def _checked(key: str, value: Any) -> Any:
    """Return a value as `Config` has it. Raises SettingsError, which does not name the file."""
    _checked_search(key, value)
    name, shown = spelled(key), _brief(value)
    default = Config.__dataclass_fields__[key].default
    if key == "vault":
        if isinstance(value, (str, Path)):
            return Path(value).expanduser()
        raise SettingsError(f"vault must be a path, not {shown}")
    if key == "floor":
        if isinstance(value, (int, float)) and not isinstance(value, bool) and abs(value) < 1e9:
            return float(value)
        raise SettingsError(f"floor must be a number, not {shown}")
    if key == "keywords":
        if isinstance(value, Mapping) and all(isinstance(v, str) for v in value.values()):
            return dict(value)
        raise SettingsError('keywords must be a table of phrase = "category"')
    if isinstance(default, tuple):
        if isinstance(value, list) and all(isinstance(v, str) for v in value):
            return tuple(value)
        raise SettingsError(f"{name} must be a list of strings, not {shown}")
    if isinstance(default, bool):
        boolean = _BOOLEANS.get(str(value).lower())
        if boolean is None:
            raise SettingsError(f"{name} must be true or false, not {shown}")
        return boolean
    if isinstance(default, float):
        if isinstance(value, (int, float)) and not isinstance(value, bool) and 0 <= value < 1e9:
            return float(value)
        raise SettingsError(f"{name} must be a number, 0 or more, not {shown}")
    if isinstance(default, int):
        try:
            number = int(value) if not isinstance(value, (bool, float)) else -1
        except (TypeError, ValueError):
            number = -1
        if not 0 <= number < 1e9:
            raise SettingsError(f"{name} must be a whole number, 0 or more, not {shown}")
        return number
    if key == "embedder" and value not in EMBEDDERS:
        raise SettingsError(f"no embedder {shown}", f"choose one of {', '.join(EMBEDDERS)}")
    if key == "trust" and value not in TRUST:
        raise SettingsError(f"no trust {shown}", f"choose one of {', '.join(TRUST)}")
    if not isinstance(value, str):
        raise SettingsError(f"{name} must be a string, not {shown}")
    return value
