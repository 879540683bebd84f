"""The logger of the package and event hooks."""

import asyncio
import logging
import subprocess
import sys
import threading
import time

import pytest
from conftest import LINK

import verbatim_transcripts as vt
from verbatim_transcripts import Segment, SupplyError, Transcript, Transcripts


class FailingSupplier:
    name = "failing"

    def __init__(self, error):
        self.error = error

    def supply(self, request):
        raise self.error


@pytest.fixture
def records(caplog):
    caplog.set_level(logging.INFO, "verbatim_transcripts")
    return lambda event: [record for record in caplog.records if record.event == event]


def test_exception_in_supplier_is_logged_with_traceback(records):
    error = KeyError("a bug")
    with Transcripts(suppliers=[FailingSupplier(error)]) as transcripts, pytest.raises(vt.FetchFailed):
        transcripts.get(LINK)
    (record,) = records("exception in a custom component")
    assert record.levelno == logging.ERROR and record.exc_info[1] is error and record.exc_info[2] is not None
    assert record.fields == {"component": "supplier", "name": "failing"}


def test_event_that_another_thread_delivers_arrives_before_call_returns():
    class SlowHandler(logging.Handler):
        delivered = 0

        def emit(self, record):
            if record.event == "exception in a custom component":
                time.sleep(0.05)
                self.delivered += 1

    handler = SlowHandler()
    logger = logging.getLogger("verbatim_transcripts")
    logger.addHandler(handler)
    try:
        with Transcripts(suppliers=[FailingSupplier(KeyError("a bug"))]) as transcripts:
            for number in range(20):
                with pytest.raises(vt.FetchFailed):
                    transcripts.get(f"{number:011}")
                assert handler.delivered == number + 1
    finally:
        logger.removeHandler(handler)


async def test_exception_in_supplier_is_logged_before_await_returns(records):
    async with Transcripts(suppliers=[FailingSupplier(KeyError("a bug"))]) as transcripts:
        with pytest.raises(vt.FetchFailed):
            await transcripts.aget(LINK)
    assert len(records("exception in a custom component")) == 1


def test_supplier_failures_and_breaker_changes_are_logged(records):
    failure = SupplyError("unreadable", "The answer has an unknown format.")
    with Transcripts(suppliers=[FailingSupplier(failure)], breaker_threshold=2) as transcripts:
        for link in ("aaaaaaaaaaa", "bbbbbbbbbbb"):
            with pytest.raises(vt.FetchFailed):
                transcripts.get(link)
    failures = records("supplier returned no transcript")
    assert [record.fields["reason"] for record in failures] == ["unreadable"] * 2
    assert failures[0].fields["supplier"] == "failing" and "unknown format" in failures[0].getMessage()
    (opened,) = records("breaker opened")
    assert opened.levelno == logging.WARNING and opened.fields["supplier"] == "failing"
    assert opened.fields["platform"] == "YouTube" and failures[0].fields["video"] == "YouTube/aaaaaaaaaaa"
    assert not records("exception in a custom component")


def test_waits_of_batch_are_logged(records):
    class ThrottledOnce:
        name = "throttled"
        calls = 0

        def supply(self, request):
            self.calls += 1
            if self.calls == 1:
                raise SupplyError("throttled", retry_after=0.2)
            return Transcript(request.url, [Segment("Hello.", 0, 1)], language="en")

    with Transcripts(suppliers=[ThrottledOnce()]) as transcripts:
        (result,) = transcripts.get_many([LINK])
        assert result.error is None
    (record,) = records("batch waits for a paused source")
    assert 0 < record.fields["wait_ms"] <= 200


def test_retries_are_logged(records):
    # Nothing listens on this port: each attempt fails at once.
    with Transcripts(proxies="http://127.0.0.1:9", retries=1) as transcripts, pytest.raises(vt.FetchFailed):
        transcripts.get(LINK)
    retries = records("request is retried")
    assert retries and retries[0].fields["attempt"] == 1 and retries[0].fields["host"]


def test_on_event_receives_stages_calls_and_breaker_changes():
    class Recovering:
        name = "recovering"
        calls = 0

        def supply(self, request):
            self.calls += 1
            request.stage("reading", 1, 2)
            if self.calls == 1:
                raise SupplyError("unreadable")
            return Transcript(request.url, [Segment("Hello.", 0, 1)], language="en")

    events = []
    supplier = Recovering()
    with Transcripts(suppliers=[supplier], breaker_threshold=1, on_event=events.append) as transcripts:
        results = list(transcripts.get_many(["aaaaaaaaaaa", "bbbbbbbbbbb"], concurrency=1))
        assert [result.error is None for result in results] == [True, True]
    names = [event.name for event in events]
    assert names[:3] == ["stage", "breaker_opened", "supplier_call"] and "breaker_closed" in names, names
    stage = next(event.fields for event in events if event.name == "stage")
    expect = {"supplier": "recovering", "platform": "YouTube", "video_id": "aaaaaaaaaaa"}
    assert stage == {**expect, "stage": "reading", "done": 1, "total": 2}
    calls = [event.fields for event in events if event.name == "supplier_call" and event.fields["attempted"]]
    assert [call["reason"] for call in calls] == ["unreadable", None, None]
    with pytest.raises(TypeError, match="callable"):
        Transcripts(on_event=7)


