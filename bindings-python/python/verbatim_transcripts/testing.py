"""The conformance suite for stores written in Python, and in-memory stores for experiments.

    import verbatim_transcripts.testing

    def test_my_ledger():
        verbatim_transcripts.testing.check("ledger", MyLedger)

Each case checks one rule of the port's contract on a fresh store; its name states the rule. A failure names the rule,
and the last calls of the store with their results. The built-in stores pass the same cases, including races between
several threads.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from ._conformance import failure_message, record_calls
from ._native import MemoryStore, _cases, _content_digest, _run_case
from .records import TranscriptRecord

__all__ = ["CaseFailure", "MemoryDirectory", "MemoryLedger", "cases", "check", "content_digest", "run"]


class CaseFailure(NamedTuple):
    """A failed case."""

    #: The name of the case, which states the rule.
    case: str
    #: The reason for the failure.
    why: str


def cases(port: str) -> list[str]:
    """Returns the names of the cases of `archive`, `ledger` or `directory`.

    >>> "hold_new_is_in_balance" in cases("ledger")
    True
    """
    return _cases(port)


def run(port: str, case: str, store: Any) -> None:
    """Runs one case on a fresh store.

    :raises AssertionError: the store breaks the rule; the message contains the last calls of the store.
    """
    recorder = record_calls(store)
    try:
        _run_case(port, case, recorder).wait()
    except AssertionError as error:
        raise AssertionError(failure_message(str(error), list(recorder.calls))) from None


def check(port: str, make: Callable[[], Any], *, only: Iterable[str] | None = None) -> None:
    """Runs all cases, or those in `only`, each on a new store from `make`.

    :raises AssertionError: lists every failed case.
    """
    failures = []
    for case in cases(port) if only is None else only:
        try:
            run(port, case, make())
        except AssertionError as error:
            failures.append(CaseFailure(case, str(error)))
    if failures:
        lines = "\n".join(f"  {failure.case}: {failure.why}" for failure in failures)
        raise AssertionError(f"{len(failures)} cases of the {port} suite failed:\n{lines}")


def content_digest(transcript: TranscriptRecord) -> list[int]:
    """Returns the `content_sha256` of a transcript record, as an archive must store it.

    :raises ValueError: the record is not a transcript.
    """
    return list(_content_digest(json.dumps(transcript)))


class _Memory:
    """An in-memory store with the methods of a port."""

    _port = ""

    def __init__(self) -> None:
        self._store = MemoryStore(self._port)

    def _call(self, method: str, *arguments: Any) -> Any:
        return json.loads(self._store.call(method, json.dumps(arguments)).wait())


def _method(name: str) -> Callable[..., Any]:
    def method(self: _Memory, *arguments: Any) -> Any:
        return self._call(name, *arguments)

    method.__name__ = name
    method.__doc__ = f"The port's `{name}`, with plain data."
    return method


class MemoryLedger(_Memory):
    """An in-memory ledger, to wrap or to inherit from. Call it with `asyncio.to_thread` in an async method."""

    _port = "ledger"

    hold: Callable[..., Any] = _method("hold")
    spend: Callable[..., Any] = _method("spend")
    extend: Callable[..., Any] = _method("extend")
    settle: Callable[..., Any] = _method("settle")
    grant: Callable[..., Any] = _method("grant")
    revoke: Callable[..., Any] = _method("revoke")
    balance: Callable[..., Any] = _method("balance")
    balance_since: Callable[..., Any] = _method("balance_since")
    expire: Callable[..., Any] = _method("expire")
    entries: Callable[..., Any] = _method("entries")
    wallets: Callable[..., Any] = _method("wallets")


class MemoryDirectory(_Memory):
    """An in-memory directory of keys and accounts, to wrap or to inherit from. Call it with `asyncio.to_thread` in an async method."""

    _port = "directory"

    key_owner: Callable[..., Any] = _method("key_owner")
    add_key: Callable[..., Any] = _method("add_key")
    renew_entitlement: Callable[..., Any] = _method("renew_entitlement")
    rotate: Callable[..., Any] = _method("rotate")
    revoke_key: Callable[..., Any] = _method("revoke_key")
    keys: Callable[..., Any] = _method("keys")
    put_token: Callable[..., Any] = _method("put_token")
    redeem: Callable[..., Any] = _method("redeem")
    account: Callable[..., Any] = _method("account")
    update_account: Callable[..., Any] = _method("update_account")
    erase_account: Callable[..., Any] = _method("erase_account")
    accounts: Callable[..., Any] = _method("accounts")
