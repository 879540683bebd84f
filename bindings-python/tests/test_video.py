"""Words of segments, and what is known of a video besides them."""

import copy
import datetime
import json
import math
import pickle

import pydantic
import pytest
from conftest import LINK
from custom_archive import CustomArchive
from test_archive import SqliteStore

import verbatim_transcripts as vt
from verbatim_transcripts import Chapter, Language, Segment, Transcript, Transcripts, VideoMetadata, Word

WORDS = [Word("so", 0.01, 0.2), Word("go", 0.7, 0.033)]
PUBLISHED = datetime.datetime(2023, 11, 14, 22, 13, 20, 123000, datetime.timezone.utc)
METADATA = VideoMetadata(
    title="A quiet day",
    author="Ann",
    author_id="UC-x",
    author_url="https://www.youtube.com/channel/UC-x",
    duration=9.5,
    published_at=PUBLISHED,
    thumbnail_url="https://i.ytimg.com/vi/x/hq.jpg",
    live="was_live",
    description="Two\nlines.",
)
CHAPTERS = [Chapter("Start", 0.0), Chapter("End", 5.001)]


def known(link: str = LINK) -> Transcript:
    segments = [Segment("so, we go", 0, 0.9, WORDS), Segment("on", 5.5, 1)]
    return Transcript(link, segments, language="en", metadata=METADATA, chapters=CHAPTERS)


class KnowingSupplier:
    name = "knowing"

    def supply(self, request):
        return [known(request.url), Transcript(request.url, [Segment("Los.", 0, 1)], language="de", kind="translated")]


def test_segment_words_are_part_of_value():
    segment = Segment("so, we go", 0, 0.9, WORDS)
    assert segment.words == WORDS and Segment("on", 1).words == []
    assert (segment.words[1].text, segment.words[1].start, segment.words[1].end) == ("go", 0.7, 0.733)
    assert segment == Segment("so, we go", 0, 0.9, map(tuple, WORDS)) == Segment("so, we go", 0, 0.9, segment._asdict()["words"])
    assert segment != Segment("so, we go", 0, 0.9) and len({segment, Segment("so, we go", 0, 0.9, WORDS)}) == 1
    assert tuple(segment) == ("so, we go", 0.0, 0.9)
    for same in (copy.copy(segment), copy.deepcopy(segment), pickle.loads(pickle.dumps(segment))):
        assert same == segment and same.words == WORDS
    with pytest.raises(ValueError, match="word 0"):
        Segment("x", 0, 1, [("x",)])
    with pytest.raises(ValueError, match="word 1"):
        Segment("x", 0, 1, [("x", 0, 1), ("x", -1, 1)])
    with pytest.raises(TypeError):
        Segment("x", 0, 1, 7)
    for words in ([("y", 0, 1)], [("", 0, 1)], [("x", 1, 1), ("x", 0, 1)]):
        with pytest.raises(vt.InvalidInput, match="word"):
            Transcript(LINK, [Segment("x", 0, 1, words)])


def test_metadata_of_transcript_is_returned():
    transcript = known()
    assert transcript.metadata == METADATA and transcript.metadata.published_at.utcoffset() == datetime.timedelta(0)
    assert (transcript.title, transcript.author, transcript.duration) == ("A quiet day", "Ann", 9.5)
    assert transcript.chapters == CHAPTERS
    assert transcript.languages == [Language("en", "English", "manual", False)]
    assert Transcript(LINK, [Segment("x", 0)], title="Other", metadata=METADATA).title == "Other"
    unknown = Transcript(LINK, [Segment("x", 0)])
    assert unknown.metadata == VideoMetadata() and unknown.chapters == []


@pytest.mark.parametrize(
    ("keywords", "error", "match"),
    [
        ({"metadata": METADATA._replace(author_url="javascript:alert(1)")}, vt.InvalidInput, "https"),
        ({"metadata": METADATA._replace(live="maybe")}, ValueError, "not_live, upcoming"),
        ({"metadata": METADATA._replace(published_at=datetime.datetime(2023, 1, 1))}, ValueError, "time zone"),
        ({"metadata": METADATA._replace(author_id=7)}, TypeError, "str"),
        ({"metadata": METADATA._replace(duration=-1)}, ValueError, "duration"),
        ({"metadata": {}}, TypeError, "metadata must be a VideoMetadata"),
        ({"chapters": [("", 0)]}, vt.InvalidInput, "chapter"),
        ({"chapters": [("a", 0), ("b", 0)]}, vt.InvalidInput, "chapters"),
        ({"chapters": [("a", -1)]}, ValueError, "start"),
        ({"chapters": [("a", number) for number in range(1_001)]}, vt.InvalidInput, "1,000"),
    ],
)
def test_metadata_invalid_value_raises_error(keywords, error, match):
    with pytest.raises(error, match=match):
        Transcript(LINK, [Segment("x", 0)], **keywords)


