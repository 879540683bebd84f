"""Outcomes of calls of an archive."""

from __future__ import annotations

from typing import NamedTuple

from ._native import Transcript

__all__ = ["ImportOutcome", "RefreshOutcome", "SearchHit"]


class RefreshOutcome(NamedTuple):
    """Outcome of a refresh."""

    #: The archived transcript.
    transcript: Transcript
    #: Whether the refresh changed it.
    changed: bool


class ImportOutcome(NamedTuple):
    """Outcome of an import."""

    #: The language, as a BCP 47 tag.
    language: str
    #: The number of segments.
    segments: int
    #: `added`, `replaced`, `kept` (another transcript exists and stays) or `unchanged`.
    effect: str
    #: The number of undecodable characters, which are U+FFFD in the segments.
    unreadable: int
    #: The number of cues that were left out: their times are unreadable, or they are in another language.
    left_out: int


class SearchHit(NamedTuple):
    """A passage of an archived transcript that contains all words of the query."""

    #: The transcript.
    transcript: Transcript
    #: The text of the passage, in one line.
    text: str
    #: Start, in seconds from the start of the video.
    start: float
    #: End, in seconds from the start of the video.
    end: float
    #: Link to the start of the passage.
    url: str
