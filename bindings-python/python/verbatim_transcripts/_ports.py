"""Protocols of custom components. An object needs the methods only; it inherits from nothing.

Stores (archive, ledger, directory) receive and return plain data: dictionaries with the fields of the records of
transcript-core, lists, texts and numbers. Times are milliseconds since 1970, digests are lists of bytes. A variant
with fields is ``{"held": {…}}``, one without fields is ``"conflict"``. Every method is one transaction, plain or async; the
documentation of the core's port is its contract, and :func:`verbatim_transcripts.testing.check` verifies it. A store
raises :class:`verbatim_transcripts.StorageUnavailable` when it cannot be reached, and
:class:`verbatim_transcripts.ConflictError` and :class:`verbatim_transcripts.InvalidInput` as the contract requires.
"""

from __future__ import annotations

from collections.abc import Awaitable, Iterable, Sequence
from typing import TYPE_CHECKING, Protocol, TypeVar, Union

if TYPE_CHECKING:
    from ._native import SupplyRequest, Transcript
    from .directory_records import (
        AccountPage,
        AccountRecord,
        AccountRef,
        AddKeyOutcome,
        EraseOutcome,
        KeyOwner,
        KeyPage,
        LookupKeyRecord,
        NewKeyRecord,
        RedeemOutcome,
        RedeemRequest,
        RenewRequest,
        RotateOutcome,
        UpdateOutcome,
        VerificationToken,
    )
    from .ledger_records import (
        Balance,
        BalancePage,
        EntryPage,
        GrantOutcome,
        GrantRequest,
        HoldOutcome,
        HoldRequest,
        HoldState,
        PeriodBalance,
        RevokeOutcome,
        RevokeRequest,
        SettleOutcome,
        SettleRequest,
        Terms,
    )
    from .records import (
        AbsenceRecord,
        ArchivedTrack,
        ArchiveStats,
        FetchLease,
        FindOutcome,
        LeaseOutcome,
        PageRequest,
        PutRequest,
        ShortLinkRecord,
        StoredTranscript,
        TrackPage,
        VideoPage,
        VideoRecord,
    )

__all__ = ["Archive", "ChatModel", "Directory", "EmbeddingModel", "KeyValueStore", "Ledger", "Mailer", "Supplier"]


T = TypeVar("T")
#: The result of a plain or an async method.
MaybeAwaitable = Union[T, Awaitable[T]]


class Supplier(Protocol):
    """A source of transcripts that are not archived.

    Optional attributes are ``platforms`` (a list of ``"YouTube"``, ``"TikTok"``, ``"Instagram"`` and ``"X"``;
    default: all) and ``kind`` (``"captions"``, ``"speech"`` or ``"remote"``; default:
    ``"captions"``).

    A plain method runs on its own thread. An async method runs in an event loop of the package and is cancelled when
    no caller waits any more. It may call the :class:`verbatim_transcripts.Transcripts` object that called it for other
    videos and languages. A call for the same transcript raises ``RuntimeError``.
    """

    @property
    def name(self) -> str:
        """The ``source`` of its transcripts."""
        ...

    def supply(
        self, request: SupplyRequest
    ) -> Union[Transcript, Sequence[Transcript], None, Awaitable[Union[Transcript, Sequence[Transcript], None]]]:
        """Returns one or more transcripts, the best match first; None if there are no captions.

        Raise :class:`verbatim_transcripts.SupplyError` to report a reason. It describes how other exceptions count.
        """
        ...


class Mailer(Protocol):
    """A sender of mails."""

    def send(self, to: str, subject: str, text: str, html: str) -> Union[None, Awaitable[None]]:
        """Sends one mail. After an exception the mail is retried with growing pauses."""
        ...


