"""Search in the whole archive, and in that of a server."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, AsyncGenerator, Callable, Generic, Generator, NamedTuple, TypeVar

from ._native import PendingCall, Transcript
from ._video import PLATFORMS

if TYPE_CHECKING:
    from typing_extensions import Self

__all__ = ["ArchiveSearch", "ServerHit", "ServerSearch", "VideoHit", "VideoMoment"]


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


class ServerHit(NamedTuple):
    """A video whose transcript in the archive of a server matches. :meth:`Client.get` returns the transcript."""

    #: `YouTube`, `TikTok`, `Instagram` or `X`.
    platform: str
    #: The id of the video.
    video_id: str
    #: The title, if known.
    title: str | None
    #: The name of the channel or profile, if known.
    author: str | None
    #: The language of the transcript that matches best.
    language: str
    #: The watch page of the video at the server; empty for a service in the process without a ``base_url``.
    watch_url: str
    #: The score: higher is better. Comparable within one search only.
    score: float
    #: Up to five moments, best first. Empty if only the title or the channel matches.
    moments: list[VideoMoment]


_Hit = TypeVar("_Hit")


def _moments(moments: Any) -> list[VideoMoment]:
    return [VideoMoment(*moment) for moment in moments]


def _archive_page(page: Any) -> Any:
    hits, *properties = page
    return [VideoHit(transcript, score, _moments(moments)) for transcript, score, moments in hits], *properties


def _server_hit(hit: Any) -> ServerHit:
    platform = str(hit["platform"])
    moments = [
        (each["start"], each["end"], each["text"], [(start, end) for start, end in each["matches"]], each["url"])
        for each in hit["moments"]
    ]
    return ServerHit(
        PLATFORMS.get(platform, platform),
        hit["videoId"],
        hit["title"],
        hit["author"],
        hit["language"],
        hit["watchUrl"],
        hit["score"],
        _moments(moments),
    )


def _server_page(reply: Any) -> Any:
    body = reply[0]
    total = body["total"]
    hits = [_server_hit(hit) for hit in body["hits"]]
    return hits, total["value"], total["relation"] == "eq", body["nextCursor"], body.get("didYouMean")


def check_page_size(page_size: int) -> None:
    """Raises `ValueError` for a size that no page has."""
    if not 1 <= page_size <= 100:
        raise ValueError(f"page_size must be from 1 to 100, not {page_size}")


class _Search(Generic[_Hit]):
    """The pages of a search."""

    def __init__(self, read: Callable[[str | None], PendingCall], convert: Callable[[Any], Any]) -> None:
        self._read = read
        #: Makes `(hits, total, whether it is exact, cursor of the next page, suggestion)` of what was read.
        self._convert = convert
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

    def _learn(self, read: Any) -> Any:
        page = self._convert(read)
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

    def __iter__(self) -> Generator[_Hit, None, None]:
        page = self._take_first() or self._learn(self._read(None).wait())
        while True:
            yield from page[0]
            if page[3] is None:
                return
            page = self._convert(self._read(page[3]).wait())

    async def __aiter__(self) -> AsyncGenerator[_Hit, None]:
        page = self._take_first() or self._learn(await self._read(None))
        while True:
            for hit in page[0]:
                yield hit
            if page[3] is None:
                return
            page = self._convert(await self._read(page[3]))


class ArchiveSearch(_Search[VideoHit]):
    """The hits of a search, best first. They are read in pages while they are iterated, with ``for`` or ``async for``.

    The properties are those of the last first page. Before it is read, they read it, and wait: in an event loop, await
    :meth:`aload` first.
    """

    def __init__(self, read: Callable[[str | None], PendingCall]) -> None:
        super().__init__(read, _archive_page)


class ServerSearch(_Search[ServerHit]):
    """As :class:`ArchiveSearch`, of :meth:`Client.search`."""

    def __init__(self, read: Callable[[str | None], PendingCall]) -> None:
        super().__init__(read, _server_page)
