"""What the package costs beside youtube-transcript-api and sqlite3, in turns in the same run.

    python bench.py [fetch | many | archived | import | all] --replay PROGRAM --peer PYTHON

Both sides fetch through the replay proxy, each in processes of its own; CPU and memory are those of the processes
alone. PYTHON is an interpreter that has youtube-transcript-api; ours is the one that runs this. README.md says what is
measured, and the figures.
"""

from __future__ import annotations

import argparse
import json
import pathlib
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager

WORDS = "the keeper lit the lamp at dusk and wrote down what the wind did all night".split()
LINES = 690


def video(number: int) -> str:
    return f"vb-{number:08}"


def recordings(folder: pathlib.Path, videos: int, delay_ms: int) -> None:
    """A platform with this many videos: players of 110 KB, captions of 690 lines, a watch page of 1 MB."""
    manner = f', manner = {{ delay_ms = {delay_ms} }}' if delay_ms else ""
    line = lambda n: " ".join(WORDS[(n + i) % len(WORDS)] for i in range(8))  # noqa: E731
    events = [{"tStartMs": n * 2000, "dDurationMs": 1900, "segs": [{"utf8": line(n)}]} for n in range(LINES)]
    (folder / "captions.json3").write_text(json.dumps({"wireMagic": "pb3", "events": events}))
    cues = "".join(f'<text start="{n * 2}" dur="1.9">{line(n)}</text>' for n in range(LINES))
    (folder / "captions.xml").write_text(f'<?xml version="1.0" encoding="utf-8" ?><transcript>{cues}</transcript>')
    filler = "x" * 900
    (folder / "watch.html").write_text(
        "<html><body>" + "".join(f'<p class="a">&quot;{filler}&quot;</p>' for _ in range(1100))
        + '<script>"INNERTUBE_API_KEY": "key"</script></body></html>'
    )
    index = [
        '[endpoints.watch]\nmethod = "GET"\nhosts = ["www.youtube.com"]\npath = "/watch"\nvideo_in_query = "v"\n',
        '[endpoints.player]\nmethod = "POST"\nhosts = ["www.youtube.com", "youtubei.googleapis.com"]\n'
        'path = "/youtubei/v1/player"\nvideo_in_json = "/videoId"\n',
        '[endpoints.captions]\nmethod = "GET"\nhosts = ["www.youtube.com"]\npath = "/api/timedtext"\n'
        'video_in_query = "v"\n',
    ]
    for number in range(videos):
        name = video(number)
        track = {
            "baseUrl": f"https://www.youtube.com/api/timedtext?v={name}&lang=en&key=yt8",
            "name": {"runs": [{"text": "English"}]},
            "languageCode": "en",
            "isTranslatable": True,
        }
        player = {
            "playabilityStatus": {"status": "OK"},
            "videoDetails": {"videoId": name, "title": "A night", "author": "Ann", "lengthSeconds": "1380"},
            "streamingData": {"formats": [{"url": f"https://a.example/{n}", "mimeType": filler} for n in range(110)]},
            "captions": {"playerCaptionsTracklistRenderer": {"captionTracks": [track]}},
        }
        (folder / f"{name}.json").write_text(json.dumps(player))
        index.append(
            f'[[recording]]\nname = "{name}"\nvideo = "{name}"\nabout = "A video."\nexchanges = [\n'
            f'{{ to = "watch", answers = [{{ file = "watch.html"{manner} }}] }},\n'
            f'{{ to = "player", answers = [{{ file = "{name}.json"{manner} }}] }},\n'
            f'{{ to = "captions", query = {{ fmt = "json3" }}, answers = [{{ file = "captions.json3"{manner} }}] }},\n'
            f'{{ to = "captions", answers = [{{ file = "captions.xml"{manner} }}] }},\n]\n'
        )
    (folder / "index.toml").write_text("\n".join(index))


@contextmanager
def platform(replay: str, videos: int, delay_ms: int = 0):
    with tempfile.TemporaryDirectory() as folder:
        recordings(pathlib.Path(folder), videos, delay_ms)
        process = subprocess.Popen(
            [replay, "--recordings", folder], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )
        said = dict(process.stdout.readline().split() for _ in range(2))
        try:
            yield said["proxy"], said["ca"]
        finally:
            process.terminate()
            process.wait()


