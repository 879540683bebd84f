"""Whatever is given: an exception that says what was wrong."""

import pytest
from conftest import LINK

import verbatim


@pytest.mark.parametrize("link", [None, b"x", 7, ["x"], object()])
def test_links_of_other_types(shelf, link):
    with pytest.raises(TypeError):
        shelf.get(link)
    with pytest.raises(TypeError):
        verbatim.get(link)


@pytest.mark.parametrize("link", ["", " ", "x" * 10_000_000, "https://vimeo.com/1", "\0", "🎬", "https://youtu.be/"])
def test_texts_that_are_no_links(shelf, link):
    with pytest.raises(verbatim.InvalidInput) as raised:
        shelf.get(link)
    assert isinstance(raised.value, ValueError) and len(str(raised.value)) < 500


def test_a_text_that_is_no_unicode(shelf):
    with pytest.raises(UnicodeEncodeError):
        shelf.get("\ud800")


@pytest.mark.parametrize("lang", ["", "no language at all", "e", "x" * 100_000])
def test_languages(shelf, lang):
    with pytest.raises(verbatim.InvalidInput):
        shelf.get(LINK, lang)


@pytest.mark.parametrize(
    ("keywords", "error"),
    [
        ({"archive": 7}, TypeError),
        ({"archive": ""}, ValueError),
        ({"archive": "postgres://x"}, ValueError),
        ({"archive": "sqlite://x"}, ValueError),
        ({"suppliers": "youtube-captions"}, TypeError),
        ({"suppliers": ["nobody"]}, ValueError),
        ({"suppliers": [7]}, TypeError),
        ({"suppliers": ["yt-dlp"]}, ValueError),
        ({"proxies": "no proxy"}, ValueError),
        ({"proxies": [7]}, TypeError),
        ({"timeout": "1"}, TypeError),
        ({"timeout": -1}, ValueError),
        ({"timeout": 0}, ValueError),
        ({"timeout": float("nan")}, ValueError),
        ({"timeout": 1e300}, ValueError),
        ({"retries": -1}, (ValueError, OverflowError)),
        ({"at_once": "many"}, TypeError),
        ({"ca_file": "/no/such/file"}, (ValueError, verbatim.VerbatimError)),
        ({"server": ("https://a.example", "no key")}, ValueError),
        ({"speech": ("nowhere", "model", None)}, ValueError),
        ({"youtube_clients": ["nobody@0"]}, ValueError),
        ({"nonsense": 1}, TypeError),
    ],
)
def test_options(keywords, error):
    with pytest.raises(error):
        verbatim.Transcripts(**keywords)


@pytest.mark.parametrize("captions", [None, 7, 10**12, [1, 2], object(), ["1", "2"]])
def test_captions_of_other_types(shelf, captions):
    with pytest.raises(TypeError, match="captions must be"):
        shelf.import_(LINK, captions)


@pytest.mark.parametrize("text", ["x" * 50_000_000, "1\n00:00:01,000 --> 00:00:02,000\n" + "x" * 50_000_000])
def test_huge_texts(shelf, text):
    with pytest.raises(ValueError):
        shelf.import_(LINK, text)
    assert shelf.search(text) == []
    with pytest.raises(ValueError):
        verbatim.Transcript(LINK, [verbatim.Segment(text, 0)], language="en", title=text)
    with pytest.raises(ValueError):
        verbatim.Transcript.from_json(text)
    assert shelf.get(LINK).text.startswith("It is so quiet")


def test_after_closing(shelf):
    shelf.close()
    shelf.close()
    assert "closed" in repr(shelf)
    with pytest.raises(verbatim.Closed):
        shelf.get(LINK)
    with pytest.raises(verbatim.Closed):
        shelf.search("x")
    (result,) = shelf.get_many([LINK])
    assert isinstance(result.error, verbatim.Closed)


def test_work_is_waited_for_once(shelf):
    pending = shelf._engine.get(LINK, None)
    assert pending.wait().language == "en"
    with pytest.raises(RuntimeError, match="already"):
        pending.wait()
    with pytest.raises(RuntimeError, match="no running event loop"):
        shelf._engine.get(LINK, None).__await__()


def test_every_exception_has_its_place_and_can_be_pickled():
    import pickle
    import sys

    for name in sys.modules["verbatim._errors"].__all__:
        kind = getattr(verbatim, name)
        assert name in verbatim.__all__
        assert issubclass(kind, verbatim.VerbatimError) and kind.__module__ == "verbatim" and kind.__doc__
        error = kind("no_captions")
        error.retry_after = 3.0
        again = pickle.loads(pickle.dumps(error))
        assert type(again) is kind and str(again) == str(error) and vars(again) == vars(error)
