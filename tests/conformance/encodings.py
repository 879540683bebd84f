"""Archived answers in every encoding, read by decoders that are not ours: each must have the words of the plain one.

usage: encodings.py ADDRESS VIDEO...
"""

import gzip
import io
import json
import subprocess
import sys
import urllib.request

import zstandard

# The window that clients of HTTP must have at least (RFC 9659).
WINDOW_MAX = 8 << 20


def ask(address, video, encoding):
    request = urllib.request.Request(
        f"{address}/api/transcript?v={video}", headers={"Accept-Encoding": encoding}
    )
    with urllib.request.urlopen(request) as answer:
        return answer.headers, answer.read()


def by_parts(frame):
    """As a browser reads it: in parts, and no more than one frame."""
    decoder = zstandard.ZstdDecompressor(max_window_size=WINDOW_MAX).decompressobj()
    text = b"".join(decoder.decompress(frame[at : at + 1_000]) for at in range(0, len(frame), 1_000))
    if not decoder.eof or decoder.unused_data:
        raise ValueError("the body is not exactly one frame")
    return text


# Each of them was seen to read bodies in another way.
ZSTD = {
    "at once": lambda frame: zstandard.ZstdDecompressor(max_window_size=WINDOW_MAX).decompress(frame),
    "by parts": by_parts,
    "as a stream": lambda frame: zstandard.ZstdDecompressor().stream_reader(io.BytesIO(frame)).read(),
}


def by_curl(address, video, encoding):
    command = ["curl", "--silent", "--show-error", "--fail", "--compressed", "--header", f"Accept-Encoding: {encoding}"]
    return subprocess.run([*command, f"{address}/api/transcript?v={video}"], check=True, stdout=subprocess.PIPE).stdout


def wrong(address, video):
    headers, plain = ask(address, video, "identity")
    if not json.loads(plain)["available"] or "Content-Encoding" in headers:
        yield "the plain answer is none"
    # Twice: made, and then ready.
    for time in ("at first", "again"):
        for encoding, readers in (("zstd", ZSTD), ("gzip", {"at once": gzip.decompress})):
            headers, body = ask(address, video, encoding)
            if headers["Content-Encoding"] != encoding or int(headers["Content-Length"]) != len(body):
                yield f"{encoding} {time}: the headers say otherwise"
            for name, read in readers.items():
                if read(body) != plain:
                    yield f"{encoding} {time}, read {name}: other words"
        for encoding in ("zstd", "br", "gzip"):
            if by_curl(address, video, encoding) != plain:
                yield f"{encoding} {time}, read by curl: other words"


def main():
    address, *videos = sys.argv[1:]
    found = [f"{video}: {what}" for video in videos for what in wrong(address, video)]
    for line in found:
        print(line, file=sys.stderr)
    if found:
        sys.exit(f"{len(found)} bodies are not what they should be")
    print(f"{len(videos)} videos, each in 4 encodings")


if __name__ == "__main__":
    main()
