"""A client of a Verbatim server."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Any, NamedTuple

from ._errors import (
    FetchFailed,
    NoCaptions,
    NotConfigured,
    NotOffered,
    RateLimited,
    TranscriptUnavailable,
)
from ._native import Desk, Pending, Server, Transcript

__all__ = ["Account", "ChatAnswer", "Checkout", "Citation", "Client", "Facts", "KeyUse", "LookUp"]


class Facts(NamedTuple):
    """What an answer's headers say; None where they do not."""

    #: The server's name for the request, for questions to its operator.
    request_id: str | None = None
    #: The credits that are left.
    credits_remaining: int | None = None
    #: Whether the answer came from the archive.
    is_cached: bool | None = None
    #: Whether the answer was given before under the same name, and costs nothing now.
    is_replayed: bool = False
    #: How many seconds to wait before asking again.
    retry_after: float | None = None
    #: How many more requests the account's rate limit admits at once.
    rate_remaining: int | None = None
    #: After how many seconds there is more room.
    rate_reset: float | None = None


class KeyUse(NamedTuple):
    """A key for look-ups: its plan, and what it has used of its allowance."""

    #: `free`, `plus` or `plus_inactive`.
    plan: str
    #: `month` or `day`.
    period: str
    used: int
    allowance: int
    remaining: int
    #: The key's public name; None in the answer of a look-up.
    id: str | None = None
    label: str | None = None
    #: When the period ends, and when the key was made: RFC 3339.
    resets_at: str | None = None
    created_at: str | None = None
    #: The key itself, the only time that it is shown.
    key: str | None = None


class LookUp(NamedTuple):
    """The answer of a look-up, whether there is a transcript or none."""

    transcript: Transcript | None
    platform: str
    video_id: str
    #: Where a person can read it, as the server sent it.
    watch_url: str
    #: Why there is none, in the server's own word and sentence.
    reason: str | None
    message: str | None
    #: What the caller's key has used.
    key: KeyUse | None
    facts: Facts

    def get(self) -> Transcript:
        """The transcript.

        :raises TranscriptUnavailable: there is none.
        """
        if self.transcript is None:
            raise _unavailable(
                self.message or "There is no transcript.",
                self.reason or "",
                self.watch_url,
                self.platform,
                self.video_id,
                self.facts.retry_after,
            )
        return self.transcript


class Account(NamedTuple):
    """An account of the API for credits."""

    email: str
    plan: str
    credits_remaining: int
    credits_total: int
    #: RFC 3339.
    resets_at: str
    facts: Facts


class Citation(NamedTuple):
    """A moment of the video that an answer rests on."""

    #: Seconds from the video's beginning.
    start: float
    end: float
    #: What is said there, word for word.
    text: str
    url: str


class ChatAnswer(NamedTuple):
    """An answer about a video."""

    video_id: str
    response: str
    citations: list[Citation]
    #: How much of the answer rests on the transcript, from 0 to 1.
    coverage: float
    credits_used: int
    credits_remaining: int
    facts: Facts


class Checkout(NamedTuple):
    """A page on which something is paid for."""

    checkout_url: str
    #: The pack, its credits and its price; None where a plan is paid for.
    pack: str | None
    credits: int | None
    price_usd: float | None


_KINDS = {
    "no_captions": NoCaptions,
    "rate_limited": RateLimited,
    "fetch_error": FetchFailed,
    "config_error": NotConfigured,
}


def _unavailable(
    message: str, reason: str, watch_url: str, platform: str, video_id: str, retry_after: float | None
) -> TranscriptUnavailable:
    kind = _KINDS.get(reason, TranscriptUnavailable)
    return kind(message, reason, watch_url, platform, video_id, retry_after)


