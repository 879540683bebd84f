"""What the package raises.

    VerbatimError
    ├── InvalidInput (also a ValueError)    a link, language or option that is none
    ├── TranscriptUnavailable               there is no transcript: `.reason`, `.watch_url`
    │   ├── NoCaptions                      the video has no words for us
    │   ├── RateLimited                     the platform throttles or distrusts us
    │   ├── FetchFailed                     a passing failure
    │   └── NotConfigured                   nobody is there to be asked
    ├── StorageError                        the archive's or the ledger's fault
    │   ├── StorageUnavailable
    │   └── StorageCorrupt
    ├── NotFound, Conflict, Unsupported
    ├── Closed                              it was closed before
    ├── SupplyFailed                        raised by suppliers written in Python
    └── ServiceError                        a server could not be asked, or said no
        ├── ServiceTimeout
        ├── ServiceUnreachable
        └── ServiceRefused                  `.status`, `.retry_after`, `.credits_remaining`, `.request_id`
            ├── Unauthorized                401
            ├── PaymentRequired             402
            ├── NotOffered                  404
            ├── ServiceConflict             409
            └── TooManyRequests             429

All of them can be pickled, and carry what they know as attributes.
"""

from __future__ import annotations

__all__ = [
    "Closed",
    "Conflict",
    "FetchFailed",
    "InvalidInput",
    "NoCaptions",
    "NotConfigured",
    "NotFound",
    "NotOffered",
    "PaymentRequired",
    "RateLimited",
    "ServiceConflict",
    "ServiceError",
    "ServiceRefused",
    "ServiceTimeout",
    "ServiceUnreachable",
    "StorageCorrupt",
    "StorageError",
    "StorageUnavailable",
    "SupplyFailed",
    "TooManyRequests",
    "TranscriptUnavailable",
    "Unauthorized",
    "Unsupported",
    "VerbatimError",
]


class VerbatimError(Exception):
    """The root of all that this package raises; `str()` of it is a sentence for people."""

    #: After how many seconds trying again may help, where that is known.
    retry_after: float | None

    def __init__(self, message: str = "", retry_after: float | None = None) -> None:
        super().__init__(message)
        self.retry_after = retry_after

    def __reduce__(self) -> tuple[object, ...]:
        return (_restored, (type(self), self.args, dict(self.__dict__)))


def _restored(kind: type[VerbatimError], args: tuple[object, ...], state: dict[str, object]) -> VerbatimError:
    error = kind.__new__(kind, *args)
    error.args = args
    error.__dict__.update(state)
    return error


class InvalidInput(VerbatimError, ValueError):
    """A link, a language or an option that is none; nothing was done."""


class TranscriptUnavailable(VerbatimError):
    """There is no transcript.

    >>> try:
    ...     raise TranscriptUnavailable("There are no captions.", "no_captions", "https://v.example/watch/x")
    ... except TranscriptUnavailable as error:
    ...     print(error.reason, error.watch_url)
    no_captions https://v.example/watch/x
    """

    #: Why, in one word: `needs_verification`, `no_captions`, `key_allowance`, `allowance`, `daily_cap`, `fair_use`,
    #: `rate_limited`, `fetch_error` or `config_error`; of a server's answer the word as it came.
    reason: str
    #: Where a person can read the transcript, as the server sent it.
    watch_url: str
    #: `video_site`, `short_video`, `reels` or `microblog`.
    platform: str
    #: The video's id; the code of a short link that could not be followed.
    video_id: str

    def __init__(
        self,
        message: str = "",
        reason: str = "fetch_error",
        watch_url: str = "",
        platform: str = "",
        video_id: str = "",
        retry_after: float | None = None,
    ) -> None:
        super().__init__(message, retry_after)
        self.reason = reason
        self.watch_url = watch_url
        self.platform = platform
        self.video_id = video_id


class NoCaptions(TranscriptUnavailable):
    """Everybody who was asked says that there are no words: no captions, private, removed, live, …"""


class RateLimited(TranscriptUnavailable):
    """The platform throttles or distrusts us: wait, use a proxy, or another supplier."""


class FetchFailed(TranscriptUnavailable):
    """A passing failure: trying again may help."""


class NotConfigured(TranscriptUnavailable):
    """No supplier is there for the platform, or its settings are wrong or stale."""


class StorageError(VerbatimError):
    """The archive's or the ledger's fault."""


class StorageUnavailable(StorageError):
    """It cannot be reached, or is too slow."""


class StorageCorrupt(StorageError):
    """What is stored cannot be read back."""


class NotFound(VerbatimError):
    """What was named is not there."""


class Conflict(VerbatimError):
    """It contradicts what is stored; nothing was done."""


class Unsupported(VerbatimError):
    """It cannot be done here: a read-only file, or one of a newer version."""


class Closed(VerbatimError):
    """It was closed before."""


class SupplyFailed(VerbatimError):
    """Raised by a supplier written in Python, to say why it has no transcript.

    `reason` is one of `no_captions`, `no_language`, `private`, `removed`, `region`, `age`, `members`, `payment`,
    `login`, `live`, `upcoming` (about the video, and remembered); `throttled`, `bot_check`, `other_video`, `timeout`,
    `unreachable`, `platform_fault`, `unreadable` (passing); `stale`, `misconfigured` (for the operator).
    """

    reason: str

    def __init__(self, reason: str, message: str = "", retry_after: float | None = None) -> None:
        super().__init__(message or f"There is no transcript: {reason}.", retry_after)
        self.reason = reason


class ServiceError(VerbatimError):
    """A server could not be asked, or said no."""


class ServiceTimeout(ServiceError):
    """The server took too long."""


class ServiceUnreachable(ServiceError):
    """No connection came about, or it broke off."""


class ServiceRefused(ServiceError):
    """The server said no."""

    #: The HTTP status.
    status: int
    #: The look-up's failure reason, where one is told beside a status.
    reason: str | None
    #: The credits that are left, where the server says so.
    credits_remaining: int | None
    #: The server's name for the request, for questions to its operator.
    request_id: str | None

    def __init__(
        self,
        message: str = "",
        status: int = 0,
        reason: str | None = None,
        retry_after: float | None = None,
        credits_remaining: int | None = None,
        request_id: str | None = None,
    ) -> None:
        super().__init__(message, retry_after)
        self.status = status
        self.reason = reason
        self.credits_remaining = credits_remaining
        self.request_id = request_id


class Unauthorized(ServiceRefused):
    """401: the key is missing, unknown, or of the other surface."""


class PaymentRequired(ServiceRefused):
    """402: the credits are spent."""


class NotOffered(ServiceRefused):
    """404: nothing is at this address of the server."""


class ServiceConflict(ServiceRefused):
    """409: a request of the same name is under way, or a living key would be ended."""


class TooManyRequests(ServiceRefused):
    """429: the caller's own limit; `retry_after` says when there is room again."""


# Where they are found by people, and by pickle.
for _name in __all__:
    globals()[_name].__module__ = "verbatim"
