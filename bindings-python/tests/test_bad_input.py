"""Invalid arguments raise precise exceptions."""

import datetime

import pytest
from conftest import LINK

import verbatim_transcripts as vt


@pytest.mark.parametrize("link", [None, b"x", 7, ["x"], object()])
def test_link_of_wrong_type_raises_type_error(imported, link):
    with pytest.raises(TypeError):
        imported.get(link)
    with pytest.raises(TypeError):
        vt.get(link)


@pytest.mark.parametrize("link", ["", " ", "x" * 10_000_000, "https://vimeo.com/1", "\0", "🎬", "https://youtu.be/"])
def test_link_malformed_raises_invalid_input(imported, link):
    with pytest.raises(vt.InvalidInput) as raised:
        imported.get(link)
    assert isinstance(raised.value, ValueError) and len(str(raised.value)) < 500


def test_link_with_surrogate_raises_unicode_error(imported):
    with pytest.raises(UnicodeEncodeError):
        imported.get("\ud800")


@pytest.mark.parametrize("lang", ["", "no language at all", "e", "x" * 100_000])
def test_language_malformed_raises_invalid_input(imported, lang):
    with pytest.raises(vt.InvalidInput):
        imported.get(LINK, lang)


@pytest.mark.parametrize(
    ("keywords", "error"),
    [
        ({"archive": 7}, TypeError),
        ({"archive": ""}, ValueError),
        ({"archive": "mysql://x"}, ValueError),
        ({"archive": "sqlite://x"}, ValueError),
        ({"suppliers": "youtube-captions"}, TypeError),
        ({"suppliers": ["unknown"]}, ValueError),
        ({"suppliers": [7]}, TypeError),
        ({"suppliers": ["yt-dlp"]}, ValueError),
        ({"proxies": "no proxy"}, ValueError),
        ({"proxies": [7]}, TypeError),
        ({"proxies": {"http": "http://127.0.0.1:9"}}, ValueError),
        ({"proxies": {"https": 7}}, TypeError),
        ({"timeout": "1"}, TypeError),
        ({"timeout": -1}, ValueError),
        ({"timeout": 0}, ValueError),
        ({"timeout": float("nan")}, ValueError),
        ({"timeout": 1e300}, ValueError),
        ({"retries": -1}, ValueError),
        ({"concurrency": "many"}, TypeError),
        ({"concurrency": 0}, ValueError),
        ({"ca_file": "/no/such/file"}, (ValueError, vt.VerbatimError)),
        ({"server": ("https://a.example", "no key")}, ValueError),
        ({"speech": ("nowhere", "model", None)}, ValueError),
        ({"youtube_clients": ["unknown@0"]}, ValueError),
        ({"nonsense": 1}, TypeError),
    ],
)
def test_options_invalid_raise_error(keywords, error):
    with pytest.raises(error) as raised:
        vt.Transcripts(**keywords)
    assert "integral type" not in str(raised.value)


def test_numbers_out_of_range_raise_value_error(imported):
    huge, segments = 10**400, [vt.Segment("a", 0)]
    transcript = imported.get(LINK)
    for call in (
        lambda: imported.get(LINK, timeout=huge),
        lambda: list(imported.get_many([LINK], max_wait=huge)),
        lambda: vt.Client("https://verbatim.example", timeout=huge),
        lambda: vt.Segment("a", huge),
        lambda: vt.Segment("a", 0, huge),
        lambda: vt.Transcript(LINK, segments, duration=huge),
        lambda: vt.Transcript(LINK, segments, metadata=vt.VideoMetadata(duration=huge)),
        lambda: vt.Transcript(LINK, segments, chapters=[vt.Chapter("One", huge)]),
        lambda: transcript.chunks(seconds=huge),
        lambda: transcript.chunks(seconds=9, overlap=huge),
        lambda: imported.search("quiet", limit=-1),
        lambda: imported.search("quiet", limit=2**40),
        lambda: vt.Client("https://verbatim.example", retries=-1),
    ):
        with pytest.raises(ValueError, match="out of range"):
            call()


@pytest.mark.parametrize(
    "keywords",
    [
        {"concurrency": float("nan")},
        {"concurrency": 1.5},
        {"lang": 5},
        {"lang": []},
        {"lang": "no language"},
        {"lang": float("nan")},
        {"timeout": -1},
        {"translated": "yes"},
        {"fetch": 1},
    ],
)
def test_get_many_wrong_argument_raises_before_first_result(imported, keywords):
    for get_many in (imported.get_many, imported.aget_many):
        with pytest.raises((TypeError, ValueError)):
            get_many([LINK], **keywords)
    if keywords.keys() & {"lang", "concurrency"}:
        with vt.Client("https://verbatim.example") as client, pytest.raises((TypeError, ValueError)):
            client.get_many([LINK], **keywords)


