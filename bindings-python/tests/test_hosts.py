"""Where programs run: a server that forks its workers, a notebook's kernel, pools of processes, other event loops."""

import asyncio
import concurrent.futures
import http.client
import json
import multiprocessing
import os
import pathlib
import re
import signal
import subprocess
import sys
import threading
import time

import pytest
from conftest import LINK, SRT

import verbatim

TEXT = "It is so quiet here.\n\nThe café is closed.\n"
PATIENCE = 60


@pytest.fixture
def file(tmp_path: pathlib.Path) -> str:
    """An archive with one transcript."""
    name = str(tmp_path / "kept.db")
    with verbatim.Transcripts(name, suppliers=[]) as transcripts:
        transcripts.import_(LINK, SRT, lang="en")
    return name


APPLICATION = """
import json, os
import verbatim

transcripts = verbatim.Transcripts(os.environ["ARCHIVE"], proxies=os.environ["PROXY"], ca_file=os.environ["CA_FILE"])
# Opened, and its connections made, before anything is forked.
before = transcripts.get("vb-tracks-0")

def application(environ, start_response):
    link = environ["PATH_INFO"].strip("/")
    transcript = transcripts.get(link)
    start_response("200 OK", [("Content-Type", "application/json")])
    return [json.dumps([os.getpid(), transcript.text, before.title]).encode()]
"""


class Gunicorn:
    """A running server, which forks its workers after the application was loaded and used."""

    def __init__(self, folder: pathlib.Path, file: str, replay, *arguments: str) -> None:
        (folder / "shop.py").write_text(APPLICATION)
        self.log = folder / "log"
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "gunicorn", "--preload", "--bind", "127.0.0.1:0", *arguments, "shop:application"],
                cwd=folder,
                env={**os.environ, "ARCHIVE": file, "PROXY": replay.proxy, "CA_FILE": replay.ca_file},
                stderr=log,
            )
        self.port = int(self.said(r"Listening at: http://127\.0\.0\.1:(\d+)"))

    def said(self, pattern: str) -> str:
        end = time.monotonic() + PATIENCE
        while not (found := re.search(pattern, self.log.read_text())):
            assert time.monotonic() < end and self.process.poll() is None, self.log.read_text()
            time.sleep(0.02)
        return found[1]

    def get(self, link: str) -> tuple[int, str]:
        """The worker's id, and the text that it has."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE)
        connection.request("GET", f"/{link}")
        answer = connection.getresponse()
        assert answer.status == 200, self.log.read_text()
        pid, text, title = json.loads(answer.read())
        connection.close()
        assert title == "How a tide mill works" and pid != self.process.pid
        return pid, text


@pytest.mark.parametrize("kind", [("--workers", "3"), ("--workers", "2", "--threads", "4")], ids=["sync", "threads"])
def test_workers_that_gunicorn_forks(kind, tmp_path, file, replay):
    server = Gunicorn(tmp_path, file, replay, *kind)
    try:
        # Until every worker has answered: which one does is the kernel's choice.
        workers, end = set(), time.monotonic() + PATIENCE
        with concurrent.futures.ThreadPoolExecutor(8) as pool:
            while len(workers) < int(kind[1]) and time.monotonic() < end:
                for pid, text in pool.map(server.get, ["dQw4w9WgXcQ"] * 24):
                    assert text == TEXT
                    workers.add(pid)
        assert len(workers) == int(kind[1])
        # Fetched by a worker, and archived for the others.
        assert {text for _, text in map(server.get, ["vb-french-0"] * 12)} == {server.get("vb-french-0")[1]}
        # One that ends is forked anew, out of a process that has long been at work.
        os.kill(next(iter(workers)), signal.SIGTERM)
        end = time.monotonic() + PATIENCE
        while server.get("dQw4w9WgXcQ")[0] in workers:
            assert time.monotonic() < end, server.log.read_text()
        server.process.send_signal(signal.SIGTERM)
        assert server.process.wait(PATIENCE) == 0, server.log.read_text()
    finally:
        server.process.kill()
        server.process.wait()
    assert "Traceback" not in server.log.read_text() and "SIGKILL" not in server.log.read_text()


NOTEBOOK = [
    ("import verbatim, asyncio, time", ""),
    ("transcripts = verbatim.Transcripts({file!r}, suppliers=[])", ""),
    # Awaited at the top level, where a loop is running already.
    ("one = await transcripts.aget('dQw4w9WgXcQ'); print(one.text, end='')", TEXT),
    # And plain, in the middle of that loop.
    ("print(transcripts.get('dQw4w9WgXcQ') == one)", "True\n"),
    ("print([r.get().language async for r in transcripts.aget_many(['dQw4w9WgXcQ'] * 3)])", "['en', 'en', 'en']\n"),
    ("print([r.get().language for r in transcripts.get_many(['dQw4w9WgXcQ'] * 3)])", "['en', 'en', 'en']\n"),
    ("print(len(await asyncio.gather(*(transcripts.aget('dQw4w9WgXcQ') for _ in range(50)))))", "50\n"),
    ("one", "<Transcript video_site/dQw4w9WgXcQ en, 2 segments>"),
    ("one.segments[:1]", "<Segments [Segment('It is so quiet here.', 1.5, 1.5)]>"),
]
SLOW = """
class Slow:
    name = "slow"
    def supply(self, ask):
        print("began", flush=True)
        while not ask.cancelled:
            time.sleep(0.01)