OURS = """
import verbatim
transcripts = verbatim.Transcripts(proxies=proxy, ca_file=ca, at_once=200)
transcripts.get(videos.pop())
def run():
    for one in videos: transcripts.get(one)
def many():
    kept = [result.get() for result in transcripts.get_many(videos, at_once=200)]
    return kept
def again():
    for one in videos: transcripts.forget(one)
"""
PEER = """
import os, requests
from concurrent.futures import ThreadPoolExecutor
from youtube_transcript_api import YouTubeTranscriptApi
os.environ["REQUESTS_CA_BUNDLE"] = ca
os.environ["HTTPS_PROXY"] = proxy
api = YouTubeTranscriptApi()
api.fetch(videos.pop())
def run():
    for one in videos: api.fetch(one)
def many():
    with ThreadPoolExecutor(200) as pool:
        return list(pool.map(lambda one: YouTubeTranscriptApi().fetch(one), videos))
def again(): pass
"""
MEASURE = """
import json, resource, sys, time
proxy, ca, videos, what, batches = json.loads(sys.argv[1])
{setup}
took = []
before = resource.getrusage(resource.RUSAGE_SELF)
for _ in range(batches):
    start = time.monotonic()
    kept = {{"run": run, "many": many}}[what]()
    took.append(time.monotonic() - start)
    if batches > 1: again()
after = resource.getrusage(resource.RUSAGE_SELF)
cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
print(json.dumps([cpu / len(videos) / batches, took, after.ru_maxrss]))
"""


def measured(python: str, setup: str, *arguments) -> tuple[float, list[float], int]:
    """CPU seconds a video, seconds for each batch, and memory in KiB."""
    program = MEASURE.format(setup=setup)
    done = subprocess.run(
        [python, "-c", program, json.dumps(arguments)], capture_output=True, text=True, check=False
    )
    if done.returncode:
        sys.exit(done.stderr)
    return json.loads(done.stdout.splitlines()[-1])


def fetch(options: argparse.Namespace) -> None:
    sides = {"verbatim": (sys.executable, OURS), "the stand-in": (sys.executable, PEER), "the peer": (options.peer, PEER)}
    figures: dict[str, list[float]] = {name: [] for name in sides}
    with platform(options.replay, 61) as (proxy, ca):
        for _ in range(5):
            for name, (python, setup) in sides.items():
                videos = [video(n) for n in range(61)]
                figures[name].append(measured(python, setup, proxy, ca, videos, "run", 1)[0])
    told = {name: statistics.median(values) * 1000 for name, values in figures.items()}
    for name, value in told.items():
        print(f"CPU a transcript, {name:12} {value:7.2f} ms, 1/{told['the peer'] / value:.1f} of the peer")


#: Milliseconds that every answer takes, and how many answers must follow each other: the player's and the captions'.
LATENCY, STEPS = 100, 2


def many(options: argparse.Namespace) -> None:
    floor = LATENCY * STEPS / 1000
    sides = {"verbatim": (sys.executable, OURS, 8), "the peer": (options.peer, PEER, 1)}
    memory = {}
    with platform(options.replay, 201, delay_ms=LATENCY) as (proxy, ca):
        for name, (python, setup, batches) in sides.items():
            rounds = [
                measured(python, setup, proxy, ca, [video(n) for n in range(201)], "many", batches)
                for _ in range(3)
            ]
            memory[name] = statistics.median(each[2] for each in rounds)
            first = statistics.median(each[1][0] for each in rounds)
            told = f"200 videos, 100 ms an answer, {name:9} {first:6.3f} s at first"
            if batches > 1:
                later = statistics.median(took for each in rounds for took in each[1][1:])
                told += f", {later:6.3f} s over connections that are there: {later / floor:.2f} of the floor"
            print(f"{told}, {memory[name] / 1024:6.1f} MiB")
    print(f"memory: 1/{memory['the peer'] / memory['verbatim']:.1f} of the peer's")


