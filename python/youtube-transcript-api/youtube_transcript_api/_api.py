"""The main class."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ._fetcher import TranscriptListFetcher
from ._transcripts import FetchedTranscript, TranscriptList
from ._transport import NativeTransport, configure_session
from .proxies import ProxyConfig


class YouTubeTranscriptApi:
    """Fetches transcripts of YouTube videos. One object serves several threads.

    :param proxy_config: proxies for all requests.
    :param http_client: a `requests.Session` that sends all requests, with its headers, cookies and adapters.
    """

    def __init__(self, proxy_config: ProxyConfig | None = None, http_client: Any | None = None) -> None:
        if http_client is None:
            http_client = NativeTransport(proxy_config)
        else:
            configure_session(http_client, proxy_config)
        self._fetcher = TranscriptListFetcher(http_client, proxy_config)

    def fetch(
        self, video_id: str, languages: Iterable[str] = ("en",), preserve_formatting: bool = False
    ) -> FetchedTranscript:
        """Fetches the transcript of a video in the first available language.

        :param video_id: the id, not the URL.
        :param preserve_formatting: whether to keep HTML formatting tags in the text.
        """
        return self.list(video_id).find_transcript(languages).fetch(preserve_formatting=preserve_formatting)

    def list(self, video_id: str) -> TranscriptList:
        """Lists the transcripts of a video."""
        return self._fetcher.fetch(video_id)