slow = verbatim.Transcripts(suppliers=[Slow()])
"""


@pytest.mark.filterwarnings("default")
def test_cells_of_a_notebook(tmp_path, file, monkeypatch):
    manager = pytest.importorskip("jupyter_client.manager")
    for name in ("IPYTHONDIR", "JUPYTER_RUNTIME_DIR", "JUPYTER_CONFIG_DIR"):
        monkeypatch.setenv(name, str(tmp_path / name))
    kernel, client = manager.start_new_kernel(startup_timeout=PATIENCE, kernel_name="python3")

    def run(code: str, hear=None) -> str:
        said = []

        def hook(message):
            content = message["content"]
            if message["msg_type"] == "error":
                said.append(f"{content['ename']}: {content['evalue']}")
            said.append(content.get("text") or content.get("data", {}).get("text/plain") or "")
            if hear is not None and said[-1]:
                hear(said[-1])

        client.execute_interactive(code, timeout=PATIENCE, output_hook=hook, store_history=False)
        return "".join(said)

    try:
        for code, expected in NOTEBOOK:
            assert run(code.format(file=file)) == expected, code
        assert run(SLOW) == ""
        # The notebook's stop button ends a cell that waits, and what it began. (One that awaits is the kernel's to
        # end: ipykernel 7 does so when its loop wakes up for some other reason.)
        for call in ("slow.get('dQw4w9WgXcQ')", "list(slow.get_many(['dQw4w9WgXcQ']))"):
            pressed = []

            def stop(text: str, pressed: list = pressed) -> None:
                if "began" in text:
                    pressed.append(time.monotonic())
                    kernel.interrupt_kernel()

            said = run(call, stop)
            assert time.monotonic() - pressed[0] < 5 and "KeyboardInterrupt" in said, said
        assert run("print(transcripts.get('dQw4w9WgXcQ') == one)") == "True\n"
    finally:
        client.stop_channels()
        kernel.shutdown_kernel(now=True)


def text_of(arguments) -> str:
    file, link = arguments
    with verbatim.Transcripts(file, suppliers=[]) as transcripts:
        return transcripts.get(link).text


def again(transcript: verbatim.Transcript) -> verbatim.Transcript:
    return transcript


@pytest.mark.parametrize("method", multiprocessing.get_all_start_methods())
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*:DeprecationWarning")
def test_pools_of_processes(method, file):
    context = multiprocessing.get_context(method)
    with verbatim.Transcripts(file, suppliers=[]) as transcripts:
        transcript = transcripts.get(LINK)
        with context.Pool(2) as pool:
            assert pool.map(text_of, [(file, LINK)] * 4) == [TEXT] * 4
        with concurrent.futures.ProcessPoolExecutor(2, mp_context=context) as pool:
            assert list(pool.map(text_of, [(file, LINK)] * 4)) == [TEXT] * 4
            # A transcript travels, and comes back the same.
            assert pool.submit(again, transcript).result(PATIENCE) == transcript
        assert transcripts.get(LINK) == transcript


TESTS = """
import asyncio
import pytest
import verbatim

@pytest.fixture(scope="module")
def transcripts():
    with verbatim.Transcripts({file!r}, suppliers=[]) as transcripts:
        yield transcripts

@pytest.fixture
async def words(transcripts):
    return await transcripts.aget("dQw4w9WgXcQ")

# One object for several tests, each of which may have a loop of its own.
@pytest.mark.parametrize("number", range(3))
{mark}
async def test_awaited(transcripts, words, number):
    found = await asyncio.gather(*(transcripts.aget("dQw4w9WgXcQ") for _ in range(20)))
    assert set(found) == {{words}}
    async with asyncio.timeout(10):
        assert (await transcripts.asearch("quiet"))[0].start == 1.5

def test_plain(transcripts):
    assert len(transcripts.get("dQw4w9WgXcQ")) == 2
"""


@pytest.mark.parametrize("scope", ["function", "module", "session"])
@pytest.mark.skipif(sys.version_info < (3, 11), reason="asyncio.timeout came with 3.11")
def test_under_pytest_asyncio(scope, tmp_path, file):
    mark = f'@pytest.mark.asyncio(loop_scope="{scope}")'
    (tmp_path / "test_it.py").write_text(TESTS.format(file=file, mark=mark))
    (tmp_path / "pytest.ini").write_text(
        f"[pytest]\nasyncio_mode = auto\nasyncio_default_fixture_loop_scope = {scope}\nfilterwarnings = error\n"
    )
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )
    assert done.returncode == 0 and "4 passed" in done.stdout, done.stdout + done.stderr


def test_another_event_loop(youtube):
    uvloop = pytest.importorskip("uvloop")

    async def work() -> list:
        found = [await youtube.aget("vb-tracks-0")]
        found += await asyncio.gather(*(youtube.aget(link) for link in ["vb-tracks-0", "vb-french-0"]))
        found += [result.get() async for result in youtube.aget_many(["vb-tracks-0"])]
        return [transcript.language for transcript in found]

    loop = uvloop.new_event_loop()
    try:
        assert loop.run_until_complete(work()) == ["en", "en", "fr", "en"]
    finally:
        loop.close()


def test_a_loop_that_others_drive(shelf):
    # As in a graphical program: the loop runs on a thread of its own, and is asked from others.
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    try:
        asked = [asyncio.run_coroutine_threadsafe(shelf.aget(LINK), loop) for _ in range(20)]
        assert {future.result(PATIENCE).text for future in asked} == {TEXT}
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()
