"""Custom suppliers."""

import asyncio
import gc
import threading
import time
import weakref

import pytest
from conftest import LINK

import verbatim_transcripts as vt
from verbatim_transcripts import Segment, SupplyError, Transcript, Transcripts, _callbacks


class PlainSupplier:
    name = "plain"

    def __init__(self, answer=None):
        self.answer = answer
        self.requests = []

    def supply(self, request):
        self.requests.append((request.platform, request.video_id, request.lang, request.cancelled))
        request.stage("writing", 1, 2)
        if isinstance(self.answer, BaseException):
            raise self.answer
        if self.answer is not None:
            return self.answer
        return Transcript(request.url, [Segment("Hello.", 0, 1)], language=request.lang or "en")


class AsyncSupplier(PlainSupplier):
    name = "async"

    async def supply(self, request):
        await asyncio.sleep(0.01)
        return super().supply(request)


@pytest.mark.parametrize("kind", [PlainSupplier, AsyncSupplier])
def test_supplier_is_called_once_and_archived(kind):
    supplier = kind()
    with Transcripts(suppliers=[supplier]) as transcripts:
        first = transcripts.get(LINK)
        assert (first.source, first.text, first.from_cache) == (kind.name, "Hello.\n", False)
        assert transcripts.get(LINK).from_cache
        assert asyncio.run(transcripts.aget(LINK, "de")).language == "de"
    video = ("YouTube", "dQw4w9WgXcQ")
    assert supplier.requests == [(*video, None, False), (*video, "de", False)]


@pytest.mark.parametrize("kind", [PlainSupplier, AsyncSupplier])
def test_supplier_failure_raises_matching_exception(kind):
    for answer, error, reason in (
        (SupplyError("private", "It is private."), vt.PrivateVideo, "private"),
        (SupplyError("throttled", "Later.", retry_after=5), vt.RateLimited, "rate_limited"),
        (SupplyError("no such reason"), vt.FetchFailed, "fetch_error"),
        (ValueError("boom"), vt.FetchFailed, "fetch_error"),
        (7, vt.FetchFailed, "fetch_error"),
        ([7], vt.FetchFailed, "fetch_error"),
        ([], vt.FetchFailed, "fetch_error"),
        ((), vt.FetchFailed, "fetch_error"),
        ((7,), vt.FetchFailed, "fetch_error"),
        ("words", vt.FetchFailed, "fetch_error"),
    ):
        with Transcripts(suppliers=[kind(answer)]) as transcripts, pytest.raises(error) as raised:
            transcripts.get(LINK)
        assert raised.value.reason == reason
        if isinstance(answer, Exception):
            assert raised.value.__cause__ is answer


class OtherVideoSupplier(PlainSupplier):
    def supply(self, request):
        return Transcript("dQw4w9WgXcQ", [Segment("Hello.", 0, 1)], language="en")


class SilentSupplier(PlainSupplier):
    def supply(self, request):
        text = "Hello." if request.video_id == "dQw4w9WgXcQ" else " "
        return Transcript(request.url, [Segment(text, 0, 1)], language="en")


@pytest.mark.parametrize("kind", [OtherVideoSupplier, SilentSupplier])
def test_invalid_transcript_of_supplier_does_not_pause_it(kind):
    links = [f"{number:011}" for number in range(8)]
    with Transcripts(suppliers=[kind()]) as transcripts:
        start = time.monotonic()
        errors = [result.error for result in transcripts.get_many(links)]
        assert [type(error) for error in errors] == [vt.FetchFailed] * 8 and time.monotonic() - start < 5
        assert all("returned" in str(error) and "paused" not in str(error) for error in errors)
        assert transcripts.get(LINK).text == "Hello.\n"


