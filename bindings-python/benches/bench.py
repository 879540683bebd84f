"""Benchmarks of the package next to youtube-transcript-api and sqlite3, alternating in one run.

    python bench.py [fetch | many | bad | archived | import | all] --replay PROGRAM --peer PYTHON [--benches PROGRAM]

Both sides fetch through the replay proxy, each in its own processes; CPU and memory are those of these processes.
PYTHON is an interpreter with youtube-transcript-api; the package is installed in the interpreter that runs this script.
README.md describes the measurements and has the figures.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import pathlib
import random
import statistics
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager

WORDS = "the sailor lit the lamp at dusk and wrote down what the wind did all night".split()
LINES = 690


def video(number: int) -> str:
    return f"vb-{number:08}"


def padding(bytes_long: int) -> str:
    """Text of about this length. Its random numbers compress badly, as the tokens in real responses do."""
    chance, parts, length = random.Random(bytes_long), [], 0
    while length < bytes_long:
        parts.append(" ".join(chance.choices(WORDS, k=12)) + f" (of) [list] things {chance.randrange(1 << 31)} ")
        length += len(parts[-1])
    return "".join(parts)


#: Bad answers to the player request of a video: every one, or the first.
BOT_CHECK = {"playabilityStatus": {"status": "LOGIN_REQUIRED", "reason": "Sign in to confirm you\u2019re not a bot"}}
BAD = {"unreadable": ("<html>An error occurred.</html>", False), "bot check": (json.dumps(BOT_CHECK), True)}


def recordings(folder: pathlib.Path, videos: int, delay_ms: int, bad: dict[int, str]) -> None:
    """Writes recordings of videos: player responses of 110 KB, captions of 690 lines, a watch page of 1 MB.

    All of them are compressed, and the key is at the same position of the page as in real responses.
    """
    delay_setting = f', manner = {{ delay_ms = {delay_ms} }}' if delay_ms else ""
    line = lambda n: " ".join(WORDS[(n + i) % len(WORDS)] for i in range(8))  # noqa: E731
    write = lambda name, text: (folder / name).write_bytes(gzip.compress(text.encode()))  # noqa: E731
    answer = lambda name: f'{{ file = "{name}", headers = {{ content-encoding = "gzip" }}{delay_setting} }}'  # noqa: E731
    events = [{"tStartMs": n * 2000, "dDurationMs": 1900, "segs": [{"utf8": line(n)}]} for n in range(LINES)]
    write("captions.json3", json.dumps({"wireMagic": "pb3", "events": events}))
    cues = "".join(f'<text start="{n * 2}" dur="1.9">{line(n)}</text>' for n in range(LINES))
    write("captions.xml", f'<?xml version="1.0" encoding="utf-8" ?><transcript>{cues}</transcript>')
    write(
        "watch.html",
        f'<html><script>var a = "{padding(52_000)}"; ytcfg.set({{"INNERTUBE_API_KEY":"key"}});</script>'
        f"<body><p>{padding(968_000)}</p></body></html>",
    )
    filler = padding(108_000)
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
            "streamingData": {"formats": [filler]},
            "captions": {"playerCaptionsTracklistRenderer": {"captionTracks": [track]}},
        }
        write(f"{name}.json", json.dumps(player))
        players = answer(f"{name}.json")
        if kind := bad.get(number):
            write(f"{name}.bad", BAD[kind][0])
            players = f'{answer(f"{name}.bad")}, {players}' if BAD[kind][1] else answer(f"{name}.bad")
        index.append(
            f'[[recording]]\nname = "{name}"\nvideo = "{name}"\nabout = "A video."\nexchanges = [\n'
            f'{{ to = "watch", answers = [{answer("watch.html")}] }},\n'
            f'{{ to = "player", answers = [{players}] }},\n'
            f'{{ to = "captions", query = {{ fmt = "json3" }}, answers = [{answer("captions.json3")}] }},\n'
            f'{{ to = "captions", answers = [{answer("captions.xml")}] }},\n]\n'
        )
    (folder / "index.toml").write_text("\n".join(index))


@contextmanager
def platform(replay: str, videos: int, delay_ms: int = 0, bad: dict[int, str] | None = None):
    with tempfile.TemporaryDirectory() as folder:
        recordings(pathlib.Path(folder), videos, delay_ms, bad or {})
        process = subprocess.Popen(
            [replay, "--recordings", folder], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )
        fields = dict(process.stdout.readline().split() for _ in range(2))
        try:
            yield fields["proxy"], fields["ca"]
        finally:
            process.terminate()
            process.wait()


OURS = """
import verbatim_transcripts as vt
transcripts = vt.Transcripts(proxies=proxy, ca_file=ca, concurrency=200)
transcripts.get(videos.pop())
def run():
    for one in videos: transcripts.get(one)
