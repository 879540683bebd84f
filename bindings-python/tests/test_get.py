"""Single and batch fetches, plain and async, from recorded responses."""

import asyncio
import itertools
import os
import sqlite3
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from conftest import LINK, SRT

import verbatim_transcripts as vt
from verbatim_transcripts import _functions


def test_get_fetches_then_reads_archive(youtube):
    first = youtube.get("https://www.youtube.com/watch?v=vb-tracks-0")
    assert (first.title, first.language, first.source) == ("How a tide mill works", "en", "youtube-captions")
    assert not first.from_cache and not first.is_generated and len(first) == 4
    again = youtube.get("vb-tracks-0")
    assert again == first and again.from_cache
    assert youtube.get("vb-tracks-0", lang="de").language == "de"
    assert youtube.get("vb-tracks-0", "fr-FR")[0].text.startswith("Deux fois par jour")


def test_proxies_of_requests_are_used(replay):
    proxies = {"http": "http://127.0.0.1:9", "https": replay.proxy}
    with vt.Transcripts(proxies=proxies, ca_file=replay.ca_file) as transcripts:
        assert transcripts.get("vb-asronly0").is_generated


def test_functions_share_default_object(replay, monkeypatch):
    monkeypatch.setattr(_functions, "_shared", None)
    monkeypatch.setenv("VERBATIM_UPSTREAM__PROXY", replay.proxy)
    monkeypatch.setenv("VERBATIM_UPSTREAM__CA_FILE", replay.ca_file)
    assert vt.get("vb-asronly0").is_generated
    assert asyncio.run(vt.aget("vb-asronly0")).from_cache
    assert [result.get().language for result in vt.get_many(["vb-asronly0"])] == ["en"]


@pytest.mark.parametrize(
    ("video", "kind", "reason"),
    [
        ("vb-private0", vt.PrivateVideo, "private"),
        ("vb-botcheck", vt.RateLimited, "rate_limited"),
    ],
)
def test_get_unavailable_raises_reason(youtube, video, kind, reason):
    with pytest.raises(kind) as raised:
        youtube.get(video)
    error = raised.value
    assert isinstance(error, vt.TranscriptUnavailable)
    assert (error.reason, error.platform, error.video_id) == (reason, "YouTube", video)
    assert error.watch_url == ""
    assert str(error).endswith(".")


async def test_aget_concurrent_calls_succeed(youtube):
    one, two, three = await asyncio.gather(
        youtube.aget("vb-tracks-0"), youtube.aget("vb-tracks-0"), youtube.aget("vb-french-0")
    )
    assert one == two and three.language == "fr"
    assert asyncio.iscoroutinefunction(youtube.aget)
    with pytest.raises(vt.InvalidInput):
        await youtube.aget("no link")


def test_object_is_shared_by_loops_and_threads(youtube):
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


async def test_get_inside_running_loop_succeeds(youtube):
    # As in a notebook cell: the call blocks the loop and returns.
    assert youtube.get("vb-tracks-0") == await youtube.aget("vb-tracks-0")


def test_get_many_yields_results_and_errors(youtube):
    links = ["vb-tracks-0", "vb-botcheck", "no link", "vb-french-0", LINK.encode(), None]
    reports = []
    results = list(youtube.get_many(links, concurrency=2, progress=lambda done, result: reports.append((done, result))))
    assert [done for done, _ in reports] == [1, 2, 3, 4, 5, 6] and [result for _, result in reports] == results
    by_link = {result.link: result for result in results}
    assert by_link["vb-tracks-0"].get().language == "en"
    with pytest.raises(vt.RateLimited):
        by_link["vb-botcheck"].get()
    assert isinstance(by_link["no link"].error, vt.InvalidInput)
    assert isinstance(by_link[None].error, TypeError) and isinstance(by_link[LINK.encode()].error, TypeError)
    for wrong in (LINK, b"x"):
        with pytest.raises(TypeError, match="several"):
            youtube.get_many(wrong)
    with pytest.raises(ValueError, match="concurrency"):
        youtube.get_many([], concurrency=0)


async def test_aget_many_endless_links_can_stop(youtube):
    languages = []
    async for result in youtube.aget_many(itertools.cycle(["vb-tracks-0", "vb-french-0"]), concurrency=3):
        languages.append(result.get().language)
        # The repeats of one link may all come before the other one.
        if len(languages) >= 7 and set(languages) == {"en", "fr"}:
            break
    assert set(languages) == {"en", "fr"}


