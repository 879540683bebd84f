"""Behaviour that the tests of youtube-transcript-api do not cover."""

import json
import pickle
import re
import signal
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from html import escape
from xml.etree import ElementTree

import pytest
import requests
from stubbed_video import CAPTIONS, PAGE, PLAYER, WATCH, XML, player, translated_player
from youtube_transcript_api import (
    AgeRestricted,
    FetchedTranscript,
    FetchedTranscriptSnippet,
    IpBlocked,
    NoTranscriptFound,
    RequestBlocked,
    TranscriptsDisabled,
    VideoUnavailable,
    VideoUnplayable,
    YouTubeDataUnparsable,
    YouTubeRequestFailed,
    YouTubeTranscriptApi,
)
from youtube_transcript_api import _transcripts
from youtube_transcript_api._fetcher import BOT_CHECK
from youtube_transcript_api.formatters import SRTFormatter
from youtube_transcript_api.proxies import WebshareProxyConfig

def test_fetch_sends_three_requests(table):
    fetched = YouTubeTranscriptApi().fetch("x")
    assert fetched.snippets == [FetchedTranscriptSnippet("a < b > c", 1.0, 2.0)] and fetched.language == "English"
    first, second, third = (call.request for call in table.calls)
    assert (first.url, first.headers["accept-language"]) == (WATCH + "?v=x", "en-US")
    assert second.url == PLAYER + "?key=key-1" and json.loads(second.body)["videoId"] == "x"
    assert third.url == CAPTIONS + "?v=x&lang=en"


def test_page_long_is_read_up_to_key(table):
    long = PAGE.replace("<html>", "<html>" + "x" * 60_000) + "y" * 2_000_000
    table.replace("GET", WATCH, long)
    api = YouTubeTranscriptApi()
    assert api.fetch("x")[0].text == "a < b > c" and api.fetch("x").video_id == "x"
    # A page without a key is read to its end.
    table.replace("GET", WATCH, "z" * 300_000 + '<form action="x" class="g-recaptcha">')
    with pytest.raises(IpBlocked):
        api.fetch("x")


def test_connection_closed_by_server_is_replaced(table):
    table.closes_after = ("/youtubei", "/api")
    api = YouTubeTranscriptApi()
    for _ in range(3):
        listed = api.list("x")
        # The connection is not polled between requests.
        time.sleep(0.2)
        assert listed.find_transcript(["en"]).fetch()[0].text == "a < b > c"
        time.sleep(0.2)
    assert len(table.calls) == 9


def test_object_is_shared_by_threads(table):
    api = YouTubeTranscriptApi()
    with ThreadPoolExecutor(8) as pool:
        fetched = list(pool.map(api.fetch, ["x"] * 40))
    assert len({str(one.snippets) for one in fetched}) == 1 and len(table.calls) == 120


def test_fetch_wait_is_interruptible(table, monkeypatch):
    received, release = threading.Event(), threading.Event()

    def respond_slowly(request):
        received.set()
        release.wait(10)

    def interrupt():
        received.wait(10)
        signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(table, "match", respond_slowly)
    thread = threading.Thread(target=interrupt)
    thread.start()
    start = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        YouTubeTranscriptApi().fetch("x")
    assert time.monotonic() - start < 5
    release.set()
    thread.join()


def test_session_of_caller_sends_requests(table, platform):
    with requests.Session() as session:
        session.headers["X-Mine"] = "1"
        session.cookies.set("mine", "2", domain=".youtube.com")
        assert len(YouTubeTranscriptApi(http_client=session).fetch("x")) == 1
    for call in table.calls:
        assert call.request.headers["x-mine"] == "1" and call.request.headers["cookie"] == "mine=2"


@pytest.mark.parametrize("body", ["", "{}", "<html>", "no xml", "<transcript><text>no start</text></transcript>x"])
def test_captions_unparsable_raise_data_unparsable(table, body):
    table.replace("GET", CAPTIONS, body)
    with pytest.raises(YouTubeDataUnparsable):
        YouTubeTranscriptApi().fetch("x")


@pytest.mark.parametrize("body", ["", "[]", "{}", '{"playabilityStatus": 7}'])
def test_player_unparsable_raises_data_unparsable(table, body):
    table.replace("POST", PLAYER, body)
    with pytest.raises(YouTubeDataUnparsable):
        YouTubeTranscriptApi().fetch("x")


@pytest.mark.parametrize("playability", [{}, {"status": None}])
def test_player_without_status_is_playable(table, playability):
    table.replace("POST", PLAYER, player(playabilityStatus=playability))
    assert YouTubeTranscriptApi().fetch("x")[0].text == "a < b > c"
    table.replace("POST", PLAYER, player(playabilityStatus=playability, captions={}))
    with pytest.raises(TranscriptsDisabled):
        YouTubeTranscriptApi().list("x")


def test_video_without_captions_raises_disabled(table):
    table.replace("POST", PLAYER, player(captions={}))
    with pytest.raises(TranscriptsDisabled):
        YouTubeTranscriptApi().list("x")


