"""HTTP transports: Verbatim's client, or a `requests.Session`."""

from __future__ import annotations

import json
import os
import re
import sys
import threading
import time
from http import HTTPStatus
from typing import Any, NamedTuple, Protocol

from verbatim_transcripts import InvalidInput, StorageUnavailable, __version__
from verbatim_transcripts._native import PageTransport

from ._errors import YouTubeRequestFailed
from ._proxy_urls import choose_proxy, configured_proxy, environment_proxy
from .proxies import InvalidProxyConfig, ProxyConfig

HEADERS = {"Accept-Language": "en-US", "User-Agent": f"verbatim/{__version__}"}
#: The longest `Retry-After` that is waited for, and the time in which failures are repeated, in seconds.
WAIT_MAX = 60.0
#: Parts of the native client's messages: failures before a request was sent, and after it.
UNSENT = ("could not be reached", "proxy rejected the credentials")
UNANSWERED = ("ended early", "took too long")


class Response(NamedTuple):
    """A response with any status."""

    status: int
    body: bytes
    #: The message of an HTTP error, or an empty text.
    error: str
    #: Whether the transport used up its retries after a 429.
    was_retried: bool = False


class Transport(Protocol):
    #: The session that sends the requests.
    http_client: Any

    def request(
        self, video_id: str, url: str, data: dict[str, Any] | None = None, until: str | None = None
    ) -> Response:
        """Sends GET, or POST with JSON `data`. The body may end soon after the text `until`."""
        ...

    def consent(self, value: str) -> None:
        """Adds the cookie consent to later requests."""


class NativeTransport:
    """Verbatim's client. As `requests`, it uses the proxies and certificates of the environment."""

    def __init__(self, proxy_config: ProxyConfig | None) -> None:
        self._proxy_config = proxy_config
        self._proxy = None if proxy_config is None else configured_proxy(proxy_config)
        self._headers = dict(HEADERS)
        self._retries = 0
        if proxy_config is not None:
            self._retries = int(proxy_config.retries_when_blocked)
            if proxy_config.prevent_keeping_connections_alive:
                self._headers["Connection"] = "close"
        self._pages: tuple[str | None, str | None, PageTransport] | None = None
        self._session: SessionTransport | None = None
        self._lock = threading.Lock()

    def __reduce__(self) -> tuple[Any, ...]:
        # The native client holds connections; a copy opens its own.
        state = {"_headers": self._headers, "_session": self._session}
        return (type(self), (self._proxy_config,), state)

    @property
    def http_client(self) -> Any:
        """A session with the same headers, proxies and certificates. From the first access on it sends all requests."""
        with self._lock:
            if self._session is None:
                session = new_session()
                configure_session(session, self._proxy_config)
                if self._proxy is not None:
                    # Otherwise the proxies of the environment win.
                    session.trust_env = False
                    session.verify = environment_ca_file() or True
                created = SessionTransport(session)
                if "Cookie" in self._headers:
                    created.consent(self._headers["Cookie"].removeprefix("CONSENT="))
                self._session = created
            return self._session.http_client

    @http_client.setter
    def http_client(self, http_client: Any) -> None:
        with self._lock:
            self._session = SessionTransport(http_client)

    def request(
        self, video_id: str, url: str, data: dict[str, Any] | None = None, until: str | None = None
    ) -> Response:
        if self._session is not None:
            return self._session.request(video_id, url, data, until)
        json_body = None if data is None else json.dumps(data)
        retries = self._retries
        repeats_end = time.monotonic() + WAIT_MAX
        while True:
            proxy = self._proxy
            try:
                proxy = proxy or environment_proxy()
                headers = list(self._headers.items())
                status, body, wait = self._client(proxy).fetch(url, headers, json_body, until)
            except (InvalidInput, InvalidProxyConfig, StorageUnavailable) as error:
                if retries > 0 and time.monotonic() < repeats_end and is_repeatable(error, data is not None):
                    retries -= 1
                    continue
                error.args = (name_variables(str(error)),)
                raise make_request_error(video_id, error, proxy is not None) from error
            is_refused = data is None and (status == 429 or (status == 503 and wait is not None))
            if not is_refused or retries <= 0 or (wait or 0.0) > WAIT_MAX:
                was_retried = data is None and 0 < self._retries and retries <= 0
                return Response(status, body, describe_status(status, url), was_retried)
            # A rotating proxy uses another address for the retry.
            retries -= 1
            time.sleep(wait or 0.0)

    def consent(self, value: str) -> None:
        with self._lock:
            self._headers["Cookie"] = f"CONSENT={value}"
            if self._session is not None:
                self._session.consent(value)

    def _client(self, proxy: str | None) -> PageTransport:
        """Returns the client for the proxy and the certificates that the environment names now."""
        ca_file = environment_ca_file()
        pages = self._pages
        if pages is None or pages[:2] != (proxy, ca_file):
            pages = (proxy, ca_file, PageTransport(proxy, ca_file))
            self._pages = pages
        return pages[2]


