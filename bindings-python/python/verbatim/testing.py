"""The conformance suite for stores written in Python, and stores in memory to try things out with.

    import verbatim.testing

    def test_my_ledger():
        verbatim.testing.check("ledger", MyLedger)

Each case is a rule of the port's contract, run on a fresh store; its name says the rule. The cases are those that the
built-in stores pass, races included: several threads call at once.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from ._native import MemoryStore, _cases, _content_digest, _run_case

__all__ = ["Failure", "MemoryDirectory", "MemoryLedger", "cases", "check", "content_digest", "run"]


class Failure(NamedTuple):
    """A rule that a store breaks."""

    #: The case, whose name says the rule.
    case: str
    #: What was found.
    why: str


def cases(port: str) -> list[str]:
    """The names of the cases of `archive`, `ledger` or `directory`.

    >>> "a_hold_is_held_and_seen" in cases("ledger")
    True
    """
    return _cases(port)


def run(port: str, case: str, store: Any) -> None:
    """Runs one case on a fresh store.

    :raises AssertionError: the store breaks the rule; the text says how.
    """
    _run_case(port, case, store).wait()


def check(port: str, make: Callable[[], Any], *, only: Iterable[str] | None = None) -> None:
    """Runs all cases, or `only` some, each on a store that `make` makes.

    :raises AssertionError: with every rule that is broken.
    """
    failures = []
    for case in cases(port) if only is None else only:
        try:
            run(port, case, make())
        except AssertionError as error:
            failures.append(Failure(case, str(error)))
    if failures:
        lines = "\n".join(f"  {failure.case}: {failure.why}" for failure in failures)
        raise AssertionError(f"{len(failures)} rules of the {port} are broken:\n{lines}")


def content_digest(transcript: Any) -> list[int]:
    """The digest of a transcript as an archive is given it: what `content_sha256` has to be.

    :raises ValueError: it is no transcript.
    """
    return list(_content_digest(json.dumps(transcript)))


class _Memory:
    """A store in memory, with the port's methods."""

    _port = ""

    def __init__(self) -> None:
        self._store = MemoryStore(self._port)

    def _ask(self, method: str, *arguments: Any) -> Any:
        return json.loads(self._store.ask(method, json.dumps(arguments)).wait())


def _method(name: str) -> Callable[..., Any]:
    def method(self: _Memory, *arguments: Any) -> Any:
        return self._ask(name, *arguments)

    method.__name__ = name
    method.__doc__ = f"The port's `{name}`, with plain data."
    return method


class MemoryLedger(_Memory):
    """A ledger in memory: to be wrapped or inherited from."""

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
    """Keys and accounts in memory: to be wrapped or inherited from."""

    _port = "directory"

    owner: Callable[..., Any] = _method("owner")
    add_key: Callable[..., Any] = _method("add_key")
    entitle: Callable[..., Any] = _method("entitle")
    rotate: Callable[..., Any] = _method("rotate")
    revoke_key: Callable[..., Any] = _method("revoke_key")
    keys: Callable[..., Any] = _method("keys")
    put_token: Callable[..., Any] = _method("put_token")
    redeem: Callable[..., Any] = _method("redeem")
    account: Callable[..., Any] = _method("account")
    change_account: Callable[..., Any] = _method("change_account")
    erase_account: Callable[..., Any] = _method("erase_account")
    accounts: Callable[..., Any] = _method("accounts")
