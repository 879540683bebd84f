"""Exceptions with the classes and attributes of youtube-transcript-api.

The messages differ, except for the phrases by which programs distinguish the causes.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any
from xml.etree.ElementTree import ParseError

from ._settings import WATCH_URL
from .proxies import GenericProxyConfig, ProxyConfig, WebshareProxyConfig

if TYPE_CHECKING:
    from pathlib import Path

    from ._transcripts import TranscriptList


class YouTubeTranscriptApiException(Exception):
    """Base class of all exceptions of this package."""


class CookieError(YouTubeTranscriptApiException):
    """Never raised: cookies are not supported. Exists for programs that catch it."""


class CookiePathInvalid(CookieError):
    def __init__(self, cookie_path: Path) -> None:
        super().__init__(f"The cookie file cannot be read: {cookie_path}")


class CookieInvalid(CookieError):
    def __init__(self, cookie_path: Path) -> None:
        super().__init__(f"There are no valid cookies in the file: {cookie_path}")


class CouldNotRetrieveTranscript(YouTubeTranscriptApiException):
    """There is no transcript of the video `video_id`; `cause` is the reason."""

    ERROR_MESSAGE = "\nCould not retrieve a transcript for the video {video_url}!"
    CAUSE_MESSAGE_INTRO = " This is most likely caused by:\n\n{cause}"
    CAUSE_MESSAGE = ""
    #: Programs remove this text from messages. No message contains it, and `str.split` requires that it is not empty.
    GITHUB_REFERRAL = "\n\nThis package links to no issue tracker."

    def __init__(self, video_id: str) -> None:
        self.video_id = video_id
        super().__init__()

    @property
    def cause(self) -> str:
        return self.CAUSE_MESSAGE

    def _build_error_message(self) -> str:
        message = self.ERROR_MESSAGE.format(video_url=WATCH_URL.format(video_id=self.video_id))
        cause = self.cause
        return message + self.CAUSE_MESSAGE_INTRO.format(cause=cause) if cause else message

    def __str__(self) -> str:
        return self._build_error_message()

    def __reduce__(self) -> tuple[Any, ...]:
        state = dict(self.__dict__)
        if "_proxy_config" in state:
            # Pickled exceptions reach logs and result stores, and the settings contain passwords.
            state.update(_proxy_config=None, CAUSE_MESSAGE=self.cause)
        return (_restore, (type(self), state))


def _restore(kind: type[CouldNotRetrieveTranscript], state: dict[str, Any]) -> CouldNotRetrieveTranscript:
    error = kind.__new__(kind)
    error.__dict__.update(state)
    return error


class YouTubeDataUnparsable(CouldNotRetrieveTranscript):
    CAUSE_MESSAGE = "YouTube's response cannot be parsed: it is empty, damaged, or in an unknown format."


class CaptionsUnparsable(YouTubeDataUnparsable, ParseError):
    """The captions are empty or no XML; `code` and `position` are those of the XML parser."""

    def __init__(self, video_id: str, error: ParseError) -> None:
        self.reason = str(error)
        self.code = error.code
        self.position = error.position
        super().__init__(video_id)

    @property
    def cause(self) -> str:
        return f"{self.CAUSE_MESSAGE} The XML parser reports: {self.reason}"

    @property
    def msg(self) -> str:  # type: ignore[override]
        """The message, which tracebacks of a `ParseError` show."""
        return str(self)


class YouTubeRequestFailed(CouldNotRetrieveTranscript):
    """The request to YouTube failed; `reason` is the error."""

    CAUSE_MESSAGE = "Request to YouTube failed: {reason}"

    def __init__(self, video_id: str, http_error: Exception) -> None:
        self.reason = str(http_error)
        super().__init__(video_id)

    @property
    def cause(self) -> str:
        return self.CAUSE_MESSAGE.format(reason=self.reason)


class VideoUnplayable(CouldNotRetrieveTranscript):
    """YouTube does not play the video; `reason` and `sub_reasons` are its messages."""

    CAUSE_MESSAGE = "The video is unplayable for the following reason: {reason}"

    def __init__(self, video_id: str, reason: str | None, sub_reasons: list[str]) -> None:
        self.reason = reason
        self.sub_reasons = sub_reasons
        super().__init__(video_id)

    @property
    def cause(self) -> str:
        lines = [self.reason or "no reason given", *(f" - {sub}" for sub in self.sub_reasons)]
        return self.CAUSE_MESSAGE.format(reason="\n".join(lines))


class VideoUnavailable(CouldNotRetrieveTranscript):
    CAUSE_MESSAGE = "The video is no longer available, or never was."


class InvalidVideoId(CouldNotRetrieveTranscript):
    CAUSE_MESSAGE = "This is an invalid video id: use the 11 characters after v=, not the URL."


class RequestBlocked(CouldNotRetrieveTranscript):
    """YouTube requires a bot check."""

    CAUSE_MESSAGE = (
        "YouTube is blocking requests from your IP: there were too many requests, or it belongs to a cloud provider. "
        "Wait, or use proxies."
    )

    def __init__(self, video_id: str) -> None:
        self._proxy_config: ProxyConfig | None = None
        #: Whether the transport used up its retries.
        self._was_retried = False
        super().__init__(video_id)

    def with_proxy_config(self, proxy_config: ProxyConfig | None) -> RequestBlocked:
        self._proxy_config = proxy_config
        return self

    @property
    def cause(self) -> str:
        if isinstance(self._proxy_config, WebshareProxyConfig):
            return "YouTube is blocking your requests through Webshare. Use residential proxies."
        if isinstance(self._proxy_config, GenericProxyConfig):
            return "YouTube is blocking your requests through this proxy. Use another one."
        return self.CAUSE_MESSAGE


class IpBlocked(RequestBlocked):
    """YouTube throttles the IP address of the requests."""


class TranscriptsDisabled(CouldNotRetrieveTranscript):
    CAUSE_MESSAGE = "Subtitles are disabled for this video, or it never had any."


class AgeRestricted(CouldNotRetrieveTranscript):
    CAUSE_MESSAGE = "This video is age-restricted: YouTube requires a login."


class NotTranslatable(CouldNotRetrieveTranscript):
    CAUSE_MESSAGE = "This transcript is not translatable: YouTube offers no translations of it."


class TranslationLanguageNotAvailable(CouldNotRetrieveTranscript):
    CAUSE_MESSAGE = "This translation language is not available: YouTube does not translate into it."


class FailedToCreateConsentCookie(CouldNotRetrieveTranscript):
    CAUSE_MESSAGE = "YouTube requires consent to cookies and did not accept it."


class NoTranscriptFound(CouldNotRetrieveTranscript):
    """The video has no transcript in the requested languages."""

    CAUSE_MESSAGE = (
        "No transcripts were found for any of the requested language codes: {requested_language_codes}\n\n"
        "{transcript_data}"
    )

    def __init__(
        self, video_id: str, requested_language_codes: Iterable[str], transcript_data: TranscriptList
    ) -> None:
        self._requested_language_codes = requested_language_codes
        self._transcript_data = transcript_data
        super().__init__(video_id)

    @property
    def cause(self) -> str:
        return self.CAUSE_MESSAGE.format(
            requested_language_codes=self._requested_language_codes, transcript_data=self._transcript_data
        )


class PoTokenRequired(CouldNotRetrieveTranscript):
    CAUSE_MESSAGE = "YouTube requires a PO token for this transcript, which this package cannot create."
