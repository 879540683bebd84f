"""Batches with failing answers: pauses are waited out, and each result has its own error."""

import asyncio
import http.client
import itertools
import signal
import threading
import time
import urllib.error

import pytest

import verbatim_transcripts as vt
from verbatim_transcripts import Segment, SupplyError, Transcript, Transcripts


def video(number):
    return f"{number:011d}"


class ScriptedSupplier:
    """Raises the scripted exceptions in the order of its calls; other calls return a transcript."""

    name = "scripted"

    def __init__(self, failures):
        self.failures = iter(failures)
        self.lock = threading.Lock()
        self.calls = 0

    def supply(self, request):
        with self.lock:
            self.calls += 1
            failure = next(self.failures, None)
        time.sleep(0.005)
        if failure is not None:
            raise failure
        return Transcript(request.url, [Segment("Hello.", 0, 1)], language="en")


def unreadable(count):
    return [SupplyError("unreadable", "The answer has an unknown format.") for _ in range(count)]


def test_batch_survives_unreadable_answers_at_start():
    with Transcripts(suppliers=[ScriptedSupplier(unreadable(5))]) as transcripts:
        started = time.monotonic()
        results = list(transcripts.get_many(map(video, range(200))))
        elapsed = time.monotonic() - started
    failed = [result for result in results if result.error is not None]
    assert len(results) == 200 and len(failed) <= 5, failed[-1]
    assert elapsed < 10


def test_batch_retries_throttled_link_after_named_wait():
    throttled = SupplyError("throttled", "Too many requests.", retry_after=0.3)
    supplier = ScriptedSupplier([throttled])
    with Transcripts(suppliers=[supplier]) as transcripts:
        started = time.monotonic()
        results = list(transcripts.get_many([video(1)]))
        assert results[0].get().text == "Hello.\n" and supplier.calls == 2
        assert time.monotonic() - started >= 0.3


def test_batch_without_wait_fails_at_once():
    throttled = [SupplyError("throttled", "Too many requests.", retry_after=60) for _ in range(99)]
    with Transcripts(suppliers=[ScriptedSupplier(throttled)]) as transcripts:
        started = time.monotonic()
        results = list(transcripts.get_many(map(video, range(20)), max_wait=0))
        assert time.monotonic() - started < 5
    assert {type(result.error) for result in results} == {vt.RateLimited}
    assert all(0 < result.error.retry_after <= 60 for result in results)


def test_batch_gives_up_after_max_wait_without_success():
    throttled = (SupplyError("throttled", "Too many requests.", retry_after=0.2) for _ in itertools.count())
    with Transcripts(suppliers=[ScriptedSupplier(throttled)]) as transcripts:
        started = time.monotonic()
        results = list(transcripts.get_many(map(video, range(64)), max_wait=1))
        elapsed = time.monotonic() - started
    assert len(results) == 64 and all(isinstance(result.error, vt.RateLimited) for result in results)
    # The wait is one for the whole batch, not one for each group of links.
    assert elapsed < 4


def test_batch_of_blocked_platform_ends_after_max_wait():
    blocked = (SupplyError("bot_check", "Prove that you are human.", retry_after=60) for _ in itertools.count())
    with Transcripts(suppliers=[ScriptedSupplier(blocked)], breaker_cooldown=30) as transcripts:
        started = time.monotonic()
        results = list(transcripts.get_many(map(video, range(64)), max_wait=2))
        assert time.monotonic() - started < 6
    assert all(isinstance(result.error, vt.RateLimited) for result in results)


def test_batch_calls_suppliers_three_times_for_one_link():
    throttled = (SupplyError("throttled", "Too many requests.", retry_after=0.1) for _ in itertools.count())
    supplier = ScriptedSupplier(throttled)
    with Transcripts(suppliers=[supplier]) as transcripts:
        (result,) = transcripts.get_many([video(1)])
    assert isinstance(result.error, vt.RateLimited) and supplier.calls == 3


