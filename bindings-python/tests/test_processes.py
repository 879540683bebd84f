"""Interrupts, forks, spawned processes, subinterpreters and exit."""

import os
import signal
import subprocess
import sys
import textwrap

import pytest
from conftest import LINK, SRT

import verbatim_transcripts as vt

needs_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this platform")


def run(program: str, *arguments: str, timeout: float = 30) -> subprocess.CompletedProcess:
    return subprocess.run(
        [sys.executable, "-W", "error", "-c", textwrap.dedent(program), *arguments],
        capture_output=True,
        text=True,
        timeout=timeout,
    )


SLOW = """
import asyncio, os, signal, sys, threading, time
import verbatim_transcripts as vt

class Slow:
    name = "slow"
    def supply(self, request):
        started.set()
        while not request.cancelled:
            time.sleep(0.01)
        print("cancelled", flush=True)
        ended.set()
        return None

started, ended = threading.Event(), threading.Event()
start = None
def interrupt():
    global start
    started.wait()
    start = time.monotonic()
    os.kill(os.getpid(), signal.SIGINT)
threading.Thread(target=interrupt, daemon=True).start()
transcripts = vt.Transcripts(suppliers=[Slow()])
"""


@pytest.mark.parametrize("call", ['transcripts.get("dQw4w9WgXcQ")', 'asyncio.run(transcripts.aget("dQw4w9WgXcQ"))',
                                  'list(transcripts.get_many(["dQw4w9WgXcQ"]))'])
def test_interrupt_ends_call_within_one_second(call):
    done = run(SLOW + textwrap.dedent(f"""
        try:
            {call}
        except KeyboardInterrupt:
            print("interrupted", time.monotonic() - start < 1.0, flush=True)
        ended.wait(10)
    """))
    assert sorted(done.stdout.split("\n")) == ["", "cancelled", "interrupted True"], done.stderr
    assert done.returncode == 0


def test_exit_during_fetch_succeeds():
    done = run(SLOW.replace("os.kill(os.getpid(), signal.SIGINT)", "pass") + textwrap.dedent("""
        threading.Thread(target=lambda: transcripts.get("dQw4w9WgXcQ"), daemon=True).start()
        started.wait()
    """))
    assert (done.returncode, done.stderr) == (0, "")


def test_event_loop_end_cancels_fetch():
    done = run(SLOW.replace("os.kill(os.getpid(), signal.SIGINT)", "pass") + textwrap.dedent("""
        async def main():
            asyncio.ensure_future(transcripts.aget("dQw4w9WgXcQ"))
            await asyncio.to_thread(started.wait, 10)
        asyncio.run(main())
        ended.wait(10)
    """))
    assert (done.returncode, done.stdout, done.stderr) == (0, "cancelled\n", "")


def child(work) -> int:
    """Runs `work` in a forked child and returns its exit code; the child has ten seconds."""
    pid = os.fork()
    if pid == 0:
        signal.alarm(10)
        try:
            os._exit(work())
        finally:
            os._exit(99)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


@needs_fork
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*:DeprecationWarning")
def test_fork_child_reads_and_fetches(tmp_path, replay):
    import asyncio

    transcripts = vt.Transcripts(tmp_path / "archive.db", proxies=replay.proxy, ca_file=replay.ca_file)
    transcripts.import_(LINK, SRT, lang="en")
    before = transcripts.get("vb-tracks-0")

    def work() -> int:
        assert transcripts.get(LINK).from_cache
        assert transcripts.get("vb-tracks-0") == before
        assert transcripts.get("vb-french-0").language == "fr"
        assert asyncio.run(transcripts.aget("vb-chinese0")).language.startswith("zh")
        assert child(lambda: len(transcripts.get(LINK))) == 2
        return 7

    for _ in range(3):
        assert child(work) == 7
    # The connections of the parent still work.
    assert transcripts.get("vb-srv3-000").is_generated
    assert transcripts.get("vb-french-0").from_cache
    transcripts.close()


@needs_fork
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*:DeprecationWarning")
def test_fork_during_cached_reads_succeeds(tmp_path):
    import threading

    transcripts = vt.Transcripts(tmp_path / "archive.db", suppliers=[])
    transcripts.import_(LINK, SRT, lang="en")
    stop = threading.Event()

    def busy():
        while not stop.is_set():
            transcripts.get(LINK)

    threads = [threading.Thread(target=busy) for _ in range(3)]
    for thread in threads:
        thread.start()
    try:
        for _ in range(20):
            assert child(lambda: len(transcripts.get(LINK))) == 2
    finally:
        stop.set()
        for thread in threads:
            thread.join()
    transcripts.close()


@needs_fork
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*:DeprecationWarning")
def test_fork_during_file_reads_succeeds(tmp_path):
    import threading

    transcripts = vt.Transcripts(tmp_path / "archive.db", suppliers=[])
    links = [f"vb-{n:08}" for n in range(8)]
    for link in links:
        transcripts.import_(link, SRT, lang="en")
    stop = threading.Event()
    read = []

    def busy():
        while not stop.is_set():
            # A change invalidates the cache: each transcript is read from the file again.
            transcripts.delete("vb-none-000")
            read.append([len(transcripts.get(link)) for link in links])

    def read_in_child() -> int:
        lengths = [len(transcripts.get(link)) for link in links]
        transcripts.close()
        return len(lengths) if lengths == [2] * len(links) else 0

    threads = [threading.Thread(target=busy) for _ in range(3)]
    for thread in threads:
        thread.start()
    try:
        for _ in range(10):
            assert child(read_in_child) == len(links)
    finally:
        stop.set()
        for thread in threads:
            thread.join()
    assert read and all(each == [2] * len(links) for each in read)
    # The children closed their own files only.
    transcripts.import_(LINK, SRT, lang="en")
    assert len(transcripts.get(LINK)) == 2
    transcripts.close()


@needs_fork
def test_fork_before_first_call_starts_no_threads():
    done = run("""
        import os
        import verbatim_transcripts as vt
        transcripts = vt.Transcripts(suppliers=[])
        child = os.fork()
        if child == 0:
            os._exit(0)
        os.waitpid(child, 0)
        threads = "/proc/self/task"
        print(len(os.listdir(threads)) if os.path.isdir(threads) else 1)
    """)
    assert (done.returncode, done.stdout, done.stderr) == (0, "1\n", "")


def test_subinterpreter_import_raises_import_error():
    done = run("""
        import sys
        import verbatim_transcripts as vt
        try:
            import _interpreters as interpreters
        except ImportError:
            import _xxsubinterpreters as interpreters
        other = interpreters.create()
        try:
            failed = interpreters.run_string(other, "import verbatim_transcripts")
        except interpreters.RunFailedError as error:
            failed = error
        print("ImportError" in repr(failed) or "ImportError" in str(failed), flush=True)
    """)
    assert done.stdout == "True\n" and done.returncode == 0, done.stderr


def test_interrupt_leaves_other_threads_waiting():
    # An interrupt of the main thread does not affect the wait of another thread.
    done = run("""
        import os, signal, threading, time
        import verbatim_transcripts as vt

        class Slow:
            name = "slow"
            def supply(self, request):
                time.sleep(0.5)
                return vt.Transcript(request.url, [vt.Segment("x", 0)])

        transcripts = vt.Transcripts(suppliers=[Slow()])
        found = []
        thread = threading.Thread(target=lambda: found.append(transcripts.get("dQw4w9WgXcQ")))
        thread.start()
        try:
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(1)
        except KeyboardInterrupt:
            pass
        thread.join()
        print(len(found))
    """)
    assert done.stdout == "1\n", done.stderr
