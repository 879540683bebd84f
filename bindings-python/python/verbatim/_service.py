"""The whole service within the process, for who builds a product of their own on it."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import TYPE_CHECKING

from ._client import Client, KeyUse
from ._native import Engine
from ._transcripts import Transcripts, _listed

if TYPE_CHECKING:
    from ._ports import Archive, ChatModel, Directory, Ledger, Mailer, Supplier

__all__ = ["Caller", "Service"]


class Caller(Client):
    """Somebody who asks the service within the process: all that :class:`Client` has, without a server in between."""

    def __init__(self, engine: Engine, key: str | None) -> None:
        self._server = engine.desk(key)
        self._is_account = (key or "").startswith("vba_")
        self._base_url = "in this process"


class Service(Transcripts):
    """Keys, allowances, accounts, credits and chat over an archive and suppliers.

    It has everything that :class:`Transcripts` has, which charges nobody; :meth:`caller` gives what somebody with a
    key may have, by the same rules as a server's.

    :param archive: the file of transcripts: ``"sqlite:///file.db"`` or a path; None: this process's memory.
    :param ledger: the file of keys, accounts and credits, with ``archive`` or neither; or an object of your own
        (:class:`verbatim.Ledger`) for the credits alone.
    :param directory: an object of your own for keys and accounts (:class:`verbatim.Directory`).
    :param chat: an OpenAI-compatible chat service that answers questions, ``(base_url, model, api_key or None)``, or a
        model of your own (:class:`verbatim.ChatModel`); None: the transcript's own passages are the answers.
    :param mailer: who sends the mails of registrations (:class:`verbatim.Mailer`); without one they wait.
    :param base_url: where links to watch pages and in mails lead.
    :param free_per_month: new transcripts per UTC month for a free key (25).
    :param plus_per_day: new transcripts per UTC day for a plus key (100).
    :param service_per_day: new transcripts per UTC day for all together (10,000).
    :param credits_per_transcript: what a transcript costs an account (1).
    :param credits_per_message: what an answer costs an account (1).

    The other arguments are those of :class:`Transcripts`. What was begun goes on when its caller leaves or has waited
    for ``timeout`` (25 s): whoever asks for the same again joins it.

    >>> with Service(suppliers=[]) as service:
    ...     key = service.create_key("the web page")
    ...     caller = service.caller(key.key)
    ...     answer = caller.look_up("https://youtu.be/dQw4w9WgXcQ")
    ...     print(answer.reason, answer.key.allowance)
    config_error 25
    """

    def __init__(
        self,
        archive: str | os.PathLike[str] | Archive | None = None,
        ledger: str | os.PathLike[str] | Ledger | None = None,
        suppliers: Iterable[str | Supplier] | None = None,
        proxies: str | Iterable[str] | None = None,
        *,
        directory: Directory | None = None,
        chat: tuple[str, str, str | None] | ChatModel | None = None,
        mailer: Mailer | None = None,
        base_url: str | None = None,
        free_per_month: int | None = None,
        plus_per_day: int | None = None,
        service_per_day: int | None = None,
        credits_per_transcript: int | None = None,
        credits_per_message: int | None = None,
        timeout: float | None = 25.0,
        request_timeout: float | None = None,
        retries: int | None = None,
        at_once: int | None = None,
        ca_file: str | os.PathLike[str] | None = None,
        ytdlp: str | os.PathLike[str] | None = None,
        speech: tuple[str, str, str | None] | None = None,
        server: tuple[str, str] | None = None,
        youtube_clients: Iterable[str] | None = None,
    ) -> None:
        self._engine = Engine(
            {
                "archive": archive,
                "ledger": ledger,
                "suppliers": suppliers,
                "proxies": _listed(proxies),
                "outlives": True,
                "directory": directory,
                "chat": chat,
                "mailer": mailer,
                "base_url": base_url,
                "free_per_month": free_per_month,
                "plus_per_day": plus_per_day,
                "service_per_day": service_per_day,
                "credits_per_transcript": credits_per_transcript,
                "credits_per_message": credits_per_message,
                "timeout": timeout,
                "request_timeout": request_timeout,
                "retries": retries,
                "at_once": at_once,
                "ca_file": ca_file,
                "ytdlp": ytdlp,
                "speech": speech,
                "server": server,
                "youtube_clients": _listed(youtube_clients),
            }
        )

    def caller(self, key: str | None = None) -> Caller:
        """Somebody who asks with this key, or with none."""
        return Caller(self._engine, key)

    def create_key(self, label: str | None = None, email: str | None = None) -> KeyUse:
        """Makes a key for look-ups; `key` of the answer is shown this once."""
        return self.caller().create_key(label, email)

    async def acreate_key(self, label: str | None = None, email: str | None = None) -> KeyUse:
        """As :meth:`create_key`."""
        return await self.caller().acreate_key(label, email)

    def grant(self, who: str, credits: int, *, id: str | None = None, memo: str = "granted") -> int:
        """Gives an account credits, once for each `id`; returns how many it has then.

        :param who: the account's e-mail address, or its id.
        :raises NotFound: there is no such account.
        """
        _, left = self._engine.grant(who, credits, id or _fresh(), memo).wait()
        return int(left)

    async def agrant(self, who: str, credits: int, *, id: str | None = None, memo: str = "granted") -> int:
        """As :meth:`grant`."""
        _, left = await self._engine.grant(who, credits, id or _fresh(), memo)
        return int(left)


def _fresh() -> str:
    """An id that no other grant has."""
    return os.urandom(16).hex()
