"""The platforms' answers come from the replay proxy: what is tested is the code of production, to the address."""

from __future__ import annotations

import os
import pathlib
import signal
import subprocess
from collections.abc import Iterator
from typing import NamedTuple

import pytest

import verbatim

ROOT = pathlib.Path(__file__).resolve().parents[2]
TARGET = pathlib.Path(os.environ.get("CARGO_TARGET_DIR") or ROOT / "target").resolve()
SRT = "1\n00:00:01,500 --> 00:00:03,000\nIt is so quiet here.\n\n2\n00:01:01,000 --> 00:01:04,000\nThe café is closed.\n"
LINK = "https://youtu.be/dQw4w9WgXcQ"


class Replay(NamedTuple):
    """A running replay proxy."""

    proxy: str
    ca_file: str


def replaying(folder: pathlib.Path) -> Iterator[Replay]:
    process = subprocess.Popen(
        [TARGET / "debug" / "replay", "--recordings", folder],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    try:
        said = dict(process.stdout.readline().split() for _ in range(2))
        yield Replay(said["proxy"], said["ca"])
    finally:
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=30)
        unexpected = [line for line in errors.splitlines() if line.startswith("unexpected:")]
        assert not unexpected


@pytest.fixture(scope="session")
def replay() -> Iterator[Replay]:
    yield from replaying(ROOT / "tests" / "recordings" / "youtube")


@pytest.fixture
def youtube(replay: Replay) -> Iterator[verbatim.Transcripts]:
    """Transcripts from the recorded answers of YouTube, kept in memory."""
    with verbatim.Transcripts(proxies=replay.proxy, ca_file=replay.ca_file) as transcripts:
        yield transcripts


@pytest.fixture
def shelf() -> Iterator[verbatim.Transcripts]:
    """One imported transcript, and nobody who is asked."""
    with verbatim.Transcripts(suppliers=[]) as transcripts:
        transcripts.import_(LINK, SRT, lang="en", title="A quiet day", author="Ann")
        yield transcripts


@pytest.fixture
def transcript(shelf: verbatim.Transcripts) -> verbatim.Transcript:
    return shelf.get(LINK)
