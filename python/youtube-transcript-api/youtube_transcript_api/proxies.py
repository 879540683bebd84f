"""Proxy settings."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TypedDict


class InvalidProxyConfig(Exception):
    """The settings contain no proxy."""


class RequestsProxyConfigDict(TypedDict):
    """Proxies by scheme, in the format of `requests`."""

    http: str
    https: str


class ProxyConfig(ABC):
    """Base class of proxy settings."""

    @abstractmethod
    def to_requests_dict(self) -> RequestsProxyConfigDict:
        """Returns the proxies by scheme, in the format of `requests`."""

    @property
    def prevent_keeping_connections_alive(self) -> bool:
        """Whether every request opens a new connection, as rotating proxies require."""
        return False

    @property
    def retries_when_blocked(self) -> int:
        """The number of attempts while YouTube blocks requests; 0 means one attempt."""
        return 0


class GenericProxyConfig(ProxyConfig):
    """An HTTP, HTTPS or SOCKS proxy. One URL serves both schemes.

    :raises InvalidProxyConfig: both URLs are missing.
    """

    def __init__(self, http_url: str | None = None, https_url: str | None = None) -> None:
        if not http_url and not https_url:
            raise InvalidProxyConfig("no proxy: set http_url, https_url, or both")
        self.http_url = http_url
        self.https_url = https_url

    def to_requests_dict(self) -> RequestsProxyConfigDict:
        http, https = self.http_url or self.https_url, self.https_url or self.http_url
        assert http is not None and https is not None
        return {"http": http, "https": https}


class WebshareProxyConfig(GenericProxyConfig):
    """Webshare's rotating residential proxies.

    :param filter_ip_locations: country codes of the proxies to use.
    """

    DEFAULT_DOMAIN_NAME = "p.webshare.io"
    DEFAULT_PORT = 80

    def __init__(
        self,
        proxy_username: str,
        proxy_password: str,
        filter_ip_locations: list[str] | None = None,
        retries_when_blocked: int = 10,
        domain_name: str = DEFAULT_DOMAIN_NAME,
        proxy_port: int = DEFAULT_PORT,
    ) -> None:
        self.proxy_username = proxy_username
        self.proxy_password = proxy_password
        self.domain_name = domain_name
        self.proxy_port = proxy_port
        self._filter_ip_locations = filter_ip_locations or []
        self._retries_when_blocked = retries_when_blocked

    @property
    def url(self) -> str:
        user = self.proxy_username.removesuffix("-rotate")
        countries = "".join(f"-{code.upper()}" for code in self._filter_ip_locations)
        return f"http://{user}{countries}-rotate:{self.proxy_password}@{self.domain_name}:{self.proxy_port}/"

    @property
    def http_url(self) -> str:  # type: ignore[override]
        return self.url

    @property
    def https_url(self) -> str:  # type: ignore[override]
        return self.url

    @property
    def prevent_keeping_connections_alive(self) -> bool:
        return True

    @property
    def retries_when_blocked(self) -> int:
        return self._retries_when_blocked