@pytest.mark.parametrize(("reason", "kind"), [("live", vt.LiveVideo), ("upcoming", vt.UpcomingVideo)])
def test_supplier_wait_ends_absence(reason, kind):
    # Each failure has the time until a retry reaches the supplier, also the first one.
    for wait, remembered in ((60, 60), (3_600, 3_600 if reason == "upcoming" else 900), (3, 3), (None, 900)):
        supplier = PlainSupplier(SupplyError(reason, "Later.", retry_after=wait))
        with Transcripts(suppliers=[supplier]) as transcripts:
            for _ in range(2):
                with pytest.raises(kind) as raised:
                    transcripts.get(LINK)
                rest = raised.value.retry_after
                assert rest is not None and 0 < rest <= remembered, (wait, rest)
            assert len(supplier.requests) == 1
            if wait == 3:
                time.sleep(3.1)
                supplier.answer = None
                assert transcripts.get(LINK).text == "Hello.\n"


@pytest.mark.parametrize("kind", [list, tuple])
def test_supplier_sequence_is_archived(kind):
    answer = kind(Transcript(LINK, [Segment(text, 0, 1)], language=text) for text in ("de", "en"))
    with Transcripts(suppliers=[PlainSupplier(answer)]) as transcripts:
        assert transcripts.get(LINK, "de").text == "de\n"
        assert transcripts.get(LINK, "en", fetch=False).text == "en\n"


def test_supplier_none_raises_no_captions():
    class EmptySupplier:
        name = "nothing"

        def supply(self, request):
            return None

    with Transcripts(suppliers=[EmptySupplier()]) as transcripts, pytest.raises(vt.NoCaptions):
        transcripts.get(LINK)


def test_supplier_other_video_is_rejected():
    other = PlainSupplier(Transcript("aaaaaaaaaaa", [Segment("x", 0)]))
    with Transcripts(suppliers=[other]) as transcripts, pytest.raises(vt.FetchFailed, match="another video"):
        transcripts.get(LINK)


def test_supplier_failure_falls_back_to_next(replay):
    class UnreachableSupplier(PlainSupplier):
        name = "unreachable"

    unreachable_supplier = UnreachableSupplier(SupplyError("unreachable"))
    with Transcripts(
        suppliers=[unreachable_supplier, "youtube-captions"], proxies=replay.proxy, ca_file=replay.ca_file
    ) as transcripts:
        assert transcripts.get("vb-tracks-0").source == "youtube-captions"
    assert len(unreachable_supplier.requests) == 1


@pytest.mark.parametrize("kind", [PlainSupplier, AsyncSupplier])
@pytest.mark.parametrize("end", [SystemExit(3), KeyboardInterrupt()], ids=["exit", "interrupt"])
def test_supplier_exit_exception_reaches_caller(kind, end):
    supplier = kind(end)
    with Transcripts(suppliers=[supplier]) as transcripts:
        with pytest.raises(type(end)) as raised:
            transcripts.get(LINK)
        assert raised.value is end
        # The threads of the package still work.
        supplier.answer = None
        assert transcripts.get("aaaaaaaaaaa").text == "Hello.\n"


def test_supplier_can_fetch_from_other_object():
    inner = Transcripts(suppliers=[PlainSupplier()])

    class Outer:
        name = "outer"

        def supply(self, request):
            return Transcript(request.url, list(inner.get(request.url).segments), language="en")

    class OuterAsync(Outer):
        async def supply(self, request):
            return Transcript(request.url, list((await inner.aget(request.url)).segments), language="en")

    for outer in (Outer(), OuterAsync()):
        with Transcripts(suppliers=[outer]) as transcripts:
            assert transcripts.get(LINK).text == "Hello.\n"
            assert asyncio.run(transcripts.aget(LINK)).text == "Hello.\n"
    inner.close()


def test_supplier_own_transcript_raises_runtime_error():
    class SelfFetching:
        name = "itself"

        def supply(self, request):
            if request.lang == "de":
                english = transcripts.get(request.url, "en")
                return Transcript(request.url, [Segment(english[0].text.upper(), 0)], language="de")
            if request.lang == "en":
                return Transcript(request.url, [Segment("hello", 0)], language="en")
            return transcripts.refresh(request.url).transcript if request.video_id == "aaaaaaaaaaa" else transcripts.get(request.url)

    class SelfFetchingAsync(SelfFetching):
        async def supply(self, request):
            if request.lang is not None:
                return await asyncio.to_thread(super().supply, request)
            return await transcripts.aget(f"https://www.youtube.com/watch?v={request.video_id}")

    for supplier in (SelfFetching(), SelfFetchingAsync()):
        with Transcripts(suppliers=[supplier]) as transcripts:
            for link in (LINK, "aaaaaaaaaaa"):
                with pytest.raises(vt.FetchFailed, match="wait for itself") as raised:
                    transcripts.get(link)
                assert isinstance(raised.value.__cause__, RuntimeError)
            # Another language is allowed.
            assert transcripts.get(LINK, "de")[0].text == "HELLO"