def assert_same(one: Transcript, other: Transcript) -> None:
    assert one == other
    assert [segment.words for segment in one] == [segment.words for segment in other]
    assert (one.metadata, one.chapters, one.languages) == (other.metadata, other.chapters, other.languages)


def test_json_pickle_and_dicts_keep_words_and_metadata():
    class Video(pydantic.BaseModel):
        transcript: Transcript
        best: Segment

    with Transcripts(suppliers=[KnowingSupplier()]) as transcripts:
        transcript = transcripts.get(LINK)
    assert [language.tag for language in transcript.languages] == ["en", "de"]
    video = Video(transcript=transcript, best=transcript[0])
    assert Video.model_validate_json(video.model_dump_json()).best.words == WORDS
    for same in (
        Transcript.from_json(transcript.to_json()),
        Transcript.from_dict(transcript.to_dict()),
        pickle.loads(pickle.dumps(transcript)),
        copy.deepcopy(transcript),
        Video.model_validate(video.model_dump()).transcript,
        Video.model_validate_json(video.model_dump_json()).transcript,
    ):
        assert_same(same, transcript)
    dicts = transcript.to_dicts()
    assert dicts[0]["words"][1] == {"text": "go", "start": 0.7, "duration": 0.033} and "words" not in dicts[1]
    assert all("words" not in segment for segment in transcript.to_dicts(words=False))
    assert Transcript.from_dicts(LINK, dicts, metadata=METADATA, chapters=CHAPTERS)[0].words == WORDS
    # The records of a `pandas.DataFrame`.
    records = [{**segment, "words": segment.get("words", math.nan)} for segment in dicts]
    assert list(Transcript.from_dicts(LINK, records)) == list(Transcript.from_dicts(LINK, dicts))
    with pytest.raises(ValueError, match="item 0"):
        Transcript.from_dicts(LINK, [{"text": "a", "start": 0, "words": [7]}])


def test_json_hostile_metadata_is_cleaned():
    document = json.loads(known().to_json())
    document["metadata"]["author_url"] = "javascript:alert(1)"
    document["chapters"] += [{"title": "Late", "start": 100.0}, {"title": "\u0007", "start": 1.0}]
    read = Transcript.from_dict(document)
    assert read.metadata == METADATA._replace(author_url=None) and read.chapters == CHAPTERS
    for change in ({"metadata": {"published_at": "yesterday"}}, {"metadata": {"live": "maybe"}}, {"chapters": [{"title": "x", "start": -1}]}):
        with pytest.raises(ValueError, match="not a transcript"):
            Transcript.from_dict({**document, **change})


@pytest.mark.parametrize("archive", [lambda: None, CustomArchive, SqliteStore], ids=["memory", "custom", "key-value"])
def test_supplied_words_and_metadata_are_archived(archive):
    with Transcripts(archive(), suppliers=[KnowingSupplier()]) as transcripts:
        for _ in range(3):
            found = transcripts.get(LINK)
            assert found.source == "knowing" and found[0].words == WORDS and found[1].words == []
            assert found.metadata == METADATA and found.chapters == CHAPTERS
            assert found.languages == [Language("en", "English", "manual", False), Language("de", "German", "translated", False)]
        assert next(iter(transcripts.archived())).chapters == CHAPTERS
        assert transcripts.search("we go")[0].transcript.metadata == METADATA


def test_export_and_save_keep_words_and_metadata(tmp_path):
    with Transcripts(suppliers=[KnowingSupplier()]) as transcripts:
        transcript = transcripts.get(LINK)
        transcripts.export(tmp_path / "exported")
        transcript.save(tmp_path / "saved.json")
    (tmp_path / "saved").mkdir()
    (tmp_path / "saved.json").rename(tmp_path / "saved" / "a.json")
    for folder in ("exported", "saved"):
        with Transcripts(suppliers=[]) as other:
            other.import_folder(tmp_path / folder)
            found = other.get(LINK)
            assert found[0].words == WORDS and found.metadata == METADATA and found.chapters == CHAPTERS, folder
            assert {language.tag for language in found.languages} == {"en", "de"}
