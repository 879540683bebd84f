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
    monkeypatch.setattr(command, "shared", lambda: transcripts)
    assert command.main([*links, *arguments]) == status
    captured = capsys.readouterr()
    if status == 0:
        assert captured.out.split() == links and captured.err == ""
    else:
        assert "Too many requests." in captured.err


def test_command_with_one_link_does_not_wait(monkeypatch, capsys):
    transcripts = vt.Transcripts(suppliers=[ThrottledOnceSupplier()])
    monkeypatch.setattr(command, "shared", lambda: transcripts)
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
