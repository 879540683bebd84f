"""The main class."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, NoReturn

from ._fetcher import TranscriptListFetcher
from ._transcripts import FetchedTranscript, TranscriptList
from ._transport import NativeTransport, configure_session
from .proxies import ProxyConfig

#: Arguments that earlier versions had, with their replacements.
REMOVED_ARGUMENTS = {
    "cookies": "http_client=, a requests.Session with the cookies",
    "cookie_path": "http_client=, a requests.Session with the cookies",
    "proxies": "proxy_config=, for example GenericProxyConfig(url)",
}


def __getattr__(name: str) -> Any:
    """Returns the names of `requests` and `urllib3` that programs import from here or patch."""
    if name in ("Session", "HTTPAdapter", "Retry"):
        import requests.adapters
        import urllib3

        return {"Session": requests.Session, "HTTPAdapter": requests.adapters.HTTPAdapter, "Retry": urllib3.Retry}[name]
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


class RemovedMethod:
    """A method of earlier versions: access to it raises an `AttributeError` with the replacement."""

    def __init__(self, replacement: str) -> None:
        self._replacement = replacement

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __get__(self, instance: object, owner: type) -> NoReturn:
        of = f"type object {owner.__name__!r}" if instance is None else f"{owner.__name__!r} object"
        replacement = f"{owner.__name__}().{self._replacement}"
        message = f"{of} has no attribute {self._name!r}: version 1.2 removed it; use {replacement}"
        raise AttributeError(message, name=self._name, obj=instance or owner)


class YouTubeTranscriptApi:
    """Fetches transcripts of YouTube videos. One object serves several threads.

    :param proxy_config: proxies for all requests.
    :param http_client: a `requests.Session` that sends all requests, with its headers, cookies and adapters.
    """

    # For type checkers these do not exist: access to a `NoReturn` is no error for them, and ends their check.
    if not TYPE_CHECKING:
        get_transcript = RemovedMethod("fetch(video_id).to_raw_data()")
        get_transcripts = RemovedMethod("fetch(video_id).to_raw_data(), once per video")
        list_transcripts = RemovedMethod("list(video_id)")

    def __init__(
        self, proxy_config: ProxyConfig | None = None, http_client: Any | None = None, **removed: NoReturn
    ) -> None:
        for name in removed:
            hint = f": use {REMOVED_ARGUMENTS[name]}" if name in REMOVED_ARGUMENTS else ""
            raise TypeError(f"{type(self).__name__}.__init__() got an unexpected keyword argument {name!r}{hint}")
        if http_client is None and "Session" in globals():
            # The program has patched the class of sessions in this module.
            http_client = globals()["Session"]()
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
