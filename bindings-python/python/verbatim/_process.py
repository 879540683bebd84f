"""What the package does when the process is forked, ends, or is no plain interpreter."""

from __future__ import annotations

import atexit
import importlib
import os
import sys


def _refuse_sub_interpreters() -> None:
    """From Python 3.12 on the interpreter itself refuses; before, it would give out the main one's objects."""
    if sys.version_info >= (3, 12):
        return
    try:
        interpreters = importlib.import_module("_xxsubinterpreters")
    except ImportError:
        return
    if interpreters.get_current() != interpreters.get_main():
        raise ImportError("verbatim does not run in sub-interpreters: import it in the main one")


_refuse_sub_interpreters()

from ._native import _after_fork, _after_fork_in_child, _at_exit, _before_fork  # noqa: E402

if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before_fork, after_in_parent=_after_fork, after_in_child=_after_fork_in_child)
atexit.register(_at_exit)
