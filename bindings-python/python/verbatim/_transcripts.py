"""Transcripts out of an archive and from suppliers."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

from ._many import Result, Window
from ._native import Engine, Pending, Transcript

if TYPE_CHECKING:
    from types import TracebackType

    from ._ports import Archive, Supplier

__all__ = ["Hit", "Imported", "Refreshed", "Transcripts"]


class Refreshed(NamedTuple):
    """What came of a refresh."""

    #: What is archived now.
    transcript: Transcript
    #: Whether it is another one than before.
    changed: bool


class Imported(NamedTuple):
    """What came of an import."""

    #: The language, as a BCP 47 tag.
    language: str
    #: How many segments the captions have.
    segments: int
    #: `added`, `replaced`, `kept` (there was another one, which stays) or `unchanged`.
    effect: str
    #: How many characters could not be read, and are U+FFFD in the segments.
    unreadable: int
    #: How many cues with words are no segments, since their times could not be read.
    left_out: int


class Hit(NamedTuple):
    """A passage of an archived transcript that has all the words that were looked for."""

    #: The transcript.
    transcript: Transcript
    #: The passage's words, on one line.
    text: str
    #: When it starts, in seconds from the video's beginning.
    start: float
    #: When it ends, in seconds from the video's beginning.
    end: float
    #: The video's address at that moment.
    url: str


class Transcripts:
    """An archive in front of suppliers: what was fetched once is there for good.

    Every method that takes time comes twice: plain, for threads and scripts, and with an ``a`` in front, to be
    awaited in any event loop. One object serves any number of threads, loops and (opened anew in each) processes.

    :param archive: where transcripts are kept: ``"sqlite:///file.db"``, a path, an object of your own
        (:class:`verbatim.Archive`), or None for this process's memory: 64 MiB of transcripts, some 300 hours of
        speech; beyond that the videos of which nothing was kept for longest are forgotten.
    :param suppliers: who is asked for what is not archived, in order: names (``"youtube-captions"``,
        ``"tiktok-captions"``, ``"x-captions"``, ``"yt-dlp"``, ``"verbatim-service"``, ``"speech-to-text"``) and
        objects of your own (:class:`verbatim.Supplier`). None: the platforms themselves; ``[]``: nobody.
    :param proxies: proxies through which every request leaves, used in turn: ``http://``, ``https://`` or
        ``socks5://``, with user and password where they want them.
    :param timeout: after how many seconds a call gives up with :class:`verbatim.FetchFailed`; its work ends with that,
        unless others wait for it too. None: when the work itself has failed.
    :param request_timeout: how many seconds one request may take (20).
    :param retries: how often a request that failed in passing is repeated (2).
    :param at_once: with how many videos suppliers work, and how many requests run, at once (32).
    :param ca_file: a PEM file with root certificates that are trusted beside the system's.
    :param ytdlp: the yt-dlp program, which is then asked last unless ``suppliers`` says otherwise.
    :param speech: an OpenAI-compatible speech-to-text service: ``(base_url, model, api_key or None)``.
    :param server: another Verbatim server that is asked: ``(base_url, api_key)``.
    :param youtube_clients: the client identities as which YouTube is asked, such as ``"android@21.26.364"``.

    >>> with Transcripts(suppliers=[]) as transcripts:
    ...     done = transcripts.import_(
    ...         "https://youtu.be/dQw4w9WgXcQ",
    ...         "1\\n00:00:01,500 --> 00:00:03,000\\nIt is so quiet here.\\n",
    ...         lang="en",
    ...     )
    ...     transcripts.get("dQw4w9WgXcQ").segments[0]
    Segment('It is so quiet here.', 1.5, 1.5)
    """

    def __init__(
        self,
        archive: str | os.PathLike[str] | Archive | None = None,
        suppliers: Iterable[str | Supplier] | None = None,
        proxies: str | Iterable[str] | None = None,
        *,
        timeout: float | None = None,
        request_timeout: float | None = None,
        retries: int | None = None,
        at_once: int | None = None,
        ca_file: str | os.PathLike[str] | None = None,
        ytdlp: str | os.PathLike[str] | None = None,
        speech: tuple[str, str, str | None] | None = None,
        server: tuple[str, str] | None = None,
        youtube_clients: Iterable[str] | None = None,
    ) -> None:
        self._engine = Engine(
            {
                "archive": archive,
                "suppliers": suppliers,
                "proxies": _listed(proxies),
                "timeout": timeout,
                "request_timeout": request_timeout,
                "retries": retries,
                "at_once": at_once,
                "ca_file": ca_file,
                "ytdlp": ytdlp,
                "speech": speech,
                "server": server,
                "youtube_clients": _listed(youtube_clients),
            }
        )

    def get(self, link: str, lang: str | None = None) -> Transcript:
        """The transcript of a video: archived, or fetched and archived.

        :param link: the link in any form that people use, or a YouTube id.
        :param lang: a BCP 47 tag; None: English where there is English, else the spoken language.
        :raises TranscriptUnavailable: there is none; ``reason`` and ``watch_url`` say more.
        :raises InvalidInput: the link or the language is none.
        """
        return self._engine.get_now(link, lang)

    async def aget(self, link: str, lang: str | None = None) -> Transcript:
        """As :meth:`get`; cancelling it ends the work, unless others wait for it too."""
        transcript: Transcript = await self._engine.get(link, lang)
        return transcript

    def get_many(
        self,
        links: Iterable[str],
        lang: str | None = None,
        *,
        at_once: int = 16,
        progress: Callable[[int, Result], Any] | None = None,
    ) -> Iterator[Result]:
        """Transcripts of many videos, each as soon as it is there; a failure is a result, and stops nothing.

        Links are taken from ``links`` as there is room for them, so it may be a generator without an end. Leaving the
        loop ends the work that is under way.

        :param at_once: for how many links the work is under way at the same time.
        :param progress: called with the number of results so far and the latest one.

        >>> with Transcripts(suppliers=[]) as transcripts:
        ...     results = list(transcripts.get_many(["https://youtu.be/dQw4w9WgXcQ", "no link"]))
        >>> sorted(type(result.error).__name__ for result in results)
        ['InvalidInput', 'NotConfigured']
        """
        return Window(links, lambda link: self._engine.get(link, lang), at_once, progress).results()

    def aget_many(
        self,
        links: Iterable[str],
        lang: str | None = None,
        *,
        at_once: int = 16,
        progress: Callable[[int, Result], Any] | None = None,
    ) -> AsyncIterator[Result]:
        """As :meth:`get_many`, for ``async for``."""
        return Window(links, lambda link: self._engine.get(link, lang), at_once, progress).aresults()

    def refresh(self, link: str, lang: str | None = None) -> Refreshed:
        """Fetches a transcript again, now, and archives it where it has changed.

        :raises TranscriptUnavailable: nothing was fetched; what is archived stays.
        """
        return Refreshed(*self._engine.refresh(link, lang).wait())

    async def arefresh(self, link: str, lang: str | None = None) -> Refreshed:
        """As :meth:`refresh`."""
        return Refreshed(*await self._engine.refresh(link, lang))

    def import_(
        self,
        link: str,
        captions: str | bytes | os.PathLike[str],
        lang: str | None = None,
        *,
        title: str | None = None,
        author: str | None = None,
        generated: bool = False,
        replace: bool = False,
    ) -> Imported:
        """Takes captions that you have into the archive.

        :param captions: their text (WebVTT, SRT, TTML, YouTube's XML and JSON, and what youtube-transcript-api
            writes as JSON), or the path of a file as an ``os.PathLike``.
        :param lang: their language; None: the one that their header names.
        :param generated: whether a machine recognised the words.
        :param replace: whether they replace what is archived.
        :raises InvalidInput: the link, the language or the captions are none.
        """
        return Imported(
            *self._import(link, captions, lang, title, author, generated, replace).wait()
        )

    async def aimport(
        self,
        link: str,
        captions: str | bytes | os.PathLike[str],
        lang: str | None = None,
        *,
        title: str | None = None,
        author: str | None = None,
        generated: bool = False,
        replace: bool = False,
    ) -> Imported:
        """As :meth:`import_`."""
        return Imported(
            *await self._import(link, captions, lang, title, author, generated, replace)
        )

    def _import(
        self,
        link: str,
        captions: str | bytes | os.PathLike[str],
        lang: str | None,
        title: str | None,
        author: str | None,
        generated: bool,
        replace: bool,
    ) -> Pending:
        if isinstance(captions, str):
            body = captions.encode()
        elif isinstance(captions, os.PathLike):
            with open(captions, "rb") as file:
                body = file.read()
        elif isinstance(captions, (bytes, bytearray, memoryview)):
            body = bytes(captions)
        else:
            raise TypeError(f"captions must be a text, bytes or a path, not {type(captions).__name__}")
        return self._engine.import_(link, body, lang, title, author, generated, replace)

    def search(self, query: str, lang: str | None = None, *, limit: int = 100) -> list[Hit]:
        """The passages of archived transcripts that have all the words, by video and then by time.

        Case, accents and punctuation do not count. Every archived transcript is read until there are enough hits.

        :raises InvalidInput: there is no word in the query, or the language is none.
        """
        return [Hit(*hit) for hit in self._engine.search(query, lang, limit).wait()]

    async def asearch(self, query: str, lang: str | None = None, *, limit: int = 100) -> list[Hit]:
        """As :meth:`search`."""
        return [Hit(*hit) for hit in await self._engine.search(query, lang, limit)]

    def forget(self, link: str) -> None:
        """Deletes everything that is archived of a video."""
        self._engine.forget(link).wait()

    async def aforget(self, link: str) -> None:
        """As :meth:`forget`."""
        await self._engine.forget(link)

    def stats(self) -> dict[str, int]:
        """How much the archive holds: `videos`, `transcripts`."""
        stats: dict[str, int] = self._engine.stats().wait()
        return stats

    async def astats(self) -> dict[str, int]:
        """As :meth:`stats`."""
        stats: dict[str, int] = await self._engine.stats()
        return stats

    def close(self) -> None:
        """Waits for the work that is under way, and closes the archive. Afterwards every call raises `Closed`."""
        self._engine.close().wait()

    async def aclose(self) -> None:
        """As :meth:`close`."""
        await self._engine.close()

    def __enter__(self) -> Transcripts:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    async def __aenter__(self) -> Transcripts:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.aclose()

    def __repr__(self) -> str:
        return f"<{type(self).__name__}{' (closed)' if self._engine.is_closed else ''}>"


def _listed(value: str | Iterable[str] | None) -> str | list[str] | None:
    return value if value is None or isinstance(value, str) else list(value)