def many():
    kept = [result.get() for result in transcripts.get_many(videos, concurrency=200)]
    return kept
def again():
    for one in videos: transcripts.delete(one)
"""
PEER = """
import os
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
proxy, ca, videos, mode, batches = json.loads(sys.argv[1])
{setup}
took = []
before = resource.getrusage(resource.RUSAGE_SELF)
for _ in range(batches):
    start = time.monotonic()
    kept = {{"run": run, "many": many}}[mode]()
    took.append(time.monotonic() - start)
    if batches > 1: again()
after = resource.getrusage(resource.RUSAGE_SELF)
cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
peak = next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith("VmHWM"))
print(json.dumps([cpu / len(videos) / batches, took, peak]))
"""


def measure(python: str, setup: str, *arguments) -> tuple[float, list[float], int]:
    """Returns CPU seconds per video, the seconds of each batch, and memory in KiB."""
    program = MEASURE.format(setup=setup)
    done = subprocess.run(
        [python, "-c", program, json.dumps(arguments)], capture_output=True, text=True, check=False
    )
    if done.returncode:
        sys.exit(done.stderr)
    return json.loads(done.stdout.splitlines()[-1])


def fetch(options: argparse.Namespace) -> None:
    sides = {
        "verbatim": (sys.executable, OURS),
        "the replacement": (sys.executable, PEER),
        "the peer": (options.peer, PEER),
    }
    figures: dict[str, list[float]] = {name: [] for name in sides}
    with platform(options.replay, 61) as (proxy, ca):
        for _ in range(5):
            for name, (python, setup) in sides.items():
                videos = [video(n) for n in range(61)]
                figures[name].append(measure(python, setup, proxy, ca, videos, "run", 1)[0])
    medians = {name: statistics.median(values) * 1000 for name, values in figures.items()}
    for name, value in medians.items():
        print(f"CPU per transcript, {name:15} {value:7.2f} ms, 1/{medians['the peer'] / value:.1f} of the peer")


#: Latency of a response in milliseconds, and the number of dependent responses: player and captions.
LATENCY, STEPS = 100, 2


def alone_with_reqwest(benches: str | None, proxy: str, ca: str, videos: list[str]) -> list[float]:
    """Returns the seconds of seven batches over open connections; an empty list without the program."""
    if benches is None:
        return []
    lines = [videos[:1], *[videos[1:]] * 7]
    text = "".join(" ".join(some) + "\n" for some in lines)
    done = subprocess.run([benches, "least", proxy, ca], input=text, capture_output=True, text=True, check=True)
    return [float(line) for line in done.stdout.splitlines()[1:]]


def many(options: argparse.Namespace) -> None:
    floor = LATENCY * STEPS / 1000
    videos = [video(n) for n in range(201)]
    sides = {"verbatim": (sys.executable, OURS), "the peer": (options.peer, PEER)}
    alone: dict[str, list] = {name: [] for name in sides}
    with platform(options.replay, 201, delay_ms=LATENCY) as (proxy, ca):
        for _ in range(3):
            for name, (python, setup) in sides.items():
                alone[name].append(measure(python, setup, proxy, ca, videos, "many", 1))
        warm = [measure(sys.executable, OURS, proxy, ca, videos, "many", 8) for _ in range(3)]
        least = [took for _ in range(3) for took in alone_with_reqwest(options.benches, proxy, ca, videos)]
    memory = {name: statistics.median(each[2] for each in rounds) for name, rounds in alone.items()}
    for name, rounds in alone.items():
        first, cpu = statistics.median(each[1][0] for each in rounds), statistics.median(each[0] for each in rounds)
        print(f"200 videos, 100 ms per response, {name:9} {first:6.3f} s, {cpu * 1000:5.2f} ms CPU each, "
              f"{memory[name] / 1024:6.1f} MiB")
    later, best = (f(took for each in warm for took in each[1][1:]) for f in (statistics.median, min))
    print(f"again over open connections, verbatim {later:6.3f} s: {later / floor:.2f} of the floor; "
          f"the best {best / floor:.2f}; {statistics.median(each[0] for each in warm) * 1000:.2f} ms CPU each")
    if least:
        took = statistics.median(least)
        print(f"reqwest alone, without parsing: {took:6.3f} s: {took / floor:.2f} of the floor")
    print(f"memory: 1/{memory['the peer'] / memory['verbatim']:.1f} of the peer's")


OURS_BATCH = """
import verbatim_transcripts as vt
transcripts = vt.Transcripts(proxies=proxy, ca_file=ca)
transcripts.get(videos.pop())
def fetch():
    return [result.error for result in transcripts.get_many(videos)]
