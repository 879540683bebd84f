"""Search in the whole archive."""

import pytest
import verbatim_transcripts as vt

SRT = "1\n00:00:01,500 --> 00:00:04,000\n{}\n"


@pytest.fixture
def archive(tmp_path):
    with vt.Transcripts(tmp_path / "archive.db", suppliers=[]) as transcripts:
        for number in range(25):
            transcripts.import_(f"https://youtu.be/video{number:06}", SRT.format(f"Lighthouses, number {number}"), lang="en")
        transcripts.import_("https://youtu.be/dddddddddde", SRT.format("Leuchttürme 🌊 am Meer"), lang="de")
        yield transcripts


def test_search_videos_reads_pages_lazily(archive):
    found = archive.search_videos("lighthouse", page_size=10)
    assert (found.total, found.total_is_exact, found.suggestion) == (25, True, None)
    hits = list(found)
    assert len({hit.transcript.video_id for hit in hits}) == len(hits) == 25
    assert list(archive.search_videos('"number 7"'))[0].moments[0].start == 1.5


def test_search_videos_marks_matches_in_code_points(archive):
    (hit,) = archive.search_videos("meer", lang="de")
    (moment,) = hit.moments
    ((start, end),) = moment.matches
    assert moment.text[start:end] == "Meer" and moment.url.endswith("t=1s")


def test_search_videos_finds_later_changes(archive):
    assert archive.search_videos("walrus").total == 0
    archive.import_("https://youtu.be/wwwwwwwwwww", SRT.format("A walrus."), lang="en")
    assert archive.search_videos("walrus").total == 1
    archive.delete("https://youtu.be/wwwwwwwwwww")
    assert archive.search_videos("walrus").total == 0


def test_search_videos_rejects_invalid_options(archive):
    assert list(archive.search_videos("***")) == []
    assert archive.search_videos("lighthuoses").suggestion == "lighthouses"
    with pytest.raises(vt.InvalidInput):
        list(archive.search_videos("a", lang="no language"))
    for options in ({"platform": "radio"}, {"sort": "size"}, {"page_size": 0}):
        with pytest.raises(ValueError):
            list(archive.search_videos("a", **options))


async def test_search_videos_is_iterated_asynchronously(archive):
    hits = [hit async for hit in archive.search_videos("lighthouses", page_size=7)]
    assert len(hits) == 25


async def test_search_videos_properties_are_local_after_aload(archive):
    found = archive.search_videos("lighthuoses")
    assert await found.aload() is found
    # Neither the properties nor the first iteration read the page again.
    found._read = None
    assert (found.total, found.suggestion) == (0, "lighthouses")
    assert [hit async for hit in found] == []


async def test_search_videos_second_iteration_reads_archive_again(archive):
    found = archive.search_videos("lighthouse", page_size=10)
    assert found.load().total == len(list(found)) == 25
    await archive.aimport("https://youtu.be/lllllllllll", SRT.format("One more lighthouse."), lang="en")
    assert len(list(found)) == found.total == 26
    archive.delete("https://youtu.be/lllllllllll")
    assert len([hit async for hit in found]) == found.total == 25
