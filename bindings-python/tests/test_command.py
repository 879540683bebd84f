"""The command `python -m verbatim_transcripts`."""

import json
import os
import signal
import socket
import subprocess
import sys

import pytest
from conftest import LINK, SRT

import verbatim_transcripts as vt
from verbatim_transcripts import Segment, SupplyError, Transcript
from verbatim_transcripts import __main__ as command
from verbatim_transcripts import _commands


@pytest.fixture
def run(replay, tmp_path):
    def run(*arguments):
        return subprocess.run(
            [sys.executable, "-W", "error", "-m", "verbatim_transcripts", *arguments],
            env={"VERBATIM_UPSTREAM__PROXY": replay.proxy, "VERBATIM_UPSTREAM__CA_FILE": replay.ca_file},
            cwd=tmp_path,
            capture_output=True,
            encoding="utf-8",
            timeout=60,
        )

    return run


def test_command_prints_transcripts(run):
    done = run("vb-tracks-0", "--lang", "ja", "--lang", "de", "--format", "json")
    assert done.returncode == 0 and json.loads(done.stdout)["language"] == "de", done.stderr
    done = run("vb-tracks-0", "--list")
    assert done.returncode == 0 and "de\thuman\n" in done.stdout
    assert run("--version").stdout == vt.__version__ + "\n"


@pytest.mark.parametrize(("form", "word"), [("text", "quiet"), ("md", "[0:01]"), ("srt", "00:00:01,500"), ("vtt", "WEBVTT")])
def test_command_reads_archive(run, tmp_path, form, word):
    with vt.Transcripts(tmp_path / "archive.db", suppliers=[]) as transcripts:
        transcripts.import_(LINK, SRT, lang="en")
    done = run(LINK, "--archive", "archive.db", "--no-fetch", "--format", form)
    assert done.returncode == 0 and word in done.stdout and done.stderr == ""


def test_command_failure_sets_status(run, tmp_path):
    done = run("vb-private0", "vb-tracks-0")
    assert done.returncode == 3 and "This video is private." in done.stderr and done.stdout
    assert run("no link").returncode == 2
    (tmp_path / "file").write_text("")
    assert run(LINK, "--archive", "file/archive.db", "--no-fetch").returncode == 1
    for arguments, word in (
        (["--archive", "mysql://nowhere"], "archive must be a path"),
        (["--max-wait", "-1"], "--max-wait"),
        (["--max-wait", "soon"], "--max-wait"),
    ):
        done = run(LINK, *arguments)
        assert done.returncode == 2 and word in done.stderr and "Traceback" not in done.stderr


def test_command_closed_pipe_is_no_failure_report(replay):
    environment = {**os.environ, "VERBATIM_UPSTREAM__PROXY": replay.proxy, "VERBATIM_UPSTREAM__CA_FILE": replay.ca_file}
    command = f"'{sys.executable}' -m verbatim_transcripts vb-tracks-0 vb-asronly0 | true"
    done = subprocess.run(["bash", "-c", command], env=environment, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0 and "Traceback" not in done.stderr


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no /dev/full on this platform")
def test_command_full_disk_is_one_line(tmp_path):
    with vt.Transcripts(tmp_path / "archive.db", suppliers=[]) as transcripts:
        transcripts.import_(LINK, SRT, lang="en")
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "verbatim_transcripts", LINK, "--archive", "archive.db", "--no-fetch"],
            cwd=tmp_path,
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            timeout=60,
        )
    assert done.returncode == 1 and "No space left" in done.stderr and done.stderr.count("\n") == 1


@pytest.fixture
def archive(tmp_path):
    with vt.Transcripts(tmp_path / "archive.db", suppliers=[]) as transcripts:
        transcripts.import_(LINK, SRT, lang="en", title="A quiet\x1b[2J day", author="Ann")
    return ["--archive", "archive.db"]


def test_command_search_prints_moments(run, archive):
    done = run("search", "quiet", "here", *archive)
    assert done.returncode == 0, done.stderr
    title, moment, _ = done.stdout.split("\n", 2)
    assert title == "A quiet [2J day - Ann"
    assert moment == "https://www.youtube.com/watch?v=dQw4w9WgXcQ&t=1s\tIt is so quiet here."
    assert run("search", *archive, "--", "quiet", "-here").stdout == "Nothing was found.\n"
    assert "Did you mean: quiet" in run("search", "queit", *archive).stdout


