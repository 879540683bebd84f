"""Lists of videos: playlists, channels and searches."""

from __future__ import annotations

import datetime
import operator
from collections import deque
from collections.abc import AsyncGenerator, Callable, Generator
from typing import TYPE_CHECKING, Any, NamedTuple

from ._native import Batch, Engine, PendingCall, _list_address, _search_address
from ._video import _to_datetime, _to_millis

if TYPE_CHECKING:
    from typing_extensions import Self

__all__ = ["ListInfo", "ListedVideo", "PublishedRange", "VideoList"]


class PublishedRange(NamedTuple):
    """When a video was published, known to lie between two times: lists name ages such as "2 weeks ago"."""

    #: The earliest possible time, with a time zone.
    earliest: datetime.datetime
    #: The latest possible time, with a time zone.
    latest: datetime.datetime


class ListedVideo(NamedTuple):
    """A video, as a list describes it; what is unknown is None."""

    #: The id of the video on its platform.
    video_id: str
    #: The URL of the video.
    url: str
    title: str | None
    #: The name of the channel that published it.
    author: str | None
    #: The length, in seconds.
    duration: float | None
    #: When it was published. A scheduled video has none.
    published: PublishedRange | None
    #: Whether it is or was live: `not_live`, `upcoming`, `live` or `was_live`.
    live: str | None
    #: Whether it is only for members of its channel.
    is_members_only: bool
    #: Whether the list shows it as private or deleted.
    is_unavailable: bool


class ListInfo(NamedTuple):
    """What is known of a list."""

    #: The title of a playlist, or the name of a channel. A search has none.
    title: str | None
    #: The number of videos that a playlist states, hidden ones included, at most the `limit`. None for another list, and
    #: with `since`.
    total: int | None
    #: After the last page: how many stated videos the list has not shown, such as private ones.
    hidden: int


class VideoList:
    """The videos of a playlist, channel or search, in its order, with ``for`` or ``async for``.

    A page of up to 100 videos is read when its first video is needed, about a second after the page before. An
    iteration raises :class:`ListUnavailable` at the page that cannot be read; the videos before it are valid.
    """

    def __init__(self, engine: Engine, url: str, limit: int | None, since: datetime.date | None) -> None:
        limit = None if limit is None else operator.index(limit)
        if limit is not None and limit < 1:
            raise ValueError(f"limit must be at least 1, not {limit}")
        self._url = url
        self._limit = limit
        self._since = since_millis(since)
        self._engine = engine
        self._info: ListInfo | None = None
        #: The first page, until an iteration takes it.
        self._first: Any = None

    @property
    def url(self) -> str:
        """The address of the list."""
        return self._url

    def info(self) -> ListInfo:
        """Returns the title and the number of videos; reads the first page unless it was read.

        :raises ListUnavailable: the list cannot be read.
        """
        if self._info is None:
            self._keep_first(self._read(None).wait())
        return self._known()

    async def ainfo(self) -> ListInfo:
        """As :meth:`info`."""
        if self._info is None:
            self._keep_first(await self._read(None))
        return self._known()

    def __iter__(self) -> Generator[ListedVideo, None, None]:
        pages = PageReader(self)
        while True:
            yield from pages
            call = pages.next_page()
            if call is None:
                return
            pages.take(call.wait())

    async def __aiter__(self) -> AsyncGenerator[ListedVideo, None]:
        pages = PageReader(self)
        while True:
            for video in pages:
                yield video
            call = pages.next_page()
            if call is None:
                return
            pages.take(await call)

    def __length_hint__(self) -> int:
        total = self.info().total
        return NotImplemented if total is None else total

    def __repr__(self) -> str:
        return f"<VideoList {self._url}>"

    def _read(self, position: str | None, batch: Batch | None = None) -> PendingCall:
        return self._engine.video_page(self._url, self._since, position, batch)

    def _known(self) -> ListInfo:
        return self._info or ListInfo(None, None, 0)

    def _keep_first(self, page: Any) -> None:
        self._first = page
        self._learn(page)

    def _learn(self, page: Any) -> None:
        title, stated, hidden = page[:3]
        known = self._known()
        total = known.total
        if total is None and stated is not None and self._since is None:
            total = stated if self._limit is None else min(stated, self._limit)
        self._info = ListInfo(known.title or title, total, hidden)


class PageReader:
    """Reads the pages of a list, one after another, up to its limit. It iterates over the videos that it has read."""

    def __init__(self, videos: VideoList) -> None:
        self._videos = videos
        self._ready: deque[ListedVideo] = deque()
        self._left = videos._limit
        self._position: str | None = None
        self._is_ended = False
        first, videos._first = videos._first, None
        if first is not None:
            self.take(first)

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> ListedVideo:
        if not self._ready:
            raise StopIteration
        return self._ready.popleft()

    def next_page(self, batch: Batch | None = None) -> PendingCall | None:
        """The call that reads the next page; None at the end. With a batch it waits while the platform throttles."""
        return None if self._is_ended else self._videos._read(self._position, batch)

    def take(self, page: Any) -> None:
        """Takes the page that the call has read."""
        self._videos._learn(page)
        self._position = page[3]
        videos = page[4] if self._left is None else page[4][: self._left]
        if self._left is not None:
            self._left -= len(videos)
        self._ready.extend(map(_listed_video, videos))
        self._is_ended = self._position is None or self._left == 0


def _listed_video(fields: Any) -> ListedVideo:
    video_id, url, title, author, duration, published, *others = fields
    if published is not None:
        published = PublishedRange(*map(_to_datetime, published))
    seconds = None if duration is None else float(duration)
    return ListedVideo(video_id, url, title, author, seconds, published, *others)


def since_millis(since: datetime.date | None) -> int | None:
    """The milliseconds since 1970 of a time with a time zone, or of the beginning of a day in UTC."""
    if since is None:
        return None
    if isinstance(since, datetime.datetime):
        if since.tzinfo is None:
            raise ValueError(f"since needs a time zone: {since}")
        return _to_millis(since)
    return _to_millis(datetime.datetime.combine(since, datetime.time(), datetime.timezone.utc))


def read_playlist(
    engine: Engine, link: str, limit: int | None, since: datetime.date | None
) -> VideoList:
    """The videos of the playlist that a link names."""
    return VideoList(engine, _list_address(link, False, None), limit, since)


def read_channel(
    engine: Engine, link: str, tab: str | None, limit: int | None, since: datetime.date | None
) -> VideoList:
    """The videos of the channel that a link names."""
    return VideoList(engine, _list_address(link, True, tab), limit, since)


def read_search(
    engine: Engine, words: str, limit: int | None, since: datetime.date | None
) -> VideoList:
    """The videos that YouTube finds for these words."""
    return VideoList(engine, _search_address(words), limit, since)
