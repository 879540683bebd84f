"""Exceptions of the package.

    VerbatimError
    ├── InvalidInput (also a ValueError)    a malformed link, language or option
    ├── TranscriptUnavailable               no transcript: `.reason`, `.watch_url`
    │   ├── VideoUnavailable                the platform does not show the video
    │   │   ├── PrivateVideo, RemovedVideo, RegionBlocked, AgeRestricted, LoginRequired
    │   │   ├── MembersOnly, PaidVideo, LiveVideo, UpcomingVideo
    │   │   └── WithdrawnVideo              taken down by the operator of the archive
    │   ├── NoCaptions                      the video has no captions
    │   ├── LanguageNotFound                it has captions in other languages: `.available`
    │   ├── RateLimited                     the platform throttles or blocks the address
    │   ├── FetchFailed                     a transient failure
    │   ├── NotArchived                     it is not archived, and the call does not fetch: `.available`
    │   └── NotConfigured                   no supplier is configured for the platform
    ├── ListUnavailable                     a playlist or channel cannot be read: `.reason`, `.url`
    │   ├── PrivateList                     the playlist is private
    │   ├── RemovedList                     it was removed, or never existed
    │   ├── MissingTab                      the channel has no videos of this tab
    │   ├── UnviewableList                  the platform does not show lists of this kind
    │   ├── ListRateLimited                 the platform throttles or blocks the address
    │   ├── ListUnreadable                  the platform responded in an unknown format
    │   └── ListFetchFailed                 a transient failure
    ├── StorageError                        a failure of the archive or the ledger
    │   ├── StorageUnavailable
    │   └── StorageCorrupt
    ├── NotFoundError, ConflictError, UnsupportedError
    ├── ClosedError                         the object is closed
    ├── InvalidSignature                    a webhook that no secret signed
    ├── SupplyError                         raised by custom suppliers
    └── ServiceError                        a failed request to a server: `.idempotency_key`
        ├── ServiceTimeout
        ├── ServiceUnreachable
        ├── JobTimeout                      a job has not ended in time
        └── ServiceRefused                  `.status`, `.retry_after`, `.watch_url`, `.request_id`, …
            ├── RefusedInput                400: a malformed link; also an InvalidInput, and not exported
            ├── Unauthorized                401
            ├── PaymentRequired             402
            ├── ServiceNotFound             404
            │   └── NoServer                no Verbatim server responds at the address; not exported
            ├── ServiceConflict             409
            └── TooManyRequests             429

All of them can be pickled; their data is in attributes.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar

__all__ = [
    "AgeRestricted",
    "ClosedError",
    "ConflictError",
    "FetchFailed",
    "InvalidInput",
    "InvalidSignature",
    "JobTimeout",
    "LanguageNotFound",
    "ListFetchFailed",
    "ListRateLimited",
    "ListUnavailable",
    "ListUnreadable",
    "LiveVideo",
    "LoginRequired",
    "MembersOnly",
    "MissingTab",
    "NoCaptions",
    "NotArchived",
    "NotConfigured",
    "NotFoundError",
    "PaidVideo",
    "PaymentRequired",
    "PrivateList",
    "PrivateVideo",
    "RateLimited",
    "RegionBlocked",
    "RemovedList",
    "RemovedVideo",
    "ServiceConflict",
    "ServiceError",
    "ServiceNotFound",
    "ServiceRefused",
    "ServiceTimeout",
    "ServiceUnreachable",
    "StorageCorrupt",
    "StorageError",
    "StorageUnavailable",
    "SupplyError",
    "TooManyRequests",
    "TranscriptUnavailable",
    "Unauthorized",
    "UnsupportedError",
    "UnviewableList",
    "UpcomingVideo",
    "VerbatimError",
    "VideoUnavailable",
    "WithdrawnVideo",
]


class VerbatimError(Exception):
    """Base class of all exceptions of this package. `str()` returns a message for people."""

    #: Seconds after which a retry may succeed; None if unknown.
    retry_after: float | None

    def __init__(self, message: str = "", retry_after: float | None = None) -> None:
        super().__init__(message)
        self.retry_after = retry_after

    def __reduce__(self) -> tuple[object, ...]:
        return (_restore, (type(self), self.args, dict(self.__dict__)))


def _restore(kind: type[VerbatimError], args: tuple[object, ...], state: dict[str, object]) -> VerbatimError:
    error = kind.__new__(kind, *args)
    error.args = args
    error.__dict__.update(state)
    return error


class InvalidInput(VerbatimError, ValueError):
    """A link, a language or an option is malformed; the call had no effect."""


class TranscriptUnavailable(VerbatimError):
    """There is no transcript.

    `str()` begins with the video, if it is known: `YouTube dQw4w9WgXcQ: This video is private.`

    >>> try:
    ...     raise TranscriptUnavailable("There are no captions.", "no_captions", "https://v.example/watch/x")
    ... except TranscriptUnavailable as error:
    ...     print(error.reason, error.watch_url)
    no_captions https://v.example/watch/x
    """

    #: Why the platform has no transcript, where it names a reason: `private`, `removed`, `region`, `age`, `login`,
    #: `members`, `payment`, `live`, `upcoming`, `withdrawn`, `no_language` or `no_captions`. Otherwise the reason code:
    #: `needs_verification`, `no_captions`, `key_allowance`, `allowance`, `daily_cap`, `fair_use`, `rate_limited`,
    #: `fetch_error` or `config_error`; or another code that a server sent.
    reason: str
    #: The watch page of the video; empty without a server or a `base_url`.
    watch_url: str
    #: `YouTube`, `TikTok`, `Instagram` or `X`.
    platform: str
    #: The id of the video, or the code of an unresolved short link.
    video_id: str
    #: The reason if none is passed: task queues such as Celery recreate an exception from its message alone.
    _reason: ClassVar[str] = ""

    def __init__(
        self,
        message: str = "",
        reason: str | None = None,
        watch_url: str = "",
        platform: str = "",
        video_id: str = "",
        retry_after: float | None = None,
    ) -> None:
        super().__init__(message, retry_after)
        self.reason = self._reason if reason is None else reason
        self.watch_url = watch_url
        self.platform = platform
        self.video_id = video_id

    def __str__(self) -> str:
        # In a log of many videos, the message alone does not say which one.
        video = f"{self.platform} {self.video_id}".strip()
        message = super().__str__()
        return f"{video}: {message}" if video else message


class VideoUnavailable(TranscriptUnavailable):
    """The platform does not show the video, or not to this server.

    The archive remembers that for some time, so `retry_after` of a repeated call is the rest of this time.
    """


class PrivateVideo(VideoUnavailable):
    """The video is private. Remembered for 24 hours."""

    _reason = "private"


class RemovedVideo(VideoUnavailable):
    """The video was removed, or never existed. Remembered for 24 hours."""

    _reason = "removed"


class RegionBlocked(VideoUnavailable):
    """The video is not available in the region of this server: use a proxy. Remembered for 24 hours."""

    _reason = "region"


class PaidVideo(VideoUnavailable):
    """The video must be paid for. Remembered for 24 hours."""

    _reason = "payment"


class AgeRestricted(VideoUnavailable):
    """The video is only for viewers of a certain age. Remembered for 15 minutes."""

    _reason = "age"


class LoginRequired(VideoUnavailable):
    """The platform shows the video to logged-in users only. Remembered for 15 minutes."""

    _reason = "login"


class MembersOnly(VideoUnavailable):
    """The video is only for members of a channel or a subscription. Remembered for 15 minutes."""

    _reason = "members"


class LiveVideo(VideoUnavailable):
    """The video is live: its captions appear later. Remembered for 15 minutes."""

    _reason = "live"


class UpcomingVideo(VideoUnavailable):
    """The video has not started: `retry_after` is the time until then, if known.

    Remembered until the start, at most 7 days; for 15 minutes if the start is unknown.
    """

    _reason = "upcoming"


class WithdrawnVideo(VideoUnavailable):
    """The operator of the archive has taken the transcript down."""

    _reason = "withdrawn"


class NoCaptions(TranscriptUnavailable):
    """Every supplier reports that the video has no captions. Remembered for 6 hours."""

    _reason = "no_captions"


class LanguageNotFound(TranscriptUnavailable):
    """The video has captions, but none in the requested language. Remembered for 6 hours."""

    _reason = "no_language"

    #: The languages of the video's captions, without machine translations; empty if unknown.
    available: list[str]

    def __init__(
        self,
        message: str = "",
        reason: str | None = None,
        watch_url: str = "",
        platform: str = "",
        video_id: str = "",
        retry_after: float | None = None,
        available: Iterable[str] = (),
    ) -> None:
        super().__init__(message, reason, watch_url, platform, video_id, retry_after)
        self.available = list(available)


class RateLimited(TranscriptUnavailable):
    """The platform throttles or blocks the address: wait, or use a proxy or another supplier."""

    _reason = "rate_limited"


class FetchFailed(TranscriptUnavailable):
    """A failed fetch: a retry may succeed, but not after a bug of a custom supplier, which is the ``__cause__``."""

    _reason = "fetch_error"


class NotArchived(TranscriptUnavailable):
    """The transcript is not archived, and the call does not fetch it: ``fetch=False``, or a server requires a key.

    With ``fetch=False`` the text lists the archived languages of the video, if there are any.
    """

    _reason = "needs_verification"

    #: The archived languages of the video, without machine translations.
    available: list[str]

    def __init__(
        self,
        message: str = "",
        reason: str | None = None,
        watch_url: str = "",
        platform: str = "",
        video_id: str = "",
        retry_after: float | None = None,
        available: Iterable[str] = (),
    ) -> None:
        super().__init__(message, reason, watch_url, platform, video_id, retry_after)
        self.available = list(available)


class NotConfigured(TranscriptUnavailable):
    """No supplier is configured for the platform, or its settings are wrong or outdated."""

    _reason = "config_error"


class ListUnavailable(VerbatimError):
    """A playlist or channel cannot be read. An empty list is no error: it has no videos.

    >>> try:
    ...     raise PrivateList("The playlist is private.", "private", "https://www.youtube.com/playlist?list=PL0123456789")
    ... except ListUnavailable as error:
    ...     print(error.reason, error.url)
    private https://www.youtube.com/playlist?list=PL0123456789
    """

    #: `private`, `removed`, `no_tab` or `unviewable`; or a failure: `throttled`, `bot_check`, `unreadable`, `timeout`,
    #: `unreachable`, `platform_fault`.
    reason: str
    #: The address of the list.
    url: str
    #: The reason if none is passed.
    _reason: ClassVar[str] = ""

    def __init__(
        self, message: str = "", reason: str | None = None, url: str = "", retry_after: float | None = None
    ) -> None:
        super().__init__(message, retry_after)
        self.reason = self._reason if reason is None else reason
        self.url = url


class PrivateList(ListUnavailable):
    """The playlist is private."""

    _reason = "private"


class RemovedList(ListUnavailable):
    """The playlist or channel was removed, or never existed."""

    _reason = "removed"


class MissingTab(ListUnavailable):
    """The channel has no videos of this tab, such as no shorts."""

    _reason = "no_tab"


class UnviewableList(ListUnavailable):
    """The platform does not show lists of this kind."""

    _reason = "unviewable"


class ListRateLimited(ListUnavailable):
    """The platform throttles or blocks the address: wait, or use a proxy."""

    _reason = "throttled"


class ListUnreadable(ListUnavailable):
    """The platform responded in an unknown format: a newer version of the package may read it."""

    _reason = "unreadable"


class ListFetchFailed(ListUnavailable):
    """A transient failure: a retry may succeed."""

    _reason = "platform_fault"


class StorageError(VerbatimError):
    """A failure of the archive, the ledger or the directory. An exception of a custom store is its ``__cause__``."""


class StorageUnavailable(StorageError):
    """The store cannot be reached, or is too slow."""


class StorageCorrupt(StorageError):
    """Stored data cannot be decoded."""


class NotFoundError(VerbatimError):
    """The requested object does not exist."""


class ConflictError(VerbatimError):
    """The call contradicts stored data; it had no effect."""


class UnsupportedError(VerbatimError):
    """The operation is not supported here: for example, the file is read-only or of a newer version."""


class ClosedError(VerbatimError):
    """The object is closed."""


class InvalidSignature(VerbatimError):
    """No secret signed the webhook, or its signature is too old: ignore it."""


class SupplyError(VerbatimError):
    """Raised by a custom supplier to report why it has no transcript.

    `reason` is one of `no_captions`, `no_language`, `private`, `removed`, `region`, `age`, `members`, `payment`,
    `login`, `live`, `upcoming` (about the video; stored as an absence); `throttled`, `bot_check`, `other_video`,
    `timeout`, `unreachable`, `platform_fault`, `unreadable` (transient); `stale`, `misconfigured` (for the operator).
    A shorter `retry_after` ends a stored absence earlier, that of 0 at once; with `upcoming` it is the time until the
    start.

    After any other exception a batch tries the link again, unless it is a bug of the supplier: a `TypeError`, an
    `AttributeError`, a `NameError`, a `LookupError`, an `ImportError`, an `AssertionError`, a `NotImplementedError`, or
    a `SupplyError` with another reason.
    """

    reason: str

    def __init__(self, reason: str, message: str = "", retry_after: float | None = None) -> None:
        super().__init__(message or f"There is no transcript: {reason}.", retry_after)
        self.reason = reason


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


# The public name, which pickles use.
for _name in __all__:
    globals()[_name].__module__ = "verbatim_transcripts"