def test_job_wait_timeout_that_never_ends_raises_value_error():
    with vt.Client("https://verbatim.example", "vba_" + "a" * 43) as client:
        for timeout in (float("nan"), -1):
            with pytest.raises(ValueError, match="timeout must be"):
                client.jobs.wait("job_1", timeout=timeout)


@pytest.mark.parametrize(
    ("metadata", "expected"),
    [
        ({"title": "One"}, "metadata must be a VideoMetadata, not <class 'dict'>"),
        (vt.VideoMetadata(published_at="2020-01-01"), "published_at must be a datetime, not <class 'str'>"),
        (vt.VideoMetadata(published_at=datetime.date(2020, 1, 1)), "published_at must be a datetime, not <class"),
    ],
)
def test_metadata_of_wrong_type_raises_type_error(metadata, expected):
    with pytest.raises(TypeError, match=expected):
        vt.Transcript(LINK, [vt.Segment("a", 0)], metadata=metadata)


@pytest.mark.parametrize("captions", [None, 7, 10**12, [1, 2], object(), ["1", "2"]])
def test_captions_of_wrong_type_raise_type_error(imported, captions):
    with pytest.raises(TypeError, match="captions must be"):
        imported.import_(LINK, captions)


@pytest.mark.parametrize("text", ["x" * 50_000_000, "1\n00:00:01,000 --> 00:00:02,000\n" + "x" * 50_000_000])
def test_huge_text_raises_value_error(imported, text):
    with pytest.raises(ValueError):
        imported.import_(LINK, text)
    assert imported.search(text) == []
    with pytest.raises(ValueError):
        vt.Transcript(LINK, [vt.Segment(text, 0)], language="en", title=text)
    with pytest.raises(ValueError):
        vt.Transcript.from_json(text)
    assert imported.get(LINK).text.startswith("It is so quiet")


def test_await_outside_asyncio_raises_runtime_error():
    with vt.Transcripts(suppliers=[]) as transcripts:
        call = transcripts.aget(LINK)
        with pytest.raises(RuntimeError, match="no running event loop"):
            call.send(None)


def test_closed_object_raises_closed_error(imported):
    imported.close()
    imported.close()
    assert "closed" in repr(imported)
    with pytest.raises(vt.ClosedError):
        imported.get(LINK)
    with pytest.raises(vt.ClosedError):
        imported.search("x")
    (result,) = imported.get_many([LINK])
    assert isinstance(result.error, vt.ClosedError)


def test_pending_call_second_wait_raises_runtime_error(imported):
    pending = imported._engine.get(LINK, None, False, True, None)
    assert pending.wait().language == "en"
    with pytest.raises(RuntimeError, match="already"):
        pending.wait()
    with pytest.raises(RuntimeError, match="no running event loop"):
        imported._engine.get(LINK, None, False, True, None).__await__()


def test_exceptions_are_public_and_picklable():
    import pickle

    from verbatim_transcripts import _errors

    classes = [value for value in vars(_errors).values() if isinstance(value, type)]
    errors = {kind.__name__: kind for kind in classes if issubclass(kind, vt.VerbatimError)}
    assert errors.keys() - set(vt.__all__) == {"NoServer", "RefusedInput"}
    for name in errors.keys() & set(vt.__all__):
        kind = getattr(vt, name)
        assert kind is errors[name] and kind.__module__ == "verbatim_transcripts" and kind.__doc__
        error = kind("no_captions")
        error.retry_after = 3.0
        again = pickle.loads(pickle.dumps(error))
        assert type(again) is kind and str(again) == str(error) and vars(again) == vars(error)


def test_messages_of_client_name_its_arguments():
    with pytest.raises(vt.InvalidInput, match="^base_url must be the URL of a Verbatim server"):
        vt.Client("x")
    with pytest.raises(vt.InvalidInput, match="^key must be an API key"):
        vt.Client("https://verbatim.example", "")
    with vt.Client("https://verbatim.example") as client, pytest.raises(vt.InvalidInput, match="^key must be an API key"):
        client.use_key("two words")


def test_messages_name_python_arguments(replay):
    with pytest.raises(vt.VerbatimError) as raised:
        vt.Transcripts(retries=10_000)
    assert str(raised.value).startswith("retries must be at most")
    with vt.Transcripts(proxies=replay.proxy) as transcripts, pytest.raises(vt.FetchFailed) as raised:
        transcripts.get("vb-tracks-0")
    assert "to ca_file" in str(raised.value) and "upstream" not in str(raised.value)
