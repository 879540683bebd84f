"""The service in the process: keys, allowances, accounts, credits and chat."""

import asyncio
import re
import sqlite3
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from conftest import LINK, SRT

import verbatim_transcripts as vt
from verbatim_transcripts import Segment, Service, Transcript


class FakeMailer:
    """Records the mails."""

    def __init__(self):
        self.mails = []
        self.condition = threading.Condition()

    async def send(self, to, subject, text, html):
        with self.condition:
            self.mails.append((to, text))
            self.condition.notify_all()

    def token(self, mailbox):
        def texts():
            return [text for to, text in self.mails if to == mailbox]

        with self.condition:
            assert self.condition.wait_for(texts, 20)
            return re.search(r"token=([0-9a-f]{64})", texts()[-1]).group(1)


class GateSupplier:
    """Returns a transcript for every video except one."""

    name = "gate"

    def supply(self, request):
        if request.video_id == "nothing-000":
            return None
        words = [("The", 5, 0.2), ("gate", 5.2, 0.3), ("opens", 5.5, 0.3), ("at", 5.8, 0.2), ("nine.", 6, 0.5)]
        segments = [Segment("The gate opens at nine.", 5, 2, words)]
        metadata = vt.VideoMetadata(description="Opening hours.")
        return Transcript(request.url, segments, language="en", title="Gate", metadata=metadata)


@pytest.fixture
def mailer():
    return FakeMailer()


@pytest.fixture
def service(tmp_path, mailer):
    files = (tmp_path / "archive.db", tmp_path / "verbatim.db")
    with Service(*files, [GateSupplier()], mailer=mailer, free_per_month=2, base_url="https://v.example/") as service:
        yield service


def test_key_allowance_is_charged_and_enforced(service):
    anonymous = service.client().lookup(LINK)
    assert anonymous.reason == "needs_verification" and anonymous.watch_url.startswith("https://v.example/watch/")
    made = service.create_key("page")
    client = service.client(made.key)
    assert client.get(LINK).text == "The gate opens at nine.\n"
    assert asyncio.run(client.aget("https://youtu.be/aaaaaaaaaaa")).title == "Gate"
    assert client.get(LINK).from_cache and client.key_status().remaining == 0
    with pytest.raises(vt.TranscriptUnavailable) as raised:
        client.get("https://youtu.be/bbbbbbbbbbb")
    assert raised.value.reason == "key_allowance"
    assert raised.value.watch_url == "https://v.example/watch/video_site/bbbbbbbbbbb"
    assert client.get_text(LINK, "srt") == client.get(LINK).to_srt() and "[0:05]" in client.get_text(LINK, "md")
    with pytest.raises(vt.TranscriptUnavailable) as raised:
        client.get_text("https://youtu.be/bbbbbbbbbbb")
    assert raised.value.reason == "key_allowance"
    for call in (client.subscribe, client.buy_credits):
        with pytest.raises(vt.UnsupportedError):
            call("starter")
    # Fetches of the service itself charge no key.
    assert not service.get("https://youtu.be/bbbbbbbbbbb").from_cache
    assert service.client().get("https://youtu.be/bbbbbbbbbbb").from_cache


def test_close_stores_outcome_of_mail_being_sent(tmp_path):
    class SlowMailer(FakeMailer):
        started = threading.Event()

        async def send(self, to, subject, text, html):
            self.started.set()
            await asyncio.sleep(0.5)
            await super().send(to, subject, text, html)

    file, mailer = tmp_path / "verbatim.db", SlowMailer()
    with Service(tmp_path / "archive.db", file, [GateSupplier()], mailer=mailer) as service:
        service.client().register("ann@example.org")
        assert mailer.started.wait(20)
    assert len(mailer.mails) == 1
    with sqlite3.connect(file) as database:
        assert database.execute("SELECT count(*), count(due_at) FROM outbox").fetchone() == (1, 0)


