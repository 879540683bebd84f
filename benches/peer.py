"""Fetches transcripts with youtube-transcript-api; prints its CPU and wall time in seconds.

Usage: peer.py PREFIX COUNT THREADS. The proxy and the certificate come from the environment, as
HTTPS_PROXY and REQUESTS_CA_BUNDLE.
"""

import resource
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import requests
from youtube_transcript_api import YouTubeTranscriptApi

prefix, count, threads = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
own = threading.local()


def fetch(number):
    if not hasattr(own, "api"):
        own.api = YouTubeTranscriptApi(http_client=requests.Session())
    return len(own.api.fetch(f"{prefix}{number:05}"))


def cpu():
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


with ThreadPoolExecutor(threads) as pool:
    # Connections are opened and modules are loaded before the measurement.
    list(pool.map(fetch, range(threads)))
    cpu_before, before = cpu(), time.monotonic()
    lengths = list(pool.map(fetch, range(threads, threads + count)))
    print(cpu() - cpu_before, time.monotonic() - before)
assert all(length > 100 for length in lengths), lengths
