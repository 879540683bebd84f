"""Sessions, proxies and failures of the network."""

import copy
import json
import pickle
import socket
import sys
import threading
import types
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

import pytest
import requests
from stubbed_video import CAPTIONS, PAGE, PLAYER, XML, player
from youtube_transcript_api import IpBlocked, YouTubeRequestFailed, YouTubeTranscriptApi
from youtube_transcript_api import _transport
from youtube_transcript_api._transport import NativeTransport
from youtube_transcript_api.proxies import GenericProxyConfig, InvalidProxyConfig, ProxyConfig, WebshareProxyConfig

CLOSED = "http://127.0.0.1:1"
#: `DuckSession.post` has a parameter `json`.
load_json = json.loads


class Proxies(ProxyConfig):
    """Custom proxy settings."""

    def __init__(self, proxies):
        self.proxies = proxies

    def to_requests_dict(self):
        return self.proxies


def test_session_on_access_sends_later_requests(table):
    api = YouTubeTranscriptApi()
    transcript = api.list("x").find_transcript(["en"])
    assert table.calls[-1].request.headers["user-agent"].startswith("verbatim/")
    api._fetcher._http_client.headers["User-Agent"] = "mine"
    assert transcript._http_client is api._fetcher._http_client
    assert transcript._http_client.get(transcript._url).text == XML
    assert len(transcript.fetch()) == len(api.fetch("x")) == 1
    assert {call.request.headers["user-agent"] for call in table.calls[2:]} == {"mine"}
    assert table.calls[-1].request.headers["accept-language"] == "en-US"


def test_session_on_access_has_settings_of_transport(table):
    # The variable of the test environment names another proxy.
    transport = NativeTransport(GenericProxyConfig(CLOSED))
    transport.consent("YES+1")
    assert transport.http_client.proxies == {"http": CLOSED, "https": CLOSED}
    assert transport.http_client.cookies["CONSENT"] == "YES+1"
    with pytest.raises(requests.exceptions.ProxyError):
        transport.http_client.get("https://www.youtube.com/watch?v=x")


def test_session_can_be_replaced(table):
    api = YouTubeTranscriptApi()
    with requests.Session() as session:
        session.headers["X-Mine"] = "1"
        api._fetcher._http_client = session
        api.fetch("x")
    assert all(call.request.headers["x-mine"] == "1" for call in table.calls)


def test_session_of_caller_is_http_client(table):
    with requests.Session() as session:
        api = YouTubeTranscriptApi(http_client=session)
        assert api._fetcher._http_client is session is api.list("x").find_transcript(["en"])._http_client


def test_session_without_requests_raises_import_error(monkeypatch):
    monkeypatch.setitem(sys.modules, "requests", None)
    with pytest.raises(ImportError, match="pip install requests"):
        YouTubeTranscriptApi()._fetcher._http_client


class DuckSession:
    """A session whose responses have only the given attributes."""

    def __init__(self, status=200):
        self.headers = {}
        self.status = status

    def get(self, url):
        return types.SimpleNamespace(status_code=self.status, text=XML if "timedtext" in url else PAGE)

    def post(self, url, json):
        return types.SimpleNamespace(status_code=self.status, json=lambda: load_json(player()))


def test_session_without_content_uses_text_and_json():
    assert YouTubeTranscriptApi(http_client=DuckSession()).fetch("x")[0].text == "a < b > c"
    with pytest.raises(YouTubeRequestFailed, match="404 Client Error"):
        YouTubeTranscriptApi(http_client=DuckSession(404)).fetch("x")
    with pytest.raises(IpBlocked):
        YouTubeTranscriptApi(http_client=DuckSession(429)).fetch("x")


def test_http_error_contains_status(table):
    table.replace("GET", CAPTIONS, status=404)
    with pytest.raises(YouTubeRequestFailed, match="404 Client Error: Not Found for url: https"):
        YouTubeTranscriptApi().fetch("x")
    table.replace("POST", PLAYER, status=503)
    with pytest.raises(YouTubeRequestFailed, match="503 Server Error"):
        YouTubeTranscriptApi().fetch("x")


def test_proxy_unreachable_is_requests_proxy_error():
    with pytest.raises(requests.exceptions.ProxyError, match="could not be reached") as raised:
        YouTubeTranscriptApi(GenericProxyConfig(CLOSED)).fetch("x")
    again = pickle.loads(pickle.dumps(raised.value))
    assert isinstance(again, YouTubeRequestFailed) and type(again) is type(raised.value)
    assert (str(again), again.video_id, again.response) == (str(raised.value), "x", None)


def test_untrusted_certificate_is_requests_ssl_error(table, monkeypatch):
    monkeypatch.delenv("REQUESTS_CA_BUNDLE")
    with pytest.raises(requests.exceptions.SSLError, match="to REQUESTS_CA_BUNDLE") as raised:
        YouTubeTranscriptApi().fetch("x")
    assert isinstance(raised.value, YouTubeRequestFailed)


