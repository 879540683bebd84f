"""Failed cases of the conformance suite in the terms of Python: the rule and the last calls."""

from __future__ import annotations

import reprlib
from collections import deque
from collections.abc import Sequence
from typing import Any

#: The calls that a message lists.
_CALLS = 3

#: The longest text of a call or a rule, in characters.
_LENGTH = 600


class _BoundedRepr(reprlib.Repr):
    """The `repr` of data, of bounded length."""

    def __init__(self) -> None:
        super().__init__()
        self.maxlevel = 6
        self.maxdict = 16
        self.maxlist = self.maxtuple = 6
        self.maxstring = self.maxother = 80

    def repr_bytes(self, value: bytes, level: int) -> str:
        """The first bytes: a value of a store of keys and values can have megabytes."""
        return repr(value[: self.maxstring]) + ("..." if len(value) > self.maxstring else "")


_REPR = _BoundedRepr()


def _bounded(text: str, length: int = _LENGTH) -> str:
    return text if len(text) <= length else f"{text[:length]}..."


class CallRecorder:
    """Passes the calls of a case to a store, and keeps the texts of the last ones."""

    def __init__(self, store: Any) -> None:
        self._store = store
        self.calls: deque[str] = deque(maxlen=_CALLS)

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._store, name)
        if not callable(method):
            return method

        def call(*arguments: Any) -> Any:
            # What follows must fit too.
            text = f"{name}({_bounded(', '.join(map(_REPR.repr, arguments)), _LENGTH // 2)})"
            try:
                value = method(*arguments)
            except BaseException as error:
                self._record(f"{text} raised {error!r}")
                raise
            if hasattr(value, "__await__"):
                return self._await(text, value)
            self._record(f"{text} returned {_REPR.repr(value)}")
            return value

        return call

    async def _await(self, text: str, awaitable: Any) -> Any:
        try:
            value = await awaitable
        except BaseException as error:
            self._record(f"{text} raised {error!r}")
            raise
        self._record(f"{text} returned {_REPR.repr(value)}")
        return value

    def _record(self, text: str) -> None:
        self.calls.append(_bounded(text))


def record_calls(store: Any) -> CallRecorder:
    """Returns a recorder before a store, of a class with the name of the store's class, which messages contain."""
    kind = type(store)
    names = {"__module__": kind.__module__, "__qualname__": kind.__qualname__}
    recorder: CallRecorder = type(kind.__name__, (CallRecorder,), names)(store)
    return recorder


def failure_message(why: str, calls: Sequence[str]) -> str:
    """Returns the message of a failed case.

    :param why: the reason of the native module.
    :param calls: the last calls of the store.
    """
    return "\n    ".join([_bounded(why), *(f"call: {call}" for call in calls)])
