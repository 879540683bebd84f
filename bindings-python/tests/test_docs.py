"""Examples in docstrings and guides, type checks and docstrings."""

import doctest
import importlib
import importlib.metadata
import json
import os
import pathlib
import pkgutil
import re
import subprocess
import sys
import textwrap

import pytest
from conftest import ROOT
from test_client import server as server

import stub_docs
import verbatim_transcripts as vt
from verbatim_transcripts import _errors

MODULES = [
    "verbatim_transcripts",
    *(f"verbatim_transcripts.{module.name}" for module in pkgutil.iter_modules(vt.__path__)),
]


@pytest.mark.parametrize("name", MODULES)
def test_docstrings_examples_pass(name):
    failed, _ = doctest.testmod(importlib.import_module(name), raise_on_error=False)
    assert failed == 0


def test_docstrings_native_examples_pass():
    finder, runner = doctest.DocTestFinder(), doctest.DocTestRunner()
    ran = 0
    for kind in (vt.Segment, vt.Transcript):
        for test in finder.find(kind, kind.__name__, module=False):
            ran += runner.run(test).attempted
    assert ran >= 5 and runner.summarize(verbose=False).failed == 0


@pytest.mark.parametrize("path", sorted((ROOT / "docs" / "python").glob("*.md")), ids=lambda path: path.name)
def test_guide_examples_pass(path: pathlib.Path):
    failed, _ = doctest.testfile(str(path), module_relative=False)
    assert failed == 0


def test_guide_names_every_exception():
    text = GUIDES["guide"].read_text()
    assert [name for name in vt.__all__ if name in vars(_errors) and f"`{name}`" not in text] == []


def guide_program(path: pathlib.Path) -> str:
    """The blocks of a guide as the body of one function, as its readers would continue their program."""
    blocks = re.findall(r"^```python\n(.*?)^```$", path.read_text(), re.DOTALL | re.MULTILINE)
    body = textwrap.indent("\n".join(blocks), "    ")
    return f"import asyncio\n\n\nasync def main() -> None:\n{body}\n\nasyncio.run(main())\n"


def doctest_program(path: pathlib.Path) -> str:
    """The interactive examples of a guide as a program."""
    return "\n".join(example.source for example in doctest.DocTestParser().get_examples(path.read_text()))


GUIDES = {
    "guide": ROOT / "docs" / "python" / "README.md",
    "package": ROOT / "bindings-python" / "README.md",
    "repository": ROOT / "README.md",
}


