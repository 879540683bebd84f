"""Jobs of a built server, and their webhooks."""

import asyncio
import datetime
import hashlib
import hmac
import json
import pickle
import threading
import time

import pytest
from fake_server import FakeServer, Handler, RestartingServer
from test_client import ServerFixture

import verbatim_transcripts as vt
from verbatim_transcripts import Client

URLS = ["https://youtu.be/vb-tracks-0", "vb-private0", "no link", "https://www.youtube.com/watch?v=vb-tracks-0"]


class ReceiverFixture(FakeServer):
    """An HTTP server that accepts webhooks."""

    def __init__(self):
        received = self.received = []
        self.condition = condition = threading.Condition()

        class ReceiverHandler(Handler):
            def do_POST(self):
                body = self.rfile.read(int(self.headers["content-length"]))
                with condition:
                    received.append((self.headers["verbatim-signature"], body))
                    condition.notify_all()
                self.send_response(204)
                self.end_headers()

        super().__init__(ReceiverHandler)
        self.address += "/hook"

    def first(self):
        with self.condition:
            assert self.condition.wait_for(lambda: self.received, 30)
            return self.received[0]


@pytest.fixture(scope="module")
def server(tmp_path_factory, replay):
    running = ServerFixture(tmp_path_factory.mktemp("server"), replay, VERBATIM_WEBHOOKS__ALLOW_PRIVATE="true")
    yield running
    running.stop()


def account(server, name):
    client = Client(server.address)
    client.register(f"{name}@example.org")
    client.verify(server.token(f"{name}@example.org"))
    return client


def test_job_delivers_transcripts_and_failures(server):
    client = account(server, "ann")
    polled = []
    job = client.jobs.start(URLS, lang="en")
    assert job.id.startswith("job_") and job.counts.total == 3 and not job.reason
    ended = client.jobs.wait(job, timeout=60, progress=polled.append)
    assert (ended.status, ended.is_ended, ended == polled[-1]) == ("completed", True, True)
    assert ended.counts == vt.JobCounts(total=3, queued=0, running=0, done=1, failed=2, skipped=0)
    assert ended.credits.spent == 1 and ended.credits.remaining == client.me().credits_remaining
    for page_size in (1, 2, 100):
        first, private, invalid = client.jobs.results(job.id, page_size=page_size)
        assert first.get().title == "How a tide mill works" and first.get().segments[0].start == 0.5
        assert (first.index, first.url, first.video_id, first.status) == (0, URLS[0], "vb-tracks-0", "done")
        assert [item.platform for item in (first, private, invalid)] == ["YouTube", "YouTube", None]
        assert (private.status, private.reason, invalid.reason, invalid.video_id) == (
            "failed",
            private.reason,
            "invalid_url",
            None,
        )
        with pytest.raises(vt.TranscriptUnavailable) as raised:
            private.get()
        assert raised.value.args == (private.message,) and raised.value.video_id == "vb-private0"
        assert raised.value.reason == private.reason
    assert client.jobs.get(job.id) == ended and client.jobs.cancel(job).status == "completed"
    assert client.jobs.deliveries(job) == []
    assert pickle.loads(pickle.dumps(ended)) == ended


