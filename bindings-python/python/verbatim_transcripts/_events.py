"""The logger of the package, and event hooks."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any, NamedTuple

__all__ = ["Event"]

#: Receives retries, pauses, breaker changes and failures of suppliers, and exceptions of custom components.
logger = logging.getLogger("verbatim_transcripts")
logger.addHandler(logging.NullHandler())


class Event(NamedTuple):
    """An event of a :class:`verbatim_transcripts.Transcripts` object: the argument of ``on_event``."""

    #: `stage`, `supplier_call`, `breaker_opened` or `breaker_closed`.
    name: str
    #: The data of the event: `supplier`, `platform`, and
    #: `video_id`, `stage`, `done`, `total` of a stage;
    #: `reason` (None: success), `attempted`, `seconds` of a call;
    #: `reason`, `until`, `consecutive` of an opened breaker.
    fields: dict[str, Any]


def is_verbose() -> bool:
    return logger.isEnabledFor(logging.DEBUG)


def deliver(
    hook: Callable[[Event], object] | None,
    level: int,
    name: str,
    fields: dict[str, Any],
    error: BaseException | None,
) -> None:
    if hook is None:
        if logger.isEnabledFor(level):
            text = ", ".join(f"{key}={value}" for key, value in fields.items())
            logger.log(level, "%s: %s", name, text, exc_info=error, extra={"event": name, "fields": fields})
        return
    try:
        hook(Event(name, fields))
    except Exception:  # the hook must not change the result of a call
        logger.exception("on_event raised an exception", extra={"event": name, "fields": fields})
