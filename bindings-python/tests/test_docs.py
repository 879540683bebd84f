"""The examples in docstrings and in the guide are true, and the types are those of the objects."""

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

import verbatim

MODULES = ["verbatim"] + [f"verbatim.{module.name}" for module in pkgutil.iter_modules(verbatim.__path__)]


@pytest.mark.parametrize("name", MODULES)
def test_examples_in_docstrings(name):
    failed, _ = doctest.testmod(importlib.import_module(name), raise_on_error=False)
    assert failed == 0


def test_examples_of_native_classes():
    finder, runner = doctest.DocTestFinder(), doctest.DocTestRunner()
    ran = 0
    for kind in (verbatim.Segment, verbatim.Transcript):
        for test in finder.find(kind, kind.__name__, module=False):
            ran += runner.run(test).attempted
    assert ran >= 5 and runner.summarize(verbose=False).failed == 0


@pytest.mark.parametrize("path", sorted((ROOT / "docs" / "python").glob("*.md")), ids=lambda path: path.name)
def test_examples_in_the_guide(path: pathlib.Path):
    failed, _ = doctest.testfile(str(path), module_relative=False)
    assert failed == 0


def test_the_example_runs(replay, tmp_path):
    done = subprocess.run(
        [sys.executable, "-W", "error", ROOT / "docs" / "python" / "example.py", tmp_path / "archive.db"],
        env={"VERBATIM_UPSTREAM__PROXY": replay.proxy, "VERBATIM_UPSTREAM__CA_FILE": replay.ca_file},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    assert "How a tide mill works" in done.stdout and "no_captions" in done.stdout


@pytest.mark.parametrize(
    "check",
    [
        ["-m", "mypy", "--strict", "-p", "verbatim"],
        ["-m", "mypy.stubtest", "verbatim", "--ignore-disjoint-bases"],
        ["-m", "basedpyright", "--verifytypes", "verbatim", "--ignoreexternal"],
        ["-m", "basedpyright", "--level", "error", "-p", "."],
    ],
    ids=["mypy", "stubtest", "completeness", "pyright"],
)
def test_types(check, tmp_path):
    package = str(pathlib.Path(verbatim.__file__).parent)
    settings = {"typeCheckingMode": "standard", "include": [package], "exclude": ["**/nothing"]}
    (tmp_path / "pyrightconfig.json").write_text(json.dumps(settings))
    # Pyright takes the environment of the interpreter that it finds first.
    path = os.pathsep.join([os.path.dirname(sys.executable), os.environ["PATH"]])
    done = subprocess.run(
        [sys.executable, "-P", *check],
        cwd=tmp_path,
        env={**os.environ, "PATH": path},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_everything_public_has_a_docstring():
    for name in verbatim.__all__:
        thing = getattr(verbatim, name)
        if name == "__version__":
            continue
        assert thing.__doc__, name
        for member, value in vars(thing).items() if isinstance(thing, type) else ():
            if not member.startswith("_") and callable(value):
                assert value.__doc__, f"{name}.{member}"
