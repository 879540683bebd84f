"""Fetches the list of transcripts of a video: the watch page, then the player response."""

from __future__ import annotations

import json
import re
from html import unescape
from typing import Any

from ._errors import (
    AgeRestricted,
    FailedToCreateConsentCookie,
    InvalidVideoId,
    IpBlocked,
    RequestBlocked,
    TranscriptsDisabled,
    VideoUnavailable,
    VideoUnplayable,
    YouTubeDataUnparsable,
    YouTubeRequestFailed,
)
from ._settings import INNERTUBE_API_URL, INNERTUBE_CONTEXT, WATCH_URL
from ._transcripts import TranscriptList
from ._transport import Response, as_transport
from .proxies import ProxyConfig

CONSENT_FORM = 'action="https://consent.youtube.com/s"'
CONSENT_VALUE = re.compile(r'name="v" value="(.*?)"')
#: A page with this text is not a consent form, and the rest of it is not needed.
API_KEY_NAME = '"INNERTUBE_API_KEY":'
API_KEY = re.compile(r'"INNERTUBE_API_KEY":\s*"([a-zA-Z0-9_-]+)"')
#: YouTube's messages for a bot check, an age restriction and a missing video.
BOT_CHECK = "Sign in to confirm you\u2019re not a bot"
AGE_WALL = "This video may be inappropriate for some users."
GONE = "This video is unavailable"


def check_response(response: Response, video_id: str) -> bytes:
    """Returns the body of a response, or raises its failure."""
    if response.status == 429:
        error = IpBlocked(video_id)
        error._was_retried = response.was_retried
        raise error
    if response.error:
        raise YouTubeRequestFailed(video_id, Exception(response.error))
    return response.body


class TranscriptListFetcher:
    """Fetches lists of transcripts with a `requests.Session` or a transport."""

    def __init__(self, http_client: Any, proxy_config: ProxyConfig | None) -> None:
        self._transport = as_transport(http_client)
        self._proxy_config = proxy_config

    @property
    def _http_client(self) -> Any:
        """The session of the caller, or else one that sends all later requests; programs set its headers."""
        return self._transport.http_client

    @_http_client.setter
    def _http_client(self, http_client: Any) -> None:
        self._transport.http_client = http_client

    def fetch(self, video_id: str) -> TranscriptList:
        return TranscriptList.build(self._transport, video_id, self._fetch_captions_json(video_id))

    def _fetch_captions_json(self, video_id: str, try_number: int = 0) -> dict[str, Any]:
        """Returns the track list of the player response; programs override it."""
        attempts = 0 if self._proxy_config is None else self._proxy_config.retries_when_blocked - try_number
        while True:
            attempts -= 1
            try:
                return self._captions(video_id)
            except RequestBlocked as error:
                # A repetition would repeat all requests of the transport, too.
                if attempts <= 0 or error._was_retried:
                    raise error.with_proxy_config(self._proxy_config) from None

    def _captions(self, video_id: str) -> dict[str, Any]:
        html = self._fetch_video_html(video_id)
        api_key = self._extract_innertube_api_key(html, video_id)
        return self._extract_captions_json(self._fetch_innertube_data(video_id, api_key), video_id)

    def _fetch_video_html(self, video_id: str) -> str:
        """Returns the watch page, which may end after the key; programs call it."""
        html = self._fetch_html(video_id)
        if CONSENT_FORM not in html:
            return html
        value = CONSENT_VALUE.search(html)
        if value is None:
            raise FailedToCreateConsentCookie(video_id)
        self._transport.consent("YES+" + unescape(value[1]))
        html = self._fetch_html(video_id)
        if CONSENT_FORM in html:
            raise FailedToCreateConsentCookie(video_id)
        return html

    def _fetch_html(self, video_id: str) -> str:
        url = WATCH_URL.format(video_id=video_id)
        body = check_response(self._transport.request(video_id, url, until=API_KEY_NAME), video_id)
        return body.decode("utf-8", "replace")

    def _extract_innertube_api_key(self, html: str, video_id: str) -> str:
        """Returns the key that the watch page contains; programs call it."""
        key = API_KEY.search(html)
        if key is None:
            raise (IpBlocked if 'class="g-recaptcha"' in html else YouTubeDataUnparsable)(video_id)
        return key[1]

    def _fetch_innertube_data(self, video_id: str, api_key: str) -> dict[str, Any]:
        """Returns the player response; programs call it."""
        data = {"context": INNERTUBE_CONTEXT, "videoId": video_id}
        url = INNERTUBE_API_URL.format(api_key=api_key)
        body = check_response(self._transport.request(video_id, url, data), video_id)
        try:
            player = json.loads(body)
        except ValueError:
            raise YouTubeDataUnparsable(video_id) from None
        if not isinstance(player, dict):
            raise YouTubeDataUnparsable(video_id)
        return player

    def _extract_captions_json(self, innertube_data: dict[str, Any], video_id: str) -> dict[str, Any]:
        """Returns the track list of a playable video; programs override it."""
        check_playable(innertube_data.get("playabilityStatus"), video_id)
        captions = (innertube_data.get("captions") or {}).get("playerCaptionsTracklistRenderer")
        if not captions or "captionTracks" not in captions:
            raise TranscriptsDisabled(video_id)
        found: dict[str, Any] = captions
        return found


def check_playable(playability: Any, video_id: str) -> None:
    """Raises the exception of an unplayable video."""
    if not isinstance(playability, dict):
        raise YouTubeDataUnparsable(video_id)
    status, reason = playability.get("status"), playability.get("reason")
    if status is None or status == "OK":
        return
    if status == "LOGIN_REQUIRED" and reason == BOT_CHECK:
        raise RequestBlocked(video_id)
    if status == "LOGIN_REQUIRED" and reason == AGE_WALL:
        raise AgeRestricted(video_id)
    if status == "ERROR" and reason == GONE:
        is_address = video_id.startswith(("http://", "https://"))
        raise (InvalidVideoId if is_address else VideoUnavailable)(video_id)
    screen = playability.get("errorScreen", {}).get("playerErrorMessageRenderer", {})
    sub_reasons = [run.get("text", "") for run in screen.get("subreason", {}).get("runs", [])]
    raise VideoUnplayable(video_id, reason, sub_reasons)
