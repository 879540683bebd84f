"""Custom stores and models: the conformance suite, and the service over them."""

import asyncio
import sys
import threading
import typing

import pytest
from conftest import LINK, SRT
from custom_archive import CustomArchive

import verbatim_transcripts as vt
from verbatim_transcripts import Service, Transcripts, _ports, directory_records, ledger_records, records, testing
from verbatim_transcripts.testing import MemoryDirectory, MemoryLedger


class AsyncStore:
    """Wraps a store so that every method is async."""

    def __init__(self, store):
        self._store = store

    def __getattr__(self, name):
        method = getattr(self._store, name)

        async def call(*arguments):
            await asyncio.sleep(0)
            return await asyncio.to_thread(method, *arguments)

        return call


@pytest.mark.parametrize("case", testing.cases("archive"))
def test_archive_custom_passes_conformance(case):
    testing.run("archive", case, CustomArchive())


@pytest.mark.parametrize("case", testing.cases("ledger"))
def test_ledger_async_passes_conformance(case):
    testing.run("ledger", case, AsyncStore(MemoryLedger()))


@pytest.mark.parametrize("case", testing.cases("directory"))
def test_directory_plain_passes_conformance(case):
    testing.run("directory", case, MemoryDirectory())


def matches(value, kind):
    """Whether plain data has the fields and types of a record, and no others."""
    if typing.is_typeddict(kind):
        fields = typing.get_type_hints(kind, vars(sys.modules[kind.__module__]))
        return (
            isinstance(value, dict)
            and kind.__required_keys__ <= set(value) <= set(fields)
            and all(matches(value[name], fields[name]) for name in value)
        )
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if origin is typing.Union:
        return any(matches(value, each) for each in arguments)
    if origin is typing.Literal:
        return value in arguments
    if origin is list:
        return isinstance(value, list) and all(matches(item, arguments[0]) for item in value)
    return type(value) is kind


class CheckedStore:
    """Compares the arguments and results of a store with the types of its protocol."""

    def __init__(self, store, protocol, records):
        self._store, self._protocol = store, protocol
        self._names = {**vars(_ports), **vars(records), **vars(vt.records)}

    def __getattr__(self, name):
        method = getattr(self._store, name)
        hints = typing.get_type_hints(getattr(self._protocol, name), self._names)
        returned = typing.get_args(hints.pop("return"))[:-1]

        def call(*arguments):
            for argument, (field, kind) in zip(arguments, hints.items(), strict=True):
                assert matches(argument, kind), f"{name} {field}: {argument}"
            result = method(*arguments)
            assert any(matches(result, kind) for kind in returned), f"{name} returned {result}"
            return result

        return call


@pytest.mark.parametrize(
    ("port", "store", "protocol", "records"),
    [
        ("archive", CustomArchive, vt.Archive, records),
        ("ledger", MemoryLedger, vt.Ledger, ledger_records),
        ("directory", MemoryDirectory, vt.Directory, directory_records),
    ],
)
def test_protocol_types_match_data(port, store, protocol, records):
    testing.check(port, lambda: CheckedStore(store(), protocol, records))
    with pytest.raises(AssertionError, match="returned"):
        testing.check(port, lambda: CheckedStore(WrongStore(store()), protocol, records))


class WrongStore:
    """Adds a field to every result."""

    def __init__(self, store):
        self._store = store

    def __getattr__(self, name):
        return lambda *arguments: {"unknown": getattr(self._store, name)(*arguments)}


def test_check_broken_ledger_fails_case():
    class BrokenLedger(MemoryLedger):
        def settle(self, request):
            return "unknown"

    with pytest.raises(AssertionError, match="cases of the ledger suite failed") as raised:
        testing.check("ledger", BrokenLedger, only=["hold_new_is_in_balance", "settle_with_zeros_releases_hold"])
    assert "1 cases" in str(raised.value) and "settle_with_zeros_releases_hold" in str(raised.value)
    with pytest.raises(ValueError, match="no suite"):
        testing.cases("nothing")
    with pytest.raises(ValueError, match="unknown case"):
        testing.run("ledger", "nothing", MemoryLedger())


class ForgetfulArchive(CustomArchive):
    """Returns another parser version than it stored."""

    def find(self, video, selector, now):
        found = super().find(video, selector, now)
        if isinstance(found, dict) and "transcript" in found:
            found["transcript"]["parser_version"] = 9
        return found


