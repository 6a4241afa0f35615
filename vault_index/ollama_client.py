"""The client of an Ollama server, and what its failures mean: for embeddings and language models."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

from vault_index.errors import VaultError

if TYPE_CHECKING:
    import httpx
    import ollama

_T = TypeVar("_T")
Raise = Callable[[int, str, str], VaultError]  # (status, message, hint) -> what to raise
# In the place of the status of HTTP:
NOT_REACHED, NO_ADDRESS = 0, -1  # nobody was asked; nobody can be, at such an address
CUT, ODD = -2, -3  # the connection broke; what came is no answer of Ollama's
TOO_LATE = 408
BROKE = 500  # an error in the middle of a stream


class OllamaClient:
    """A server's address and how long to wait for it.

    `host` is what `OLLAMA_HOST` may hold: a name, a port, a URL. Nothing is asked before first use.
    `follow` takes each request before it is sent.
    """

    def __init__(
        self, host: str, timeout: float, follow: Callable[[httpx.Request], None] | None = None
    ) -> None:
        # what servers listen on is not an address to ask; 10.0.0.0 is one
        self.host = re.sub(r"(?<![\w.])0\.0\.0\.0(?![\w.])", "127.0.0.1", host)
        self.timeout = timeout
        self._hooks = {"request": [follow] if follow else []}
        self._client: ollama.Client | None = None

    def call(
        self, ask: Callable[[ollama.Client], _T], model: str, instead: str, error_of: Raise
    ) -> _T:
        """Ask the server; each way in which it can fail becomes an error that says what to do.

        `instead` is what else a user may do when nobody answers. `error_of` makes the error.
        """
        import httpx
        import ollama

        try:
            if self._client is None:
                self._client = ollama.Client(
                    host=self.host, timeout=self.timeout, event_hooks=self._hooks
                )
            return ask(self._client)
        except ollama.ResponseError as error:
            problem = first_line(error.error or f"status {error.status_code}")
            hint = f"run: ollama pull {model}" if error.status_code == 404 else _LOG
            status = error.status_code if error.status_code > 0 else BROKE
            raise error_of(status, f"Ollama at {self.host}: {problem}", hint) from None
        except httpx.TimeoutException as error:
            message = f"Ollama at {self.host} did not answer in {self.timeout:g} s"
            status = NOT_REACHED if isinstance(error, httpx.ConnectTimeout) else TOO_LATE
            raise error_of(status, message, "see whether it is overloaded") from None
        except (ConnectionError, httpx.HTTPError) as error:
            message = f"Ollama at {self.host} cannot be reached: {first_line(error)}"
            hint = f"start it with `ollama serve`, set OLLAMA_HOST, or {instead}"
            if isinstance(error, httpx.UnsupportedProtocol):
                raise error_of(NO_ADDRESS, message, hint) from None
            is_away = isinstance(error, ConnectionError | httpx.ConnectError)
            status = NOT_REACHED if is_away else CUT
            raise error_of(status, message, hint) from None
        except httpx.InvalidURL as error:
            message = f"Ollama cannot be asked at {self.host!r}: {first_line(error)}"
            hint = "set OLLAMA_HOST to a host, a host:port or a URL"
            raise error_of(NO_ADDRESS, message, hint) from None
        except (ValueError, TypeError, AttributeError) as error:  # not what the API promises
            message = f"Ollama at {self.host} answered oddly: {first_line(error)}"
            hint = "check that OLLAMA_HOST is an Ollama server, and a recent one"
            raise error_of(ODD, message, hint) from None


_LOG = "see the log of `ollama serve`"


def first_line(error: Any) -> str:
    """Return the first line of an error's text, its type for one without."""
    return (str(error).splitlines() or [type(error).__name__])[0]