def test_get_many_respects_concurrency():
    class CountingSupplier:
        name = "supplier"
        now = most = 0
        lock = threading.Lock()

        def supply(self, request):
            with self.lock:
                self.now += 1
                self.most = max(self.most, self.now)
            threading.Event().wait(0.02)
            with self.lock:
                self.now -= 1
            return vt.Transcript(request.url, [vt.Segment("x", 0)])

    supplier = CountingSupplier()
    with vt.Transcripts(suppliers=[supplier]) as transcripts:
        links = [f"{n:011}" for n in range(30)]
        assert all(result.error is None for result in transcripts.get_many(links, concurrency=3))
    assert 2 <= supplier.most <= 3


def test_archive_file_is_permanent(tmp_path):
    file = tmp_path / "archive.db"
    for archive in (f"sqlite:///{file}", file, str(file)):
        with vt.Transcripts(archive, suppliers=[]) as transcripts:
            done = transcripts.import_(LINK, SRT, lang="en")
            assert transcripts.get(LINK).text.startswith("It is so quiet")
    assert done.effect == "unchanged"
    os.chmod(file, 0o644)
    (tmp_path / "damaged.db").write_bytes(b"SQLite format 3\0" + b"\xff" * 5000)
    with pytest.raises(vt.StorageError), vt.Transcripts(tmp_path / "damaged.db") as transcripts:
        transcripts.get(LINK)


def test_archive_damaged_row_raises_on_first_access(tmp_path):
    file = tmp_path / "archive.db"
    with vt.Transcripts(file, suppliers=[]) as transcripts:
        transcripts.import_(LINK, SRT, lang="en")
        transcript = transcripts.get(LINK)
    # A lazy transcript can be decoded after close, by several threads at once.
    with ThreadPoolExecutor(4) as pool:
        texts = set(pool.map(lambda _: transcript.text, range(8)))
    assert len(texts) == 1 and transcript.text.startswith("It is so quiet") and transcript.revision == 1
    for damage, is_found in (("about = ''", True), ("segments = zeroblob(40)", False)):
        with sqlite3.connect(file) as database:
            database.execute(f"UPDATE bodies SET {damage}")
        database.close()
        with vt.Transcripts(file, suppliers=[]) as transcripts:
            if not is_found:
                with pytest.raises(vt.StorageError):
                    transcripts.get(LINK)
                continue
            found = transcripts.get(LINK)
            assert found.from_cache
            for access in (len, str, hash, list, lambda found: found.title, lambda found: found.to_srt(), lambda found: found == transcript):
                with pytest.raises(vt.StorageError):
                    access(found)


def test_import_of_other_video_names_both(imported):
    body = '{"aaaaaaaaaaa": [{"text": "Hello.", "start": 0, "duration": 1}]}'
    with pytest.raises(vt.InvalidInput, match="names the video YouTube aaaaaaaaaaa, not YouTube dQw4w9WgXcQ"):
        imported.import_(LINK, body, lang="en")


def test_import_search_and_forget_succeed(imported, tmp_path):
    done = imported.import_(LINK, b"WEBVTT\n\n00:01.000 --> 00:02.000\nAnders.\n", lang="de")
    assert (done.language, done.segments, done.effect) == ("de", 1, "added")
    other = tmp_path / "other.srt"
    other.write_text(SRT.replace("quiet", "loud"))
    assert imported.import_(LINK, other, lang="en").effect == "kept"
    assert imported.import_(LINK, other, lang="en", replace=True).effect == "replaced"
    assert imported.get(LINK).revision == 2
    (hit,) = imported.search("CAFE closed")
    assert hit.text == "The café is closed." and hit.start == 61.0 and hit.url.endswith("t=61s")
    assert hit.transcript == imported.get(LINK)
    assert imported.search("closed", lang="de") == [] and imported.search("closed", limit=0) == []
    assert imported.stats()["videos"] == 1
    imported.delete(LINK)
    assert imported.stats()["videos"] == 0 and imported.search("closed") == []
    for query in ("", " … "):
        with pytest.raises(vt.InvalidInput, match="word"):
            imported.search(query)
    for captions in ("", "no captions", b"\xff\xfe"):
        with pytest.raises(vt.InvalidInput):
            imported.import_(LINK, captions)