def test_batch_with_short_max_wait_survives_outage():
    class RecoveringSupplier:
        name = "recovering"
        first_call = None

        def supply(self, request):
            now = time.monotonic()
            self.first_call = self.first_call or now
            if now - self.first_call < 0.9:
                raise SupplyError("unreadable", "The answer has an unknown format.")
            # All other links ask while the trial runs.
            time.sleep(0.2)
            return Transcript(request.url, [Segment("Hello.", 0, 1)], language="en")

    with Transcripts(suppliers=[RecoveringSupplier()], breaker_cooldown=0.5) as transcripts:
        results = list(transcripts.get_many(map(video, range(40)), max_wait=2))
    assert len(results) == 40 and [result.error for result in results if result.error is not None] == []


def test_batch_retries_failures_without_named_wait():
    for reason in ("throttled", "platform_fault"):
        supplier = ScriptedSupplier([SupplyError(reason, "It failed."), SupplyError(reason, "It failed.")])
        with Transcripts(suppliers=[supplier]) as transcripts:
            started = time.monotonic()
            (result,) = transcripts.get_many([video(1)])
        assert result.get().text == "Hello.\n" and supplier.calls == 3
        assert time.monotonic() - started >= 3


class BusyError(Exception):
    """An exception of a supplier's own library that names a wait."""

    retry_after = 0.1


@pytest.mark.parametrize(
    ("failure", "calls"),
    [
        (TypeError("a bug"), 1),
        (KeyError("a bug"), 1),
        (SupplyError("no such reason"), 1),
        (AssertionError("a bug"), 1),
        (NotImplementedError("a bug"), 1),
        (BusyError("busy"), 2),
        (RuntimeError("cancelled"), 2),
        (asyncio.TimeoutError("slow"), 2),
        (http.client.IncompleteRead(b""), 2),
        (vt.ServiceRefused("Bad gateway.", 502), 2),
        (ConnectionResetError("cut"), 2),
        (TimeoutError("slow"), 2),
        (urllib.error.URLError("of a library"), 2),
        (vt.FetchFailed("of another archive"), 2),
    ],
    ids=lambda value: type(value).__name__,
)
def test_batch_tries_defect_of_supplier_once(failure, calls):
    supplier = ScriptedSupplier([failure])
    with Transcripts(suppliers=[supplier]) as transcripts:
        (result,) = transcripts.get_many([video(1)])
    assert supplier.calls == calls
    if calls == 1:
        assert isinstance(result.error, vt.FetchFailed) and result.error.__cause__ is failure
    else:
        assert result.get().text == "Hello.\n"


def test_batch_defect_of_supplier_leaves_retries_to_next():
    class BuggySupplier:
        name = "buggy"

        def supply(self, request):
            raise TypeError("a bug")

    throttled = ScriptedSupplier([SupplyError("throttled", "Too many requests.", retry_after=0.1)])
    with Transcripts(suppliers=[BuggySupplier(), throttled]) as transcripts:
        (result,) = transcripts.get_many([video(1)])
    assert result.get().text == "Hello.\n" and throttled.calls == 2


def test_batch_absence_is_not_waited_for():
    with Transcripts(suppliers=[ScriptedSupplier([SupplyError("live", "It is live.")])]) as transcripts:
        started = time.monotonic()
        results = list(transcripts.get_many([video(1), video(1)], concurrency=1))
        assert time.monotonic() - started < 5
    assert all(isinstance(result.error, vt.TranscriptUnavailable) for result in results)


def test_batch_result_has_index_link_and_language(youtube):
    links = ["vb-tracks-0", "no link", "vb-french-0"]
    results = sorted(youtube.get_many(links, "fr"), key=lambda result: result.index)
    assert [(result.index, result.link, result.lang) for result in results] == [
        (0, "vb-tracks-0", "fr"),
        (1, "no link", "fr"),
        (2, "vb-french-0", "fr"),
    ]
    assert [result.language for result in results] == ["fr", None, "fr"]


def test_batch_repeated_link_leaves_room_for_others():
    class PairedSupplier:
        name = "paired"
        other = threading.Event()

        def supply(self, request):
            if int(request.video_id) == 1:
                assert self.other.wait(30)
            else:
                self.other.set()
            return Transcript(request.url, [Segment("Hello.", 0, 1)], language="en")

    with Transcripts(suppliers=[PairedSupplier()]) as transcripts:
        results = list(transcripts.get_many([video(1)] * 3 + [video(2)], concurrency=2))
    assert sorted(result.index for result in results) == [0, 1, 2, 3]
    assert all(result.error is None for result in results)


