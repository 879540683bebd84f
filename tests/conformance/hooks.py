"""Schemathesis hooks for request rules that OpenAPI 3.1 cannot express.

A lookup takes exactly one of two parameters for the video, not every string is a video link or an email address, and an
Idempotency-Key belongs to one request. The hooks adjust requests generated as valid; requests generated as invalid are
not changed.
"""

import hashlib
import hmac
import itertools
import json
import os
import re
import time

import schemathesis

LINKS = (
    "https://www.youtube.com/watch?v=dQw4w9WgXcQ",
    "https://youtu.be/dQw4w9WgXcQ?t=43",
    "youtube.com/shorts/aaaaaaaaaaa",
    "see (https://m.youtube.com/watch?v=bbbbbbbbbbb&list=x#y) for it",
    "https://www.tiktok.com/@scout2015/video/6718335390845095173",
    "https://vm.tiktok.com/ZMh3kTxyz/",
    "https://www.instagram.com/reel/C1abcdefghi/",
    "https://x.com/someone/status/1453746193042456576",
)


# The v1 API returns 500 if the platform is unreachable, so requests name archived videos.
V1_LINKS = (
    "https://www.youtube.com/watch?v=dQw4w9WgXcQ",
    "https://youtu.be/dQw4w9WgXcQ?t=43",
    "m.youtube.com/shorts/dQw4w9WgXcQ",
    "see (https://www.youtube.com/watch?v=dQw4w9WgXcQ&list=x#y) for it",
)
V1_LANGUAGES = ("en", "en-GB", "EN-us")
# The pattern of the document.
LANGUAGE = (
    r"[A-Za-z]{2,3}(-[A-Za-z]{4})?(-([A-Za-z]{2}|[0-9]{3}))?"
    r"(-([A-Za-z0-9]{5,8}|[0-9][A-Za-z0-9]{3}))?"
)
# Path: the parameter of a video id, and the links in use.
LOOKUPS = {"/api/transcript": ("v", LINKS), "/api/v1/transcript": ("video_id", V1_LINKS)}

names = itertools.count()


def use_one_video_parameter(case):
    by_id, links = LOOKUPS[case.operation.path]
    query = dict(case.query or {})
    url = query.pop("url", None)
    if url is not None and by_id not in query:
        # Equal values map to equal links, so that runs are reproducible.
        query["url"] = url if url in links else links[sum(str(url).encode()) % len(links)]
    elif by_id not in query:
        query[by_id] = "dQw4w9WgXcQ"
    # A cursor belongs to one transcript, and some views to some formats.
    query.pop("cursor", None)
    unfit = {
        "words": query.get("format", "json") not in ("json", "vtt"),
        "chunk": query.get("format", "json") != "json",
        "description": query.get("format", "json") != "json",
        "frontmatter": query.get("format") not in ("md", "text", "vtt"),
        "translated": by_id == "v" and "lang" not in query,
    }
    case.query = {name: value for name, value in query.items() if not unfit.get(name)}


def use_archived_video(case):
    """Replaces valid ids and languages with archived ones, also in requests that are invalid otherwise."""
    query = dict(case.query or {})
    video, language = query.get("video_id"), query.get("lang")
    if isinstance(video, str) and re.fullmatch(r"[A-Za-z0-9_-]{11}", video):
        query["video_id"] = "dQw4w9WgXcQ"
    if isinstance(language, str) and re.fullmatch(LANGUAGE, language):
        query["lang"] = V1_LANGUAGES[sum(language.encode()) % len(V1_LANGUAGES)]
    case.query = query


def use_archived_video_in_chat(case):
    """Replaces a valid video id in a chat request with the archived one."""
    video = case.body.get("video_id") if isinstance(case.body, dict) else None
    if isinstance(video, str) and re.fullmatch(r"[A-Za-z0-9_-]{11}", video):
        case.body["video_id"] = "dQw4w9WgXcQ"


def set_idempotency_key(case):
    if case.headers and "Idempotency-Key" in case.headers:
        case.headers["Idempotency-Key"] = f"request-{next(names)}"


def use_public_callback(case):
    """Replaces a callback address: not every address is an https address with a public name."""
    if isinstance(case.body, dict) and isinstance(case.body.get("callback_url"), str):
        case.body["callback_url"] = "https://hooks.example.invalid/verbatim"


def use_one_source(case):
    """Leaves one source of videos in a new job: not every string names a list, and not every text is a time."""
    body = case.body
    if case.operation.path != "/api/v1/jobs" or not isinstance(body, dict):
        return
    if isinstance(body.get("playlist"), str):
        body["playlist"] = "PL0123456789abcdef"
    if isinstance(body.get("channel"), str):
        body["channel"] = "@name"
    if isinstance(body.get("search"), str):
        body["search"] = "tide mills"
    if isinstance(body.get("since"), str):
        body["since"] = "2026-01-31"
    if isinstance(body.get("limit"), (int, float)):
        body["limit"] = 1 + int(body["limit"]) % 1_000
    sources = [name for name in ("urls", "playlist", "channel", "search") if name in body]
    others = sources[1:] + (["limit", "since"] if sources[:1] == ["urls"] else [])
    case.body = {name: value for name, value in body.items() if name not in others}


