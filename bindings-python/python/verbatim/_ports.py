"""What objects of your own must have to take a part's place. Nothing need be inherited: having it is enough."""

from __future__ import annotations

from collections.abc import Awaitable, Sequence
from typing import TYPE_CHECKING, Protocol, Union

if TYPE_CHECKING:
    from ._native import Ask, Transcript

__all__ = ["Mailer", "Supplier"]


class Supplier(Protocol):
    """Whatever can produce a transcript that is not archived.

    Beside ``name`` and ``supply`` it may have ``platforms`` (a list of ``"video_site"``, ``"short_video"``,
    ``"reels"``, ``"microblog"``; all of them without it) and ``kind`` (``"captions"``, ``"speech"`` or ``"remote"``).

    A plain method runs on a thread of its own; an async one in the package's own event loop, where it is cancelled
    when nobody wants the answer any more.
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
