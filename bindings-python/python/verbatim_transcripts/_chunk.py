"""Parts of a transcript."""

from __future__ import annotations

from typing import NamedTuple

# pydantic resolves the annotations of `Chunk` in this module.
from ._native import Segments

__all__ = ["Chunk", "Track", "Word"]


class Chunk(NamedTuple):
    """Consecutive segments as one text: a paragraph, a page, or a part of a certain size."""

    #: The text, in one line.
    text: str
    #: Start, in seconds from the start of the video.
    start: float
    #: End, in seconds from the start of the video.
    end: float
    #: Link to the start.
    url: str
    #: The segments.
    segments: Segments


class Word(NamedTuple):
    """A word of a segment with its time."""

    #: The word as in the text of its segment, without white space around it.
    text: str
    #: Start, in seconds from the start of the video.
    start: float
    #: Duration, in seconds.
    duration: float

    @property
    def end(self) -> float:
        """End, in seconds from the start of the video."""
        return self.start + self.duration


class Track(NamedTuple):
    """A track of captions of a video."""

    #: The language, as a BCP 47 tag.
    language: str
    #: `human`, `generated` (recognised from speech) or `translated` (by a machine).
    kind: str
    #: The name, or None if it has none besides its language.
    name: str | None
    #: Whether the language is the spoken language, as far as the supplier knows.
    original: bool
    #: Whether its transcript is archived.
    is_archived: bool

    @property
    def is_generated(self) -> bool:
        """Whether the text was generated: recognised from speech, or translated by a machine."""
        return self.kind != "human"
