"""A client of a Verbatim server."""

from __future__ import annotations

import os
from collections.abc import AsyncGenerator, AsyncIterable, Callable, Generator, Iterable, Sequence
from typing import TYPE_CHECKING, Any, NoReturn

from ._batch import BatchResult, BatchRun, async_links
from ._closable import Closable
from ._errors import NoServer, ServiceRefused, TranscriptUnavailable
from ._native import Batch, Connection, PendingCall, SearchParams, Transcript, _check_call, _linked_video
from ._reasons import reason_of, unavailable
from ._responses import (
    AccountInfo,
    ChatAnswer,
    CheckoutSession,
    Citation,
    KeyUsage,
    LookupResponse,
    ResponseMeta,
)
from ._search import ServerSearch, check_page_size
from ._video import PLATFORMS, Language
from ._video_list import ListedVideo

if TYPE_CHECKING:
    from ._jobs import Jobs

__all__ = ["Client"]


class Client(Closable):
    """A client of a Verbatim server with one API key, or anonymous.

    Every method has an awaitable twin with the prefix ``a``. :meth:`close`, or a ``with`` block, closes the
    connections.

    :param base_url: the address of the server, without ``/api/…``.
    :param key: ``vbk_…`` for the lookup API, ``vba_…`` for the v1 API; None for calls that need no key.
    :param timeout: timeout of one attempt in seconds. By default a server needs up to 25 s for a video that is not
        archived, and up to 60 s more for an answer of :meth:`chat`.
    :param retries: retries after a transient failure, unless a repeated request could be charged or executed twice.
        While the server works on a charged call whose response was lost, the client waits up to 2 minutes more.
    :param ca_file: a PEM file with root certificates to trust in addition to those of the system.
    """

    def __init__(
        self,
        base_url: str,
        key: str | None = None,
        *,
        timeout: float = 60.0,
        retries: int = 2,
        ca_file: str | os.PathLike[str] | None = None,
    ) -> None:
        self._connection = Connection(base_url, key, timeout, retries, ca_file)
        self._is_account = (key or "").startswith("vba_")
        self._base_url = base_url

    def __repr__(self) -> str:
        return f"<Client {self._base_url}>"

    def close(self) -> None:
        """Closes the connections. Later calls raise `ClosedError`; a request that was sent continues."""
        self._connection.close()

    async def aclose(self) -> None:
        """As :meth:`close`."""
        self._connection.close()

    def get(
        self, link: str, lang: str | Sequence[str] | None = None, *, idempotency_key: str | None = None
    ) -> Transcript:
        """Returns the transcript of a video: charged with a key of the v1 API, otherwise a lookup.

        :param link: a link in any common form, or a YouTube id.
        :param lang: a BCP 47 tag, or several in order of preference. Without it a key of the v1 API buys the English
            transcript, and a lookup returns the default track.
        :param idempotency_key: requests with the same key are charged once. None: a random one for this call, which
            is the ``idempotency_key`` of an error after which the outcome is unknown. It belongs to one language: after
            a call with several, repeat it with one at a time. A wrong one is refused and costs nothing.
        :raises TranscriptUnavailable: there is no transcript; ``reason`` and ``watch_url`` are those of the server.
            A server that names no reason raises the base class.
        :raises InvalidInput: the link is malformed.
        :raises ServiceError: the request failed.
        :raises ClosedError: the client is closed.
        """
        return self._convert(link, *_outcome(self._start(link, lang, idempotency_key).wait))

    async def aget(
        self, link: str, lang: str | Sequence[str] | None = None, *, idempotency_key: str | None = None
    ) -> Transcript:
        """As :meth:`get`."""
        try:
            value, error = await self._start(link, lang, idempotency_key), None
        except ServiceRefused as failure:
            value, error = None, failure
        return self._convert(link, value, error)

    def get_many(
        self,
        links: Iterable[str | ListedVideo],
        lang: str | Sequence[str] | None = None,
        *,
        concurrency: int = 32,
        progress: Callable[[int, BatchResult], Any] | None = None,
        max_wait: float | None = None,
        in_order: bool = False,
    ) -> Generator[BatchResult, None, None]:
        """Yields the transcripts of many videos as they complete; see :meth:`Transcripts.get_many`.

        With a key of the v1 API each transcript is charged, as for :meth:`get`, and that of a repeated link once. An
        error with an ``idempotency_key`` is that of one link: repeat it with :meth:`get`.

        :param max_wait: seconds that the batch waits without a success in between (300), if the server refuses requests
            (:class:`TooManyRequests`), or cannot fetch (:class:`RateLimited`, :class:`FetchFailed`) and says when to
            retry. Until then it starts nothing, then one request at a time up to a success. After such waits links fail
            at once, as they do with 0. A link that the server cannot fetch is requested three times at most.
        """
        return self._run(links, lang, concurrency, progress, max_wait, in_order).results()

    def aget_many(
        self,
        links: Iterable[str | ListedVideo] | AsyncIterable[str | ListedVideo],
        lang: str | Sequence[str] | None = None,
        *,
        concurrency: int = 32,
        progress: Callable[[int, BatchResult], Any] | None = None,
        max_wait: float | None = None,
        in_order: bool = False,
    ) -> AsyncGenerator[BatchResult, None]:
        """As :meth:`get_many`, for ``async for``. ``links`` may also be an async iterable."""
        run = self._run(async_links(links), lang, concurrency, progress, max_wait, in_order)
        return run.aresults()

    def _run(
        self,
        links: Iterable[str | ListedVideo],
        lang: str | Sequence[str] | None,
        concurrency: int,
        progress: Callable[[int, BatchResult], Any] | None,
        max_wait: float | None,
        in_order: bool,
    ) -> BatchRun:
        _check_call(lang, False, True, None)
        # A later key must not turn free lookups into purchases.
        is_account = self._is_account
        # A link that occurs again has the same idempotency key.
        key = os.urandom(16).hex()

        def start(link: str, batch: Batch) -> PendingCall:
            if is_account:
                return self._connection.transcript(link, lang, key, batch)
            return self._connection.lookup(link, lang, None, batch)

        return BatchRun(links, lang, start, concurrency, progress, max_wait, in_order, self._convert)

    def _start(
        self, link: str, lang: str | Sequence[str] | None, idempotency_key: str | None
    ) -> PendingCall:
        if self._is_account:
            return self._connection.transcript(link, lang, idempotency_key)
        return self._connection.lookup(link, lang, None)

    def _convert(self, link: str, value: Any, error: Exception | None) -> Transcript:
        """Converts the response to a request of :meth:`get`."""
        if isinstance(error, ServiceRefused):
            _raise_refused(link, error)
        if error is not None:
            raise error
        # A lookup returns three values, the v1 API a transcript and the metadata.
        transcript: Transcript = _lookup_response(*value).get() if len(value) == 3 else value[0]
        return transcript

    def lookup(
        self, link: str, lang: str | Sequence[str] | None = None, *, src: str | None = None
    ) -> LookupResponse:
        """Looks up a transcript. A missing transcript is a response, not an exception.

        :param lang: a BCP 47 tag, or several in order of preference; the default track without it.
        :param src: the attribution tag that the server adds to the watch URL.
        :raises InvalidInput: the link is malformed.
        :raises ServiceError: the request failed.
        """
        return _lookup_response(*self._connection.lookup(link, lang, src).wait())

    async def alookup(
        self, link: str, lang: str | Sequence[str] | None = None, *, src: str | None = None
    ) -> LookupResponse:
        """As :meth:`lookup`."""
        return _lookup_response(*await self._connection.lookup(link, lang, src))

    def get_text(
        self,
        link: str,
        format: str = "text",
        *,
        lang: str | Sequence[str] | None = None,
        src: str | None = None,
    ) -> str:
        """Returns the transcript in a format of the server: `text`, `md`, `srt` or `vtt`.

        :param lang: as for :meth:`lookup`.
        :raises TranscriptUnavailable: there is no transcript.
        :raises InvalidInput: the link is malformed.
        """
        return _text(link, *self._connection.get_text(link, format, lang, src).wait())

    async def aget_text(
        self,
        link: str,
        format: str = "text",
        *,
        lang: str | Sequence[str] | None = None,
        src: str | None = None,
    ) -> str:
        """As :meth:`get_text`."""
        return _text(link, *await self._connection.get_text(link, format, lang, src))

    def search(
        self,
        query: str,
        lang: str | None = None,
        *,
        platform: str | None = None,
        sort: str = "relevance",
        page_size: int = 20,
    ) -> ServerSearch:
        """Finds the videos in the archive of the server whose transcripts match, best first, with their best moments.

        It costs nothing. The arguments are those of :meth:`Transcripts.search_videos`. The search is sent with the
        first iteration, or first use of a property.

        :raises InvalidInput: the language is malformed.
        :raises ValueError: the platform, the order or the size is none.
        :raises ServiceError: the request failed: :class:`ServiceNotFound` if the server has no search,
            :class:`Unauthorized` if it requires a key, :class:`TooManyRequests` beyond its rate limit.
        """
        check_page_size(page_size)
        params = SearchParams(query, lang, platform, sort, page_size)
        return ServerSearch(lambda cursor: self._connection.search(params, cursor))

    def create_key(
        self, label: str | None = None, email: str | None = None, *, entitlement: str | None = None
    ) -> KeyUsage:
        """Creates a key of the lookup API. Only this response contains the key itself, as `key`.

        The client continues with its own key; :meth:`use_key` replaces it.

        :param entitlement: the proof of a paid plan.
        """
        return _key_usage(self._connection.create_key(label, email, entitlement).wait())

    async def acreate_key(
        self, label: str | None = None, email: str | None = None, *, entitlement: str | None = None
    ) -> KeyUsage:
        """As :meth:`create_key`."""
        return _key_usage(await self._connection.create_key(label, email, entitlement))

    def key_status(self, *, entitlement: str | None = None) -> KeyUsage:
        """Returns the plan and the remaining allowance of the client's key."""
        return _key_usage(self._connection.key_status(entitlement).wait())

    async def akey_status(self, *, entitlement: str | None = None) -> KeyUsage:
        """As :meth:`key_status`."""
        return _key_usage(await self._connection.key_status(entitlement))

    def use_key(self, key: str) -> None:
        """Replaces the client's key, also for the next requests of calls that run with a key of the same API.

        So a :meth:`get_many` that looks up goes on without the new key of an account, and buys nothing.
        """
        self._connection.use_key(key)
        self._is_account = key.startswith("vba_")

    def register(self, email: str) -> str:
        """Requests a verification email; returns the message of the server."""
        return str(self._connection.register(email).wait()[0]["message"])

    async def aregister(self, email: str) -> str:
        """As :meth:`register`."""
        return str((await self._connection.register(email))[0]["message"])

    def verify(self, token: str, *, confirmed: bool = False) -> str:
        """Redeems the token of a verification email; the client continues with the key of the account.

        Returns the key, which no other response contains.

        :param confirmed: also replace an active key of the account.
        :raises ServiceConflict: the account has an active key, and ``confirmed`` is false.
        """
        return self._use_issued_key(self._connection.verify(token, confirmed).wait())

    async def averify(self, token: str, *, confirmed: bool = False) -> str:
        """As :meth:`verify`."""
        return self._use_issued_key(await self._connection.verify(token, confirmed))

    def _use_issued_key(self, response: tuple[dict[str, Any], dict[str, Any]]) -> str:
        key = str(response[0]["api_key"])
        self.use_key(key)
        return key

    def me(self) -> AccountInfo:
        """Returns the account of the client's key."""
        return _account_info(self._connection.me().wait())

    async def ame(self) -> AccountInfo:
        """As :meth:`me`."""
        return _account_info(await self._connection.me())

    def rotate_key(self) -> str:
        """Replaces the client's key; returns the new one. The old key is invalid at once."""
        return self._use_issued_key(self._connection.rotate_key().wait())

    async def arotate_key(self) -> str:
        """As :meth:`rotate_key`."""
        return self._use_issued_key(await self._connection.rotate_key())

    def chat(
        self,
        link: str,
        message: str,
        history: Iterable[tuple[str, str]] = (),
        *,
        idempotency_key: str | None = None,
    ) -> ChatAnswer:
        """Answers a question about a video, for one credit.

        :param link: a link to a YouTube video, or its id.
        :param history: earlier messages, oldest first: pairs of `user` or `assistant` and the text.
        :raises TranscriptUnavailable: the video has no transcript.
        :raises InvalidInput: the link is malformed.
        """
        try:
            return _chat_answer(self._chat(link, message, history, idempotency_key).wait())
        except ServiceRefused as error:
            _raise_refused(link, error)

    async def achat(
        self,
        link: str,
        message: str,
        history: Iterable[tuple[str, str]] = (),
        *,
        idempotency_key: str | None = None,
    ) -> ChatAnswer:
        """As :meth:`chat`."""
        try:
            return _chat_answer(await self._chat(link, message, history, idempotency_key))
        except ServiceRefused as error:
            _raise_refused(link, error)

    def _chat(
        self, link: str, message: str, history: Iterable[tuple[str, str]], idempotency_key: str | None
    ) -> PendingCall:
        return self._connection.chat(link, message, list(history), idempotency_key)

    @property
    def jobs(self) -> Jobs:
        """The jobs of the account: transcripts of many videos, fetched by the server in the background."""
        from ._jobs import Jobs

        return Jobs(self._connection)

    def subscribe(self, plan: str, *, idempotency_key: str | None = None) -> CheckoutSession:
        """Opens a payment page for a plan."""
        return _checkout_session(self._connection.subscribe(plan, idempotency_key).wait())

    async def asubscribe(self, plan: str, *, idempotency_key: str | None = None) -> CheckoutSession:
        """As :meth:`subscribe`."""
        return _checkout_session(await self._connection.subscribe(plan, idempotency_key))

    def buy_credits(self, pack: str, *, idempotency_key: str | None = None) -> CheckoutSession:
        """Opens a payment page for a pack of credits."""
        return _checkout_session(self._connection.buy_credits(pack, idempotency_key).wait())

    async def abuy_credits(self, pack: str, *, idempotency_key: str | None = None) -> CheckoutSession:
        """As :meth:`buy_credits`."""
        return _checkout_session(await self._connection.buy_credits(pack, idempotency_key))


