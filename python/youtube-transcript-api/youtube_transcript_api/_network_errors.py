"""Failures of the network that programs catch as exceptions of `requests`."""

from __future__ import annotations

from requests import exceptions
from verbatim_transcripts import InvalidInput

from ._errors import YouTubeRequestFailed
from .proxies import InvalidProxyConfig


class RequestError(YouTubeRequestFailed, exceptions.RequestException):
    """The request was not sent, for example because of invalid settings."""


class RequestConnectionError(YouTubeRequestFailed, exceptions.ConnectionError):
    """YouTube could not be reached, or the connection ended early."""


class RequestTimeoutError(YouTubeRequestFailed, exceptions.ConnectTimeout):
    """YouTube did not respond in time. `ConnectTimeout` is both a `ConnectionError` and a `Timeout`."""


class RequestProxyError(YouTubeRequestFailed, exceptions.ProxyError):
    """The proxy could not be reached, or rejected the connection."""


class RequestSslError(YouTubeRequestFailed, exceptions.SSLError):
    """The certificate is not trusted."""


def make_error(video_id: str, error: Exception, has_proxy: bool) -> YouTubeRequestFailed:
    """Returns the exception for an error of the native client, which reports the cause as text."""
    text = str(error)
    if isinstance(error, (InvalidInput, InvalidProxyConfig)):
        return RequestError(video_id, error)
    if "certificate" in text:
        return RequestSslError(video_id, error)
    if "timed out" in text or "too long" in text:
        return RequestTimeoutError(video_id, error)
    if has_proxy and ("proxy" in text or "could not be reached" in text):
        return RequestProxyError(video_id, error)
    return RequestConnectionError(video_id, error)
