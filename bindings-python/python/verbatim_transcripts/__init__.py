"""Timestamped transcripts of YouTube, TikTok, Instagram and X videos.

    import verbatim_transcripts

    transcript = verbatim_transcripts.get("https://www.youtube.com/watch?v=dQw4w9WgXcQ")
    print(transcript.title, transcript.language)
    for segment in transcript:
        print(segment.start, segment.text)

`get` and `aget` return one transcript, `languages` the tracks of a video, `playlist`, `channel`
and `youtube_search` the videos of a list.
:class:`Transcripts` stores transcripts and fetches many concurrently.
:class:`Client` uses a Verbatim server. :class:`Service` runs the complete service in the process.
"""

from __future__ import annotations

import importlib

from . import _lifecycle as _lifecycle
from ._native import Segment, Segments, SupplyRequest, Transcript, __version__

# As in `typing`, whose import takes longer than that of this package.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from ._batch import BatchFailure, BatchResult, BatchSuccess
    from ._chunk import Chunk, Track, Word
    from ._client import Client
    from ._errors import (
        AgeRestricted,
        ClosedError,
        ConflictError,
        FetchFailed,
        InvalidInput,
        InvalidSignature,
        JobTimeout,
        LanguageNotFound,
        ListFetchFailed,
        ListRateLimited,
        ListUnavailable,
        ListUnreadable,
        LiveVideo,
        LoginRequired,
        MembersOnly,
        MissingTab,
        NoCaptions,
        NotArchived,
        NotConfigured,
        NotFoundError,
        PaidVideo,
        PaymentRequired,
        PrivateList,
        PrivateVideo,
        RateLimited,
        RegionBlocked,
        RemovedList,
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
        UnviewableList,
        UpcomingVideo,
        VerbatimError,
        VideoUnavailable,
        WithdrawnVideo,
    )
    from ._events import Event
    from ._functions import (
        aget,
        aget_many,
        alanguages,
        channel,
        get,
        get_many,
        languages,
        playlist,
        youtube_search,
    )
    from ._jobs import (
        DeliveryAttempt,
        EventDelivery,
        Job,
        JobCounts,
        JobCredits,
        JobResult,
        Jobs,
        PagedItems,
        WebhookSecret,
    )
    from ._outcomes import ImportOutcome, RefreshOutcome, SearchHit
    from ._search import ArchiveSearch, ServerHit, ServerSearch, VideoHit, VideoMoment
    from ._ports import Archive, ChatModel, Directory, EmbeddingModel, KeyValueStore, Ledger, Mailer, Supplier
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
    from ._video_list import ListedVideo, ListInfo, PublishedRange, VideoList
    from ._webhooks import WebhookEvent, verify_webhook

__all__ = [
    "AccountInfo",
    "AgeRestricted",
    "Archive",
    "ArchiveSearch",
    "BatchFailure",
    "BatchResult",
    "BatchSuccess",
    "Chapter",
    "ChatAnswer",
    "ChatModel",
    "CheckoutSession",
    "Chunk",
    "Citation",
    "Client",
    "ClosedError",
    "ConflictError",
    "DeliveryAttempt",
    "Directory",
    "EmbeddingModel",
    "Event",
    "EventDelivery",
    "FetchFailed",
    "ImportOutcome",
    "InvalidInput",
    "InvalidSignature",
    "Job",
    "JobCounts",
    "JobCredits",
    "JobResult",
    "JobTimeout",
    "Jobs",
    "KeyUsage",
    "KeyValueStore",
    "Language",
    "LanguageNotFound",
    "Ledger",
    "ListFetchFailed",
    "ListInfo",
    "ListRateLimited",
    "ListUnavailable",
    "ListUnreadable",
    "ListedVideo",
    "LiveVideo",
    "LocalClient",
    "LoginRequired",
    "LookupResponse",
    "Mailer",
    "MembersOnly",
    "MissingTab",
    "NoCaptions",
    "NotArchived",
    "NotConfigured",
    "NotFoundError",
    "PagedItems",
    "PaidVideo",
    "PaymentRequired",
    "PrivateList",
    "PrivateVideo",
    "PublishedRange",
    "RateLimited",
    "RefreshOutcome",
    "RegionBlocked",
    "RemovedList",
    "RemovedVideo",
    "ResponseMeta",
    "SearchHit",
    "Segment",
    "Segments",
    "ServerHit",
    "ServerSearch",
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
    "UnviewableList",
    "UpcomingVideo",
    "VerbatimError",
    "VideoHit",
    "VideoList",
    "VideoMetadata",
    "VideoMoment",
    "VideoUnavailable",
    "WebhookEvent",
    "WebhookSecret",
    "WithdrawnVideo",
    "Word",
    "aget",
    "aget_many",
    "alanguages",
    "channel",
    "get",
    "get_many",
    "languages",
    "playlist",
    "verify_webhook",
    "youtube_search",
    "__version__",
]

#: The modules of the names that are not exceptions. A name is imported on its first use: programs use few of them, and
#: together they take several times as long as the native module.
_MODULES = {
    "_batch": ("BatchFailure", "BatchResult", "BatchSuccess"),
    "_chunk": ("Chunk", "Track", "Word"),
    "_client": ("Client",),
    "_events": ("Event",),
    "_functions": (
        "aget",
        "aget_many",
        "alanguages",
        "channel",
        "get",
        "get_many",
        "languages",
        "playlist",
        "youtube_search",
    ),
    "_jobs": (
        "DeliveryAttempt",
        "EventDelivery",
        "Job",
        "JobCounts",
        "JobCredits",
        "JobResult",
        "Jobs",
        "PagedItems",
        "WebhookSecret",
    ),
    "_outcomes": ("ImportOutcome", "RefreshOutcome", "SearchHit"),
    "_search": ("ArchiveSearch", "ServerHit", "ServerSearch", "VideoHit", "VideoMoment"),
    "_ports": ("Archive", "ChatModel", "Directory", "EmbeddingModel", "KeyValueStore", "Ledger", "Mailer", "Supplier"),
    "_responses": (
        "AccountInfo",
        "ChatAnswer",
        "CheckoutSession",
        "Citation",
        "KeyUsage",
        "LookupResponse",
        "ResponseMeta",
    ),
    "_service": ("LocalClient", "Service"),
    "_transcripts": ("Transcripts",),
    "_video": ("Chapter", "Language", "VideoMetadata"),
    "_video_list": ("ListedVideo", "ListInfo", "PublishedRange", "VideoList"),
    "_webhooks": ("WebhookEvent", "verify_webhook"),
}
_MODULE_OF = dict.fromkeys(__all__, "_errors") | {name: module for module, names in _MODULES.items() for name in names}

if not TYPE_CHECKING:  # Else every name would exist to a type checker.

    def __getattr__(name: str) -> object:
        module = _MODULE_OF.get(name)
        if module is None:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        value = getattr(importlib.import_module(f"{__name__}.{module}"), name)
        globals()[name] = value
        return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
