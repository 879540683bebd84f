"""The service within the process: keys, allowances, accounts, credits and chat."""

import asyncio
import re
import threading

import pytest
from conftest import LINK, SRT

import verbatim
from verbatim import Segment, Service, Transcript


class Tray:
    """Keeps the mails that it is to send."""

    def __init__(self):
        self.mails = []
        self.came = threading.Condition()

    async def send(self, to, subject, text, html):
        with self.came:
            self.mails.append((to, text))
            self.came.notify_all()

    def token(self, mailbox):
        def found():
            return [text for to, text in self.mails if to == mailbox]

        with self.came:
            assert self.came.wait_for(found, 20)
            return re.search(r"token=([0-9a-f]{64})", found()[-1]).group(1)


class Writing:
    """Has a transcript for every video but one."""

    name = "writing"

    def supply(self, ask):
        if ask.video_id == "nothing-000":
            return None
        return Transcript(ask.url, [Segment("The gate opens at nine.", 5, 2)], language="en", title="Gate")


@pytest.fixture
def tray():
    return Tray()


@pytest.fixture
def service(tmp_path, tray):
    files = (tmp_path / "archive.db", tmp_path / "verbatim.db")
    with Service(*files, [Writing()], mailer=tray, free_per_month=2, base_url="https://v.example/") as service:
        yield service


def test_a_key_has_an_allowance(service):
    nobody = service.caller().look_up(LINK)
    assert nobody.reason == "needs_verification" and nobody.watch_url.startswith("https://v.example/watch/")
    made = service.create_key("page")
    caller = service.caller(made.key)
    assert caller.get(LINK).text == "The gate opens at nine.\n"
    assert asyncio.run(caller.aget("https://youtu.be/aaaaaaaaaaa")).title == "Gate"
    assert caller.get(LINK).from_cache and caller.key_status().remaining == 0
    with pytest.raises(verbatim.TranscriptUnavailable) as raised:
        caller.get("https://youtu.be/bbbbbbbbbbb")
    assert raised.value.reason == "key_allowance"
    assert raised.value.watch_url == "https://v.example/watch/video_site/bbbbbbbbbbb"
    assert caller.text(LINK, "srt") == caller.get(LINK).srt() and "[0:05]" in caller.text(LINK, "md")
    with pytest.raises(verbatim.TranscriptUnavailable) as raised:
        caller.text("https://youtu.be/bbbbbbbbbbb")
    assert raised.value.reason == "key_allowance"
    for call in (caller.subscribe, caller.buy_credits):
        with pytest.raises(verbatim.Unsupported):
            call("starter")
    # Nobody is charged for what the owner of the process fetches.
    assert not service.get("https://youtu.be/bbbbbbbbbbb").from_cache
    assert service.caller().get("https://youtu.be/bbbbbbbbbbb").from_cache


def test_an_account_pays_in_credits(service, tray):
    caller = service.caller()
    caller.register("ann@example.org")
    key = caller.verify(tray.token("ann@example.org"))
    before = caller.me().credits_remaining
    first = caller.get(LINK, "en", idempotency_key="order-1")
    assert first == caller.get(LINK, "en", idempotency_key="order-1") and first.title == "Gate"
    answer = caller.chat("dQw4w9WgXcQ", "When does the gate open?", [("user", "Hi"), ("assistant", "Hello")])
    assert "gate opens at nine" in answer.response and answer.citations[0].start == 5.0
    assert caller.me().credits_remaining == before - 2 == answer.credits_remaining
    with pytest.raises(verbatim.TranscriptUnavailable):
        caller.get("https://youtu.be/nothing-000")
    assert asyncio.run(caller.ame()).credits_remaining == before - 2
    assert service.grant("ann@example.org", 5, id="gift") == before + 3
    assert asyncio.run(service.agrant("ann@example.org", 5, id="gift")) == before + 3
    with pytest.raises(verbatim.NotFound):
        service.grant("nobody@example.org", 5)
    assert caller.rotate_key() != key
    with pytest.raises(verbatim.Unauthorized):
        service.caller(key).me()
    with pytest.raises(verbatim.ServiceRefused):
        caller.get(LINK, "en", idempotency_key="order-1" * 100)


def test_what_is_wrong_is_said(service):
    with pytest.raises(verbatim.InvalidInput):
        service.caller().look_up("no link")
    with pytest.raises(verbatim.Unauthorized):
        service.caller("vba_x").get(LINK)
    with pytest.raises(verbatim.Unauthorized):
        service.caller("vbk_x").key_status()
    with pytest.raises(verbatim.ServiceRefused) as raised:
        service.caller().register("no address")
    assert raised.value.status == 400
    with pytest.raises(verbatim.ServiceRefused):
        service.caller().verify("no token")
    with pytest.raises(ValueError, match="role"):
        service.caller("vba_x").chat("dQw4w9WgXcQ", "x", [("nobody", "x")])
    for keywords in ({"ledger": "ledger.db"}, {"free_per_month": -1}, {"chat": "model"}):
        with pytest.raises((ValueError, TypeError, OverflowError)):
            Service(**keywords)


def test_it_lasts(tmp_path, tray):
    files = (tmp_path / "archive.db", tmp_path / "verbatim.db")
    with Service(*files, []) as service:
        service.import_(LINK, SRT, lang="en")
        key = service.create_key().key
    with Service(*files, []) as service:
        assert service.caller(key).get(LINK).from_cache and service.caller(key).key_status().used == 0
