"""The shortest way: one call, nothing kept beyond the process."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from typing import Any

from ._many import Result
from ._native import Transcript
from ._transcripts import Transcripts

_shared: Transcripts | None = None


def _default() -> Transcripts:
    """What everybody shares who wants no more than a transcript. `VERBATIM_ARCHIVE` names a file to keep them in."""
    global _shared
    if _shared is None:
        # Two threads may both make one: what is not open yet costs nothing.
        _shared = Transcripts(
            archive=os.environ.get("VERBATIM_ARCHIVE") or None,
            proxies=os.environ.get("VERBATIM_UPSTREAM__PROXY") or None,
            ca_file=os.environ.get("VERBATIM_UPSTREAM__CA_FILE") or None,
        )
    return _shared


def get(link: str, lang: str | None = None) -> Transcript:
    """The transcript of a video.

    :param link: the link in any form that people use, or a YouTube id.
    :param lang: a BCP 47 tag; None: English where there is English, else the spoken language.
    :raises TranscriptUnavailable: there is none; ``reason`` and ``watch_url`` say more.
    :raises InvalidInput: the link or the language is none.
    """
    return _default().get(link, lang)


async def aget(link: str, lang: str | None = None) -> Transcript:
    """As :func:`get`, to be awaited in any event loop; cancelling it ends the work."""
    return await _default().aget(link, lang)


def get_many(
    links: Iterable[str],
    lang: str | None = None,
    *,
    at_once: int = 16,
    progress: Callable[[int, Result], Any] | None = None,
) -> Iterator[Result]:
    """Transcripts of many videos, each as soon as it is there; see :meth:`Transcripts.get_many`."""
    return _default().get_many(links, lang, at_once=at_once, progress=progress)


def aget_many(
    links: Iterable[str],
    lang: str | None = None,
    *,
    at_once: int = 16,
    progress: Callable[[int, Result], Any] | None = None,
) -> AsyncIterator[Result]:
    """As :func:`get_many`, for ``async for``."""
    return _default().aget_many(links, lang, at_once=at_once, progress=progress)
