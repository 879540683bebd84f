"""Calls of methods of ports that are written in Python.

A plain method runs on one of a few threads of its own, an awaited one in an event loop on another. All of them are
daemons: a supplier that takes a minute is no reason for a program not to end.
"""

from __future__ import annotations

import asyncio
import os
import queue
import threading
from collections.abc import Callable
from concurrent.futures import Future
from contextvars import ContextVar
from typing import Any

#: What the code that runs was called with: a supplier that asks for what it is asked for would wait for itself.
within: ContextVar[tuple[Any, ...]] = ContextVar("within", default=())

_lock = threading.Lock()
_jobs: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
_idle = 0
_loop: asyncio.AbstractEventLoop | None = None


def _forget() -> None:
    """In a forked child there are neither the threads nor anybody who holds the lock."""
    global _lock, _jobs, _idle, _loop
    _lock = threading.Lock()
    _jobs = queue.SimpleQueue()
    _idle = 0
    _loop = None


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)


def _work(jobs: queue.SimpleQueue[Callable[[], None]]) -> None:
    global _idle
    while True:
        jobs.get()()
        with _lock:
            _idle += 1


def _run(job: Callable[[], None]) -> None:
    """Runs it on a thread that has nothing to do, or on a new one: those that block hold nobody up."""
    global _idle
    with _lock:
        is_new = _idle == 0
        if not is_new:
            _idle -= 1
    _jobs.put(job)
    if is_new:
        threading.Thread(target=_work, args=(_jobs,), name="verbatim-calls", daemon=True).start()


def _running() -> asyncio.AbstractEventLoop:
    global _loop
    with _lock:
        if _loop is None:
            _loop = asyncio.new_event_loop()
            threading.Thread(target=_loop.run_forever, name="verbatim-loop", daemon=True).start()
        return _loop


async def _awaited(awaitable: Any) -> tuple[Any, BaseException | None]:
    try:
        return await awaitable, None
    except (KeyboardInterrupt, SystemExit) as error:
        # A task that raised these would end the loop, which others wait in.
        return None, error


class Call:
    """A call that is under way."""

    __slots__ = ("_ended", "_future", "_is_cancelled")

    def __init__(self, ended: Callable[[Any, BaseException | None], None]) -> None:
        self._ended = ended
        self._future: Future[Any] | None = None
        self._is_cancelled = False

    def work(self, method: Callable[..., Any], arguments: tuple[Any, ...]) -> None:
        token = within.set(arguments)
        try:
            value = method(*arguments)
            if hasattr(value, "__await__"):
                # What is awaited has the context of here.
                self._future = asyncio.run_coroutine_threadsafe(_awaited(value), _running())
        except BaseException as error:  # whatever it is, who asked is told
            self._ended(None, error)
            return
        finally:
            within.reset(token)
        if self._future is None:
            self._ended(value, None)
            return
        self._future.add_done_callback(self._awaited)
        if self._is_cancelled:
            self._future.cancel()

    def _awaited(self, future: Future[Any]) -> None:
        if future.cancelled():
            self._ended(None, asyncio.CancelledError())
            return
        error = future.exception()
        self._ended(*((None, error) if error else future.result()))

    def cancel(self) -> None:
        """Cancels what is awaited; a plain method is left to itself."""
        self._is_cancelled = True
        if self._future is not None:
            self._future.cancel()


def begin(
    method: Callable[..., Any], arguments: tuple[Any, ...], ended: Callable[[Any, BaseException | None], None]
) -> Call:
    """Begins a call; `ended` is called with what it returned, or raised."""
    call = Call(ended)
    _run(lambda: call.work(method, arguments))
    return call
