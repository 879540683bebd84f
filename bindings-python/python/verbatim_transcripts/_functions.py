"""Functions over one shared `Transcripts` object."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from typing import Any

from ._batch import BatchResult
from ._native import Transcript
from ._transcripts import Transcripts

_shared: Transcripts | None = None


def _default() -> Transcripts:
    """The object that all functions share. `VERBATIM_STORAGE__ARCHIVE_URL` names its archive file."""
    global _shared
    if _shared is None:
        # Two threads may both create one: an object that is not open yet holds no resources.
        _shared = Transcripts(
            archive=_archive_path(os.environ.get("VERBATIM_STORAGE__ARCHIVE_URL") or None),
        )
    return _shared


def _archive_path(url: str | None) -> str | None:
    """The path in the setting of the command and the server, `sqlite://PATH`."""
    if url is None:
        return None
    scheme, separator, path = url.partition("://")
    if not separator or scheme != "sqlite" or not path:
        raise ValueError("VERBATIM_STORAGE__ARCHIVE_URL must be sqlite://PATH for the functions of this package")
    return path


def get(link: str, lang: str | None = None) -> Transcript:
    """Returns the transcript of a video.

    :param link: a link in any common form, or a YouTube id.
    :param lang: a BCP 47 tag; None: English if there is one, otherwise the spoken language.
    :raises TranscriptUnavailable: there is no transcript; see its ``reason`` and ``watch_url``.
    :raises InvalidInput: the link or the language is malformed.
    """
    return _default().get(link, lang)


async def aget(link: str, lang: str | None = None) -> Transcript:
    """As :func:`get`, awaitable in any event loop. Cancelling it cancels the fetch."""
    return await _default().aget(link, lang)


def get_many(
    links: Iterable[str],
    lang: str | None = None,
    *,
    concurrency: int = 16,
    progress: Callable[[int, BatchResult], Any] | None = None,
    max_wait: float | None = None,
    in_order: bool = False,
) -> Iterator[BatchResult]:
    """Yields the transcripts of many videos as they complete; see :meth:`Transcripts.get_many`."""
    return _default().get_many(
        links, lang, concurrency=concurrency, progress=progress, max_wait=max_wait, in_order=in_order
    )


def aget_many(
    links: Iterable[str],
    lang: str | None = None,
    *,
    concurrency: int = 16,
    progress: Callable[[int, BatchResult], Any] | None = None,
    max_wait: float | None = None,
    in_order: bool = False,
) -> AsyncIterator[BatchResult]:
    """As :func:`get_many`, for ``async for``."""
    return _default().aget_many(
        links, lang, concurrency=concurrency, progress=progress, max_wait=max_wait, in_order=in_order
    )
