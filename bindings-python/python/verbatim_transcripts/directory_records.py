"""Plain data that a :class:`verbatim_transcripts.Directory` receives and returns.

Times are milliseconds since 1970, digests are lists of 32 bytes.
"""

from __future__ import annotations

from typing import Literal, TypedDict, Union

from .records import PageRequest as PageRequest

__all__ = [
    "AccountPage",
    "AccountRecord",
    "AccountRef",
    "AddKeyOutcome",
    "EraseOutcome",
    "KeyAccess",
    "KeyOwner",
    "KeyPage",
    "KeySummary",
    "LookupKeyRecord",
    "NewKeyRecord",
    "PageRequest",
    "PaidPeriod",
    "PeriodRequests",
    "RedeemOutcome",
    "RedeemRequest",
    "RenewRequest",
    "RequestCounts",
    "RequestQuota",
    "RotateOutcome",
    "UpdateOutcome",
    "VerificationToken",
]


class NewKeyRecord(TypedDict):
    """A new key without the key itself: its digest, and its first characters as a hint."""

    id: str
    digest: list[int]
    hint: str
    now: int


class RequestQuota(TypedDict):
    """Maximum number of requests in a calendar period, in UTC."""

    max: int
    period: Literal["month", "day"]


class PeriodRequests(TypedDict):
    """Requests within one day or month; ``start`` is None without any."""

    start: Union[int, None]
    count: int


class RequestCounts(TypedDict):
    """Requests with a key: all of them, and those of the latest day and month with a request."""

    total: int
    last_at: Union[int, None]
    day: PeriodRequests
    month: PeriodRequests


class KeyAccess(TypedDict):
    """Expiry and quota of a key, which an operator sets, and its requests so far."""

    expires_at: Union[int, None]
    quota: Union[RequestQuota, None]
    requests: RequestCounts


class LookupKeyRecord(TypedDict):
    """A key of the lookup API. ``subject`` is that of the paid plan that entitles it."""

    key: NewKeyRecord
    wallet: str
    label: Union[str, None]
    email: Union[str, None]
    subject: Union[str, None]
    entitled_until: Union[int, None]
    access: KeyAccess


class KeySummary(TypedDict):
    """A key, and the time of its revocation."""

    key: LookupKeyRecord
    revoked_at: Union[int, None]


class KeyPage(TypedDict):
    """A page of keys, and the cursor of the next one."""

    items: list[KeySummary]
    next: Union[str, None]


#: A period of a plan that was paid for: ``from``, ``through`` (exclusive), its credits, those of a whole month, and the
#: anchor before it.
PaidPeriod = TypedDict(
    "PaidPeriod", {"from": int, "through": int, "credits": int, "monthly_credits": int, "anchor_before": int}
)


class AccountRecord(TypedDict):
    """An account of the v1 API. ``version`` counts its changes, and ``anchor`` starts its monthly periods."""

    id: str
    version: int
    email: str
    wallet: str
    plan: Literal["free", "starter", "pro", "scale"]
    anchor: int
    paid: Union[PaidPeriod, None]
    customer: Union[str, None]
    subscription: Union[str, None]
    blocked: bool
    prepaid_until: Union[int, None]


class AccountPage(TypedDict):
    """A page of accounts, and the cursor of the next one."""

    items: list[AccountRecord]
    next: Union[str, None]


class _ById(TypedDict):
    id: str


class _ByEmail(TypedDict):
    email: str


class _ByCustomer(TypedDict):
    customer: str


#: Reference to an account: by id, address, or customer id at the payment provider.
AccountRef = Union[_ById, _ByEmail, _ByCustomer]


class _LookupOwner(TypedDict):
    lookup: LookupKeyRecord


class _AccountKey(TypedDict):
    key: str
    account: AccountRecord


class _AccountOwner(TypedDict):
    account: _AccountKey


#: Owner of a key.
KeyOwner = Union[_LookupOwner, _AccountOwner]


class _RoomAt(TypedDict):
    room_at: Union[int, None]


class _SubjectFull(TypedDict):
    subject_full: _RoomAt


#: What `add_key` returns.
AddKeyOutcome = Union[Literal["added"], _SubjectFull]


class RenewRequest(TypedDict):
    """The entitlement of a key to extend; ``live_per_subject`` is the maximum of live plus keys."""

    key: str
    subject: str
    until: int
    now: int
    live_per_subject: int


#: What `rotate` returns.
RotateOutcome = Union[Literal["rotated"], Literal["stale"]]


class VerificationToken(TypedDict):
    """A verification token without the token itself."""

    digest: list[int]
    email: str
    expires_at: int
    now: int


class RedeemRequest(TypedDict):
    """A token to redeem, and the ids of the account and the key that it creates."""

    digest: list[int]
    confirmed: bool
    new_account: str
    new_wallet: str
    key: NewKeyRecord


class _IssuedKey(TypedDict):
    account: AccountRecord
    first: bool


class _Issued(TypedDict):
    issued: _IssuedKey


#: What `redeem` returns.
RedeemOutcome = Union[_Issued, Literal["needs_confirmation", "invalid"]]


class _Changed(TypedDict):
    changed: AccountRecord


#: What `update_account` returns.
UpdateOutcome = Union[_Changed, Literal["stale", "missing"]]

#: What `erase_account` returns.
EraseOutcome = Union[Literal["erased"], Literal["stale"], Literal["missing"]]
