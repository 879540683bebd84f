"""Arguments in the forms that the native classes take."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping


def as_list(value: str | Iterable[str] | None) -> str | list[str] | None:
    """Returns a text as it is, and another iterable as a list."""
    return value if value is None or isinstance(value, str) else list(value)


def proxy_list(proxies: str | Iterable[str] | Mapping[str, str] | None) -> str | list[str] | None:
    """Returns the proxies; of a mapping, as ``requests`` takes it, that for ``https``, which all requests use."""
    if not isinstance(proxies, Mapping):
        return as_list(proxies)
    proxy = proxies.get("https") or proxies.get("all")
    if proxies and not proxy:
        # Without a proxy the platforms would see the address of this machine.
        raise ValueError('proxies: the mapping has no "https", and all requests use https')
    return [proxy] if proxy else None


def caption_bytes(captions: str | bytes | os.PathLike[str]) -> bytes:
    """Returns the bytes of captions; those of a path are read from its file."""
    if isinstance(captions, str):
        return captions.encode()
    if isinstance(captions, os.PathLike):
        with open(os.path.expanduser(captions), "rb") as file:
            return file.read()
    if isinstance(captions, (bytes, bytearray, memoryview)):
        return bytes(captions)
    raise TypeError(f"captions must be a str, bytes or a path, not {type(captions).__name__}")