def test_certificates_unreadable_name_variable_and_path(table, monkeypatch, tmp_path):
    path = tmp_path / "ca_file"
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", str(path))
    with pytest.raises(YouTubeRequestFailed, match=f"REQUESTS_CA_BUNDLE {path}: "):
        YouTubeTranscriptApi().fetch("x")


def test_network_failure_without_requests_is_request_failed(monkeypatch):
    monkeypatch.delitem(sys.modules, "requests")
    with pytest.raises(YouTubeRequestFailed) as raised:
        YouTubeTranscriptApi(GenericProxyConfig(CLOSED)).fetch("x")
    assert type(raised.value) is YouTubeRequestFailed


@pytest.mark.parametrize("key", ["https://www.youtube.com", "https", "all://www.youtube.com", "all"])
def test_proxy_keys_follow_order_of_requests(table, platform, monkeypatch, key):
    monkeypatch.delenv("HTTPS_PROXY")
    keys = ["https://www.youtube.com", "https", "all://www.youtube.com", "all"]
    later = dict.fromkeys(keys[keys.index(key) + 1 :], CLOSED)
    config = Proxies({**later, "http": CLOSED, key: platform.proxy})
    assert len(YouTubeTranscriptApi(config).fetch("x")) == 1


@pytest.mark.parametrize(
    ("proxies", "message"),
    [
        ({"http": CLOSED}, "no proxy for https://www.youtube.com: use the key https"),
        ({"https://user:secret@youtube.com": CLOSED, "no_proxy": "x"}, "no proxy for"),
        ({"HTTPS": CLOSED, "https": None}, "no proxy for"),
        ({"https": ""}, "no proxy for"),
        ({"http": None, "https": None}, "no proxy for"),
        ({"https": "user:secret://x@127.0.0.1:1"}, "proxy scheme of the URL is not supported"),
        ({"https": 8080}, "a proxy is int"),
        ([CLOSED], "return a dictionary"),
        ({"https": "socks4://127.0.0.1:1"}, "socks4 is not supported: use http, https, socks5"),
    ],
)
def test_proxy_settings_unusable_raise_error(proxies, message):
    with pytest.raises(InvalidProxyConfig, match=message) as raised:
        YouTubeTranscriptApi(Proxies(proxies))
    assert "secret" not in str(raised.value)


def test_proxy_settings_for_session_of_caller_are_checked():
    with requests.Session() as session, pytest.raises(InvalidProxyConfig, match="no proxy for"):
        YouTubeTranscriptApi(Proxies({"http": CLOSED}), http_client=session)
    with requests.Session() as session:
        YouTubeTranscriptApi(Proxies({"no_proxy": "x"}), http_client=session)


@pytest.mark.parametrize("prefix", ["", "//", "http://"])
def test_proxy_url_without_scheme_is_http(table, platform, monkeypatch, prefix):
    monkeypatch.delenv("HTTPS_PROXY")
    url = prefix + platform.proxy.removeprefix("http://")
    assert len(YouTubeTranscriptApi(GenericProxyConfig(url)).fetch("x")) == 1
    monkeypatch.setenv("HTTPS_PROXY", url)
    assert len(YouTubeTranscriptApi().fetch("x")) == 1
    monkeypatch.setenv("HTTPS_PROXY", "socks4://127.0.0.1:1")
    with pytest.raises(YouTubeRequestFailed, match="socks4 is not supported"):
        YouTubeTranscriptApi().fetch("x")


def test_proxy_variable_applies_to_existing_object(table, platform, monkeypatch):
    monkeypatch.setenv("HTTPS_PROXY", CLOSED)
    api = YouTubeTranscriptApi()
    with pytest.raises(YouTubeRequestFailed):
        api.fetch("x")
    monkeypatch.setenv("HTTPS_PROXY", platform.proxy)
    assert len(api.fetch("x")) == 1
    client = api._fetcher._transport._pages
    assert len(api.fetch("x")) == 1 and api._fetcher._transport._pages is client


def test_proxy_config_wins_over_proxy_variable(table, platform, monkeypatch):
    monkeypatch.setenv("HTTPS_PROXY", CLOSED)
    assert len(YouTubeTranscriptApi(GenericProxyConfig(platform.proxy)).fetch("x")) == 1


@pytest.mark.parametrize("duplicate", [copy.deepcopy, lambda value: pickle.loads(pickle.dumps(value))])
def test_objects_are_copied_with_settings(table, duplicate):
    api = YouTubeTranscriptApi(Proxies({}))
    listed = duplicate(duplicate(api).list("x"))
    assert duplicate(api.fetch)("x").snippets == duplicate(listed.find_transcript(["en"])).fetch().snippets
    api._fetcher._http_client.headers["X-Mine"] = "1"
    duplicate(api).fetch("x")
    assert table.calls[-1].request.headers["x-mine"] == "1"


