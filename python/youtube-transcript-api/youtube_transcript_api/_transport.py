"""How pages are asked for: by Verbatim's own client, or by a `requests.Session` of the caller's."""

from __future__ import annotations

import json
import os
import time
from typing import Any, NamedTuple, Protocol
from urllib.request import getproxies, proxy_bypass

from verbatim import InvalidInput, StorageUnavailable, __version__
from verbatim._native import Pages

from ._errors import YouTubeRequestFailed
from .proxies import ProxyConfig

HEADERS = {"Accept-Language": "en-US", "User-Agent": f"verbatim/{__version__}"}
#: The longest wait that a refusal may name and that is waited for.
WAIT_MAX = 60.0


class Answer(NamedTuple):
    """An answer, whatever its status."""

    status: int
    body: bytes
    #: The status in words, as an HTTP error says it.
    error: str


class Transport(Protocol):
    def ask(self, video_id: str, url: str, data: dict[str, Any] | None = None, until: str | None = None) -> Answer:
        """Gets a page, or posts JSON where there is some. The body may end soon after the text `until`."""

    def consent(self, value: str) -> None:
        """Sends the consent to cookies along from now on."""


class Native:
    """Verbatim's own client. Like `requests`, it obeys the environment's proxies and certificates."""

    def __init__(self, proxy_config: ProxyConfig | None) -> None:
        proxies = proxy_config.to_requests_dict() if proxy_config is not None else {}
        # What is no text is no proxy.
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
        self._pages = Pages(proxy if isinstance(proxy, str) else None, ca_file or None)

    def ask(self, video_id: str, url: str, data: dict[str, Any] | None = None, until: str | None = None) -> Answer:
        body = None if data is None else json.dumps(data)
        tries = 0 if data is not None else self._retries
        while True:
            try:
                status, page, wait = self._pages.ask(url, list(self._headers.items()), body, until)
            except (InvalidInput, StorageUnavailable) as error:
                raise YouTubeRequestFailed(video_id, error) from error
            if status != 429 or tries <= 0 or (wait or 0.0) > WAIT_MAX:
                return Answer(status, page, f"{status} Error for url: {url}")
            # A rotating proxy asks from elsewhere the next time.
            tries -= 1
            time.sleep(wait or 0.0)

    def consent(self, value: str) -> None:
        self._headers["Cookie"] = f"CONSENT={value}"


class Borrowed:
    """A `requests.Session` of the caller's, with its headers, cookies, adapters and settings."""

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

    def ask(self, video_id: str, url: str, data: dict[str, Any] | None = None, until: str | None = None) -> Answer:
        response = self._session.get(url) if data is None else self._session.post(url, json=data)
        error = ""
        try:
            response.raise_for_status()
        except Exception as raised:  # whichever library it is: its own words
            error = str(raised)
        return Answer(response.status_code, response.content, error)

    def consent(self, value: str) -> None:
        self._session.cookies.set("CONSENT", value, domain=".youtube.com")