def replace_null(case):
    """The server reads null as an absent field, which is no error: an invalid body has an object in its place."""
    if case.operation.path == "/api/v1/jobs" and isinstance(case.body, dict):
        case.body = {name: {} if value is None else value for name, value in case.body.items()}


def use_valid_email(case):
    if isinstance(case.body, dict) and isinstance(case.body.get("email"), str):
        # Each address has a mail limit, so addresses vary.
        case.body["email"] = f"box{sum(case.body['email'].encode())}@example.org"


# Order id and token of a sandbox page, and the signing secret of webhook events, if the server has them.
ORDER, TOKEN = os.environ.get("SANDBOX_PAGE", "/").split("/", 1)
SECRET = os.environ.get("WEBHOOK_SECRET", "")
REPEATABLE = ("/api/v1/subscribe", "/api/v1/buy-credits", "/api/v1/chat", "/api/v1/jobs")
# A cursor belongs to one list, and a job to one account.
LISTS = ("/api/search", "/api/v1/jobs", "/api/v1/jobs/{job}/results")


def use_sandbox_order(case):
    if ORDER:
        case.path_parameters["order"] = ORDER
        for part in (case.query, case.body):
            if isinstance(part, dict) and "token" in part:
                part["token"] = TOKEN


def sign_event(case):
    if SECRET and isinstance(case.body, dict):
        # An event type for which the server does not call Stripe, which is unreachable here.
        case.body["type"] = "customer.created"
        timestamp = int(time.time())
        signed = f"{timestamp}.".encode() + json.dumps(case.body).encode()
        digits = hmac.new(SECRET.encode(), signed, hashlib.sha256).hexdigest()
        case.headers["Stripe-Signature"] = f"t={timestamp},v1={digits}"


def bound_page(case):
    """Lines and files have no bound for `limit`, but a page of JSON has."""
    query = case.query
    if case.operation.path.endswith("/results") and query and query.get("format", "json") == "json" and "limit" in query:
        query["limit"] = 1 + (int(query["limit"]) - 1) % 100


def leave_out_cursor(case):
    if case.query:
        case.query = {name: value for name, value in case.query.items() if name != "cursor"}


def use_operator_values(case):
    """Replaces strings of the admin API: not every one is a cursor, a link, a time, a name or at most 256 bytes."""
    if case.query:
        case.query = {name: value for name, value in case.query.items() if name != "after"}
    if isinstance(case.body, dict):
        values = {"link": LINKS[0], "expires": "30d", "name": f"shop-{next(names)}", "memo": "contract 17"}
        case.body = {
            name: values.get(name, value) if isinstance(value, str) else value for name, value in case.body.items()
        }
        if isinstance(case.body.get("credits"), float):
            case.body["credits"] = int(case.body["credits"])


def is_lookup(operation):
    return operation.path in LOOKUPS


def make_valid(case):
    """Changes what the schema cannot describe."""
    if case.operation.path in LISTS:
        leave_out_cursor(case)
        bound_page(case)
    if is_lookup(case.operation):
        use_one_video_parameter(case)
        set_idempotency_key(case)
    elif case.operation.path.startswith("/admin/"):
        use_operator_values(case)
    elif case.operation.path == "/api/v1/register":
        use_valid_email(case)
    elif case.operation.path in REPEATABLE:
        set_idempotency_key(case)
        use_public_callback(case)
        use_one_source(case)
    elif case.operation.path.startswith("/checkout/"):
        use_sandbox_order(case)
    elif case.operation.path == "/api/v1/webhooks/stripe":
        sign_event(case)


@schemathesis.hook
def map_case(context, case):
    if case.meta is not None and case.meta.generation.mode.is_negative:
        replace_null(case)
    elif case.meta is not None:
        make_valid(case)
    if case.operation.path == "/api/v1/transcript":
        use_archived_video(case)
    elif case.operation.path == "/api/v1/chat":
        use_archived_video_in_chat(case)
    return case


@schemathesis.hook
def before_add_examples(context, examples):
    # Examples combine `url` with `v`: each parameter is tried separately.
    if is_lookup(context.operation):
        by_id, _ = LOOKUPS[context.operation.path]
        for index, case in enumerate(examples):
            if case.query and "url" in case.query and index > 0:
                case.query = {name: value for name, value in case.query.items() if name != by_id}
            use_one_video_parameter(case)
            set_idempotency_key(case)
            if context.operation.path == "/api/v1/transcript":
                use_archived_video(case)
    for case in examples:
        if context.operation.path in LISTS:
            leave_out_cursor(case)
        if context.operation.path in REPEATABLE:
            set_idempotency_key(case)
        elif context.operation.path.startswith("/checkout/"):
            use_sandbox_order(case)
        elif context.operation.path == "/api/v1/webhooks/stripe":
            sign_event(case)


@schemathesis.deserializer("text/plain", "text/markdown")
def text(context, response):
    return response.content.decode("utf-8")