def test_job_reads_playlist_and_channel(server):
    client = account(server, "gil")
    job = client.jobs.start(playlist="PLvb-tides-0001", limit=3)
    assert job.list_url == "https://www.youtube.com/playlist?list=PLvb-tides-0001" and not job.is_ended
    ended = client.jobs.wait(job, timeout=60)
    assert (ended.status, ended.counts.total, ended.counts.done, ended.counts.failed) == ("completed", 3, 2, 1)
    items = list(client.jobs.results(job))
    assert [item.video_id for item in items] == ["vb-tracks-0", "vb-asronly0", "vb-private0"]
    with pytest.raises(vt.TranscriptUnavailable) as raised:
        items[2].get()
    # An item does not say which reason the video has.
    assert (type(raised.value), raised.value.reason) == (vt.TranscriptUnavailable, "no_captions")
    month = datetime.datetime.now(datetime.timezone.utc) - datetime.timedelta(days=30)
    for since in (month, month.date()):
        job = client.jobs.wait(client.jobs.start(channel="@tidemills", since=since), timeout=60)
        assert [item.video_id for item in client.jobs.results(job)] == ["vb-tracks-0"]
    for playlist, reason in (("PLvb-private-01", "private"), ("PLvb-empty-0001", "empty")):
        failed = client.jobs.wait(client.jobs.start(playlist=playlist), timeout=60)
        assert (failed.status, failed.reason, failed.is_ended) == ("failed", reason, True) and failed.message
    for wrong in (
        {"playlist": "@tidemills"},
        {"channel": "PLvb-tides-0001"},
        {"search": "tide mills"},
        {"urls": ["vb-tracks-0"], "playlist": "PLvb-tides-0001"},
        {"urls": ["vb-tracks-0"], "limit": 1},
        {},
    ):
        with pytest.raises(vt.ServiceRefused) as raised:
            client.jobs.start(**wrong)
        assert raised.value.status == 400


def test_job_item_without_language_names_others(server):
    client = account(server, "hal")
    job = client.jobs.wait(client.jobs.start(["vb-tracks-0"], lang="ja"), timeout=60)
    (item,) = client.jobs.results(job)
    assert (item.status, item.reason) == ("failed", "no_captions")
    assert {language.tag for language in item.languages} >= {"en", "de"}
    with pytest.raises(vt.LanguageNotFound) as raised:
        item.get()
    assert list(raised.value.available) == list(dict.fromkeys(language.tag for language in item.languages))


def test_job_with_same_idempotency_key_starts_once(server):
    client = account(server, "ben")
    first = client.jobs.start(["vb-tracks-0"], idempotency_key="course")
    assert client.jobs.start(["vb-tracks-0"], idempotency_key="course").id == first.id
    others = [client.jobs.start(["vb-tracks-0"]).id for _ in range(2)]
    listed = [job.id for job in client.jobs.list(page_size=1)]
    assert listed == [*reversed(others), first.id] and len(set(listed)) == 3


async def test_jobs_have_awaitable_twins(server):
    client = account(server, "cem")
    video = vt.ListedVideo("vb-french-0", "https://youtu.be/vb-french-0", None, None, None, None, None, False, False)
    job = await client.jobs.astart([video], lang="fr")
    ended, _ = await asyncio.gather(client.jobs.await_(job, timeout=60), client.jobs.aget(job))
    assert ended.status == "completed"
    assert [item.get().language async for item in client.jobs.results(job)] == ["fr"]
    assert [listed.id async for listed in client.jobs.list()] == [job.id]
    assert (await client.jobs.acancel(job)).status == "completed" and await client.jobs.adeliveries(job) == []
    secret = await client.jobs.awebhook_secret()
    assert secret == client.jobs.webhook_secret() and secret.rotated_at is None
    rotated = await client.jobs.arotate_webhook_secret()
    assert rotated.secret != secret.secret and rotated.previous_valid_until


def test_job_paused_without_credits_can_be_cancelled(tmp_path, replay):
    running = ServerFixture(tmp_path, replay, VERBATIM_PLANS__FREE__CREDITS="0")
    try:
        client = account(running, "dan")
        job = client.jobs.start(["vb-tracks-0", "vb-french-0"])
        polled = []
        start = time.monotonic()
        with pytest.raises(vt.JobTimeout, match=job.id):
            client.jobs.wait(job, timeout=3, progress=polled.append)
        assert 3 <= time.monotonic() - start < 10
        assert (polled[-1].status, polled[-1].pause_reason) == ("paused", "payment_required")
        with pytest.raises(vt.JobTimeout):
            asyncio.run(client.jobs.await_(job, timeout=0))
        with pytest.raises(RuntimeError, match="enough"):
            client.jobs.wait(job, progress=lambda _: (_ for _ in ()).throw(RuntimeError("enough")))
        cancelled = client.jobs.cancel(job)
        assert cancelled.status == "cancelled" and cancelled.is_ended and cancelled.counts.skipped == 2
        for item in client.jobs.results(job):
            with pytest.raises(vt.TranscriptUnavailable, match="skipped"):
                item.get()
    finally:
        running.stop()


