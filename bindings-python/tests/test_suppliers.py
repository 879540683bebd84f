"""Suppliers written in Python."""

import asyncio
import threading
import time

import pytest
from conftest import LINK

import verbatim
from verbatim import Segment, SupplyFailed, Transcript, Transcripts


class Plain:
    name = "plain"

    def __init__(self, answer=None):
        self.answer = answer
        self.asked = []

    def supply(self, ask):
        self.asked.append((ask.platform, ask.video_id, ask.lang, ask.cancelled))
        ask.stage("writing", 1, 2)
        if isinstance(self.answer, BaseException):
            raise self.answer
        if self.answer is not None:
            return self.answer
        return Transcript(ask.url, [Segment("Hello.", 0, 1)], language=ask.lang or "en")


class Awaited(Plain):
    name = "awaited"

    async def supply(self, ask):
        await asyncio.sleep(0.01)
        return super().supply(ask)


@pytest.mark.parametrize("kind", [Plain, Awaited])
def test_a_supplier_is_asked_once_and_its_words_are_kept(kind):
    supplier = kind()
    with Transcripts(suppliers=[supplier]) as transcripts:
        first = transcripts.get(LINK)
        assert (first.source, first.text, first.from_cache) == (kind.name, "Hello.\n", False)
        assert transcripts.get(LINK).from_cache
        assert asyncio.run(transcripts.aget(LINK, "de")).language == "de"
    video = ("video_site", "dQw4w9WgXcQ")
    assert supplier.asked == [(*video, None, False), (*video, "de", False)]


@pytest.mark.parametrize("kind", [Plain, Awaited])
def test_why_it_has_none(kind):
    for answer, error, reason in (
        (SupplyFailed("private", "It is private."), verbatim.NoCaptions, "no_captions"),
        (SupplyFailed("throttled", "Later.", retry_after=5), verbatim.RateLimited, "rate_limited"),
        (SupplyFailed("no such reason"), verbatim.FetchFailed, "fetch_error"),
        (ValueError("boom"), verbatim.FetchFailed, "fetch_error"),
        (7, verbatim.FetchFailed, "fetch_error"),
        ([7], verbatim.FetchFailed, "fetch_error"),
        ([], verbatim.FetchFailed, "fetch_error"),
        ("words", verbatim.FetchFailed, "fetch_error"),
    ):
        with Transcripts(suppliers=[kind(answer)]) as transcripts, pytest.raises(error) as raised:
            transcripts.get(LINK)
        assert raised.value.reason == reason
        if isinstance(answer, Exception):
            assert raised.value.__cause__ is answer


def test_none_is_no_captions():
    class Nothing:
        name = "nothing"

        def supply(self, ask):
            return None

    with Transcripts(suppliers=[Nothing()]) as transcripts, pytest.raises(verbatim.NoCaptions):
        transcripts.get(LINK)


def test_another_videos_words_are_not_believed():
    other = Plain(Transcript("aaaaaaaaaaa", [Segment("x", 0)]))
    with Transcripts(suppliers=[other]) as transcripts, pytest.raises(verbatim.RateLimited, match="another video"):
        transcripts.get(LINK)


def test_the_next_one_is_asked(replay):
    class Away(Plain):
        name = "away"

    away = Away(SupplyFailed("unreachable"))
    with Transcripts(
        suppliers=[away, "youtube-captions"], proxies=replay.proxy, ca_file=replay.ca_file
    ) as transcripts:
        assert transcripts.get("vb-tracks-0").source == "youtube-captions"
    assert len(away.asked) == 1


@pytest.mark.parametrize("kind", [Plain, Awaited])
@pytest.mark.parametrize("end", [SystemExit(3), KeyboardInterrupt()], ids=["exit", "interrupt"])
def test_an_end_of_the_program_is_not_swallowed(kind, end):
    supplier = kind(end)
    with Transcripts(suppliers=[supplier]) as transcripts:
        with pytest.raises(type(end)) as raised:
            transcripts.get(LINK)
        assert raised.value is end
        # Those who run suppliers are as they were.
        supplier.answer = None
        assert transcripts.get("aaaaaaaaaaa").text == "Hello.\n"


