"""What is known of a video besides its segments."""

from __future__ import annotations

import datetime
from collections.abc import Iterable
from typing import NamedTuple

__all__ = ["Chapter", "Language", "VideoMetadata"]

#: The names of the platforms, by those on the wire.
PLATFORMS = {"video_site": "YouTube", "short_video": "TikTok", "reels": "Instagram", "microblog": "X"}

_EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.timezone.utc)
_MILLISECOND = datetime.timedelta(milliseconds=1)


class Chapter(NamedTuple):
    """A chapter of a video. It lasts until the next one starts."""

    #: The title.
    title: str
    #: Start, in seconds from the start of the video.
    start: float


class Language(NamedTuple):
    """A language in which a video has a track."""

    #: The language, as a BCP 47 tag.
    tag: str
    #: The name of the track, or the English name of the language.
    name: str
    #: `manual`, `auto` (recognised from speech) or `translated` (by a machine).
    kind: str
    #: Whether the language is the spoken language, as far as the supplier knows.
    original: bool


def caption_languages(languages: Iterable[Language]) -> list[str]:
    """The tags of languages, each once, without machine translations: they are no captions of the video."""
    return list(dict.fromkeys(language.tag for language in languages if language.kind != "translated"))


class VideoMetadata(NamedTuple):
    """Metadata of a video, as the supplier provided it; what is unknown is None."""

    title: str | None = None
    #: The name of the channel or profile.
    author: str | None = None
    #: The platform's id of the channel or profile.
    author_id: str | None = None
    #: Link to the channel or profile.
    author_url: str | None = None
    #: The length, in seconds.
    duration: float | None = None
    #: When the video was published, with a time zone.
    published_at: datetime.datetime | None = None
    #: Link to a preview image.
    thumbnail_url: str | None = None
    #: Whether the video is or was live: `not_live`, `upcoming`, `live` or `was_live`.
    live: str | None = None
    description: str | None = None


def _to_datetime(millis: int) -> datetime.datetime:
    """Returns the time this many milliseconds after 1970, in UTC."""
    return _EPOCH + millis * _MILLISECOND


def _to_millis(time: datetime.datetime) -> int:
    """Returns the milliseconds since 1970.

    Raises `TypeError` for another value, and `ValueError` for a time without a time zone.
    """
    if not isinstance(time, datetime.datetime):
        raise TypeError(f"published_at must be a datetime, not {type(time)}")
    if time.tzinfo is None:
        raise ValueError(f"published_at needs a time zone: {time}")
    return (time - _EPOCH) // _MILLISECOND