class UnevenSupplier:
    name = "uneven"

    def supply(self, request):
        time.sleep(0.2 if int(request.video_id) % 10 == 0 else 0.001)
        return Transcript(request.url, [Segment("Hello.", 0, 1)], language="en")


def test_batch_in_order_yields_in_order_of_submission():
    with Transcripts(suppliers=[UnevenSupplier()]) as transcripts:
        links = [video(number) for number in range(50)]
        by_completion = [result.link for result in transcripts.get_many(links, concurrency=8)]
        assert by_completion != links and sorted(by_completion) == links
        transcripts.delete(video(0))
        assert [result.link for result in transcripts.get_many(links, concurrency=8, in_order=True)] == links

    async def run():
        async with Transcripts(suppliers=[UnevenSupplier()]) as transcripts:
            results = transcripts.aget_many(links, concurrency=8, in_order=True)
            return [result.link async for result in results]

    assert asyncio.run(run()) == links


def test_batch_in_order_reads_bounded_number_of_links():
    taken = []

    def links():
        for number in itertools.count():
            taken.append(number)
            yield video(number)

    class BlockingSupplier(UnevenSupplier):
        def supply(self, request):
            if int(request.video_id) == 0:
                time.sleep(1)
            return Transcript(request.url, [Segment("Hello.", 0, 1)], language="en")

    with Transcripts(suppliers=[BlockingSupplier()]) as transcripts:
        results = transcripts.get_many(links(), concurrency=2, in_order=True)
        assert next(results).index == 0
        assert len(taken) <= 64
        results.close()


async def async_links(count, delay=0.0):
    for number in range(count):
        await asyncio.sleep(delay)
        yield video(number)


def until_error(results):
    found = []
    with pytest.raises(OSError, match="gone"):
        for result in results:
            found.append(result.index)
    return sorted(found)


def test_batch_error_of_iterable_comes_after_results():
    def links():
        yield from map(video, range(3))
        raise OSError("gone")

    async def links_of_loop():
        async for link in async_links(3):
            yield link
        raise OSError("gone")

    async def collect(transcripts, links):
        found = []
        with pytest.raises(OSError, match="gone"):
            async for result in transcripts.aget_many(links):
                found.append(result.index)
        return sorted(found)

    with Transcripts(suppliers=[UnevenSupplier()]) as transcripts:
        for options in ({}, {"in_order": True}, {"concurrency": 1}, {"concurrency": 2}):
            assert until_error(transcripts.get_many(links(), **options)) == [0, 1, 2]
        for iterable in (links, links_of_loop):
            assert asyncio.run(collect(transcripts, iterable())) == [0, 1, 2]


async def test_batch_takes_async_iterable_while_it_fetches():
    async with Transcripts(suppliers=[UnevenSupplier()]) as transcripts:
        results = transcripts.aget_many(async_links(50), concurrency=4, in_order=True)
        assert [result.link async for result in results] == [video(number) for number in range(50)]
        assert [result async for result in transcripts.aget_many(async_links(0))] == []
        # A result does not wait for the next link.
        links = async_links(99, delay=0.5)
        results = transcripts.aget_many(links)
        started = time.monotonic()
        assert (await anext(results)).index == 0
        assert time.monotonic() - started < 0.9
        await results.aclose()
        await links.aclose()
        with pytest.raises(TypeError):
            transcripts.get_many(async_links(3))


class WaitingSupplier:
    """Waits until it is cancelled."""

    name = "waiting"

    def __init__(self):
        self.started, self.cancelled = threading.Event(), threading.Event()

    async def supply(self, request):
        self.started.set()
        try:
            await asyncio.sleep(60)
        finally:
            self.cancelled.set()


def test_batch_interrupted_cancels_fetches_while_exception_is_kept():
    supplier = WaitingSupplier()

    def interrupt():
        supplier.started.wait(10)
        signal.raise_signal(signal.SIGINT)

    thread = threading.Thread(target=interrupt)
    with Transcripts(suppliers=[supplier]) as transcripts:
        thread.start()
        with pytest.raises(KeyboardInterrupt) as raised:
            list(transcripts.get_many(map(video, range(3))))
        assert supplier.cancelled.wait(5) and raised.value.__traceback__ is not None
    thread.join()


