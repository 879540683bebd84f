"""Transcripts in data tools: tables, chunks, files, pydantic, FastAPI, and the loaders of other libraries."""

import importlib
import json
import pathlib
import sys
from typing import Annotated

import pandas as pd
import pydantic
import pytest
from conftest import LINK
from fastapi import Body, FastAPI
from fastapi.testclient import TestClient

import verbatim_transcripts as vt
from verbatim_transcripts import Segment, Transcript
from verbatim_transcripts.langchain import TranscriptLoader
from verbatim_transcripts.llama_index import TranscriptReader

COLUMNS = ["text", "start", "duration"]


@pytest.fixture
def long() -> Transcript:
    """Ten segments of ten seconds, with a pause after the fifth."""
    return Transcript(
        LINK, [Segment(f"Word {n}.", n * 10 + (n > 4) * 60, 10) for n in range(10)], language="en", title="Words"
    )


def test_table_has_segments_as_rows(transcript):
    for table in (pd.DataFrame(transcript), pd.DataFrame(transcript.segments), transcript.to_pandas()):
        assert list(table.columns) == COLUMNS and len(table) == 2
        assert table["start"].tolist() == [1.5, 61.0] and table["text"][1] == "The café is closed."
    assert list(pd.DataFrame(transcript.to_dicts()).columns) == COLUMNS
    assert list(pd.DataFrame(transcript.segments[1:]).columns) == COLUMNS


def test_segment_unpacks(transcript):
    text, start, duration = transcript[0]
    assert (text, start, duration) == ("It is so quiet here.", 1.5, 1.5)
    assert [start for _, start, _ in transcript] == [1.5, 61.0]
    assert len(transcript[0]) == 3 and transcript[0][-1] == 1.5 and transcript[0][:2] == (text, start)
    assert transcript[0]._asdict() == transcript.to_dicts()[0] and Segment._fields == tuple(COLUMNS)
    with pytest.raises(IndexError):
        transcript[0][3]
    with pytest.raises(TypeError):
        transcript[0]["text"]


def test_from_dicts_restores_segments(transcript):
    for dicts in (transcript.to_dicts(), list(map(tuple, transcript)), iter(transcript.to_dicts()), list(transcript)):
        copy = Transcript.from_dicts(LINK, dicts, language="en", title="A quiet day", author="Ann")
        assert copy == transcript
    assert Transcript.from_dicts(LINK, [{"text": "a", "start": 1}])[0].duration == 0
    # As Whisper returns them, without and with times of words.
    assert Transcript.from_dicts(LINK, [{"text": "a", "start": 1.0, "end": 3.5}])[0] == Segment("a", 1, 2.5)
    words = [{"word": " Hi", "start": 1.0, "end": 1.5, "probability": 0.9}, {"word": " you.", "start": 1.5, "end": 2.0}]
    whisper = {"text": " Hi you.", "start": 1.0, "end": 3.5, "words": words}
    expected = Segment(" Hi you.", 1, 2.5, [("Hi", 1, 0.5), ("you.", 1.5, 0.5)])
    assert Transcript.from_dicts(LINK, [whisper])[0] == expected
    with pytest.raises(ValueError, match="item 0.*end must not be before start"):
        Transcript.from_dicts(LINK, [{"text": "a", "start": 2, "end": 1}])
    wrong = [[{"text": "a"}], [{"text": 7, "start": 0}], [7], [("a",)], [{"text": "a", "start": -1}], [{"text": "a", "start": "x"}]]
    for dicts in wrong:
        with pytest.raises(ValueError, match="item 0"):
            Transcript.from_dicts(LINK, dicts)
    with pytest.raises(vt.InvalidInput):
        Transcript.from_dicts(LINK, [])
    with pytest.raises(vt.InvalidInput):
        Transcript.from_dicts(LINK, ({"text": "a", "start": 0} for _ in range(200_000)))


def test_dict_restores_transcript(transcript):
    document = transcript.to_dict()
    assert document == json.loads(transcript.to_json()) and document["platform"] == "YouTube"
    assert Transcript.from_dict(document) == transcript
    assert Transcript.from_dict({**document, "platform": "video_site"}) == transcript
    with pytest.raises(ValueError, match="not a transcript"):
        Transcript.from_dict({})


@pytest.mark.parametrize("suffix", ["txt", "md", "srt", "vtt", "json", "SRT"])
def test_save_format_follows_suffix(transcript, tmp_path, suffix):
    path = tmp_path / f"a.{suffix}"
    transcript.save(path)
    expected = {
        "txt": transcript.text,
        "md": transcript.to_markdown(),
        "srt": transcript.to_srt(),
        "vtt": transcript.to_vtt(),
        "json": transcript.to_json() + "\n",
    }
    assert path.read_bytes().decode() == expected[suffix.lower()]
    transcript.save(str(path))


