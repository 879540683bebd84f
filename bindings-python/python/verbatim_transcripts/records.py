"""Plain data that an :class:`verbatim_transcripts.Archive` receives and returns.

Times are milliseconds since 1970, digests are lists of bytes. Selectors are ``"default"``, a BCP 47 tag, or
``"translation:"`` and a tag.
"""

from __future__ import annotations

from typing import Literal, TypedDict, Union

__all__ = [
    "AbsenceRecord",
    "ArchiveStats",
    "ArchivedTrack",
    "ChapterRecord",
    "DetailsRecord",
    "FetchLease",
    "FindOutcome",
    "LeaseOutcome",
    "MetadataRecord",
    "PageRequest",
    "PutRequest",
    "SegmentRecord",
    "ShortLinkRecord",
    "StoredTranscript",
    "TrackPage",
    "TrackRecord",
    "TranscriptRecord",
    "VideoPage",
    "VideoRecord",
    "WordRecord",
]


class VideoRecord(TypedDict):
    """A video: ``video_site`` is YouTube, ``short_video`` TikTok, ``reels`` Instagram and ``microblog`` X."""

    platform: Literal["video_site", "short_video", "reels", "microblog"]
    id: str


class TrackRecord(TypedDict):
    """A track of captions."""

    language: str
    kind: Literal["human", "generated", "translated"]
    name: Union[str, None]
    original: bool


class WordRecord(TypedDict):
    """A word of a segment with its time in milliseconds from the start of the video."""

    text: str
    start_ms: int
    duration_ms: int


class _Words(TypedDict, total=False):
    #: Absent if the source has no times of words.
    words: list[WordRecord]


class SegmentRecord(_Words):
    """A text with its time in milliseconds from the start of the video."""

    text: str
    start_ms: int
    duration_ms: int


class TranscriptRecord(TypedDict):
    """A transcript."""

    video: VideoRecord
    title: Union[str, None]
    author: Union[str, None]
    duration_ms: Union[int, None]
    track: TrackRecord
    source: str
    segments: list[SegmentRecord]


class ChapterRecord(TypedDict):
    """A chapter of a video with its start in milliseconds."""

    title: str
    start_ms: int


class MetadataRecord(TypedDict, total=False):
    """Metadata of a video; what is unknown is absent. Title, author and length are in the transcript."""

    author_id: str
    author_url: str
    published_at: int
    thumbnail_url: str
    live: Literal["not_live", "upcoming", "live", "was_live"]
    description: str
    chapters: list[ChapterRecord]


class DetailsRecord(TypedDict):
    """What an archive knows of a video besides the texts: metadata, and the known tracks in order of discovery."""

    metadata: MetadataRecord
    tracks: list[TrackRecord]


class StoredTranscript(TypedDict):
    """An archived transcript; :func:`verbatim_transcripts.testing.content_digest` returns its digest.

    ``details`` are those of the video at present, whatever the revision.
    """

    transcript: TranscriptRecord
    revision: int
    content_sha256: list[int]
    parser_version: int
    stored_at: int
    details: DetailsRecord


class AbsenceRecord(TypedDict):
    """That a video has no transcript for a selector (``wish``), until a time."""

    video: VideoRecord
    wish: str
    reason: str
    message: str
    asked: list[str]
    until: int


class PutRequest(TypedDict):
    """A transcript to store for the selectors in ``wishes``; unknown metadata leaves the stored one unchanged."""

    video: VideoRecord
    wishes: list[str]
    transcript: TranscriptRecord
    known_tracks: list[TrackRecord]
    metadata: MetadataRecord
    parser_version: int
    replace: bool
    now: int


class FetchLease(TypedDict):
    """A claim of ``holder`` to fetch a selector (``wish``), until a time."""

    video: VideoRecord
    wish: str
    holder: str
    now: int
    until: int


class ArchivedTrack(TypedDict):
    """A known track, and the selectors that it serves; without a transcript, revision and time are None."""

    video: VideoRecord
    track: TrackRecord
    wishes: list[str]
    revision: Union[int, None]
    stored_at: Union[int, None]


class ShortLinkRecord(TypedDict):
    """A short link."""

    platform: str
    address: str
    code: str


class PageRequest(TypedDict):
    """A page: at most ``limit`` items after a cursor of an earlier page."""

    after: Union[str, None]
    limit: int


class TrackPage(TypedDict):
    """A page of tracks, and the cursor of the next one."""

    items: list[ArchivedTrack]
    next: Union[str, None]


class VideoPage(TypedDict):
    """A page of videos, and the cursor of the next one."""

    items: list[VideoRecord]
    next: Union[str, None]


class ArchiveStats(TypedDict):
    """Totals of an archive."""

    videos: int
    transcripts: int
    absences: int
    withdrawn: int
    links: int
    bytes: int


class _Found(TypedDict):
    transcript: StoredTranscript


class _Absent(TypedDict):
    absent: AbsenceRecord


class _Until(TypedDict):
    until: int


class _Busy(TypedDict):
    busy: _Until


#: What `find` returns.
FindOutcome = Union[_Found, _Absent, Literal["withdrawn", "nothing"]]
#: What `acquire_lease` returns.
LeaseOutcome = Union[Literal["claimed"], _Busy]