def test_account_credits_are_charged_and_granted(service, mailer):
    client = service.client()
    client.register("ann@example.org")
    key = client.verify(mailer.token("ann@example.org"))
    before = client.me().credits_remaining
    first = client.get(LINK, "en", idempotency_key="order-1")
    replayed = client.get(LINK, "en", idempotency_key="order-1")
    assert replayed == first and first.title == "Gate"
    for transcript in (first, replayed):
        assert len(transcript.segments[0].words) == 5 and transcript.metadata.description == "Opening hours."
    answer = client.chat("dQw4w9WgXcQ", "When does the gate open?", [("user", "Hi"), ("assistant", "Hello")])
    assert "gate opens at nine" in answer.response and answer.citations[0].start == 5.0
    assert client.me().credits_remaining == before - 2 == answer.credits_remaining
    for call in (client.get, lambda link: client.chat("nothing-000", "When?")):
        with pytest.raises(vt.TranscriptUnavailable) as raised:
            call("https://youtu.be/nothing-000")
        assert raised.value.watch_url == "https://v.example/watch/video_site/nothing-000"
        assert raised.value.__cause__.watch_url == raised.value.watch_url
    assert asyncio.run(client.ame()).credits_remaining == before - 2
    assert service.grant("ann@example.org", 5, id="gift") == before + 3
    assert asyncio.run(service.agrant("ann@example.org", 5, id="gift")) == before + 3
    with pytest.raises(vt.NotFoundError):
        service.grant("unknown@example.org", 5)
    # An empty id, such as an empty column of a file, would grant again at every repeat.
    for grant in (service.grant, lambda *args, **keywords: asyncio.run(service.agrant(*args, **keywords))):
        with pytest.raises(vt.InvalidInput):
            grant("ann@example.org", 5, id="")
    with pytest.raises(vt.ServiceRefused):
        client.get(LINK, "en", idempotency_key="")
    assert client.me().credits_remaining == before + 3
    assert client.rotate_key() != key
    with pytest.raises(vt.Unauthorized):
        service.client(key).me()
    with pytest.raises(vt.ServiceRefused):
        client.get(LINK, "en", idempotency_key="order-1" * 100)


def test_running_idempotency_key_is_waited_for(mailer):
    started, released = threading.Event(), threading.Event()

    class SlowSupplier(GateSupplier):
        def supply(self, request):
            if request.video_id == "aaaaaaaaaaa":
                started.set()
                released.wait(20)
            else:
                time.sleep(1.5)
            return super().supply(request)

    with Service(suppliers=[SlowSupplier()], mailer=mailer) as service, ThreadPoolExecutor(3) as pool:
        client = service.client()
        client.register("ann@example.org")
        client.verify(mailer.token("ann@example.org"))
        before = client.me().credits_remaining

        def get(link):
            return client.get(link, "en", idempotency_key=link)

        assert len({transcript.text for transcript in pool.map(get, 3 * [LINK])}) == 1
        assert client.me().credits_remaining == before - 1
        first = pool.submit(get, "https://youtu.be/aaaaaaaaaaa")
        try:
            assert started.wait(20)
            with pytest.raises(vt.ServiceConflict) as raised:
                get("https://youtu.be/aaaaaaaaaaa")
        finally:
            released.set()
        assert raised.value.retry_after == 1
        assert first.result().title == "Gate" and client.me().credits_remaining == before - 2


def test_service_invalid_input_raises_error(service):
    with pytest.raises(vt.InvalidInput):
        service.client().lookup("no link")
    with pytest.raises(vt.Unauthorized):
        service.client("vba_x").get(LINK)
    with pytest.raises(vt.Unauthorized):
        service.client("vbk_x").key_status()
    with pytest.raises(vt.ServiceRefused) as raised:
        service.client().register("no address")
    assert raised.value.status == 400 and raised.value.watch_url is None
    with pytest.raises(vt.ServiceRefused):
        service.client().verify("no token")
    with pytest.raises(ValueError, match="role"):
        service.client("vba_x").chat("dQw4w9WgXcQ", "x", [("robot", "x")])
    for keywords in ({"ledger": "ledger.db"}, {"free_per_month": -1}, {"chat": "model"}):
        with pytest.raises((ValueError, TypeError)):
            Service(**keywords)


def test_service_files_keep_keys_and_transcripts(tmp_path, mailer):
    files = (tmp_path / "archive.db", tmp_path / "verbatim.db")
    with Service(*files, []) as service:
        service.import_(LINK, SRT, lang="en")
        key = service.create_key().key
    with Service(*files, []) as service:
        assert service.client(key).get(LINK).from_cache and service.client(key).key_status().used == 0
