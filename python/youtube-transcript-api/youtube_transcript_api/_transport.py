"""HTTP transports: Verbatim's client, or a `requests.Session` of the caller."""

from __future__ import annotations

import json
import os
import time
from typing import Any, NamedTuple, Protocol
from urllib.request import getproxies, proxy_bypass

from verbatim_transcripts import InvalidInput, StorageUnavailable, __version__
from verbatim_transcripts._native import PageTransport

from ._errors import YouTubeRequestFailed
from .proxies import ProxyConfig

HEADERS = {"Accept-Language": "en-US", "User-Agent": f"verbatim/{__version__}"}
#: The longest `Retry-After` of a 429 that is waited for, in seconds.
WAIT_MAX = 60.0


class Response(NamedTuple):
    """A response with any status."""

    status: int
    body: bytes
    #: The message of an HTTP error with this status.
    error: str


class Transport(Protocol):
    def request(
        self, video_id: str, url: str, data: dict[str, Any] | None = None, until: str | None = None
    ) -> Response:
        """Sends GET, or POST with JSON `data`. The body may end soon after the text `until`."""

    def consent(self, value: str) -> None:
        """Adds the cookie consent to later requests."""


class NativeTransport:
    """Verbatim's client. As `requests`, it uses the proxies and certificates of the environment."""

    def __init__(self, proxy_config: ProxyConfig | None) -> None:
        proxies = proxy_config.to_requests_dict() if proxy_config is not None else {}
        # Values that are not strings are ignored.
        proxy = proxies.get("https") if isinstance(proxies, dict) else None
        if not isinstance(proxy, str) and not proxy_bypass("www.youtube.com"):
            from_environment = getproxies()
            proxy = from_environment.get("https") or from_environment.get("all")
        ca_file = os.environ.get("REQUESTS_CA_BUNDLE") or os.environ.get("CURL_CA_BUNDLE")
        self._headers = dict(HEADERS)
        self._retries = 0
        if proxy_config is not None:
            self._retries = int(proxy_config.retries_when_blocked)
            if proxy_config.prevent_keeping_connections_alive:
                self._headers["Connection"] = "close"
        self._pages = PageTransport(proxy if isinstance(proxy, str) else None, ca_file or None)

    def request(
        self, video_id: str, url: str, data: dict[str, Any] | None = None, until: str | None = None
    ) -> Response:
        json_body = None if data is None else json.dumps(data)
        retries = 0 if data is not None else self._retries
        while True:
            try:
                status, body, wait = self._pages.fetch(url, list(self._headers.items()), json_body, until)
            except (InvalidInput, StorageUnavailable) as error:
                raise YouTubeRequestFailed(video_id, error) from error
            if status != 429 or retries <= 0 or (wait or 0.0) > WAIT_MAX:
                return Response(status, body, f"{status} Error for url: {url}")
            # A rotating proxy uses another address for the retry.
            retries -= 1
            time.sleep(wait or 0.0)

    def consent(self, value: str) -> None:
        self._headers["Cookie"] = f"CONSENT={value}"


class SessionTransport:
    """A `requests.Session` of the caller, with its headers, cookies, adapters and settings."""

    def __init__(self, session: Any, proxy_config: ProxyConfig | None) -> None:
        session.headers.update({"Accept-Language": "en-US"})
        if proxy_config is not None:
            session.proxies = proxy_config.to_requests_dict()
            if proxy_config.prevent_keeping_connections_alive:
                session.headers.update({"Connection": "close"})
            if proxy_config.retries_when_blocked > 0:
                from requests.adapters import HTTPAdapter
                from urllib3 import Retry

                retry = Retry(total=proxy_config.retries_when_blocked, status_forcelist=[429])
                for scheme in ("http://", "https://"):
                    session.mount(scheme, HTTPAdapter(max_retries=retry))
        self._session = session

    def request(
        self, video_id: str, url: str, data: dict[str, Any] | None = None, until: str | None = None
    ) -> Response:
        response = self._session.get(url) if data is None else self._session.post(url, json=data)
        error = ""
        try:
            response.raise_for_status()
        except Exception as raised:  # the message of the session's library
            error = str(raised)
        return Response(response.status_code, response.content, error)

    def consent(self, value: str) -> None:
        self._session.cookies.set("CONSENT", value, domain=".youtube.com")