class SessionTransport:
    """A `requests.Session`, or an object with its methods: with its headers, cookies, adapters and settings."""

    def __init__(self, http_client: Any) -> None:
        self.http_client = http_client

    def request(
        self, video_id: str, url: str, data: dict[str, Any] | None = None, until: str | None = None
    ) -> Response:
        client = self.http_client
        response = client.get(url) if data is None else client.post(url, json=data)
        status = getattr(response, "status_code", None)
        # Programs' tests use mocks, whose status can be any object.
        status = status if isinstance(status, int) else 200
        error = ""
        check = getattr(response, "raise_for_status", None)
        if check is None:
            error = describe_status(status, url)
        else:
            try:
                check()
            except Exception as raised:  # the message of the session's library
                error = str(raised) or type(raised).__name__
        return Response(status, b"" if error else read_body(response), error)

    def consent(self, value: str) -> None:
        self.http_client.cookies.set("CONSENT", value, domain=".youtube.com")


def as_transport(http_client: Any) -> Transport:
    """Returns a transport for a session; a transport is returned as it is."""
    is_transport = isinstance(http_client, (NativeTransport, SessionTransport))
    return http_client if is_transport else SessionTransport(http_client)


def environment_ca_file() -> str | None:
    return os.environ.get("REQUESTS_CA_BUNDLE") or os.environ.get("CURL_CA_BUNDLE") or None


def name_variables(message: str) -> str:
    """Returns a message of the native client with the variable in place of its keyword, which users do not set."""
    # The path after it can contain the word, too.
    return re.sub(r"(?<!\S)ca_file\b", "REQUESTS_CA_BUNDLE", message, count=1)


def is_repeatable(error: Exception, is_post: bool) -> bool:
    """Returns whether urllib3 repeats a request after this failure: a POST only if it was not sent."""
    return any(part in str(error) for part in (UNSENT if is_post else UNSENT + UNANSWERED))


def new_session() -> Any:
    try:
        from requests import Session
    except ImportError as error:
        raise ImportError("_http_client is a requests.Session: pip install requests") from error
    return Session()


def configure_session(session: Any, proxy_config: ProxyConfig | None) -> None:
    """Sets language, proxies and retries of a session."""
    session.headers.update({"Accept-Language": "en-US"})
    if proxy_config is None:
        return
    session.proxies = proxy_config.to_requests_dict()
    choose_proxy(session.proxies)
    if proxy_config.prevent_keeping_connections_alive:
        session.headers.update({"Connection": "close"})
    if proxy_config.retries_when_blocked > 0:
        from requests.adapters import HTTPAdapter
        from urllib3 import Retry

        retry = Retry(total=proxy_config.retries_when_blocked, status_forcelist=[429])
        for scheme in ("http://", "https://"):
            session.mount(scheme, HTTPAdapter(max_retries=retry))


def read_body(response: Any) -> bytes:
    """Returns the body of a response; mocks of programs' tests have only `text` or `json()`."""
    content = getattr(response, "content", None)
    if isinstance(content, bytes):
        return content
    text = getattr(response, "text", None)
    return text.encode() if isinstance(text, str) else json.dumps(response.json()).encode()


def describe_status(status: int, url: str) -> str:
    """Returns the message for a status of 400 and above, with the start that programs match."""
    if status < 400:
        return ""
    try:
        phrase = f": {HTTPStatus(status).phrase}"
    except ValueError:
        phrase = ""
    return f"{status} {'Client' if status < 500 else 'Server'} Error{phrase} for url: {url}"


def make_request_error(video_id: str, error: Exception, has_proxy: bool) -> YouTubeRequestFailed:
    """Returns the exception for a request without a response; it is one of `requests`, too, if that is imported."""
    if "requests" not in sys.modules:
        return YouTubeRequestFailed(video_id, error)
    from ._network_errors import make_error

    return make_error(video_id, error, has_proxy)
