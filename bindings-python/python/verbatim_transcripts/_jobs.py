"""Jobs of a server: transcripts of many videos in the background."""

from __future__ import annotations

import datetime
import json
import time
from collections.abc import AsyncGenerator, Callable, Generator, Iterable, Sequence
from dataclasses import dataclass

# Within `Jobs`, `list` is a method.
from typing import Any, Generic, List, NamedTuple, TypeVar

from ._batch import link_address
from ._errors import ServiceError
from ._native import Connection, PendingCall, Transcript
from ._polls import Polls
from ._reasons import unavailable
from ._search import check_page_size
from ._video import PLATFORMS, Language, caption_languages
from ._video_list import ListedVideo

__all__ = [
    "DeliveryAttempt",
    "EventDelivery",
    "Job",
    "JobCounts",
    "JobCredits",
    "JobResult",
    "Jobs",
    "PagedItems",
    "WebhookSecret",
]

T = TypeVar("T")

_ENDED = ("completed", "cancelled", "failed")


class JobCounts(NamedTuple):
    """The items of a job by state."""

    total: int
    #: Items that wait.
    queued: int
    #: Items that are worked on.
    running: int
    #: Items whose transcript is delivered.
    done: int
    #: Items without a transcript; they are free.
    failed: int
    #: Items that a cancellation left out; they are free.
    skipped: int


class JobCredits(NamedTuple):
    """The credits of a job."""

    #: What its items cost so far.
    spent: int
    #: What its unfinished items cost at most.
    estimate: int
    #: The account's credits.
    remaining: int


class Job(NamedTuple):
    """A job. Times are RFC 3339, in UTC."""

    id: str
    #: `listing`, `queued`, `running`, `paused`, `completed`, `cancelled` or `failed`.
    status: str
    counts: JobCounts
    credits: JobCredits
    created_at: str
    #: None before its end.
    ended_at: str | None
    #: Why it is paused: `payment_required` or `operator`; None if it is not. It resumes when the reason is gone.
    pause_reason: str | None
    #: The address of its playlist, channel or search; None if its videos are links.
    list_url: str | None
    #: Why its list was not read: `empty`, or a reason of :class:`ListUnavailable`. None unless it has failed.
    reason: str | None
    #: The same, for people.
    message: str | None
    #: Where its events are sent; None: nowhere.
    callback_url: str | None

    @property
    def is_ended(self) -> bool:
        """Whether it is completed, cancelled or failed."""
        return self.status in _ENDED


@dataclass(frozen=True)
class JobResult:
    """An item of a job."""

    #: The position in the job, from 0.
    index: int
    #: The link, as it was sent.
    url: str
    #: `YouTube`, `TikTok`, `Instagram` or `X`; None if the link names no video.
    platform: str | None
    #: The id of the video; None if the link names none.
    video_id: str | None
    #: `queued`, `running`, `done`, `failed` or `skipped`.
    status: str
    #: Why there is no transcript: `no_captions`, `invalid_url`, `withdrawn`, `missing`, `damaged`, or a reason of a
    #: lookup.
    reason: str | None
    #: The same, for people.
    message: str | None
    #: The transcript of an item that is done.
    transcript: Transcript | None
    #: The languages of a video without a transcript in the language of the job, as far as known.
    languages: Sequence[Language] = ()

    def get(self) -> Transcript:
        """Returns the transcript.

        :raises TranscriptUnavailable: the item failed, was skipped, or has not ended. The reason `no_captions` also
            stands for a private or removed video; the message says which.
        """
        if self.transcript is None:
            message = self.message or f"The item is {self.status}."
            raise unavailable(
                message,
                self.reason or self.status,
                "no_language" if self.languages else None,
                "",
                self.platform or "",
                self.video_id or "",
                available=caption_languages(self.languages),
            )
        return self.transcript


class DeliveryAttempt(NamedTuple):
    """An attempt to send an event of a job."""

    #: The number of the attempt, from 1.
    attempt: int
    #: When it ended: RFC 3339, UTC.
    at: str
    #: The status of the response; None without one.
    status: int | None
    #: Why it failed; None if the receiver accepted the event.
    error: str | None


class EventDelivery(NamedTuple):
    """An event of a job, and the attempts to send it."""

    #: The id of the event.
    id: str
    #: `job.completed`, `job.paused`, `job.cancelled` or `job.failed`.
    type: str
    #: When it happened: RFC 3339, UTC.
    created_at: str
    #: `delivered`, `pending` or `abandoned`.
    state: str
    #: When the next attempt is due; None if there is none.
    next_attempt_at: str | None
    #: The attempts that have ended, the oldest first.
    attempts: list[DeliveryAttempt]


class WebhookSecret(NamedTuple):
    """The secret that signs the webhooks of an account."""

    secret: str
    #: When it was rotated: RFC 3339, UTC; None for the first one.
    rotated_at: str | None
    #: Until when the previous secret signs too; None if it does not.
    previous_valid_until: str | None


