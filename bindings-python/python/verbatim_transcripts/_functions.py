"""Functions over one shared `Transcripts` object."""

from __future__ import annotations

import datetime
import os
from collections.abc import AsyncGenerator, AsyncIterable, Callable, Generator, Iterable, Sequence
from typing import TYPE_CHECKING, Any

from ._chunk import Track
from ._native import Transcript
from ._transcripts import Transcripts

if TYPE_CHECKING:
    from ._batch import BatchResult
    from ._video_list import ListedVideo, VideoList

_shared: Transcripts | None = None


def shared() -> Transcripts:
    """The object that all functions share. `VERBATIM_STORAGE__ARCHIVE_URL` names its archive."""
    global _shared
    if _shared is None:
        # Two threads may both create one: an object that is not open yet holds no resources.
        _shared = Transcripts(
            archive=_archive_place(os.environ.get("VERBATIM_STORAGE__ARCHIVE_URL") or None),
        )
    return _shared


def _archive_place(url: str | None) -> str | None:
    """The place in the setting of the command and the server: `sqlite://PATH`, or the URL of a PostgreSQL database."""
    if url is None:
        return None
    scheme, separator, path = url.partition("://")
    if not separator:
        raise ValueError("VERBATIM_STORAGE__ARCHIVE_URL must be sqlite://PATH or postgresql://…")
    return path if scheme == "sqlite" else url


def get(
    link: str,
    lang: str | Sequence[str] | None = None,
    *,
    translated: bool = False,
    fetch: bool = True,
    timeout: float | None = None,
) -> Transcript:
    """Returns the transcript of a video; see :meth:`Transcripts.get` for the arguments and the exceptions."""
    return shared().get(link, lang, translated=translated, fetch=fetch, timeout=timeout)


async def aget(
    link: str,
    lang: str | Sequence[str] | None = None,
    *,
    translated: bool = False,
    fetch: bool = True,
    timeout: float | None = None,
) -> Transcript:
    """As :func:`get`, awaitable in any asyncio event loop. Cancelling it cancels the fetch."""
    return await shared().aget(link, lang, translated=translated, fetch=fetch, timeout=timeout)


def languages(link: str, *, fetch: bool = True, timeout: float | None = None) -> list[Track]:
    """Returns the tracks of a video; see :meth:`Transcripts.languages`."""
    return shared().languages(link, fetch=fetch, timeout=timeout)


async def alanguages(link: str, *, fetch: bool = True, timeout: float | None = None) -> list[Track]:
    """As :func:`languages`."""
    return await shared().alanguages(link, fetch=fetch, timeout=timeout)


def playlist(link: str, *, limit: int | None = None, since: datetime.date | None = None) -> VideoList:
    """Returns the videos of a playlist; see :meth:`Transcripts.playlist`."""
    return shared().playlist(link, limit=limit, since=since)


def channel(
    link: str,
    tab: str | None = None,
    *,
    limit: int | None = None,
    since: datetime.date | None = None,
) -> VideoList:
    """Returns the videos of a channel; see :meth:`Transcripts.channel`."""
    return shared().channel(link, tab, limit=limit, since=since)


def youtube_search(
    words: str, *, limit: int | None = None, since: datetime.date | None = None
) -> VideoList:
    """Returns the videos that YouTube finds for these words; see :meth:`Transcripts.youtube_search`."""
    return shared().youtube_search(words, limit=limit, since=since)


def get_many(
    links: Iterable[str | ListedVideo],
    lang: str | Sequence[str] | None = None,
    *,
    translated: bool = False,
    fetch: bool = True,
    timeout: float | None = None,
    concurrency: int = 32,
    progress: Callable[[int, BatchResult], Any] | None = None,
    max_wait: float | None = None,
    in_order: bool = False,
) -> Generator[BatchResult, None, None]:
    """Yields the transcripts of many videos as they complete; see :meth:`Transcripts.get_many`."""
    return shared().get_many(
        links,
        lang,
        translated=translated,
        fetch=fetch,
        timeout=timeout,
        concurrency=concurrency,
        progress=progress,
        max_wait=max_wait,
        in_order=in_order,
    )


def aget_many(
    links: Iterable[str | ListedVideo] | AsyncIterable[str | ListedVideo],
    lang: str | Sequence[str] | None = None,
    *,
    translated: bool = False,
    fetch: bool = True,
    timeout: float | None = None,
    concurrency: int = 32,
    progress: Callable[[int, BatchResult], Any] | None = None,
    max_wait: float | None = None,
    in_order: bool = False,
) -> AsyncGenerator[BatchResult, None]:
    """As :func:`get_many`, for ``async for``."""
    return shared().aget_many(
        links,
        lang,
        translated=translated,
        fetch=fetch,
        timeout=timeout,
        concurrency=concurrency,
        progress=progress,
        max_wait=max_wait,
        in_order=in_order,
    )
