"""The exception of each reason for a missing transcript or list."""

from __future__ import annotations

from collections.abc import Iterable

from ._errors import (
    AgeRestricted,
    FetchFailed,
    LanguageNotFound,
    ListFetchFailed,
    ListRateLimited,
    ListUnavailable,
    ListUnreadable,
    LiveVideo,
    LoginRequired,
    MembersOnly,
    MissingTab,
    NoCaptions,
    NotArchived,
    NotConfigured,
    PaidVideo,
    PrivateList,
    PrivateVideo,
    RateLimited,
    RegionBlocked,
    RemovedList,
    RemovedVideo,
    TranscriptUnavailable,
    UnviewableList,
    UpcomingVideo,
    WithdrawnVideo,
)

#: The classes by detail, and by reason code if there is no detail.
_UNAVAILABLE: dict[str, type[TranscriptUnavailable]] = {
    "private": PrivateVideo,
    "removed": RemovedVideo,
    "region": RegionBlocked,
    "age": AgeRestricted,
    "members": MembersOnly,
    "payment": PaidVideo,
    "login": LoginRequired,
    "live": LiveVideo,
    "upcoming": UpcomingVideo,
    "withdrawn": WithdrawnVideo,
    "no_language": LanguageNotFound,
    "no_captions": NoCaptions,
    "rate_limited": RateLimited,
    "fetch_error": FetchFailed,
    "config_error": NotConfigured,
    "needs_verification": NotArchived,
}

#: Details of a failed fetch, whose reason code is `fetch_error`.
_FETCH_DETAILS = frozenset({"still_working", "busy", "storage", "defect"})


def reason_of(detail: str | None) -> str:
    """Returns the reason of a response that names only its detail; empty if it names none."""
    return "fetch_error" if detail in _FETCH_DETAILS else detail or ""


def unavailable(
    message: str,
    reason: str,
    detail: str | None = None,
    watch_url: str = "",
    platform: str = "",
    video_id: str = "",
    retry_after: float | None = None,
    available: Iterable[str] = (),
) -> TranscriptUnavailable:
    """Returns the exception for a reason code and its detail."""
    kind = _UNAVAILABLE.get(reason, TranscriptUnavailable)
    if kind is NoCaptions:
        # The code of every video without a transcript: only the detail says that it has no captions.
        kind = _UNAVAILABLE.get(detail or "", TranscriptUnavailable)
        reason = detail or reason
    if issubclass(kind, (LanguageNotFound, NotArchived)):
        return kind(message, reason, watch_url, platform, video_id, retry_after, available)
    return kind(message, reason, watch_url, platform, video_id, retry_after)


#: The classes by the reason of a list.
_LIST_UNAVAILABLE: dict[str, type[ListUnavailable]] = {
    "private": PrivateList,
    "removed": RemovedList,
    "no_tab": MissingTab,
    "unviewable": UnviewableList,
    "throttled": ListRateLimited,
    "bot_check": ListRateLimited,
    "unreadable": ListUnreadable,
    "stale": ListUnreadable,
}


def list_unavailable(
    message: str, reason: str, url: str, retry_after: float | None = None
) -> ListUnavailable:
    """Returns the exception for the reason of a list."""
    return _LIST_UNAVAILABLE.get(reason, ListFetchFailed)(message, reason, url, retry_after)
