"""The other package's own tests, unmodified, on this one."""

from __future__ import annotations

import importlib.metadata
import os
import tempfile
from collections.abc import Iterator

import platform_server
import pytest

PLATFORM = platform_server.Platform()
PLATFORM.as_responses()
_CA_FILE = tempfile.NamedTemporaryFile(suffix=".pem")
PLATFORM.authority.cert_pem.write_to_path(_CA_FILE.name)
# As `requests` has them from the environment, so has this package.
for name in list(os.environ):
    if name.lower().endswith("_proxy"):
        del os.environ[name]
os.environ["HTTPS_PROXY"] = PLATFORM.proxy
os.environ["REQUESTS_CA_BUNDLE"] = _CA_FILE.name

_version = importlib.metadata.version


def _version_of_the_stand_in(name: str) -> str:
    """This distribution has a name of its own; the module is the other one's."""
    return _version("verbatim-youtube-transcript-api" if name == "youtube-transcript-api" else name)


importlib.metadata.version = _version_of_the_stand_in


@pytest.fixture
def platform() -> Iterator[platform_server.Platform]:
    PLATFORM.stage.reset()
    yield PLATFORM
    PLATFORM.stage.reset()