"""
PEER_BATCH = """
import os
from concurrent.futures import ThreadPoolExecutor
from youtube_transcript_api import YouTubeTranscriptApi
os.environ["REQUESTS_CA_BUNDLE"] = ca
os.environ["HTTPS_PROXY"] = proxy
YouTubeTranscriptApi().fetch(videos.pop())
def one(video):
    try: YouTubeTranscriptApi().fetch(video)
    except Exception as error: return error
def fetch():
    with ThreadPoolExecutor(16) as pool: return list(pool.map(one, videos))
"""
MEASURE_BATCH = """
import json, sys, time
proxy, ca, videos = json.loads(sys.argv[1])
{setup}
start = time.monotonic()
errors = fetch()
print(json.dumps([time.monotonic() - start, sum(error is None for error in errors) / len(errors)]))
"""


def bad(options: argparse.Namespace) -> None:
    """A batch of 200 videos, 16 at once, in which one of twenty gets a bad answer; the last video is a warm-up."""
    cases: dict[str, dict[int, str]] = {
        "no bad answers": {},
        "10 unreadable, spread": {n: "unreadable" for n in range(7, 200, 20)},
        "10 unreadable, at the start": {n: "unreadable" for n in range(10)},
        "10 bot checks, spread": {n: "bot check" for n in range(7, 200, 20)},
        "1 bot check": {7: "bot check"},
    }
    sides = {"verbatim": (sys.executable, OURS_BATCH), "the peer": (options.peer, PEER_BATCH)}
    videos = [video(n) for n in range(201)]
    baseline: dict[str, float] = {}
    for case, answers in cases.items():
        for name, (python, setup) in sides.items():
            runs = []
            for _ in range(3):
                # A bot check is answered once: each run needs a new platform.
                with platform(options.replay, 201, LATENCY, answers) as (proxy, ca):
                    program, arguments = MEASURE_BATCH.format(setup=setup), json.dumps([proxy, ca, videos])
                    command = [python, "-c", program, arguments]
                    done = subprocess.run(command, capture_output=True, text=True, check=True)
                    runs.append(json.loads(done.stdout))
            wall, share = (statistics.median(run[index] for run in runs) for index in (0, 1))
            ratio = wall / baseline.setdefault(name, wall)
            print(f"{case:28} {name:9} {wall:6.2f} s, {ratio:4.2f} of the first, {share:6.1%} delivered")


ARCHIVED = """
import itertools, json, random, sqlite3, statistics, sys, time
import verbatim_transcripts as vt
file = sys.argv[1]
words = "the sailor lit the lamp at dusk and wrote down what the wind did all night é à ü".split()
chance = random.Random(7)
def at(n): return f"{n // 3600:02}:{n // 60 % 60:02}:{n % 60:02}"
def captions():
    lines = (" ".join(chance.choices(words, k=9)) for _ in range(2000))
    return "".join(f"{n + 1}\\n{at(n)},000 --> {at(n)},900\\n{line}\\n\\n" for n, line in enumerate(lines))