class Client:
    """A Verbatim server, asked with the key of one caller or none.

    Every method comes twice: plain, and with an ``a`` in front to be awaited.

    :param base_url: the server's address, to which ``/api/…`` is added.
    :param key: ``vbk_…`` for look-ups, ``vba_…`` for the API for credits; None for what needs none.
    :param timeout: how many seconds one attempt may take.
    :param retries: how often what failed in passing is asked again, where that cannot be charged or done twice.
    :param ca_file: a PEM file with root certificates that are trusted beside the system's.
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
        self._server: Server | Desk = Server(base_url, key, timeout, retries, ca_file)
        self._is_account = (key or "").startswith("vba_")
        self._base_url = base_url

    def __repr__(self) -> str:
        return f"<Client {self._base_url}>"

    def get(self, link: str, lang: str | None = None, *, idempotency_key: str | None = None) -> Transcript:
        """The transcript of a video: for credits with an account's key, else looked up.

        :param lang: a language tag, for an account's key only: a look-up has the default transcript.
        :param idempotency_key: the name of the request, under which it is charged once however often it is sent.
        :raises TranscriptUnavailable: there is none; ``reason`` and ``watch_url`` are as the server sent them.
        :raises ServiceError: the server said no, or could not be asked.
        """
        if not self._is_account:
            return self._looked_up(link, lang).get()
        try:
            transcript, _ = self._server.transcript(link, lang, idempotency_key).wait()
        except NotOffered as error:
            raise _missing(error) from error
        return _is_transcript(transcript)

    async def aget(
        self, link: str, lang: str | None = None, *, idempotency_key: str | None = None
    ) -> Transcript:
        """As :meth:`get`."""
        if not self._is_account:
            _no_lang(lang)
            return (await self.alook_up(link)).get()
        try:
            transcript, _ = await self._server.transcript(link, lang, idempotency_key)
        except NotOffered as error:
            raise _missing(error) from error
        return _is_transcript(transcript)

    def _looked_up(self, link: str, lang: str | None) -> LookUp:
        _no_lang(lang)
        return self.look_up(link)

    def look_up(self, link: str, *, src: str | None = None) -> LookUp:
        """Looks a transcript up; that there is none is an answer.

        :param src: the attribution tag that the server puts into the watch address.
        :raises ServiceError: the server said no, or could not be asked.
        """
        return _look_up(*self._server.look_up(link, src).wait())

    async def alook_up(self, link: str, *, src: str | None = None) -> LookUp:
        """As :meth:`look_up`."""
        return _look_up(*await self._server.look_up(link, src))

    def text(self, link: str, format: str = "text", *, src: str | None = None) -> str:
        """The transcript as the server writes it: `text`, `md`, `srt` or `vtt`.

        :raises TranscriptUnavailable: there is none.
        """
        return _text(*self._server.text(link, format, src).wait())

    async def atext(self, link: str, format: str = "text", *, src: str | None = None) -> str:
        """As :meth:`text`."""
        return _text(*await self._server.text(link, format, src))

    def create_key(
        self, label: str | None = None, email: str | None = None, *, entitlement: str | None = None
    ) -> KeyUse:
        """Makes a key for look-ups; `key` of the answer is shown this once. It is not used by this client: see
        :meth:`use_key`.

        :param entitlement: the proof of a paid plan.
        """
        return _key(self._server.create_key(label, email, entitlement).wait())

    async def acreate_key(
        self, label: str | None = None, email: str | None = None, *, entitlement: str | None = None
    ) -> KeyUse:
        """As :meth:`create_key`."""
        return _key(await self._server.create_key(label, email, entitlement))

    def key_status(self, *, entitlement: str | None = None) -> KeyUse:
        """The plan and the remaining allowance of the client's key for look-ups."""
        return _key(self._server.key_status(entitlement).wait())

    async def akey_status(self, *, entitlement: str | None = None) -> KeyUse:
        """As :meth:`key_status`."""
        return _key(await self._server.key_status(entitlement))

    def use_key(self, key: str) -> None:
        """Goes on with another key."""
        self._server.use_key(key)
        self._is_account = key.startswith("vba_")

    def register(self, email: str) -> str:
        """Has a verification mail sent; returns the server's sentence."""
        return str(self._server.register(email).wait()[0]["message"])

    async def aregister(self, email: str) -> str:
        """As :meth:`register`."""
        return str((await self._server.register(email))[0]["message"])

    def verify(self, token: str, *, confirmed: bool = False) -> str:
        """Redeems the token of a verification mail, and goes on with the account's key, which it returns: the only
        time that it is shown.

        :param confirmed: also where that ends the key which the account has.
        :raises ServiceConflict: it would end a living key.
        """
        return self._verified(self._server.verify(token, confirmed).wait())

    async def averify(self, token: str, *, confirmed: bool = False) -> str:
        """As :meth:`verify`."""
        return self._verified(await self._server.verify(token, confirmed))

    def _verified(self, answer: tuple[dict[str, Any], dict[str, Any]]) -> str:
        key = str(answer[0]["api_key"])
        self.use_key(key)
        return key

    def me(self) -> Account:
        """The account of the client's key."""
        return _account(self._server.me().wait())

    async def ame(self) -> Account:
        """As :meth:`me`."""
        return _account(await self._server.me())

    def rotate_key(self) -> str:
        """Replaces the client's key, and goes on with the new one, which it returns: the old one is dead at once."""
        return self._verified(self._server.rotate_key().wait())

    async def arotate_key(self) -> str:
        """As :meth:`rotate_key`."""
        return self._verified(await self._server.rotate_key())

    def chat(
        self,
        video_id: str,
        message: str,
        history: Iterable[tuple[str, str]] = (),
        *,
        idempotency_key: str | None = None,
    ) -> ChatAnswer:
        """An answer about a video, for a credit.

        :param video_id: the YouTube id.
        :param history: what was said before, oldest first: pairs of `user` or `assistant` and what was said.
        :raises TranscriptUnavailable: the video has no transcript.
        """
        try:
            return _answer(self._chat(video_id, message, history, idempotency_key).wait())
        except NotOffered as error:
            raise _missing(error) from error

    async def achat(
        self,
        video_id: str,
        message: str,
        history: Iterable[tuple[str, str]] = (),
        *,
        idempotency_key: str | None = None,
    ) -> ChatAnswer:
        """As :meth:`chat`."""
        try:
            return _answer(await self._chat(video_id, message, history, idempotency_key))
        except NotOffered as error:
            raise _missing(error) from error

    def _chat(
        self, video_id: str, message: str, history: Iterable[tuple[str, str]], idempotency_key: str | None
    ) -> Pending:
        return self._server.chat(video_id, message, list(history), idempotency_key)

    def subscribe(self, plan: str, *, idempotency_key: str | None = None) -> Checkout:
        """A page on which a plan is paid for."""
        return _checkout(self._server.subscribe(plan, idempotency_key).wait())

    async def asubscribe(self, plan: str, *, idempotency_key: str | None = None) -> Checkout:
        """As :meth:`subscribe`."""
        return _checkout(await self._server.subscribe(plan, idempotency_key))

    def buy_credits(self, pack: str, *, idempotency_key: str | None = None) -> Checkout:
        """A page on which a pack of credits is paid for."""
        return _checkout(self._server.buy_credits(pack, idempotency_key).wait())

    async def abuy_credits(self, pack: str, *, idempotency_key: str | None = None) -> Checkout:
        """As :meth:`buy_credits`."""
        return _checkout(await self._server.buy_credits(pack, idempotency_key))


