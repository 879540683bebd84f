"""Concurrent fetches of many links."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from typing import Any, NamedTuple

from ._native import Batch, PendingCall, Transcript


class BatchResult(NamedTuple):
    """The result for one of many links: a transcript or an error."""

    #: The link, as the caller passed it.
    link: str
    #: The transcript; None after a failure.
    transcript: Transcript | None
    #: The failure; None after a success.
    error: Exception | None

    def get(self) -> Transcript:
        """Returns the transcript, or raises the error."""
        if self.error is not None:
            raise self.error
        assert self.transcript is not None
        return self.transcript


class BatchRun:
    """Fetches links from an iterable with bounded concurrency."""

    def __init__(
        self,
        links: Iterable[str],
        start: Callable[[str], PendingCall],
        concurrency: int,
        progress: Callable[[int, BatchResult], Any] | None,
    ) -> None:
        if isinstance(links, (str, bytes)):
            raise TypeError("links must be an iterable of several links; use get for one link")
        if concurrency < 1:
            raise ValueError("concurrency must be at least 1")
        self._links = enumerate(links)
        self._start = start
        self._concurrency = concurrency
        self._progress = progress
        self._batch = Batch()
        self._running: dict[int, str] = {}
        self._ready: list[BatchResult] = []
        self._done = 0

    def _fill(self) -> None:
        while len(self._running) < self._concurrency:
            number, link = next(self._links, (None, ""))
            if number is None:
                return
            try:
                self._batch.start(number, self._start(link))
            except (TypeError, ValueError) as error:
                # A link that is not a text is a failed result like any other.
                self._ready.append(BatchResult(link, None, error))
                return
            self._running[number] = link

    def _finish(self, entry: tuple[int, Any, Exception | None]) -> BatchResult:
        number, transcript, error = entry
        if error is not None and not isinstance(error, Exception):
            raise error
        return BatchResult(self._running.pop(number), transcript, error)

    def _report(self, result: BatchResult) -> BatchResult:
        self._done += 1
        if self._progress is not None:
            self._progress(self._done, result)
        return result

    def results(self) -> Iterator[BatchResult]:
        while True:
            self._fill()
            if self._ready:
                yield self._report(self._ready.pop())
            elif self._running:
                yield self._report(self._finish(self._batch.next().wait()))
            else:
                return

    async def aresults(self) -> AsyncIterator[BatchResult]:
        while True:
            self._fill()
            if self._ready:
                yield self._report(self._ready.pop())
            elif self._running:
                yield self._report(self._finish(await self._batch.next()))
            else:
                return
