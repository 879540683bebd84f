"""Why a video has no transcript: one class for each reason, and how long the archive remembers it."""

import pickle

import pytest
from conftest import LINK

import verbatim_transcripts as vt
from verbatim_transcripts import SupplyError, Transcripts

QUARTER, HOURS, DAY = 15 * 60, 6 * 3600, 24 * 3600


class FailingSupplier:
    name = "failing"

    def __init__(self, reason):
        self.reason = reason

    def supply(self, request):
        raise SupplyError(self.reason)


@pytest.mark.parametrize(
    ("reason", "kind", "remembered"),
    [
        ("private", vt.PrivateVideo, DAY),
        ("removed", vt.RemovedVideo, DAY),
        ("region", vt.RegionBlocked, DAY),
        ("payment", vt.PaidVideo, DAY),
        ("age", vt.AgeRestricted, QUARTER),
        ("login", vt.LoginRequired, QUARTER),
        ("members", vt.MembersOnly, QUARTER),
        ("live", vt.LiveVideo, QUARTER),
        ("upcoming", vt.UpcomingVideo, QUARTER),
        ("no_captions", vt.NoCaptions, HOURS),
        ("no_language", vt.LanguageNotFound, HOURS),
    ],
)
def test_reason_has_its_class(reason, kind, remembered):
    with Transcripts(suppliers=[FailingSupplier(reason)]) as transcripts:
        with pytest.raises(vt.TranscriptUnavailable) as first:
            transcripts.get(LINK, "de")
        with pytest.raises(vt.TranscriptUnavailable) as again:
            transcripts.get(LINK, "de")
    for error in (first.value, again.value):
        assert (type(error), error.reason) == (kind, reason)
        copy = pickle.loads(pickle.dumps(error))
        assert (type(copy), copy.__dict__) == (kind, error.__dict__)
    # The second failure comes from the archive, not from a call.
    assert isinstance(first.value.__cause__, SupplyError) and again.value.__cause__ is None
    assert remembered - 60 < again.value.retry_after <= remembered
    days = {DAY: "24 hours", HOURS: "6 hours", QUARTER: "15 minutes"}[remembered]
    assert days in " ".join(kind.__doc__.split())
    assert issubclass(kind, vt.VideoUnavailable) is (reason not in ("no_captions", "no_language"))


def test_language_not_found_lists_available_languages(youtube):
    for _ in range(2):
        with pytest.raises(vt.LanguageNotFound) as raised:
            youtube.get("vb-tracks-0", "ja")
        assert {"en", "de"} <= set(raised.value.available)
        named = str(raised.value).rstrip(".").split(" it has ")[1].split(", ")
        assert set(named) <= set(raised.value.available)


def test_service_client_has_same_classes():
    with vt.Service(suppliers=[FailingSupplier("members")]) as service:
        client = service.client(service.create_key("page").key)
        with pytest.raises(vt.MembersOnly) as raised:
            client.get(LINK)
        assert raised.value.reason == "members" and raised.value.video_id == "dQw4w9WgXcQ"


@pytest.mark.parametrize(
    ("reason", "kind", "code"),
    [
        ("private", vt.PrivateVideo, "private"),
        ("live", vt.LiveVideo, "live"),
        ("no_captions", vt.NoCaptions, "no_captions"),
        ("timeout", vt.FetchFailed, "fetch_error"),
        ("misconfigured", vt.NotConfigured, "config_error"),
        ("throttled", vt.RateLimited, "rate_limited"),
    ],
)
def test_v1_key_and_text_have_same_classes(reason, kind, code):
    from test_service import FakeMailer

    mailer = FakeMailer()
    with vt.Service(suppliers=[FailingSupplier(reason)], mailer=mailer, base_url="https://v.example") as service:
        keyed, account = service.client(service.create_key("page").key), service.client()
        account.register("ann@example.org")
        account.verify(mailer.token("ann@example.org"))
        (result,) = account.get_many([LINK])
        assert type(result.error) is kind
        for call in (account.get, keyed.get_text, lambda link: account.chat(link, "When?")):
            with pytest.raises(vt.TranscriptUnavailable) as raised:
                call(LINK)
            assert (type(raised.value), raised.value.reason) == (kind, code)
            # The first request has stored an absence.
            assert reason != "private" or DAY - 60 < raised.value.retry_after <= DAY


def test_code_without_detail_has_the_base_class():
    from verbatim_transcripts._client import _raise_refused
    from verbatim_transcripts._reasons import unavailable

    assert type(unavailable("None.", "no_captions")) is vt.TranscriptUnavailable
    for status, detail, kind in (
        (404, None, vt.TranscriptUnavailable),
        (404, "private", vt.PrivateVideo),
        (404, "embargo", vt.TranscriptUnavailable),
        (500, "still_working", vt.FetchFailed),
        (500, "defect", vt.FetchFailed),
        (500, "rate_limited", vt.RateLimited),
        (500, None, vt.ServiceRefused),
        (429, "busy", vt.ServiceRefused),
    ):
        with pytest.raises(vt.VerbatimError) as raised:
            _raise_refused("no link", vt.ServiceRefused("No.", status, detail, 7.0))
        assert type(raised.value) is kind and raised.value.retry_after == 7.0
    with pytest.raises(vt.LanguageNotFound) as raised:
        _raise_refused(LINK, vt.ServiceNotFound("No.", 404, available=["en"]))
    assert raised.value.available == ["en"]
    assert (raised.value.platform, raised.value.video_id) == ("YouTube", LINK.rpartition("/")[2])


def test_exception_without_a_reason_has_that_of_its_class():
    from verbatim_transcripts._reasons import _LIST_UNAVAILABLE, _UNAVAILABLE

    for reason, kind in _UNAVAILABLE.items():
        assert kind("No.").reason == reason
    for kind in _LIST_UNAVAILABLE.values():
        assert _LIST_UNAVAILABLE[kind("No.").reason] is kind
    assert vt.ListFetchFailed("No.").reason == "platform_fault"
    assert vt.TranscriptUnavailable("No.").reason == vt.ListUnavailable("No.").reason == ""


def test_messages_with_a_wait_have_retry_after():
    class ThrottledSupplier:
        name = "throttled"

        def supply(self, request):
            raise SupplyError("throttled", "Too many.", retry_after=40)

    with vt.Service(suppliers=[ThrottledSupplier()], breaker_threshold=1, breaker_cooldown=30) as service:
        client = service.client(service.create_key("page").key)
        calls = [lambda: service.get(LINK), lambda: client.get(LINK), lambda: client.get_text(LINK)]
        for call in [*calls, *calls]:
            with pytest.raises(vt.TranscriptUnavailable) as raised:
                call()
            assert 25 < raised.value.retry_after <= 40, raised.value