def _outcome(call: Callable[[], Any]) -> tuple[Any, ServiceRefused | None]:
    try:
        return call(), None
    except ServiceRefused as error:
        return None, error


def _missing_video(link: str, watch_url: str) -> tuple[str, str]:
    """The platform and id of a video: those of its watch page, which a short link leads to, otherwise of the link."""
    platform, _, video_id = watch_url.partition("?")[0].partition("/watch/")[2].partition("/")
    if video_id:
        return PLATFORMS.get(platform, platform), video_id
    return _linked_video(link) or ("", "")


def _raise_refused(link: str, error: ServiceRefused) -> NoReturn:
    """Raises the error of a request for a transcript: 404, and 500 with a reason, say that there is none.

    They do not if no Verbatim server responded, or if an earlier attempt was lost: the call may have been charged, and
    only a service error has its key.
    """
    detail = error.reason or ("no_language" if error.available else None)
    is_missing = error.status == 404 or (error.status == 500 and detail is not None)
    if not is_missing or isinstance(error, NoServer) or error.idempotency_key is not None:
        raise error
    raise unavailable(
        str(error),
        reason_of(detail),
        detail,
        error.watch_url or "",
        *_missing_video(link, error.watch_url or ""),
        retry_after=error.retry_after,
        available=error.available,
    ) from error


