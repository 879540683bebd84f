"""Stores and models written in Python: the conformance suite, and the service over them."""

import asyncio
import threading

import pytest
from conftest import LINK, SRT
from own_archive import OwnArchive

import verbatim
from verbatim import Service, Transcripts, testing
from verbatim.testing import MemoryDirectory, MemoryLedger


class Awaited:
    """Another store, every method of which is async."""

    def __init__(self, store):
        self._store = store

    def __getattr__(self, name):
        method = getattr(self._store, name)

        async def awaited(*arguments):
            await asyncio.sleep(0)
            return await asyncio.to_thread(method, *arguments)

        return awaited


@pytest.mark.parametrize("case", testing.cases("archive"))
def test_an_archive_in_python(case):
    testing.run("archive", case, OwnArchive())


@pytest.mark.parametrize("case", testing.cases("ledger"))
def test_a_ledger_that_is_awaited(case):
    testing.run("ledger", case, Awaited(MemoryLedger()))


@pytest.mark.parametrize("case", testing.cases("directory"))
def test_a_directory_of_plain_methods(case):
    testing.run("directory", case, MemoryDirectory())


def test_a_broken_store_is_found_out():
    class Forgetful(MemoryLedger):
        def settle(self, ask):
            return "unknown"

    with pytest.raises(AssertionError, match="rules of the ledger are broken") as raised:
        testing.check("ledger", Forgetful, only=["a_hold_is_held_and_seen", "all_zero_releases"])
    assert "1 rules" in str(raised.value) and "all_zero_releases" in str(raised.value)
    with pytest.raises(ValueError, match="no suite"):
        testing.cases("nothing")
    with pytest.raises(ValueError, match="no case"):
        testing.run("ledger", "nothing", MemoryLedger())


@pytest.mark.parametrize("archive", [OwnArchive, lambda: Awaited(OwnArchive())], ids=["plain", "awaited"])
def test_transcripts_over_it(archive, replay):
    with Transcripts(archive(), proxies=replay.proxy, ca_file=replay.ca_file) as transcripts:
        transcripts.import_(LINK, SRT, lang="en")
        assert transcripts.get(LINK).from_cache and len(transcripts.search("café")) == 1
        assert not transcripts.get("vb-tracks-0").from_cache
        assert asyncio.run(transcripts.aget("vb-tracks-0")).from_cache
        assert transcripts.stats()["videos"] == 2


@pytest.mark.parametrize("error", [ValueError("boom"), verbatim.StorageCorrupt("torn")])
def test_what_it_raises_comes_back(error):
    class Broken(OwnArchive):
        def find(self, video, wish, now):
            raise error

    kind = verbatim.StorageCorrupt if isinstance(error, verbatim.StorageCorrupt) else verbatim.VerbatimError
    with Transcripts(Broken(), suppliers=[]) as transcripts, pytest.raises(kind) as raised:
        transcripts.get(LINK)
    assert raised.value.__cause__ is error and "archive.find raised" in str(raised.value)


@pytest.mark.parametrize("answer", [None, 7, b"x", object(), {"transcript": {}}, "no such", {"absent": None}])
def test_wrong_answers_are_told(answer):
    class Wrong(OwnArchive):
        def find(self, video, wish, now):
            return answer

    with Transcripts(Wrong(), suppliers=[]) as transcripts, pytest.raises(verbatim.VerbatimError, match="TypeError"):
        transcripts.get(LINK)


class Model:
    """Cites the passage that it is given; says what was asked."""

    context_tokens = 8_000

    def __init__(self, answer=None):
        self.answer = answer
        self.asked = []
        self.lock = threading.Lock()

    async def complete(self, messages, tokens_max):
        with self.lock:
            self.asked.append((messages, tokens_max))
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


def account(service, mailer):
    caller = service.caller()
    caller.register("ann@example.org")
    caller.verify(mailer.token("ann@example.org"))
    return caller


def test_a_service_over_all_of_them():
    from test_service import Tray

    model, tray = Model("It says “The café is closed” [2]."), Tray()
    parts = {"archive": OwnArchive(), "ledger": MemoryLedger(), "directory": Awaited(MemoryDirectory())}
    with Service(**parts, suppliers=[], chat=model, mailer=tray) as service:
        service.import_(LINK, SRT, lang="en")
        caller = account(service, tray)
        before = caller.me().credits_remaining
        answer = caller.chat("dQw4w9WgXcQ", "Is the café open?")
        assert "The café is closed" in answer.response and answer.citations[0].url.endswith("t=61s")
        assert answer.credits_remaining == before - 1 == caller.me().credits_remaining
    messages, tokens_max = model.asked[0]
    assert messages[0]["role"] == "system" and "café" in messages[-1]["content"] and tokens_max > 0


@pytest.mark.parametrize("answer", [ValueError("boom"), 7, None])
def test_a_model_that_fails_costs_nothing(answer):
    from test_service import Tray

    tray = Tray()
    with Service(suppliers=[], chat=Model(answer), mailer=tray) as service:
        service.import_(LINK, SRT, lang="en")
        caller = account(service, tray)
        before = caller.me().credits_remaining
        with pytest.raises(verbatim.ServiceRefused) as raised:
            caller.chat("dQw4w9WgXcQ", "Is the café open?")
        assert raised.value.status == 500 and caller.me().credits_remaining == before


@pytest.mark.parametrize("keywords", [{"archive": object()}, {"directory": object()}, {"chat": object()}, {"ledger": 7}])
def test_objects_that_are_none(keywords):
    with pytest.raises((TypeError, ValueError)):
        Service(suppliers=[], **keywords)
