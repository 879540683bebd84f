"""Checks that independent libraries parse the exported subtitles into the archived cues.

    subtitles.py VERBATIM RECORDING...

Imports texts that try to break out of their cue, and every recording, into a new archive; exports each as SRT and
WebVTT, and parses it with four libraries and ffmpeg. A cue must have the same text and start at the same millisecond.
Readers return character references undecoded, as old players show them.
"""

import html
import io
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

import pysrt
import pysubs2
import srt
import webvtt

HOSTILE = [
    "a --> b",
    "-->",
    "a\n\n2\n00:00:01,000 --> 00:00:02,000\nforged",
    "a\n\n00:00:01.000 --> 00:00:02.000\nforged",
    "00:00:01,000 --> 00:00:00,000",
    "from 00:00:01.000 to 00:00:02.000",
    "I count\n5\n10,000,000 people",
    "a\n2\n00:00:01,000 said the clock",
    "\n\nblank lines\n \n\naround\n\n",
    "<b>bold</b> <i>open <v Ann>hi</v> <00:00:01.000> <font color='red'>red</font>",
    "&lt;i&gt; &amp; &am<b>p; &bogus;",
    "AT&T & co: List<T>, 1 < 2 > 0",
    "well <inaudible> he said",
    "<laughs>",
    "vec<i32> ok",
    "x<y and z>w",
    "if a < b and c > d",
    "<unknown speaker> hi",
    "go </div> on, </i> and <>",
    "{y:2} ok",
    "{y:a{b} c",
    "{curly} x",
    "{Musik}",
    "{s:hello world} ok",
    "set {c:red} now, {a:b} and {P:x",
    "{\\displaystyle x} y",
    "set {\\x now",
    "if (x > 0) {\nreturn x;",
    "{\\an8}top {\\i1 {curly}",
    "12",
    "12\n\n13\nand more",
    "nul\0byte",
    "שלום مرحبا \u202eright to left\u202c",
    "very long " * 2_000,
    "WEBVTT\n\nNOTE b\n\nSTYLE\n\nREGION",
    "\u200b",
    "  blanks around  ",
    "tab\tand\rother\r\nline ends",
    "family 👩\u200d👩\u200d👧, combined e\u0301",
    "No.",
    "No. Never.",
    "\ufeffmark",
]


def segments():
    """Returns the hostile texts, a second apart; one third has no duration, one third overlaps the next."""
    timed = [
        {"text": text, "start": index, "duration": (1.0, 0.0, 2.5)[index % 3]} for index, text in enumerate(HOSTILE)
    ]
    after = float(len(HOSTILE))
    return timed + [
        {"text": "two at", "start": after, "duration": 1.0},
        {"text": "the same time", "start": after, "duration": 2.0},
        # Some libraries support only two digits of hours.
        {"text": "late", "start": 359_990.999, "duration": 1.0},
    ]


def milliseconds(duration):
    return round(duration.total_seconds() * 1000)


def read_srt(text):
    return [(milliseconds(cue.start), milliseconds(cue.end), cue.content) for cue in srt.parse(text)]


def read_pysrt(text):
    return [(cue.start.ordinal, cue.end.ordinal, cue.text) for cue in pysrt.from_string(text)]


def read_pysubs2(text, form):
    subtitles = pysubs2.SSAFile.from_string(text, format_=form, keep_html_tags=True)
    return [(cue.start, cue.end, cue.text) for cue in subtitles]


def read_webvtt_py(text, form):
    def to_ms(time):
        return ((time.hours * 60 + time.minutes) * 60 + time.seconds) * 1000 + time.milliseconds

    cues = webvtt.from_buffer(io.StringIO(text), format=form)
    return [(to_ms(cue.start_time), to_ms(cue.end_time), cue.raw_text) for cue in cues]


