"""Names and calls of other versions, and private names that programs use."""

import importlib.metadata
import inspect
import json
import pickle
import subprocess
import sys
import traceback
from abc import ABC
from unittest.mock import MagicMock, create_autospec
from xml.etree import ElementTree

import pytest
import requests
import urllib3
import verbatim_transcripts
from stubbed_video import CAPTIONS, PLAYER, XML, player, translated_player
from youtube_transcript_api import Transcript, YouTubeDataUnparsable, YouTubeTranscriptApi
from youtube_transcript_api import _api, _transcripts, formatters


@pytest.mark.parametrize(
    ("name", "replacement"),
    [
        ("get_transcript", r"YouTubeTranscriptApi\(\).fetch\(video_id\).to_raw_data\(\)"),
        ("get_transcripts", r"YouTubeTranscriptApi\(\).fetch\(video_id\).to_raw_data\(\)"),
        ("list_transcripts", r"YouTubeTranscriptApi\(\).list\(video_id\)"),
    ],
)
def test_removed_methods_name_their_replacements(name, replacement):
    for owner in (YouTubeTranscriptApi, YouTubeTranscriptApi()):
        with pytest.raises(AttributeError, match=replacement) as raised:
            getattr(owner, name)
        assert raised.value.name == name and not hasattr(owner, name)