def test_supplier_plain_call_on_loop_of_package_raises_runtime_error():
    class Mirror(AsyncSupplier):
        awaits = False

        async def supply(self, request):
            if request.video_id != "aaaaaaaaaaa":
                return await super().supply(request)
            other = await transcripts.aget("bbbbbbbbbbb") if self.awaits else transcripts.get("bbbbbbbbbbb")
            return Transcript(request.url, list(other.segments), language="en")

    supplier = Mirror()
    with Transcripts(suppliers=[supplier]) as transcripts:
        for _ in range(2):
            with pytest.raises(vt.FetchFailed, match="event loop of the package") as raised:
                transcripts.get("aaaaaaaaaaa", timeout=10)
            assert isinstance(raised.value.__cause__, RuntimeError)
        supplier.awaits = True
        assert transcripts.get("aaaaaaaaaaa").text == "Hello.\n"


def test_cancellation_inside_supplier_fails_its_fetch_only(caplog):
    class Cancelled(AsyncSupplier):
        async def supply(self, request):
            if request.video_id == "aaaaaaaaaaa":
                login = asyncio.ensure_future(asyncio.sleep(60))
                login.cancel()
                await login
            return await super().supply(request)

    with Transcripts(suppliers=[Cancelled()]) as transcripts:
        for call in (transcripts.get, lambda link: asyncio.run(transcripts.aget(link))):
            caplog.clear()
            with pytest.raises(vt.FetchFailed) as raised:
                call("aaaaaaaaaaa")
            cause = raised.value.__cause__
            assert isinstance(cause, RuntimeError) and isinstance(cause.__cause__, asyncio.CancelledError)
            assert [record.exc_info[1] for record in caplog.records if record.exc_info] == [cause]
        links = ["aaaaaaaaaaa", LINK, "bbbbbbbbbbb"]
        errors = [result.error for result in transcripts.get_many(links, in_order=True)]
    assert [type(error) for error in errors] == [vt.FetchFailed, type(None), type(None)]


async def test_cancellation_cancels_async_supplier():
    started, cancelled = threading.Event(), threading.Event()

    class Slow:
        name = "slow"

        async def supply(self, request):
            started.set()
            try:
                await asyncio.sleep(60)
            except asyncio.CancelledError:
                cancelled.set()
                raise

    async with Transcripts(suppliers=[Slow()]) as transcripts:
        task = asyncio.create_task(transcripts.aget(LINK))
        await asyncio.to_thread(started.wait, 10)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert await asyncio.to_thread(cancelled.wait, 5)


async def test_cancellation_while_call_starts_cancels_async_supplier(monkeypatch):
    starting, left, completed = threading.Event(), threading.Event(), threading.Event()
    start = _callbacks.start

    def start_late(method, arguments, on_done):
        starting.set()
        left.wait(10)
        return start(method, arguments, on_done)

    class Slow:
        name = "slow"

        async def supply(self, request):
            await asyncio.sleep(0.3)
            completed.set()

    monkeypatch.setattr(_callbacks, "start", start_late)
    async with Transcripts(suppliers=[Slow()]) as transcripts:
        task = asyncio.create_task(transcripts.aget(LINK))
        assert await asyncio.to_thread(starting.wait, 10)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        # The fetch is dropped on a thread of the package.
        await asyncio.sleep(0.3)
        left.set()
        assert not await asyncio.to_thread(completed.wait, 1)


