"""Host programs: a forking server, a notebook kernel, process pools, other event loops."""

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

import verbatim_transcripts as vt

TEXT = "It is so quiet here.\n\nThe café is closed.\n"
TIMEOUT = 60


@pytest.fixture
def file(tmp_path: pathlib.Path) -> str:
    """An archive with one transcript."""
    name = str(tmp_path / "archive.db")
    with vt.Transcripts(name, suppliers=[]) as transcripts:
        transcripts.import_(LINK, SRT, lang="en")
    return name


APPLICATION = """
import json, os
import verbatim_transcripts as vt

transcripts = vt.Transcripts(os.environ["ARCHIVE"], proxies=os.environ["PROXY"], ca_file=os.environ["CA_FILE"])
# Opens the archive and connections before the fork.
before = transcripts.get("vb-tracks-0")

def application(environ, start_response):
    link = environ["PATH_INFO"].strip("/")
    transcript = transcripts.get(link)
    start_response("200 OK", [("Content-Type", "application/json")])
    return [json.dumps([os.getpid(), transcript.text, before.title]).encode()]
"""


class Gunicorn:
    """A running server that forks its workers after it has loaded and used the application."""

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
        self.port = int(self.wait_for_log(r"Listening at: http://127\.0\.0\.1:(\d+)"))

    def wait_for_log(self, pattern: str) -> str:
        end = time.monotonic() + TIMEOUT
        while not (found := re.search(pattern, self.log.read_text())):
            assert time.monotonic() < end and self.process.poll() is None, self.log.read_text()
            time.sleep(0.02)
        return found[1]

    def get(self, link: str) -> tuple[int, str]:
        """Returns the process id of the worker and the text of the transcript."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=TIMEOUT)
        connection.request("GET", f"/{link}")
        answer = connection.getresponse()
        assert answer.status == 200, self.log.read_text()
        pid, text, title = json.loads(answer.read())
        connection.close()
        assert title == "How a tide mill works" and pid != self.process.pid
        return pid, text


@pytest.mark.parametrize("kind", [("--workers", "3"), ("--workers", "2", "--threads", "4")], ids=["sync", "threads"])
def test_gunicorn_preloaded_workers_share_archive(kind, tmp_path, file, replay):
    server = Gunicorn(tmp_path, file, replay, *kind)
    try:
        # Repeat until every worker has answered: the kernel selects the worker.
        workers, end = set(), time.monotonic() + TIMEOUT
        with concurrent.futures.ThreadPoolExecutor(8) as pool:
            while len(workers) < int(kind[1]) and time.monotonic() < end:
                for pid, text in pool.map(server.get, ["dQw4w9WgXcQ"] * 24):
                    assert text == TEXT
                    workers.add(pid)
        assert len(workers) == int(kind[1])
        # One worker fetches, and all read the archive.
        assert {text for _, text in map(server.get, ["vb-french-0"] * 12)} == {server.get("vb-french-0")[1]}
        # A worker that ends is replaced by a new fork of the parent, which has run for a while.
        os.kill(next(iter(workers)), signal.SIGTERM)
        end = time.monotonic() + TIMEOUT
        while server.get("dQw4w9WgXcQ")[0] in workers:
            assert time.monotonic() < end, server.log.read_text()
        server.process.send_signal(signal.SIGTERM)
        assert server.process.wait(TIMEOUT) == 0, server.log.read_text()
    finally:
        server.process.kill()
        server.process.wait()
    assert "Traceback" not in server.log.read_text() and "SIGKILL" not in server.log.read_text()


NOTEBOOK = [
    ("import verbatim_transcripts as vt, asyncio, time", ""),
    ("transcripts = vt.Transcripts({file!r}, suppliers=[])", ""),
    # Awaits at the top level, where a loop is running already.
    ("one = await transcripts.aget('dQw4w9WgXcQ'); print(one.text, end='')", TEXT),
    # A plain call inside of that loop.
    ("print(transcripts.get('dQw4w9WgXcQ') == one)", "True\n"),
    ("print([r.get().language async for r in transcripts.aget_many(['dQw4w9WgXcQ'] * 3)])", "['en', 'en', 'en']\n"),
    ("print([r.get().language for r in transcripts.get_many(['dQw4w9WgXcQ'] * 3)])", "['en', 'en', 'en']\n"),
    ("print(len(await asyncio.gather(*(transcripts.aget('dQw4w9WgXcQ') for _ in range(50)))))", "50\n"),
    ("one", "<Transcript YouTube dQw4w9WgXcQ en, 2 segments>"),
    ("one.segments[:1]", "<Segments [Segment('It is so quiet here.', 1.5, 1.5)]>"),
]
SLOW = """
class Slow:
    name = "slow"
    def supply(self, request):
        print("started", flush=True)
        while not request.cancelled:
            time.sleep(0.01)