@pytest.mark.parametrize("name", GUIDES)
def test_guide_program_succeeds(name, server, replay, tmp_path):
    program = guide_program(GUIDES[name])
    assert "verbatim_transcripts" in program
    client = vt.Client(server.address)
    address = f"{name}@example.org"
    client.register(address)
    values = {
        "dQw4w9WgXcQ": "vb-tracks-0",
        "PL0123456789abcdef": "PLvb-tides-0001",
        "@name": "@tidemills",
        "http://me:secret@10.0.0.7:3128": replay.proxy,
        "https://verbatim.example": server.address,
        "vbk_…": str(client.create_key().key),
        "vba_…": client.verify(server.token(address)),
    }
    for shown, value in values.items():
        program = program.replace(shown, value)
    # The guide names neither the replay proxy nor its certificates.
    options = f"proxies={replay.proxy!r}, ca_file={replay.ca_file!r}"
    setup = (
        "import functools, verbatim_transcripts as vt\n"
        "for kind in (vt.Transcripts, vt.Service):\n"
        f"    kind.__init__ = functools.partialmethod(kind.__init__, {options})\n"
    )
    (tmp_path / "guide.py").write_text(setup + program)
    run = subprocess.run(
        [sys.executable, "guide.py"],
        cwd=tmp_path,
        env={
            **os.environ,
            "VERBATIM_UPSTREAM__PROXY": replay.proxy,
            "VERBATIM_UPSTREAM__CA_FILE": replay.ca_file,
        },
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert run.returncode == 0, run.stderr


@pytest.mark.parametrize("checker", ["mypy", "pyright"])
def test_guide_passes_strict_type_check(checker, tmp_path):
    for name, path in GUIDES.items():
        (tmp_path / f"{name}_blocks.py").write_text(guide_program(path))
    (tmp_path / "examples.py").write_text(doctest_program(GUIDES["guide"]))
    (tmp_path / "example_script.py").write_text((ROOT / "docs" / "python" / "example.py").read_text())
    # An interactive example shows the value of an expression, and the variables of a guide are for its reader.
    shown = {"reportUnusedExpression": False, "reportUnusedVariable": False}
    settings = {"typeCheckingMode": "strict", "include": ["."], **shown}
    (tmp_path / "pyrightconfig.json").write_text(json.dumps(settings))
    checks = {"mypy": ["-m", "mypy", "--strict", "."], "pyright": ["-m", "basedpyright", "-p", "."]}
    check_types(checks[checker], tmp_path)


def test_example_script_succeeds(replay, tmp_path):
    run = subprocess.run(
        [sys.executable, "-W", "error", ROOT / "docs" / "python" / "example.py", tmp_path / "archive.db"],
        env={"VERBATIM_UPSTREAM__PROXY": replay.proxy, "VERBATIM_UPSTREAM__CA_FILE": replay.ca_file},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert run.returncode == 0, run.stderr
    assert "How a tide mill works" in run.stdout and "YouTube vb-private0: This video is private." in run.stdout


@pytest.mark.parametrize(
    "check",
    [
        ["-m", "mypy", "--strict", "-p", "verbatim_transcripts"],
        ["-m", "mypy.stubtest", "verbatim_transcripts", "--ignore-disjoint-bases"],
        ["-m", "basedpyright", "--verifytypes", "verbatim_transcripts", "--ignoreexternal"],
        ["-m", "basedpyright", "--level", "error", "-p", "."],
    ],
    ids=["mypy", "stubtest", "completeness", "pyright"],
)
def test_types_checker_passes(check, tmp_path):
    package = str(pathlib.Path(vt.__file__).parent)
    settings = {"typeCheckingMode": "standard", "include": [package], "exclude": ["**/nothing"]}
    (tmp_path / "pyrightconfig.json").write_text(json.dumps(settings))
    check_types(check, tmp_path)


def check_types(check: list[str], folder: pathlib.Path) -> None:
    # Pyright uses the environment of the first interpreter on the path.
    path = os.pathsep.join([os.path.dirname(sys.executable), os.environ["PATH"]])
    run = subprocess.run(
        [sys.executable, "-P", *check],
        cwd=folder,
        env={**os.environ, "PATH": path},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert run.returncode == 0, run.stdout + run.stderr


def test_stub_has_docstrings_of_module():
    """`python tests/stub_docs.py` updates the stub."""
    assert stub_docs.is_current(stub_docs.source().read_text())


def test_docstrings_cover_public_names():
    for name in vt.__all__:
        item = getattr(vt, name)
        # A union has no docstring.
        if name in ("__version__", "BatchResult"):
            continue
        assert item.__doc__, name
        for member, value in vars(item).items() if isinstance(item, type) else ():
            if not member.startswith("_") and callable(value):
                assert value.__doc__, f"{name}.{member}"


def test_reference_pages_have_every_public_name(tmp_path):
    command = [sys.executable, "-P", "-m", "pdoc", "verbatim_transcripts", "-o", str(tmp_path)]
    subprocess.run(command, check=True, capture_output=True, timeout=300)
    page = (tmp_path / "verbatim_transcripts.html").read_text()
    assert [name for name in vt.__all__ if f'id="{name}"' not in page] == []
    # A method of the native module, whose docstring is Rust's.
    assert 'id="Transcript.to_markdown"' in page


def test_distribution_contains_licences():
    names = {path.name for path in importlib.metadata.files("verbatim-transcripts")}
    assert {"LICENSE-APACHE", "LICENSE-MIT"} <= names
