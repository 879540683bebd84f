"""Search in the whole archive."""

from __future__ import annotations

from typing import Any, AsyncGenerator, Callable, Generator, NamedTuple

from ._native import PendingCall, Transcript

__all__ = ["ArchiveSearch", "VideoHit", "VideoMoment"]


class VideoMoment(NamedTuple):
    """A moment of a video in which words of the query are spoken."""

    #: Start, in seconds from the start of the video.
    start: float
    #: End, in seconds from the start of the video.
    end: float
    #: The text of the transcript at this time, in one line.
    text: str
    #: The matches: slices of the text, as ``(start, end)``.
    matches: list[tuple[int, int]]
    #: Link to the start of the moment.
    url: str


class VideoHit(NamedTuple):
    """A video whose transcript matches."""

    #: The transcript that matches best.
    transcript: Transcript
    #: The score: higher is better. Comparable within one search only.
    score: float
    #: Up to five moments, best first. Empty if only the title or the channel matches.
    moments: list[VideoMoment]


def _hits(page: Any) -> list[VideoHit]:
    return [
        VideoHit(transcript, score, [VideoMoment(*moment) for moment in moments])
        for transcript, score, moments in page[0]
    ]


class ArchiveSearch:
    """The hits of a search, best first. They are read in pages while they are iterated, with ``for`` or ``async for``."""

    def __init__(self, read: Callable[[str | None], PendingCall]) -> None:
        self._read = read
        self._first: Any = None

    def _first_page(self) -> Any:
        if self._first is None:
            self._first = self._read(None).wait()
        return self._first

    @property
    def total(self) -> int:
        """The number of matching videos. With ``total_is_exact`` false there are at least as many."""
        total: int = self._first_page()[1]
        return total

    @property
    def total_is_exact(self) -> bool:
        """Whether ``total`` is exact."""
        is_exact: bool = self._first_page()[2]
        return is_exact

    @property
    def suggestion(self) -> str | None:
        """The query with its typing errors corrected, if nothing was found and the archive has similar words."""
        suggestion: str | None = self._first_page()[4]
        return suggestion

    def __iter__(self) -> Generator[VideoHit, None, None]:
        page = self._first_page()
        while True:
            yield from _hits(page)
            if page[3] is None:
                return
            page = self._read(page[3]).wait()

    async def __aiter__(self) -> AsyncGenerator[VideoHit, None]:
        if self._first is None:
            self._first = await self._read(None)
        page = self._first
        while True:
            for hit in _hits(page):
                yield hit
            if page[3] is None:
                return
            page = await self._read(page[3])