class Rotating(WebshareProxyConfig):
    """Retries as a rotating proxy, over direct connections."""

    def to_requests_dict(self):
        return {}


def test_429_is_retried_with_rotating_proxy(table):
    table.replace("GET", CAPTIONS, status=429)
    table.add("GET", CAPTIONS, '<transcript><text start="1">x</text></transcript>')
    with pytest.raises(IpBlocked):
        YouTubeTranscriptApi().fetch("x")
    table.replace("GET", CAPTIONS, status=429)
    table.add("GET", CAPTIONS, '<transcript><text start="1">x</text></transcript>')
    assert YouTubeTranscriptApi(Rotating("me", "secret")).fetch("x")[0].duration == 0.0


def test_429_of_page_is_retried_by_one_loop(table):
    table.replace("GET", WATCH, status=429)
    with pytest.raises(IpBlocked, match="Webshare"):
        YouTubeTranscriptApi(Rotating("me", "secret")).list("x")
    assert len(table.calls) == 11


def test_503_with_wait_is_retried_with_rotating_proxy(table):
    table.replace("GET", CAPTIONS, status=503, headers={"Retry-After": "0"})
    table.add("GET", CAPTIONS, XML)
    assert len(YouTubeTranscriptApi(Rotating("me", "secret")).fetch("x")) == 1
    table.replace("GET", CAPTIONS, status=503)
    with pytest.raises(YouTubeRequestFailed, match="503 Server Error"):
        YouTubeTranscriptApi(Rotating("me", "secret")).fetch("x")
    assert len(table.calls) == 7


def test_429_with_long_wait_leaves_retries(table):
    table.replace("GET", WATCH, status=429)
    table.add("GET", WATCH, status=429, headers={"Retry-After": "100"})
    table.add("GET", WATCH, PAGE)
    assert YouTubeTranscriptApi(Rotating("me", "secret")).fetch("x").video_id == "x"


def test_bot_check_is_retried_with_rotating_proxy(table):
    blocked = {"status": "LOGIN_REQUIRED", "reason": BOT_CHECK}
    table.replace("POST", PLAYER, player(playabilityStatus=blocked))
    with pytest.raises(RequestBlocked):
        YouTubeTranscriptApi(Rotating("me", "secret")).list("x")
    assert [call.request.method for call in table.calls].count("POST") == 10


def test_unreachable_proxy_raises_request_failed(table, monkeypatch):
    monkeypatch.setenv("HTTPS_PROXY", "http://127.0.0.1:1")
    with pytest.raises(YouTubeRequestFailed, match="could not be reached"):
        YouTubeTranscriptApi().fetch("x")


def test_srt_milliseconds_stay_below_1000():
    snippet = FetchedTranscriptSnippet("x", 59.9996, 3600.0)
    srt = SRTFormatter().format_transcript(FetchedTranscript([snippet], "x", "English", "en", False))
    assert "00:01:00,000 --> 01:01:00,000" in srt


@pytest.mark.parametrize(
    ("codes", "shown"),
    [((), "('en',)"), ((["de"],), "['de']"), ((("de", "fr"),), "('de', 'fr')"), ((iter(["de"]),), "['de']")],
)
def test_no_transcript_names_languages_as_passed(table, codes, shown):
    table.replace("POST", PLAYER, player().replace('"languageCode": "en"', '"languageCode": "pt"'))
    with pytest.raises(NoTranscriptFound, match=re.escape(f"language codes: {shown}\n")):
        YouTubeTranscriptApi().fetch("x", *codes)


def test_exceptions_survive_pickle(table):
    with pytest.raises(NoTranscriptFound):
        YouTubeTranscriptApi().fetch("x", languages=["de"])
    error = VideoUnplayable("x", "a reason", ["more"])
    again = pickle.loads(pickle.dumps(error))
    assert str(again) == str(error) and again.sub_reasons == ["more"] and "a reason" in str(error)


