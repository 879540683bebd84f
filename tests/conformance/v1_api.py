"""A client of the v1 API, written from the specification without knowledge of the server.

It checks every status, field, header and type of specification 2.5 to 2.8, 3, 4.4 to 4.11, 5, 7.2 and 8.

usage: v1_api.py all ADDRESS OUTBOX ARCHIVED WITHDRAWN UNREACHABLE [--without ENDPOINT]...
       v1_api.py limited ADDRESS OUTBOX
       v1_api.py spent ADDRESS OUTBOX ARCHIVED

ARCHIVED, WITHDRAWN and UNREACHABLE are video ids: an archived video, a withdrawn one, and one that the server fails to
fetch. `limited` needs a server with the limits of the specification, `spent` one whose accounts have one credit.
OUTBOX is the folder of the server's mails.
"""

import datetime
import email
import email.policy
import http.client
import json
import pathlib
import re
import sys
import time
import urllib.parse

PLANS = ("free", "starter", "pro", "scale")
PACKS = {"1k": (1000, 12), "2k": (2000, 20), "5k": (5000, 40), "10k": (10000, 70), "25k": (25000, 150), "50k": (50000, 250)}
# Every endpoint: method, whether it needs a key, and a valid body.
ENDPOINTS = {
    "transcript": ("GET", True, None),
    "chat": ("POST", True, {"video_id": "dQw4w9WgXcQ", "message": "What is it about?"}),
    "register": ("POST", False, {"email": "someone@example.org"}),
    "verify": ("GET", False, None),
    "me": ("GET", True, None),
    "rotate-key": ("POST", True, None),
    "subscribe": ("POST", True, {"plan": "starter"}),
    "buy-credits": ("POST", True, {"pack": "1k"}),
}
METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE")

checks = 0


def check(name, passed, actual=None):
    global checks
    checks += 1
    if not passed:
        sys.exit(f"v1_api: {name}: {actual!r}")


def is_integer(value):
    return isinstance(value, int) and not isinstance(value, bool)


def is_number(value):
    return isinstance(value, (int, float)) and not isinstance(value, bool)


class Response:
    def __init__(self, response):
        self.status = response.status
        self.headers = {name.lower(): value for name, value in response.getheaders()}
        self.text = response.read().decode()

    @property
    def body(self):
        check("a body is JSON", self.headers.get("content-type", "").startswith("application/json"), self.headers)
        return json.loads(self.text)


