"""The user's own, signed-in `claude`, as a program: `claude` or `claude:MODEL`.

It works in the empty folder `~/.lessons/llm/empty/`: no hook fires, except an administrator's, no tool
runs, no CLAUDE.md is read and no transcript is written. One question is one request; a conversation
is part of the prompt. The prompt goes through a pipe, since other users can see arguments. The program
reads its login by itself.

`LESSONS_INTERNAL` in its environment and a marker line in the prompt keep the session out of the journal.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from vault_index import files
from vault_index.config import Config
from vault_index.errors import ModelAwayError, ModelCallError, WriteError
from vault_index.hotpath import spool
from vault_index.llm import backend
from vault_index.llm.anthropic import INPUT_COUNTS
from vault_index.llm.cancel import CallerGone
from vault_index.llm.server import PassingError, passes, tokens_of

# where its installers put it: programs of a desktop have a short PATH
_PLACES = (".local/bin/claude", ".claude/local/claude")
# the last leaves out hooks and CLAUDE.md, and keeps a login that the user's settings name
_LEAN = ("--tools=", "--strict-mcp-config", "--no-session-persistence", "--safe-mode")


def find_program(environ: Mapping[str, str]) -> Path | None:
    """Return the user's claude, None without one.

    Only whole paths of the `PATH` count: the others lead into the folder that someone works in.
    """
    folders = environ.get("PATH", os.defpath).split(os.pathsep)
    path = os.pathsep.join(folder for folder in folders if folder.startswith(os.sep))
    named = shutil.which("claude", path=path) if path else None
    if named:
        return Path(named)
    home = Path(environ.get("HOME") or Path.home())
    return next(
        (home / relative for relative in _PLACES if os.access(home / relative, os.X_OK)), None
    )


DEFAULT_MODEL = "haiku"  # the least of a plan
ROOM_TOKENS, THINKING_TOKENS = 12_000, 4000  # of an answer beside its text; of them to think
GRACE_SECONDS = 2.0  # between asking it to end and killing it
# what a user set for every claude; the rest of CLAUDE* is of a session that this may run in
_KEPT = re.compile(
    r"CLAUDE_CONFIG_DIR|CLAUDE_CODE_(OAUTH_TOKEN|USE_\w+|SKIP_\w+_AUTH|API_KEY\w*|CLIENT_\w+|CERT_\w+"
    r"|DISABLE_\w+|PROXY_\w+|GIT_BASH_PATH)"
)
_OURS = {
    spool.INTERNAL: "1",
    "CLAUDE_CODE_MAX_RETRIES": "0",  # it is tried again here
    "MAX_THINKING_TOKENS": str(THINKING_TOKENS),
    "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
    "DISABLE_AUTOUPDATER": "1",
}
_NO_LOGIN = re.compile(
    r"(?i)not logged in|/login|invalid api key|oauth token|failed to authenticate"
)
_LIMIT = re.compile(
    r"(?i)\blimit (?:is )?reached\b|\bhit your\b.{0,40}\blimit\b|\bcredit balance\b"
)
_TOO_OLD = re.compile(r"unknown option '(--[\w-]+)")
_REFUSAL = re.compile(r"(?i)\busage policy\b|/legal/aup\b|can't help with this")
_CONVERSATION = (
    "A conversation so far, each message below its label. Write the assistant's next message."
)
_LABEL = re.compile(r"(?m)^\[(?=(?:User|Assistant|Result of [^\]\n]*)\])")  # in a text: no label
_NETWORK = re.compile(
    r"(?i)connection|unable to connect|ECONN|ENOTFOUND|EAI_AGAIN|network|timed out"
)


class ClaudeBackend(backend.Backend):
    """A model of the user's own Claude Code."""

    kind = "claude"
    can_call_tools = False

    def __init__(
        self, model: str, config: Config, environ: Mapping[str, str], timeout: float = 0
    ) -> None:
        super().__init__(model, config, environ, timeout)
        self.answer_tokens += ROOM_TOKENS
        self._folder = config.home / "llm"
        self._process: subprocess.Popen[bytes] | None = None
        self._is_ended = False

    def end(self) -> None:
        self._is_ended = True
        if self._process is not None:
            _stop(self._process)

    def ask(
        self, question: backend.ModelQuestion, take: backend.Take | None = None
    ) -> backend.Reply:
        """Return the reply of one start of the program. Raises ModelCallError, and WriteError."""
        self._is_ended = False
        program = find_program(self.environ)
        if program is None:
            raise ModelAwayError(
                f"{self.name}: there is no claude on the PATH",
                "install Claude Code, or choose another model",
            )
        folder = self._folder / "empty"
        files.make_folder(folder)
        if any(folder.iterdir()):
            raise WriteError(f"{folder} is not empty", "remove what is in it")
        environ = {  # without what makes claude a part of another session
            name: value
            for name, value in self.environ.items()
            if not name.startswith("CLAUDE") or _KEPT.fullmatch(name)
        }
        environ |= _OURS | {"CLAUDE_CODE_MAX_OUTPUT_TOKENS": str(self.answer_tokens)}
        command = [
            *(str(program), "-p", *_LEAN, f"--model={self.model}", "--output-format=json"),
            f"--system-prompt={question.system or 'Answer the prompt.'}",
        ]
        prompt = _prompt(question)
        if not prompt.startswith(spool.MARKER):
            prompt = f"{spool.MARKER}\n{prompt}"
        status, printed = self._run(command, prompt, environ, folder)
        reply = self._reply(status, printed)
        if take is not None and reply.text:
            take(reply.text)
        return reply

    def _run(
        self, command: Sequence[str], prompt: str, environ: Mapping[str, str], folder: Path
    ) -> tuple[int, str]:
        """Return the exit status and the output of the program. Raises ModelCallError."""
        try:
            process = subprocess.Popen(
                command,
                cwd=folder,
                env=environ,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                start_new_session=True,  # its group can be ended
            )
        except (OSError, ValueError) as error:
            reason = error.strerror if isinstance(error, OSError) else "an argument is unusable"
            raise ModelAwayError(
                f"{self.name}: claude cannot be started: {reason}", "reinstall Claude Code"
            ) from None
        self._process = process
        try:
            if self._is_ended:
                raise CallerGone
            printed, _ = process.communicate(prompt.encode("utf-8", "replace"), self.timeout)
        except subprocess.TimeoutExpired:
            raise ModelCallError(
                f"{self.name} did not answer in {self.timeout:g} s", "choose a faster model"
            ) from None
        finally:
            _stop(process)
            for pipe in filter(None, (process.stdin, process.stdout)):
                with suppress(OSError):  # the rest of the prompt was not read
                    pipe.close()
        return process.returncode, printed.decode("utf-8", "replace")

    def _reply(self, status: int, printed: str) -> backend.Reply:
        result = _result(printed)
        text = str(result.get("result") or "") if result else printed
        if result and not result.get("is_error") and status == 0:
            return _reply_of(result, text, backend.ENDED)
        if result and (result.get("stop_reason") == "refusal" or _REFUSAL.search(text)):
            return _reply_of(result, "", backend.DECLINED)
        if result and result.get("api_error") == "max_output_tokens":
            return _reply_of(result, "", backend.CUT)
        raise self._failure(status, result.get("api_error_status"), text)

    def _failure(self, status: int, http: Any, printed: str) -> ModelCallError:
        """Return the error for the program's output; its words stay out of it."""
        name = self.name
        if http in (401, 403) or _NO_LOGIN.search(printed):
            return ModelAwayError(
                f"{name}: claude is not logged in", "run `claude` and type /login"
            )
        if old := _TOO_OLD.search(printed):
            return ModelAwayError(f"claude is too old: it lacks {old[1]}", "run `claude update`")
        if _LIMIT.search(printed):
            return ModelAwayError(
                f"{name}: the limit of your plan or account is reached",
                "wait until it is free again, or choose another model",
            )
        if http == 404:
            return ModelAwayError(f"{name}: there is no such model", "choose haiku, sonnet or opus")
        if isinstance(http, int):
            kind = ModelAwayError if http in (429, 503, 529) else ModelCallError
            hint = "wait, or choose another model" if passes(http) else "choose another model"
            why = "the rate is limited" if http == 429 else f"status {http} from its server"
            error = kind(f"{name}: {why}", hint)
            return PassingError(error) if passes(http) else error
        if _NETWORK.search(printed):
            return PassingError(ModelAwayError(f"{name} has no network", "check the network"))
        return ModelCallError(
            f"{name} ended with status {status} and without an answer",
            "run `claude -p hello` to see why",
        )


