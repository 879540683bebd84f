"""Webhooks of jobs, as their receiver verifies them."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import NamedTuple

from ._errors import InvalidInput
from ._jobs import Job, WebhookSecret, _job
from ._native import _verify_webhook

__all__ = ["WebhookEvent", "verify_webhook"]

#: Seconds that a signature may be old, as for `verbatim webhook verify`.
_TOLERANCE = 300.0


class WebhookEvent(NamedTuple):
    """The body of a webhook."""

    #: The id of the event, the same in every attempt: ignore an id that is known.
    id: str
    #: `job.completed`, `job.paused`, `job.cancelled` or `job.failed`.
    type: str
    #: When it happened: RFC 3339, UTC.
    created_at: str
    #: The job when the event was sent.
    job: Job


def verify_webhook(
    payload: bytes | str,
    header: str | None,
    secret: str | WebhookSecret | Iterable[str],
    *,
    tolerance: float = _TOLERANCE,
) -> WebhookEvent:
    """Verifies the signature of a webhook, and returns its event.

    :param payload: the body, exactly as it was received.
    :param header: the value of the header ``Verbatim-Signature``.
    :param secret: the secret of the account (``client.jobs.webhook_secret().secret``, or the object with it), or
        several secrets, of which one must match.
    :param tolerance: the largest accepted difference between the time of the signature and now, in seconds.
    :raises InvalidSignature: no secret signed the body, or the signature is too old.
    :raises InvalidInput: the body is no event.
    :raises ValueError: there is no secret, or one is empty: anyone can sign with an empty secret.

    >>> verify_webhook(b"{}", "t=1795338240,v1=" + 64 * "0", "vbw_secret")
    Traceback (most recent call last):
    verbatim_transcripts.InvalidSignature: the signature matches none of the signing secrets
    """
    # A `WebhookSecret` is a tuple, whose times are no secrets.
    secret = secret.secret if isinstance(secret, WebhookSecret) else secret
    secrets = [secret] if isinstance(secret, str) else list(secret)
    if header is not None and not isinstance(header, str):
        raise TypeError(f"header must be a str, not {type(header).__name__}")
    if not all(isinstance(one, str) for one in secrets):
        raise TypeError("secret must be a str, a WebhookSecret or an iterable of str")
    if not secrets or not all(map(str.strip, secrets)):
        raise ValueError("there is no secret, or one is empty")
    body = payload.encode() if isinstance(payload, str) else bytes(payload)
    _verify_webhook(body, header, secrets, tolerance)
    try:
        event = json.loads(body)
        return WebhookEvent(event["id"], event["type"], event["created_at"], _job(event["job"]))
    except (KeyError, TypeError, ValueError) as error:
        raise InvalidInput(f"the body is no event of a job: {error}") from error