@pytest.mark.parametrize("make", [ForgetfulArchive, lambda: AsyncStore(ForgetfulArchive())], ids=["plain", "awaited"])
def test_conformance_failure_has_calls_of_python(make):
    with pytest.raises(AssertionError) as raised:
        testing.run("archive", "stored_transcript_is_found_unchanged", make())
    rule, *calls = str(raised.value).split("\n    ")
    assert rule == "find returns what put returned"
    assert calls[-1].startswith("call: find({'id': ") and " returned {'transcript': {" in calls[-1]
    assert 2 <= len(calls) <= 3 and max(map(len, calls)) < 700
    assert "Some(" not in str(raised.value) and "Transcript {" not in str(raised.value)


def test_conformance_failure_names_missing_error():
    class OtherErrorArchive(CustomArchive):
        def put(self, request):
            try:
                return super().put(request)
            except vt.InvalidInput as error:
                raise error_class(str(error)) from error

    for error_class, kind in ((KeyError, "Unexpected"), (vt.ConflictError, "Conflict")):
        with pytest.raises(AssertionError, match=f"the call must fail with Invalid; it failed with {kind}") as raised:
            testing.run("archive", "put_out_of_bounds_stores_nothing", OtherErrorArchive())
        assert f"raised {error_class.__name__}(" in str(raised.value)

    class LenientArchive(CustomArchive):
        def put(self, request):
            return super().put({**request, "wishes": request["wishes"] or ["default"]})

    with pytest.raises(AssertionError, match="no selector: the call must fail with Invalid\n    call: put"):
        testing.run("archive", "put_out_of_bounds_stores_nothing", LenientArchive())


@pytest.mark.parametrize("archive", [CustomArchive, lambda: AsyncStore(CustomArchive())], ids=["plain", "awaited"])
def test_archive_custom_serves_transcripts(archive, replay):
    with Transcripts(archive(), proxies=replay.proxy, ca_file=replay.ca_file) as transcripts:
        transcripts.import_(LINK, SRT, lang="en")
        assert transcripts.get(LINK).from_cache and len(transcripts.search("café")) == 1
        assert not transcripts.get("vb-tracks-0").from_cache
        assert asyncio.run(transcripts.aget("vb-tracks-0")).from_cache
        assert transcripts.stats()["videos"] == 2


@pytest.mark.parametrize("error", [ValueError("boom"), vt.StorageCorrupt("torn")])
def test_archive_exception_is_cause(error):
    class FailingArchive(CustomArchive):
        def find(self, video, selector, now):
            raise error

    kind = vt.StorageCorrupt if isinstance(error, vt.StorageCorrupt) else vt.StorageError
    with Transcripts(FailingArchive(), suppliers=[]) as transcripts:
        for call in (transcripts.get, lambda link: next(transcripts.get_many([link])).get()):
            with pytest.raises(vt.StorageError) as raised:
                call(LINK)
            assert type(raised.value) is kind and raised.value.__cause__ is error
            assert "archive.find raised" in str(raised.value)


def test_archive_cancellation_inside_method_is_storage_error():
    class CancelledArchive(CustomArchive):
        async def find(self, video, selector, now):
            login = asyncio.ensure_future(asyncio.sleep(60))
            login.cancel()
            await login

    with Transcripts(CancelledArchive(), suppliers=[]) as transcripts:
        for call in (transcripts.get, lambda link: asyncio.run(transcripts.aget(link))):
            with pytest.raises(vt.StorageError, match="the method was cancelled") as raised:
                call(LINK)
            assert isinstance(raised.value.__cause__, RuntimeError)


@pytest.mark.parametrize("answer", [None, 7, b"x", object(), {"transcript": {}}, "no such", {"absent": None}])
def test_archive_invalid_result_raises_error(answer):
    class InvalidArchive(CustomArchive):
        def find(self, video, selector, now):
            return answer

    with Transcripts(InvalidArchive(), suppliers=[]) as transcripts, pytest.raises(vt.StorageError, match="TypeError"):
        transcripts.get(LINK)


class RecordingModel:
    """Returns or raises a fixed answer, and records its calls."""

    context_tokens = 8_000

    def __init__(self, answer=None):
        self.answer = answer
        self.calls = []
        self.lock = threading.Lock()

    async def complete(self, messages, tokens_max):
        with self.lock:
            self.calls.append((messages, tokens_max))
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


def register(service, mailer):
    client = service.client()
    client.register("ann@example.org")
    client.verify(mailer.token("ann@example.org"))
    return client


