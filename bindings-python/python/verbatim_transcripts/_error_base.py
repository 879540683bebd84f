"""The base class of the exceptions, and those that are neither of a video or list nor of a server."""

from __future__ import annotations


class VerbatimError(Exception):
    """Base class of all exceptions of this package. `str()` returns a message for people."""

    #: Seconds after which a retry may succeed; None if unknown.
    retry_after: float | None

    def __init__(self, message: str = "", retry_after: float | None = None) -> None:
        super().__init__(message)
        self.retry_after = retry_after

    def __reduce__(self) -> tuple[object, ...]:
        return (_restore, (type(self), self.args, dict(self.__dict__)))


def _restore(kind: type[VerbatimError], args: tuple[object, ...], state: dict[str, object]) -> VerbatimError:
    error = kind.__new__(kind, *args)
    error.args = args
    error.__dict__.update(state)
    return error


class InvalidInput(VerbatimError, ValueError):
    """A link, a language or an option is malformed; the call had no effect."""


class StorageError(VerbatimError):
    """A failure of the archive, the ledger or the directory. An exception of a custom store is its ``__cause__``."""


class StorageUnavailable(StorageError):
    """The store cannot be reached, or is too slow."""


class StorageCorrupt(StorageError):
    """Stored data cannot be decoded."""


class NotFoundError(VerbatimError):
    """The requested object does not exist."""


class ConflictError(VerbatimError):
    """The call contradicts stored data; it had no effect."""


class UnsupportedError(VerbatimError):
    """The operation is not supported here: for example, the file is read-only or of a newer version."""


class ClosedError(VerbatimError):
    """The object is closed."""


class InvalidSignature(VerbatimError):
    """No secret signed the webhook, or its signature is too old: ignore it."""


class SupplyError(VerbatimError):
    """Raised by a custom supplier to report why it has no transcript.

    `reason` is one of `no_captions`, `no_language`, `private`, `removed`, `region`, `age`, `members`, `payment`,
    `login`, `live`, `upcoming` (about the video; stored as an absence); `throttled`, `bot_check`, `other_video`,
    `timeout`, `unreachable`, `platform_fault`, `unreadable` (transient); `stale`, `misconfigured` (for the operator).
    A shorter `retry_after` ends a stored absence earlier, that of 0 at once; with `upcoming` it is the time until the
    start.

    After any other exception a batch tries the link again, unless it is a bug of the supplier: a `TypeError`, an
    `AttributeError`, a `NameError`, a `LookupError`, an `ImportError`, an `AssertionError`, a `NotImplementedError`, or
    a `SupplyError` with another reason.
    """

    reason: str

    def __init__(self, reason: str, message: str = "", retry_after: float | None = None) -> None:
        super().__init__(message or f"There is no transcript: {reason}.", retry_after)
        self.reason = reason
