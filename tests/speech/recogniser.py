"""A speech-to-text service for tests: pocketsphinx behind OpenAI's transcription API.

usage: recogniser.py

Prints one line of JSON when it listens, {"port": N}, and exits at the end of standard input. Voice activity detection
runs before recognition, so that silence and tones produce no text.
"""

import json
import subprocess
import sys
import threading
from email.parser import BytesParser
from email.policy import HTTP
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from pocketsphinx import Decoder, Endpointer

RATE = 16_000
DECODER_LOCK = threading.Lock()


def samples(audio):
    command = ["ffmpeg", "-v", "error", "-i", "pipe:0", "-ac", "1", "-ar", str(RATE), "-f", "s16le", "pipe:1"]
    return subprocess.run(command, input=audio, stdout=subprocess.PIPE, check=True).stdout


def utterances(audio):
    """Yields the start in seconds and the samples of each stretch with speech."""
    voices = Endpointer(sample_rate=RATE)
    spoken, start = b"", 0.0
    for offset in range(0, len(audio), voices.frame_bytes):
        frame = audio[offset : offset + voices.frame_bytes]
        is_last = offset + voices.frame_bytes >= len(audio)
        was_speaking = voices.in_speech
        speech = voices.end_stream(frame) if is_last else voices.process(frame)
        if speech is None:
            continue
        if not was_speaking:
            start = voices.speech_start
        spoken += speech
        if not voices.in_speech:
            yield start, spoken
            spoken = b""
    if spoken:
        yield start, spoken


def transcribe(audio):
    decoder = Decoder(samprate=RATE, loglevel="FATAL")
    segments = []
    for start, spoken in utterances(audio):
        decoder.start_utt()
        decoder.process_raw(spoken, full_utt=True)
        decoder.end_utt()
        found = decoder.hyp()
        if found and found.hypstr:
            end = start + len(spoken) / 2 / RATE
            segments.append({"id": len(segments), "start": start, "end": end, "text": " " + found.hypstr})
    return {
        "task": "transcribe",
        "language": "english",
        "duration": len(audio) / 2 / RATE,
        "text": "".join(segment["text"] for segment in segments),
        "segments": segments,
    }


class Service(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        body = self.rfile.read(int(self.headers["content-length"]))
        head = f"content-type: {self.headers['content-type']}\r\n\r\n".encode()
        form = {
            part.get_param("name", header="content-disposition"): part.get_payload(decode=True)
            for part in BytesParser(policy=HTTP).parsebytes(head + body).iter_parts()
        }
        if self.path != "/v1/audio/transcriptions" or self.headers["authorization"] != "Bearer test-key":
            return self.respond(401, {"error": {"message": "invalid API key"}})
        if form["model"] != b"sphinx" or form["response_format"] != b"verbose_json":
            return self.respond(400, {"error": {"message": "unknown model or response_format"}})
        with DECODER_LOCK:
            result = transcribe(samples(form["file"]))
        print(json.dumps({"seconds": result["duration"], "text": result["text"]}), flush=True)
        self.respond(200, result)

    def respond(self, status, value):
        body = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


server = ThreadingHTTPServer(("127.0.0.1", 0), Service)
threading.Thread(target=server.serve_forever, daemon=True).start()
print(json.dumps({"port": server.server_address[1]}), flush=True)
sys.stdin.read()
