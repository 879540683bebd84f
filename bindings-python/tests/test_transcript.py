"""A transcript and its segments as Python objects."""

import copy
import json
import pickle
from collections.abc import Sequence

import pytest
from conftest import LINK

import verbatim_transcripts as vt
from verbatim_transcripts import Segment, Transcript


def test_transcript_properties_match_import(transcript):
    assert (transcript.title, transcript.author) == ("A quiet day", "Ann")
    assert (transcript.platform, transcript.video_id) == ("YouTube", "dQw4w9WgXcQ")
    assert transcript.url == "https://www.youtube.com/watch?v=dQw4w9WgXcQ"
    assert (transcript.language, transcript.kind, transcript.is_generated) == ("en", "human", False)
    assert (transcript.source, transcript.from_cache, transcript.revision) == ("import", True, 1)
    assert transcript.duration is None and transcript.track_name is None and not transcript.original
    assert repr(transcript) == "<Transcript YouTube dQw4w9WgXcQ 'A quiet day' en, 2 segments>"


def test_transcript_converts_to_all_formats(transcript):
    assert transcript.text == "It is so quiet here.\n\nThe café is closed.\n"
    assert transcript.to_markdown().startswith("# A quiet day\n\nby Ann\n\n[0:01](https://www.youtube.com/watch?v=")
    assert transcript.to_srt().startswith("1\n00:00:01,500 --> 00:00:03,000\nIt is so quiet here.\n\n2\n")
    assert transcript.to_vtt().startswith("WEBVTT\n\n00:00:01.500 --> 00:00:03.000\n")
    assert transcript.to_dicts()[1] == {"text": "The café is closed.", "start": 61.0, "duration": 3.0}
    assert json.loads(transcript.to_json())["transcript"] == transcript.to_dicts()


def test_transcript_survives_json_pickle_and_copy(transcript):
    for same in (
        Transcript.from_json(transcript.to_json()),
        Transcript.from_json(transcript.to_json().encode()),
        *(pickle.loads(pickle.dumps(transcript, protocol)) for protocol in range(2, pickle.HIGHEST_PROTOCOL + 1)),
        copy.copy(transcript),
        copy.deepcopy(transcript),
    ):
        assert same == transcript and hash(same) == hash(transcript)
        assert same.from_cache and same.revision == 1 and same.title == "A quiet day"
    assert transcript != "A quiet day"
    for bad in ("", "{}", "[]", "null", transcript.to_json().replace("61.0", "-1"), transcript.to_json()[:-9]):
        with pytest.raises(ValueError, match="not a transcript"):
            Transcript.from_json(bad)
    with pytest.raises(TypeError):
        Transcript.from_json(None)


def test_segments_behave_as_sequence(transcript):
    segments = transcript.segments
    first, second = segments
    assert isinstance(segments, Sequence) and isinstance(transcript, Sequence)
    assert len(segments) == len(transcript) == 2
    assert segments[0] == transcript[0] == first == segments[-2]
    assert segments[1:] == [second] and segments[::-1] == (second, first) and list(reversed(segments)) == [second, first]
    assert segments[::-1][::-1] == segments and segments[5:] == [] and not segments[5:]
    assert first in segments and "It is so quiet here." not in segments
    for sequence in (segments, transcript):
        assert sequence.index(second) == 1 == sequence.index(second, -1, 2) and sequence.count(first) == 1
        assert list(reversed(sequence)) == [second, first] and second in sequence
        with pytest.raises(ValueError):
            sequence.index(first, 1)
    assert segments == list(segments) == transcript[:] and segments != [first] and segments != [first, first]
    assert hash(segments) == hash(transcript.segments)
    assert pickle.loads(pickle.dumps(segments)) == segments
    assert "1.5" in repr(segments) and repr(segments).startswith("<Segments [Segment(")
    for wrong in (2, -3, 10**9):
        with pytest.raises(IndexError):
            segments[wrong]
    for wrong in ("a", 1.0, None):
        with pytest.raises(TypeError):
            segments[wrong]
    with pytest.raises(IndexError):
        segments[10**30]
    with pytest.raises(ValueError):
        segments.index(Segment("elsewhere", 0))