def test_a_supplier_may_ask_others():
    inner = Transcripts(suppliers=[Plain()])

    class Outer:
        name = "outer"

        def supply(self, ask):
            return Transcript(ask.url, list(inner.get(ask.url).segments), language="en")

    class OuterAwaited(Outer):
        async def supply(self, ask):
            return Transcript(ask.url, list((await inner.aget(ask.url)).segments), language="en")

    for outer in (Outer(), OuterAwaited()):
        with Transcripts(suppliers=[outer]) as transcripts:
            assert transcripts.get(LINK).text == "Hello.\n"
            assert asyncio.run(transcripts.aget(LINK)).text == "Hello.\n"
    inner.close()


def test_a_supplier_that_asks_for_its_own_answer_is_told():
    class Plainly:
        name = "itself"

        def supply(self, ask):
            if ask.lang == "de":
                english = transcripts.get(ask.url, "en")
                return Transcript(ask.url, [Segment(english[0].text.upper(), 0)], language="de")
            if ask.lang == "en":
                return Transcript(ask.url, [Segment("hello", 0)], language="en")
            return transcripts.refresh(ask.url).transcript if ask.video_id == "aaaaaaaaaaa" else transcripts.get(ask.url)

    class Awaiting(Plainly):
        async def supply(self, ask):
            if ask.lang is not None:
                return await asyncio.to_thread(super().supply, ask)
            return await transcripts.aget(f"https://www.youtube.com/watch?v={ask.video_id}")

    for supplier in (Plainly(), Awaiting()):
        with Transcripts(suppliers=[supplier]) as transcripts:
            for link in (LINK, "aaaaaaaaaaa"):
                with pytest.raises(verbatim.FetchFailed, match="wait for itself") as raised:
                    transcripts.get(link)
                assert isinstance(raised.value.__cause__, RuntimeError)
            # In another language it may.
            assert transcripts.get(LINK, "de")[0].text == "HELLO"


async def test_cancelling_ends_an_awaited_supplier():
    began, ended = threading.Event(), threading.Event()

    class Slow:
        name = "slow"

        async def supply(self, ask):
            began.set()
            try:
                await asyncio.sleep(60)
            except asyncio.CancelledError:
                ended.set()
                raise

    async with Transcripts(suppliers=[Slow()]) as transcripts:
        task = asyncio.create_task(transcripts.aget(LINK))
        await asyncio.to_thread(began.wait, 10)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert await asyncio.to_thread(ended.wait, 5)


async def test_who_stays_gets_the_answer_when_another_leaves():
    go = threading.Event()

    class Slow:
        name = "slow"
        times = 0

        def supply(self, ask):
            Slow.times += 1
            go.wait(10)
            return Transcript(ask.url, [Segment("Hello.", 0, 1)])

    async with Transcripts(suppliers=[Slow()]) as transcripts:
        leaves, stays = (asyncio.create_task(transcripts.aget(LINK)) for _ in range(2))
        while not Slow.times:
            await asyncio.sleep(0.01)
        leaves.cancel()
        await asyncio.sleep(0.1)
        go.set()
        assert (await stays).text == "Hello.\n"
    assert Slow.times == 1


def test_a_plain_supplier_hears_that_nobody_waits():
    heard = threading.Event()

    class Slow:
        name = "slow"

        def supply(self, ask):
            while not ask.cancelled:
                time.sleep(0.01)
            heard.set()
            raise SupplyFailed("timeout")

    with Transcripts(suppliers=[Slow()], timeout=0.2) as transcripts:
        with pytest.raises(verbatim.FetchFailed):
            transcripts.get(LINK)
        assert heard.wait(5)


@pytest.mark.parametrize(
    "lacking",
    [
        type("A", (), {"supply": lambda self, ask: None})(),
        type("B", (), {"name": "b"})(),
        type("C", (), {"name": 7, "supply": lambda self, ask: None})(),
        type("D", (), {"name": "d", "supply": 7})(),
        type("E", (), {"name": "e", "supply": lambda self, ask: None, "platforms": ["nowhere"]})(),
        type("F", (), {"name": "f", "supply": lambda self, ask: None, "kind": "magic"})(),
    ],
)
def test_what_lacks_something_is_refused_at_once(lacking):
    with pytest.raises((TypeError, ValueError)):
        Transcripts(suppliers=[lacking])


def test_a_method_of_the_wrong_shape_is_told():
    class Wrong:
        name = "wrong"

        def supply(self):
            return None

    with Transcripts(suppliers=[Wrong()]) as transcripts, pytest.raises(verbatim.FetchFailed, match="TypeError"):
        transcripts.get(LINK)
