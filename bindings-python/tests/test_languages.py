"""Languages, machine translations, the archive alone, and the timeout of a call."""

import asyncio
import json
import time

import pytest
from conftest import LINK, SRT
from fake_server import FakeServer, Handler

import verbatim_transcripts as vt
from verbatim_transcripts import Segment, SupplyError, Track, Transcript, Transcripts


class TranslatingSupplier:
    """Has captions in English and French, and translates into German."""

    name = "translating"

    def __init__(self):
        self.languages = []

    def supply(self, request):
        self.languages.append(request.lang)
        if request.lang not in (None, "en", "fr", "de"):
            raise SupplyError("no_language", "There are no captions in this language.")
        kind = "translated" if request.lang == "de" else "human"
        english = Transcript(request.url, [Segment("Hello.", 0, 1)], language="en")
        if request.lang in (None, "en"):
            return english
        return [Transcript(request.url, [Segment("…", 0, 1)], language=request.lang, kind=kind), english]


class SlowSupplier:
    name = "slow"

    async def supply(self, request):
        await asyncio.sleep(60)


@pytest.fixture
def supplier():
    return TranslatingSupplier()


@pytest.fixture
def transcripts(supplier):
    with Transcripts(suppliers=[supplier]) as transcripts:
        yield transcripts


def test_languages_lists_tracks_of_platform(youtube):
    tracks = youtube.languages("vb-tracks-0")
    assert {(track.language, track.kind) for track in tracks} >= {("en", "human"), ("en", "generated"), ("de", "human")}
    assert [track.language for track in tracks if track.is_archived] == ["en"]
    assert any(track.name == "Sous-titres" for track in tracks) and any(track.is_generated for track in tracks)
    assert asyncio.run(youtube.alanguages("vb-tracks-0", fetch=False)) == tracks
    with pytest.raises(vt.PrivateVideo):
        youtube.languages("vb-private0")
    with pytest.raises(vt.InvalidInput):
        youtube.languages("no link")


def test_languages_archived_video_needs_no_supplier(imported):
    assert imported.languages(LINK) == [Track("en", "human", None, False, True)]
    assert imported.languages("aaaaaaaaaaa", fetch=False) == []
    with pytest.raises(vt.NotConfigured):
        imported.languages("aaaaaaaaaaa")


def test_lang_list_returns_first_available(youtube, transcripts):
    assert youtube.get("vb-tracks-0", ["ja", "de", "en"]).language == "de"
    assert transcripts.get(LINK, ("nl", "fr")).language == "fr"
    assert asyncio.run(transcripts.aget(LINK, ["nl", "fr"])).language == "fr"
    assert [result.get().language for result in transcripts.get_many([LINK], ["nl", "fr"])] == ["fr"]
    with pytest.raises(vt.LanguageNotFound):
        transcripts.get(LINK, ["nl", "pt"])


@pytest.mark.parametrize(("lang", "error"), [([], ValueError), (["en", "no tag"], vt.InvalidInput), (7, TypeError), ([7], TypeError), (["en"] * 99, vt.InvalidInput)])
def test_lang_invalid_list_raises_error(transcripts, lang, error):
    with pytest.raises(error) as raised:
        transcripts.get(LINK, lang)
    assert "lang" in str(raised.value) or isinstance(raised.value, vt.InvalidInput)
    assert "Languages" not in str(raised.value)


def test_translation_is_returned_on_request_only(supplier, transcripts):
    for _ in range(3):
        with pytest.raises(vt.LanguageNotFound, match="machine translation") as raised:
            transcripts.get(LINK, "de")
        assert list(raised.value.available) == ["en"]
    assert transcripts.get(LINK, ["de", "fr"]).language == "fr"
    for _ in range(3):
        found = transcripts.get(LINK, "de", translated=True)
        assert (found.language, found.kind) == ("de", "translated")
    # The archived translation is no language of the video.
    with pytest.raises(vt.LanguageNotFound) as raised:
        transcripts.get(LINK, "de")
    assert sorted(raised.value.available) == ["en", "fr"]
    # Once without and once with permission: a supplier that knows the difference answers them differently.
    assert supplier.languages == ["de", "fr", "de"]


def test_refresh_returns_translation_on_request_only(transcripts):
    with pytest.raises(vt.LanguageNotFound):
        transcripts.refresh(LINK, "de")
    assert transcripts.refresh(LINK, "de", translated=True).transcript.kind == "translated"
    assert asyncio.run(transcripts.arefresh(LINK, "de", translated=True)).transcript.kind == "translated"


