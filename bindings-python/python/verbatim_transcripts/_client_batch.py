"""Transcripts of many links from a server."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ._batch import BatchEntry, BatchRun, link_address
from ._errors import FetchFailed, RateLimited, ServiceError, TooManyRequests, TranscriptUnavailable, VerbatimError
from ._native import Batch

if TYPE_CHECKING:
    from ._native import Transcript
    from ._video_list import ListedVideo

#: The number of the pause after which refused links are requested again.
_PAUSE = 2**64 - 3

#: How often a link that the server cannot fetch is requested.
_FETCHES_MAX = 3

#: The seconds that a batch waits without a success in between, if the caller names none; as in the native module.
_MAX_WAIT = 300.0

#: The shortest pause, in seconds.
_SHORTEST_PAUSE = 0.1


class WaitLimit:
    """How long a batch waits for a server that refuses its requests."""

    def __init__(self, max_wait: float | None) -> None:
        self._max_wait = _MAX_WAIT if max_wait is None else max_wait
        #: The first refusal since the last success that was waited for.
        self._since: float | None = None

    @property
    def is_waiting(self) -> bool:
        """Whether there was no success since a refusal that was waited for."""
        return self._since is not None

    def next_pause(self, error: VerbatimError) -> float | None:
        """The seconds until a retry; None if the time is unknown or would exceed the longest wait."""
        if error.retry_after is None:
            return None
        now = time.monotonic()
        since = now if self._since is None else self._since
        if now + error.retry_after - since > self._max_wait:
            return None
        self._since = since
        return max(error.retry_after, _SHORTEST_PAUSE)

    def note_success(self) -> None:
        """Starts the longest wait again."""
        self._since = None


class ClientBatch(BatchRun):
    """Requests many transcripts of a server, and waits while it refuses them."""

    def __init__(
        self,
        convert: Callable[[str, Any, Exception | None], Transcript],
        max_wait: float | None,
        **arguments: Any,
    ) -> None:
        super().__init__(max_wait=max_wait, **arguments)
        self._convert = convert
        self._waits = WaitLimit(max_wait)
        #: Refused links, which are requested again before others are.
        self._postponed: deque[tuple[int, str | ListedVideo]] = deque()
        #: How often the server could not fetch them, by index.
        self._failures: dict[int, int] = {}
        #: When the pause ends.
        self._resumes_at = 0.0
        self._is_paused = False

    def _has_room(self) -> bool:
        if self._is_paused or (self._waits.is_waiting and self._running):
            return False
        return super()._has_room()

    def _next_link(self) -> tuple[int, str | ListedVideo] | None:
        return self._postponed.popleft() if self._postponed else super()._next_link()

    def _is_waiting(self) -> bool:
        return self._is_paused or super()._is_waiting()

    def _finish(self, entry: BatchEntry) -> None:
        if entry[0] != _PAUSE:
            super()._finish(entry)
            return
        self._is_paused = False
        left = self._resumes_at - time.monotonic()
        if left > 0:
            self._pause(left)

    def _add_result(self, index: int, value: Any, error: Exception | None) -> None:
        try:
            value, error = self._convert(link_address(self._running[index]), value, error), None
        except VerbatimError as failure:
            value, error = None, failure
            if self._postpone(index, failure):
                return
        self._failures.pop(index, None)
        if self._is_success(value, error):
            self._waits.note_success()
        super()._add_result(index, value, error)

    def _postpone(self, index: int, error: VerbatimError) -> bool:
        """Requests a refused link again after a pause, unless that takes too long."""
        if not isinstance(error, (TooManyRequests, RateLimited, FetchFailed)):
            return False
        # The request may be charged, and is free of cost only with its key.
        if isinstance(error, ServiceError) and error.idempotency_key is not None:
            return False
        failures = self._failures.get(index, 0) + (not isinstance(error, TooManyRequests))
        if failures >= _FETCHES_MAX or (pause := self._waits.next_pause(error)) is None:
            return False
        self._failures[index] = failures
        self._postponed.append((index, self._running.pop(index)))
        self._resumes_at = max(self._resumes_at, time.monotonic() + pause)
        if not self._is_paused:
            self._pause(pause)
        return True

    def _pause(self, seconds: float) -> None:
        self._is_paused = True
        self._batch.start(_PAUSE, Batch.pause(seconds))

    def _is_success(self, transcript: Transcript | None, error: Exception | None) -> bool:
        """Whether the server has answered."""
        if transcript is not None:
            return True
        return isinstance(error, TranscriptUnavailable) and not isinstance(error, (RateLimited, FetchFailed))
