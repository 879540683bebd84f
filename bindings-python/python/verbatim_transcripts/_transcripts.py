"""Transcripts from an archive and suppliers."""

from __future__ import annotations

import datetime
import os
from collections.abc import AsyncGenerator, AsyncIterable, Callable, Generator, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ._chunk import Track
from ._closable import Closable
from ._events import Event
from ._export_folder import PAGE, aexport_files, aimport_files, export_files, import_files
from ._native import Batch, Engine, PendingCall, SearchParams, Transcript, _check_call
from ._options import as_list, caption_bytes, proxy_list
from ._outcomes import ImportOutcome, RefreshOutcome, SearchHit
from ._search import ArchiveSearch, check_page_size
from ._video_list import ListedVideo, VideoList, read_channel, read_playlist, read_search

if TYPE_CHECKING:
    from ._batch import BatchResult, BatchRun
    from ._ports import Archive, KeyValueStore, Supplier

__all__ = ["Transcripts"]


class Transcripts(Closable):
    """An archive in front of suppliers: a fetched transcript is stored permanently.

    Methods that wait have an awaitable twin with the prefix ``a``, for any event loop of asyncio. One object serves any
    number of threads, event loops and processes; each process opens its own files and connections. ``~`` at the start
    of a path is the home folder.

    :param archive: a path, ``"sqlite:///file.db"`` (four slashes for an absolute path),
        ``"postgresql://user@host/database"``, or a custom archive: a :class:`verbatim_transcripts.KeyValueStore` or a
        :class:`verbatim_transcripts.Archive`. None or ``":memory:"``: the memory of this process, up to 64 MiB (about
        300 hours of speech); beyond that the least recently written videos are evicted.
    :param suppliers: sources of transcripts that are not archived, called in order: names (``"youtube-captions"``,
        ``"tiktok-captions"``, ``"x-captions"``, ``"yt-dlp"``, ``"verbatim-service"``, ``"speech-to-text"``) and
        custom suppliers (:class:`verbatim_transcripts.Supplier`). None: the platforms; ``[]``: no supplier.
    :param proxies: proxies for all requests, used in rotation: ``http://``, ``https://`` or ``socks5://``, with user
        and password if required; or a mapping, as ``requests`` takes it, with a proxy for ``https``.
    :param timeout: seconds after which a call fails with :class:`verbatim_transcripts.FetchFailed`; this cancels the
        fetch, unless other callers wait for it. None: no timeout besides those of the fetch.
    :param request_timeout: timeout of one request in seconds (20).
    :param retries: retries of a request after a transient failure (2).
    :param concurrency: maximum number of requests, and of videos of a built-in supplier, at the same time (32). It is
        always 2 for yt-dlp and 4 for speech-to-text; custom suppliers have no limit.
    :param ca_file: a PEM file with root certificates to trust in addition to those of the system.
    :param ytdlp: the yt-dlp program; by default the last supplier.
    :param speech: an OpenAI-compatible speech-to-text service: ``(base_url, model, api_key or None)``.
    :param server: another Verbatim server as a supplier: ``(base_url, api_key)``.
    :param breaker_threshold: number of consecutive failing videos of a platform that pauses a supplier (5); 0: never.
        An exception of a custom supplier that is not a :class:`verbatim_transcripts.SupplyError`, or an invalid
        transcript of it, does not count.
    :param breaker_cooldown: seconds of the first pause (0.25); each further one is twice as long.
    :param breaker_cooldown_max: seconds of the longest pause (900).
    :param on_event: called with each :class:`verbatim_transcripts.Event` shortly after it, on threads of the package,
        which may run it at the same time and out of order: stages of a fetch, calls of suppliers, and changes of their
        circuit breakers. The logger ``verbatim_transcripts`` receives retries, pauses, failures and exceptions of
        custom components, whether or not there is a hook.
    :param youtube_clients: client identities for requests to YouTube, such as ``"android@21.26.364"``.

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
        archive: str | os.PathLike[str] | Archive | KeyValueStore | None = None,
        suppliers: Iterable[str | Supplier] | None = None,
        proxies: str | Iterable[str] | Mapping[str, str] | None = None,
        *,
        timeout: float | None = None,
        request_timeout: float | None = None,
        retries: int | None = None,
        concurrency: int | None = None,
        ca_file: str | os.PathLike[str] | None = None,
        ytdlp: str | os.PathLike[str] | None = None,
        speech: tuple[str, str, str | None] | None = None,
        server: tuple[str, str] | None = None,
        youtube_clients: Iterable[str] | None = None,
        breaker_threshold: int | None = None,
        breaker_cooldown: float | None = None,
        breaker_cooldown_max: float | None = None,
        on_event: Callable[[Event], object] | None = None,
    ) -> None:
        self._engine = Engine(
            {
                "archive": archive,
                "suppliers": suppliers,
                "proxies": proxy_list(proxies),
                "timeout": timeout,
                "request_timeout": request_timeout,
                "retries": retries,
                "concurrency": concurrency,
                "ca_file": ca_file,
                "ytdlp": ytdlp,
                "speech": speech,
                "server": server,
                "youtube_clients": as_list(youtube_clients),
                "breaker_threshold": breaker_threshold,
                "breaker_cooldown": breaker_cooldown,
                "breaker_cooldown_max": breaker_cooldown_max,
                "on_event": on_event,
            }
        )

    def get(
        self,
        link: str,
        lang: str | Sequence[str] | None = None,
        *,
        translated: bool = False,
        fetch: bool = True,
        timeout: float | None = None,
    ) -> Transcript:
        """Returns the transcript of a video from the archive, or fetches and archives it.

        :param link: a link in any common form, or a YouTube id.
        :param lang: a BCP 47 tag, or several in order of preference; None: English if there is one, otherwise the
            spoken language.
        :param translated: whether a machine translation counts as a transcript in its language.
        :param fetch: whether to fetch a transcript that is not archived.
        :param timeout: seconds after which the call fails, without the time in which the archive opens or is read;
            None: those of the object.
        :raises TranscriptUnavailable: there is no transcript; see its ``reason``.
        :raises InvalidInput: the link or the language is malformed.
        :raises StorageError: the archive failed.
        :raises ClosedError: the object is closed.
        """
        return self._engine.get_now(link, lang, translated, fetch, timeout)

    async def aget(
        self,
        link: str,
        lang: str | Sequence[str] | None = None,
        *,
        translated: bool = False,
        fetch: bool = True,
        timeout: float | None = None,
    ) -> Transcript:
        """As :meth:`get`. Cancelling it cancels the fetch, unless other callers wait for it."""
        transcript: Transcript = await self._engine.get(link, lang, translated, fetch, timeout)
        return transcript

    def languages(self, link: str, *, fetch: bool = True, timeout: float | None = None) -> list[Track]:
        """Returns the tracks of a video: the languages in which it has captions.

        The tracks of an archived video are those of its last fetch; :meth:`refresh` renews them. Languages into which
        the platform can translate are not listed.

        :param fetch: whether to fetch a video of which no track is known; its default transcript is then archived.
        :param timeout: seconds after which the fetch fails, without the time in which a short link is resolved; None:
            those of the object.
        :raises TranscriptUnavailable: the video has no captions, or the fetch failed.
        :raises InvalidInput: the link is malformed.
        """
        return [Track(*track) for track in self._engine.languages(link, fetch, timeout).wait()]

    async def alanguages(self, link: str, *, fetch: bool = True, timeout: float | None = None) -> list[Track]:
        """As :meth:`languages`."""
        return [Track(*track) for track in await self._engine.languages(link, fetch, timeout)]

    def playlist(
        self, link: str, *, limit: int | None = None, since: datetime.date | None = None
    ) -> VideoList:
        """Returns the videos of a YouTube playlist, for ``for``, ``async for`` and :meth:`get_many`.

        :param link: a link to the playlist, also to one of its videos, or its id. It is requested on iteration.
        :param limit: the maximum number of videos.
        :param since: leaves out videos that were surely published before this day (in UTC) or this time (with a time
            zone). Lists name most dates relatively, such as "2 weeks ago", so some older videos may remain.
        :raises InvalidInput: the link names no playlist, one of the logged-in viewer, or a mix, which never ends.

        >>> with Transcripts(suppliers=[]) as transcripts:
        ...     videos = transcripts.playlist("https://youtu.be/dQw4w9WgXcQ?list=PL0123456789abcdef", limit=200)
        >>> videos.url
        'https://www.youtube.com/playlist?list=PL0123456789abcdef'
        """
        return read_playlist(self._engine, link, limit, since)

    def channel(
        self,
        link: str,
        tab: str | None = None,
        *,
        limit: int | None = None,
        since: datetime.date | None = None,
    ) -> VideoList:
        """Returns the videos of a YouTube channel or a TikTok profile, the newest first, as :meth:`playlist` does.

        :param link: a link to the channel, its id, or its handle such as ``"@name"``; or a link to the profile, which
            only yt-dlp lists.
        :param tab: ``videos``, ``shorts`` or ``streams``; None: that of the link, otherwise ``videos``.
        :param since: as for :meth:`playlist`; no page is read after one that ends with an older video. Shorts have no
            dates.
        :raises InvalidInput: the link names no channel.

        >>> with Transcripts(suppliers=[]) as transcripts:
        ...     transcripts.channel("@name", "streams", since=datetime.date(2026, 1, 1))
        <VideoList https://www.youtube.com/@name/streams>
        """
        return read_channel(self._engine, link, tab, limit, since)

    def youtube_search(
        self, words: str, *, limit: int | None = None, since: datetime.date | None = None
    ) -> VideoList:
        """Returns the videos that YouTube finds for these words, the best matches first, as :meth:`playlist` does.

        It searches YouTube; :meth:`search_videos` searches the archive.

        :param words: at most 200 characters.
        :param limit: the maximum number of videos. A search ends after at most 1,000.
        :raises InvalidInput: there are no words, or too many.

        >>> with Transcripts(suppliers=[]) as transcripts:
        ...     transcripts.youtube_search("tide mills", limit=20)
        <VideoList https://www.youtube.com/results?search_query=tide+mills>
        """
        return read_search(self._engine, words, limit, since)

    def get_many(
        self,
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
        """Yields the transcripts of many videos, in the order of completion or of ``links``.

        A failure is a result and does not stop the others. Links are read from ``links`` as permits become free, so it
        can be an endless generator. Leaving the loop cancels the running fetches.

        ``links`` may be a :meth:`playlist`, a :meth:`channel` or a :meth:`youtube_search`, and have their videos in
        place of links. If such a list or another iterable raises an exception, the results of the links before it come
        first, then the exception.

        The other arguments are those of :meth:`get`.

        :param concurrency: maximum number of concurrent fetches.
        :param progress: called with the number of results so far and the latest result.
        :param max_wait: seconds that the batch waits for a platform that throttles, and for a supplier that is paused
            after failures, without a success in between (300). Then the other links of that platform fail. 0: such
            links fail at once. A fetch that failed without a named wait is repeated after 1 and then 2 seconds, unless
            it failed through a defect of a custom supplier. A link that fails again after such waits is requested
            three times at most. A throttled page of a list is waited for as long.
        :param in_order: whether to yield the results in the order of ``links``. At most four times ``concurrency``
            links are then read before the first unfinished one.

        >>> with Transcripts(suppliers=[]) as transcripts:
        ...     results = list(transcripts.get_many(["https://youtu.be/dQw4w9WgXcQ", "no link"]))
        >>> sorted(type(result.error).__name__ for result in results)
        ['InvalidInput', 'NotConfigured']
        """
        run = self._run(links, lang, translated, fetch, timeout, concurrency, progress, max_wait, in_order)
        return run.results()

    def aget_many(
        self,
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
        """As :meth:`get_many`, for ``async for``.

        ``links`` may also be an async iterable, such as ``(video async for video in videos if video.duration)``. Other
        iterables must not block: the event loop waits for their next link, except for lists as :meth:`playlist`
        returns them.
        """
        from ._batch import async_links

        run = self._run(
            async_links(links), lang, translated, fetch, timeout, concurrency, progress, max_wait, in_order
        )
        return run.aresults()

    def _run(
        self,
        links: Iterable[str | ListedVideo],
        lang: str | Sequence[str] | None,
        translated: bool,
        fetch: bool,
        timeout: float | None,
        concurrency: int,
        progress: Callable[[int, BatchResult], Any] | None,
        max_wait: float | None,
        in_order: bool,
    ) -> BatchRun:
        from ._batch import BatchRun

        _check_call(lang, translated, fetch, timeout)

        def start(link: str, batch: Batch) -> PendingCall:
            return self._engine.get(link, lang, translated, fetch, timeout, batch)

        return BatchRun(links, lang, start, concurrency, progress, max_wait, in_order)

    def refresh(self, link: str, lang: str | None = None, *, translated: bool = False) -> RefreshOutcome:
        """Fetches a transcript again, and archives it if it has changed.

        :param translated: as for :meth:`get`.
        :raises TranscriptUnavailable: the fetch failed; the archived transcript stays.
        """
        return RefreshOutcome(*self._engine.refresh(link, lang, translated).wait())

    async def arefresh(self, link: str, lang: str | None = None, *, translated: bool = False) -> RefreshOutcome:
        """As :meth:`refresh`."""
        return RefreshOutcome(*await self._engine.refresh(link, lang, translated))

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
    ) -> ImportOutcome:
        """Imports captions into the archive.

        :param captions: the text of the captions (WebVTT, SRT, TTML, YouTube's XML and JSON, the JSON of
            youtube-transcript-api), or the path of a file as an ``os.PathLike``.
        :param lang: the language; None: the language in the header of the captions.
        :param generated: whether the captions come from speech recognition.
        :param replace: whether to replace an archived transcript.
        :raises InvalidInput: the link, the language or the captions are malformed.
        """
        body = caption_bytes(captions)
        outcome = self._engine.import_(link, body, lang, title, author, generated, replace).wait()
        return ImportOutcome(*outcome)

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
    ) -> ImportOutcome:
        """As :meth:`import_`."""
        body = caption_bytes(captions)
        outcome = await self._engine.import_(link, body, lang, title, author, generated, replace)
        return ImportOutcome(*outcome)

    def search(self, query: str, lang: str | None = None, *, limit: int = 100) -> list[SearchHit]:
        """Returns passages of archived transcripts that contain all words, ordered by video and time.

        The search ignores case, accents and punctuation, and has no operators. :meth:`search_videos` has operators and
        ranks its hits. It scans the archive until it has enough hits.

        :raises InvalidInput: the query has no word, or the language is malformed.
        """
        return [SearchHit(*hit) for hit in self._engine.search(query, lang, limit).wait()]

    async def asearch(self, query: str, lang: str | None = None, *, limit: int = 100) -> list[SearchHit]:
        """As :meth:`search`."""
        return [SearchHit(*hit) for hit in await self._engine.search(query, lang, limit)]

    def search_videos(
        self,
        query: str,
        lang: str | None = None,
        *,
        platform: str | None = None,
        sort: str = "relevance",
        page_size: int = 20,
    ) -> ArchiveSearch:
        """Finds the videos of the archive whose transcripts match, best first, with their best moments.

        All words must occur, in any order and form. ``"exact phrase"``, ``-not``, ``OR``, ``prefix*``, ``lang:``,
        ``platform:``, ``channel:``, ``before:`` and ``after:`` narrow the search; anything malformed is searched as
        words. The first search of an archive builds its index, which later ones update. :meth:`search` finds passages
        without an index.

        :param sort: ``relevance``, or ``date`` for the newest video first.
        :param page_size: how many hits are read at a time, from 1 to 100.
        :raises InvalidInput: the language is malformed.
        :raises ValueError: the platform, the order or the size is none.
        """
        check_page_size(page_size)
        params = SearchParams(query, lang, platform, sort, page_size)
        return ArchiveSearch(lambda cursor: self._engine.search_videos(params, cursor))

    def archived(self) -> Generator[Transcript, None, None]:
        """Yields all archived transcripts, ordered by video.

        :raises StorageCorrupt: a transcript cannot be read.
        """
        after: str | None = None
        while True:
            page, after = self._engine.archived(after, PAGE).wait()
            yield from page
            if after is None:
                return

    async def aarchived(self) -> AsyncGenerator[Transcript, None]:
        """As :meth:`archived`, for ``async for``."""
        after: str | None = None
        while True:
            page, after = await self._engine.archived(after, PAGE)
            for transcript in page:
                yield transcript
            if after is None:
                return

    def export(self, folder: str | os.PathLike[str], format: str = "json", *, replace: bool = False) -> int:
        """Writes all archived transcripts to files, ``PLATFORM/VIDEO/LANGUAGE.FORMAT``; returns their number.

        The folder has the newest revision of each transcript. With ``json`` it also has the metadata of the videos, and
        a ``withdrawn.json`` for each video that the operator has withdrawn. Absences and the times of archiving are not
        exported.

        :param format: ``json``, which :meth:`import_folder` reads, or ``txt``, ``md``, ``srt`` or ``vtt``.
        :param replace: whether to replace files with other content.
        :raises FileExistsError: files with other content were kept. The others are written.
        :raises StorageCorrupt: a transcript cannot be read, or a video cannot be listed. The others are written.
        :raises OSError: a file cannot be written.
        """
        return export_files(self._engine, folder, format, replace)

    async def aexport(
        self, folder: str | os.PathLike[str], format: str = "json", *, replace: bool = False
    ) -> int:
        """As :meth:`export`. The files are written on a thread of the event loop's pool."""
        return await aexport_files(self._engine, folder, format, replace)

    def import_folder(self, folder: str | os.PathLike[str], *, replace: bool = False) -> list[ImportOutcome]:
        """Imports the JSON files in a folder and its subfolders: those of :meth:`export`, and any that names its video.

        A ``withdrawn.json`` withdraws its video: its transcripts are no longer found, and nothing else of its folder is
        imported. :meth:`import_` imports other captions.

        :param replace: whether to replace archived transcripts.
        :raises InvalidInput: a file is no transcript, or does not name its video. The files before it are imported.
        :raises ConflictError: a video was withdrawn before. The files before it are imported.
        :raises OSError: the folder or a file cannot be read.
        """
        return import_files(self._engine, folder, replace)

    async def aimport_folder(
        self, folder: str | os.PathLike[str], *, replace: bool = False
    ) -> list[ImportOutcome]:
        """As :meth:`import_folder`. The files are read on a thread of the event loop's pool."""
        return await aimport_files(self._engine, folder, replace)

    def delete(self, link: str) -> None:
        """Deletes all archived data of a video."""
        self._engine.delete(link).wait()

    async def adelete(self, link: str) -> None:
        """As :meth:`delete`."""
        await self._engine.delete(link)

    def stats(self) -> dict[str, int]:
        """Returns the totals of the archive: `videos`, `transcripts`."""
        stats: dict[str, int] = self._engine.stats().wait()
        return stats

    async def astats(self) -> dict[str, int]:
        """As :meth:`stats`."""
        stats: dict[str, int] = await self._engine.stats()
        return stats

    def close(self) -> None:
        """Waits for running fetches and closes the archive. Later calls raise `ClosedError`, as does a call that is
        still opening the archive; it is waited for, too, as is a mail that is being sent, for at most 30 seconds.
        """
        self._engine.close().wait()

    async def aclose(self) -> None:
        """As :meth:`close`."""
        await self._engine.close()

    def __repr__(self) -> str:
        return f"<{type(self).__name__}{' (closed)' if self._engine.is_closed else ''}>"