def test_command_search_names_video_without_title(run, tmp_path):
    with vt.Transcripts(tmp_path / "archive.db", suppliers=[]) as transcripts:
        transcripts.import_(LINK, SRT, lang="en")
    assert run("search", "quiet", "--archive", "archive.db").stdout.startswith("YouTube dQw4w9WgXcQ\n")


def test_command_one_line_keeps_joiners_within_words():
    persian = "\u0645\u06cc\u200c\u0634\u0648\u062f"
    assert _commands._one_line(f"a\x1b\n{persian} ") == f"a {persian}"


def test_command_languages_prints_no_control_characters():
    class OneTrack:
        def languages(self, link, fetch):
            return [vt.Track("en", "human", "a\x1b[2Jb", True, True)]

    assert _commands.tracks(OneTrack(), LINK, False) == "en\thuman\ta [2Jb\n"


def test_command_languages_lists_tracks(run, archive):
    done = run("languages", LINK, "--no-fetch", *archive)
    assert done.returncode == 0 and done.stdout == "en\thuman\n" == run(LINK, "--list", "--no-fetch", *archive).stdout
    done = run("languages", "vb-tracks-0", "--no-fetch")
    assert done.returncode == 0 and done.stdout == ""


def test_command_export_and_import_copy_archive(run, archive, tmp_path):
    done = run("export", "backup", *archive)
    assert done.returncode == 0 and done.stdout == "1 transcripts are in backup\n", done.stderr
    file = tmp_path / "backup" / "video_site" / "dQw4w9WgXcQ" / "en.json"
    assert run("import", "backup", "--archive", "other.db").stdout == "1 added\n"
    assert run("import", "backup", "--archive", "other.db").stdout == "1 unchanged\n"
    file.write_text("{}")
    done = run("export", "backup", *archive)
    assert done.returncode == 1 and "option replace" in done.stderr and file.read_text() == "{}"
    assert run("export", "backup", *archive, "--replace").returncode == 0 and file.read_text() != "{}"


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        (["search", "quiet"], "--archive"),
        (["export"], "FOLDER"),
        (["search", "quiet", "--archive", "a.db", "--limit", "0"], "must be 1 to 100"),
        (["languages", "no link"], "not a link"),
        ([LINK, "--lang", "no language"], "not a language tag"),
    ],
)
def test_command_wrong_arguments_set_status(run, arguments, word):
    done = run(*arguments)
    assert done.returncode == 2 and word in done.stderr and "Traceback" not in done.stderr


def test_command_help_names_every_command(run):
    text = run("--help").stdout
    for name in _commands.NAMES:
        assert name in text and "--archive" in run(name, "--help").stdout


class ThrottledOnceSupplier:
    """Refuses the first call for each video."""

    name = "throttled-once"

    def __init__(self):
        self.calls = []

    def supply(self, request):
        self.calls.append(request.video_id)
        if self.calls.count(request.video_id) == 1:
            raise SupplyError("throttled", "Too many requests.", retry_after=0.2)
        return Transcript(request.url, [Segment(request.video_id, 0, 1)], language="en")


@pytest.mark.parametrize(
    ("arguments", "status"),
    [([], 0), (["--max-wait", "0"], 3), (["--max-wait", "60"], 0)],
)
def test_command_waits_for_throttling_platform(arguments, status, monkeypatch, capsys):
    links = [f"{number:011}" for number in range(20)]
    transcripts = vt.Transcripts(suppliers=[ThrottledOnceSupplier()])
    monkeypatch.setattr(_commands, "shared", lambda: transcripts)
    assert command.main([*links, *arguments]) == status
    captured = capsys.readouterr()
    if status == 0:
        assert captured.out.split() == links and captured.err == ""
    else:
        assert "Too many requests." in captured.err


def test_command_with_one_link_does_not_wait(monkeypatch, capsys):
    transcripts = vt.Transcripts(suppliers=[ThrottledOnceSupplier()])
    monkeypatch.setattr(_commands, "shared", lambda: transcripts)
    assert command.main([LINK]) == 3
    assert "Too many requests." in capsys.readouterr().err


def test_command_interrupted_ends_without_traceback(tmp_path):
    # A server that accepts connections and sends nothing.
    with socket.create_server(("127.0.0.1", 0)) as server:
        proxy = f"http://127.0.0.1:{server.getsockname()[1]}"
        process = subprocess.Popen(
            [sys.executable, "-m", "verbatim_transcripts", LINK],
            env={**os.environ, "VERBATIM_UPSTREAM__PROXY": proxy},
            stderr=subprocess.PIPE,
            text=True,
        )
        connection, _ = server.accept()
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=30)
        connection.close()
    assert process.returncode == 130 and "Traceback" not in errors