ids = [f"vb-{n:08}" for n in range(400)]
# More than the cache of 16 MiB holds: each one is evicted before it is requested again.
more = [f"vb-{n:08}" for n in range(400, 1600)]
cpu = time.process_time
def once(work, times):
    start, began = time.perf_counter(), cpu()
    for _ in range(times): work()
    return (time.perf_counter() - start) / times * 1e6, (cpu() - began) / times * 1e6
# Alternating, so that no side has warmer caches; the first round is the warm-up.
def in_rounds(works, rounds=15):
    took = {name: [] for name in works}
    for _ in range(rounds + 1):
        for name, (work, times) in works.items(): took[name].append(once(work, times))
    return {name: [statistics.median(each[index] for each in all[1:]) for index in (0, 1)] for name, all in took.items()}
with vt.Transcripts(file, suppliers=[]) as transcripts:
    text = captions()
    for one in ids: transcripts.import_(one, captions(), lang="en")
    for one in more: transcripts.import_(one, text, lang="en")
    got = transcripts.get(ids[0])
    assert len(got) == 2000
    dicts = got.to_dicts()
    # The row that the package reads, by the same keys, and a row with the segments as plain JSON.
    database = sqlite3.connect(f"file:{file}?mode=ro", uri=True)
    read = "select b.content_sha256, b.checksum, b.length, b.source, b.segments from wishes w join bodies b on b.transcript = w.transcript where w.video = ? and w.wish = 'default'"
    plain = sqlite3.connect(file + ".plain")
    plain.execute("create table t (id text primary key, body blob)")
    plain.executemany("insert into t values (?, ?)", [(one, json.dumps(dicts).encode()) for one in ids])
    plain.commit()
    # All that the package reads: also version, words, metadata, tracks, and whether the video is withdrawn.
    read_all = '''select c.count, t.revision, t.parser_version, t.stored_at, b.content_sha256, b.checksum, b.length, b.source,
        b.about, b.segments, o.bytes, d.metadata, d.tracks
        from wishes w join changes c join transcripts t on t.id = w.transcript join bodies b on b.transcript = t.id
        left join words o on o.transcript = t.id left join details d on d.video = w.video
        where w.video = ? and w.wish = 'default' and not exists (select 1 from withdrawals where video = w.video)'''
    def row(one): return database.execute(read, ("video_site/" + one,)).fetchone()
    def whole_row(one): return database.execute(read_all, ("video_site/" + one,)).fetchone()
    def plain_row(one): return plain.execute("select body from t where id = ?", (one,)).fetchone()[0]
    assert len(row(ids[0])[4]) > 10_000 and row(ids[0])[4] == whole_row(ids[0])[9] and len(plain_row(ids[0])) > 100_000
    def any_of(work): return lambda: work(chance.choice(ids))
    def one_of(work): return lambda: work(ids[0])
    ours, theirs, all_theirs = itertools.cycle(more), itertools.cycle(more), itertools.cycle(more)
    def in_order(work, ids): return lambda: work(next(ids))
    def each(segments):
        for s in segments: s.text, s.start, s.duration
    def each_dict(dicts):
        for s in dicts: s["text"], s["start"], s["duration"]
    # A transcript is cached on its second request.
    for one in ids + ids: transcripts.get(one)
    figures = in_rounds({
        "get, the same one": (one_of(transcripts.get), 400),
        "sqlite3, the same row": (one_of(row), 400),
        "sqlite3, the same row as JSON": (one_of(plain_row), 400),
        "get, any of 400": (any_of(transcripts.get), 100),
        "sqlite3, any of 400 rows": (any_of(row), 100),
        "sqlite3, any row as JSON": (any_of(plain_row), 100),
        "get, from the file": (in_order(transcripts.get, ours), 400),
        "get in a language, from the file": (in_order(lambda one: transcripts.get(one, "en"), itertools.cycle(more)), 400),
        "sqlite3, such rows": (in_order(row, theirs), 400),
        "sqlite3, all data of such rows": (in_order(whole_row, all_theirs), 400),
        "get, from the file, and its text": (in_order(lambda one: transcripts.get(one).text, ours), 100),
        "sqlite3, any row and json.loads": (any_of(lambda one: json.loads(plain_row(one))), 50),
        "all segments": (lambda: each(got.segments), 100),
        "a list of dicts": (lambda: each_dict(dicts), 100),
        "all segments, for the first time": (lambda: each(transcripts.get(ids[0]).segments), 100),
        "json.loads and all dicts": (lambda: each_dict(json.loads(plain_row(ids[0]))), 50),
    })
    for name, (wall, used) in figures.items():
        print(f"{name:34} {wall:8.1f} µs, {used:8.1f} µs CPU")
    ratio = lambda ours, theirs: f"{figures[ours][0] / figures[theirs][0]:.2f}"
    print("get, of sqlite3: the same", ratio("get, the same one", "sqlite3, the same row"),
          "any", ratio("get, any of 400", "sqlite3, any of 400 rows"),
          "from the file", ratio("get, from the file", "sqlite3, such rows"),
          "or with all data", ratio("get, from the file", "sqlite3, all data of such rows"))
    print("segments, of dicts:", ratio("all segments", "a list of dicts"),
          "for the first time", ratio("all segments, for the first time", "json.loads and all dicts"), "of json.loads and dicts")
