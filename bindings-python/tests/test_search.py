"""Search in the whole archive."""

import asyncio
import sqlite3
import time

import pytest
from conftest import LINK
from test_client import server as server

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


def test_search_videos_logs_unreadable_transcript(tmp_path, caplog):
    file = tmp_path / "archive.db"
    with vt.Transcripts(file, suppliers=[]) as transcripts:
        for number in range(2):
            transcripts.import_(f"{number:011}", SRT.format("A walrus."), lang="en")
    with sqlite3.connect(file) as database:
        damaged = "SELECT min(id) FROM transcripts"
        assert database.execute(f"UPDATE bodies SET segments = zeroblob(40) WHERE transcript = ({damaged})").rowcount == 1
    database.close()
    with vt.Transcripts(file, suppliers=[]) as transcripts:
        assert [hit.transcript.video_id for hit in transcripts.search_videos("walrus")] == ["00000000001"]
    records = [record for record in caplog.records if "unreadable transcript" in record.getMessage()]
    assert records and all(record.levelname == "WARNING" for record in records)
    assert {record.fields["video"] for record in records} == {"YouTube/00000000000"}


def test_search_videos_rejects_invalid_options(archive):
    assert list(archive.search_videos("***")) == []
    assert archive.search_videos("lighthuoses").suggestion == "lighthouses"
    with pytest.raises(vt.InvalidInput):
        archive.search_videos("a", lang="no language")
    for options, message in (
        ({"platform": "radio"}, "platform must be one of youtube, tiktok, instagram, x, not"),
        ({"sort": "size"}, "sort must be"),
        ({"page_size": 0}, "page_size must be"),
    ):
        with pytest.raises(ValueError, match=message):
            archive.search_videos("a", **options)


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


def test_client_search_of_service_reads_pages_lazily():
    with vt.Service(suppliers=[], base_url="https://v.example") as service:
        for number in range(3):
            service.import_(
                f"https://youtu.be/video{number:06}", SRT.format(f"A lighthouse 🌊 {number}"), lang="en", author="Ann"
            )
        client = service.client(service.create_key().key)
        found = client.search("lighthouse", page_size=2)
        assert (found.total, found.total_is_exact, found.suggestion) == (3, True, None)
        hits = list(found)
        assert {hit.video_id for hit in hits} == {f"video{number:06}" for number in range(3)}
        (hit,) = client.search("2", "en", platform="youtube", sort="date")
        assert hit[:6] == ("YouTube", "video000002", None, "Ann", "en", "https://v.example/watch/video_site/video000002")
        (moment,) = hit.moments
        assert [moment.text[start:end] for start, end in moment.matches] == ["2"] and moment.start == 1.5
        assert client.search("lighthuose").suggestion == "lighthouse"
        for options, error in (({"lang": "no language"}, vt.InvalidInput), ({"page_size": 101}, ValueError)):
            with pytest.raises(error):
                client.search("a", **options)


async def test_client_search_of_server_reads_pages_lazily(server, tmp_path):
    for number in range(3):
        (tmp_path / "captions.srt").write_text(SRT.format(f"Stalactites, number {number}"))
        link = f"https://youtu.be/cave{number:07}"
        server.command("import", str(tmp_path / "captions.srt"), "--video", link, "--lang", "en")
    with vt.Client(server.address) as client:
        deadline = time.monotonic() + 30
        # The server indexes what another process archived.
        while (found := await client.search("stalactite", page_size=2).aload()).total < 3:
            assert time.monotonic() < deadline
            await asyncio.sleep(1)
        assert len({hit.video_id async for hit in found}) == 3
        (hit,) = client.search("quiet", platform="youtube")
        assert client.get(f"https://youtu.be/{hit.video_id}") == client.get(LINK)
        assert hit.watch_url.startswith(server.address) and hit.moments[0].url.endswith("t=1s")
    with pytest.raises(vt.ClosedError):
        client.search("quiet").load()