def test_pickled_exception_has_no_passwords():
    error = IpBlocked("x").with_proxy_config(GenericProxyConfig("http://user:secret@127.0.0.1:1"))
    again = pickle.loads(pickle.dumps(error))
    assert b"secret" not in pickle.dumps(error) and str(again) == str(error)


def test_bound_method_runs_in_processes(table):
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as pool:
        assert [one.video_id for one in pool.map(YouTubeTranscriptApi().fetch, ["x", "y"])] == ["x", "y"]


def test_connection_cut_off_is_requests_connection_error():
    server = socket.create_server(("127.0.0.1", 0))

    def close_connections():
        for _ in range(20):
            try:
                server.accept()[0].close()
            except OSError:
                return

    threading.Thread(target=close_connections, daemon=True).start()
    url = f"http://127.0.0.1:{server.getsockname()[1]}"
    with server, pytest.raises(requests.exceptions.ConnectionError):
        YouTubeTranscriptApi(GenericProxyConfig(url)).fetch("x")


class FlakyProxy:
    """Passes connections to a proxy, and answers those of some numbers, from 1, with a status."""

    def __init__(self, proxy, failing, status="502 Bad Gateway"):
        host, port = proxy.removeprefix("http://").split(":")
        self.target, self.failing, self.count = (host, int(port)), failing, 0
        self.response = f"HTTP/1.1 {status}\r\n\r\n".encode()
        self.server = socket.create_server(("127.0.0.1", 0))
        self.port = self.server.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            client, _ = self.server.accept()
            self.count += 1
            if self.count in self.failing:
                client.recv(65536)
                client.sendall(self.response)
                client.close()
                continue
            target = socket.create_connection(self.target)
            for ends in ((client, target), (target, client)):
                threading.Thread(target=self.copy, args=ends, daemon=True).start()

    @staticmethod
    def copy(source, sink):
        try:
            while data := source.recv(65536):
                sink.sendall(data)
            sink.shutdown(socket.SHUT_WR)
        except OSError:
            pass  # the other direction has ended

    def webshare(self):
        return WebshareProxyConfig("me", "secret", domain_name="127.0.0.1", proxy_port=self.port)


@pytest.mark.parametrize("failing", [{1, 2, 3}, {2, 3, 4}, {3, 4, 5}], ids=["page", "player", "captions"])
def test_rotating_proxy_connection_failure_is_retried(table, platform, failing):
    proxy = FlakyProxy(platform.proxy, failing)
    assert len(YouTubeTranscriptApi(proxy.webshare()).fetch("x")) == 1
    assert (proxy.count, len(table.calls)) == (6, 3)


@pytest.mark.parametrize("status", ["502 Bad Gateway", "407 Proxy Authentication Required"])
@pytest.mark.parametrize("successes", [0, 1], ids=["page", "player"])
def test_rotating_proxy_connection_failure_is_attempted_11_times(table, platform, successes, status):
    proxy = FlakyProxy(platform.proxy, range(successes + 1, 99), status)
    with pytest.raises(requests.exceptions.ProxyError):
        YouTubeTranscriptApi(proxy.webshare()).fetch("x")
    assert (proxy.count, len(table.calls)) == (successes + 11, successes)


def test_fixed_proxy_connection_failure_is_not_retried(platform):
    proxy = FlakyProxy(platform.proxy, range(99))
    with pytest.raises(requests.exceptions.ProxyError):
        YouTubeTranscriptApi(GenericProxyConfig(f"http://127.0.0.1:{proxy.port}")).fetch("x")
    assert proxy.count == 1


@pytest.mark.parametrize(("cut", "requests_sent"), [(1, ["GET", "GET", "POST", "GET"]), (2, ["GET", "POST"])])
def test_rotating_proxy_repeats_only_get_that_was_sent(table, platform, monkeypatch, cut, requests_sent):
    match = table.match

    def cut_off(request):
        stub = match(request)
        if len(table.calls) == cut:
            raise ConnectionError
        return stub

    monkeypatch.setattr(table, "match", cut_off)
    api = YouTubeTranscriptApi(FlakyProxy(platform.proxy, ()).webshare())
    if cut == 1:
        assert len(api.fetch("x")) == 1
    else:
        with pytest.raises(requests.exceptions.ConnectionError, match="ended early"):
            api.fetch("x")
    assert [call.request.method for call in table.calls] == requests_sent


def test_rotating_proxy_failures_are_repeated_for_limited_time(monkeypatch):
    clock = iter([0.0, 30.0, 59.0, 61.0])
    monkeypatch.setattr(_transport, "time", types.SimpleNamespace(monotonic=lambda: next(clock)))
    with pytest.raises(requests.exceptions.ProxyError):
        YouTubeTranscriptApi(WebshareProxyConfig("me", "secret", domain_name="127.0.0.1", proxy_port=1)).fetch("x")
    assert next(clock, None) is None
