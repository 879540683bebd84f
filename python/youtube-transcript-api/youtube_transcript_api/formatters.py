"""Formatters of transcripts."""

from __future__ import annotations

import json
import pprint
from collections.abc import Iterable
from typing import Any

from ._transcripts import FetchedTranscript, FetchedTranscriptSnippet

__all__ = [
    "FetchedTranscript",
    "FetchedTranscriptSnippet",
    "Formatter",
    "FormatterLoader",
    "JSONFormatter",
    "PrettyPrintFormatter",
    "SRTFormatter",
    "TextFormatter",
    "WebVTTFormatter",
]


class Formatter:
    """Base class of formatters."""

    def format_transcript(self, transcript: FetchedTranscript, **kwargs: Any) -> str:
        raise NotImplementedError(f"{type(self).__name__} must implement format_transcript")

    def format_transcripts(self, transcripts: list[FetchedTranscript], **kwargs: Any) -> str:
        raise NotImplementedError(f"{type(self).__name__} must implement format_transcripts")


class PrettyPrintFormatter(Formatter):
    """Pretty-printed Python data; keywords are passed to `pprint.pformat`."""

    def format_transcript(self, transcript: FetchedTranscript, **kwargs: Any) -> str:
        return pprint.pformat(transcript.to_raw_data(), **kwargs)

    def format_transcripts(self, transcripts: list[FetchedTranscript], **kwargs: Any) -> str:
        return pprint.pformat([transcript.to_raw_data() for transcript in transcripts], **kwargs)


class JSONFormatter(Formatter):
    """JSON; keywords are passed to `json.dumps`."""

    def format_transcript(self, transcript: FetchedTranscript, **kwargs: Any) -> str:
        return json.dumps(transcript.to_raw_data(), **kwargs)

    def format_transcripts(self, transcripts: list[FetchedTranscript], **kwargs: Any) -> str:
        return json.dumps([transcript.to_raw_data() for transcript in transcripts], **kwargs)


class TextFormatter(Formatter):
    """Plain text, one line per snippet."""

    def format_transcript(self, transcript: FetchedTranscript, **kwargs: Any) -> str:
        return "\n".join(snippet.text for snippet in transcript)

    def format_transcripts(self, transcripts: list[FetchedTranscript], **kwargs: Any) -> str:
        return "\n\n\n".join(self.format_transcript(transcript, **kwargs) for transcript in transcripts)


class _TextBasedFormatter(TextFormatter):
    """Subtitles with times; a cue ends at the start of the next one at the latest."""

    def _format_timestamp(self, hours: int, mins: int, secs: int, ms: int) -> str:
        raise NotImplementedError

    def _format_transcript_header(self, lines: Iterable[str]) -> str:
        raise NotImplementedError

    def _format_transcript_helper(self, i: int, time_text: str, snippet: FetchedTranscriptSnippet) -> str:
        raise NotImplementedError

    def _seconds_to_timestamp(self, time: float | str) -> str:
        # Rounded as a whole, so that milliseconds stay below 1000.
        seconds, ms = divmod(round(float(time) * 1000), 1000)
        minutes, secs = divmod(seconds, 60)
        hours, mins = divmod(minutes, 60)
        return self._format_timestamp(hours, mins, secs, ms)

    def format_transcript(self, transcript: FetchedTranscript, **kwargs: Any) -> str:
        lines = []
        for i, snippet in enumerate(transcript):
            end = snippet.start + snippet.duration
            if i < len(transcript) - 1:
                end = min(end, transcript[i + 1].start)
            times = f"{self._seconds_to_timestamp(snippet.start)} --> {self._seconds_to_timestamp(end)}"
            lines.append(self._format_transcript_helper(i, times, snippet))
        return self._format_transcript_header(lines)


class SRTFormatter(_TextBasedFormatter):
    """SRT subtitles."""

    def _format_timestamp(self, hours: int, mins: int, secs: int, ms: int) -> str:
        return f"{hours:02d}:{mins:02d}:{secs:02d},{ms:03d}"

    def _format_transcript_header(self, lines: Iterable[str]) -> str:
        return "\n\n".join(lines) + "\n"

    def _format_transcript_helper(self, i: int, time_text: str, snippet: FetchedTranscriptSnippet) -> str:
        return f"{i + 1}\n{time_text}\n{snippet.text}"


class WebVTTFormatter(_TextBasedFormatter):
    """WebVTT subtitles."""

    def _format_timestamp(self, hours: int, mins: int, secs: int, ms: int) -> str:
        return f"{hours:02d}:{mins:02d}:{secs:02d}.{ms:03d}"

    def _format_transcript_header(self, lines: Iterable[str]) -> str:
        return "WEBVTT\n\n" + "\n\n".join(lines) + "\n"

    def _format_transcript_helper(self, i: int, time_text: str, snippet: FetchedTranscriptSnippet) -> str:
        return f"{time_text}\n{snippet.text}"


class FormatterLoader:
    """Formatters by name."""

    TYPES: dict[str, type[Formatter]] = {
        "json": JSONFormatter,
        "pretty": PrettyPrintFormatter,
        "text": TextFormatter,
        "webvtt": WebVTTFormatter,
        "srt": SRTFormatter,
    }

    class UnknownFormatterType(Exception):
        def __init__(self, formatter_type: str) -> None:
            known = ", ".join(FormatterLoader.TYPES)
            super().__init__(f"Unknown format {formatter_type!r}; formats: {known}.")

    def load(self, formatter_type: str = "pretty") -> Formatter:
        """Returns the formatter with this name."""
        if formatter_type not in self.TYPES:
            raise FormatterLoader.UnknownFormatterType(formatter_type)
        return self.TYPES[formatter_type]()
