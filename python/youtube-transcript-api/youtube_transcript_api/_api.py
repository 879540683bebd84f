"""The way in."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ._fetcher import TranscriptListFetcher
from ._transcripts import FetchedTranscript, TranscriptList
from ._transport import Borrowed, Native
from .proxies import ProxyConfig


class YouTubeTranscriptApi:
    """Fetches transcripts of YouTube's videos. One object may be used from several threads.

    :param proxy_config: the proxies that requests leave through.
    :param http_client: a `requests.Session`; requests then go through it, with its headers, cookies and adapters.
    """

    def __init__(self, proxy_config: ProxyConfig | None = None, http_client: Any | None = None) -> None:
        transport = Native(proxy_config) if http_client is None else Borrowed(http_client, proxy_config)
        self._fetcher = TranscriptListFetcher(transport, proxy_config)

    def fetch(
        self, video_id: str, languages: Iterable[str] = ("en",), preserve_formatting: bool = False
    ) -> FetchedTranscript:
        """The transcript of a video in the first of these languages that it has.

        :param video_id: the id, not the address.
        :param preserve_formatting: whether HTML tags of emphasis stay in the text.
        """
        return self.list(video_id).find_transcript(languages).fetch(preserve_formatting=preserve_formatting)

    def list(self, video_id: str) -> TranscriptList:
        """The transcripts that a video has."""
        return self._fetcher.fetch(video_id)