def _no_lang(lang: str | None) -> None:
    if lang is not None:
        raise ValueError("a look-up has the default transcript: lang needs an account's key")


def _is_transcript(transcript: Transcript) -> Transcript:
    return transcript


def _missing(error: NotOffered) -> TranscriptUnavailable:
    return _unavailable(str(error), error.reason or "no_captions", "", "", "", error.retry_after)


def _look_up(transcript: Transcript | None, body: dict[str, Any], facts: dict[str, Any]) -> LookUp:
    key = body.get("key")
    return LookUp(
        transcript,
        body["platform"],
        body["videoId"],
        body["watchUrl"],
        body.get("failureReason"),
        body.get("failureMessage"),
        None if key is None else KeyUse(**key),
        Facts(**facts),
    )


def _text(text: str | None, message: str, watch_url: str, is_allowance_spent: bool) -> str:
    if text is None:
        reason = "key_allowance" if is_allowance_spent else ""
        raise _unavailable(message, reason, watch_url, "", "", None)
    return text


def _key(answer: tuple[dict[str, Any], dict[str, Any]]) -> KeyUse:
    body = answer[0]
    known = {name: body[name] for name in KeyUse._fields if name in body}
    return KeyUse(**known, resets_at=body["resetsAt"], created_at=body["createdAt"])


def _account(answer: tuple[dict[str, Any], dict[str, Any]]) -> Account:
    body, facts = answer
    return Account(**{name: body[name] for name in Account._fields if name in body}, facts=Facts(**facts))


def _answer(answer: tuple[dict[str, Any], dict[str, Any]]) -> ChatAnswer:
    body, facts = answer
    credits = body["credits"]
    citations = [Citation(*(each[name] for name in Citation._fields)) for each in body["citations"]]
    return ChatAnswer(
        body["video_id"],
        body["response"],
        citations,
        body["coverage"],
        credits["used"],
        credits["remaining"],
        Facts(**facts),
    )


def _checkout(answer: tuple[dict[str, Any], dict[str, Any]]) -> Checkout:
    body = answer[0]
    return Checkout(body["checkout_url"], body.get("pack"), body.get("credits"), body.get("price_usd"))