ARCHIVED = """
import json, random, sqlite3, statistics, sys, time
import verbatim
file = sys.argv[1]
words = "the keeper lit the lamp at dusk and wrote down what the wind did all night é à ü".split()
chance = random.Random(7)
def at(n): return f"{n // 3600:02}:{n // 60 % 60:02}:{n % 60:02}"
def captions():
    lines = (" ".join(chance.choices(words, k=9)) for _ in range(2000))
    return "".join(f"{n + 1}\\n{at(n)},000 --> {at(n)},900\\n{line}\\n\\n" for n, line in enumerate(lines))
ids = [f"vb-{n:08}" for n in range(400)]
def timed(work, times=400):
    rounds = []
    for _ in range(7):
        start = time.perf_counter()
        for _ in range(times): work()
        rounds.append((time.perf_counter() - start) / times * 1e6)
    return statistics.median(rounds)
with verbatim.Transcripts(file, suppliers=[]) as transcripts:
    for one in ids: transcripts.import_(one, captions(), lang="en")
    got = transcripts.get(ids[0])
    assert len(got) == 2000
    dicts = got.to_dicts()
    # The very row that ours reads, by the same keys, and beside it one with the segments as plain JSON.
    database = sqlite3.connect(f"file:{file}?mode=ro", uri=True)
    read = "select b.content_sha256, b.checksum, b.length, b.source, b.segments from wishes w join bodies b on b.transcript = w.transcript where w.video = ? and w.wish = 'default'"
    plain = sqlite3.connect(file + ".plain")
    plain.execute("create table t (id text primary key, body blob)")
    plain.executemany("insert into t values (?, ?)", [(one, json.dumps(dicts).encode()) for one in ids])
    plain.commit()
    def row(one): return database.execute(read, ("video_site/" + one,)).fetchone()
    def plain_row(one): return plain.execute("select body from t where id = ?", (one,)).fetchone()[0]
    assert len(row(ids[0])[4]) > 10_000 and len(plain_row(ids[0])) > 100_000
    def any_of(work): return lambda: work(chance.choice(ids))
    def one_of(work): return lambda: work(ids[0])
    def each_of_ours():
        for s in got.segments: s.text, s.start, s.duration
    def each_dict():
        for s in dicts: s["text"], s["start"], s["duration"]
    start = time.perf_counter()
    each_of_ours()
    first = (time.perf_counter() - start) * 1e6
    def first_time():
        for s in transcripts.get(ids[0]).segments: s.text, s.start, s.duration
    figures = {
        "get, the same one": timed(one_of(transcripts.get)),
        "sqlite3, the same row": timed(one_of(row)),
        "sqlite3, the same row as JSON": timed(one_of(plain_row)),
        "get, any of 400": timed(any_of(transcripts.get), 100),
        "sqlite3, any of 400 rows": timed(any_of(row), 100),
        "sqlite3, any row as JSON": timed(any_of(plain_row), 100),
        "sqlite3, any row and json.loads": timed(any_of(lambda one: json.loads(plain_row(one))), 100),
        "all segments": timed(each_of_ours),
        "all segments, for the first time": timed(first_time),
        "a list of dicts": timed(each_dict),
    }
    for name, value in figures.items():
        print(f"{name:34} {value:8.1f} µs")
    print(f"get: {figures['get, the same one'] / figures['sqlite3, the same row']:.2f} of sqlite3; "
          f"segments: {figures['all segments'] / figures['a list of dicts']:.2f} of dicts")
"""


def archived(_: argparse.Namespace) -> None:
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([sys.executable, "-c", ARCHIVED, f"{folder}/kept.db"], check=True)


def imports(options: argparse.Namespace) -> None:
    program = "import resource, time; s = time.perf_counter(); import {0}; print(time.perf_counter() - s, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)"
    bare = "import resource; print(0, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)"

    def median(python: str, text: str) -> list[float]:
        runs = [
            [float(part) for part in subprocess.run([python, "-c", text], capture_output=True, text=True, check=True).stdout.split()]
            for _ in range(15)
        ]
        return [statistics.median(run[place] for run in runs) for place in (0, 1)]

    _, base = median(sys.executable, bare)
    for name, python, module in (
        ("verbatim", sys.executable, "verbatim"),
        ("the stand-in", sys.executable, "youtube_transcript_api"),
        ("the peer", options.peer, "youtube_transcript_api"),
    ):
        seconds, memory = median(python, program.format(module))
        print(f"import of {name:12} {seconds * 1000:6.1f} ms, {(memory - base) / 1024:5.1f} MiB more")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("fetch", "many", "archived", "import", "all"))
    parser.add_argument("--replay", default="replay")
    parser.add_argument("--peer", default=sys.executable)
    options = parser.parse_args()
    print(f"Python {sys.version.split()[0]}, {time.strftime('%Y-%m-%d')}, {resource.getpagesize()} B pages")
    for name, bench in (("import", imports), ("archived", archived), ("fetch", fetch), ("many", many)):
        if options.what in (name, "all"):
            bench(options)


if __name__ == "__main__":
    main()
