"""Decodes archived responses in every encoding with independent decoders; each must equal the identity response.

usage: encodings.py ADDRESS VIDEO...
"""

import gzip
import io
import json
import subprocess
import sys
import urllib.request

import zstandard

# The window that every HTTP client must support (RFC 9659).
WINDOW_MAX = 8 << 20


def fetch(address, video, encoding):
    request = urllib.request.Request(
        f"{address}/api/transcript?v={video}", headers={"Accept-Encoding": encoding}
    )
    with urllib.request.urlopen(request) as response:
        return response.headers, response.read()


def by_parts(frame):
    """Decodes as a browser does: in parts, and exactly one frame."""
    decoder = zstandard.ZstdDecompressor(max_window_size=WINDOW_MAX).decompressobj()
    text = b"".join(decoder.decompress(frame[at : at + 1_000]) for at in range(0, len(frame), 1_000))
    if not decoder.eof or decoder.unused_data:
        raise ValueError("the body is not exactly one frame")
    return text


# These decoder APIs were observed to treat bodies differently.
ZSTD = {
    "at once": lambda frame: zstandard.ZstdDecompressor(max_window_size=WINDOW_MAX).decompress(frame),
    "by parts": by_parts,
    "as a stream": lambda frame: zstandard.ZstdDecompressor().stream_reader(io.BytesIO(frame)).read(),
}


def by_curl(address, video, encoding):
    command = ["curl", "--silent", "--show-error", "--fail", "--compressed", "--header", f"Accept-Encoding: {encoding}"]
    return subprocess.run([*command, f"{address}/api/transcript?v={video}"], check=True, stdout=subprocess.PIPE).stdout


def mismatches(address, video):
    headers, plain = fetch(address, video, "identity")
    if not json.loads(plain)["available"] or "Content-Encoding" in headers:
        yield "the identity response is not an available transcript"
    # Twice: rendered, then from the response cache.
    for time in ("first request", "second request"):
        for encoding, readers in (("zstd", ZSTD), ("gzip", {"at once": gzip.decompress})):
            headers, body = fetch(address, video, encoding)
            if headers["Content-Encoding"] != encoding or int(headers["Content-Length"]) != len(body):
                yield f"{encoding}, {time}: wrong Content-Encoding or Content-Length"
            for name, read in readers.items():
                if read(body) != plain:
                    yield f"{encoding}, {time}, decoded {name}: differs from the identity response"
        for encoding in ("zstd", "br", "gzip"):
            if by_curl(address, video, encoding) != plain:
                yield f"{encoding}, {time}, decoded by curl: differs from the identity response"


def main():
    address, *videos = sys.argv[1:]
    found = [f"{video}: {mismatch}" for video in videos for mismatch in mismatches(address, video)]
    for line in found:
        print(line, file=sys.stderr)
    if found:
        sys.exit(f"{len(found)} mismatches")
    print(f"{len(videos)} videos, each in 4 encodings")


if __name__ == "__main__":
    main()
