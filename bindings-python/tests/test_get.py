"""One transcript and many, plain and awaited, from recorded answers."""

import asyncio
import itertools
import os
import sqlite3
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from conftest import LINK, SRT

import verbatim


def test_a_transcript_is_fetched_and_then_at_hand(youtube):
    first = youtube.get("https://www.youtube.com/watch?v=vb-tracks-0")
    assert (first.title, first.language, first.source) == ("How a tide mill works", "en", "youtube-captions")
    assert not first.from_cache and not first.is_generated and len(first) == 4
    again = youtube.get("vb-tracks-0")
    assert again == first and again.from_cache
    assert youtube.get("vb-tracks-0", lang="de").language == "de"
    assert youtube.get("vb-tracks-0", "fr-FR")[0].text.startswith("Deux fois par jour")


def test_the_simple_way(replay, monkeypatch):
    monkeypatch.setattr(verbatim._simple, "_shared", None)
    monkeypatch.setenv("VERBATIM_UPSTREAM__PROXY", replay.proxy)
    monkeypatch.setenv("VERBATIM_UPSTREAM__CA_FILE", replay.ca_file)
    assert verbatim.get("vb-asronly0").is_generated
    assert asyncio.run(verbatim.aget("vb-asronly0")).from_cache
    assert [result.get().language for result in verbatim.get_many(["vb-asronly0"])] == ["en"]


@pytest.mark.parametrize(
    ("video", "kind", "reason"),
    [
        ("vb-private0", verbatim.NoCaptions, "no_captions"),
        ("vb-botcheck", verbatim.RateLimited, "rate_limited"),
    ],
)
def test_why_there_is_none(youtube, video, kind, reason):
    with pytest.raises(kind) as raised:
        youtube.get(video)
    error = raised.value
    assert isinstance(error, verbatim.TranscriptUnavailable)
    assert (error.reason, error.platform, error.video_id) == (reason, "video_site", video)
    assert error.watch_url.endswith(f"/watch/video_site/{video}")
    assert str(error).endswith(".")


async def test_awaited_in_any_loop(youtube):
    one, two, three = await asyncio.gather(
        youtube.aget("vb-tracks-0"), youtube.aget("vb-tracks-0"), youtube.aget("vb-french-0")
    )
    assert one == two and three.language == "fr"
    assert asyncio.iscoroutinefunction(youtube.aget)
    with pytest.raises(verbatim.InvalidInput):
        await youtube.aget("no link")


def test_several_loops_and_threads_share_it(youtube):
    found = []

    def work():
        found.append(asyncio.run(youtube.aget("vb-tracks-0")))
        found.append(youtube.get("vb-tracks-0"))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 8 and len(set(found)) == 1


async def test_the_plain_call_inside_a_running_loop(youtube):
    # As in a notebook's cell: it blocks the loop, and comes back.
    assert youtube.get("vb-tracks-0") == await youtube.aget("vb-tracks-0")


def test_many_at_once(youtube):
    links = ["vb-tracks-0", "vb-botcheck", "no link", "vb-french-0", LINK.encode(), None]
    told = []
    results = list(youtube.get_many(links, at_once=2, progress=lambda done, result: told.append((done, result))))
    assert [done for done, _ in told] == [1, 2, 3, 4, 5, 6] and [result for _, result in told] == results
    by_link = {result.link: result for result in results}
    assert by_link["vb-tracks-0"].get().language == "en"
    with pytest.raises(verbatim.RateLimited):
        by_link["vb-botcheck"].get()
    assert isinstance(by_link["no link"].error, verbatim.InvalidInput)
    assert isinstance(by_link[None].error, TypeError) and isinstance(by_link[LINK.encode()].error, TypeError)
    for wrong in (LINK, b"x"):
        with pytest.raises(TypeError, match="several"):
            youtube.get_many(wrong)
    with pytest.raises(ValueError, match="at_once"):
        youtube.get_many([], at_once=0)


async def test_many_awaited_from_an_endless_run(youtube):
    seen = []
    async for result in youtube.aget_many(itertools.cycle(["vb-tracks-0", "vb-french-0"]), at_once=3):
        seen.append(result.get().language)
        if len(seen) == 7:
            break
    assert set(seen) == {"en", "fr"}


