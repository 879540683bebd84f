"""Access to the archive: places, iteration, exports, imports of folders, and custom archives."""

import asyncio
import json
import os
import signal
import sqlite3
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from conftest import LINK, SRT
from key_value_store import SqliteStore

import verbatim_transcripts as vt
from verbatim_transcripts import Segment, Transcript, Transcripts, testing


@pytest.fixture
def filled():
    with Transcripts(suppliers=[]) as transcripts:
        for number in range(230):
            transcripts.import_(f"{number:011}", SRT.replace("quiet", f"quiet{number}"), lang="en", title=f"Day {number}")
        transcripts.import_("00000000000", SRT.replace("quiet", "still"), lang="de")
        yield transcripts


def test_records_name_fields_of_arguments():
    from custom_archive import CustomArchive
    from verbatim_transcripts import records

    def check(value, kind):
        assert kind.__required_keys__ <= set(value) <= kind.__required_keys__ | kind.__optional_keys__, kind

    class CheckedArchive(CustomArchive):
        def put(self, request):
            check(request, records.PutRequest)
            check(request["video"], records.VideoRecord)
            check(request["transcript"], records.TranscriptRecord)
            for segment in request["transcript"]["segments"]:
                check(segment, records.SegmentRecord)
                for word in segment.get("words", []):
                    check(word, records.WordRecord)
            check(request["metadata"], records.MetadataRecord)
            for chapter in request["metadata"].get("chapters", []):
                check(chapter, records.ChapterRecord)
            for track in [request["transcript"]["track"], *request["known_tracks"]]:
                check(track, records.TrackRecord)
            stored = super().put(request)
            check(stored, records.StoredTranscript)
            check(stored["details"], records.DetailsRecord)
            return stored

        def put_absence(self, absence):
            check(absence, records.AbsenceRecord)
            super().put_absence(absence)

        def acquire_lease(self, lease):
            check(lease, records.FetchLease)
            return super().acquire_lease(lease)

        def put_short_link(self, link, video):
            check(link, records.ShortLinkRecord)
            super().put_short_link(link, video)

        def list_tracks(self, page):
            check(page, records.PageRequest)
            found = super().list_tracks(page)
            check(found, records.TrackPage)
            for track in found["items"]:
                check(track, records.ArchivedTrack)
            return found

        def stats(self):
            check(super().stats(), records.ArchiveStats)
            return super().stats()

    testing.check("archive", CheckedArchive)


def test_incomplete_store_is_rejected_when_passed():
    class Half:
        def find(self, video, selector, now):
            return "nothing"

    with pytest.raises(TypeError, match=r"methods of verbatim_transcripts.Archive; .*Half.* lacks: tracks, put, "):
        Transcripts(Half())
    for keywords, name in (({"archive": object()}, "Archive"), ({"ledger": object()}, "Ledger"), ({"directory": Half()}, "Directory")):
        with pytest.raises(TypeError, match=f"verbatim_transcripts.{name};"):
            vt.Service(suppliers=[], **keywords)
    for store, missing in ((type("Store", (), {"write": print, "get": print})(), "list"), ({}, "write, list")):
        with pytest.raises(TypeError, match=f"KeyValueStore; .* lacks: {missing}$"):
            Transcripts(store)
    with pytest.raises(TypeError, match="lacks: tracks"):
        testing.check("archive", Half)