def test_tilde_of_paths_is_home_folder(imported, transcript, tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("USERPROFILE", str(tmp_path))
    transcript.save("~/a.srt")
    assert (tmp_path / "a.srt").read_text() == transcript.to_srt()
    assert imported.import_(LINK, pathlib.Path("~/a.srt"), lang="de").segments == 2
    assert imported.export("~/exports") == 2
    assert len(imported.import_folder("~/exports")) == 2
    (tmp_path / "no.pem").write_text("no certificate")
    for call in (lambda path: vt.Client("https://v.example", ca_file=path), lambda path: vt.Transcripts(ca_file=path)):
        with pytest.raises(vt.InvalidInput, match=str(tmp_path / "no.pem")):
            call("~/no.pem")


def test_save_invalid_path_raises_error(transcript, tmp_path):
    for name in ("a", "a.pdf", ".srt"):
        with pytest.raises(ValueError, match="suffix"):
            transcript.save(tmp_path / name)
    with pytest.raises(FileNotFoundError, match="nowhere"):
        transcript.save(tmp_path / "nowhere" / "a.srt")


def test_paragraphs_keep_times_and_segments(long):
    first, second = long.paragraphs()
    assert first.text == "Word 0. Word 1. Word 2. Word 3. Word 4." and (first.start, first.end) == (0, 50)
    assert second.segments == long.segments[5:] and second.url.endswith("t=110s")
    assert "\n\n".join(paragraph.text for paragraph in long.paragraphs()) + "\n" == long.text


def test_chunks_have_size_and_overlap(long):
    assert [len(chunk.segments) for chunk in long.chunks(seconds=30)] == [3, 2, 3, 2]
    by_time = long.chunks(seconds=30, overlap=10)
    assert [chunk.text for chunk in by_time[:2]] == ["Word 0. Word 1. Word 2.", "Word 2. Word 3. Word 4."]
    by_tokens = long.chunks(tokens=12, overlap=4)
    assert all(len(chunk.segments) == 3 for chunk in by_tokens[:-1])
    assert by_tokens[1].segments[0] == by_tokens[0].segments[-1]
    assert len(long.chunks(tokens=10_000)) == 1 == len(long.chunks(seconds=86_400))


def test_pages_have_every_segment_once(long):
    pages = long.pages(max_chars=20)
    assert [segment for page in pages for segment in page.segments] == list(long.segments)
    assert all(sum(len(segment.text) for segment in page.segments) <= 20 for page in pages) and len(pages) > 1
    assert pages[0].text == "Word 0. Word 1." and (pages[0].start, pages[0].end) == (0, 20)
    assert [len(page.segments) for page in long.pages(max_chars=1)] == [1] * len(long)
    assert len(long.pages()) == 1
    for size, error in ((0, ValueError), (1_000_001, ValueError), (-1, ValueError), (2**40, ValueError), ("a", TypeError)):
        with pytest.raises(error):
            long.pages(max_chars=size)


@pytest.mark.parametrize(
    ("keywords", "error"),
    [
        ({}, TypeError),
        ({"seconds": 1, "tokens": 1}, TypeError),
        ({"seconds": 0}, ValueError),
        ({"seconds": float("nan")}, ValueError),
        ({"seconds": 10, "overlap": 6}, ValueError),
        ({"seconds": 10, "overlap": -1}, ValueError),
        ({"tokens": 0}, ValueError),
        ({"tokens": 10, "overlap": 6}, ValueError),
        ({"tokens": 10, "overlap": 0.5}, ValueError),
        ({"tokens": 10, "overlap": float("inf")}, ValueError),
        ({"tokens": -1}, ValueError),
        ({"tokens": 10**10_000}, ValueError),
        ({"tokens": "a"}, TypeError),
    ],
)
def test_chunks_invalid_size_raises_error(long, keywords, error):
    with pytest.raises(error):
        long.chunks(**keywords)


class Video(pydantic.BaseModel):
    transcript: Transcript
    best: Segment | None = None


def test_pydantic_model_holds_transcript(transcript):
    video = Video(transcript=transcript, best=transcript[1])
    assert Video.model_validate_json(video.model_dump_json()) == video
    assert Video.model_validate(video.model_dump()) == video
    assert video.model_dump()["transcript"] == transcript.to_dict()
    for wrong in ({}, 7, {**transcript.to_dict(), "platform": "nowhere"}, {**transcript.to_dict(), "transcript": []}):
        with pytest.raises(pydantic.ValidationError):
            Video.model_validate({"transcript": wrong})
    schema = Video.model_json_schema()
    assert "video_id" in json.dumps(schema)


def test_fastapi_returns_transcript(imported):
    app = FastAPI()

    @app.get("/transcript")
    async def read(link: str) -> Transcript:
        return await imported.aget(link)

    @app.post("/length")
    def length(transcript: Annotated[Transcript, Body()]) -> int:
        return len(transcript)

    client = TestClient(app)
    response = client.get("/transcript", params={"link": LINK})
    assert response.status_code == 200 and response.json() == imported.get(LINK).to_dict()
    assert client.post("/length", json=response.json()).json() == 2
    assert client.post("/length", json={}).status_code == 422
    assert "video_id" in client.get("/openapi.json").text


def test_pydantic_and_fastapi_have_schema_of_chunks(long):
    segments = pydantic.TypeAdapter(vt.Segments)
    assert isinstance(segments.validate_python(long.segments), vt.Segments)
    assert segments.dump_python(long.segments[:1]) == [{"text": "Word 0.", "start": 0.0, "duration": 10.0}]
    assert long.segments == segments.validate_json(segments.dump_json(long.segments))
    app = FastAPI()

    @app.get("/chunks")
    def read() -> list[vt.Chunk]:
        return long.chunks(seconds=60)

    client = TestClient(app)
    response = client.get("/chunks")
    assert pydantic.TypeAdapter(list[vt.Chunk]).validate_json(response.text) == long.chunks(seconds=60)
    assert "/chunks" in client.get("/openapi.json").json()["paths"]


def test_langchain_loader_yields_documents(imported):
    loader = TranscriptLoader(LINK, transcripts=imported)
    (document,) = loader.load()
    assert document.page_content == imported.get(LINK).text
    assert document.metadata["title"] == "A quiet day" and document.metadata["source"].endswith("dQw4w9WgXcQ")
    parts = TranscriptLoader([LINK], "en", transcripts=imported, seconds=30).load()
    assert [part.metadata["start"] for part in parts] == [1.5, 61.0] and parts[1].metadata["source"].endswith("t=61s")
    with pytest.raises(vt.TranscriptUnavailable):
        TranscriptLoader("aaaaaaaaaaa", transcripts=imported).load()
    assert TranscriptLoader(["aaaaaaaaaaa"], transcripts=imported, skip_missing=True).load() == []


async def test_langchain_loader_yields_documents_in_event_loop(imported):
    documents = [document async for document in TranscriptLoader([LINK], transcripts=imported, tokens=10).alazy_load()]
    assert [document.page_content for document in documents] == ["It is so quiet here.", "The café is closed."]


def test_llama_index_reader_yields_documents(imported):
    reader = TranscriptReader(imported)
    (document,) = reader.load_data([LINK])
    assert document.text == imported.get(LINK).text and document.metadata["language"] == "en"
    assert len(reader.load_data(LINK, seconds=30)) == 2
    assert reader.load_data(["aaaaaaaaaaa"], skip_missing=True) == []


@pytest.mark.parametrize(
    ("size", "error"),
    [
        ({"overlap": 5}, TypeError),
        ({"seconds": 30, "tokens": 10}, TypeError),
        ({"seconds": -1}, ValueError),
        ({"tokens": 0}, ValueError),
        ({"seconds": 30, "overlap": 20}, ValueError),
    ],
)
def test_loaders_check_size_before_fetch(imported, size, error):
    # Both would raise the error of this link.
    with pytest.raises(error) as raised:
        TranscriptLoader(["no link"], transcripts=imported, **size)
    assert not isinstance(raised.value, vt.InvalidInput) or "chunk" in str(raised.value)
    with pytest.raises(error) as raised:
        TranscriptReader(imported).load_data(["no link"], **size)
    assert not isinstance(raised.value, vt.InvalidInput) or "chunk" in str(raised.value)


def test_loaders_accept_one_listed_video(imported):
    video = vt.ListedVideo(**{**dict.fromkeys(vt.ListedVideo._fields), "url": LINK})
    assert len(TranscriptLoader(video, transcripts=imported).load()) == 1
    assert len(TranscriptReader(imported).load_data(video)) == 1


def test_table_without_pandas_names_extra(monkeypatch, imported):
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ImportError, match=r"pip install 'verbatim-transcripts\[pandas\]'"):
        imported.get(LINK).to_pandas()


@pytest.mark.parametrize(
    ("module", "library", "extra"),
    [
        ("langchain", "langchain_core.document_loaders", "langchain"),
        ("llama_index", "llama_index.core.readers.base", "llama-index"),
    ],
)
def test_loader_without_library_names_extra(monkeypatch, module, library, extra):
    monkeypatch.setitem(sys.modules, library, None)
    monkeypatch.delitem(sys.modules, f"verbatim_transcripts.{module}", raising=False)
    with pytest.raises(ImportError, match=rf"pip install 'verbatim-transcripts\[{extra}\]'"):
        importlib.import_module(f"verbatim_transcripts.{module}")
