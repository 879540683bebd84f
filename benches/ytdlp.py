"""Fetches captions with yt-dlp; prints its CPU and wall time in seconds.

Usage: ytdlp.py LINK_PREFIX FIRST COUNT. The proxy comes from the environment, as HTTPS_PROXY. The first look-up
comes before the clock runs: connections are made, modules are loaded and a guest's pass is got.
"""

import os
import resource
import sys
import tempfile
import time

import yt_dlp

prefix, first, count = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])


def cpu():
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


with tempfile.TemporaryDirectory() as folder:
    options = {
        "proxy": os.environ["HTTPS_PROXY"],
        # The proxy signs with an authority of its own.
        "nocheckcertificate": True,
        "skip_download": True,
        "writesubtitles": True,
        "writeautomaticsub": True,
        "subtitleslangs": ["all"],
        "outtmpl": os.path.join(folder, "%(id)s"),
        "cachedir": False,
        "quiet": True,
        "no_warnings": True,
        # What is asked for is the words: no form of the video need be good.
        "ignore_no_formats_error": True,
        "format": "worst",
    }
    with yt_dlp.YoutubeDL(options) as ydl:
        ydl.extract_info(f"{prefix}{first}")
        cpu_before, before = cpu(), time.monotonic()
        for number in range(first + 1, first + 1 + count):
            ydl.extract_info(f"{prefix}{number}")
        print(cpu() - cpu_before, time.monotonic() - before)
    files = [name for name in os.listdir(folder) if name.endswith(".vtt")]
    assert len(files) == count + 1, files
    assert all(os.path.getsize(os.path.join(folder, name)) > 1000 for name in files)
