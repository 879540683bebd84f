"""Examples in docstrings and guides, type checks and docstrings."""

import doctest
import importlib
import json
import os
import pathlib
import pkgutil
import subprocess
import sys

import pytest
from conftest import ROOT

import stub_docs
import verbatim_transcripts as vt

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


def test_example_script_succeeds(replay, tmp_path):
    run = subprocess.run(
        [sys.executable, "-W", "error", ROOT / "docs" / "python" / "example.py", tmp_path / "archive.db"],
        env={"VERBATIM_UPSTREAM__PROXY": replay.proxy, "VERBATIM_UPSTREAM__CA_FILE": replay.ca_file},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert run.returncode == 0, run.stderr
    assert "How a tide mill works" in run.stdout and "vb-private0: private: " in run.stdout


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
    # Pyright uses the environment of the first interpreter on the path.
    path = os.pathsep.join([os.path.dirname(sys.executable), os.environ["PATH"]])
    run = subprocess.run(
        [sys.executable, "-P", *check],
        cwd=tmp_path,
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
        if name == "__version__":
            continue
        assert item.__doc__, name
        for member, value in vars(item).items() if isinstance(item, type) else ():
            if not member.startswith("_") and callable(value):
                assert value.__doc__, f"{name}.{member}"