def test_webhook_of_job_is_verified(server):
    client, receiver = account(server, "eve"), ReceiverFixture()
    try:
        job = client.jobs.start(["vb-tracks-0"], callback_url=receiver.address)
        header, body = receiver.first()
    finally:
        receiver.stop()
    secret = client.jobs.webhook_secret().secret
    event = vt.verify_webhook(body, header, secret)
    assert (event.type, event.job.id, event.job.status) == ("job.completed", job.id, "completed")
    assert vt.verify_webhook(body.decode(), header, ["vbw_old", secret]) == event
    assert vt.verify_webhook(body, header, client.jobs.webhook_secret()) == event
    for wrong in [(body + b" ", header, secret), (body, header, "vbw_x"), (body, None, secret), (body, "t=1", secret)]:
        with pytest.raises(vt.InvalidSignature):
            vt.verify_webhook(*wrong)
    time.sleep(1.1)
    with pytest.raises(vt.InvalidSignature, match="old"):
        vt.verify_webhook(body, header, secret, tolerance=0)
    with pytest.raises(ValueError, match="tolerance"):
        vt.verify_webhook(body, header, secret, tolerance=-1)
    (delivery,) = client.jobs.deliveries(job)
    assert (delivery.id, delivery.type, delivery.state) == (event.id, event.type, "delivered")
    assert [(attempt.attempt, attempt.status, attempt.error) for attempt in delivery.attempts] == [(1, 204, None)]


def signed(body: bytes, secret: str) -> str:
    """The header of a body that was signed with this secret."""
    now = str(int(time.time()))
    return f"t={now},v1={hmac.new(secret.encode(), now.encode() + b'.' + body, hashlib.sha256).hexdigest()}"


def test_signed_body_without_event_is_invalid():
    for body in (b"{}", b"[]", b"\xff", json.dumps({"id": "e", "type": "t", "created_at": "", "job": {}}).encode()):
        with pytest.raises(vt.InvalidInput, match="no event"):
            vt.verify_webhook(body, signed(body, "vbw_s"), "vbw_s")


@pytest.fixture
def fast_polls(monkeypatch):
    from verbatim_transcripts import _polls

    monkeypatch.setattr(_polls, "_FIRST_POLL", 0.01)
    return lambda seconds: monkeypatch.setattr(_polls, "_LONGEST_OUTAGE", seconds)


def test_job_is_awaited_while_server_restarts(fast_polls):
    # None: the connection closes without a response.
    for wait in (
        lambda jobs: jobs.wait("job_1", timeout=30),
        lambda jobs: asyncio.run(jobs.await_("job_1", timeout=30)),
    ):
        running = RestartingServer(["running", None, 503, None, 500, 521])
        try:
            ended = wait(Client(running.address, "vba_x", retries=0).jobs)
        finally:
            running.stop()
        assert ended.is_ended and running.statuses == []


def test_job_is_polled_with_new_key(fast_polls):
    running = RestartingServer(["running"])
    client = Client(running.address, "vba_old", retries=0)
    try:
        assert client.jobs.wait("job_1", timeout=30, progress=lambda _: client.use_key("vba_new")).is_ended
    finally:
        running.stop()
    assert running.keys == ["vba_old", "vba_new"]