class Client:
    def __init__(self, address, outbox):
        self.host = urllib.parse.urlsplit(address).netloc
        self.outbox = pathlib.Path(outbox)

    def call(self, method, endpoint, key=None, query=None, body=None, raw=None, headers=()):
        """Sends one request, and checks the rules of specification 7.2 for every response."""
        path = f"/api/v1/{endpoint}" + (f"?{urllib.parse.urlencode(query)}" if query else "")
        sent = dict(headers)
        if key is not None:
            sent["Authorization"] = f"Bearer {key}"
        if body is not None:
            raw = json.dumps(body).encode()
        if raw is not None:
            sent["Content-Type"] = "application/json"
        connection = http.client.HTTPConnection(self.host, timeout=60)
        try:
            connection.request(method, path, body=raw, headers=sent)
            response = Response(connection.getresponse())
        finally:
            connection.close()
        label = f"{method} {path}: {response.status}"
        if response.status >= 400:
            error = response.body
            check(f"{label}: error is a string", isinstance(error["error"], str) and error["error"], error)
            check(f"{label}: code is the status", is_integer(error["code"]) and error["code"] == response.status, error)
            check(f"{label}: an error has these two fields", set(error) == {"error", "code"}, error)
        after = response.headers.get("retry-after")
        check(f"{label}: Retry-After on 429 and nowhere else", (after is not None) == (response.status == 429), after)
        if after is not None:
            check(f"{label}: Retry-After is seconds", re.fullmatch(r"[1-9][0-9]*", after), after)
            if endpoint == "verify":
                # Earlier checks used up the network's limit of verification attempts per minute.
                time.sleep(int(after))
                return self.call(method, endpoint, key, query, body, None if body is not None else raw, headers)
        return response

    def expect(self, status, *arguments, **named):
        response = self.call(*arguments, **named)
        check(f"{arguments} {named.get('query') or named.get('body')}: {status}", response.status == status, response.text)
        return response

    def token(self, mailbox):
        """Returns the token of the link in the newest mail to an address."""
        for _ in range(3000):
            for path in sorted(self.outbox.glob("*.eml"), reverse=True):
                mail = email.message_from_bytes(path.read_bytes(), policy=email.policy.default)
                if mail["To"] == mailbox:
                    text = mail.get_body(("plain",)).get_content()
                    link = re.search(r"https?://\S+/api/v1/verify\?\S+", text)
                    check("a verification email has a link", link, text)
                    return urllib.parse.parse_qs(urllib.parse.urlsplit(link.group()).query)["token"][0]
            time.sleep(0.01)
        sys.exit("v1_api: no mail arrived")

    def account(self, mailbox, credits=200):
        """Creates an account and returns its key."""
        registered = self.expect(200, "POST", "register", body={"email": mailbox}).body
        check("success is true", registered["success"] is True, registered)
        check("message is a string", isinstance(registered["message"], str), registered)
        verified = self.expect(200, "GET", "verify", query={"token": self.token(mailbox)}).body
        check("success is true", verified["success"] is True, verified)
        key = verified["api_key"]
        check("a key has a prefix and an underscore", re.fullmatch(r"[A-Za-z]+_\S+", key), "a key")
        check("credits of a new account", is_integer(verified["credits"]) and verified["credits"] == credits, verified)
        check("plan of a new account", verified["plan"] == "free", verified["plan"])
        return key

    def me(self, key):
        me = self.expect(200, "GET", "me", key=key).body
        check("fields of an account", {"email", "plan", "credits_remaining", "credits_total", "resets_at"} <= set(me), me)
        check("email is a string", isinstance(me["email"], str), me)
        check("plan is one of four", me["plan"] in PLANS, me)
        for name in ("credits_remaining", "credits_total"):
            check(f"{name} is an integer", is_integer(me[name]), me)
        check("resets_at is in UTC", me["resets_at"].endswith(("Z", "+00:00")), me)
        resets = datetime.datetime.fromisoformat(me["resets_at"].replace("Z", "+00:00"))
        check("resets_at is in the future", resets > datetime.datetime.now(datetime.timezone.utc), me)
        return me

    def transcript(self, key, cache, **query):
        response = self.expect(200, "GET", "transcript", key=key, query=query)
        check("X-Cache", response.headers["x-cache"] == cache, response.headers)
        remaining = response.headers["x-credits-remaining"]
        check("X-Credits-Remaining", remaining == str(self.me(key)["credits_remaining"]), remaining)
        body = response.body
        for name in ("video_id", "title", "language"):
            check(f"{name} is a string", isinstance(body[name], str), body.get(name))
        check("is_generated is a boolean", isinstance(body["is_generated"], bool), body["is_generated"])
        check("segments is a list", isinstance(body["segments"], list) and body["segments"], body["segments"])
        for segment in body["segments"]:
            check("text is a string", isinstance(segment["text"], str), segment)
            for name in ("start", "duration"):
                check(f"{name} is a number", is_number(segment[name]) and segment[name] >= 0, segment)
        return body