class KeyValueStore(Protocol):
    """A store of keys and values, which becomes an archive: ``archive=`` of :class:`verbatim_transcripts.Transcripts`.

    An embedded database, a table with two columns, a dictionary. One process at a time may use it. Methods are plain or
    async; :func:`verbatim_transcripts.testing.check` verifies it as an ``"archive"``. Keys are texts of at most some 200
    bytes, values JSON of up to some megabytes. A store raises :class:`verbatim_transcripts.StorageUnavailable` when it
    cannot be reached.

    >>> import verbatim_transcripts as vt
    >>> class DictStore:
    ...     def __init__(self) -> None:
    ...         self.values: dict[str, bytes] = {}
    ...
    ...     def get(self, key: str) -> bytes | None:
    ...         return self.values.get(key)
    ...
    ...     def write(self, changes: dict[str, bytes | None]) -> None:
    ...         for key, value in changes.items():
    ...             if value is None:
    ...                 self.values.pop(key, None)
    ...             else:
    ...                 self.values[key] = value
    ...
    ...     def list(self, prefix: str, after: str, limit: int) -> list[tuple[str, bytes]]:
    ...         keys = sorted(key for key in self.values if key.startswith(prefix) and key > after)
    ...         return [(key, self.values[key]) for key in keys[:limit]]
    >>> with vt.Transcripts(DictStore(), suppliers=[]) as transcripts:
    ...     transcripts.stats()["videos"]
    0
    """

    def get(self, key: str) -> Union[bytes, None, Awaitable[Union[bytes, None]]]:
        """Returns the value of a key, or None."""
        ...

    def write(self, changes: dict[str, Union[bytes, None]]) -> Union[None, Awaitable[None]]:
        """Applies all changes in one transaction, durable when the call returns; None deletes the key."""
        ...

    def list(
        self, prefix: str, after: str, limit: int
    ) -> Union[Iterable[tuple[str, bytes]], Awaitable[Iterable[tuple[str, bytes]]]]:
        """Returns the first ``limit`` keys that begin with ``prefix`` and are greater than ``after``, in ascending order."""
        ...


class Archive(Protocol):
    """A permanent transcript store: ``archive=`` of :class:`verbatim_transcripts.Transcripts`.

    Every method is one transaction, plain or async; :mod:`verbatim_transcripts.records` has the types of the data, and
    :func:`verbatim_transcripts.testing.check` verifies the contract. A :class:`KeyValueStore` is far simpler.
    """

    def find(self, video: VideoRecord, selector: str, now: int) -> MaybeAwaitable[FindOutcome]:
        """Finds a track: `{"transcript": …}`, `{"absent": …}`, `"withdrawn"` or `"nothing"`."""
        ...

    def tracks(self, video: VideoRecord) -> MaybeAwaitable[list[ArchivedTrack]]:
        """Returns the tracks of a video, archived or only known."""
        ...

    def put(self, request: PutRequest) -> MaybeAwaitable[StoredTranscript]:
        """Stores a transcript for one or more track selectors."""
        ...

    def put_absence(self, absence: AbsenceRecord) -> MaybeAwaitable[None]:
        """Stores until a given time that a video has no transcript for a track selector."""
        ...

    def acquire_lease(self, lease: FetchLease) -> MaybeAwaitable[LeaseOutcome]:
        """Acquires or extends a fetch lease: `"claimed"` or `{"busy": {"until": …}}`."""
        ...

    def release_lease(self, video: VideoRecord, selector: str, holder: str) -> MaybeAwaitable[None]:
        """Releases a fetch lease."""
        ...

    def short_link(self, link: ShortLinkRecord) -> MaybeAwaitable[Union[VideoRecord, None]]:
        """Returns the video of a short link, or None."""
        ...

    def put_short_link(self, link: ShortLinkRecord, video: VideoRecord) -> MaybeAwaitable[None]:
        """Stores the video of a short link."""
        ...

    def withdraw(self, video: VideoRecord, withdrawn: bool, now: int) -> MaybeAwaitable[None]:
        """Withdraws a video, or restores it."""
        ...

    def delete(self, video: VideoRecord) -> MaybeAwaitable[None]:
        """Deletes all data of a video."""
        ...

    def change_counter(self) -> MaybeAwaitable[int]:
        """Returns the number of changes that can invalidate a transcript returned earlier."""
        ...

    def list_tracks(self, page: PageRequest) -> MaybeAwaitable[TrackPage]:
        """Returns one page of the archived tracks."""
        ...

    def list_withdrawn(self, page: PageRequest) -> MaybeAwaitable[VideoPage]:
        """Returns one page of the withdrawn videos."""
        ...

    def stats(self) -> MaybeAwaitable[ArchiveStats]:
        """Returns the totals of the archive."""
        ...


