"""Compiled modules of other packages, without the Python around them, and the memory they take.

`import lancedb` takes 1 to 2.5 seconds, and `import ctranslate2` loads asyncio; their compiled modules
load in 10 ms. `load` brings in such a module, and `wait` drives LanceDB's calls without asyncio. A later
import of one of these packages gets all of it, around this module.
"""

from __future__ import annotations

import contextlib
import importlib
import os
import queue
import sys
import threading
from collections.abc import Callable, Generator
from functools import partial
from importlib.machinery import ExtensionFileLoader, PathFinder
from importlib.util import module_from_spec
from types import ModuleType
from typing import Any, Generic, TypeVar

T = TypeVar("T")
# calls that follow each other: yields functions that return futures, and is sent what these come to
Chain = Generator[Callable[[], Any], Any, T]

CALL_SECONDS = 30.0  # a first call takes milliseconds; one that never ends is not understood
_LOCK = threading.RLock()


class NotUnderstood(Exception):
    """A compiled module does not behave as those that this module was written for."""


def load(package: str, name: str) -> ModuleType:
    """Return the compiled module `name` of a package, which is not imported. Raises ImportError."""
    whole = f"{package}.{name}"
    with _LOCK:  # LanceDB's panics when it is initialised twice
        if whole in sys.modules:
            return sys.modules[whole]
        parent = PathFinder.find_spec(package)
        spec = PathFinder.find_spec(whole, parent.submodule_search_locations) if parent else None
        if spec is None or not isinstance(spec.loader, ExtensionFileLoader):
            raise ImportError(f"{package} has no compiled module {name}")
        module = module_from_spec(spec)
        sys.modules[whole] = module
        try:
            spec.loader.exec_module(module)
        except BaseException:
            del sys.modules[whole]
            raise
        return module


def wait(call: Callable[..., Any], *args: Any, seconds: float | None = None, **named: Any) -> Any:
    """Run an asynchronous function of a compiled module; return its result, or raise its error.

    Raises NotUnderstood if the call does not answer in `seconds`, or not with a future of ours.
    """

    def alone() -> Chain[Any]:
        return (yield partial(call, *args, **named))

    return begin(alone(), seconds).result()


def begin(chain: Chain[T], seconds: float | None = None) -> Pending[T]:
    """Begin a chain of calls, which goes on beside other work.

    Without `seconds`, which each call may take, the module's own threads go on from call to call: to
    wake a waiting thread for each takes longer than the calls do.
    """
    return Pending(chain, seconds)


class _Here(threading.local):
    loop: Pending[Any] | None = None


_here = _Here()


class Pending(Generic[T]):
    """A chain of calls that was begun. Several threads may wait for its result.

    To Rust's asyncio bridge (pyo3-async-runtimes) it is as much of an event loop as that asks for.
    """

    def __init__(self, chain: Chain[T], seconds: float | None) -> None:
        self._chain = chain
        self._seconds = seconds
        self._maker = threading.get_ident()
        self._going_on = threading.RLock()
        self._waiting = threading.Lock()
        self._jobs: queue.SimpleQueue[Callable[[], object]] = queue.SimpleQueue()
        self._future: _Future | None = None
        self._ended = False
        self._value: Any = None
        self._error: BaseException | None = None
        with self._going_on:
            self._go_on(partial(chain.send, None))

    # what the bridge asks for

    def create_future(self) -> _Future:
        return _Future()

    def call_soon_threadsafe(self, call: Callable[..., Any], *args: Any, **_context: Any) -> None:
        job = partial(self._complete, partial(call, *args))
        if self._seconds is None and threading.get_ident() != self._maker:
            job()
        else:
            self._jobs.put(job)

    def _complete(self, call: Callable[[], Any]) -> None:
        with self._going_on:
            call()
            future = self._future
            if future is not None and future.done and not self._ended:
                self._go_on(self._outcome(future))

    def _go_on(self, step: Callable[[], Callable[[], Any]]) -> None:
        """Take the chain on to the next call whose future is not done yet, or to its end."""
        while True:
            try:
                call = step()
            except StopIteration as end:
                return self._end(end.value, None)
            except BaseException as error:  # noqa: BLE001  # whoever waits gets it
                return self._end(None, error)
            outer, _here.loop = _here.loop, self
            try:
                future = call()
            except BaseException as error:  # noqa: BLE001  # the same
                step = partial(self._chain.throw, error)
                continue
            finally:
                _here.loop = outer
            if not isinstance(future, _Future):
                problem = NotUnderstood(f"a call returned {type(future).__name__}, no future")
                step = partial(self._chain.throw, problem)
                continue
            self._future = future
            if not future.done:
                return None
            step = self._outcome(future)

    def _outcome(self, future: _Future) -> Callable[[], Callable[[], Any]]:
        if future.error is not None:
            return partial(self._chain.throw, future.error)
        return partial(self._chain.send, future.value)

    def _end(self, value: Any, error: BaseException | None) -> None:
        self._value, self._error, self._ended = value, error, True
        self._jobs.put(lambda: None)

    # what callers ask for

    def result(self) -> T:
        """Return the result of the chain. Raises its errors, and NotUnderstood after `seconds`."""
        with self._waiting:
            try:
                while not self._ended:
                    self._jobs.get(timeout=self._seconds)()
            except queue.Empty:
                self._cancel()
                raise NotUnderstood(f"no answer in {self._seconds} s") from None
            except BaseException:  # Control-C: what runs in Rust ends, too
                self._cancel()
                raise
        if self._error is not None:
            raise self._error
        value: T = self._value
        return value

    def _cancel(self) -> None:
        if self._future is not None:
            self._future.cancel()


