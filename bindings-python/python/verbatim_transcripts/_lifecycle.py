"""Forks, the exit of the interpreter, and subinterpreters."""

from __future__ import annotations

import atexit
import importlib
import os
import sys


def _reject_subinterpreters() -> None:
    """Raises `ImportError` in a subinterpreter before Python 3.12; later interpreters raise it themselves.

    Without this check the import would return objects of the main interpreter.
    """
    if sys.version_info >= (3, 12):
        return
    try:
        interpreters = importlib.import_module("_xxsubinterpreters")
    except ImportError:
        return
    if interpreters.get_current() != interpreters.get_main():
        raise ImportError("verbatim_transcripts does not run in subinterpreters: import it in the main interpreter")


_reject_subinterpreters()

from ._native import _after_fork, _after_fork_in_child, _at_exit, _before_fork  # noqa: E402

if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before_fork, after_in_parent=_after_fork, after_in_child=_after_fork_in_child)
atexit.register(_at_exit)