@pytest.mark.parametrize("place", [":memory:", "sqlite://", "sqlite://:memory:", "sqlite:///:memory:"])
def test_memory_names_are_no_files(place, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with Transcripts(place, suppliers=[]) as transcripts:
        transcripts.import_(LINK, SRT, lang="en")
        assert len(list(transcripts.archived())) == 1
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("place", ["~/a.db", "sqlite:///~/a.db"])
def test_tilde_is_home_folder(place, tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    with Transcripts(place, suppliers=[]) as transcripts:
        transcripts.import_(LINK, SRT, lang="en")
    assert (tmp_path / "a.db").exists()


def test_sqlite_url_of_server_is_no_relative_path(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ValueError, match="four slashes"):
        Transcripts("sqlite:///tmp/verbatim/a.db")
    assert not (tmp_path / "tmp").exists()
    for place, file in (("sqlite:///new-folder/b.db", "new-folder/b.db"), (f"sqlite:///{tmp_path}/c.db", "c.db")):
        with Transcripts(place, suppliers=[]) as transcripts:
            transcripts.import_(LINK, SRT, lang="en")
        assert (tmp_path / file).is_file()


def test_unknown_place_is_rejected_without_its_password():
    for place in ("mysql://ann:secret@host/db", "", "sqlite://x"):
        with pytest.raises(ValueError, match="postgresql://") as raised:
            Transcripts(place)
        assert "secret" not in str(raised.value)
    with pytest.raises(ValueError, match="both"):
        vt.Service("postgresql://host/a", "b.db")
    with Transcripts("postgresql://ann:secret@127.0.0.1:1/db", suppliers=[]) as transcripts:
        with pytest.raises(vt.StorageError) as raised:
            transcripts.stats()
        assert "secret" not in str(raised.value)


def test_archived_yields_every_transcript(filled):
    found = list(filled.archived())
    assert len(found) == 231 == filled.stats()["transcripts"]
    assert {each.language for each in found if each.video_id == "00000000000"} == {"en", "de"}
    assert len({each.video_id for each in found}) == 230 and all(each.from_cache for each in found)

    async def collect():
        return [each async for each in filled.aarchived()]

    assert asyncio.run(collect()) == found
    filled.delete("00000000000")
    asyncio.run(filled.adelete("00000000001"))
    assert len(list(filled.archived())) == 228


def test_export_and_import_folder_keep_transcripts(filled, tmp_path):
    assert filled.export(tmp_path) == 231
    assert filled.export(tmp_path / "subtitles", "srt") == 231
    assert (tmp_path / "subtitles" / "video_site" / "00000000007" / "en.srt").read_text() == filled.get("00000000007").to_srt()
    with Transcripts(suppliers=[]) as other:
        outcomes = other.import_folder(tmp_path)
        assert len(outcomes) == 231 and {each.effect for each in outcomes} == {"added"}
        assert list(other.archived()) == list(filled.archived())
        assert {each.effect for each in other.import_folder(tmp_path)} == {"unchanged"}
    (tmp_path / "video_site" / "zz.json").write_text("{}")
    for call in (filled.import_folder, lambda folder: asyncio.run(filled.aimport_folder(folder))):
        with pytest.raises(vt.InvalidInput, match=r"zz\.json"):
            call(tmp_path)
        with pytest.raises(FileNotFoundError, match="nowhere"):
            call(tmp_path / "nowhere")
        with pytest.raises(NotADirectoryError, match="zz"):
            call(tmp_path / "video_site" / "zz.json")
    for call in (filled.export, lambda *arguments: asyncio.run(filled.aexport(*arguments))):
        with pytest.raises(ValueError, match="format"):
            call(tmp_path, "pdf")


def test_export_and_import_folder_are_awaitable(filled, tmp_path):
    async def run():
        assert await filled.aexport(tmp_path) == 231
        async with Transcripts(suppliers=[]) as other:
            outcomes = await other.aimport_folder(tmp_path)
            assert len(outcomes) == 231 and {each.effect for each in outcomes} == {"added"}
            return [each async for each in other.aarchived()]

    assert asyncio.run(run()) == list(filled.archived())


def test_export_continues_past_damaged_transcript(tmp_path):
    file = tmp_path / "archive.db"
    with Transcripts(file, suppliers=[]) as transcripts:
        transcripts.import_("00000000000", SRT, lang="de")
        for number in range(120):
            transcripts.import_(f"{number:011}", SRT, lang="en")
    with sqlite3.connect(file) as database:
        damaged = "SELECT min(id) FROM transcripts"
        assert database.execute(f"UPDATE bodies SET segments = zeroblob(40) WHERE transcript = ({damaged})").rowcount == 1
    database.close()
    with Transcripts(file, suppliers=[]) as transcripts:
        calls = (transcripts.export, lambda *arguments: asyncio.run(transcripts.aexport(*arguments)))
        for call, format in zip(calls, ("json", "srt"), strict=True):
            with pytest.raises(vt.StorageCorrupt, match="not exported.*00000000000") as raised:
                call(tmp_path / format, format)
            assert isinstance(raised.value.__cause__, vt.StorageCorrupt)
            names = {f"{path.parent.name}/{path.name}" for path in (tmp_path / format).rglob("*.*")}
            assert names == {f"{number:011}/en.{format}" for number in range(120)}
            # A file that is kept does not hide the damage.
            next((tmp_path / format).rglob(f"en.{format}")).write_text("")
            with pytest.raises(vt.StorageCorrupt, match="not exported.*00000000000"):
                call(tmp_path / format, format)


def test_export_reports_videos_that_cannot_be_listed(tmp_path):
    file = tmp_path / "archive.db"
    with Transcripts(file, suppliers=[]) as transcripts:
        for number in range(3):
            transcripts.import_(f"{number:011}", SRT, lang="en")
    with sqlite3.connect(file) as database:
        for table in ("transcripts", "tracks", "wishes"):
            # A platform of a later version.
            renamed = f"UPDATE {table} SET video = 'later_site/1' WHERE video LIKE '%/00000000001'"
            assert database.execute(renamed).rowcount > 0
    database.close()
    with Transcripts(file, suppliers=[]) as transcripts:
        for call in (transcripts.export, lambda *arguments: asyncio.run(transcripts.aexport(*arguments))):
            with pytest.raises(vt.StorageCorrupt, match="1 videos cannot be listed"):
                call(tmp_path / "json")
            names = {path.parent.name for path in (tmp_path / "json").rglob("*.*")}
            assert names == {"00000000000", "00000000002"}


def test_export_of_changing_archive_reports_no_damage(tmp_path):
    from custom_archive import CustomArchive, key

    class ChangingArchive(CustomArchive):
        """The last video is deleted, and one before the first is fetched, after the first page of a list."""

        earlier = ()

        def list_tracks(self, page):
            found = super().list_tracks({**page, "limit": 1})
            if page["after"] is None and self.earlier:
                with self.lock:
                    del self.records[max(self.records)]
                    record = self.earlier.pop()
                    self.records[key(record.video)] = record
            return found

    archive = ChangingArchive()
    with Transcripts(archive, suppliers=[]) as transcripts:
        for number in range(4):
            transcripts.import_(f"{number:011}", SRT, lang="en")
        archive.earlier = [archive.records.pop(name) for name in sorted(archive.records)[:2]]
        assert transcripts.export(tmp_path) == 1
        # The archive changed in the list of the export and in the first count.
        assert archive.earlier == []
        assert transcripts.export(tmp_path) == 2


def test_export_that_fails_keeps_earlier_file(tmp_path, monkeypatch):
    def write_half(path, text, encoding):
        path.write_bytes(text.encode(encoding)[:40])
        raise OSError("the disk is full")

    with Transcripts(suppliers=[]) as transcripts:
        transcripts.import_("00000000000", SRT, lang="en")
        transcripts.export(tmp_path)
        file = tmp_path / "video_site" / "00000000000" / "en.json"
        before = file.read_bytes()
        monkeypatch.setattr(type(file), "write_text", write_half)
        with pytest.raises(OSError, match="the disk is full"):
            transcripts.export(tmp_path)
        assert file.read_bytes() == before and list(file.parent.iterdir()) == [file]


@pytest.mark.parametrize("call", ["export", "aexport"])
def test_export_keeps_files_with_other_content(tmp_path, call):
    def export(*arguments, **options):
        done = getattr(transcripts, call)(*arguments, **options)
        return asyncio.run(done) if call == "aexport" else done

    file = tmp_path / "video_site" / "00000000000" / "en.srt"
    with Transcripts(suppliers=[]) as transcripts:
        for number in range(3):
            transcripts.import_(f"{number:011}", SRT, lang="en")
        assert export(tmp_path, "srt") == 3 == export(tmp_path, "srt")
        written = file.read_bytes()
        file.write_text("mine")
        (file.parents[1] / "00000000002" / "en.srt").unlink()
        with pytest.raises(FileExistsError, match=r"1 files .* option replace .*en\.srt") as raised:
            export(tmp_path, "srt")
        assert raised.value.filename == str(file) and file.read_text() == "mine"
        assert len(list(tmp_path.rglob("*.*"))) == 3
        assert export(tmp_path, "srt", replace=True) == 3 and file.read_bytes() == written


@pytest.mark.parametrize("call", ["export", "aexport"])
def test_export_and_import_folder_keep_withdrawals(tmp_path, call):
    from custom_archive import CustomArchive

    async def export(**options):
        done = getattr(transcripts, call)(tmp_path, **options)
        return await done if call == "aexport" else done

    archive = CustomArchive()
    with Transcripts(archive, suppliers=[]) as transcripts:
        for number in range(2):
            transcripts.import_(f"{number:011}", SRT, lang="zh")
        first = next(iter(archive.records.values()))
        first.withdrawn = True
        assert asyncio.run(export()) == 1
        names = {f"{path.parent.name}/{path.name}" for path in tmp_path.rglob("*.*")}
        assert names == {f"{first.video['id']}/withdrawn.json", "00000000001/zh.json"}
        with Transcripts(suppliers=[]) as other:
            assert [each.effect for each in other.import_folder(tmp_path)] == ["added", "added"]
            with pytest.raises(vt.WithdrawnVideo):
                other.get(first.video["id"], "zh")
        # The withdrawal has ended: only a replacement deletes its file.
        first.withdrawn = False
        with pytest.raises(FileExistsError, match="withdrawn"):
            asyncio.run(export())
        assert asyncio.run(export(replace=True)) == 2 and list(tmp_path.rglob("withdrawn.json")) == []


def test_import_folder_of_withdrawn_video_imports_withdrawal_alone(tmp_path):
    from custom_archive import CustomArchive

    archive = CustomArchive()
    with Transcripts(archive, suppliers=[]) as transcripts:
        transcripts.import_(LINK, SRT, lang="en")
        assert transcripts.export(tmp_path) == 1
        next(iter(archive.records.values())).withdrawn = True
        assert transcripts.export(tmp_path) == 0
    (withdrawal,) = tmp_path.rglob("withdrawn.json")
    assert withdrawal.with_name("en.json").exists()
    with Transcripts(suppliers=[]) as other:
        calls = (other.import_folder, lambda folder: asyncio.run(other.aimport_folder(folder)))
        for call, effect in zip(calls, ("added", "unchanged"), strict=True):
            assert [outcome.effect for outcome in call(tmp_path)] == [effect]
            assert other.stats()["transcripts"] == 0
        withdrawal.unlink()
        for call in calls:
            with pytest.raises(vt.ConflictError, match=r"en\.json: .*withdrawn"):
                call(tmp_path)


def test_export_of_translation_does_not_overwrite_captions(tmp_path):
    translation = {
        "format": "verbatim-export/1",
        "videoId": "00000000000",
        "language": "de",
        "kind": "translated",
        "wishes": ["translation:de"],
        "transcript": [{"text": "Es ist still.", "start": 0, "duration": 1}],
    }
    (tmp_path / "translation.json").write_text(json.dumps(translation))
    with Transcripts(suppliers=[]) as transcripts, Transcripts(suppliers=[]) as other:
        transcripts.import_folder(tmp_path)
        transcripts.import_("00000000000", SRT, lang="de")
        assert transcripts.export(tmp_path / "backup") == 2
        assert len(other.import_folder(tmp_path / "backup")) == 2
        found, expected = ({each.kind: each for each in archive.archived()} for archive in (other, transcripts))
        assert found == expected and set(found) == {"human", "translated"}


def test_import_folder_of_several_languages_keeps_default(tmp_path):
    names = {"en": "English", "de": "German"}
    languages = [{"tag": tag, "name": name, "kind": "manual", "original": tag == "de"} for tag, name in names.items()]
    # The list of a lookup says that there is English. Without it the file's name does.
    for number, (lists, files) in enumerate([({"languages": languages}, "1 2"), ({}, "a.de a.en")]):
        folder = tmp_path / str(number)
        folder.mkdir()
        for language, name in zip(("de", "en"), files.split(), strict=True):
            transcript = [{"text": names[language], "start": 0, "duration": 1}]
            found = {"videoId": "00000000000", "language": language, "source": "a-supplier", "transcript": transcript, **lists}
            (folder / f"{name}.json").write_text(json.dumps(found))
        with Transcripts(suppliers=[]) as transcripts:
            assert [outcome.effect for outcome in transcripts.import_folder(folder)] == ["added", "added"]
            texts = [transcripts.get("00000000000", *lang)[0].text for lang in ((), ("en",), ("de",))]
            assert texts == ["English", "English", "German"]


def test_methods_that_wait_have_awaitable_twin():
    twins = {"import_": "aimport", "close": "aclose", "wait": "await_"}
    # What these return is iterated in both ways.
    iterated = {"search_videos", "playlist", "channel", "youtube_search"}
    kinds = [(Transcripts, iterated), (vt.Service, {"client", *iterated}), (vt.Client, {"use_key", "jobs", "search"})]
    for kind, plain in (*kinds, (vt.Jobs, {"list", "results"})):
        names = {name for name in dir(kind) if not name.startswith("_")}
        waiting = {name for name in names if f"a{name}" not in names and name[1:] not in names and name not in plain}
        assert waiting - set(twins) - set(twins.values()) == set(), kind


def test_saved_json_is_imported(imported, tmp_path):
    fields = {"language": "en", "title": "Hello", "track_name": "Notes", "original": True}
    transcript = Transcript("aaaaaaaaaaa", [Segment("Hello.", 0, 1)], **fields)
    transcript.save(tmp_path / "a.json")
    (outcome,) = imported.import_folder(tmp_path)
    found = imported.get("aaaaaaaaaaa")
    assert outcome.effect == "added" and {name: getattr(found, name) for name in fields} == fields


def test_conformance_failure_is_readable(capfd):
    class BrokenStore(SqliteStore):
        def list(self, prefix, after, limit):
            return []

    with pytest.raises(AssertionError) as raised:
        testing.check("archive", BrokenStore)
    message = str(raised.value)
    assert "archived_tracks_are_paged_once_each" in message and "call: list(" in message
    assert "left" not in message and "panicked" not in capfd.readouterr().err


def test_conformance_failures_of_tasks_are_not_printed(capfd):
    class ForgetfulStore(SqliteStore):
        def get(self, key):
            return None

    with pytest.raises(AssertionError, match="a stored selector has a transcript"):
        testing.check("archive", ForgetfulStore)
    assert "panicked" not in capfd.readouterr().err


#: Locks a file until its input ends. Locks belong to a process, so the test itself could not hold it.
LOCK = """
import sqlite3, sys
db = sqlite3.connect(sys.argv[1], isolation_level=None)
db.execute("BEGIN EXCLUSIVE")
print("locked", flush=True)
sys.stdin.read()
"""

needs_proc = pytest.mark.skipif(not os.path.isdir("/proc/self/fd"), reason="open files are read from /proc")


def is_open(path, process="self"):
    folder = f"/proc/{process}/fd"
    # Files may be closed while they are listed.
    return os.path.realpath(path) in [os.path.realpath(f"{folder}/{number}") for number in os.listdir(folder)]


def wait_until_open(path, process="self"):
    deadline = time.monotonic() + 60
    while not is_open(path, process):
        assert time.monotonic() < deadline, f"{path} was not opened"
        time.sleep(0.01)


@needs_proc
def test_close_waits_for_call_that_opens_archive(tmp_path):
    path = tmp_path / "archive.db"
    command = [sys.executable, "-c", LOCK, str(path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as locker:
        assert locker.stdout.readline() == "locked\n"
        transcripts = Transcripts(path, suppliers=[])
        with ThreadPoolExecutor(2) as pool:
            opening = pool.submit(transcripts.get, LINK)
            wait_until_open(path)
            closing = pool.submit(transcripts.close)
            time.sleep(0.3)
            assert not closing.done()
            locker.stdin.close()
            closing.result(10)
            assert isinstance(opening.exception(10), vt.ClosedError)
    assert not is_open(path)


#: Opens an archive that is locked; the handler of a signal closes it in the same thread.
CLOSE_ON_SIGNAL = """
import signal, sys
import verbatim_transcripts as vt

def close(*_):
    print("closing", flush=True)
    transcripts.close()
    print("closed", flush=True)

transcripts = vt.Transcripts(sys.argv[1], suppliers=[])
signal.signal(signal.SIGTERM, close)
try:
    transcripts.get(sys.argv[2])
except vt.ClosedError:
    print("rejected", flush=True)
"""


@needs_proc
def test_close_in_signal_handler_waits_for_open_of_same_thread(tmp_path):
    path = str(tmp_path / "archive.db")
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with subprocess.Popen([sys.executable, "-c", LOCK, path], **pipes) as locker:
        assert locker.stdout.readline() == "locked\n"
        with subprocess.Popen([sys.executable, "-c", CLOSE_ON_SIGNAL, path, LINK], **pipes) as process:
            try:
                wait_until_open(path, process.pid)
                process.send_signal(signal.SIGTERM)
                assert process.stdout.readline() == "closing\n"
                time.sleep(0.3)
                assert process.poll() is None
                locker.stdin.close()
                assert process.wait(10) == 0
                assert process.stdout.read() == "closed\nrejected\n"
            finally:
                process.kill()
                locker.stdin.close()