def test_removed_methods_are_unknown_to_type_checker(tmp_path):
    code = "import youtube_transcript_api as y\ny.YouTubeTranscriptApi.list_transcripts('x')"
    check = [sys.executable, "-m", "mypy", "--cache-dir", tmp_path, "-c", code]
    run = subprocess.run(check, cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert 'has no attribute "list_transcripts"' in run.stdout, run.stderr


def test_unknown_attributes_raise_usual_errors():
    with pytest.raises(AttributeError, match="^type object 'YouTubeTranscriptApi' has no attribute 'other'$"):
        YouTubeTranscriptApi.other
    with pytest.raises(AttributeError, match="^'YouTubeTranscriptApi' object has no attribute 'other'$"):
        YouTubeTranscriptApi().other


@pytest.mark.parametrize(
    ("name", "replacement"),
    [("cookies", "http_client="), ("cookie_path", "http_client="), ("proxies", "proxy_config=")],
)
def test_removed_arguments_name_their_replacements(name, replacement):
    with pytest.raises(TypeError, match=f"unexpected keyword argument '{name}': use {replacement}"):
        YouTubeTranscriptApi(**{name: {}})
    with pytest.raises(TypeError, match="unexpected keyword argument 'other'$"):
        YouTubeTranscriptApi(other=1)


def test_class_has_subclasses_and_autospec():
    class OtherType(type):
        pass

    class Sub(YouTubeTranscriptApi, ABC):
        @property
        def broken(self):
            return self.missing

    class Other(YouTubeTranscriptApi, metaclass=OtherType):
        pass

    assert isinstance(Sub(), YouTubeTranscriptApi) and isinstance(Other(), YouTubeTranscriptApi)
    with pytest.raises(AttributeError, match="no attribute 'missing'"):
        Sub().broken
    mock = create_autospec(YouTubeTranscriptApi)
    mock().fetch("x")
    assert not hasattr(mock, "other")
    assert list(inspect.signature(YouTubeTranscriptApi).parameters)[:2] == ["proxy_config", "http_client"]


@pytest.mark.parametrize(
    ("body", "phrase"), [("", "no element found: line 1, column 0"), ("{}", "not well-formed"), ("<a>", "no element")]
)
def test_captions_no_xml_raise_parse_error(table, body, phrase):
    table.replace("GET", CAPTIONS, body)
    with pytest.raises(ElementTree.ParseError, match=phrase) as raised:
        YouTubeTranscriptApi().fetch("x")
    error = raised.value
    again = pickle.loads(pickle.dumps(error))
    for one in (error, again):
        assert isinstance(one, YouTubeDataUnparsable) and phrase in one.msg == str(one) and one.position[0] == 1
        assert phrase in "".join(traceback.format_exception(one))


@pytest.mark.parametrize(
    "declared", ['<!ENTITY a "x">', '<!ENTITY a SYSTEM "file:///etc/hostname">', '<!ENTITY % a "x">']
)
def test_captions_with_entities_raise_parse_error(table, declared):
    cue = '<text start="0">{}</text></transcript>'
    table.replace("GET", CAPTIONS, f"<!DOCTYPE x [{declared}]><transcript>" + cue.format("&a;"))
    with pytest.raises(ElementTree.ParseError, match="the entity 'a' is declared") as raised:
        YouTubeTranscriptApi().fetch("x")
    assert isinstance(raised.value, YouTubeDataUnparsable) and raised.value.position[0] == 1
    table.replace("GET", CAPTIONS, "<!DOCTYPE transcript><transcript>" + cue.format("a &lt; b"))
    assert YouTubeTranscriptApi().fetch("x")[0].text == "a < b"


def test_fetcher_hooks_are_called(table):
    calls = []

    class Fetcher(_transcripts.TranscriptListFetcher):
        def _fetch_captions_json(self, video_id, try_number=0):
            calls.append(video_id)
            return super()._fetch_captions_json(video_id, try_number)

        def _extract_captions_json(self, innertube_data, video_id):
            calls.append(innertube_data)
            return super()._extract_captions_json(innertube_data, video_id)

    with requests.Session() as session:
        listed = Fetcher(session, proxy_config=None).fetch("x")
    assert len(listed.find_transcript(["en"]).fetch()) == 1 and calls[0] == "x" and "captions" in calls[1]
    assert _transcripts.TranscriptListFetcher is _api.TranscriptListFetcher
    with pytest.raises(AttributeError, match="has no attribute 'other'"):
        _transcripts.other


def test_fetcher_steps_are_callable(table):
    fetcher = YouTubeTranscriptApi()._fetcher
    html = fetcher._fetch_video_html("x")
    key = fetcher._extract_innertube_api_key(html, "x")
    captions = fetcher._extract_captions_json(fetcher._fetch_innertube_data("x", key), "x")
    assert key == "key-1" and captions["captionTracks"][0]["languageCode"] == "en"
    with pytest.raises(YouTubeDataUnparsable):
        fetcher._extract_innertube_api_key("<html>", "x")


def test_transcript_takes_session(table):
    with requests.Session() as session:
        track = {"url": CAPTIONS, "language": "English", "language_code": "en", "is_generated": False}
        transcript = Transcript(http_client=session, video_id="x", **track, translation_languages=[])
        assert len(transcript.fetch()) == 1 and transcript._http_client is session
        built = _transcripts.TranscriptList.build(
            session, "x", {"captionTracks": [{"languageCode": "en", "baseUrl": CAPTIONS, "name": {}}]}
        )
        assert len(built.find_transcript(["en"]).fetch()) == 1


def test_transcript_has_translation_languages_dict(table):
    table.replace("POST", PLAYER, translated_player())
    assert YouTubeTranscriptApi().list("x").find_transcript(["en"])._translation_languages_dict == {"de": "German"}


def test_names_of_requests_are_in_api_module():
    assert (_api.Session, _api.HTTPAdapter) == (requests.Session, requests.adapters.HTTPAdapter)
    assert _api.Retry is urllib3.Retry
    with pytest.raises(AttributeError, match="has no attribute 'other'"):
        _api.other


def test_patched_session_sends_requests(monkeypatch):
    session = MagicMock()
    session.get.return_value.text = '"INNERTUBE_API_KEY": "key-1"' + XML
    session.post.return_value.json.return_value = json.loads(player())
    monkeypatch.setattr(_api, "Session", lambda: session, raising=False)
    assert YouTubeTranscriptApi().list("x").find_transcript(["en"])._http_client is session


def test_formatter_base_accepts_times_as_text():
    assert issubclass(formatters.SRTFormatter, formatters._TextBasedFormatter)
    assert formatters.SRTFormatter()._seconds_to_timestamp("5.5") == "00:00:05,500"


def test_distribution_contains_licences():
    names = {path.name for path in importlib.metadata.files("verbatim-youtube-transcript-api")}
    assert {"LICENSE-APACHE", "LICENSE-MIT"} <= names


def test_distribution_requires_its_version_of_native_package():
    # Its private functions can differ in another version.
    required = importlib.metadata.requires("verbatim-youtube-transcript-api")
    assert required == [f"verbatim-transcripts=={verbatim_transcripts.__version__}"]
