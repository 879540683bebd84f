"""Fixtures. Platform responses come from the replay proxy, so the tests run the production code unchanged."""

from __future__ import annotations

import os
import pathlib
import signal
import subprocess
from collections.abc import Iterator
from typing import NamedTuple

import pytest

import verbatim_transcripts as vt

ROOT = pathlib.Path(__file__).resolve().parents[2]
TARGET = pathlib.Path(os.environ.get("CARGO_TARGET_DIR") or ROOT / "target").resolve()
SRT = "1\n00:00:01,500 --> 00:00:03,000\nIt is so quiet here.\n\n2\n00:01:01,000 --> 00:01:04,000\nThe café is closed.\n"
LINK = "https://youtu.be/dQw4w9WgXcQ"


class Replay(NamedTuple):
    """A running replay proxy."""

    proxy: str
    ca_file: str


def run_replay(*folders: pathlib.Path) -> Iterator[Replay]:
    process = subprocess.Popen(
        [TARGET / "debug" / "replay", *(argument for folder in folders for argument in ("--recordings", folder))],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    try:
        fields = dict(process.stdout.readline().split() for _ in range(2))
        yield Replay(fields["proxy"], fields["ca"])
    finally:
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=30)
        unexpected = [line for line in errors.splitlines() if line.startswith("unexpected:")]
        assert not unexpected


@pytest.fixture(scope="session")
def replay() -> Iterator[Replay]:
    recordings = ROOT / "tests" / "recordings"
    yield from run_replay(recordings / "youtube", recordings / "youtube-lists")


@pytest.fixture
def youtube(replay: Replay) -> Iterator[vt.Transcripts]:
    """Transcripts from recorded responses of YouTube, archived in memory."""
    with vt.Transcripts(proxies=replay.proxy, ca_file=replay.ca_file) as transcripts:
        yield transcripts


@pytest.fixture
def imported() -> Iterator[vt.Transcripts]:
    """One imported transcript, and no suppliers."""
    with vt.Transcripts(suppliers=[]) as transcripts:
        transcripts.import_(LINK, SRT, lang="en", title="A quiet day", author="Ann")
        yield transcripts


@pytest.fixture
def transcript(imported: vt.Transcripts) -> vt.Transcript:
    return imported.get(LINK)
