"""Smoke test of the bindings without a JVM, with the Python that UniFFI generates: each kind of type is used once."""

import asyncio
import datetime
import os
import subprocess
import sys
import tempfile

import verbatim_phone as v

LINK = "https://youtu.be/dQw4w9WgXcQ"
SRT = "1\n00:00:01,500 --> 00:00:03,000\nIt is so quiet here.\n\n2\n00:01:01,000 --> 00:01:04,000\nThe café is closed.\n"


class CustomSupplier(v.Supplier):
    async def supply(self, request):
        if request.video_id == "ccccccccccc":
            raise v.SupplyFailure.Failed(v.SupplyReason.PRIVATE, "It is private.", None)
        if request.video_id.startswith("bug"):
            raise ValueError("a bug")
        if request.video_id == "ddddddddddd":
            await asyncio.sleep(60)
        request.monitor.report_progress("reading", 1, 1)
        words = [v.Word(text="of", start_ms=0, duration_ms=300)]
        segment = v.Segment(text=f"of {request.video_id}", start_ms=0, duration_ms=900, words=words)
        chapters = [v.Chapter(title="Start", start_ms=0)]
        return [
            v.Transcript(
                platform=request.platform,
                video_id=request.video_id,
                language="en",
                kind=v.TrackKind.HUMAN,
                segments=[segment],
                metadata=v.VideoMetadata(author_id="UC-x", live=v.LiveStatus.WAS_LIVE, chapters=chapters),
            )
        ]


class Listener(v.ProgressListener):
    def __init__(self):
        self.stages = []

    async def on_stage(self, stage):
        self.stages.append(stage.name)

    async def on_result(self, result):
        pass


async def assert_failure(kind, work):
    try:
        await work
    except v.VerbatimError.Failed as error:
        assert error.failure.kind == kind, error.failure
        return error.failure
    raise AssertionError("the call did not fail")


#: Locks a file until its input ends. Locks belong to a process, so this one could not hold it.
LOCK = """
import sqlite3, sys
db = sqlite3.connect(sys.argv[1], isolation_level=None)
db.execute("BEGIN EXCLUSIVE")
print("locked", flush=True)
sys.stdin.read()
"""


async def check_shutdown_waits_for_opening(folder):
    file = os.path.join(folder, "archive.db")
    command = [sys.executable, "-c", LOCK, file]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as locker:
        assert locker.stdout.readline()
        transcripts = v.Transcripts(v.TranscriptsOptions(storage=v.Storage.ARCHIVE_FILE(path=file), suppliers=[]))
        opening = asyncio.ensure_future(assert_failure(v.FailureKind.CLOSED, transcripts.get(LINK)))
        await asyncio.sleep(0.3)
        shutdown = asyncio.ensure_future(transcripts.shutdown())
        await asyncio.sleep(0.3)
        assert not shutdown.done()
        locker.stdin.close()
        await shutdown
        await opening


async def main():
    # The library calls back from its own threads.
    v.uniffi_set_event_loop(asyncio.get_running_loop())
    custom = v.SupplierSpec.CUSTOM(name="mine", platforms=[], kind=v.SupplierKind.CAPTIONS, supplier=CustomSupplier())
    transcripts = v.Transcripts(v.TranscriptsOptions(suppliers=[custom]))
    outcome = await transcripts.import_captions(v.ImportRequest(link=LINK, captions=SRT.encode(), language="en"))
    assert (outcome.segments, outcome.effect) == (2, v.ImportEffect.ADDED)
    found = await transcripts.get(LINK)
    assert [segment.start_ms for segment in found.segments] == [1500, 61000] and found.from_cache
    assert "WEBVTT" in v.render(found, v.TranscriptFormat.WEB_VTT)
    listener = Listener()
    fetched = await transcripts.get("https://youtu.be/bbbbbbbbbbb", listener=listener)
    assert fetched.source == "mine" and "reading" in listener.stages
    assert [word.text for word in fetched.segments[0].words] == ["of"] and not found.segments[0].words
    assert (fetched.metadata.author_id, fetched.metadata.chapters[0].title) == ("UC-x", "Start")
    assert v.chunks_by_tokens(fetched, 200)[0].text.startswith(fetched.segments[0].text)
    assert v.pages_by_chars(fetched)[0].segments == fetched.segments
    assert [v.language_name(track.language) for track in fetched.tracks] == ["English"]
    private = await assert_failure(v.FailureKind.NO_CAPTIONS, transcripts.get("https://youtu.be/ccccccccccc"))
    assert private.reason == "private", private
    for number in range(8):
        await assert_failure(v.FailureKind.FETCH_FAILED, transcripts.get(f"bug{number:08}"))
    assert await transcripts.find_archived("eeeeeeeeeee") is None
    assert [track.revision for track in await transcripts.tracks("eeeeeeeeeee")] == [1]
    assert (await transcripts.find_archived("eeeeeeeeeee")).source == "mine"
    await assert_failure(v.FailureKind.INVALID_INPUT, transcripts.get("no link"))
    options = v.CallOptions(timeout=datetime.timedelta(milliseconds=50))
    await assert_failure(v.FailureKind.TIMED_OUT, transcripts.get("https://youtu.be/ddddddddddd", call=options))
    await assert_failure(v.FailureKind.INVALID_INPUT, transcripts.video_list_page(LINK))
    await assert_failure(v.FailureKind.NOT_CONFIGURED, transcripts.video_list_page("@name", v.ChannelTab.SHORTS))
    token = v.CancelToken()
    token.cancel()
    await assert_failure(v.FailureKind.CANCELLED, transcripts.get(LINK, call=v.CallOptions(cancel=token)))
    key = await transcripts.service(None).create_key(v.CreateKeyRequest())
    assert key.key.startswith("vbk_")
    found, failed = await transcripts.service(None).get_many([LINK, "no link"], "de", other_languages=["en"])
    assert len(found.transcript.segments) == 2 and failed.failure.kind == v.FailureKind.INVALID_INPUT
    for name in v.conformance_cases("archive"):
        await v.run_archive_case(name, v.memory_archive())
    await transcripts.shutdown()
    await assert_failure(v.FailureKind.CLOSED, transcripts.get(LINK))
    with tempfile.TemporaryDirectory() as folder:
        await check_shutdown_waits_for_opening(folder)


asyncio.run(main())
# Skips the interpreter's shutdown: CPython would end a library thread that delivers a last result during a call, and
# the process with it. The Python package, bindings-python, is not affected.
sys.stdout.flush()
os._exit(0)