def read_ffmpeg(text, form):
    """Returns the cues that ffmpeg shows. It splits lines of more than 4,095 bytes, and strips the blanks there."""

    def to_ms(time):
        return milliseconds(srt.srt_timestamp_to_timedelta(time))

    demuxer = {"srt": "srt", "vtt": "webvtt"}[form]
    command = ["ffmpeg", "-v", "error", "-f", demuxer, "-i", "pipe:0", "-f", "srt", "pipe:1"]
    shown = subprocess.run(command, input=text.encode(), capture_output=True, check=True).stdout.decode()
    shown = re.sub("(?<=[^\n]{4000})\n", " ", shown.replace("\r\n", "\n"))
    _, *parts = re.split(r"(?m)^\d+\n([\d:,]+) --> ([\d:,]+)\n", shown)
    if form == "vtt":
        # It escapes braces in WebVTT, and decodes all references but those with numbers.
        parts = [re.sub(r"\\([{}])", r"\1", re.sub(r"&(?!#\d+;)", "&amp;", part)) for part in parts]
    return [(to_ms(start), to_ms(end), cue) for start, end, cue in zip(parts[::3], parts[1::3], parts[2::3])]


READERS = {
    "srt": ("srt", read_srt),
    "pysrt": ("srt", read_pysrt),
    "pysubs2 on SRT": ("srt", lambda text: read_pysubs2(text, "srt")),
    "webvtt-py on SRT": ("srt", lambda text: read_webvtt_py(text, "srt")),
    "ffmpeg on SRT": ("srt", lambda text: read_ffmpeg(text, "srt")),
    "pysubs2 on WebVTT": ("vtt", lambda text: read_pysubs2(text, "vtt")),
    "webvtt-py on WebVTT": ("vtt", lambda text: read_webvtt_py(text, "vtt")),
    "ffmpeg on WebVTT": ("vtt", lambda text: read_ffmpeg(text, "vtt")),
}


def normalize(text):
    """Normalizes a text to what all libraries agree on: lines, stripped, with any line ending.

    pysubs2 also reads a backslash followed by N as a line ending.
    """
    lines = text.replace("\u200b", "").replace("\0", "\ufffd").replace("\\N", "\n").splitlines()
    return "\n".join(line.strip() for line in lines).strip()


def is_shown(segment):
    return re.search(r"[^\s\0\u200b-\u200f\u2060\ufeff]", segment["text"]) is not None


def check(name, cues, expected):
    if len(cues) != len(expected):
        sys.exit(f"{name}: {len(cues)} cues for {len(expected)} segments")
    for number, ((start, end, text), segment) in enumerate(zip(cues, expected)):
        if start != round(segment["start"] * 1000):
            sys.exit(f"{name}: cue {number} starts at {start} ms: {segment}")
        # A duration of 0 is unknown.
        if not start < end <= round((segment["start"] + (segment["duration"] or 5.0)) * 1000):
            sys.exit(f"{name}: cue {number} ends at {end} ms: {segment}")
        if normalize(html.unescape(text)) != normalize(segment["text"]):
            sys.exit(f"{name}: cue {number} reads {text!r} for {segment['text']!r}")


def main(program, recordings):
    program = pathlib.Path(program).resolve()
    with tempfile.TemporaryDirectory() as folder:
        environment = {name: value for name, value in os.environ.items() if not name.startswith("VERBATIM_")}
        environment["VERBATIM_DATA"] = f"{folder}/data"

        def verbatim(*arguments):
            done = subprocess.run([program, *arguments], env=environment, capture_output=True, check=False)
            if done.returncode != 0:
                sys.exit(f"verbatim {' '.join(arguments)}: {done.stderr.decode()}")
            return done.stdout.decode()

        hostile = pathlib.Path(folder, "hostile.json")
        hostile.write_text(json.dumps(segments()), encoding="utf-8")
        cues = 0
        for number, file in enumerate([str(hostile), *recordings]):
            video = f"subtitle{number:03}"
            verbatim("import", file, "--video", video, "--lang", "en")
            archived = json.loads(verbatim("get", video, "--format", "json"))["transcript"]
            expected = [segment for segment in archived if is_shown(segment)]
            cues += len(expected)
            files = {form: verbatim("get", video, "--format", form) for form in ("srt", "vtt")}
            written = read_srt(files["srt"])
            # ffmpeg shows equal cues once.
            pairs = zip(expected, written, [None, *written])
            distinct = [segment for segment, cue, before in pairs if cue != before]
            for reader, (form, read) in READERS.items():
                check(f"{file} by {reader}", read(files[form]), distinct if "ffmpeg" in reader else expected)
        print(f"  {cues} cues of {len(recordings) + 1} transcripts, by {len(READERS)} readers")


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
