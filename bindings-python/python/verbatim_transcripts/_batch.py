"""Concurrent fetches of many links."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Generator, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, NoReturn, TypeAlias, Union

from ._native import Batch, PendingCall, Transcript
from ._video_list import ListedVideo, PageReader, VideoList

#: Links that may be started before the first unfinished one, for each concurrent fetch.
_AHEAD = 4

#: The number of the call that reads a page of a list.
_PAGE = 2**64 - 1


@dataclass(frozen=True)
class BatchSuccess:
    """The transcript of one of many links."""

    #: The position of the link in the iterable, from 0.
    index: int
    #: The link, as the caller passed it, or that of a listed video.
    link: str
    #: The requested language, as the caller passed it.
    lang: Any
    #: The transcript.
    transcript: Transcript
    #: None: a :class:`BatchFailure` has an error.
    error: None = None
    #: The listed video, if the caller passed one in place of a link.
    video: ListedVideo | None = None

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
    #: The link, as the caller passed it, or that of a listed video.
    link: str
    #: The requested language, as the caller passed it.
    lang: Any
    #: The failure.
    error: Exception
    #: None: a :class:`BatchSuccess` has a transcript.
    transcript: None = None
    #: The listed video, if the caller passed one in place of a link.
    video: ListedVideo | None = None

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
        links: Iterable[str | ListedVideo],
        lang: Any,
        start: Callable[[str, Batch], PendingCall],
        concurrency: int,
        progress: Callable[[int, BatchResult], Any] | None,
        max_wait: float | None,
        in_order: bool,
    ) -> None:
        if isinstance(links, (str, bytes, ListedVideo)):
            raise TypeError("links must be an iterable of several links; use get for one link")
        if concurrency < 1:
            raise ValueError("concurrency must be at least 1")
        #: The pages of a list are read while transcripts are fetched.
        self._pages = PageReader(links) if isinstance(links, VideoList) else None
        self._links: Iterator[str | ListedVideo] = iter(self._pages or links)
        self._is_reading = False
        self._list_error: Exception | None = None
        self._lang = lang
        self._start = start
        self._concurrency = concurrency
        self._progress = progress
        self._batch = Batch(max_wait)
        self._in_order = in_order
        self._begun = 0
        self._running: dict[int, str | ListedVideo] = {}
        #: Finished results that were not yielded yet, by index.
        self._ready: dict[int, BatchResult] = {}
        self._done = 0

    def _has_room(self) -> bool:
        # The transcripts behind a slow link stay in memory.
        is_ahead = self._in_order and len(self._running) + len(self._ready) >= _AHEAD * self._concurrency
        return len(self._running) < self._concurrency and not is_ahead

    def _fill(self) -> None:
        while self._has_room():
            try:
                link = next(self._links)
            except StopIteration:
                self._read_page()
                return
            index, self._begun = self._begun, self._begun + 1
            try:
                self._batch.start(index, self._start(link_address(link), self._batch))
            except (TypeError, ValueError) as error:
                # A link that is not a text is a failed result like any other.
                self._add_failure(index, link, error)
                if not self._in_order:
                    return
            else:
                self._running[index] = link

    def _read_page(self) -> None:
        """Starts to read the next page of a list, if there is one."""
        if self._pages is None or self._is_reading or self._list_error is not None:
            return
        if call := self._pages.next_page():
            self._batch.start(_PAGE, call)
            self._is_reading = True

    def _finish(self, entry: tuple[int, Any, Exception | None]) -> None:
        index, value, error = entry
        if error is not None and not isinstance(error, Exception):
            raise error
        if index != _PAGE:
            self._add_result(index, value, error)
            return
        self._is_reading, self._list_error = False, error
        if error is None and self._pages is not None:
            self._pages.take(value)

    def _add_result(self, index: int, value: Any, error: Exception | None) -> None:
        link = self._running.pop(index)
        if error is not None:
            self._add_failure(index, link, error)
        else:
            video = link if isinstance(link, ListedVideo) else None
            self._ready[index] = BatchSuccess(index, link_address(link), self._lang, value, video=video)

    def _add_failure(self, index: int, link: str | ListedVideo, error: Exception) -> None:
        video = link if isinstance(link, ListedVideo) else None
        self._ready[index] = BatchFailure(index, link_address(link), self._lang, error, video=video)

    def _next_ready(self) -> BatchResult | None:
        if self._in_order:
            return self._ready.pop(self._done, None)
        return self._ready.pop(next(iter(self._ready))) if self._ready else None

    def _report(self, result: BatchResult) -> BatchResult:
        self._done += 1
        if self._progress is not None:
            self._progress(self._done, result)
        return result

    def _is_waiting(self) -> bool:
        """Whether a call is running. Raises the error of the list after the last result."""
        if self._running or self._is_reading:
            return True
        if self._list_error is not None:
            raise self._list_error
        return False

    def results(self) -> Generator[BatchResult, None, None]:
        while True:
            self._fill()
            if result := self._next_ready():
                yield self._report(result)
            elif self._is_waiting():
                self._finish(self._batch.next().wait())
            else:
                return

    async def aresults(self) -> AsyncGenerator[BatchResult, None]:
        while True:
            self._fill()
            if result := self._next_ready():
                yield self._report(result)
            elif self._is_waiting():
                self._finish(await self._batch.next())
            else:
                return


def link_address(link: str | ListedVideo) -> str:
    """The link, or that of a listed video."""
    return link.url if isinstance(link, ListedVideo) else link
