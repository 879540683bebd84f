"""Concurrent fetches of many links."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Generator, Iterable
from dataclasses import dataclass
from typing import Any, NoReturn, TypeAlias, Union

from ._native import Batch, PendingCall, Transcript

#: Links that may be started before the first unfinished one, for each concurrent fetch.
_AHEAD = 4


@dataclass(frozen=True)
class BatchSuccess:
    """The transcript of one of many links."""

    #: The position of the link in the iterable, from 0.
    index: int
    #: The link, as the caller passed it.
    link: str
    #: The requested language, as the caller passed it.
    lang: Any
    #: The transcript.
    transcript: Transcript
    #: None: a :class:`BatchFailure` has an error.
    error: None = None

    @property
    def language(self) -> str:
        """The language of the transcript."""
        return self.transcript.language

    def get(self) -> Transcript:
        """Returns the transcript."""
        return self.transcript


@dataclass(frozen=True)
class BatchFailure:
    """The failure of one of many links."""

    #: The position of the link in the iterable, from 0.
    index: int
    #: The link, as the caller passed it.
    link: str
    #: The requested language, as the caller passed it.
    lang: Any
    #: The failure.
    error: Exception
    #: None: a :class:`BatchSuccess` has a transcript.
    transcript: None = None

    @property
    def language(self) -> None:
        """None: there is no transcript."""
        return None

    def get(self) -> NoReturn:
        """Raises the error."""
        raise self.error


#: The result for one of many links. A type checker knows the other field after a test of `error` or `transcript`.
BatchResult: TypeAlias = Union[BatchSuccess, BatchFailure]


class BatchRun:
    """Fetches links from an iterable with bounded concurrency."""

    def __init__(
        self,
        links: Iterable[str],
        lang: Any,
        start: Callable[[str, Batch], PendingCall],
        concurrency: int,
        progress: Callable[[int, BatchResult], Any] | None,
        max_wait: float | None,
        in_order: bool,
    ) -> None:
        if isinstance(links, (str, bytes)):
            raise TypeError("links must be an iterable of several links; use get for one link")
        if concurrency < 1:
            raise ValueError("concurrency must be at least 1")
        self._links = enumerate(links)
        self._lang = lang
        self._start = start
        self._concurrency = concurrency
        self._progress = progress
        self._batch = Batch(max_wait)
        self._in_order = in_order
        self._running: dict[int, str] = {}
        #: Finished results that were not yielded yet, by index.
        self._ready: dict[int, BatchResult] = {}
        self._done = 0

    def _has_room(self) -> bool:
        # The transcripts behind a slow link stay in memory.
        is_ahead = self._in_order and len(self._running) + len(self._ready) >= _AHEAD * self._concurrency
        return len(self._running) < self._concurrency and not is_ahead

    def _fill(self) -> None:
        while self._has_room():
            index, link = next(self._links, (None, ""))
            if index is None:
                return
            try:
                self._batch.start(index, self._start(link, self._batch))
            except (TypeError, ValueError) as error:
                # A link that is not a text is a failed result like any other.
                self._ready[index] = BatchFailure(index, link, self._lang, error)
                if not self._in_order:
                    return
            else:
                self._running[index] = link

    def _finish(self, entry: tuple[int, Any, Exception | None]) -> None:
        index, transcript, error = entry
        if error is not None and not isinstance(error, Exception):
            raise error
        link = self._running.pop(index)
        if error is not None:
            self._ready[index] = BatchFailure(index, link, self._lang, error)
        else:
            self._ready[index] = BatchSuccess(index, link, self._lang, transcript)

    def _next_ready(self) -> BatchResult | None:
        if self._in_order:
            return self._ready.pop(self._done, None)
        return self._ready.pop(next(iter(self._ready))) if self._ready else None

    def _report(self, result: BatchResult) -> BatchResult:
        self._done += 1
        if self._progress is not None:
            self._progress(self._done, result)
        return result

    def results(self) -> Generator[BatchResult, None, None]:
        while True:
            self._fill()
            if result := self._next_ready():
                yield self._report(result)
            elif self._running:
                self._finish(self._batch.next().wait())
            else:
                return

    async def aresults(self) -> AsyncGenerator[BatchResult, None]:
        while True:
            self._fill()
            if result := self._next_ready():
                yield self._report(result)
            elif self._running:
                self._finish(await self._batch.next())
            else:
                return
