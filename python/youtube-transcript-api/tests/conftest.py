"""Runs the unmodified tests of youtube-transcript-api with this package."""

from __future__ import annotations

import importlib.metadata
import os
import tempfile
from collections.abc import Iterator

import platform_server
import pytest
import stubbed_video

PLATFORM = platform_server.Platform()
PLATFORM.as_responses()
_CA_FILE = tempfile.NamedTemporaryFile(suffix=".pem")
PLATFORM.authority.cert_pem.write_to_path(_CA_FILE.name)
# As `requests`, this package reads proxies and certificates from the environment.
for name in list(os.environ):
    if name.lower().endswith("_proxy"):
        del os.environ[name]
os.environ["HTTPS_PROXY"] = PLATFORM.proxy
os.environ["REQUESTS_CA_BUNDLE"] = _CA_FILE.name

_version = importlib.metadata.version


def _version_of_replacement(name: str) -> str:
    """Returns the version of this distribution for the replaced one."""
    return _version("verbatim-youtube-transcript-api" if name == "youtube-transcript-api" else name)


importlib.metadata.version = _version_of_replacement


@pytest.fixture
def platform() -> Iterator[platform_server.Platform]:
    PLATFORM.table.reset()
    yield PLATFORM
    PLATFORM.table.reset()


@pytest.fixture
def table(platform: platform_server.Platform) -> platform_server.StubTable:
    """Stubs of a video with English captions."""
    platform.table.add("GET", stubbed_video.WATCH, stubbed_video.PAGE)
    platform.table.add("POST", stubbed_video.PLAYER, stubbed_video.player())
    platform.table.add("GET", stubbed_video.CAPTIONS, stubbed_video.XML)
    return platform.table
