"""Texts with metadata, for the loaders of other libraries."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ._batch import BatchResult
from ._errors import TranscriptUnavailable
from ._native import Segment, Transcript

#: Seconds, tokens and overlap of a part.
Size = tuple[float | None, int | None, float | None]


def check_size(size: Size) -> None:
    """Raises the error of :meth:`Transcript.chunks` for an invalid size, before anything is fetched."""
    seconds, tokens, overlap = size
    if seconds is not None or tokens is not None or overlap:
        one = Transcript("https://youtu.be/aaaaaaaaaaa", [Segment("One.", 0)])
        one.chunks(seconds=seconds, tokens=tokens, overlap=overlap)


def parts(result: BatchResult, size: Size, skip_missing: bool) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yields the texts of a transcript with their metadata: one, or one for each chunk."""
    if skip_missing and isinstance(result.error, TranscriptUnavailable):
        return
    transcript = result.get()
    seconds, tokens, overlap = size
    metadata = _metadata(transcript)
    if seconds is None and tokens is None:
        yield transcript.text, metadata
        return
    for chunk in transcript.chunks(seconds=seconds, tokens=tokens, overlap=overlap):
        yield chunk.text, {**metadata, "source": chunk.url, "start": chunk.start, "end": chunk.end}


def _metadata(transcript: Transcript) -> dict[str, Any]:
    fields = {
        "source": transcript.url,
        "platform": transcript.platform,
        "video_id": transcript.video_id,
        "title": transcript.title,
        "author": transcript.author,
        "duration": transcript.duration,
        "language": transcript.language,
        "is_generated": transcript.is_generated,
    }
    # Vector stores reject None.
    return {name: value for name, value in fields.items() if value is not None}
