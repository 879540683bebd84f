"""The complete service in the process: keys, accounts, credits and chat."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING

from ._client import Client
from ._events import Event
from ._native import Engine
from ._options import as_list, proxy_list
from ._responses import KeyUsage
from ._transcripts import Transcripts

if TYPE_CHECKING:
    from ._ports import Archive, ChatModel, Directory, EmbeddingModel, KeyValueStore, Ledger, Mailer, Supplier

__all__ = ["LocalClient", "Service"]


class LocalClient(Client):
    """A client of a :class:`Service` in this process, with all methods of :class:`Client`.

    A call whose ``idempotency_key`` belongs to a running call waits up to 3 seconds for it, then it raises
    `ServiceConflict`. The exceptions of custom stores are in the log only.
    """

    def __init__(self, engine: Engine, key: str | None) -> None:
        self._connection = engine.connect(key)
        self._is_account = (key or "").startswith("vba_")
        self._base_url = "in this process"


class Service(Transcripts):
    """Keys, allowances, accounts, credits and chat over an archive and suppliers.

    It has all methods of :class:`Transcripts`, which charge nothing. :meth:`client` returns a client of one key, with
    the rules of a server.

    :param archive: as for :class:`Transcripts`.
    :param ledger: the file or PostgreSQL database of keys, accounts and credits, which requires an archive of the same
        kind; or a custom ledger (:class:`verbatim_transcripts.Ledger`), for the credits only.
    :param directory: a custom directory of keys and accounts (:class:`verbatim_transcripts.Directory`).
    :param chat: an OpenAI-compatible chat service, ``(base_url, model, api_key or None)``, or a custom model
        (:class:`verbatim_transcripts.ChatModel`). None: answers are passages of the transcript.
    :param embeddings: an OpenAI-compatible embedding service, ``(base_url, model, api_key or None)``, or a custom model
        (:class:`verbatim_transcripts.EmbeddingModel`), by which chat finds passages that mean the same as the question.
        None: passages are found by their words.
    :param mailer: the sender of registration mails (:class:`verbatim_transcripts.Mailer`). None: mails stay queued.
    :param base_url: the base of links to watch pages and of links in mails.
    :param free_per_month: new transcripts per UTC month for a free key (25).
    :param plus_per_day: new transcripts per UTC day for a plus key (100).
    :param service_per_day: new transcripts per UTC day for all keys together (10,000).
    :param credits_per_transcript: price of a transcript for an account (1).
    :param credits_per_message: price of a chat answer for an account (1).

    The other arguments are those of :class:`Transcripts`. A fetch continues after its caller leaves or exceeds
    ``timeout`` (25 s); a repeated call joins it.

    >>> with Service(suppliers=[]) as service:
    ...     key = service.create_key("the web page")
    ...     client = service.client(key.key)
    ...     response = client.lookup("https://youtu.be/dQw4w9WgXcQ")
    ...     print(response.reason, response.key.allowance)
    config_error 25
    """

    def __init__(
        self,
        archive: str | os.PathLike[str] | Archive | KeyValueStore | None = None,
        ledger: str | os.PathLike[str] | Ledger | None = None,
        suppliers: Iterable[str | Supplier] | None = None,
        proxies: str | Iterable[str] | Mapping[str, str] | None = None,
        *,
        directory: Directory | None = None,
        chat: tuple[str, str, str | None] | ChatModel | None = None,
        embeddings: tuple[str, str, str | None] | EmbeddingModel | None = None,
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
        concurrency: int | None = None,
        ca_file: str | os.PathLike[str] | None = None,
        ytdlp: str | os.PathLike[str] | None = None,
        speech: tuple[str, str, str | None] | None = None,
        server: tuple[str, str] | None = None,
        youtube_clients: Iterable[str] | None = None,
        breaker_threshold: int | None = None,
        breaker_cooldown: float | None = None,
        breaker_cooldown_max: float | None = None,
        on_event: Callable[[Event], object] | None = None,
    ) -> None:
        self._engine = Engine(
            {
                "archive": archive,
                "ledger": ledger,
                "suppliers": suppliers,
                "proxies": proxy_list(proxies),
                "detach_unpaid": True,
                "directory": directory,
                "chat": chat,
                "embeddings": embeddings,
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
                "concurrency": concurrency,
                "ca_file": ca_file,
                "ytdlp": ytdlp,
                "speech": speech,
                "server": server,
                "youtube_clients": as_list(youtube_clients),
                "breaker_threshold": breaker_threshold,
                "breaker_cooldown": breaker_cooldown,
                "breaker_cooldown_max": breaker_cooldown_max,
                "on_event": on_event,
            }
        )

    def client(self, key: str | None = None) -> LocalClient:
        """Returns a client with this key, or an anonymous client."""
        return LocalClient(self._engine, key)

    def create_key(self, label: str | None = None, email: str | None = None) -> KeyUsage:
        """Creates a key of the lookup API. Only this response contains the key itself, as `key`."""
        return self.client().create_key(label, email)

    async def acreate_key(self, label: str | None = None, email: str | None = None) -> KeyUsage:
        """As :meth:`create_key`."""
        return await self.client().acreate_key(label, email)

    def grant(self, who: str, credits: int, *, id: str | None = None, memo: str = "granted") -> int:
        """Grants credits to an account, once per `id`; returns its remaining credits.

        :param who: the email address or the id of the account.
        :param id: None: a random one. An empty one is refused.
        :raises NotFoundError: the account does not exist.
        """
        _, remaining = self._engine.grant(who, credits, _new_id() if id is None else id, memo).wait()
        return int(remaining)

    async def agrant(self, who: str, credits: int, *, id: str | None = None, memo: str = "granted") -> int:
        """As :meth:`grant`."""
        _, remaining = await self._engine.grant(who, credits, _new_id() if id is None else id, memo)
        return int(remaining)


def _new_id() -> str:
    """A random id of a grant, 128 bits in hexadecimal."""
    return os.urandom(16).hex()
