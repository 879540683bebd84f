"""A client whose key is replaced while its calls run."""

import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from conftest import LINK
from fake_server import RestartingServer

import verbatim_transcripts as vt
from verbatim_transcripts import Client


@pytest.mark.parametrize("api", ["vbk", "vba"])
def test_get_many_waits_and_goes_on_with_new_key(api):
    running = RestartingServer([429, 404], retry_after=5)
    client = Client(running.address, f"{api}_old", retries=0)
    try:
        with ThreadPoolExecutor(1) as pool:
            results = pool.submit(lambda: list(client.get_many([LINK])))
            while len(running.statuses) == 2 and not results.done():
                time.sleep(0.01)
            client.use_key(f"{api}_new")
            assert len(results.result(60)) == 1
    finally:
        running.stop()
    assert running.keys == [f"{api}_old", f"{api}_new"]


@pytest.mark.parametrize(("old", "new"), [("vbk_old", "vba_new"), ("vba_old", "vbk_new"), (None, "vba_new")])
def test_get_many_keeps_api_after_new_key(old, new):
    running = RestartingServer([429], retry_after=1, final=404)
    client = Client(running.address, old, retries=0)
    links = [f"https://youtu.be/vb-tracks-{number}" for number in range(3)]
    try:
        with ThreadPoolExecutor(1) as pool:
            results = pool.submit(lambda: list(client.get_many(links, concurrency=2)))
            while running.statuses and not results.done():
                time.sleep(0.01)
            client.use_key(new)
            assert len(results.result(60)) == 3
    finally:
        running.stop()
    assert set(running.keys) == {old or ""} and len(running.keys) == 4


def test_request_refused_after_rotation_is_repeated_with_new_key():
    # The client repeats the first request itself, with the key that is no longer valid then.
    running = RestartingServer([429, 401, 404], retry_after=3)
    client = Client(running.address, "vba_old")
    try:
        with ThreadPoolExecutor(1) as pool:
            results = pool.submit(lambda: list(client.get_many([LINK])))
            while len(running.statuses) == 3 and not results.done():
                time.sleep(0.01)
            client.use_key("vba_new")
            (result,) = results.result(60)
    finally:
        running.stop()
    assert running.keys == ["vba_old", "vba_old", "vba_new"]
    assert isinstance(result.error, vt.TranscriptUnavailable)