def test_job_of_lost_server_fails_eventually(fast_polls):
    running = RestartingServer([])
    running.stop()
    jobs = Client(running.address, "vba_x", retries=0).jobs
    start = time.monotonic()
    with pytest.raises(vt.JobTimeout):
        jobs.wait("job_1", timeout=1)
    assert time.monotonic() - start >= 1
    fast_polls(0.5)
    with pytest.raises(vt.ServiceUnreachable):
        jobs.wait("job_1")
    for status in (403, 501, 508):
        refusing = RestartingServer(["running", status])
        try:
            with pytest.raises(vt.ServiceRefused) as raised:
                Client(refusing.address, "vba_x", retries=0).jobs.wait("job_1")
        finally:
            refusing.stop()
        assert raised.value.status == status


def test_job_wait_bounds_named_wait_of_outage(fast_polls):
    fast_polls(0.5)
    for reactions, is_ended in ((["running", 503], True), (["running"] + [503] * 1000, False)):
        running = RestartingServer(reactions, retry_after=86_400)
        jobs = Client(running.address, "vba_x", retries=0).jobs
        try:
            if is_ended:
                assert jobs.wait("job_1", timeout=30).is_ended
            else:
                with pytest.raises(vt.ServiceRefused) as raised:
                    jobs.wait("job_1", timeout=30)
                assert (raised.value.status, raised.value.retry_after) == (503, 86_400)
        finally:
            running.stop()


def test_webhook_signed_with_no_secret_is_refused():
    for empty in ("", " ", [], ["vbw_s", ""], vt.WebhookSecret("", None, None)):
        with pytest.raises(ValueError, match="no secret"):
            vt.verify_webhook(b"{}", signed(b"{}", ""), empty)
    times = ("2026-11-27T10:00:00Z", "2026-11-28T10:00:00Z")
    for time_as_secret in times:
        with pytest.raises(vt.InvalidSignature):
            vt.verify_webhook(b"{}", signed(b"{}", time_as_secret), vt.WebhookSecret("vbw_s", *times))


def test_webhook_argument_of_wrong_type_is_named():
    cases = ((b"t=1", "vbw_s", "header"), ("t=1", b"vbw_s", "secret"), ("t=1", [b"vbw_s"], "secret"))
    for header, secret, name in cases:
        with pytest.raises(TypeError, match=f"{name} must be a str"):
            vt.verify_webhook(b"{}", header, secret)


def test_jobs_invalid_calls_raise_errors(server):
    client = account(server, "fay")
    unknown = "job_00000000000000000000000000000000"
    calls = (client.jobs.get, client.jobs.cancel, client.jobs.deliveries, client.jobs.wait)
    for call in (*calls, lambda job: list(client.jobs.results(job))):
        with pytest.raises(vt.ServiceNotFound):
            call(unknown)
    for malformed in ("", "..", "a/b", "job_?", "job_" + "0" * 100):
        with pytest.raises(vt.InvalidInput, match="id of a job"):
            client.jobs.get(malformed)
    with pytest.raises(vt.ServiceRefused) as raised:
        client.jobs.start([])
    assert raised.value.status == 400
    with pytest.raises(TypeError):
        client.jobs.start("vb-tracks-0")
    for arguments in ({"urls": [7]}, {"urls": [None]}, {"playlist": "PL0123456789", "since": "2026-01-01"}, {"limit": "7"}):
        with pytest.raises(TypeError, match=r"^(urls|since|limit) must be .*, not <class '"):
            client.jobs.start(**arguments)
    for limit in (-1, 0, 10**400):
        with pytest.raises(ValueError, match="limit must be a number from 1, not"):
            client.jobs.start(playlist="PL0123456789", limit=limit)
    with pytest.raises(ValueError, match="time zone"):
        client.jobs.start(playlist="PL0123456789", since=datetime.datetime(2026, 1, 1))
    with pytest.raises(ValueError, match="page_size"):
        client.jobs.list(page_size=0)
    for anonymous in (Client(server.address), Client(server.address, "vba_unknown")):
        with pytest.raises(vt.Unauthorized):
            anonymous.jobs.start(["vb-tracks-0"])
    with vt.Service(suppliers=[]) as service, pytest.raises(vt.UnsupportedError, match="server"):
        service.client("vba_x").jobs.start(["vb-tracks-0"])