class Ledger(Protocol):
    """Wallets, holds and grants: ``ledger=`` of :class:`verbatim_transcripts.Service`.

    Every method is one transaction, plain or async; :mod:`verbatim_transcripts.ledger_records` has the types of the
    data, and :func:`verbatim_transcripts.testing.check` verifies the contract.
    """

    def hold(self, request: HoldRequest) -> MaybeAwaitable[HoldOutcome]:
        """Reserves amounts in wallets, all or none."""
        ...

    def spend(self, request: HoldRequest) -> MaybeAwaitable[HoldOutcome]:
        """Holds and settles in one step, with one ``"charged"`` entry per pool."""
        ...

    def extend(self, id: str, until: int) -> MaybeAwaitable[HoldState]:
        """Extends a hold."""
        ...

    def settle(self, request: SettleRequest) -> MaybeAwaitable[SettleOutcome]:
        """Settles a hold with one amount per leg."""
        ...

    def grant(self, request: GrantRequest) -> MaybeAwaitable[GrantOutcome]:
        """Adds credits, once per id."""
        ...

    def revoke(self, request: RevokeRequest) -> MaybeAwaitable[RevokeOutcome]:
        """Revokes granted credits."""
        ...

    def balance(self, wallet: str, terms: Terms) -> MaybeAwaitable[Balance]:
        """Returns the balance of a wallet."""
        ...

    def balance_since(self, wallet: str, terms: Terms, since: int) -> MaybeAwaitable[PeriodBalance]:
        """Returns the balance of a wallet, and the amount spent since a time."""
        ...

    def expire(self, now: int, limit: int) -> MaybeAwaitable[int]:
        """Expires overdue holds; returns their number."""
        ...

    def entries(self, wallet: str, page: PageRequest) -> MaybeAwaitable[EntryPage]:
        """Returns one page of the entries of a wallet."""
        ...

    def wallets(self, page: PageRequest) -> MaybeAwaitable[BalancePage]:
        """Returns one page of all wallets."""
        ...


class Directory(Protocol):
    """Keys and accounts: ``directory=`` of :class:`verbatim_transcripts.Service`.

    Every method is one transaction, plain or async; :mod:`verbatim_transcripts.directory_records` has the types of the
    data, and :func:`verbatim_transcripts.testing.check` verifies the contract.
    """

    def key_owner(self, key_digest: list[int]) -> MaybeAwaitable[Union[KeyOwner, None]]:
        """Returns the owner of the key with this digest, or None."""
        ...

    def add_key(self, key: LookupKeyRecord, live_per_subject: int) -> MaybeAwaitable[AddKeyOutcome]:
        """Adds a key of the lookup API."""
        ...

    def renew_entitlement(self, request: RenewRequest) -> MaybeAwaitable[bool]:
        """Extends a paid plan."""
        ...

    def rotate(self, old_digest: list[int], new: NewKeyRecord) -> MaybeAwaitable[RotateOutcome]:
        """Replaces a key."""
        ...

    def revoke_key(self, key: str, now: int) -> MaybeAwaitable[bool]:
        """Revokes a key."""
        ...

    def keys(self, page: PageRequest) -> MaybeAwaitable[KeyPage]:
        """Returns one page of all keys."""
        ...

    def put_token(self, token: VerificationToken) -> MaybeAwaitable[None]:
        """Stores a verification token."""
        ...

    def redeem(self, request: RedeemRequest) -> MaybeAwaitable[RedeemOutcome]:
        """Redeems a verification token."""
        ...

    def account(self, account: AccountRef) -> MaybeAwaitable[Union[AccountRecord, None]]:
        """Returns an account, or None."""
        ...

    def update_account(self, account: AccountRecord) -> MaybeAwaitable[UpdateOutcome]:
        """Updates an account, unless its version has changed."""
        ...

    def erase_account(self, id: str, version: int, now: int) -> MaybeAwaitable[EraseOutcome]:
        """Erases an account."""
        ...

    def accounts(self, page: PageRequest) -> MaybeAwaitable[AccountPage]:
        """Returns one page of all accounts."""
        ...


class ChatModel(Protocol):
    """A language model for chat answers: ``chat=`` of :class:`verbatim_transcripts.Service`.

    Its output is untrusted: quotes and citations are verified against the transcript. The optional attribute
    ``context_tokens`` is the size of its context (32,000).
    """

    def complete(self, messages: list[dict[str, str]], tokens_max: int) -> Union[str, Awaitable[str]]:
        """Returns the model's reply to messages, each with `role` and `content`."""
        ...


class EmbeddingModel(Protocol):
    """A model that turns texts into vectors: ``embeddings=`` of :class:`verbatim_transcripts.Service`.

    Texts with close vectors mean the same. For example, with sentence-transformers::

        class Local:
            model = "all-MiniLM-L6-v2"

            def __init__(self):
                self._transformer = SentenceTransformer(self.model)

            def embed(self, texts, purpose):
                return self._transformer.encode(texts)
    """

    @property
    def model(self) -> str:
        """The name and version of the model."""
        ...

    def embed(self, texts: list[str], purpose: str) -> MaybeAwaitable[Sequence[Sequence[float]]]:
        """Returns the vector of each text, in order; all vectors have the same length.

        `purpose` is ``question`` or ``passage``: some models embed both differently.
        """
        ...