def test_on_event_is_called_while_a_call_runs():
    seen, end = threading.Event(), threading.Event()

    class Slow:
        name = "slow"

        def supply(self, request):
            request.stage("reading", 1, 2)
            end.wait(10)
            return Transcript(request.url, [Segment("Hello.", 0, 1)], language="en")

    with Transcripts(suppliers=[Slow()], on_event=lambda event: seen.set()) as transcripts:
        task = threading.Thread(target=lambda: asyncio.run(transcripts.aget(LINK)))
        task.start()
        assert seen.wait(5)
        end.set()
        task.join()


def test_on_event_exception_does_not_change_result(records, caplog):
    def fail(event):
        raise ValueError("a bug in the hook")

    class Good:
        name = "good"

        def supply(self, request):
            request.stage("reading", 1, 2)
            return Transcript(request.url, [Segment("Hello.", 0, 1)], language="en")

    with Transcripts(suppliers=[Good()], on_event=fail) as transcripts:
        assert transcripts.get(LINK).text == "Hello.\n"
        time.sleep(0.1)
    record = next(record for record in caplog.records if "on_event raised" in record.getMessage())
    assert (record.event, record.fields["supplier"]) == ("stage", "good")


def test_hook_that_waits_for_caller_does_not_block_it():
    class Good:
        name = "good"

        def supply(self, request):
            return Transcript(request.url, [Segment("Hello.", 0, 1)], language="en")

    lock, hook_threads = threading.Lock(), set()

    def hook(event):
        hook_threads.add(threading.get_ident())
        with lock:
            pass

    with Transcripts(suppliers=[Good()], on_event=hook) as transcripts:
        for _ in range(3):
            start = time.monotonic()
            with lock:
                assert transcripts.refresh(LINK).transcript.text == "Hello.\n"
            assert time.monotonic() - start < 3
    assert hook_threads and threading.get_ident() not in hook_threads


#: The call returns after a second, before its hook does.
SLOW_HOOK = """
import time
from verbatim_transcripts import Segment, Transcript, Transcripts

class Good:
    name = "good"

    def supply(self, request):
        return Transcript(request.url, [Segment("Hello.", 0, 1)], language="en")

def hook(event):
    if event.name == "supplier_call":
        time.sleep(1.4)
        print("called", flush=True)

transcripts = Transcripts(suppliers=[Good()], on_event=hook)
transcripts.get("dQw4w9WgXcQ")
print("returned", flush=True)
"""


def test_exit_waits_for_slow_hook():
    done = subprocess.run([sys.executable, "-c", SLOW_HOOK], capture_output=True, text=True, timeout=60)
    assert done.stdout.splitlines() == ["returned", "called"], done.stderr


async def test_slow_hook_does_not_block_event_loop():
    class Good:
        name = "good"

        def supply(self, request):
            return Transcript(request.url, [Segment("Hello.", 0, 1)], language="en")

    turns = []

    async def tick():
        while True:
            start = time.monotonic()
            await asyncio.sleep(0.01)
            turns.append(time.monotonic() - start)

    hook_threads = set()

    def hook(event):
        hook_threads.add(threading.get_ident())
        time.sleep(0.3)

    async with Transcripts(suppliers=[Good()], on_event=hook) as transcripts:
        ticker = asyncio.create_task(tick())
        found = await asyncio.gather(*(transcripts.aget(f"{number:011}") for number in range(3)))
        ticker.cancel()
    assert [one.text for one in found] == ["Hello.\n"] * 3
    assert hook_threads and threading.get_ident() not in hook_threads
    assert max(turns) < 0.25


def test_hook_does_not_run_on_event_loop_of_suppliers():
    class Staged:
        name = "staged"

        async def supply(self, request):
            self.thread = threading.get_ident()
            request.stage("reading", 1, 2)
            return Transcript(request.url, [Segment("Hello.", 0, 1)], language="en")

    threads = {}
    supplier = Staged()

    def hook(event):
        threads[event.name] = threading.get_ident()

    with Transcripts(suppliers=[supplier], on_event=hook) as transcripts:
        assert transcripts.get(LINK).text == "Hello.\n"
    assert threads["stage"] != supplier.thread
