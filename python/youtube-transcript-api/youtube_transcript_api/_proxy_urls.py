"""Choice of the proxy for requests to YouTube: as `requests` chooses, but unusable settings are errors."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from functools import lru_cache
from typing import Any
from urllib.request import getproxies, proxy_bypass

from .proxies import InvalidProxyConfig, ProxyConfig

HOST = "www.youtube.com"
#: Keys of proxies, the most specific first.
KEYS = (f"https://{HOST}", "https", f"all://{HOST}", "all")
#: Keys of `requests` that name no proxy.
OTHER_KEYS = ("no", "no_proxy")
SCHEMES = ("http", "https", "socks5", "socks5h")
#: The variables that select the proxy.
VARIABLES = ("https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY", "no_proxy", "NO_PROXY")
#: Whether the system has settings of proxies too, which change without a variable.
HAS_SYSTEM_SETTINGS = sys.platform in ("darwin", "win32")


def configured_proxy(proxy_config: ProxyConfig) -> str | None:
    """Returns the URL of the proxy, or `None` if the settings contain none."""
    proxy = choose_proxy(proxy_config.to_requests_dict())
    return None if proxy is None else complete_url(proxy)


def choose_proxy(proxies: Any) -> Any:
    """Returns the proxy for YouTube from the dictionary of `requests`, or `None` if it names no proxies.

    :raises InvalidProxyConfig: it names proxies, but none for YouTube. A direct connection would expose the address of
        the user.
    """
    # Mocks in the tests of youtube-transcript-api and of programs return mocks.
    if not proxies or type(proxies).__module__ == "unittest.mock":
        return None
    if not isinstance(proxies, Mapping):
        raise InvalidProxyConfig(f"to_requests_dict() returned {type(proxies).__name__}: return a dictionary")
    for key in KEYS:
        if proxies.get(key):
            return proxies[key]
    if any(key not in OTHER_KEYS for key in proxies):
        # The keys are not shown: one can be a URL with a password.
        raise InvalidProxyConfig(f"to_requests_dict() has no proxy for https://{HOST}: use the key https or all")
    return None


def environment_proxy() -> str | None:
    """Returns the URL of the proxy from the environment, or `None` for direct connections."""
    return _read_proxy() if HAS_SYSTEM_SETTINGS else _known_proxy(tuple(map(os.environ.get, VARIABLES)))


# urllib searches the whole environment four times, which takes a fifth of the CPU of a fetch.
@lru_cache(maxsize=1)
def _known_proxy(_: tuple[str | None, ...]) -> str | None:
    return _read_proxy()


def _read_proxy() -> str | None:
    if proxy_bypass(HOST):
        return None
    proxies = getproxies()
    url = proxies.get("https") or proxies.get("all")
    return complete_url(url) if url else None


def complete_url(url: Any) -> str:
    """Returns the URL with a scheme: http if it has none."""
    if not isinstance(url, str):
        raise InvalidProxyConfig(f"a proxy is {type(url).__name__}: use a URL as text")
    text: str = url.strip()
    if "://" not in text:
        return "http://" + text.removeprefix("//")
    scheme = text.partition("://")[0]
    if scheme.lower() not in SCHEMES:
        # What is no scheme can be a password.
        shown = scheme if scheme.isalnum() else "of the URL"
        raise InvalidProxyConfig(f"proxy scheme {shown} is not supported: use {', '.join(SCHEMES)}")
    return text
