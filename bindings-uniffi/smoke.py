"""The layer without a JVM: UniFFI's own Python over it, through every kind of thing that crosses it."""

import asyncio
import datetime
import os
import sys

import verbatim_phone as v

LINK = "https://youtu.be/dQw4w9WgXcQ"
SRT = "1\n00:00:01,500 --> 00:00:03,000\nIt is so quiet here.\n\n2\n00:01:01,000 --> 00:01:04,000\nThe café is closed.\n"


class Own(v.Supplier):
    async def supply(self, ask):
        if ask.video_id == "ccccccccccc":
            raise v.SupplyFailure.Failed(v.SupplyReason.PRIVATE, "It is private.", None)
        if ask.video_id == "ddddddddddd":
            await asyncio.sleep(60)
        ask.watcher.stage("reading", 1, 1)
        segment = v.Segment(text=f"of {ask.video_id}", start_ms=0, duration_ms=900)
        return [
            v.Transcript(
                platform=ask.platform,
                video_id=ask.video_id,
                language="en",
                kind=v.TrackKind.HUMAN,
                segments=[segment],
            )
        ]


class Listener(v.ProgressListener):
    def __init__(self):
        self.stages = []

    async def on_stage(self, stage):
        self.stages.append(stage.name)

    async def on_answer(self, answer):
        pass


async def failing(kind, work):
    try:
        await work
    except v.VerbatimError.Failed as error:
        assert error.failure.kind == kind, error.failure
        return error.failure
    raise AssertionError("it did not fail")


async def main():
    # Calls of the library come from its own threads.
    v.uniffi_set_event_loop(asyncio.get_running_loop())
    own = v.SupplierChoice.OWN(name="mine", platforms=[], kind=v.SupplierKind.CAPTIONS, supplier=Own())
    transcripts = v.Transcripts(v.TranscriptsOptions(suppliers=[own]))
    done = await transcripts.import_captions(v.ImportRequest(link=LINK, captions=SRT.encode(), language="en"))
    assert (done.segments, done.effect) == (2, v.ImportEffect.ADDED)
    found = await transcripts.get(LINK)
    assert [segment.start_ms for segment in found.segments] == [1500, 61000] and found.from_cache
    assert "WEBVTT" in v.render(found, v.Format.WEB_VTT)
    listener = Listener()
    fetched = await transcripts.get("https://youtu.be/bbbbbbbbbbb", listener=listener)
    assert fetched.source == "mine" and "reading" in listener.stages
    await failing(v.FailureKind.NO_CAPTIONS, transcripts.get("https://youtu.be/ccccccccccc"))
    await failing(v.FailureKind.INVALID_INPUT, transcripts.get("no link"))
    soon = v.CallOptions(timeout=datetime.timedelta(milliseconds=50))
    await failing(v.FailureKind.TIMED_OUT, transcripts.get("https://youtu.be/ddddddddddd", call=soon))
    token = v.CancelToken()
    token.cancel()
    await failing(v.FailureKind.CANCELLED, transcripts.get(LINK, call=v.CallOptions(cancel=token)))
    key = await transcripts.service(None).create_key(v.NewKeyRequest())
    assert key.key.startswith("vbk_")
    for name in v.conformance_cases("archive"):
        await v.run_archive_case(name, v.memory_archive())
    await transcripts.shutdown()
    await failing(v.FailureKind.CLOSED, transcripts.get(LINK))


asyncio.run(main())
# Without the interpreter's own end: a thread of the library that comes by with a last answer then would be ended by
# CPython within the call, and the process with it. The package for Python, bindings-python, has none of this.
sys.stdout.flush()
os._exit(0)