def test_segments_hash_and_copies_follow_equality(transcript):
    segments = transcript.segments
    for view in (segments, segments[1:], segments[::-1], segments[5:]):
        assert view == tuple(view) and hash(view) == hash(tuple(view)) and view in {tuple(view)}
        for same in (pickle.loads(pickle.dumps(view)), copy.copy(view), copy.deepcopy(view)):
            assert type(same) is vt.Segments and same == view and hash(same) == hash(view)
    (chunk,) = transcript.chunks(tokens=200)
    again = pickle.loads(pickle.dumps(chunk))
    assert again == chunk and hash(again) == hash(chunk)
    with_words = Transcript(LINK, [Segment("so", 0, 1, [("so", 0, 1)])], language="en").segments
    for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
        assert pickle.loads(pickle.dumps(with_words, protocol))[0].words == with_words[0].words
        for one in (segments[0], segments, chunk):
            assert pickle.loads(pickle.dumps(one, protocol)) == one


def test_segments_are_created_on_access(transcript):
    segments = transcript.segments
    first = segments[0]
    assert segments[0] is not first and segments[0] == first
    # Iteration creates all objects once.
    once, again = list(segments), list(transcript)
    assert all(one is other for one, other in zip(once, again)) and segments[0] is once[0] and once[0] == first
    assert segments[::-1][0] is once[1] and next(iter(segments[1:])) is once[1] and next(reversed(segments)) is once[1]
    assert list(iter(segments)) == once and len(once) == 2
    with pytest.raises(AttributeError):
        first.text = "other"
    assert (first.text, first.start, first.duration, first.end) == ("It is so quiet here.", 1.5, 1.5, 3.0)


@pytest.mark.parametrize("start", [None, -9, -2, -1, 0, 1, 2, 9])
@pytest.mark.parametrize("stop", [None, -9, -1, 0, 2, 3, 9])
@pytest.mark.parametrize("step", [None, -3, -1, 1, 2])
def test_segments_slices_equal_list_slices(start, stop, step):
    items = [Segment(str(n), n) for n in range(5)]
    segments = Transcript(LINK, items).segments
    assert list(segments[start:stop:step]) == items[start:stop:step]
    assert list(segments[1:][start:stop:step]) == items[1:][start:stop:step]
    assert list(segments[::-2][start:stop:step]) == items[::-2][start:stop:step]


def test_segment_compares_by_value():
    segment = Segment("It's “here”", 1.5, duration=2)
    assert (segment.text, segment.start, segment.duration, segment.end) == ("It's “here”", 1.5, 2.0, 3.5)
    assert segment == Segment("It's “here”", 1.5, 2.0) != Segment("It's “here”", 1.5, 2.001)
    assert eval(repr(segment)) == segment == pickle.loads(pickle.dumps(segment)) == copy.deepcopy(segment)
    assert len({segment, Segment("It's “here”", 1.5, 2.0)}) == 1
    match segment:
        case Segment(text, start, duration):
            assert (text, start, duration) == ("It's “here”", 1.5, 2.0)
        case _:
            pytest.fail("no match")
    with pytest.raises(AttributeError):
        segment.text = "other"
    for start in (-1, float("nan"), float("inf"), 1e300):
        with pytest.raises(ValueError, match="seconds"):
            Segment("x", start)
    for text, start in ((None, 0), (b"x", 0), ("x", "0"), ("x", None)):
        with pytest.raises(TypeError):
            Segment(text, start)


def test_transcript_matches_pattern(transcript):
    match transcript:
        case Transcript(title, "en", [Segment(text="It is so quiet here."), *rest]):
            assert title == "A quiet day" and len(rest) == 1
        case _:
            pytest.fail("no match")


def test_transcript_constructor_validates_arguments():
    custom = Transcript(LINK, [Segment("x", 0)], language="pt-br", kind="generated", duration=9.5, original=True)
    assert (custom.language, custom.is_generated, custom.duration, custom.original) == ("pt-BR", True, 9.5, True)
    assert not custom.from_cache and custom.revision == 0
    for arguments in (
        ("no link", [Segment("x", 0)]),
        (LINK, []),
    ):
        with pytest.raises(vt.InvalidInput):
            Transcript(*arguments)
    with pytest.raises(ValueError, match="kind"):
        Transcript(LINK, [Segment("x", 0)], kind="robot")
    with pytest.raises(TypeError):
        Transcript(LINK, [{"text": "x"}])
