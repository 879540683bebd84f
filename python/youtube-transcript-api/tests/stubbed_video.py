"""Responses of a stubbed video."""

import json

WATCH = "https://www.youtube.com/watch"
PLAYER = "https://www.youtube.com/youtubei/v1/player"
CAPTIONS = "https://www.youtube.com/api/timedtext"
PAGE = '<html>"INNERTUBE_API_KEY": "key-1"</html>'
XML = '<transcript><text start="1" dur="2">a &amp;lt; b &amp;gt; c</text></transcript>'


def player(**more):
    track = {
        "baseUrl": CAPTIONS + "?v=x&lang=en&fmt=srv3",
        "name": {"simpleText": "English"},
        "languageCode": "en",
        "isTranslatable": True,
    }
    captions = {"playerCaptionsTracklistRenderer": {"captionTracks": [track]}}
    return json.dumps({"playabilityStatus": {"status": "OK"}, "captions": captions, **more})


def translated_player():
    """A player response whose track can be translated into German."""
    languages = [{"languageCode": "de", "languageName": {"runs": [{"text": "German"}]}}]
    tracks = json.loads(player())["captions"]["playerCaptionsTracklistRenderer"]
    return player(captions={"playerCaptionsTracklistRenderer": {**tracks, "translationLanguages": languages}})
