"""Exceptions for a missing transcript or list."""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar

from ._error_base import VerbatimError


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


class _HasLanguages(TranscriptUnavailable):
    """A missing transcript of a video that has others."""

    #: The languages of the others.
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


class LanguageNotFound(_HasLanguages):
    """The video has captions, but none in the requested language. Remembered for 6 hours."""

    _reason = "no_language"

    #: The languages of the video's captions, without machine translations; empty if unknown.
    available: list[str]


class RateLimited(TranscriptUnavailable):
    """The platform throttles or blocks the address: wait, or use a proxy or another supplier."""

    _reason = "rate_limited"


class FetchFailed(TranscriptUnavailable):
    """A failed fetch: a retry may succeed, but not after a bug of a custom supplier, which is the ``__cause__``."""

    _reason = "fetch_error"


class NotArchived(_HasLanguages):
    """The transcript is not archived, and the call does not fetch it: ``fetch=False``, or a server requires a key.

    With ``fetch=False`` the text lists the archived languages of the video, if there are any.
    """

    _reason = "needs_verification"

    #: The archived languages of the video, without machine translations.
    available: list[str]


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

    #: `private`, `removed`, `no_tab` or `unviewable`; or a failure: `throttled`, `bot_check`, `unreadable`, `stale`,
    #: `timeout`, `unreachable`, `platform_fault`.
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