@pytest.mark.parametrize(
    ("error", "phrase"),
    [
        (TranscriptsDisabled("x"), "Subtitles are disabled"),
        (
            NoTranscriptFound("x", ["de"], "none"),
            "No transcripts were found for any of the requested language codes: ['de']\n\nnone",
        ),
        (VideoUnavailable("x"), "no longer available"),
        (VideoUnplayable("x", "Odd", []), "video is unplayable for the following reason: Odd"),
        (RequestBlocked("x"), "YouTube is blocking requests from your IP"),
        (IpBlocked("x"), "cloud provider"),
        (AgeRestricted("x"), "age-restricted"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_exceptions_contain_matched_phrases(error, phrase):
    assert f"Could not retrieve a transcript for the video {WATCH}?v=x! " in str(error) and phrase in str(error)


def test_exception_texts_are_attributes():
    error = VideoUnavailable("x")
    assert str(error) == error._build_error_message()
    assert str(error) == error.ERROR_MESSAGE.format(video_url=WATCH + "?v=x") + error.CAUSE_MESSAGE_INTRO.format(
        cause=error.CAUSE_MESSAGE
    )
    assert str(error).replace(error.GITHUB_REFERRAL, "") == str(error).split(error.GITHUB_REFERRAL)[0] == str(error)


def test_captions_use_declared_encoding(table):
    text = '<?xml version="1.0" encoding="utf-8" ?><transcript><text start="1">caf\xe9</text></transcript>'
    table.replace("GET", CAPTIONS, text, content_type="text/xml")
    assert YouTubeTranscriptApi().fetch("x")[0].text == "caf\xe9"


def test_translation_fetches_translated_track(table):
    table.replace("POST", PLAYER, translated_player())
    listed = YouTubeTranscriptApi().list("x")
    translated = listed.find_transcript(["en"]).translate("de")
    assert (translated.language, translated.is_generated, translated.is_translatable) == ("German", True, False)
    translated.fetch()
    assert table.calls[-1].request.url.endswith("&tlang=de")
    assert 'de ("German")' in str(listed) and 'en ("English")[TRANSLATABLE]' in str(listed)


CUE = '<text start="1.5" dur="2.25">{}</text>'


@pytest.mark.parametrize(
    ("text", "plain", "formatted"),
    [
        ("<b>a</b> <u>b</u>", "a b", "<b>a</b> b"),
        ("<i>a</i> <c.color>b</c>", "a b", "<i>a</i> b"),
        ("x<br>y", "xy", "xy"),
        ("a <b", "a <b", "a <b"),
        # The following differ from 1.2.5: docs/python/youtube-transcript-api.md.
        ("a < b and c > d", "a < b and c > d", "a < b and c > d"),
        ('<font color="#E5E5E5">a</font> b', "a b", "a b"),
        ("x<br/>y", "xy", "xy"),
        ("<00:00:01.5> a", "<00:00:01.5> a", "<00:00:01.5> a"),
        ("<!-- a --> b", "<!-- a --> b", "<!-- a --> b"),
    ],
)
def test_formatting_follows_table_of_differences(text, plain, formatted):
    body = f"<transcript>{CUE.format(escape(text))}</transcript>"
    for preserve_formatting, expected in ((False, plain), (True, formatted)):
        (snippet,) = _transcripts._TranscriptParser(preserve_formatting).parse(body)
        assert snippet == FetchedTranscriptSnippet(expected, 1.5, 2.25)


@pytest.mark.parametrize("preserve_formatting", [False, True])
@pytest.mark.parametrize(
    ("is_plain", "cues"),
    [
        (True, ""),
        (True, CUE.format("I&amp;#39;m &amp;amp;amp; caf\xe9 &amp;eacute; &amp;bogus &#39;x&apos; \U0001f980")),
        (True, CUE.format("&lt;i&gt;a&lt;/i&gt; &lt;font color=&quot;#fff&quot;&gt;b&lt;/font&gt; 1 &lt; 2 &amp;lt;b&amp;gt;")),
        (True, CUE.format(" a\n\tb ") + '\n <text start="007"/>' + '<text start="8"></text>'),
        (True, '<text start="0">no end</text>' + CUE.format("\x85\x7f ]]&gt;")),
        (False, CUE.format("a\r\nb")),
        (False, CUE.format("a > b")),
        (False, CUE.format("<b>a</b>")),
        (False, CUE.format("a<b/>c")),
        (False, CUE.format("<![CDATA[a <i>b</i>]]>")),
        (False, CUE.format("&#x27; &#8217;")),
        (False, CUE.format("\ufffd\uff21")),
        (False, "<text start='1' dur='2'>a</text>"),
        (False, '<text dur="2" start="1">a</text>'),
        (False, '<text start=" 1e1 " dur="1_0" kind="x">a</text>'),
        (False, '<p start="1">a</p>phrase<!-- no --><text  start="1">b</text>'),
        (False, '<text start="inf" dur="nan"/>'),
        # Malformed input: ElementTree decides the error.
        (False, CUE.format("&eacute;")),
        (False, CUE.format("a & b")),
        (False, CUE.format("a ]]> b")),
        (False, CUE.format("\x01")),
        (False, CUE.format("\uffff")),
        (False, '<text start="">a</text>'),
        (False, '<text start="one">a</text>'),
        (False, '<text dur="1">a</text>'),
        (False, '<text start="1" start="2">a</text>'),
        (False, '<text start="1">a'),
        (False, '<text start="1">a</transcript><transcript>'),
        (False, "</transcript>x<transcript>"),
    ],
)
def test_cues_equal_element_tree_result(monkeypatch, preserve_formatting, is_plain, cues):
    def read():
        try:
            return _transcripts.parse(body, preserve_formatting)
        except Exception as error:
            return type(error), str(error)

    body = f'<?xml version="1.0" encoding="utf-8" ?><transcript>{cues}</transcript>'.encode()
    received = []
    parser = ElementTree.fromstring
    monkeypatch.setattr(ElementTree, "fromstring", lambda text: received.append(text) or parser(text))
    found = read()
    assert received == ([] if is_plain else [body])
    monkeypatch.setattr(_transcripts, "_parse_raw_timedtext", lambda _: None)
    assert found == read() and (not is_plain or isinstance(found, list))