async def test_cancellation_keeps_fetch_for_other_waiter():
    go = threading.Event()

    class Slow:
        name = "slow"
        calls = 0

        def supply(self, request):
            Slow.calls += 1
            go.wait(10)
            return Transcript(request.url, [Segment("Hello.", 0, 1)])

    async with Transcripts(suppliers=[Slow()]) as transcripts:
        leaving, staying = (asyncio.create_task(transcripts.aget(LINK)) for _ in range(2))
        while not Slow.calls:
            await asyncio.sleep(0.01)
        leaving.cancel()
        await asyncio.sleep(0.1)
        go.set()
        assert (await staying).text == "Hello.\n"
    assert Slow.calls == 1


def test_timeout_sets_cancelled_of_plain_supplier():
    cancelled = threading.Event()

    class Slow:
        name = "slow"

        def supply(self, request):
            while not request.cancelled:
                time.sleep(0.01)
            cancelled.set()
            raise SupplyError("timeout")

    with Transcripts(suppliers=[Slow()], timeout=0.2) as transcripts:
        with pytest.raises(vt.FetchFailed):
            transcripts.get(LINK)
        assert cancelled.wait(5)


@pytest.mark.parametrize(
    "supplier",
    [
        type("A", (), {"supply": lambda self, request: None})(),
        type("B", (), {"name": "b"})(),
        type("C", (), {"name": 7, "supply": lambda self, request: None})(),
        type("D", (), {"name": "d", "supply": 7})(),
        type("E", (), {"name": "e", "supply": lambda self, request: None, "platforms": ["nowhere"]})(),
        type("F", (), {"name": "f", "supply": lambda self, request: None, "kind": "magic"})(),
    ],
)
def test_supplier_invalid_attribute_raises_error(supplier):
    with pytest.raises((TypeError, ValueError)):
        Transcripts(suppliers=[supplier])


def test_supplier_wrong_signature_raises_fetch_failed():
    class Wrong:
        name = "wrong"

        def supply(self):
            return None

    with Transcripts(suppliers=[Wrong()]) as transcripts, pytest.raises(vt.FetchFailed, match="TypeError"):
        transcripts.get(LINK)


class OwningComponent:
    """A supplier and a hook that refers back to its transcripts."""

    name = "owning"

    def __init__(self):
        self.events = []
        self.transcripts = Transcripts(suppliers=[self], on_event=self.on_event)

    def on_event(self, event):
        self.events.append(event.name)

    def supply(self, request):
        gc.collect()
        return Transcript(request.url, [Segment("Hello.", 0, 1)], language="en")


def is_collected(reference):
    """Whether the object is collected, once the threads of its last call have left it."""
    for _ in range(500):
        gc.collect()
        if reference() is None:
            return True
        time.sleep(0.01)
    return False


def test_components_that_refer_to_their_transcripts_are_collected():
    unused = OwningComponent()
    used = OwningComponent()
    used.transcripts.get(LINK)
    assert "supplier_call" in used.events
    closed = OwningComponent()
    closed.transcripts.close()
    references = [weakref.ref(component) for component in (unused, used, closed)]
    del unused, used, closed
    assert all(is_collected(reference) for reference in references)


def test_archive_that_refers_to_its_transcripts_is_collected():
    class Store:
        def __init__(self):
            self.transcripts = Transcripts(self, suppliers=[])

        def get(self, key):
            return None

        def write(self, changes):
            pass

        def list(self, prefix, after, limit):
            return []

    store = Store()
    with pytest.raises(vt.VerbatimError):
        store.transcripts.get(LINK)
    reference = weakref.ref(store)
    del store
    assert is_collected(reference)


def test_collection_keeps_components_that_only_transcripts_refer_to():
    transcripts = OwningComponent().transcripts
    gc.collect()
    assert transcripts.get(LINK).text == "Hello.\n"
    gc.collect()
    assert transcripts.get("aaaaaaaaaaa").text == "Hello.\n"
    # Here only the running call does.
    assert OwningComponent().transcripts.get(LINK).text == "Hello.\n"
    assert asyncio.run(OwningComponent().transcripts.aget(LINK)).text == "Hello.\n"
