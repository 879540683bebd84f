"""From a video's id to the list of its transcripts: the page, then the player."""

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
from ._transport import Answer, Transport
from .proxies import ProxyConfig

CONSENT_FORM = b'action="https://consent.youtube.com/s"'
CONSENT_VALUE = re.compile(rb'name="v" value="(.*?)"')
#: A page that has this is no form of consent, and nothing else of it is wanted.
API_KEY_NAME = '"INNERTUBE_API_KEY":'
API_KEY = re.compile(rb'"INNERTUBE_API_KEY":\s*"([a-zA-Z0-9_-]+)"')
#: YouTube's words for a proof that a person asks, for an age wall, and for a video that is not there.
BOT_CHECK = "Sign in to confirm you\u2019re not a bot"
AGE_WALL = "This video may be inappropriate for some users."
GONE = "This video is unavailable"


def checked(answer: Answer, video_id: str) -> bytes:
    """The body of an answer; a fault is raised."""
    if answer.status == 429:
        raise IpBlocked(video_id)
    if answer.status >= 400:
        raise YouTubeRequestFailed(video_id, Exception(answer.error))
    return answer.body


class TranscriptListFetcher:
    def __init__(self, transport: Transport, proxy_config: ProxyConfig | None) -> None:
        self._transport = transport
        self._proxy_config = proxy_config

    def fetch(self, video_id: str) -> TranscriptList:
        tries = 0 if self._proxy_config is None else self._proxy_config.retries_when_blocked
        while True:
            tries -= 1
            try:
                captions = self._captions(video_id)
            except RequestBlocked as error:
                if tries <= 0:
                    raise error.with_proxy_config(self._proxy_config) from None
            else:
                return TranscriptList.build(self._transport, video_id, captions)

    def _captions(self, video_id: str) -> dict[str, Any]:
        page = self._page(video_id)
        key = API_KEY.search(page)
        if key is None:
            raise (IpBlocked if b'class="g-recaptcha"' in page else YouTubeDataUnparsable)(video_id)
        return self._listed(self._player(video_id, key[1].decode()), video_id)

    def _page(self, video_id: str) -> bytes:
        page = self._get_page(video_id)
        if CONSENT_FORM not in page:
            return page
        value = CONSENT_VALUE.search(page)
        if value is None:
            raise FailedToCreateConsentCookie(video_id)
        self._transport.consent("YES+" + unescape(value[1].decode("utf-8", "replace")))
        page = self._get_page(video_id)
        if CONSENT_FORM in page:
            raise FailedToCreateConsentCookie(video_id)
        return page

    def _get_page(self, video_id: str) -> bytes:
        url = WATCH_URL.format(video_id=video_id)
        return checked(self._transport.ask(video_id, url, until=API_KEY_NAME), video_id)

    def _player(self, video_id: str, key: str) -> dict[str, Any]:
        asked = {"context": INNERTUBE_CONTEXT, "videoId": video_id}
        body = checked(self._transport.ask(video_id, INNERTUBE_API_URL.format(api_key=key), asked), video_id)
        try:
            player = json.loads(body)
        except ValueError:
            raise YouTubeDataUnparsable(video_id) from None
        if not isinstance(player, dict):
            raise YouTubeDataUnparsable(video_id)
        return player

    def _listed(self, player: dict[str, Any], video_id: str) -> dict[str, Any]:
        check_playable(player.get("playabilityStatus"), video_id)
        captions = (player.get("captions") or {}).get("playerCaptionsTracklistRenderer")
        if not captions or "captionTracks" not in captions:
            raise TranscriptsDisabled(video_id)
        found: dict[str, Any] = captions
        return found


def check_playable(playability: Any, video_id: str) -> None:
    """Raises what YouTube says of a video that it does not play."""
    if not isinstance(playability, dict) or "status" not in playability:
        raise YouTubeDataUnparsable(video_id)
    status, reason = playability["status"], playability.get("reason")
    if status == "OK":
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