def check_methods_and_keys(client, key, without):
    for endpoint, (method, needs_key, body) in ENDPOINTS.items():
        if endpoint in without:
            continue
        for other in METHODS:
            # Mail links use GET. POST on verify is the button of the page that GET returns.
            if other != method and (endpoint, other) != ("verify", "POST"):
                client.expect(405, other, endpoint, key=key)
        if needs_key:
            for wrong in (None, "", "nonsense", key[:-1], key + "x", key.split("_")[0] + "_" + "0" * 36):
                client.expect(401, method, endpoint, key=wrong, body=body)
            # A key in a URL is not accepted.
            for name in ("key", "api_key", "token", "access_token"):
                client.expect(401, method, endpoint, query={name: key}, body=body)
            client.expect(401, method, endpoint, body=body, headers={"X-Api-Key": key}.items())


def check_register_and_verify(client):
    for wrong in ({}, {"email": ""}, {"email": "no-at-sign"}, {"email": 7}, {"email": None}, {"email": "a@b@c"}, []):
        client.expect(400, "POST", "register", body=wrong)
    for wrong in (b"", b"{", b"\xff"):
        client.expect(400, "POST", "register", raw=wrong)
    # The status of an invalid token is not specified: any 4xx is accepted.
    for query in (None, {"token": ""}, {"token": "0" * 64}, {"token": "../../etc"}):
        response = client.call("GET", "verify", query=query)
        check("an invalid token is rejected", 400 <= response.status < 500, response.text)


def check_transcripts(client, key, archived, withdrawn, unreachable):
    by_id = client.transcript(key, "HIT", video_id=archived)
    check("video_id is the requested video", by_id["video_id"] == archived, by_id["video_id"])
    check("English is the default", by_id["language"].split("-")[0] == "en", by_id["language"])
    # An extension repeats the requested language.
    english = client.transcript(key, "HIT", video_id=archived, lang="en")
    check("lang=en is the same", english == {**by_id, "requested_language": "en"}, english)
    for link in (f"https://www.youtube.com/watch?v={archived}", f"https://youtu.be/{archived}"):
        check("a link is the same", client.transcript(key, "HIT", url=link) == by_id, link)
    link = f"https://youtu.be/{archived}"
    before = client.me(key)["credits_remaining"]
    for wrong in (
        None,
        {"video_id": archived, "url": link},
        {"video_id": ""},
        {"video_id": archived[:10]},
        {"video_id": archived + "x"},
        {"video_id": "exactly 11!"},
        {"url": ""},
        {"url": "https://example.org/watch?v=" + archived},
        {"url": "malformed"},
        {"video_id": archived, "lang": "not a language"},
    ):
        client.expect(400, "GET", "transcript", key=key, query=wrong)
    client.expect(404, "GET", "transcript", key=key, query={"video_id": withdrawn})
    client.expect(500, "GET", "transcript", key=key, query={"video_id": unreachable})
    check("failed requests cost nothing", client.me(key)["credits_remaining"] == before)


def check_chat(client, key, archived):
    turn = {"role": "user", "content": "hello"}
    before = client.me(key)["credits_remaining"]
    body = {"video_id": archived, "message": "m" * 2000, "conversation_history": [turn] * 20}
    response = client.expect(200, "POST", "chat", key=key, body=body).body
    check("response is a string", isinstance(response["response"], str) and response["video_id"] == archived, response)
    credits = response["credits"]
    check("credits are integers", all(is_integer(credits[name]) for name in ("used", "limit", "remaining")), credits)
    check("a message costs one credit", credits["remaining"] == before - 1, credits)
    for wrong in (
        {"message": "hello"},
        {"video_id": archived},
        {"video_id": archived, "message": "m" * 2001},
        {"video_id": archived, "message": 7},
        {"video_id": archived, "message": "hello", "conversation_history": [turn] * 21},
        {"video_id": archived, "message": "hello", "conversation_history": [{"role": "system", "content": ""}]},
        {"video_id": archived, "message": "hello", "conversation_history": [{"role": "user"}]},
    ):
        client.expect(400, "POST", "chat", key=key, body=wrong)


