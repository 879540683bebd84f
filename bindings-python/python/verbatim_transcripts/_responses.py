"""Responses of a Verbatim server."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ._native import Transcript
from ._reasons import unavailable
from ._video import Language, caption_languages

__all__ = [
    "AccountInfo",
    "ChatAnswer",
    "CheckoutSession",
    "Citation",
    "KeyUsage",
    "LookupResponse",
    "ResponseMeta",
]


class ResponseMeta(NamedTuple):
    """Data from the headers of a response; None for missing headers."""

    #: The request id of the server, for questions to its operator.
    request_id: str | None = None
    #: The remaining credits.
    credits_remaining: int | None = None
    #: Whether the response came from the archive.
    is_cached: bool | None = None
    #: Whether an earlier response was replayed for the same idempotency key, without a charge.
    is_replayed: bool = False
    #: Seconds to wait before a retry.
    retry_after: float | None = None
    #: Remaining requests in the rate limit of the account.
    rate_remaining: int | None = None
    #: Seconds until the rate limit admits more requests.
    rate_reset: float | None = None
    #: The detail of a failure reason, such as `private`.
    failure_detail: str | None = None


class KeyUsage(NamedTuple):
    """A key of the lookup API: its plan and the usage of its allowance."""

    #: `free`, `plus` or `plus_inactive`.
    plan: str
    #: `month` or `day`.
    period: str
    used: int
    allowance: int
    remaining: int
    #: The public id of the key; None in a lookup response.
    id: str | None = None
    label: str | None = None
    #: The end of the period, and the creation time of the key: RFC 3339.
    resets_at: str | None = None
    created_at: str | None = None
    #: The key itself, only in the response that created it.
    key: str | None = None


class LookupResponse(NamedTuple):
    """The response to a lookup, with or without a transcript."""

    transcript: Transcript | None
    platform: str
    video_id: str
    #: The watch page of the video, as the server sent it.
    watch_url: str
    #: The failure reason and message of the server; None with a transcript.
    reason: str | None
    message: str | None
    #: The usage of the caller's key; None without a key.
    key: KeyUsage | None
    meta: ResponseMeta
    #: The languages of a video without a transcript in the requested one, as far as known.
    languages: Sequence[Language] = ()

    def get(self) -> Transcript:
        """Returns the transcript.

        :raises TranscriptUnavailable: there is no transcript.
        """
        if self.transcript is None:
            raise unavailable(
                self.message or "There is no transcript.",
                self.reason or "",
                self.meta.failure_detail,
                self.watch_url,
                self.platform,
                self.video_id,
                self.meta.retry_after,
                caption_languages(self.languages),
            )
        return self.transcript


class AccountInfo(NamedTuple):
    """An account of the v1 API."""

    email: str
    plan: str
    credits_remaining: int
    credits_total: int
    #: RFC 3339.
    resets_at: str
    meta: ResponseMeta


class Citation(NamedTuple):
    """A passage that supports an answer."""

    #: Seconds from the start of the video.
    start: float
    end: float
    #: The text of the passage, word for word.
    text: str
    url: str


class ChatAnswer(NamedTuple):
    """An answer to a question about a video."""

    video_id: str
    response: str
    citations: list[Citation]
    #: The verified share of the answer, from 0 to 1.
    coverage: float
    #: The credits used in the billing period, not those of this answer.
    credits_used: int
    credits_remaining: int
    meta: ResponseMeta


class CheckoutSession(NamedTuple):
    """A hosted payment page."""

    checkout_url: str
    #: The pack, its credits and its price; None for a plan.
    pack: str | None
    credits: int | None
    price_usd: float | None
