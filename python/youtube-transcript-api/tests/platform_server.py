"""A stand-in for www.youtube.com on loopback: a proxy that answers for it over TLS.

It takes the place of the library `responses`, with as much of its interface as is needed. What the tests stub is served
over real connections, so that the client under test is the one of production, which is not made of `requests`.
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
    """Headers whose names are of any case."""

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


class Stage:
    """What is answered, and what was asked."""

    def __init__(self) -> None:
        self.stubs: list[Stub] = []
        self.calls: list[Call] = []
        #: How the paths begin whose answers are the last of their connection, without a word of that before.
        self.hangs_up_after: tuple[str, ...] = ()
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
            self.hangs_up_after = ()

    def play(self, request: Request) -> Stub | None:
        """The first stub that fits; of several it is used up, so that the next one answers next."""
        with self.lock:
            self.calls.append(Call(request))
            fitting = [
                stub
                for stub in self.stubs
                if stub.method == request.method and stub.url == request.url.split("?")[0]
            ]
            if not fitting:
                return None
            if len(fitting) > 1:
                self.stubs.remove(fitting[0])
            return fitting[0]


class Platform:
    """The running stand-in."""

    def __init__(self) -> None:
        self.stage = Stage()
        self.authority = trustme.CA()
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.authority.issue_cert("www.youtube.com").configure_cert(context)
        stage = self.stage

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
                # Whoever asks in HTTP/1.0 means the tunnel to stay all the same.
                self.close_connection = False

            def answer(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
                headers = Headers(dict(self.headers.items()))
                stub = stage.play(Request(self.command, self.host + self.path, headers, body))
                stub = stub or Stub("", "", b"nobody expected this", 599, {})
                self.send_response(stub.status)
                for name, value in stub.headers.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(stub.body)))
                self.end_headers()
                self.wfile.write(stub.body)
                self.close_connection |= self.path.startswith(stage.hangs_up_after)

            do_GET = do_POST = answer

            def handle(self) -> None:
                try:
                    super().handle()
                except (OSError, ssl.SSLError):
                    pass  # a client that leaves in the middle is no fault of ours

            def log_message(self, *_: Any) -> None:
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.proxy = f"http://127.0.0.1:{self.server.server_address[1]}"

    def as_responses(self) -> types.ModuleType:
        """A module with the interface of `responses`, for the tests to import."""
        stage, module = self.stage, types.ModuleType("responses")
        module.GET, module.POST = GET, POST
        module.calls = stage.calls
        module.add, module.replace, module.reset = stage.add, stage.replace, stage.reset
        module.get = lambda *args, **kwargs: stage.add(GET, *args, **kwargs)
        module.post = lambda *args, **kwargs: stage.add(POST, *args, **kwargs)
        # They begin and end the patching of `requests`, which is not done here.
        module.start = module.stop = lambda: None
        sys.modules["responses"] = module
        return module