def check_selling(client, key, without):
    before = client.me(key)
    if "buy-credits" not in without:
        for pack, (credits, price) in PACKS.items():
            sold = client.expect(200, "POST", "buy-credits", key=key, body={"pack": pack}).body
            check("checkout_url is a URL", re.match(r"https?://\S+$", sold["checkout_url"]), sold)
            check("pack is the requested pack", sold["pack"] == pack, sold)
            check("credits of the pack", is_integer(sold["credits"]) and sold["credits"] == credits, sold)
            check("price of the pack", is_number(sold["price_usd"]) and sold["price_usd"] == price, sold)
        for wrong in ({}, {"pack": "3k"}, {"pack": 1000}, {"pack": None}):
            client.expect(400, "POST", "buy-credits", key=key, body=wrong)
    if "subscribe" not in without:
        for plan in PLANS[1:]:
            sold = client.expect(200, "POST", "subscribe", key=key, body={"plan": plan}).body
            check("success is true", sold["success"] is True, sold)
            check("checkout_url is a URL", re.match(r"https?://\S+$", sold["checkout_url"]), sold)
        for wrong in ({}, {"plan": "free"}, {"plan": "gold"}, {"plan": 1}):
            client.expect(400, "POST", "subscribe", key=key, body=wrong)
    check("unpaid orders add nothing", client.me(key) == before, before)


def check_rotation(client, key):
    before = client.me(key)
    rotated = client.expect(200, "POST", "rotate-key", key=key).body
    check("success is true", rotated["success"] is True, "a rotation")
    new = rotated["api_key"]
    check("a new key with the same prefix", new != key and new.split("_")[0] == key.split("_")[0], "a key")
    client.expect(401, "GET", "me", key=key)
    client.expect(401, "POST", "rotate-key", key=key)
    check("rotation keeps the account", client.me(new) == before, before)


def check_all(client, archived, withdrawn, unreachable, without):
    key = client.account("all@example.org")
    me = client.me(key)
    check("email of the account", me["email"] == "all@example.org", me)
    check("a new account", (me["plan"], me["credits_remaining"], me["credits_total"]) == ("free", 200, 200), me)
    client.call("GET", "verify", query={"token": client.token("all@example.org")})
    check("opening a used link keeps the key valid", client.me(key) == me, me)
    check_methods_and_keys(client, key, without)
    check_register_and_verify(client)
    check_transcripts(client, key, archived, withdrawn, unreachable)
    if "chat" not in without:
        check_chat(client, key, archived)
    check_selling(client, key, without)
    check_rotation(client, key)


def check_limited(client):
    key = client.account("limited@example.org")
    for _ in range(10):
        client.expect(200, "GET", "me", key=key)
    # The limit covers all endpoints, and counts invalid requests.
    for endpoint, query in (("me", None), ("transcript", None), ("transcript", {"video_id": "nonsense"})):
        after = int(client.expect(429, "GET", endpoint, key=key, query=query).headers["retry-after"])
        check("Retry-After is at most a minute", 1 <= after <= 60, after)
    client.expect(401, "GET", "me", key="nonsense")
    time.sleep(after)
    client.expect(200, "GET", "me", key=key)


def check_spent(client, archived):
    key = client.account("spent@example.org", credits=1)
    client.transcript(key, "HIT", video_id=archived)
    spent = client.expect(402, "GET", "transcript", key=key, query={"video_id": archived})
    check("no credits remain", spent.headers.get("x-credits-remaining", "0") == "0", spent.headers)
    check("no credits remain", client.me(key)["credits_remaining"] == 0)
    client.expect(400, "GET", "transcript", key=key)


def main(arguments):
    without = [value for flag, value in zip(arguments, arguments[1:]) if flag == "--without"]
    names = [name for name in arguments if name != "--without" and name not in without]
    mode, address, outbox, *videos = names
    client = Client(address, outbox)
    if mode == "all":
        check_all(client, *videos, without)
    elif mode == "limited":
        check_limited(client)
    else:
        check_spent(client, *videos)
    print(f"{checks} checks passed", end="")
    print(f", without {', '.join(without)}" if without else "")


main(sys.argv[1:])
