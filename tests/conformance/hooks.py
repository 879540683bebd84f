"""What a document of OpenAPI 3.1 cannot say about a request, told to the generator of requests.

A look-up takes exactly one of two ways to name a video, not every text is the link of a video or the address of a
mailbox, and a name for repeats is for one request only. Requests that are meant to be valid are made so here; those
that are meant to be wrong are left alone.
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


# The v1 API is for one platform, and answers 500 when that cannot be reached: what is asked for is archived.
V1_LINKS = (
    "https://www.youtube.com/watch?v=dQw4w9WgXcQ",
    "https://youtu.be/dQw4w9WgXcQ?t=43",
    "m.youtube.com/shorts/dQw4w9WgXcQ",
    "see (https://www.youtube.com/watch?v=dQw4w9WgXcQ&list=x#y) for it",
)
V1_LANGUAGES = ("en", "en-GB", "EN-us")
# The parameter that names a video by its id, and the links that are taken.
LOOK_UPS = {"/api/transcript": ("v", LINKS), "/api/v1/transcript": ("video_id", V1_LINKS)}

names = itertools.count()


def name_one_video(case):
    by_id, links = LOOK_UPS[case.operation.path]
    query = dict(case.query or {})
    url = query.pop("url", None)
    if url is not None and by_id not in query:
        # The same text always gives the same link, so that a run can be repeated.
        query["url"] = url if url in links else links[sum(str(url).encode()) % len(links)]
    elif by_id not in query:
        query[by_id] = "dQw4w9WgXcQ"
    case.query = query


def ask_for_what_is_archived(case):
    """Also where something else is wrong with the request: what is right is what the archive has."""
    query = dict(case.query or {})
    video, language = query.get("video_id"), query.get("lang")
    if isinstance(video, str) and re.fullmatch(r"[A-Za-z0-9_-]{11}", video):
        query["video_id"] = "dQw4w9WgXcQ"
    if isinstance(language, str) and re.fullmatch(r"[A-Za-z]{2,3}(-[A-Za-z]{2})?", language):
        query["lang"] = V1_LANGUAGES[sum(language.encode()) % len(V1_LANGUAGES)]
    case.query = query


def talk_of_what_is_archived(case):
    """The same for a question about a video."""
    video = case.body.get("video_id") if isinstance(case.body, dict) else None
    if isinstance(video, str) and re.fullmatch(r"[A-Za-z0-9_-]{11}", video):
        case.body["video_id"] = "dQw4w9WgXcQ"


def name_this_request(case):
    if case.headers and "Idempotency-Key" in case.headers:
        case.headers["Idempotency-Key"] = f"request-{next(names)}"


def name_a_mailbox(case):
    if isinstance(case.body, dict) and isinstance(case.body.get("email"), str):
        # A few mails go to each address, then it is limited.
        case.body["email"] = f"box{sum(case.body['email'].encode())}@example.org"


# The page of an order in the sandbox, and what Stripe's events are signed with, where the server has them.
ORDER, TOKEN = os.environ.get("SANDBOX_PAGE", "/").split("/", 1)
SECRET = os.environ.get("WEBHOOK_SECRET", "")
REPEATABLE = ("/api/v1/subscribe", "/api/v1/buy-credits", "/api/v1/chat")


def open_the_page(case):
    if ORDER:
        case.path_parameters["order"] = ORDER
        for part in (case.query, case.body):
            if isinstance(part, dict) and "token" in part:
                part["token"] = TOKEN


def sign_the_event(case):
    if SECRET and isinstance(case.body, dict):
        # About nothing that Stripe, which is not there, would be asked about.
        case.body["type"] = "customer.created"
        moment = int(time.time())
        signed = f"{moment}.".encode() + json.dumps(case.body).encode()
        digits = hmac.new(SECRET.encode(), signed, hashlib.sha256).hexdigest()
        case.headers["Stripe-Signature"] = f"t={moment},v1={digits}"


def is_look_up(operation):
    return operation.path in LOOK_UPS


@schemathesis.hook
def map_case(context, case):
    if case.meta is not None and not case.meta.generation.mode.is_negative:
        if is_look_up(case.operation):
            name_one_video(case)
            name_this_request(case)
        elif case.operation.path == "/api/v1/register":
            name_a_mailbox(case)
        elif case.operation.path in REPEATABLE:
            name_this_request(case)
        elif case.operation.path.startswith("/checkout/"):
            open_the_page(case)
        elif case.operation.path == "/api/v1/webhooks/stripe":
            sign_the_event(case)
    if case.operation.path == "/api/v1/transcript":
        ask_for_what_is_archived(case)
    elif case.operation.path == "/api/v1/chat":
        talk_of_what_is_archived(case)
    return case


@schemathesis.hook
def before_add_examples(context, examples):
    # Each example of `url` comes together with one of `v`: both are tried, each by itself.
    if is_look_up(context.operation):
        by_id, _ = LOOK_UPS[context.operation.path]
        for place, case in enumerate(examples):
            if case.query and "url" in case.query and place > 0:
                case.query = {name: value for name, value in case.query.items() if name != by_id}
            name_one_video(case)
            name_this_request(case)
            if context.operation.path == "/api/v1/transcript":
                ask_for_what_is_archived(case)
    for case in examples:
        if context.operation.path in REPEATABLE:
            name_this_request(case)
        elif context.operation.path.startswith("/checkout/"):
            open_the_page(case)
        elif context.operation.path == "/api/v1/webhooks/stripe":
            sign_the_event(case)


@schemathesis.deserializer("text/plain", "text/markdown")
def text(context, response):
    return response.content.decode("utf-8")