def test_fetch_false_reads_archive_only(supplier, transcripts):
    for call in (lambda: transcripts.get(LINK, fetch=False), lambda: asyncio.run(transcripts.aget(LINK, fetch=False))):
        with pytest.raises(vt.NotArchived, match="not archived"):
            call()
    assert supplier.languages == []
    transcripts.get(LINK)
    assert transcripts.get(LINK, fetch=False).language == "en" == transcripts.get(LINK, "en", fetch=False).language
    (result,) = transcripts.get_many([LINK], "fr", fetch=False)
    assert isinstance(result.error, vt.NotArchived) and supplier.languages == [None]
    assert result.error.args[0] == "This video is not archived in fr. Archived languages: en."
    assert result.error.available == ["en"]


class CountingSupplier:
    """Fails for this reason; without one it works until it is released."""

    name = "counting"

    def __init__(self, reason):
        self.reason = reason
        self.languages = []
        self.is_released = False

    async def supply(self, request):
        self.languages.append(request.lang)
        while self.reason is None and not self.is_released:
            await asyncio.sleep(0.02)
        raise SupplyError(self.reason or "timeout")


@pytest.mark.parametrize(
    ("reason", "error", "tried"),
    [
        (None, vt.FetchFailed, ["de"]),
        ("throttled", vt.RateLimited, ["de"]),
        ("misconfigured", vt.NotConfigured, ["de"]),
        ("no_language", vt.LanguageNotFound, ["de", "en", "fr"]),
    ],
)
def test_text_tries_next_language_only_if_language_is_missing(reason, error, tried):
    supplier = CountingSupplier(reason)
    with vt.Service(suppliers=[supplier], timeout=0.2) as service:
        client = service.client(service.create_key("page").key)
        with pytest.raises(error):
            client.get_text(LINK, "srt", lang=["de", "en", "fr"])
        languages = list(supplier.languages)
        supplier.is_released = True
    assert languages == tried


class DetailServer(FakeServer):
    """A server without transcripts, whose responses have the reason `no_captions` and this detail."""

    def __init__(self, detail):
        paths = self.paths = []
        watch_url = "https://v.example/watch/video_site/dQw4w9WgXcQ"
        result = {
            "platform": "video_site",
            "videoId": "dQw4w9WgXcQ",
            "available": False,
            "watchUrl": watch_url,
            "failureReason": "no_captions",
            "transcript": [],
        }

        class DetailHandler(Handler):
            def do_GET(self):
                paths.append(self.path)
                is_text = "format=" in self.path
                body = f"There is none.\n{watch_url}\n" if is_text else json.dumps(result)
                content_type = "text/plain" if is_text else "application/json"
                headers = {"x-failure-detail": detail, "content-type": content_type}
                self.respond(404 if is_text else 200, body, headers)

        super().__init__(DetailHandler)


@pytest.mark.parametrize(
    ("detail", "tried"), [(None, 3), ("no_language", 3), ("private", 1), ("withdrawn", 1), ("expired", 1), ("novel", 1)]
)
def test_transcript_and_text_try_languages_alike(detail, tried):
    server = DetailServer(detail)
    try:
        client = vt.Client(server.address, "vbk_x", retries=0)
        for call in (client.get, lambda link, lang: client.get_text(link, "srt", lang=lang)):
            server.paths.clear()
            with pytest.raises(vt.TranscriptUnavailable):
                call(LINK, ["de", "en", "fr"])
            assert len(server.paths) == tried
    finally:
        server.stop()


def test_timeout_of_call_ends_it():
    with Transcripts(suppliers=[SlowSupplier()]) as transcripts:
        transcripts.import_("bbbbbbbbbbb", SRT, lang="en")
        started = time.monotonic()
        with pytest.raises(vt.FetchFailed, match="timeout"):
            transcripts.get(LINK, timeout=0.1)
        with pytest.raises(vt.FetchFailed, match="timeout"):
            transcripts.get(LINK, ["de", "en"], timeout=0.1)
        with pytest.raises(vt.FetchFailed):
            asyncio.run(transcripts.alanguages(LINK, timeout=0.1))
        assert time.monotonic() - started < 20
        assert transcripts.get("bbbbbbbbbbb", timeout=0.1).language == "en"
        for timeout in (0, -1, float("nan"), 1e9):
            with pytest.raises(ValueError, match="timeout"):
                transcripts.get(LINK, timeout=timeout)