slow = vt.Transcripts(suppliers=[Slow()])
"""


@pytest.mark.filterwarnings("default")
def test_notebook_cells_run_and_interrupt(tmp_path, file, monkeypatch):
    manager = pytest.importorskip("jupyter_client.manager")
    for name in ("IPYTHONDIR", "JUPYTER_RUNTIME_DIR", "JUPYTER_CONFIG_DIR"):
        monkeypatch.setenv(name, str(tmp_path / name))
    kernel, client = manager.start_new_kernel(startup_timeout=TIMEOUT, kernel_name="python3")

    def run(code: str, on_output=None) -> str:
        output = []

        def hook(message):
            content = message["content"]
            if message["msg_type"] == "error":
                output.append(f"{content['ename']}: {content['evalue']}")
            output.append(content.get("text") or content.get("data", {}).get("text/plain") or "")
            if on_output is not None and output[-1]:
                on_output(output[-1])

        client.execute_interactive(code, timeout=TIMEOUT, output_hook=hook, store_history=False)
        return "".join(output)

    try:
        for code, expected in NOTEBOOK:
            assert run(code.format(file=file)) == expected, code
        assert run(SLOW) == ""
        # The stop button of the notebook ends a waiting cell and its fetch. (The kernel ends a cell that awaits:
        # ipykernel 7 does so when its loop wakes up for another reason.)
        for call in ("slow.get('dQw4w9WgXcQ')", "list(slow.get_many(['dQw4w9WgXcQ']))"):
            pressed = []

            def stop(text: str, pressed: list = pressed) -> None:
                if "started" in text:
                    pressed.append(time.monotonic())
                    kernel.interrupt_kernel()

            output = run(call, stop)
            assert time.monotonic() - pressed[0] < 5 and "KeyboardInterrupt" in output, output
        assert run("print(transcripts.get('dQw4w9WgXcQ') == one)") == "True\n"
    finally:
        client.stop_channels()
        kernel.shutdown_kernel(now=True)


def text_of(arguments) -> str:
    file, link = arguments
    with vt.Transcripts(file, suppliers=[]) as transcripts:
        return transcripts.get(link).text


def same(transcript: vt.Transcript) -> vt.Transcript:
    return transcript


@pytest.mark.parametrize("method", multiprocessing.get_all_start_methods())
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*:DeprecationWarning")
def test_process_pools_share_archive_and_transcripts(method, file):
    context = multiprocessing.get_context(method)
    with vt.Transcripts(file, suppliers=[]) as transcripts:
        transcript = transcripts.get(LINK)
        with context.Pool(2) as pool:
            assert pool.map(text_of, [(file, LINK)] * 4) == [TEXT] * 4
        with concurrent.futures.ProcessPoolExecutor(2, mp_context=context) as pool:
            assert list(pool.map(text_of, [(file, LINK)] * 4)) == [TEXT] * 4
            # A transcript survives the round trip.
            assert pool.submit(same, transcript).result(TIMEOUT) == transcript
        assert transcripts.get(LINK) == transcript


TEST_MODULE = """
import asyncio
import pytest
import verbatim_transcripts as vt

@pytest.fixture(scope="module")
def transcripts():
    with vt.Transcripts({file!r}, suppliers=[]) as transcripts:
        yield transcripts

@pytest.fixture
async def transcript(transcripts):
    return await transcripts.aget("dQw4w9WgXcQ")

# One object for several tests, each with its own event loop.
@pytest.mark.parametrize("number", range(3))
{mark}
async def test_async_calls(transcripts, transcript, number):
    found = await asyncio.gather(*(transcripts.aget("dQw4w9WgXcQ") for _ in range(20)))
    assert set(found) == {{transcript}}
    async with asyncio.timeout(10):
        assert (await transcripts.asearch("quiet"))[0].start == 1.5

def test_plain_call(transcripts):
    assert len(transcripts.get("dQw4w9WgXcQ")) == 2
"""


@pytest.mark.parametrize("scope", ["function", "module", "session"])
@pytest.mark.skipif(sys.version_info < (3, 11), reason="asyncio.timeout requires 3.11")
def test_pytest_asyncio_scopes_pass(scope, tmp_path, file):
    mark = f'@pytest.mark.asyncio(loop_scope="{scope}")'
    (tmp_path / "test_it.py").write_text(TEST_MODULE.format(file=file, mark=mark))
    (tmp_path / "pytest.ini").write_text(
        f"[pytest]\nasyncio_mode = auto\nasyncio_default_fixture_loop_scope = {scope}\nfilterwarnings = error\n"
    )
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=TIMEOUT,
    )
    assert done.returncode == 0 and "4 passed" in done.stdout, done.stdout + done.stderr


# Every call of a supplier and of a store after the first one needs the thread of an earlier call.
GREENLETS = """
from gevent import monkey, spawn, joinall
monkey.patch_all()
import verbatim_transcripts as vt

class Supplier:
    name = "own"

    def supply(self, request):
        return vt.Transcript(request.url, [vt.Segment("Hello.", 0, 1)])

class Store(dict):
    def write(self, changes):
        for key, value in changes.items():
            self.pop(key, None)
            if value is not None:
                self[key] = value

    def list(self, prefix, after, limit):
        keys = sorted(key for key in self if key.startswith(prefix) and key > after)
        return [(key, self[key]) for key in keys[:limit]]

with vt.Transcripts(Store(), suppliers=[Supplier()]) as transcripts:
    texts = [transcripts.get(f"v000000000{number}").text for number in range(3)]
    greenlets = [spawn(transcripts.get, f"v000000001{number}") for number in range(3)]
    joinall(greenlets, raise_error=True)
    print(texts + [greenlet.value.text for greenlet in greenlets] == ["Hello.\\n"] * 6, len(list(transcripts.archived())))
"""


def test_gevent_patched_program_calls_own_components():
    done = subprocess.run([sys.executable, "-c", GREENLETS], capture_output=True, text=True, timeout=TIMEOUT)
    assert done.stdout == "True 6\n", done.stderr


def test_uvloop_awaits_succeed(youtube):
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


def test_event_loop_in_thread_serves_calls(imported):
    # As in a graphical program: the loop runs on its own thread, and other threads submit calls.
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    try:
        futures = [asyncio.run_coroutine_threadsafe(imported.aget(LINK), loop) for _ in range(20)]
        assert {future.result(TIMEOUT).text for future in futures} == {TEXT}
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()
