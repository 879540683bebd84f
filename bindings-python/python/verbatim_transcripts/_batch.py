"""Concurrent fetches of many links."""

from __future__ import annotations

import operator
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterable, Callable, Generator, Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NoReturn, TypeAlias, Union

from ._native import Batch, PendingCall, Transcript
from ._video_list import ListedVideo, PageReader, VideoList

if TYPE_CHECKING:
    from asyncio import Future

    from typing_extensions import Self

#: Links that may be begun and not yielded, for each concurrent fetch.
_AHEAD = 4

#: The number of the call that reads a page of a list.
_PAGE = 2**64 - 1

#: The number of a link that was taken from an async iterable.
_LINK = 2**64 - 2


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

#: The number of a call, its value and its error.
BatchEntry: TypeAlias = tuple[int, Any, Union[BaseException, None]]


class AsyncLinks:
    """The links of an async iterable, taken one after another. It iterates over those that it has taken."""

    def __init__(self, links: AsyncIterable[str | ListedVideo]) -> None:
        self._links = aiter(links)
        self._taken: deque[str | ListedVideo] = deque()
        self.is_ended = False
        #: The running waits for a result and for a link.
        self._call: Future[Any] | None = None
        self._taking: Future[None] | None = None

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> str | ListedVideo:
        if not self._taken:
            raise StopIteration
        return self._taken.popleft()

    async def next_entry(self, batch: Batch, is_taking: bool) -> BatchEntry:
        """The next result of a call; or that of the next link, if it is to be taken and arrives before."""
        from asyncio import FIRST_COMPLETED, ensure_future, wait

        if self._call is None:
            self._call = ensure_future(batch.next())
        if is_taking and self._taking is None:
            self._taking = ensure_future(self._take())
        await wait([self._call, *filter(None, [self._taking])], return_when=FIRST_COMPLETED)
        if self._taking is not None and self._taking.done():
            taking, self._taking = self._taking, None
            return _LINK, None, taking.exception()
        call, self._call = self._call, None
        entry: BatchEntry = call.result()
        return entry

    async def _take(self) -> None:
        try:
            self._taken.append(await anext(self._links))
        except StopAsyncIteration:
            self.is_ended = True

    async def stop(self) -> None:
        """Cancels what runs, and waits for its end."""
        from asyncio import gather

        running = list(filter(None, [self._call, self._taking]))
        for task in running:
            task.cancel()
        await gather(*running, return_exceptions=True)


def async_links(
    links: Iterable[str | ListedVideo] | AsyncIterable[str | ListedVideo],
) -> Iterable[str | ListedVideo]:
    """The links for :meth:`BatchRun.aresults`. The batch reads the pages of a list itself."""
    if isinstance(links, AsyncIterable) and not isinstance(links, VideoList):
        return AsyncLinks(links)
    return links


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
        convert: Callable[[str, Any, Exception | None], Transcript] | None = None,
    ) -> None:
        if isinstance(links, (str, bytes, ListedVideo)):
            raise TypeError("links must be an iterable of several links; use get for one link")
        concurrency = operator.index(concurrency)
        if concurrency < 1:
            raise ValueError("concurrency must be at least 1")
        #: The pages of a list are read while transcripts are fetched.
        self._pages = PageReader(links) if isinstance(links, VideoList) else None
        self._async_links = links if isinstance(links, AsyncLinks) else None
        self._links: Iterator[str | ListedVideo] = iter(self._pages or links)
        #: Whether a page, or a link of an async iterable, is read.
        self._is_reading = False
        #: Why the links ended.
        self._list_error: Exception | None = None
        self._lang = lang
        self._start = start
        self._concurrency = concurrency
        self._progress = progress
        self._batch = Batch(max_wait)
        self._in_order = in_order
        #: Converts the outcome of a call for a link.
        self._convert = convert
        self._begun = 0
        self._running: dict[int, str | ListedVideo] = {}
        #: The indexes of the running links by address. They share the call of the first: another one could conflict.
        self._same: dict[str, list[int]] = {}
        #: Finished results that were not yielded yet, by index.
        self._ready: dict[int, BatchResult] = {}
        self._done = 0

    def _has_room(self) -> bool:
        # The transcripts behind a slow link, and the repeats of a link, stay in memory.
        is_ahead = len(self._running) + len(self._ready) >= _AHEAD * self._concurrency
        return len(self._same) < self._concurrency and not is_ahead

    def _fill(self) -> None:
        while self._has_room():
            entry = self._next_link()
            if entry is None:
                return
            index, link = entry
            try:
                address = link_address(link)
                call = self._start(address, self._batch)
            except Exception as error:
                # A link that is not a text, or a closed client, is a failed result like any other.
                self._add_failure(index, link, error)
                if not self._in_order:
                    return
            else:
                same = self._same.setdefault(address, [])
                if not same:
                    self._batch.start(index, call)
                same.append(index)
                self._running[index] = link

    def _next_link(self) -> tuple[int, str | ListedVideo] | None:
        """The next link and its index; None if there is none now."""
        if self._list_error is not None:
            return None
        try:
            link = next(self._links)
        except StopIteration:
            self._read_more()
            return None
        except Exception as error:
            # The results of the links before it come first.
            self._list_error = error
            return None
        index, self._begun = self._begun, self._begun + 1
        return index, link

    def _read_more(self) -> None:
        """Starts to read the next page of a list, or the next link of an async iterable, if there is one."""
        if self._is_reading:
            return
        if self._async_links is not None:
            self._is_reading = not self._async_links.is_ended
        elif self._pages is not None and (call := self._pages.next_page(self._batch)):
            self._batch.start(_PAGE, call)
            self._is_reading = True

    def _finish(self, entry: BatchEntry) -> None:
        index, value, error = entry
        if error is not None and not isinstance(error, Exception):
            raise error
        if index == _PAGE:
            self._add_page(value, error)
        elif index == _LINK:
            self._is_reading, self._list_error = False, error
        else:
            self._add_result(index, value, error)

    def _add_page(self, value: Any, error: Exception | None) -> None:
        self._is_reading, self._list_error = False, error
        if error is None and self._pages is not None:
            self._pages.take(value)

    def _add_result(self, index: int, value: Any, error: Exception | None) -> None:
        address = link_address(self._running[index])
        if self._convert is not None:
            try:
                value, error = self._convert(address, value, error), None
            except Exception as failure:
                error = failure
        for position in self._same.pop(address):
            link = self._running.pop(position)
            if error is not None:
                self._add_failure(position, link, error)
            else:
                video = link if isinstance(link, ListedVideo) else None
                self._ready[position] = BatchSuccess(position, address, self._lang, value, video=video)

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
        try:
            while True:
                self._fill()
                if result := self._next_ready():
                    yield self._report(result)
                elif self._is_waiting():
                    self._finish(self._batch.next().wait())
                else:
                    return
        finally:
            self._batch.cancel()

    async def aresults(self) -> AsyncGenerator[BatchResult, None]:
        links = self._async_links
        try:
            while True:
                self._fill()
                if result := self._next_ready():
                    yield self._report(result)
                elif not self._is_waiting():
                    return
                elif links is None:
                    self._finish(await self._batch.next())
                else:
                    self._finish(await links.next_entry(self._batch, self._is_reading))
        finally:
            self._batch.cancel()
            if links is not None:
                await links.stop()


def link_address(link: str | ListedVideo) -> str:
    """The link, or that of a listed video."""
    return link.url if isinstance(link, ListedVideo) else link
