"""A fake www.youtube.com on loopback: a proxy that responds for it over TLS.

It replaces the library `responses` and implements the part of its interface that the tests use. Stubbed responses are
served over real connections, because the production client does not use `requests`.
"""

from __future__ import annotations

import http.server
import ssl
import sys
import threading
import types
from collections.abc import Mapping
from typing import Any, NamedTuple

import trustme

GET, POST = "GET", "POST"


class Headers(dict):
    """Headers with case-insensitive names."""

    def __init__(self, headers: Mapping[str, str]) -> None:
        super().__init__({name.lower(): value for name, value in headers.items()})

    def __getitem__(self, name: str) -> str:
        return super().__getitem__(name.lower())

    def get(self, name: str, default: Any = None) -> Any:
        return super().get(name.lower(), default)


class Request(NamedTuple):
    method: str
    url: str
    headers: Headers
    body: bytes


class Call(NamedTuple):
    request: Request


class Stub(NamedTuple):
    method: str
    url: str
    body: bytes
    status: int
    headers: dict[str, str]


class StubTable:
    """Stubbed responses and recorded requests."""

    def __init__(self) -> None:
        self.stubs: list[Stub] = []
        self.calls: list[Call] = []
        #: Path prefixes after whose responses the connection is closed, without a `Connection: close` header.
        self.closes_after: tuple[str, ...] = ()
        self.lock = threading.Lock()

    def add(
        self,
        method: str,
        url: str,
        body: str | bytes = b"",
        status: int = 200,
        content_type: str = "text/plain",
        headers: dict[str, str] | None = None,
    ) -> None:
        data = body.encode() if isinstance(body, str) else body
        self.stubs.append(Stub(method, url, data, status, {"Content-Type": content_type, **(headers or {})}))

    def replace(self, method: str, url: str, *args: Any, **kwargs: Any) -> None:
        self.stubs = [stub for stub in self.stubs if (stub.method, stub.url) != (method, url)]
        self.add(method, url, *args, **kwargs)

    def reset(self) -> None:
        with self.lock:
            self.stubs.clear()
            self.calls.clear()
            self.closes_after = ()

    def match(self, request: Request) -> Stub | None:
        """Returns the first matching stub; if there are several, removes it."""
        with self.lock:
            self.calls.append(Call(request))
            matching = [
                stub
                for stub in self.stubs
                if stub.method == request.method and stub.url == request.url.split("?")[0]
            ]
            if not matching:
                return None
            if len(matching) > 1:
                self.stubs.remove(matching[0])
            return matching[0]


class Platform:
    """The running fake."""

    def __init__(self) -> None:
        self.table = StubTable()
        self.authority = trustme.CA()
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.authority.issue_cert("www.youtube.com").configure_cert(context)
        table = self.table

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            host = ""

            def do_CONNECT(self) -> None:
                if self.path != "www.youtube.com:443":
                    self.send_error(403)
                    return
                self.send_response(200)
                self.end_headers()
                self.connection = context.wrap_socket(self.connection, server_side=True)
                self.rfile = self.connection.makefile("rb")
                self.wfile = self.connection.makefile("wb", 0)
                self.host = "https://www.youtube.com"
                # The tunnel stays open for HTTP/1.0 clients, too.
                self.close_connection = False

            def respond(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
                headers = Headers(dict(self.headers.items()))
                stub = table.match(Request(self.command, self.host + self.path, headers, body))
                stub = stub or Stub("", "", b"unexpected request", 599, {})
                self.send_response(stub.status)
                for name, value in stub.headers.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(stub.body)))
                self.end_headers()
                self.wfile.write(stub.body)
                self.close_connection |= self.path.startswith(table.closes_after)

            do_GET = do_POST = respond

            def handle(self) -> None:
                try:
                    super().handle()
                except (OSError, ssl.SSLError):
                    pass  # the client closed the connection early

            def log_message(self, *_: Any) -> None:
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.proxy = f"http://127.0.0.1:{self.server.server_address[1]}"

    def as_responses(self) -> types.ModuleType:
        """Registers a module with the interface of `responses`, which the tests import."""
        table, module = self.table, types.ModuleType("responses")
        module.GET, module.POST = GET, POST
        module.calls = table.calls
        module.add, module.replace, module.reset = table.add, table.replace, table.reset
        module.get = lambda *args, **kwargs: table.add(GET, *args, **kwargs)
        module.post = lambda *args, **kwargs: table.add(POST, *args, **kwargs)
        # In `responses` they start and stop patching `requests`, which is not needed here.
        module.start = module.stop = lambda: None
        sys.modules["responses"] = module
        return module