class _Future:
    """The future that a call returns at once; its value comes from a thread of the compiled module."""

    def __init__(self) -> None:
        self.done = False
        self.value: Any = None
        self.error: BaseException | None = None
        self._cancelled = False
        self._callbacks: list[Callable[[_Future], object]] = []

    def add_done_callback(self, callback: Callable[[_Future], object]) -> None:
        self._callbacks.append(callback)

    def set_result(self, value: Any) -> None:
        self.value, self.done = value, True

    def set_exception(self, error: BaseException) -> None:
        self.error, self.done = error, True

    def cancelled(self) -> bool:
        return self._cancelled

    def cancel(self) -> None:
        self._cancelled = True
        for callback in self._callbacks:
            callback(self)


class _Asyncio(ModuleType):
    """Stands for asyncio where nobody has imported it; for others than `wait` it is the real module."""

    @staticmethod
    def get_running_loop() -> object:
        return _running_loop(lambda: _asyncio().get_running_loop())

    def __getattr__(self, name: str) -> Any:
        return getattr(_asyncio(), name)


def _asyncio() -> ModuleType:
    """Return the real asyncio, which another thread may import at this very moment."""
    with _LOCK:
        if isinstance(sys.modules.get("asyncio"), _Asyncio):
            del sys.modules["asyncio"]
        return importlib.import_module("asyncio")


def _running_loop(real: Callable[[], object]) -> object:
    """Return the loop that this thread waits in, else the one that asyncio runs here."""
    return _here.loop if _here.loop is not None else real()


def introduce(call: Callable[..., Any], *args: Any) -> Any:
    """Make a compiled module's first asynchronous call, in which it looks for asyncio; as `wait`.

    It keeps what it finds, so that later calls can be driven by `wait`, and by asyncio as well.
    Other threads see an asyncio that works: a server answers with it meanwhile.
    """

    def look(*args: Any) -> Any:
        with _LOCK:
            if "asyncio" not in sys.modules:
                sys.modules["asyncio"] = ours = _Asyncio("asyncio")
                try:
                    return call(*args)
                finally:
                    if sys.modules.get("asyncio") is ours:
                        del sys.modules["asyncio"]
            loaded: Any = importlib.import_module("asyncio")  # whole, if a thread has just begun
            real = loaded.get_running_loop
            loaded.get_running_loop = lambda: _running_loop(real)
            try:
                return call(*args)
            finally:
                loaded.get_running_loop = real

    return wait(look, *args, seconds=CALL_SECONDS)


M_TRIM_THRESHOLD, M_MMAP_THRESHOLD, M_ARENA_MAX = -1, -3, -8  # of glibc's <malloc.h>
KEPT_BLOCKS = 16  # of the largest size that is not mapped: 15 MB more, and embedding takes 7% less
MMAP_BYTES = 256 * 1024  # a larger block gets pages of its own, which go back when it is freed


def limit_memory(threads: int, mapped: int = MMAP_BYTES) -> None:
    """Take few malloc arenas, no Arrow pool, large blocks mmapped: it halves resident memory.

    `threads` is how many search at once: with one arena for all they would wait for each other. Blocks of
    `mapped` bytes and more go back to the system at once, which takes half as long again to embed many
    texts, whose blocks have up to 3 MB. It all holds for what is loaded later, until the process ends.
    """
    os.environ.setdefault("LANCE_CPU_THREADS", str(threads))
    os.environ.setdefault("ARROW_DEFAULT_MEMORY_POOL", "system")
    with contextlib.suppress(AttributeError, OSError):
        _libc().mallopt(M_ARENA_MAX, threads)
        _libc().mallopt(M_MMAP_THRESHOLD, mapped)
        if mapped > MMAP_BYTES:  # as much of what was freed stays, for the next text
            _libc().mallopt(M_TRIM_THRESHOLD, KEPT_BLOCKS * mapped)


def allow_open_files(count: int) -> None:
    """Let this process have so many files open, or as many as the system allows it.

    The usual limit is 1,024, on macOS 256. A child process has the same one.
    """
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = count if hard == resource.RLIM_INFINITY else min(count, hard)
    if resource.RLIM_INFINITY != soft < wanted:
        with contextlib.suppress(ValueError, OSError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def trim_memory() -> None:
    """Return free memory to the system."""
    with contextlib.suppress(AttributeError, OSError):
        _libc().malloc_trim(0)


def _libc() -> Any:
    import ctypes

    return ctypes.CDLL(None)