def _prompt(question: backend.ModelQuestion) -> str:
    """Return the prompt, as the last part of the conversation that it is in."""
    if not question.before and not question.after:
        return question.prompt
    names = backend.names_of(question.turns)
    labels = {backend.USER: "User", backend.ASSISTANT: "Assistant"}
    parts = [_CONVERSATION]
    for turn in question.turns:
        label = labels.get(turn.role) or f"Result of {names.get(turn.call, 'a tool')}"
        text = _LABEL.sub(r"\\[", turn.text)
        parts.append(f"[{label}]\n{text}")
    return "\n\n".join(parts)


def _stop(process: subprocess.Popen[bytes]) -> None:
    if process.poll() is not None:
        return
    for order in (signal.SIGTERM, signal.SIGKILL):
        with suppress(ProcessLookupError, PermissionError):  # nobody of the group is left
            os.killpg(process.pid, order)
        with suppress(subprocess.TimeoutExpired):
            process.wait(GRACE_SECONDS)


def _result(printed: str) -> dict[str, Any]:
    for line in reversed(printed.splitlines()):
        try:
            record = json.loads(line)
        except (ValueError, RecursionError):
            continue
        records = record if isinstance(record, list) else [record]
        for entry in reversed(records):
            if isinstance(entry, dict) and entry.get("type") == "result":
                return entry
    return {}


def _reply_of(result: Mapping[str, Any], text: str, end: str) -> backend.Reply:
    usage, cost = result.get("usage"), result.get("total_cost_usd")
    return backend.Reply(
        text,
        end,
        tokens_of(usage, *INPUT_COUNTS),
        tokens_of(usage, "output_tokens"),
        float(cost) if isinstance(cost, int | float) else None,
    )
