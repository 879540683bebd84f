"""Playlists, channels and searches, with recorded pages of YouTube."""

import asyncio
import datetime
import operator
import pickle
import time

import pytest

import verbatim_transcripts as vt
from verbatim_transcripts._batch import BatchRun

PLAYLIST = "https://www.youtube.com/playlist?list=PLvb-tides-0001"
CHANNEL = "https://www.youtube.com/channel/UCvb-harbour-00000000000"
IDS = ["vb-tracks-0", "vb-asronly0", "vb-private0", "vb-french-0"]


def ids(videos):
    return [video.video_id for video in videos]


def test_playlist_yields_its_videos_over_pages(youtube):
    videos = youtube.playlist(PLAYLIST)
    assert (videos.url, repr(videos)) == (PLAYLIST, f"<VideoList {PLAYLIST}>")
    found = list(videos)
    assert ids(found) == IDS
    assert videos.info() == vt.ListInfo("Tide mills", 5, 1)
    first, stream, private, _ = found
    assert first.url == "https://www.youtube.com/watch?v=vb-tracks-0"
    assert (first.title, first.author, first.duration) == ("How a tide mill works", "Tide Mill Trust", 30.0)
    assert (stream.live, stream.duration) == ("was_live", 3723.0)
    now = datetime.datetime.now(datetime.timezone.utc)
    earliest, latest = first.published
    assert datetime.timedelta(days=13) < now - latest < datetime.timedelta(days=15)
    assert datetime.timedelta(days=20) < now - earliest < datetime.timedelta(days=22)
    assert private.is_unavailable and private.title is None and not first.is_unavailable
    assert pickle.loads(pickle.dumps(first)) == first


def test_list_pages_are_read_as_they_are_needed(youtube):
    # The second page of this list cannot be read.
    videos = iter(youtube.playlist("PLvb-cut-000001"))
    assert next(videos).video_id == "vb-tracks-0"
    with pytest.raises(vt.ListUnreadable):
        next(videos)
    assert ids(youtube.playlist("PLvb-cut-000001", limit=1)) == ["vb-tracks-0"]


def test_list_total_is_known_before_iteration(youtube):
    videos = youtube.playlist("PLvb-tides-0001", limit=2)
    assert videos.info().total == 2 and operator.length_hint(videos) == 2
    assert ids(videos) == IDS[:2]
    # Every iteration reads the list again.
    assert ids(videos) == IDS[:2]
    since = datetime.datetime(2000, 1, 1, tzinfo=datetime.timezone.utc)
    for unknown in (youtube.channel(CHANNEL), youtube.playlist(PLAYLIST, since=since)):
        assert unknown.info().total is None and operator.length_hint(unknown, 7) == 7


def test_search_yields_results_over_pages(youtube):
    videos = youtube.youtube_search(" tide  mills ")
    assert videos.url == "https://www.youtube.com/results?search_query=tide+mills"
    found = list(videos)
    assert ids(found) == ["vb-tracks-0", "vb-asronly0", "vb-french-0"]
    assert (found[1].title, found[1].author, found[1].duration) == ("Harbour walk", "Tide Mill Trust", 3723.0)
    assert videos.info() == vt.ListInfo(None, None, 0)
    assert ids(youtube.youtube_search("tide mills", limit=1)) == ["vb-tracks-0"]
    assert list(youtube.youtube_search("nothing")) == []
    for words in ("", " ", "a" * 201):
        with pytest.raises(vt.InvalidInput):
            youtube.youtube_search(words)
    with pytest.raises(vt.InvalidInput, match=r"youtube_search\(\)"):
        youtube.playlist(videos.url)