async def test_async_archive_methods_succeed(imported):
    assert (await imported.aimport(LINK, SRT.replace("quiet", "loud"), lang="en")).effect == "kept"
    assert (await imported.asearch("quiet"))[0].start == 1.5
    assert (await imported.astats())["transcripts"] >= 1
    await imported.adelete(LINK)
    with pytest.raises(vt.NotConfigured):
        await imported.arefresh(LINK)


def test_refresh_reports_change(youtube):
    youtube.get("vb-tracks-0")
    again = youtube.refresh("vb-tracks-0")
    assert not again.changed and again.transcript.language == "en"
    with pytest.raises(vt.RateLimited):
        youtube.refresh("vb-botcheck")


def test_cache_is_invalidated_by_changes(tmp_path):
    file = tmp_path / "archive.db"
    loud = SRT.replace("quiet", "loud")
    with vt.Transcripts(file, suppliers=[]) as one, vt.Transcripts(file, suppliers=[]) as other:
        one.import_(LINK, SRT, lang="en")
        for transcripts in (one, other):
            assert {transcripts.get(LINK)[0].text for _ in range(100)} == {"It is so quiet here."}
        # A change by the same object is visible at once, by another one within 50 ms.
        one.import_(LINK, loud, lang="en", replace=True)
        assert one.get(LINK)[0].text == "It is so loud here."
        time.sleep(0.06)
        assert other.get(LINK)[0].text == "It is so loud here."
        other.delete(LINK)
        with pytest.raises(vt.NotConfigured):
            other.get(LINK)
        time.sleep(0.06)
        with pytest.raises(vt.NotConfigured):
            one.get(LINK)
        one.import_(LINK, SRT, lang="en")
        assert one.get(LINK).from_cache and one.get(LINK, "en").from_cache
    for closed in (one, other):
        with pytest.raises(vt.ClosedError):
            closed.get(LINK)


async def test_cache_serves_async_calls(imported):
    imported.get(LINK)
    first, second = await asyncio.gather(imported.aget(LINK), imported.aget(LINK))
    assert first == second == imported.get(LINK)
    assert [result.get() for result in imported.get_many([LINK] * 3)] == [first] * 3
    assert [result.get() async for result in imported.aget_many([LINK] * 3)] == [first] * 3
    task = asyncio.ensure_future(imported.aget(LINK))
    await asyncio.sleep(0)
    task.cancel()
    assert task.done() and task.result() == first


class SlowSupplier:
    """Never returns a transcript; records the cancellation."""

    name = "slow"

    def __init__(self):
        self.cancelled = threading.Event()

    def supply(self, request):
        while not request.cancelled:
            time.sleep(0.005)
        self.cancelled.set()


def test_timeout_cancels_fetch():
    slow = SlowSupplier()
    with vt.Transcripts(suppliers=[slow], timeout=0.2) as transcripts:
        with pytest.raises(vt.FetchFailed, match="more time"):
            transcripts.get(LINK)
        assert slow.cancelled.wait(5)


def test_service_fetch_continues_after_timeout():
    class LateSupplier:
        name = "late"
        calls = 0
        go = threading.Event()

        def supply(self, request):
            self.calls += 1
            self.go.wait(20)
            return vt.Transcript(request.url, [vt.Segment("x", 0)])

    late = LateSupplier()
    with vt.Service(suppliers=[late], timeout=0.2) as service:
        with pytest.raises(vt.FetchFailed, match="still being transcribed"):
            service.get(LINK)
        late.go.set()
        end = time.monotonic() + 20
        while service.stats()["transcripts"] == 0:
            assert time.monotonic() < end
            time.sleep(0.005)
        assert service.get(LINK).source == "late" and late.calls == 1


def test_memory_archive_is_bounded():
    cue = "1\n00:00:01,500 --> 00:00:03,000\n{}\n"
    with vt.Transcripts(suppliers=[]) as transcripts:
        for number in range(48):
            transcripts.import_(f"{number:011}", cue.format("word " * 400_000), lang="en")
        assert 30 <= transcripts.stats()["transcripts"] <= 34
        assert len(transcripts.get(f"{47:011}")[0].text) >= 1_999_999
        with pytest.raises(vt.NotConfigured):
            transcripts.get(f"{0:011}")
