"""Exceptions of requests to a server."""

from __future__ import annotations

from collections.abc import Iterable

from ._error_base import InvalidInput, VerbatimError


class ServiceError(VerbatimError):
    """A request to a server failed."""

    #: The idempotency key of a charged call whose outcome is unknown, such as after a timeout. The call, repeated with
    #: it, returns the result and is charged once. After a call with several languages the key belongs to one of them:
    #: repeat the call with one language at a time. A wrong one is refused and costs nothing. None in all other cases.
    idempotency_key: str | None

    def __init__(
        self, message: str = "", retry_after: float | None = None, idempotency_key: str | None = None
    ) -> None:
        super().__init__(message, retry_after)
        self.idempotency_key = idempotency_key


class ServiceTimeout(ServiceError):
    """The server did not respond in time."""


class ServiceUnreachable(ServiceError):
    """The connection to the server could not be opened, or was lost."""


class JobTimeout(ServiceError):
    """The job has not ended within the timeout of the call. It continues."""


class ServiceRefused(ServiceError):
    """The server responded with an error."""

    #: The HTTP status.
    status: int
    #: Why there is no transcript: the reason code of the server, or its detail; None if the response has none.
    reason: str | None
    #: The watch page of a video without a transcript; None if it is unknown.
    watch_url: str | None
    #: The remaining credits; None if the response does not contain them.
    credits_remaining: int | None
    #: The request id of the server, for questions to its operator.
    request_id: str | None
    #: The languages of a video without a transcript in the requested one, without machine translations; empty if
    #: unknown.
    available: list[str]

    def __init__(
        self,
        message: str = "",
        status: int = 0,
        reason: str | None = None,
        retry_after: float | None = None,
        credits_remaining: int | None = None,
        request_id: str | None = None,
        watch_url: str | None = None,
        available: Iterable[str] = (),
        idempotency_key: str | None = None,
    ) -> None:
        super().__init__(message, retry_after, idempotency_key)
        self.status = status
        self.reason = reason
        self.watch_url = watch_url
        self.credits_remaining = credits_remaining
        self.request_id = request_id
        self.available = list(available)


class RefusedInput(ServiceRefused, InvalidInput):
    """400: the server refused a malformed link."""


class Unauthorized(ServiceRefused):
    """401: the key is missing, unknown, or a key of the other API."""


class PaymentRequired(ServiceRefused):
    """402: the account has too few credits."""


class ServiceNotFound(ServiceRefused):
    """404: the server has no such resource."""


class NoServer(ServiceNotFound):
    """404: no Verbatim server responds at the address."""


class ServiceConflict(ServiceRefused):
    """409: a request with this idempotency key is still running, or an active key would be replaced."""


class TooManyRequests(ServiceRefused):
    """429: the rate limit of the caller is exceeded; retry after `retry_after` seconds."""