def test_channel_tab_and_since_select_videos(youtube):
    assert ids(youtube.channel("@tidemills")) == ["vb-tracks-0", "vb-french-0", "vb-asronly0"]
    assert youtube.channel(CHANNEL).info() == vt.ListInfo("Tide Mill Trust", None, 0)
    year = datetime.date.today() - datetime.timedelta(days=365)
    assert ids(youtube.channel(CHANNEL, since=year)) == ["vb-tracks-0", "vb-french-0"]
    month = datetime.datetime.now(datetime.timezone.utc) - datetime.timedelta(days=30)
    assert ids(youtube.channel(CHANNEL, since=month)) == ["vb-tracks-0"]
    for tab, address in ((None, "streams"), ("videos", "videos")):
        assert youtube.channel(f"{CHANNEL}/streams", tab).url == f"{CHANNEL}/{address}"
    with pytest.raises(vt.MissingTab) as raised:
        list(youtube.channel(f"{CHANNEL}/streams"))
    assert (raised.value.reason, raised.value.url) == ("no_tab", f"{CHANNEL}/streams")


@pytest.mark.parametrize(
    ("playlist", "error", "reason"),
    [
        ("PLvb-private-01", vt.PrivateList, "private"),
        ("PLvb-removed-01", vt.RemovedList, "removed"),
        ("PLvb-layout-001", vt.ListUnreadable, "unreadable"),
        ("PLvb-throttled1", vt.ListRateLimited, "throttled"),
    ],
)
def test_list_failure_has_its_class(replay, playlist, error, reason):
    # A pause of the platform must not affect the other tests.
    with vt.Transcripts(proxies=replay.proxy, ca_file=replay.ca_file, retries=0) as transcripts:
        for read in (list, lambda videos: videos.info(), lambda videos: list(transcripts.get_many(videos, max_wait=0))):
            with pytest.raises(error) as raised:
                read(transcripts.playlist(playlist))
            assert isinstance(raised.value, vt.ListUnavailable)
            assert raised.value.reason == reason
            assert raised.value.url == f"https://www.youtube.com/playlist?list={playlist}"
            assert str(raised.value) and "server" not in str(raised.value)
    restored = pickle.loads(pickle.dumps(raised.value))
    assert (type(restored), restored.reason, restored.url) == (error, reason, raised.value.url)


def test_profile_of_tiktok_needs_ytdlp(youtube):
    profile = youtube.channel("https://www.tiktok.com/@rope.walk?lang=en")
    assert profile.url == "https://www.tiktok.com/@rope.walk"
    with pytest.raises(vt.VerbatimError, match="set ytdlp"):
        next(iter(profile))


def test_empty_list_has_no_videos(youtube):
    videos = youtube.playlist("PLvb-empty-0001")
    assert list(videos) == [] and videos.info() == vt.ListInfo("Plans", 0, 0)
    assert list(youtube.get_many(videos)) == []


def test_list_link_is_parsed_at_once(youtube):
    assert youtube.playlist(f"https://youtu.be/{IDS[0]}?list=PLvb-tides-0001").url == PLAYLIST
    for call, link in [
        (youtube.playlist, "https://youtu.be/dQw4w9WgXcQ"),
        (youtube.playlist, "https://www.youtube.com/playlist?list=WL"),
        (youtube.playlist, "https://www.youtube.com/watch?v=dQw4w9WgXcQ&list=RDdQw4w9WgXcQ"),
        (youtube.playlist, "@tidemills"),
        (youtube.channel, PLAYLIST),
        (youtube.channel, "https://x.com/name"),
        (youtube.playlist, "https://www.tiktok.com/@name"),
        (youtube.channel, "x" * 100_000),
    ]:
        with pytest.raises(vt.InvalidInput):
            call(link)
    with pytest.raises(ValueError, match="tab"):
        youtube.channel(CHANNEL, "home")
    with pytest.raises(ValueError, match="limit"):
        youtube.playlist(PLAYLIST, limit=0)
    for limit in (2.5, 1.0, float("nan"), float("inf")):
        with pytest.raises(TypeError):
            youtube.playlist(PLAYLIST, limit=limit)
    with pytest.raises(ValueError, match="time zone"):
        youtube.playlist(PLAYLIST, since=datetime.datetime(2026, 1, 1))
    with pytest.raises(TypeError):
        youtube.playlist(7)


