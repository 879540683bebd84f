"""Proxies and certificates from the environment, in processes of their own."""

import contextlib
import os
import pathlib
import shutil
import socket
import subprocess
import sys
import threading

import pytest

PACKAGE = str(pathlib.Path(__import__("verbatim_transcripts").__file__).parents[1])
GET = """
import sys, verbatim_transcripts as vt
try:
    with vt.Transcripts(retries=0, request_timeout=5) as transcripts:
        print(transcripts.get("vb-tracks-0").language)
except vt.VerbatimError as error:
    print(type(error).__name__)
"""
DEAD = "http://127.0.0.1:9"


def run(code, **environment):
    names = ("PROXY", "CERT", "CA_BUNDLE", "VERBATIM_")
    clean = {name: value for name, value in os.environ.items() if not any(part in name.upper() for part in names)}
    env = {**clean, "PYTHONPATH": PACKAGE, **environment}
    done = subprocess.run([sys.executable, "-P", "-c", code], env=env, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@pytest.mark.parametrize("certificates", ["SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "VERBATIM_UPSTREAM__CA_FILE"])
@pytest.mark.parametrize("proxy", ["HTTPS_PROXY", "https_proxy", "ALL_PROXY", "VERBATIM_UPSTREAM__PROXY"])
def test_environment_sets_proxy_and_certificates(replay, proxy, certificates):
    assert run(GET, **{proxy: replay.proxy, certificates: replay.ca_file}) == "en"


def test_environment_certificates_of_folder_are_trusted(replay, tmp_path):
    shutil.copy(replay.ca_file, tmp_path / "0f3a9c5d.0")
    assert run(GET, HTTPS_PROXY=replay.proxy, REQUESTS_CA_BUNDLE=str(tmp_path)) == "en"


def test_environment_own_variable_precedes_standard_one(replay):
    variables = {"VERBATIM_UPSTREAM__PROXY": f"{replay.proxy},{replay.proxy}", "HTTPS_PROXY": DEAD}
    assert run(GET, **variables, SSL_CERT_FILE=replay.ca_file) == "en"
    assert run(GET, HTTPS_PROXY=DEAD, SSL_CERT_FILE=replay.ca_file) == "FetchFailed"


def test_environment_keyword_precedes_variables(replay):
    code = GET.replace("retries=0", f"proxies={replay.proxy!r}, ca_file={replay.ca_file!r}")
    assert run(code, HTTPS_PROXY=DEAD, REQUESTS_CA_BUNDLE="/does/not/exist") == "en"


@pytest.mark.parametrize(
    ("direct", "result"), [("example.org", "en"), ("www.youtube.com", "FetchFailed"), ("*", "FetchFailed")]
)
def test_environment_no_proxy_connects_directly(replay, direct, result):
    # The certificate of the replay proxy is the only trusted one, so a direct connection fails in any network.
    assert run(GET, HTTPS_PROXY=replay.proxy, SSL_CERT_FILE=replay.ca_file, NO_PROXY=direct) == result


def test_environment_wrong_proxy_is_named():
    call = "try:\n    vt.Transcripts()\nexcept vt.InvalidInput as error:\n    print(error)"
    code = f"import verbatim_transcripts as vt\n{call}"
    message = run(code, HTTPS_PROXY="ftp://me:secret@proxy")
    assert "HTTPS_PROXY" in message and "secret" not in message


def test_environment_archive_of_functions_is_that_of_the_command(replay, tmp_path):
    code = "import verbatim_transcripts as vt; print(vt.get('vb-tracks-0').from_cache)"
    url = f"sqlite://{tmp_path}/archive.db"
    variables = {"HTTPS_PROXY": replay.proxy, "SSL_CERT_FILE": replay.ca_file, "VERBATIM_STORAGE__ARCHIVE_URL": url}
    assert [run(code, **variables), run(code, **variables)] == ["False", "True"]
    assert (tmp_path / "archive.db").is_file()


@pytest.mark.parametrize("variable", ["REQUESTS_CA_BUNDLE", "VERBATIM_UPSTREAM__CA_FILE"])
def test_environment_certificates_apply_to_client(variable, replay, tmp_path):
    code = "import verbatim_transcripts as vt\ntry:\n    vt.Client('https://v.example'{})\n    print('created')\nexcept vt.InvalidInput as error:\n    print(error)"
    wrong = tmp_path / "wrong.pem"
    wrong.write_text("no certificate")
    assert str(wrong) in run(code.format(""), **{variable: str(wrong)})
    assert run(code.format(""), **{variable: replay.ca_file}) == "created"
    assert run(code.format(f", ca_file={replay.ca_file!r}"), **{variable: str(wrong)}) == "created"


@pytest.mark.parametrize("variable", ["SSL_CERT_FILE", "REQUESTS_CA_BUNDLE"])
def test_environment_missing_certificates_are_named_after_failed_connection(variable, replay, tmp_path):
    missing = tmp_path / "missing.pem"
    code = GET.replace("type(error).__name__", "error")
    client = "import verbatim_transcripts as vt\ntry:\n    vt.Client('https://www.youtube.com', retries=0).get('dQw4w9WgXcQ')\nexcept vt.ServiceUnreachable as error:\n    print(error)"
    for message in (
        run(code, HTTPS_PROXY=replay.proxy, **{variable: str(missing)}),
        run(client, HTTPS_PROXY=replay.proxy, **{variable: str(missing)}),
    ):
        assert message.rstrip(".").endswith(f"{variable} names {missing}, which does not exist"), message
    # It is not the cause of another failure.
    assert str(missing) not in run(client, HTTPS_PROXY=DEAD, **{variable: str(missing)})


def test_environment_missing_additional_certificates_fail_no_offline_call():
    code = "import verbatim_transcripts as vt; print(vt.Transcripts(suppliers=[]).stats()['videos'])"
    assert run(code, REQUESTS_CA_BUNDLE="/does/not/exist.pem") == "0"


@pytest.mark.parametrize(("direct", "is_used"), [("", True), ("v.example", False)])
def test_environment_proxy_applies_to_client(direct, is_used):
    code = "import verbatim_transcripts as vt\ntry:\n    vt.Client('https://v.example', 'vbk_' + 36 * 'a', retries=0).key_status()\nexcept vt.VerbatimError as error:\n    print(type(error).__name__)"
    with socket.create_server(("127.0.0.1", 0)) as proxy:
        proxy.settimeout(60)
        requests = []

        def accept():
            with contextlib.suppress(OSError), proxy.accept()[0] as connection:
                requests.append(connection.recv(4096))
                connection.sendall(b"HTTP/1.1 502 Bad Gateway\r\ncontent-length: 0\r\n\r\n")

        thread = threading.Thread(target=accept, daemon=True)
        thread.start()
        run(code, HTTPS_PROXY=f"http://127.0.0.1:{proxy.getsockname()[1]}", NO_PROXY=direct)
        if is_used:
            thread.join(60)
    assert [request.splitlines()[0] for request in requests] == [b"CONNECT v.example:443 HTTP/1.1"] * is_used
    assert not any(b"vbk_" in request for request in requests)


IMPORT = """
import sys
before = set(sys.modules)
import verbatim_transcripts as vt
loaded = set(sys.modules) - before
assert not loaded & {"asyncio", "dataclasses", "datetime", "logging", "pathlib", "typing"}, loaded
ours = {name for name in loaded if name.startswith("verbatim_transcripts.")}
assert ours == {"verbatim_transcripts._native", "verbatim_transcripts._lifecycle"}, ours
assert vt.Client.__module__ in sys.modules and set(vt.__all__) <= set(dir(vt))
for name in vt.__all__:
    assert getattr(vt, name) is vars(vt)[name]
assert not hasattr(vt, "Clients")
"""


def test_import_loads_other_modules_on_use():
    run(IMPORT)
