"""Choice of the proxy for requests to YouTube: as `requests` chooses, but unusable settings are errors."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.request import getproxies, proxy_bypass

from .proxies import InvalidProxyConfig, ProxyConfig

HOST = "www.youtube.com"
#: Keys of proxies, the most specific first.
KEYS = (f"https://{HOST}", "https", f"all://{HOST}", "all")
#: Keys of `requests` that name no proxy.
OTHER_KEYS = ("no", "no_proxy")
SCHEMES = ("http", "https", "socks5", "socks5h")


def configured_proxy(proxy_config: ProxyConfig) -> str | None:
    """Returns the URL of the proxy, or `None` if the settings contain none.

    :raises InvalidProxyConfig: the settings contain proxies that cannot be used. A direct connection would expose the
        address of the user.
    """
    proxies: Any = proxy_config.to_requests_dict()
    # Mocks in the tests of youtube-transcript-api and of programs return mocks.
    if not proxies or type(proxies).__module__ == "unittest.mock":
        return None
    if not isinstance(proxies, Mapping):
        raise InvalidProxyConfig(f"to_requests_dict() returned {type(proxies).__name__}: return a dictionary")
    for key in KEYS:
        if proxies.get(key):
            return complete_url(proxies[key])
    unused = [str(key) for key, url in proxies.items() if url and key not in OTHER_KEYS]
    if unused:
        raise InvalidProxyConfig(f"no proxy for https://{HOST}, only for {', '.join(unused)}: use the key https or all")
    return None


def environment_proxy() -> str | None:
    """Returns the URL of the proxy from the environment, or `None` for direct connections."""
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
        raise InvalidProxyConfig(f"proxy scheme {scheme} is not supported: use {', '.join(SCHEMES)}")
    return text
