"""Search in the whole archive."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, AsyncGenerator, Callable, Generator, NamedTuple

from ._native import PendingCall, Transcript

if TYPE_CHECKING:
    from typing_extensions import Self

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
    """The hits of a search, best first. They are read in pages while they are iterated, with ``for`` or ``async for``.

    The properties are those of the last first page. Before it is read, they read it, and wait: in an event loop, await
    :meth:`aload` first.
    """

    def __init__(self, read: Callable[[str | None], PendingCall]) -> None:
        self._read = read
        #: The first page, for the next iteration.
        self._first: Any = None
        self._properties: Any = None

    def load(self) -> Self:
        """Reads the first page, for the properties and the next iteration."""
        self._first = self._learn(self._read(None).wait())
        return self

    async def aload(self) -> Self:
        """As :meth:`load`."""
        self._first = self._learn(await self._read(None))
        return self

    def _learn(self, page: Any) -> Any:
        self._properties = (page[1], page[2], page[4])
        return page

    def _loaded_properties(self) -> Any:
        if self._properties is None:
            self.load()
        return self._properties

    @property
    def total(self) -> int:
        """The number of matching videos. With ``total_is_exact`` false there are at least as many."""
        total: int = self._loaded_properties()[0]
        return total

    @property
    def total_is_exact(self) -> bool:
        """Whether ``total`` is exact."""
        is_exact: bool = self._loaded_properties()[1]
        return is_exact

    @property
    def suggestion(self) -> str | None:
        """The query with its typing errors corrected, if nothing was found and the archive has similar words."""
        suggestion: str | None = self._loaded_properties()[2]
        return suggestion

    def _take_first(self) -> Any:
        # A second iteration reads the archive as it is then: the further pages do not belong to an older first one.
        first, self._first = self._first, None
        return first

    def __iter__(self) -> Generator[VideoHit, None, None]:
        page = self._take_first() or self._learn(self._read(None).wait())
        while True:
            yield from _hits(page)
            if page[3] is None:
                return
            page = self._read(page[3]).wait()

    async def __aiter__(self) -> AsyncGenerator[VideoHit, None]:
        page = self._take_first() or self._learn(await self._read(None))
        while True:
            for hit in _hits(page):
                yield hit
            if page[3] is None:
                return
            page = await self._read(page[3])
