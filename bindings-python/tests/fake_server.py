"""HTTP servers of tests that react in ways in which the built server does not."""

import http.server
import json
import threading

import verbatim_transcripts as vt


class Handler(http.server.BaseHTTPRequestHandler):
    """Reacts to a request, and logs nothing."""

    def respond(self, status, body, headers):
        self.send_response(status)
        for name, value in headers.items():
            if value is not None:
                self.send_header(name, str(value))
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body.encode())

    def log_message(self, *_):
        pass


class FakeServer:
    """A server in a thread of the test process."""

    def __init__(self, handler):
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self.thread = threading.Thread(target=self.server.serve_forever)
        self.thread.start()
        self.address = f"http://127.0.0.1:{self.server.server_port}"

    def stop(self):
        self.server.shutdown()
        self.thread.join()
        self.server.server_close()


JOB = {
    "success": True,
    "job_id": "job_1",
    "created_at": "2026-11-28T10:00:00Z",
    "counts": dict.fromkeys(vt.JobCounts._fields, 1),
    "credits": dict.fromkeys(vt.JobCredits._fields, 1),
    "poll_url": "",
    "results_url": "",
}


class RestartingServer(FakeServer):
    """A server that reacts to requests with these statuses, of HTTP or of its job, or bodies, and then with `final`."""

    def __init__(self, reactions, retry_after=None, final="completed"):
        statuses = self.statuses = list(reactions)
        #: The keys of the requests.
        keys = self.keys = []
        lock = threading.Lock()

        class JobHandler(Handler):
            def do_GET(self):
                with lock:
                    keys.append((self.headers["authorization"] or "").removeprefix("Bearer "))
                    status = statuses.pop(0) if statuses else final
                if isinstance(status, str):
                    self.respond(200, json.dumps({**JOB, "status": status}), {})
                elif isinstance(status, dict):
                    self.respond(200, json.dumps(status), {"retry-after": retry_after})
                elif status is not None:
                    body = json.dumps({"error": "No.", "code": status})
                    self.respond(status, body, {"retry-after": retry_after})

        super().__init__(JobHandler)