def test_list_without_lister_is_unsupported():
    with vt.Transcripts(suppliers=[]) as transcripts:
        with pytest.raises(vt.UnsupportedError):
            list(transcripts.playlist(PLAYLIST))
    with pytest.raises(vt.ClosedError):
        list(transcripts.playlist(PLAYLIST))


async def test_list_is_iterated_asynchronously(youtube):
    videos = youtube.playlist(PLAYLIST, limit=4)
    assert (await videos.ainfo()).total == 4
    assert [video.video_id async for video in videos] == IDS
    results = {result.video.video_id: result async for result in youtube.aget_many(youtube.playlist(PLAYLIST))}
    assert sorted(results) == sorted(IDS)
    with pytest.raises(vt.PrivateList):
        await youtube.playlist("PLvb-private-01").ainfo()


def test_get_many_accepts_list_and_its_videos(youtube):
    videos = youtube.playlist(PLAYLIST)
    results = {result.video.video_id: result for result in youtube.get_many(videos)}
    assert sorted(results) == sorted(IDS) and videos.info().hidden == 1
    assert results["vb-tracks-0"].get().title == "How a tide mill works"
    assert results["vb-tracks-0"].link == "https://www.youtube.com/watch?v=vb-tracks-0"
    assert isinstance(results["vb-private0"].error, vt.PrivateVideo)
    assert results["vb-private0"].video.is_unavailable
    ordered = list(youtube.get_many(youtube.playlist(PLAYLIST), in_order=True, concurrency=1))
    assert [(result.index, result.video.video_id) for result in ordered] == list(enumerate(IDS))
    chosen = [video for video in videos if video.duration and video.duration < 60]
    assert [result.video for result in youtube.get_many(chosen, in_order=True)] == chosen
    assert next(youtube.get_many(["vb-tracks-0"])).video is None
    with pytest.raises(TypeError):
        youtube.get_many(chosen[0])


def test_get_many_of_broken_list_yields_results_first(youtube):
    broken = youtube.playlist("PLvb-cut-000001")
    for videos in (broken, (video for video in broken if video.duration)):
        results = youtube.get_many(videos)
        assert next(results).get().title == "How a tide mill works"
        with pytest.raises(vt.ListUnreadable):
            next(results)
        with pytest.raises(StopIteration):
            next(results)


async def test_aget_many_of_filtered_list_does_not_block(youtube):
    ticks = 0

    async def tick():
        nonlocal ticks
        while True:
            await asyncio.sleep(0.01)
            ticks += 1

    ticker = asyncio.create_task(tick())
    videos = youtube.playlist(PLAYLIST)
    results = youtube.aget_many(video async for video in videos if video.duration)
    found = [result.video.video_id async for result in results]
    ticker.cancel()
    assert sorted(found) == ["vb-asronly0", "vb-french-0", "vb-tracks-0"]
    # The second page follows the first one by a second.
    assert ticks > 20


def test_get_many_waits_for_throttled_page(replay):
    with vt.Transcripts(proxies=replay.proxy, ca_file=replay.ca_file, retries=0) as transcripts:
        videos = transcripts.playlist("PLvb-throttled2", limit=2)
        start = time.monotonic()
        assert [result.video.video_id for result in transcripts.get_many(videos, in_order=True)] == IDS[:2]
        assert time.monotonic() - start > 2
        with pytest.raises(vt.ListRateLimited):
            list(transcripts.get_many(transcripts.playlist("PLvb-throttled1"), max_wait=5))


def test_get_many_yields_results_while_a_page_is_read(youtube):
    list(youtube.get_many(IDS))
    # The second page follows the first one by a second; the results of the first one do not wait for it.
    start = time.monotonic()
    times = [time.monotonic() - start for _ in youtube.get_many(youtube.playlist(PLAYLIST), concurrency=2)]
    assert times[2] < times[3] - 0.3
