"""Plain data that a :class:`verbatim_transcripts.Ledger` receives and returns.

Times are milliseconds since 1970. Amounts are whole numbers from 0.
"""

from __future__ import annotations

from typing import Literal, TypedDict, Union

from .records import PageRequest as PageRequest

__all__ = [
    "Allowance",
    "AllowancePool",
    "Balance",
    "BalancePage",
    "Entry",
    "EntryKind",
    "EntryPage",
    "GrantOutcome",
    "GrantRequest",
    "HoldOutcome",
    "HoldRequest",
    "HoldState",
    "Leg",
    "PageRequest",
    "PeriodBalance",
    "Pool",
    "PoolBalance",
    "RevokeOutcome",
    "RevokeRequest",
    "SettleOutcome",
    "SettleRequest",
    "Terms",
]


class Allowance(TypedDict):
    """An allowance for the period that ``bucket`` names, such as ``day/2026-11-20``."""

    bucket: str
    limit: int


class AllowancePool(TypedDict):
    """The pool of an allowance."""

    allowance: Allowance


#: Pool that a wallet spends from: an allowance, or purchased credits.
Pool = Union[AllowancePool, Literal["purchased"]]


class Terms(TypedDict):
    """Pools of a wallet in the order in which they are spent, and the start of the next period."""

    pools: list[Pool]
    resets_at: Union[int, None]


class Leg(TypedDict):
    """One wallet's part of a hold."""

    wallet: str
    terms: Terms
    amount: int


class HoldRequest(TypedDict):
    """Amounts to hold, or to spend in one step. A repeat has the same ``id``."""

    id: str
    legs: list[Leg]
    now: int
    expires_at: int
    memo: str


class SettleRequest(TypedDict):
    """Amounts to spend, one for each leg of a hold; zeros release it."""

    id: str
    spent: list[int]
    now: int


class GrantRequest(TypedDict):
    """Purchased credits to add. A repeat has the same ``id``."""

    id: str
    wallet: str
    amount: int
    now: int
    memo: str


class RevokeRequest(TypedDict):
    """Granted credits to revoke. A repeat has the same ``id``."""

    id: str
    grant: str
    amount: int
    now: int
    memo: str


class PoolBalance(TypedDict):
    """Balance of a pool. ``granted`` is the granted minus the revoked amount; 0 for an allowance."""

    pool: Pool
    spent: int
    held: int
    granted: int


class Balance(TypedDict):
    """Balances of a wallet's pools, in the order of the terms."""

    wallet: str
    pools: list[PoolBalance]


class PeriodBalance(TypedDict):
    """A balance, and the purchased credits that the wallet spent since a time."""

    balance: Balance
    purchased_spent: int


class _Expiry(TypedDict):
    expires_at: int


class _Open(TypedDict):
    open: _Expiry


class _Amounts(TypedDict):
    spent: list[int]


class _Closed(TypedDict):
    closed: _Amounts


#: State of a hold: open until a time, settled with these amounts, or expired.
HoldState = Union[_Open, _Closed, Literal["expired"]]


class _Balances(TypedDict):
    balances: list[Balance]


class _Held(TypedDict):
    held: _Balances


class _Leg(TypedDict):
    leg: int
    balance: Balance


class _Refused(TypedDict):
    refused: _Leg


class _KnownHold(TypedDict):
    state: HoldState
    balances: list[Balance]


class _HoldExists(TypedDict):
    known: _KnownHold


#: What `hold` and `spend` return.
HoldOutcome = Union[_Held, _Refused, _HoldExists, Literal["conflict"]]


class _Settled(TypedDict):
    settled: _Balances


class _State(TypedDict):
    state: HoldState


class _SettleExists(TypedDict):
    known: _State


#: What `settle` returns.
SettleOutcome = Union[_Settled, _SettleExists, Literal["unknown"]]


class _NewBalance(TypedDict):
    balance: Balance


class _Granted(TypedDict):
    granted: _NewBalance


#: What `grant` returns.
GrantOutcome = Union[_Granted, Literal["known", "conflict"]]


class _Taken(TypedDict):
    taken: int
    shortfall: int


class _Revoked(TypedDict):
    revoked: _Taken


class _RevokeExists(TypedDict):
    known: _Taken


#: What `revoke` returns.
RevokeOutcome = Union[_Revoked, _RevokeExists, Literal["unknown_grant", "conflict"]]


class _Shortfall(TypedDict):
    shortfall: int


class _RevokedKind(TypedDict):
    revoked: _Shortfall


#: Kind of change that an entry records.
EntryKind = Union[Literal["held", "spent", "charged", "returned", "expired", "granted"], _RevokedKind]


class Entry(TypedDict):
    """An immutable record of one change to a pool. ``cause`` is the id of the hold, grant or revocation."""

    seq: int
    at: int
    wallet: str
    pool: Pool
    kind: EntryKind
    amount: int
    cause: str
    memo: str


class EntryPage(TypedDict):
    """A page of entries, and the cursor of the next one."""

    items: list[Entry]
    next: Union[str, None]


class BalancePage(TypedDict):
    """A page of wallets with their balances, and the cursor of the next one."""

    items: list[Balance]
    next: Union[str, None]