"""


def archived(_: argparse.Namespace) -> None:
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([sys.executable, "-c", ARCHIVED, f"{folder}/kept.db"], check=True)


def imports(options: argparse.Namespace) -> None:
    # VmHWM, because `ru_maxrss` includes memory inherited from the parent process.
    peak = "next(line.split()[1] for line in open('/proc/self/status') if line.startswith('VmHWM'))"
    program = f"import time; s = time.perf_counter(); c = time.process_time(); import {{0}}; print(time.perf_counter() - s, time.process_time() - c, {peak})"
    bare = f"print(0, 0, {peak})"

    def median(python: str, text: str) -> list[float]:
        runs = [
            [float(part) for part in subprocess.run([python, "-c", text], capture_output=True, text=True, check=True).stdout.split()]
            for _ in range(15)
        ]
        return [statistics.median(run[index] for run in runs) for index in (0, 1, 2)]

    base = median(sys.executable, bare)[2]
    for name, python, module in (
        ("verbatim", sys.executable, "verbatim_transcripts"),
        ("the replacement", sys.executable, "youtube_transcript_api"),
        ("the peer", options.peer, "youtube_transcript_api"),
    ):
        seconds, cpu, memory = median(python, program.format(module))
        row = f"{seconds * 1000:6.1f} ms, {cpu * 1000:6.1f} ms CPU, {(memory - base) / 1024:5.1f} MiB more"
        print(f"import of {name:15} {row}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("fetch", "many", "bad", "archived", "import", "all"))
    parser.add_argument("--replay", default="replay")
    parser.add_argument("--peer", default=sys.executable)
    parser.add_argument("--benches", help="target/release/verbatim-benches: also measure reqwest alone")
    options = parser.parse_args()
    load = "/".join(f"{load:.1f}" for load in os.getloadavg())
    print(f"Python {sys.version.split()[0]}, {time.strftime('%Y-%m-%d')}, load {load}")
    for name, bench in (("import", imports), ("archived", archived), ("fetch", fetch), ("many", many), ("bad", bad)):
        if options.what in (name, "all"):
            bench(options)


if __name__ == "__main__":
    main()