def test_no_more_at_once_than_asked():
    class Counting:
        name = "counting"
        now = most = 0
        lock = threading.Lock()

        def supply(self, ask):
            with self.lock:
                self.now += 1
                self.most = max(self.most, self.now)
            threading.Event().wait(0.02)
            with self.lock:
                self.now -= 1
            return verbatim.Transcript(ask.url, [verbatim.Segment("x", 0)])

    counting = Counting()
    with verbatim.Transcripts(suppliers=[counting]) as transcripts:
        links = [f"{n:011}" for n in range(30)]
        assert all(result.error is None for result in transcripts.get_many(links, at_once=3))
    assert 2 <= counting.most <= 3


def test_an_archive_in_a_file_lasts(tmp_path):
    file = tmp_path / "kept.db"
    for archive in (f"sqlite:///{file}", file, str(file)):
        with verbatim.Transcripts(archive, suppliers=[]) as transcripts:
            done = transcripts.import_(LINK, SRT, lang="en")
            assert transcripts.get(LINK).text.startswith("It is so quiet")
    assert done.effect == "unchanged"
    os.chmod(file, 0o644)
    (tmp_path / "damaged.db").write_bytes(b"SQLite format 3\0" + b"\xff" * 5000)
    with pytest.raises(verbatim.StorageError), verbatim.Transcripts(tmp_path / "damaged.db") as transcripts:
        transcripts.get(LINK)


def test_what_is_damaged_in_a_file_is_told_at_the_first_look_at_the_latest(tmp_path):
    file = tmp_path / "kept.db"
    with verbatim.Transcripts(file, suppliers=[]) as transcripts:
        transcripts.import_(LINK, SRT, lang="en")
        kept = transcripts.get(LINK)
    # What was left unread can be read when all is closed, by several threads at once.
    with ThreadPoolExecutor(4) as pool:
        texts = set(pool.map(lambda _: kept.text, range(8)))
    assert len(texts) == 1 and kept.text.startswith("It is so quiet") and kept.revision == 1
    for damage, is_found in (("about = ''", True), ("segments = zeroblob(40)", False)):
        with sqlite3.connect(file) as database:
            database.execute(f"UPDATE bodies SET {damage}")
        database.close()
        with verbatim.Transcripts(file, suppliers=[]) as transcripts:
            if not is_found:
                with pytest.raises(verbatim.StorageError):
                    transcripts.get(LINK)
                continue
            found = transcripts.get(LINK)
            assert found.from_cache
            for look in (len, str, hash, list, lambda found: found.title, lambda found: found.srt(), lambda found: found == kept):
                with pytest.raises(verbatim.StorageError):
                    look(found)


def test_import_search_forget(shelf, tmp_path):
    done = shelf.import_(LINK, b"WEBVTT\n\n00:01.000 --> 00:02.000\nAnders.\n", lang="de")
    assert (done.language, done.segments, done.effect) == ("de", 1, "added")
    other = tmp_path / "other.srt"
    other.write_text(SRT.replace("quiet", "loud"))
    assert shelf.import_(LINK, other, lang="en").effect == "kept"
    assert shelf.import_(LINK, other, lang="en", replace=True).effect == "replaced"
    assert shelf.get(LINK).revision == 2
    (hit,) = shelf.search("CAFE closed")
    assert hit.text == "The café is closed." and hit.start == 61.0 and hit.url.endswith("t=61s")
    assert hit.transcript == shelf.get(LINK)
    assert shelf.search("closed", lang="de") == [] and shelf.search("closed", limit=0) == []
    assert shelf.stats()["videos"] == 1
    shelf.forget(LINK)
    assert shelf.stats()["videos"] == 0 and shelf.search("closed") == []
    for query in ("", " … "):
        with pytest.raises(verbatim.InvalidInput, match="word"):
            shelf.search(query)
    for captions in ("", "no captions", b"\xff\xfe"):
        with pytest.raises(verbatim.InvalidInput):
            shelf.import_(LINK, captions)


