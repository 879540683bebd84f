"""The client of a built server: lookup API and v1 API."""

import asyncio
import email
import email.policy
import os
import pickle
import re
import socket
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from conftest import LINK, SRT, TARGET, Replay
from fake_server import RestartingServer

import verbatim_transcripts as vt
from verbatim_transcripts import Client, _client

PROGRAM = TARGET / "debug" / "verbatim"


class ServerFixture:
    """A running server with its own data folder."""

    def __init__(self, data, replay: Replay, **settings: str) -> None:
        self.data = data
        self.environment = {
            **os.environ,
            "VERBATIM_LOG__LEVEL": "warn",
            "VERBATIM_UPSTREAM__PROXY": replay.proxy,
            "VERBATIM_UPSTREAM__CA_FILE": replay.ca_file,
            "VERBATIM_LIMITS__REGISTER_PER_NETWORK_PER_HOUR": "1000",
            "VERBATIM_PLANS__FREE__REQUESTS_PER_MINUTE": "1000",
            **settings,
        }
        self.process = subprocess.Popen(
            [PROGRAM, "serve", "--data", data, "--listen", "127.0.0.1:0"],
            env=self.environment,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self.process.stdout is not None
        self.address = self.process.stdout.readline().split("listening on ")[1].strip()

    def command(self, *arguments: str, input_text: str = "") -> str:
        done = subprocess.run(
            [PROGRAM, *arguments, "--data", self.data],
            env=self.environment,
            input=input_text,
            capture_output=True,
            text=True,
            check=True,
        )
        return done.stdout.strip()

    def token(self, mailbox: str) -> str:
        """Returns the token of the last mail to an address; waits until the server has written the mail."""
        for _ in range(1000):
            for path in sorted((self.data / "outbox").glob("*.eml"), reverse=True):
                message = email.message_from_bytes(path.read_bytes(), policy=email.policy.default)
                if message["To"] == mailbox:
                    return re.search(r"token=([0-9a-f]{64})", message.get_body(("plain",)).get_content()).group(1)
            time.sleep(0.01)
        raise AssertionError("no mail arrived")

    def stop(self) -> None:
        self.process.terminate()
        assert self.process.wait(30) == 0
        self.process.stdout.close()


@pytest.fixture(scope="module")
def server(tmp_path_factory, replay):
    data = tmp_path_factory.mktemp("server")
    running = ServerFixture(data, replay)
    (data / "quiet.srt").write_text(SRT)
    running.command("import", str(data / "quiet.srt"), "--video", LINK, "--lang", "en")
    yield running
    running.stop()


def test_lookup_archived_needs_no_key(server):
    client = Client(server.address)
    transcript = client.get(LINK)
    assert transcript.text.startswith("It is so quiet") and transcript.from_cache
    assert (transcript.source, transcript.video_id, len(transcript)) == ("import", "dQw4w9WgXcQ", 2)
    assert asyncio.run(client.aget("https://www.youtube.com/watch?v=dQw4w9WgXcQ")) == transcript
    for form in ("text", "md", "srt", "vtt"):
        assert "quiet" in client.get_text(LINK, form)
    assert asyncio.run(client.aget_text(LINK, "srt")) == transcript.to_srt()
    assert repr(client) == f"<Client {server.address}>"


def test_lookup_without_key_takes_languages(server):
    client = Client(server.address)
    assert client.get(LINK, ["de", "en"]).language == client.lookup(LINK, "en").get().language == "en"
    assert asyncio.run(client.alookup(LINK, ("de", "en-GB"))).get().language == "en"
    missing = client.lookup(LINK, "de")
    assert missing.transcript is None and [language.tag for language in missing.languages] == ["en"]
    assert "quiet" in client.get_text(LINK, "srt", lang=["de", "en"])
    for call in (client.get, lambda link, lang: client.get_text(link, lang=lang)):
        with pytest.raises(vt.TranscriptUnavailable):
            call(LINK, "de")
    for wrong, error in (([], ValueError), ("no tag", vt.InvalidInput), (7, TypeError), (["en"] * 99, vt.InvalidInput)):
        with pytest.raises(error):
            client.lookup(LINK, wrong)


def test_client_keeps_metadata_of_server(server):
    from test_video import CHAPTERS, METADATA, known

    link = "https://youtu.be/aaaaaaaaaaa"
    known(link).save(server.data / "known.json")
    server.command("import", str(server.data / "known.json"))
    with_account = Client(server.address)
    with_account.register("eve@example.org")
    with_account.verify(server.token("eve@example.org"))
    for client in (Client(server.address), with_account):
        transcript = client.get(link)
        assert (transcript.metadata, transcript.chapters) == (METADATA, CHAPTERS)
        assert transcript.languages == [vt.Language("en", "English", "manual", False)]


def test_lookup_missing_returns_server_reason_and_watch_url(server):
    client = Client(server.address)
    answer = client.lookup("https://youtu.be/vb-tracks-0", src="mcp_other")
    assert answer.transcript is None and answer.reason == "needs_verification"
    assert answer.watch_url.startswith(server.address) and "mcp_other" in answer.watch_url
    with pytest.raises(vt.TranscriptUnavailable) as raised:
        answer.get()
    error = raised.value
    assert (error.reason, error.watch_url) == (answer.reason, answer.watch_url)
    assert str(error) == f"YouTube vb-tracks-0: {answer.message}"
    assert (error.platform, error.video_id) == ("YouTube", "vb-tracks-0")
    for call in (client.get, client.get_text):
        with pytest.raises(vt.TranscriptUnavailable) as raised:
            call("https://youtu.be/vb-tracks-0")
        assert raised.value.watch_url.endswith("/watch/video_site/vb-tracks-0")
        assert str(raised.value) == f"YouTube vb-tracks-0: {raised.value.args[0]}"
        assert (raised.value.platform, raised.value.video_id) == ("YouTube", "vb-tracks-0")


def test_lookup_key_is_charged(server):
    client = Client(server.address)
    made = client.create_key(label="mine")
    assert made.key.startswith("vbk_") and (made.plan, made.label, made.used) == ("free", "mine", 0)
    client.use_key(made.key)
    fetched = client.lookup("https://youtu.be/vb-tracks-0")
    assert fetched.get().source == "youtube-captions" and fetched.key.used == 1
    assert fetched.get().language == "en" and not fetched.get().is_generated
    status = asyncio.run(client.akey_status())
    assert (status.used, status.remaining, status.id) == (1, 24, made.id) and status.key is None
    with pytest.raises(vt.PrivateVideo) as raised:
        client.get("https://youtu.be/vb-private0")
    assert raised.value.reason == "private"
    german = client.get("https://youtu.be/vb-tracks-0", ["ja", "de"])
    assert german.language == "de" and asyncio.run(client.aget("https://youtu.be/vb-tracks-0", "de")) == german
    with pytest.raises(vt.LanguageNotFound) as raised:
        client.get("https://youtu.be/vb-tracks-0", "ja")
    assert "de" in raised.value.available
    with pytest.raises(vt.LanguageNotFound) as raised:
        client.get_text("https://youtu.be/vb-tracks-0", lang="ja")
    assert list(raised.value.available) == []
    other = Client(server.address, server.command("keys", "create"))
    assert other.get("https://youtu.be/vb-tracks-0").from_cache


def test_v1_transcripts_and_chat_charge_credits(server):
    client = Client(server.address)
    assert client.register("ann@example.org").endswith(".")
    key = client.verify(server.token("ann@example.org"))
    assert key.startswith("vba_")
    before = client.me()
    assert before.email == "ann@example.org" and before.plan == "free" and before.credits_remaining > 10
    once = client.get(LINK, idempotency_key="order-1")
    assert once == client.get(LINK, idempotency_key="order-1")
    assert asyncio.run(client.aget("https://youtu.be/vb-french-0", lang="de")).language == "de"
    answer = client.chat("dQw4w9WgXcQ", "Is the café open?", [("user", "Hello."), ("assistant", "Hello!")])
    assert "café is closed" in answer.response and answer.citations[0].start == 61.0
    assert answer.citations[0].url.endswith("t=61s") and answer.credits_used >= 1
    after = asyncio.run(client.ame())
    assert after.credits_remaining == before.credits_remaining - 3 == answer.credits_remaining
    with pytest.raises(vt.PrivateVideo):
        client.chat("https://youtu.be/vb-private0", "Why?")
    with_lookup_key = Client(server.address)
    with_lookup_key.use_key(with_lookup_key.create_key().key)
    with pytest.raises(vt.PrivateVideo) as raised:
        with_lookup_key.get_text("https://youtu.be/vb-private0")
    assert raised.value.reason == "private"
    with pytest.raises(vt.PrivateVideo) as raised:
        client.get("https://youtu.be/vb-private0")
    assert (raised.value.platform, raised.value.video_id) == ("YouTube", "vb-private0")
    assert isinstance(raised.value.__cause__, vt.ServiceNotFound)
    assert raised.value.__cause__.status == 404 and raised.value.__cause__.request_id
    old, new = key, client.rotate_key()
    assert new != old and client.me().credits_remaining == after.credits_remaining
    with pytest.raises(vt.Unauthorized) as raised:
        Client(server.address, old).me()
    assert raised.value.status == 401


def test_lost_charged_call_names_its_idempotency_key():
    with socket.create_server(("127.0.0.1", 0)) as silent:
        client = Client(f"http://127.0.0.1:{silent.getsockname()[1]}", "vba_x", timeout=0.5, retries=0)
        for call in (client.get, lambda link, **key: client.chat(link, "When?", **key)):
            with pytest.raises(vt.ServiceTimeout) as raised:
                call(LINK)
            assert re.fullmatch("[0-9a-f]{32}", raised.value.idempotency_key)
            with pytest.raises(vt.ServiceTimeout) as raised:
                call(LINK, idempotency_key="order-1")
            assert pickle.loads(pickle.dumps(raised.value)).idempotency_key == "order-1"
        with pytest.raises(vt.ServiceTimeout) as raised:
            client.me()
        assert raised.value.idempotency_key is None


def test_lost_charged_call_keeps_key_after_404():
    languages = ["de", "en"]
    for call in (
        lambda client: client.get(LINK, languages),
        lambda client: asyncio.run(client.aget(LINK, languages)),
    ):
        # None: the connection closes without a response.
        running = RestartingServer([None, 404])
        try:
            with pytest.raises(vt.ServiceNotFound) as raised:
                call(Client(running.address, "vba_x", retries=1))
            assert re.fullmatch("[0-9a-f]{32}", raised.value.idempotency_key) and running.statuses == []
            running.statuses[:] = [404, 404]
            with pytest.raises(vt.TranscriptUnavailable) as raised:
                call(Client(running.address, "vba_x", retries=1))
            assert raised.value.__cause__.idempotency_key is None and running.statuses == []
        finally:
            running.stop()


@pytest.mark.parametrize("key", [None, "vbk_x", "vba_x"])
def test_wrong_base_url_is_no_missing_transcript(server, key):
    client = Client(server.address + "/nope", key)
    calls = [client.get, lambda link: asyncio.run(client.aget(link)), lambda link: list(client.get_many([link]))[0].get()]
    if key == "vba_x":
        calls.append(lambda link: client.chat(link, "When?"))
    for call in calls:
        with pytest.raises(vt.ServiceNotFound, match=r"No Verbatim server responds at this address \(HTTP 404\)") as raised:
            call(LINK)
        assert type(pickle.loads(pickle.dumps(raised.value))) is type(raised.value) and raised.value.status == 404


def test_v1_checkout_returns_payment_page(tmp_path, replay):
    running = ServerFixture(tmp_path, replay)
    try:
        client = Client(running.address)
        client.register("ben@example.org")
        client.verify(running.token("ben@example.org"))
        page = client.buy_credits("50k")
        assert page.checkout_url.startswith(running.address) and page.credits > 0 and page.price_usd > 0
        assert asyncio.run(client.asubscribe("starter")).checkout_url.startswith(running.address)
        with pytest.raises(vt.ServiceRefused) as raised:
            client.buy_credits("nothing")
        assert raised.value.status == 400
    finally:
        running.stop()


def test_v1_without_credits_raises_payment_required(tmp_path, replay):
    running = ServerFixture(tmp_path, replay, VERBATIM_PLANS__FREE__CREDITS="0")
    try:
        client = Client(running.address)
        client.register("cem@example.org")
        client.verify(running.token("cem@example.org"))
        with pytest.raises(vt.PaymentRequired) as raised:
            client.get("https://youtu.be/vb-tracks-0")
        assert raised.value.credits_remaining == 0
    finally:
        running.stop()


def test_client_invalid_input_raises_error(server):
    for arguments in (("nowhere",), ("ftp://a",), (server.address, "no key"), (server.address, ""), ("http://me@a",)):
        with pytest.raises(vt.InvalidInput):
            Client(*arguments)
    for arguments in ((None,), (server.address, 7)):
        with pytest.raises(TypeError):
            Client(*arguments)
    with pytest.raises(ValueError, match="timeout"):
        Client(server.address, timeout=-1)
    client = Client(server.address)
    with pytest.raises(vt.Unauthorized):
        client.me()
    with pytest.raises(ValueError, match="tag"):
        client.lookup(LINK, src="elsewhere")
    with pytest.raises(ValueError, match="format"):
        client.get_text(LINK, "pdf")
    with pytest.raises(vt.InvalidInput, match="Idempotency-Key"):
        Client(server.address, "vba_x").get(LINK, idempotency_key="with a space")
    with pytest.raises(vt.ServiceUnreachable):
        Client("http://127.0.0.1:1", retries=0).get(LINK)


def test_client_malformed_link_is_invalid_input(server):
    client, with_account = Client(server.address), Client(server.address)
    with_account.register("fay@example.org")
    with_account.verify(server.token("fay@example.org"))
    for call in (
        client.get,
        client.lookup,
        client.get_text,
        lambda link: asyncio.run(client.aget(link)),
        lambda link: next(client.get_many([link])).get(),
        with_account.get,
    ):
        with pytest.raises(vt.InvalidInput) as raised:
            call("no link")
        # The message and the attributes are those of the server.
        assert isinstance(raised.value, vt.ServiceRefused) and raised.value.status == 400 and str(raised.value)
    # The v1 API has YouTube only: the link is no malformed one.
    with pytest.raises(vt.ServiceRefused) as refused:
        with_account.get("https://www.tiktok.com/@name/video/7300000000000000001")
    assert refused.value.status == 400


def test_client_get_many_yields_results(server):
    client = Client(server.address)
    found = {result.link: result for result in client.get_many([LINK, "https://youtu.be/vb-tracks-3", "no link"])}
    assert found[LINK].get().from_cache and isinstance(found["no link"].error, vt.InvalidInput)
    assert isinstance(found["https://youtu.be/vb-tracks-3"].error, vt.TranscriptUnavailable)
    (english,) = client.get_many([LINK], ["de", "en"])
    assert english.get().language == "en"
    (missing,) = client.get_many([LINK], "de")
    assert isinstance(missing.error, vt.TranscriptUnavailable)

    async def collect():
        return [result.get() async for result in client.aget_many([LINK, LINK])]

    assert len(asyncio.run(collect())) == 2


def test_client_get_many_after_close_yields_failures(server):
    client = Client(server.address)
    results = client.get_many([LINK] * 4, concurrency=1)
    assert next(results).error is None
    client.close()
    errors = [result.error for result in results]
    # The second request was running.
    assert len(errors) == 3 and all(isinstance(error, vt.ClosedError) for error in errors[1:])


def test_client_get_many_waits_while_server_refuses():
    lookup = {"platform": "video_site", "videoId": "dQw4w9WgXcQ", "available": False, "transcript": []}
    throttled = {**lookup, "failureReason": "rate_limited", "failureMessage": "The platform throttles."}
    segment = {"text": "Hello.", "start": 0, "duration": 1}
    found = {**lookup, "available": True, "language": "en", "transcript": [segment]}
    running = RestartingServer([], retry_after=0, final=found)
    client = Client(running.address, retries=0)
    links = [f"https://youtu.be/vb-tracks-{number:02}" for number in range(20)]

    async def collect(links):
        return [result async for result in client.aget_many(links, in_order=True)]

    try:
        for refusals in ([429] * 9, [throttled] * 3, [throttled, 429]):
            running.statuses[:] = refusals
            started = time.monotonic()
            results = list(client.get_many(links, concurrency=4))
            assert time.monotonic() - started >= 0.1 and not running.statuses
            assert sorted(result.index for result in results) == list(range(20))
            assert all(result.error is None for result in results)
        running.statuses[:] = [429] * 3
        assert [result.index for result in asyncio.run(collect(links[:9])) if result.transcript] == list(range(9))
        # A link that cannot be fetched is requested three times at most.
        running.statuses[:] = [throttled] * 4
        errors = [result.error for result in client.get_many([LINK])]
        assert [type(error) for error in errors] == [vt.RateLimited] and len(running.statuses) == 1
        running.statuses[:] = [429] * 4
        errors = [result.error for result in client.get_many(links[:4], max_wait=0)]
        assert [type(error) for error in errors] == [vt.TooManyRequests] * 4 and not running.statuses
        # The request may be charged: only its key makes a repetition free.
        running.statuses[:] = [None, 429]
        (error,) = [result.error for result in Client(running.address, "vba_x", retries=1).get_many([LINK])]
        assert isinstance(error, vt.TooManyRequests) and re.fullmatch("[0-9a-f]{64}", error.idempotency_key)
    finally:
        running.stop()
    with pytest.raises(ValueError, match="max_wait"):
        client.get_many([LINK], max_wait=-1)


@pytest.mark.parametrize("key", [None, "vba_x"])
def test_client_close_ends_calls_of_get_many_that_wait(key):
    running = RestartingServer([429] * 3, retry_after=1)
    client = Client(running.address, key, retries=0)
    try:
        with ThreadPoolExecutor(1) as pool:
            results = pool.submit(lambda: list(client.get_many([LINK])))
            while len(running.statuses) == 3 and not results.done():
                time.sleep(0.01)
            client.close()
            (result,) = results.result(60)
    finally:
        running.stop()
    # No request is sent after the one that the server refused.
    assert isinstance(result.error, vt.ClosedError) and len(running.statuses) == 2


def test_client_get_many_unreadable_response_fails_alone(monkeypatch):
    lookup = {"platform": "video_site", "videoId": "dQw4w9WgXcQ", "available": True, "language": "en"}
    found = {**lookup, "transcript": [{"text": "Hello.", "start": 0, "duration": 1}]}
    running = RestartingServer([{"platform": 7}], final=found)
    convert, converted = _client._lookup_response, []

    def convert_some(*response):
        converted.append(response)
        if len(converted) == 2:
            raise KeyError("a field")
        return convert(*response)

    monkeypatch.setattr(_client, "_lookup_response", convert_some)
    try:
        results = list(Client(running.address, retries=0).get_many([LINK] * 5, concurrency=1))
    finally:
        running.stop()
    errors = [type(result.error) for result in results if result.error is not None]
    assert errors == [vt.ServiceError, KeyError] and len(results) == 5


def test_client_v1_languages_and_links(server):
    client = Client(server.address)
    client.register("dan@example.org")
    client.verify(server.token("dan@example.org"))
    before = client.me().credits_remaining
    assert client.get("https://youtu.be/vb-french-0", ["ja", "fr"]).language == "fr"
    assert [result.get().language for result in client.get_many(["vb-french-0"], ["ja", "de"])] == ["de"]
    assert client.chat(LINK, "Is the café open?").video_id == "dQw4w9WgXcQ"
    for _ in range(2):
        with pytest.raises(vt.LanguageNotFound) as raised:
            client.get("https://youtu.be/vb-french-0", "ja")
        assert "fr" in raised.value.available
    assert client.me().credits_remaining == before - 3
    with pytest.raises(ValueError, match="idempotency_key"):
        client.get(LINK, ["de", "en"], idempotency_key="order-2")


def test_client_get_many_repeated_link_is_charged_once(server):
    client = Client(server.address)
    client.register("gil@example.org")
    client.verify(server.token("gil@example.org"))
    before = client.me().credits_remaining
    links = ["https://youtu.be/vb-french-0", "no link", "https://youtu.be/vb-french-0"]
    # The second request for a link is after the first, or would be at the same time.
    for concurrency in (1, 3):
        results = list(client.get_many(links, ["ja", "fr"], concurrency=concurrency, in_order=True))
        assert [result.link for result in results] == links and isinstance(results[1].error, vt.ServiceRefused)
        assert [results[index].get().language for index in (0, 2)] == ["fr", "fr"]
        before -= 1
        assert client.me().credits_remaining == before


def test_client_closed_raises_error(server):
    with Client(server.address) as client:
        assert len(client.get(LINK)) == 2
    for call in (client.get, client.lookup, lambda link: list(client.get_many([link]))[0].get()):
        with pytest.raises(vt.ClosedError):
            call(LINK)
    client.close()

    async def run():
        async with Client(server.address) as other:
            await other.aget(LINK)
        with pytest.raises(vt.ClosedError):
            await other.aget(LINK)

    asyncio.run(run())


async def test_client_concurrent_calls_return_same_transcript(server):
    client = Client(server.address)
    found = await asyncio.gather(*(client.aget(LINK) for _ in range(50)))
    assert len(set(found)) == 1


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this platform")
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*:DeprecationWarning")
def test_client_forked_child_opens_connections(server):
    from test_processes import child

    client = Client(server.address)
    assert len(client.get(LINK)) == 2
    assert [child(lambda: len(client.get(LINK))) for _ in range(2)] == [2, 2]
    assert len(client.get(LINK)) == 2