class PagedItems(Generic[T]):
    """Items that are read in pages while they are iterated, with ``for`` or ``async for``."""

    def __init__(
        self, read: Callable[[str | None], PendingCall], items: Callable[[Any], tuple[list[T], str | None]]
    ) -> None:
        self._read = read
        self._items = items

    def __iter__(self) -> Generator[T, None, None]:
        after: str | None = None
        while True:
            items, after = self._items(self._read(after).wait())
            yield from items
            if after is None:
                return

    async def __aiter__(self) -> AsyncGenerator[T, None]:
        after: str | None = None
        while True:
            items, after = self._items(await self._read(after))
            for item in items:
                yield item
            if after is None:
                return


class Jobs:
    """The jobs of an account: :attr:`Client.jobs`, with a key of the v1 API.

    Wherever a job is expected, it is a :class:`Job` or its id.
    """

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def start(
        self,
        urls: Iterable[str | ListedVideo] | None = None,
        *,
        playlist: str | None = None,
        channel: str | None = None,
        search: str | None = None,
        limit: int | None = None,
        since: datetime.date | None = None,
        lang: str | None = None,
        callback_url: str | None = None,
        idempotency_key: str | None = None,
    ) -> Job:
        """Starts a job, which continues without the client.

        :param urls: links or ids of videos, or videos of a :class:`VideoList`. Links of the same video are one item.
        :param playlist: in place of links, a playlist, which the server reads.
        :param channel: in place of links, a channel, also with a tab such as ``/streams``, or a TikTok profile.
        :param search: in place of links, words that YouTube searches in its videos. It needs ``limit``.
        :param limit: the maximum number of videos of a list.
        :param since: leaves out videos of a list that were surely published before this day (in UTC) or this time.
        :param lang: the language tag of the transcripts; None: English.
        :param callback_url: an https address on a public host: the server sends it the events of the job.
        :param idempotency_key: requests with the same key start one job. None: a random one, so that a retry after a
            lost connection starts no second job.
        :raises ServiceError: the request failed.
        """
        request = _request(urls, playlist, channel, search, limit, since, lang, callback_url)
        return _reply(self._connection.start_job(request, idempotency_key).wait())

    async def astart(
        self,
        urls: Iterable[str | ListedVideo] | None = None,
        *,
        playlist: str | None = None,
        channel: str | None = None,
        search: str | None = None,
        limit: int | None = None,
        since: datetime.date | None = None,
        lang: str | None = None,
        callback_url: str | None = None,
        idempotency_key: str | None = None,
    ) -> Job:
        """As :meth:`start`."""
        request = _request(urls, playlist, channel, search, limit, since, lang, callback_url)
        return _reply(await self._connection.start_job(request, idempotency_key))

    def get(self, job: Job | str) -> Job:
        """Returns the state of a job.

        :raises ServiceNotFound: the account has no such job.
        """
        return _reply(self._connection.job(_id(job)).wait())

    async def aget(self, job: Job | str) -> Job:
        """As :meth:`get`."""
        return _reply(await self._connection.job(_id(job)))

    def list(self, *, page_size: int = 20) -> PagedItems[Job]:
        """Returns the jobs, the newest first, for ``for`` and ``async for``.

        :param page_size: how many jobs are read at a time, from 1 to 100.
        """
        check_page_size(page_size)
        return PagedItems(lambda after: self._connection.jobs(after, page_size), _jobs)

    def results(self, job: Job | str, *, page_size: int = 20) -> PagedItems[JobResult]:
        """Returns the items in the order of their links, for ``for`` and ``async for``, also while the job runs.

        :param page_size: how many items are read at a time, from 1 to 100; fewer, if they are more than 64 MiB. A page
            must arrive within the timeout of the client.
        """
        check_page_size(page_size)
        return PagedItems(lambda after: self._connection.job_results(_id(job), after, page_size), _results)

    def wait(
        self,
        job: Job | str,
        *,
        timeout: float | None = None,
        progress: Callable[[Job], Any] | None = None,
    ) -> Job:
        """Polls a job until it has ended, with growing pauses of up to 30 seconds, and returns it.

        A paused job has not ended: it continues when the reason of the pause is gone. A server that restarts, or cannot
        be reached, is polled for 10 minutes, so a wrong address fails only then.

        :param timeout: seconds after which the call fails; None: no timeout.
        :param progress: called with the job after each poll. An exception of it ends the call, not the job.
        :raises JobTimeout: the job has not ended within the timeout.
        :raises ServiceError: the server did not respond for 10 minutes, or refused the request.
        """
        polls = Polls(_id(job), timeout, progress)
        while True:
            try:
                found = _reply(self._connection.job(polls.id).wait())
            except ServiceError as error:
                polls.postpone(error)
            else:
                if polls.is_ended(found):
                    return found
            time.sleep(polls.next_pause())

    async def await_(
        self,
        job: Job | str,
        *,
        timeout: float | None = None,
        progress: Callable[[Job], Any] | None = None,
    ) -> Job:
        """As :meth:`wait`."""
        from asyncio import sleep

        polls = Polls(_id(job), timeout, progress)
        while True:
            try:
                found = _reply(await self._connection.job(polls.id))
            except ServiceError as error:
                polls.postpone(error)
            else:
                if polls.is_ended(found):
                    return found
            await sleep(polls.next_pause())

    def cancel(self, job: Job | str) -> Job:
        """Cancels a job: what has not started is skipped and costs nothing. An ended job stays as it is."""
        return _reply(self._connection.cancel_job(_id(job)).wait())

    async def acancel(self, job: Job | str) -> Job:
        """As :meth:`cancel`."""
        return _reply(await self._connection.cancel_job(_id(job)))

    def deliveries(self, job: Job | str) -> List[EventDelivery]:
        """Returns the events of a job with the attempts to send them, the oldest first."""
        return _deliveries(self._connection.job_deliveries(_id(job)).wait())

    async def adeliveries(self, job: Job | str) -> List[EventDelivery]:
        """As :meth:`deliveries`."""
        return _deliveries(await self._connection.job_deliveries(_id(job)))

    def webhook_secret(self) -> WebhookSecret:
        """Returns the secret that signs the webhooks of the account, for :func:`verify_webhook`."""
        return _secret(self._connection.webhook_secret().wait())

    async def awebhook_secret(self) -> WebhookSecret:
        """As :meth:`webhook_secret`."""
        return _secret(await self._connection.webhook_secret())

    def rotate_webhook_secret(self) -> WebhookSecret:
        """Replaces this secret; for a day the old one signs too. A second rotation ends the old one at once."""
        return _secret(self._connection.rotate_webhook_secret().wait())

    async def arotate_webhook_secret(self) -> WebhookSecret:
        """As :meth:`rotate_webhook_secret`."""
        return _secret(await self._connection.rotate_webhook_secret())