async def test_the_same_awaited(shelf):
    assert (await shelf.aimport(LINK, SRT.replace("quiet", "loud"), lang="en")).effect == "kept"
    assert (await shelf.asearch("quiet"))[0].start == 1.5
    assert (await shelf.astats())["transcripts"] >= 1
    await shelf.aforget(LINK)
    with pytest.raises(verbatim.NotConfigured):
        await shelf.arefresh(LINK)


def test_refresh(youtube):
    youtube.get("vb-tracks-0")
    again = youtube.refresh("vb-tracks-0")
    assert not again.changed and again.transcript.language == "en"
    with pytest.raises(verbatim.RateLimited):
        youtube.refresh("vb-botcheck")


def test_what_is_at_hand_is_never_old(tmp_path):
    file = tmp_path / "kept.db"
    loud = SRT.replace("quiet", "loud")
    with verbatim.Transcripts(file, suppliers=[]) as one, verbatim.Transcripts(file, suppliers=[]) as other:
        one.import_(LINK, SRT, lang="en")
        for transcripts in (one, other):
            assert {transcripts.get(LINK)[0].text for _ in range(100)} == {"It is so quiet here."}
        # One's own change is there at once, another process's after 50 milliseconds.
        one.import_(LINK, loud, lang="en", replace=True)
        assert one.get(LINK)[0].text == "It is so loud here."
        time.sleep(0.06)
        assert other.get(LINK)[0].text == "It is so loud here."
        other.forget(LINK)
        with pytest.raises(verbatim.NotConfigured):
            other.get(LINK)
        time.sleep(0.06)
        with pytest.raises(verbatim.NotConfigured):
            one.get(LINK)
        one.import_(LINK, SRT, lang="en")
        assert one.get(LINK).from_cache and one.get(LINK, "en").from_cache
    for closed in (one, other):
        with pytest.raises(verbatim.Closed):
            closed.get(LINK)


async def test_what_is_at_hand_is_awaited_too(shelf):
    shelf.get(LINK)
    first, second = await asyncio.gather(shelf.aget(LINK), shelf.aget(LINK))
    assert first == second == shelf.get(LINK)
    assert [result.get() for result in shelf.get_many([LINK] * 3)] == [first] * 3
    assert [result.get() async for result in shelf.aget_many([LINK] * 3)] == [first] * 3
    task = asyncio.ensure_future(shelf.aget(LINK))
    await asyncio.sleep(0)
    task.cancel()
    assert task.done() and task.result() == first


class Slow:
    """Never has anything, and notes when nobody wants it any more."""

    name = "slow"

    def __init__(self):
        self.ended = threading.Event()

    def supply(self, ask):
        while not ask.cancelled:
            time.sleep(0.005)
        self.ended.set()


def test_a_timeout_ends_the_call_and_its_work():
    slow = Slow()
    with verbatim.Transcripts(suppliers=[slow], timeout=0.2) as transcripts:
        with pytest.raises(verbatim.FetchFailed, match="more time"):
            transcripts.get(LINK)
        assert slow.ended.wait(5)


def test_a_service_goes_on_for_who_asks_again():
    class Late:
        name = "late"
        asked = 0
        go = threading.Event()

        def supply(self, ask):
            self.asked += 1
            self.go.wait(20)
            return verbatim.Transcript(ask.url, [verbatim.Segment("x", 0)])

    late = Late()
    with verbatim.Service(suppliers=[late], timeout=0.2) as service:
        with pytest.raises(verbatim.FetchFailed, match="ask again"):
            service.get(LINK)
        late.go.set()
        end = time.monotonic() + 20
        while service.stats()["transcripts"] == 0:
            assert time.monotonic() < end
            time.sleep(0.005)
        assert service.get(LINK).source == "late" and late.asked == 1


def test_memory_is_bounded():
    cue = "1\n00:00:01,500 --> 00:00:03,000\n{}\n"
    with verbatim.Transcripts(suppliers=[]) as transcripts:
        for number in range(48):
            transcripts.import_(f"{number:011}", cue.format("word " * 400_000), lang="en")
        assert 30 <= transcripts.stats()["transcripts"] <= 34
        assert len(transcripts.get(f"{47:011}")[0].text) >= 1_999_999
        with pytest.raises(verbatim.NotConfigured):
            transcripts.get(f"{0:011}")