async def test_batch_task_cancelled_cancels_fetches_while_exception_is_kept():
    supplier = WaitingSupplier()

    async def collect():
        return [result async for result in transcripts.aget_many(map(video, range(3)))]

    async with Transcripts(suppliers=[supplier]) as transcripts:
        task = asyncio.create_task(collect())
        assert await asyncio.to_thread(supplier.started.wait, 10)
        task.cancel()
        with pytest.raises(asyncio.CancelledError) as raised:
            await task
        assert await asyncio.to_thread(supplier.cancelled.wait, 5) and raised.value.__traceback__ is not None


def test_batch_link_that_cannot_start_is_failed_result():
    class Course:
        name = "course"

        async def supply(self, request):
            if request.video_id == video(0):
                self.results = [result async for result in transcripts.aget_many(map(video, range(3)), in_order=True)]
            return Transcript(request.url, [Segment("Hello.", 0, 1)], language="en")

    supplier = Course()
    with Transcripts(suppliers=[supplier]) as transcripts:
        assert transcripts.get(video(0)).text == "Hello.\n"
    errors = [result.error for result in supplier.results]
    assert [type(error) for error in errors] == [RuntimeError, type(None), type(None)]


def test_supplier_bugs_do_not_pause_it():
    class BuggySupplier:
        name = "buggy"

        def supply(self, request):
            raise KeyError(request.video_id)

    with Transcripts(suppliers=[BuggySupplier()]) as transcripts:
        results = list(transcripts.get_many(map(video, range(40)), max_wait=0))
    for result in results:
        assert isinstance(result.error, vt.FetchFailed) and "KeyError" in str(result.error)


def test_supplier_bug_in_trial_keeps_breaker_open():
    events = []
    supplier = ScriptedSupplier([*unreadable(1), KeyError("a bug")])
    settings = {"breaker_threshold": 1, "breaker_cooldown": 0.1, "on_event": events.append}
    with Transcripts(suppliers=[supplier], **settings) as transcripts:
        for number in (1, 2):
            with pytest.raises(vt.FetchFailed):
                transcripts.get(video(number))
            time.sleep(0.2)
        assert supplier.calls == 2 and "breaker_closed" not in [event.name for event in events]
        assert transcripts.get(video(3)).text == "Hello.\n"
    changes = [event.name for event in events if event.name.startswith("breaker")]
    assert changes == ["breaker_opened", "breaker_closed"]


def test_breaker_settings_are_keywords():
    with Transcripts(
        suppliers=[ScriptedSupplier(unreadable(99))], breaker_threshold=2, breaker_cooldown=30, breaker_cooldown_max=60
    ) as transcripts:
        errors = [result.error for result in transcripts.get_many(map(video, range(4)), concurrency=1, max_wait=0)]
    assert [error.retry_after is None for error in errors] == [True, True, False, False]
    assert 25 < errors[2].retry_after <= 30 and "paused" in str(errors[2])
    supplier = ScriptedSupplier(unreadable(99))
    with Transcripts(suppliers=[supplier], breaker_threshold=0) as transcripts:
        assert len(list(transcripts.get_many(map(video, range(40)), max_wait=0))) == supplier.calls == 40


@pytest.mark.parametrize("kind", [ValueError, RuntimeError])
def test_cause_belongs_to_its_call(kind):
    class FailingSupplier:
        name = "failing"

        def supply(self, request):
            time.sleep(int(request.video_id) % 3 / 100)
            error = kind("always the same words")
            error.video_id = request.video_id
            raise error

    with Transcripts(suppliers=[FailingSupplier()]) as transcripts:
        links = [video(number) for number in range(32)]
        results = transcripts.get_many(links, max_wait=0)
        causes = {result.link: result.error.__cause__ for result in results}
    assert {link: cause.video_id for link, cause in causes.items()} == {link: link for link in links}


def test_bot_check_has_retry_after(youtube):
    for _ in range(2):
        with pytest.raises(vt.RateLimited) as raised:
            youtube.get("vb-botcheck")
        assert raised.value.retry_after is not None and 0 < raised.value.retry_after <= 60
        # The reader is the caller, not the user of a server.
        assert "your address" in str(raised.value) and "server" not in str(raised.value)
