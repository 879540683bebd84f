"""The command `python -m verbatim_transcripts`."""

import json
import os
import subprocess
import sys

import pytest
from conftest import LINK, SRT

import verbatim_transcripts as vt


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
    assert run(LINK, "--archive", "mysql://nowhere").returncode == 2


def test_command_closed_pipe_is_no_failure_report(replay):
    environment = {**os.environ, "VERBATIM_UPSTREAM__PROXY": replay.proxy, "VERBATIM_UPSTREAM__CA_FILE": replay.ca_file}
    command = f"'{sys.executable}' -m verbatim_transcripts vb-tracks-0 vb-asronly0 | true"
    done = subprocess.run(["bash", "-c", command], env=environment, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0 and "Traceback" not in done.stderr
