"""When a job is polled until it ends: :meth:`Jobs.wait`."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ._errors import JobTimeout, ServiceError, ServiceRefused, ServiceTimeout, ServiceUnreachable, TooManyRequests

if TYPE_CHECKING:
    from ._jobs import Job

#: Seconds before the first poll, the growth of the pauses, and the longest one.
_FIRST_POLL = 1.0
_POLL_GROWTH = 2.0
_LONGEST_POLL = 30.0
#: Seconds without a response after which it raises the last failure of the server.
_LONGEST_OUTAGE = 600.0
#: The statuses of a server, or of a proxy before it, that is out of order for now.
_OUTAGE_STATUSES = frozenset((500, 502, 503, 504, *range(520, 528)))


class Polls:
    """The times at which a job is polled."""

    def __init__(self, job: str, timeout: float | None, progress: Callable[[Job], Any] | None) -> None:
        if timeout is not None and not timeout >= 0:
            raise ValueError(f"timeout must be a number of seconds from 0, not {timeout}")
        self.id = job
        self._timeout = timeout
        self._progress = progress
        self._deadline = None if timeout is None else time.monotonic() + timeout
        self._pause = _FIRST_POLL
        self._failing_since: float | None = None

    def is_ended(self, job: Job) -> bool:
        self._failing_since = None
        if self._progress is not None:
            self._progress(job)
        return job.is_ended

    def postpone(self, error: ServiceError) -> None:
        """Waits at least as long as the server says, at most for the rest of the longest outage.

        Raises an error that no later poll can end.
        """
        wait = error.retry_after or 0.0
        if isinstance(error, TooManyRequests):
            self._failing_since = None
        elif _is_outage(error):
            now = time.monotonic()
            self._failing_since = self._failing_since or now
            left = self._failing_since + _LONGEST_OUTAGE - now
            if left <= 0:
                raise error
            wait = min(wait, left)
        else:
            raise error
        self._pause = max(self._pause, wait)

    def next_pause(self) -> float:
        """The seconds until the next poll."""
        pause, self._pause = self._pause, min(self._pause * _POLL_GROWTH, _LONGEST_POLL)
        if self._deadline is None:
            return pause
        left = self._deadline - time.monotonic()
        if left <= 0:
            raise JobTimeout(f"The job {self.id} has not ended within {self._timeout} s; it continues.")
        return min(pause, left)


def _is_outage(error: ServiceError) -> bool:
    """Whether the server is out of reach or out of order for now."""
    is_refused = isinstance(error, ServiceRefused) and error.status in _OUTAGE_STATUSES
    return is_refused or isinstance(error, (ServiceTimeout, ServiceUnreachable))
