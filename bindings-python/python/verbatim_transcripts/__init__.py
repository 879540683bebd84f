"""Timestamped transcripts of YouTube, TikTok, Instagram and X videos.

    import verbatim_transcripts

    transcript = verbatim_transcripts.get("https://www.youtube.com/watch?v=dQw4w9WgXcQ")
    print(transcript.title, transcript.language)
    for segment in transcript:
        print(segment.start, segment.text)

`get` and `aget` return one transcript, `languages` the tracks of a video. :class:`Transcripts` stores transcripts and
fetches many concurrently.
:class:`Client` uses a Verbatim server. :class:`Service` runs the complete service in the process.
"""

from __future__ import annotations

from . import _lifecycle as _lifecycle
from ._batch import BatchFailure, BatchResult, BatchSuccess
from ._chunk import Chunk, Track, Word
from ._client import Client
from ._errors import (
    AgeRestricted,
    ClosedError,
    ConflictError,
    FetchFailed,
    InvalidInput,
    LanguageNotFound,
    LiveVideo,
    LoginRequired,
    MembersOnly,
    NoCaptions,
    NotArchived,
    NotConfigured,
    NotFoundError,
    PaidVideo,
    PaymentRequired,
    PrivateVideo,
    RateLimited,
    RegionBlocked,
    RemovedVideo,
    ServiceConflict,
    ServiceError,
    ServiceNotFound,
    ServiceRefused,
    ServiceTimeout,
    ServiceUnreachable,
    StorageCorrupt,
    StorageError,
    StorageUnavailable,
    SupplyError,
    TooManyRequests,
    TranscriptUnavailable,
    Unauthorized,
    UnsupportedError,
    UpcomingVideo,
    VerbatimError,
    VideoUnavailable,
    WithdrawnVideo,
)
from ._events import Event
from ._functions import aget, aget_many, alanguages, get, get_many, languages
from ._native import Segment, Segments, SupplyRequest, Transcript, __version__
from ._outcomes import ImportOutcome, RefreshOutcome, SearchHit
from ._ports import Archive, ChatModel, Directory, KeyValueStore, Ledger, Mailer, Supplier
from ._responses import (
    AccountInfo,
    ChatAnswer,
    CheckoutSession,
    Citation,
    KeyUsage,
    LookupResponse,
    ResponseMeta,
)
from ._service import LocalClient, Service
from ._transcripts import Transcripts
from ._video import Chapter, Language, VideoMetadata

__all__ = [
    "AccountInfo",
    "AgeRestricted",
    "Archive",
    "BatchFailure",
    "BatchResult",
    "BatchSuccess",
    "Chapter",
    "ChatAnswer",
    "ChatModel",
    "CheckoutSession",
    "Citation",
    "Client",
    "Chunk",
    "ClosedError",
    "ConflictError",
    "Directory",
    "Event",
    "FetchFailed",
    "ImportOutcome",
    "InvalidInput",
    "KeyUsage",
    "KeyValueStore",
    "Language",
    "LanguageNotFound",
    "Ledger",
    "LiveVideo",
    "LocalClient",
    "LoginRequired",
    "LookupResponse",
    "Mailer",
    "MembersOnly",
    "NoCaptions",
    "NotArchived",
    "NotConfigured",
    "NotFoundError",
    "PaidVideo",
    "PaymentRequired",
    "PrivateVideo",
    "RateLimited",
    "RefreshOutcome",
    "RegionBlocked",
    "RemovedVideo",
    "ResponseMeta",
    "SearchHit",
    "Segment",
    "Segments",
    "Service",
    "ServiceConflict",
    "ServiceError",
    "ServiceNotFound",
    "ServiceRefused",
    "ServiceTimeout",
    "ServiceUnreachable",
    "StorageCorrupt",
    "StorageError",
    "StorageUnavailable",
    "Supplier",
    "SupplyError",
    "SupplyRequest",
    "TooManyRequests",
    "Track",
    "Transcript",
    "TranscriptUnavailable",
    "Transcripts",
    "Unauthorized",
    "UnsupportedError",
    "UpcomingVideo",
    "VerbatimError",
    "VideoMetadata",
    "VideoUnavailable",
    "WithdrawnVideo",
    "Word",
    "aget",
    "aget_many",
    "alanguages",
    "get",
    "get_many",
    "languages",
    "__version__",
]
