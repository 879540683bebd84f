"""What objects of your own must have to take a part's place. Nothing need be inherited: having it is enough.

Stores (archive, ledger, directory) are given and give plain data: dictionaries with the fields of transcript-core's
records, lists, texts and numbers; moments are milliseconds since 1970, digests lists of bytes; a variant with fields is
``{"held": {…}}``, one without is ``"conflict"``. Every method is one transaction, and may be plain or async; what each has
to do is in the documentation of the core's port. :func:`verbatim.testing.check` tells whether it does. They raise
:class:`verbatim.StorageUnavailable` where the store is away, :class:`verbatim.Conflict` and :class:`verbatim.InvalidInput`
as the port says.
"""

from __future__ import annotations

from collections.abc import Awaitable, Sequence
from typing import TYPE_CHECKING, Any, Protocol, Union

if TYPE_CHECKING:
    from ._native import Ask, Transcript

__all__ = ["Archive", "ChatModel", "Directory", "Ledger", "Mailer", "Supplier"]


class Supplier(Protocol):
    """Whatever can produce a transcript that is not archived.

    Beside ``name`` and ``supply`` it may have ``platforms`` (a list of ``"video_site"``, ``"short_video"``,
    ``"reels"``, ``"microblog"``; all of them without it) and ``kind`` (``"captions"``, ``"speech"`` or ``"remote"``).

    A plain method runs on a thread of its own; an async one in the package's own event loop, where it is cancelled
    when nobody wants the answer any more. It may ask other videos and languages of the :class:`verbatim.Transcripts`
    that asks it, but not the very transcript that it is asked for: that is a ``RuntimeError``.
    """

    @property
    def name(self) -> str:
        """The ``source`` of its transcripts."""
        ...

    def supply(
        self, ask: Ask
    ) -> Union[Transcript, Sequence[Transcript], None, Awaitable[Union[Transcript, Sequence[Transcript], None]]]:
        """The transcript for what is asked, the best for the wish first; None where there are no captions.

        Raise :class:`verbatim.SupplyFailed` to say why there is none.
        """
        ...


class Mailer(Protocol):
    """Whatever takes mails to their recipients."""

    def send(self, to: str, subject: str, text: str, html: str) -> Union[None, Awaitable[None]]:
        """Hands a mail over to whatever delivers it. What it raises is tried again, with growing pauses."""
        ...


class Archive(Protocol):
    """The lasting store of transcripts: ``archive=`` of :class:`verbatim.Transcripts`.

    Plain data in and out, one transaction a method, plain or async: :mod:`verbatim._ports` says it whole.
    """

    def find(self, video: Any, wish: str, now: int) -> Any:
        """What is known about a wish: `{"transcript": …}`, `{"absent": …}`, `"withdrawn"` or `"nothing"`."""
        ...

    def tracks(self, video: Any) -> Any:
        """The tracks of a video, archived and only known."""
        ...

    def keep(self, keep: Any) -> Any:
        """Keeps a transcript for one or several wishes."""
        ...

    def keep_absence(self, absence: Any) -> Any:
        """Remembers that there is nothing for a wish, until a moment."""
        ...

    def claim(self, lease: Any) -> Any:
        """Claims the right to fetch: `"claimed"` or `{"busy": {"until": …}}`."""
        ...

    def unclaim(self, video: Any, wish: str, holder: str) -> Any:
        """Gives a claim back."""
        ...

    def link(self, link: Any) -> Any:
        """The video that a short link means, or None."""
        ...

    def keep_link(self, link: Any, video: Any) -> Any:
        """Remembers what a short link means."""
        ...

    def withdraw(self, video: Any, withdrawn: bool, now: int) -> Any:
        """Takes a video down, or puts it back."""
        ...

    def forget(self, video: Any) -> Any:
        """Deletes all of a video."""
        ...

    def changes(self) -> Any:
        """Counts the changes that can make a transcript untrue that was found before."""
        ...

    def page(self, page: Any) -> Any:
        """The archived tracks, page by page."""
        ...

    def withdrawn(self, page: Any) -> Any:
        """The videos that are withdrawn, page by page."""
        ...

    def stats(self) -> Any:
        """How much the archive holds."""
        ...


class Ledger(Protocol):
    """Wallets, holds and grants: ``ledger=`` of :class:`verbatim.Service`.

    Plain data in and out, one transaction a method, plain or async: :mod:`verbatim._ports` says it whole.
    """

    def hold(self, ask: Any) -> Any:
        """Holds amounts in wallets, all or none."""
        ...

    def spend(self, ask: Any) -> Any:
        """Holds and settles in one step, with one entry of each pool: ``"charged"``."""
        ...

    def extend(self, id: str, until: int) -> Any:
        """Puts off a hold's end."""
        ...

    def settle(self, ask: Any) -> Any:
        """Settles a hold with a figure for each leg."""
        ...

    def grant(self, grant: Any) -> Any:
        """Adds credits, once for each id."""
        ...

    def revoke(self, ask: Any) -> Any:
        """Takes credits back."""
        ...

    def balance(self, wallet: str, terms: Any) -> Any:
        """A wallet's balance."""
        ...

    def balance_since(self, wallet: str, terms: Any, since: int) -> Any:
        """The same, and what was spent since."""
        ...

    def expire(self, now: int, limit: int) -> Any:
        """Ends overdue holds; returns how many."""
        ...

    def entries(self, wallet: str, page: Any) -> Any:
        """A wallet's entries, page by page."""
        ...

    def wallets(self, page: Any) -> Any:
        """All wallets, page by page."""
        ...


class Directory(Protocol):
    """Keys and accounts: ``directory=`` of :class:`verbatim.Service`.

    Plain data in and out, one transaction a method, plain or async: :mod:`verbatim._ports` says it whole.
    """

    def owner(self, key_digest: Any) -> Any:
        """Whose key has this digest, or None."""
        ...

    def add_key(self, key: Any, live_per_subject: int) -> Any:
        """Adds a key for look-ups."""
        ...

    def entitle(self, ask: Any) -> Any:
        """Puts off the end of a paid plan."""
        ...

    def rotate(self, old_digest: Any, new: Any) -> Any:
        """Replaces a key."""
        ...

    def revoke_key(self, key: str, now: int) -> Any:
        """Ends a key."""
        ...

    def keys(self, page: Any) -> Any:
        """All keys, page by page."""
        ...

    def put_token(self, token: Any) -> Any:
        """Keeps a verification token."""
        ...

    def redeem(self, ask: Any) -> Any:
        """Redeems one."""
        ...

    def account(self, who: Any) -> Any:
        """An account, or None."""
        ...

    def change_account(self, account: Any) -> Any:
        """Changes an account that nobody changed meanwhile."""
        ...

    def erase_account(self, id: str, version: int, now: int) -> Any:
        """Erases an account."""
        ...

    def accounts(self, page: Any) -> Any:
        """All accounts, page by page."""
        ...


class ChatModel(Protocol):
    """The model that answers questions: ``chat=`` of :class:`verbatim.Service`.

    It is believed in nothing: what it writes is checked against the transcript before anybody sees it. It may have
    ``context_tokens``, how many tokens it takes at once (32,000).
    """

    def complete(self, messages: list[dict[str, str]], tokens_max: int) -> Union[str, Awaitable[str]]:
        """What the model writes to these messages, each with `role` and `content`."""
        ...
