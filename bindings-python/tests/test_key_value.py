"""Archives over a store of keys and values of the program."""

import pytest
from conftest import LINK, SRT
from key_value_store import AwaitedStore, SqliteStore

import verbatim_transcripts as vt
from verbatim_transcripts import Transcripts, testing


@pytest.mark.parametrize("case", testing.cases("archive"))
@pytest.mark.parametrize("store", [SqliteStore, AwaitedStore])
def test_key_value_store_passes_conformance(store, case):
    testing.run("archive", case, store())


def test_key_value_store_keeps_transcripts(replay, tmp_path):
    for from_cache in (False, True):
        store = SqliteStore(tmp_path / "own.db")
        with Transcripts(store, proxies=replay.proxy, ca_file=replay.ca_file) as transcripts:
            assert transcripts.get("vb-tracks-0").from_cache == from_cache
            assert [each.video_id for each in transcripts.archived()] == ["vb-tracks-0"]
            assert transcripts.search("pond")


def test_key_value_store_exception_is_cause():
    class FailingStore(SqliteStore):
        def get(self, key):
            raise error

    error = vt.StorageUnavailable("no disk")
    with Transcripts(FailingStore(), suppliers=[]) as transcripts, pytest.raises(vt.StorageUnavailable) as raised:
        transcripts.get(LINK)
    assert raised.value.__cause__ is error and "store.get raised" in str(raised.value)
    error = KeyError("torn")
    with Transcripts(FailingStore(), suppliers=[]) as transcripts, pytest.raises(vt.StorageError) as raised:
        transcripts.get(LINK)
    assert type(raised.value) is vt.StorageError and raised.value.__cause__ is error


@pytest.mark.parametrize(
    ("method", "result", "expected"),
    [
        ("get", "text", r"get must return bytes or None, not <class 'str'>"),
        ("list", None, r"list must return pairs of a key and its bytes, not <class 'NoneType'>"),
        ("list", [("key",)], r"list must return pairs of a key and its bytes, not <class 'tuple'>"),
    ],
)
def test_key_value_store_wrong_result_is_named(method, result, expected):
    store = SqliteStore()
    setattr(store, method, lambda *arguments: result)
    with Transcripts(store, suppliers=[]) as transcripts, pytest.raises(vt.StorageError, match=expected):
        transcripts.get(LINK) if method == "get" else list(transcripts.archived())


@pytest.mark.parametrize(
    "defect",
    [
        lambda lists, prefix, after, limit: lists(prefix, prefix, limit),
        lambda lists, prefix, after, limit: lists(prefix, after, limit)[::-1],
    ],
    ids=["ignores after", "descends"],
)
def test_key_value_store_that_lists_other_keys_raises_error(defect):
    class DefectiveStore(SqliteStore):
        def list(self, prefix, after, limit):
            return defect(super().list, prefix, after, limit)

    with Transcripts(DefectiveStore(), suppliers=[]) as transcripts:
        for number in range(101):
            transcripts.import_(f"{number:011}", SRT, lang="en")
        with pytest.raises(vt.StorageCorrupt, match="are greater than `after`"):
            list(transcripts.archived())