def _lookup_response(
    transcript: Transcript | None, body: dict[str, Any], meta: dict[str, Any]
) -> LookupResponse:
    key, platform = body.get("key"), str(body["platform"])
    return LookupResponse(
        transcript,
        PLATFORMS.get(platform, platform),
        body["videoId"],
        body["watchUrl"],
        body.get("failureReason"),
        body.get("failureMessage"),
        None if key is None else KeyUsage(**key),
        ResponseMeta(**meta),
        [Language(**language) for language in body.get("languages", ())],
    )


def _text(
    link: str,
    text: str | None,
    message: str,
    watch_url: str,
    is_allowance_spent: bool,
    detail: str | None,
    retry_after: float | None,
) -> str:
    if text is None:
        reason = "key_allowance" if is_allowance_spent else reason_of(detail)
        video = _missing_video(link, watch_url)
        raise unavailable(message, reason, detail, watch_url, *video, retry_after=retry_after)
    return text


def _key_usage(response: tuple[dict[str, Any], dict[str, Any]]) -> KeyUsage:
    body = response[0]
    fields = {name: body[name] for name in KeyUsage._fields if name in body}
    return KeyUsage(**fields, resets_at=body["resetsAt"], created_at=body["createdAt"])


def _account_info(response: tuple[dict[str, Any], dict[str, Any]]) -> AccountInfo:
    body, meta = response
    fields = {name: body[name] for name in AccountInfo._fields if name in body}
    return AccountInfo(**fields, meta=ResponseMeta(**meta))


def _chat_answer(response: tuple[dict[str, Any], dict[str, Any]]) -> ChatAnswer:
    body, meta = response
    credits = body["credits"]
    citations = [Citation(*(each[name] for name in Citation._fields)) for each in body["citations"]]
    return ChatAnswer(
        body["video_id"],
        body["response"],
        citations,
        body["coverage"],
        credits["used"],
        credits["remaining"],
        ResponseMeta(**meta),
    )


def _checkout_session(response: tuple[dict[str, Any], dict[str, Any]]) -> CheckoutSession:
    body = response[0]
    return CheckoutSession(body["checkout_url"], body.get("pack"), body.get("credits"), body.get("price_usd"))
