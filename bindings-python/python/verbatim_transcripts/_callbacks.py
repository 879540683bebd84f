"""Calls methods of Python suppliers, stores, mailers and chat models.

Plain methods run on a pool of daemon threads. Awaitables run in an event loop on another daemon thread. A running
callback therefore does not delay the exit of the interpreter.
"""

from __future__ import annotations

import _thread
import asyncio
import os
import sys
import threading
from _queue import SimpleQueue
from collections.abc import Callable
from concurrent.futures import Future
from contextvars import ContextVar
from typing import Any

from ._native import _mark_loop_thread

#: Arguments of the running callback. A fetch reads them to reject a supplier that requests its own transcript.
current_arguments: ContextVar[tuple[Any, ...]] = ContextVar("current_arguments", default=())


def _original(name: str) -> Any:
    """A function of `_thread`, also if gevent has replaced it: its greenlets do not run while native code waits."""
    monkey = sys.modules.get("gevent.monkey")
    return monkey.get_original("_thread", name) if monkey else getattr(_thread, name)


_lock = _original("allocate_lock")()
# The class of `_queue`, because gevent replaces that of `queue`.
_jobs: SimpleQueue[Callable[[], None]] = SimpleQueue()
_idle = 0
_loop: asyncio.AbstractEventLoop | None = None


def _reset() -> None:
    """Resets the state in a forked child, which has neither the threads nor the holder of the lock."""
    global _lock, _jobs, _idle, _loop
    _lock = _original("allocate_lock")()
    _jobs = SimpleQueue()
    _idle = 0
    _loop = None


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_reset)


def _start_thread(target: Callable[[Any], None], argument: Any, name: str) -> None:
    """Starts a daemon thread of the system."""
    if "gevent.monkey" in sys.modules:
        _original("start_new_thread")(target, (argument,))
    else:
        threading.Thread(target=target, args=(argument,), name=name, daemon=True).start()


def _work(jobs: SimpleQueue[Callable[[], None]]) -> None:
    global _idle
    while True:
        jobs.get()()
        with _lock:
            _idle += 1


def _run(job: Callable[[], None]) -> None:
    """Runs a job on an idle thread or on a new one, so that blocking jobs do not delay others."""
    global _idle
    with _lock:
        is_new = _idle == 0
        if not is_new:
            _idle -= 1
    _jobs.put(job)
    if is_new:
        _start_thread(_work, _jobs, "verbatim-calls")


def _running_loop() -> asyncio.AbstractEventLoop:
    global _loop
    with _lock:
        if _loop is None:
            _loop = asyncio.new_event_loop()
            _start_thread(_run_loop, _loop, "verbatim-loop")
        return _loop


def _run_loop(loop: asyncio.AbstractEventLoop) -> None:
    _mark_loop_thread()
    loop.run_forever()


async def _await(awaitable: Any) -> tuple[Any, BaseException | None]:
    try:
        return await awaitable, None
    except (KeyboardInterrupt, SystemExit) as error:
        # A task that raises these stops the loop, which other calls share.
        return None, error


def _component_error(error: BaseException) -> BaseException:
    """The exception of a method, as its caller receives it."""
    if not isinstance(error, asyncio.CancelledError):
        return error
    # What the method awaited was cancelled, not its callers: they may not end as if they were.
    failure = RuntimeError("the method was cancelled")
    failure.__cause__ = error
    return failure


class Call:
    """A running call of a method."""

    __slots__ = ("_future", "_is_cancelled", "_on_done")

    def __init__(self, on_done: Callable[[Any, BaseException | None], None]) -> None:
        self._on_done = on_done
        self._future: Future[Any] | None = None
        self._is_cancelled = False

    def run(self, method: Callable[..., Any], arguments: tuple[Any, ...]) -> None:
        token = current_arguments.set(arguments)
        try:
            value = method(*arguments)
            if hasattr(value, "__await__"):
                # The task inherits the context of this thread, including `current_arguments`.
                self._future = asyncio.run_coroutine_threadsafe(_await(value), _running_loop())
        except BaseException as error:  # the caller receives every exception
            self._on_done(None, _component_error(error))
            return
        finally:
            current_arguments.reset(token)
        if self._future is None:
            self._on_done(value, None)
            return
        self._future.add_done_callback(self._finish)
        if self._is_cancelled:
            self._future.cancel()

    def _finish(self, future: Future[Any]) -> None:
        if future.cancelled():
            self._on_done(None, _component_error(asyncio.CancelledError()))
            return
        error = future.exception()
        self._on_done(*((None, error) if error else future.result()))

    def cancel(self) -> None:
        """Cancels an awaitable; a plain method continues."""
        self._is_cancelled = True
        if self._future is not None:
            self._future.cancel()


def start(
    method: Callable[..., Any], arguments: tuple[Any, ...], on_done: Callable[[Any, BaseException | None], None]
) -> Call:
    """Starts a call. `on_done` receives the returned value, or the exception."""
    call = Call(on_done)
    _run(lambda: call.run(method, arguments))
    return call
