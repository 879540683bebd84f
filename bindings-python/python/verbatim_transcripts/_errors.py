"""Exceptions of the package.

    VerbatimError
    ├── InvalidInput (also a ValueError)    a malformed link, language or option
    ├── TranscriptUnavailable               no transcript: `.reason`, `.watch_url`
    │   ├── VideoUnavailable                the platform does not show the video
    │   │   ├── PrivateVideo, RemovedVideo, RegionBlocked, AgeRestricted, LoginRequired
    │   │   ├── MembersOnly, PaidVideo, LiveVideo, UpcomingVideo
    │   │   └── WithdrawnVideo              taken down by the operator of the archive
    │   ├── NoCaptions                      the video has no captions
    │   ├── LanguageNotFound                it has captions in other languages: `.available`
    │   ├── RateLimited                     the platform throttles or blocks the address
    │   ├── FetchFailed                     a transient failure
    │   ├── NotArchived                     it is not archived, and the call does not fetch: `.available`
    │   └── NotConfigured                   no supplier is configured for the platform
    ├── ListUnavailable                     a playlist or channel cannot be read: `.reason`, `.url`
    │   ├── PrivateList                     the playlist is private
    │   ├── RemovedList                     it was removed, or never existed
    │   ├── MissingTab                      the channel has no videos of this tab
    │   ├── UnviewableList                  the platform does not show lists of this kind
    │   ├── ListRateLimited                 the platform throttles or blocks the address
    │   ├── ListUnreadable                  the platform responded in an unknown format
    │   └── ListFetchFailed                 a transient failure
    ├── StorageError                        a failure of the archive or the ledger
    │   ├── StorageUnavailable
    │   └── StorageCorrupt
    ├── NotFoundError, ConflictError, UnsupportedError
    ├── ClosedError                         the object is closed
    ├── InvalidSignature                    a webhook that no secret signed
    ├── SupplyError                         raised by custom suppliers
    └── ServiceError                        a failed request to a server: `.idempotency_key`
        ├── ServiceTimeout
        ├── ServiceUnreachable
        ├── JobTimeout                      a job has not ended in time
        └── ServiceRefused                  `.status`, `.retry_after`, `.watch_url`, `.request_id`, …
            ├── RefusedInput                400: a malformed link; also an InvalidInput, and not exported
            ├── Unauthorized                401
            ├── PaymentRequired             402
            ├── ServiceNotFound             404
            │   └── NoServer                no Verbatim server responds at the address; not exported
            ├── ServiceConflict             409
            └── TooManyRequests             429

All of them can be pickled; their data is in attributes.
"""

from __future__ import annotations

from . import __all__ as _public
from ._error_base import *
from ._service_errors import *
from ._unavailable import *

# The public name, which pickles use.
for _name in _public:
    if _name in globals():
        globals()[_name].__module__ = "verbatim_transcripts"
