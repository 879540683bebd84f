"""Fetches captions with yt-dlp, or finds the media URLs; prints CPU and wall time in seconds: of the library for all
videos, then of the program for one more.

Usage: ytdlp.py LINK_PREFIX FIRST COUNT captions|media. The proxy comes from the environment, as HTTPS_PROXY. The first
lookup is not measured: it opens connections, loads modules and gets a guest token.
"""

import os
import resource
import subprocess
import sys
import tempfile
import time

import yt_dlp

prefix, first, count = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
wants_captions = sys.argv[4] == "captions"


def cpu():
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


with tempfile.TemporaryDirectory() as folder:
    options = {
        "proxy": os.environ["HTTPS_PROXY"],
        # The proxy signs with its own certificate authority.
        "nocheckcertificate": True,
        "skip_download": True,
        "writesubtitles": wants_captions,
        "writeautomaticsub": wants_captions,
        "subtitleslangs": ["all"],
        "outtmpl": os.path.join(folder, "%(id)s"),
        "cachedir": False,
        "quiet": True,
        "no_warnings": True,
        "noprogress": True,
        # Only captions or media URLs are needed, no playable format.
        "ignore_no_formats_error": True,
        "format": "worst",
    }
    with yt_dlp.YoutubeDL(options) as ydl:
        ydl.extract_info(f"{prefix}{first}")
        cpu_before, before = cpu(), time.monotonic()
        for number in range(first + 1, first + 1 + count):
            info = ydl.extract_info(f"{prefix}{number}")
            assert wants_captions or info["formats"], info
        library = cpu() - cpu_before, time.monotonic() - before
    files = [name for name in os.listdir(folder) if name.endswith(".vtt")]
    assert len(files) == (count + 1 if wants_captions else 0), files
    assert all(os.path.getsize(os.path.join(folder, name)) > 1000 for name in files)

with tempfile.TemporaryDirectory() as folder:
    captions = ["--write-subs", "--write-auto-subs", "--sub-langs", "all"] if wants_captions else []
    command = [sys.executable, "-m", "yt_dlp", "--ignore-config", "--proxy", os.environ["HTTPS_PROXY"]]
    command += ["--no-check-certificate", "--skip-download", "--no-cache-dir", "--ignore-no-formats-error", "-q"]
    before = time.monotonic()
    link = f"{prefix}{first + 1 + count}"
    subprocess.run([*command, *captions, "-P", folder, link], check=True, stdout=subprocess.DEVNULL)
    wall, usage = time.monotonic() - before, resource.getrusage(resource.RUSAGE_CHILDREN)
    assert not wants_captions or any(name.endswith(".vtt") for name in os.listdir(folder))
print(*library, usage.ru_utime + usage.ru_stime, wall)