def _request(
    urls: Iterable[str | ListedVideo] | None,
    playlist: str | None,
    channel: str | None,
    search: str | None,
    limit: int | None,
    since: datetime.date | None,
    lang: str | None,
    callback_url: str | None,
) -> str:
    if isinstance(urls, (str, bytes, ListedVideo)):
        raise TypeError("urls must be an iterable of links")
    if limit is not None and not isinstance(limit, int):
        raise TypeError(f"limit must be an int, not {type(limit)}")
    if limit is not None and not 0 < limit < 2**63:
        raise ValueError(f"limit must be a number from 1, not {limit}")
    request = {
        "urls": None if urls is None else [_link(url) for url in urls],
        "playlist": playlist,
        "channel": channel,
        "search": search,
        "limit": limit,
        "since": None if since is None else _since(since),
        "lang": lang,
        "callback_url": callback_url,
    }
    return json.dumps({name: value for name, value in request.items() if value is not None})


def _link(url: str | ListedVideo) -> str:
    link = link_address(url)
    if not isinstance(link, str):
        raise TypeError(f"urls must be links, not {type(link)}")
    return link


def _since(since: datetime.date) -> str:
    if not isinstance(since, datetime.date):
        raise TypeError(f"since must be a date or a datetime, not {type(since)}")
    if not isinstance(since, datetime.datetime):
        return since.isoformat()
    if since.tzinfo is None:
        raise ValueError(f"since needs a time zone: {since}")
    return since.astimezone(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")


def _id(job: Job | str) -> str:
    return job.id if isinstance(job, Job) else job


def _reply(reply: tuple[dict[str, Any], dict[str, Any]]) -> Job:
    return _job(reply[0])


def _job(body: dict[str, Any]) -> Job:
    counts, credits = body["counts"], body["credits"]
    return Job(
        id=body["job_id"],
        status=body["status"],
        counts=JobCounts(*(counts[name] for name in JobCounts._fields)),
        credits=JobCredits(*(credits[name] for name in JobCredits._fields)),
        created_at=body["created_at"],
        ended_at=body.get("ended_at"),
        pause_reason=body.get("pause_reason"),
        list_url=body.get("list_url"),
        reason=body.get("reason"),
        message=body.get("message"),
        callback_url=body.get("callback_url"),
    )


def _jobs(reply: tuple[dict[str, Any], dict[str, Any]]) -> tuple[list[Job], str | None]:
    return [_job(job) for job in reply[0]["jobs"]], reply[0]["next_cursor"]


def _results(
    page: tuple[list[tuple[dict[str, Any], Transcript | None]], str | None],
) -> tuple[list[JobResult], str | None]:
    items = [
        JobResult(
            item["index"],
            item["url"],
            None if item["platform"] is None else PLATFORMS.get(item["platform"], item["platform"]),
            item["video_id"],
            item["status"],
            item.get("reason"),
            item.get("message"),
            transcript,
            [Language(**language) for language in item.get("languages", ())],
        )
        for item, transcript in page[0]
    ]
    return items, page[1]


def _deliveries(reply: tuple[dict[str, Any], dict[str, Any]]) -> list[EventDelivery]:
    return [
        EventDelivery(**{**event, "attempts": [DeliveryAttempt(**attempt) for attempt in event["attempts"]]})
        for event in reply[0]["events"]
    ]


def _secret(reply: tuple[dict[str, Any], dict[str, Any]]) -> WebhookSecret:
    return WebhookSecret(*(reply[0][name] for name in WebhookSecret._fields))