def test_service_custom_ports_serve_chat():
    from test_service import FakeMailer

    model, mailer = RecordingModel("It says “The café is closed” [2]."), FakeMailer()
    stores = {"archive": CustomArchive(), "ledger": MemoryLedger(), "directory": AsyncStore(MemoryDirectory())}
    with Service(**stores, suppliers=[], chat=model, mailer=mailer) as service:
        service.import_(LINK, SRT, lang="en")
        client = register(service, mailer)
        before = client.me().credits_remaining
        answer = client.chat("dQw4w9WgXcQ", "Is the café open?")
        assert "The café is closed" in answer.response and answer.citations[0].url.endswith("t=61s")
        assert answer.credits_remaining == before - 1 == client.me().credits_remaining
    messages, tokens_max = model.calls[0]
    assert messages[0]["role"] == "system" and "café" in messages[-1]["content"] and tokens_max > 0


@pytest.mark.parametrize("answer", [ValueError("boom"), 7, None])
def test_chat_failing_model_charges_nothing(answer):
    from test_service import FakeMailer

    mailer = FakeMailer()
    with Service(suppliers=[], chat=RecordingModel(answer), mailer=mailer) as service:
        service.import_(LINK, SRT, lang="en")
        client = register(service, mailer)
        before = client.me().credits_remaining
        with pytest.raises(vt.ServiceRefused) as raised:
            client.chat("dQw4w9WgXcQ", "Is the café open?")
        assert raised.value.status == 500 and client.me().credits_remaining == before


class Vectors(list):
    """As an array of NumPy: no sequence, but it has a method."""

    tolist = list.copy


class TopicModel:
    """Knows that an espresso is drunk in a café."""

    model = "topics-1"

    def __init__(self, failure=None):
        self.failure, self.calls = failure, []

    def embed(self, texts, purpose):
        self.calls.append((purpose, len(texts)))
        if self.failure:
            raise self.failure
        is_coffee = lambda text: "espresso" in text or "café" in text  # noqa: E731
        return Vectors([1.0, 0.0] if is_coffee(text) else [0.0, 1.0] for text in texts)


def talk():
    """Captions of eight hundred lines about other things, and one about a café."""
    lines = [f"Boat number {n} sails along the coast with its crew." for n in range(800)]
    lines[501] = "Breakfast is served in the café behind the harbour."
    at = lambda n: f"{n // 360:02}:{n // 6 % 60:02}:{n % 6 * 10:02}"  # noqa: E731
    return "".join(f"{n + 1}\n{at(n)},000 --> {at(n)},900\n{line}\n\n" for n, line in enumerate(lines))


@pytest.mark.parametrize("failure", [None, ValueError("boom")], ids=["works", "fails"])
def test_service_custom_embeddings_find_by_meaning(failure, caplog):
    from test_service import FakeMailer

    embeddings, model, mailer = TopicModel(failure), RecordingModel("In the café [1]."), FakeMailer()
    model.context_tokens = 2_500
    with Service(suppliers=[], chat=model, embeddings=embeddings, mailer=mailer) as service:
        service.import_(LINK, talk(), lang="en")
        register(service, mailer).chat("dQw4w9WgXcQ", "Where to drink an espresso?")
    # The model's context holds a tenth of the talk.
    is_found = any("café" in message["content"] for message in model.calls[0][0])
    assert is_found is (failure is None)
    if failure is None:
        assert {purpose for purpose, _ in embeddings.calls} == {"question", "passage"}
    else:
        assert "passages were searched by words" in caplog.text and "boom" in caplog.text


def test_service_embeddings_without_name_raise_error():
    class Nameless:
        def embed(self, texts, purpose):
            return [[1.0]] * len(texts)

    with pytest.raises(TypeError, match="attribute model"):
        Service(suppliers=[], embeddings=Nameless())


def test_service_component_without_method_is_named():
    with pytest.raises(TypeError, match="method send"):
        Service(suppliers=[], mailer=object())
    for keywords, parts in (
        ({"chat": object()}, r"chat must be a tuple .*ChatModel, which has a method complete\(messages, tokens_max\)"),
        ({"embeddings": object()}, r"embeddings must be a tuple .*EmbeddingModel, which has a method embed\(texts, purpose\)"),
    ):
        with pytest.raises(TypeError, match=f"{parts}.*, not <class 'object'>"):
            Service(suppliers=[], **keywords)


@pytest.mark.parametrize("keywords", [{"archive": object()}, {"directory": object()}, {"chat": object()}, {"embeddings": object()}, {"ledger": 7}])
def test_service_invalid_component_raises_error(keywords):
    with pytest.raises((TypeError, ValueError)):
        Service(suppliers=[], **keywords)
