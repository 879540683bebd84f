"""A link to a video in, the words that are spoken in it out, with the time of each.

    import verbatim

    transcript = verbatim.get("https://www.youtube.com/watch?v=dQw4w9WgXcQ")
    print(transcript.title, transcript.language)
    for segment in transcript:
        print(segment.start, segment.text)

`get` and `aget` fetch one transcript; :class:`Transcripts` keeps an archive, and fetches many;
:class:`Client` asks a Verbatim server.
"""

from __future__ import annotations

from . import _process as _process
from ._client import Account, ChatAnswer, Checkout, Citation, Client, Facts, KeyUse, LookUp
from ._errors import (
    Closed,
    Conflict,
    FetchFailed,
    InvalidInput,
    NoCaptions,
    NotConfigured,
    NotFound,
    NotOffered,
    PaymentRequired,
    RateLimited,
    ServiceConflict,
    ServiceError,
    ServiceRefused,
    ServiceTimeout,
    ServiceUnreachable,
    StorageCorrupt,
    StorageError,
    StorageUnavailable,
    SupplyFailed,
    TooManyRequests,
    TranscriptUnavailable,
    Unauthorized,
    Unsupported,
    VerbatimError,
)
from ._many import Result
from ._native import Ask, Segment, Segments, Transcript, __version__
from ._ports import Archive, ChatModel, Directory, Ledger, Mailer, Supplier
from ._service import Caller, Service
from ._simple import aget, aget_many, get, get_many
from ._transcripts import Hit, Imported, Refreshed, Transcripts

__all__ = [
    "Account",
    "Archive",
    "Ask",
    "Caller",
    "ChatAnswer",
    "ChatModel",
    "Checkout",
    "Citation",
    "Client",
    "Closed",
    "Conflict",
    "Directory",
    "Facts",
    "FetchFailed",
    "Hit",
    "Imported",
    "InvalidInput",
    "KeyUse",
    "Ledger",
    "LookUp",
    "Mailer",
    "NoCaptions",
    "NotConfigured",
    "NotFound",
    "NotOffered",
    "PaymentRequired",
    "RateLimited",
    "Refreshed",
    "Result",
    "Segment",
    "Segments",
    "Service",
    "ServiceConflict",
    "ServiceError",
    "ServiceRefused",
    "ServiceTimeout",
    "ServiceUnreachable",
    "StorageCorrupt",
    "StorageError",
    "StorageUnavailable",
    "Supplier",
    "SupplyFailed",
    "TooManyRequests",
    "Transcript",
    "TranscriptUnavailable",
    "Transcripts",
    "Unauthorized",
    "Unsupported",
    "VerbatimError",
    "aget",
    "aget_many",
    "get",
    "get_many",
    "__version__",
]
