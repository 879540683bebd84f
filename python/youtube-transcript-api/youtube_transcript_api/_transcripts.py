"""Transcripts, listed and fetched."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from html import unescape
from typing import Any
from xml.etree import ElementTree

from verbatim._native import _plain_cues

from ._errors import (
    NoTranscriptFound,
    NotTranslatable,
    PoTokenRequired,
    TranslationLanguageNotAvailable,
    YouTubeDataUnparsable,
)
from ._transport import Transport

#: Tags that stay in the text where formatting is preserved.
KEPT_TAGS = ("strong", "em", "b", "i", "mark", "small", "del", "ins", "sub", "sup")
#: What looks like a tag; a lone < is text.
TAG = re.compile(r"</?[a-zA-Z][^<>]*>")
UNKEPT_TAG = re.compile(rf"</?(?!(?:{'|'.join(KEPT_TAGS)})\b)[a-zA-Z][^<>]*>", re.IGNORECASE)


@dataclass
class FetchedTranscriptSnippet:
    text: str
    #: When it is shown, in seconds from the video's beginning.
    start: float
    #: How long it is shown, in seconds; the next one may begin before that.
    duration: float


@dataclass
class FetchedTranscript:
    """A transcript, as a sequence of its snippets."""

    snippets: list[FetchedTranscriptSnippet]
    video_id: str
    language: str
    language_code: str
    is_generated: bool

    def __iter__(self) -> Iterator[FetchedTranscriptSnippet]:
        return iter(self.snippets)

    def __getitem__(self, index: Any) -> Any:
        return self.snippets[index]

    def __len__(self) -> int:
        return len(self.snippets)

    def to_raw_data(self) -> list[dict[str, Any]]:
        """The snippets as dictionaries with `text`, `start` and `duration`."""
        return [asdict(snippet) for snippet in self]


@dataclass
class _TranslationLanguage:
    language: str
    language_code: str


class Transcript:
    """A transcript that a video has, to be fetched."""

    def __init__(
        self,
        transport: Transport,
        video_id: str,
        url: str,
        language: str,
        language_code: str,
        is_generated: bool,
        translation_languages: list[_TranslationLanguage],
    ) -> None:
        self._transport = transport
        self.video_id = video_id
        self._url = url
        self.language = language
        self.language_code = language_code
        self.is_generated = is_generated
        self.translation_languages = translation_languages

    def fetch(self, preserve_formatting: bool = False) -> FetchedTranscript:
        """Fetches the words."""
        from ._fetcher import checked

        if "&exp=xpe" in self._url:
            raise PoTokenRequired(self.video_id)
        body = checked(self._transport.ask(self.video_id, self._url), self.video_id)
        try:
            snippets = parse(body, preserve_formatting)
        except (ElementTree.ParseError, ValueError):
            raise YouTubeDataUnparsable(self.video_id) from None
        return FetchedTranscript(
            snippets=snippets,
            video_id=self.video_id,
            language=self.language,
            language_code=self.language_code,
            is_generated=self.is_generated,
        )

    @property
    def is_translatable(self) -> bool:
        return len(self.translation_languages) > 0

    def translate(self, language_code: str) -> Transcript:
        """The same, translated by YouTube."""
        if not self.is_translatable:
            raise NotTranslatable(self.video_id)
        for known in self.translation_languages:
            if known.language_code == language_code:
                url = f"{self._url}&tlang={language_code}"
                return Transcript(self._transport, self.video_id, url, known.language, language_code, True, [])
        raise TranslationLanguageNotAvailable(self.video_id)

    def __str__(self) -> str:
        mark = "[TRANSLATABLE]" if self.is_translatable else ""
        return f'{self.language_code} ("{self.language}"){mark}'


def parse(body: bytes, preserve_formatting: bool = False) -> list[FetchedTranscriptSnippet]:
    """The cues of YouTube's XML; `ParseError` where it is none, as for an empty body."""
    tags = UNKEPT_TAG if preserve_formatting else TAG

    def shown(text: str) -> str:
        text = unescape(text)
        return tags.sub("", text) if "<" in text else text

    # The one form that YouTube writes is read in a tenth of the time; whatever differs from it is Python's to judge.
    plain = _plain_cues(body)
    if plain is not None:
        texts, starts, durations, marked = plain
        for place in marked:
            texts[place] = shown(texts[place])
        return list(map(FetchedTranscriptSnippet, texts, starts, durations))
    return [
        FetchedTranscriptSnippet(shown(cue.text), float(cue.attrib["start"]), float(cue.attrib.get("dur", "0.0")))
        for cue in ElementTree.fromstring(body)
        if cue.text
    ]


class TranscriptList:
    """The transcripts that a video has: those that people made, then those that were recognised."""

    def __init__(
        self,
        video_id: str,
        manually_created_transcripts: dict[str, Transcript],
        generated_transcripts: dict[str, Transcript],
        translation_languages: list[_TranslationLanguage],
    ) -> None:
        self.video_id = video_id
        self._manually_created_transcripts = manually_created_transcripts
        self._generated_transcripts = generated_transcripts
        self._translation_languages = translation_languages

    @staticmethod
    def build(http_client: Transport, video_id: str, captions_json: dict[str, Any]) -> TranscriptList:
        """Reads the player's list of tracks."""
        languages = [
            _TranslationLanguage(_name(language["languageName"]), language["languageCode"])
            for language in captions_json.get("translationLanguages", [])
        ]
        manual: dict[str, Transcript] = {}
        generated: dict[str, Transcript] = {}
        for track in captions_json["captionTracks"]:
            is_generated = track.get("kind", "") == "asr"
            code = track["languageCode"]
            (generated if is_generated else manual)[code] = Transcript(
                http_client,
                video_id,
                track["baseUrl"].replace("&fmt=srv3", ""),
                _name(track["name"]),
                code,
                is_generated,
                languages if track.get("isTranslatable", False) else [],
            )
        return TranscriptList(video_id, manual, generated, languages)

    def __iter__(self) -> Iterator[Transcript]:
        yield from self._manually_created_transcripts.values()
        yield from self._generated_transcripts.values()

    def find_transcript(self, language_codes: Iterable[str]) -> Transcript:
        """The first of these languages that there is, rather as people made it than recognised."""
        return self._find(language_codes, self._manually_created_transcripts, self._generated_transcripts)

    def find_generated_transcript(self, language_codes: Iterable[str]) -> Transcript:
        """The same, of those that were recognised."""
        return self._find(language_codes, self._generated_transcripts)

    def find_manually_created_transcript(self, language_codes: Iterable[str]) -> Transcript:
        """The same, of those that people made."""
        return self._find(language_codes, self._manually_created_transcripts)

    def _find(self, language_codes: Iterable[str], *those: dict[str, Transcript]) -> Transcript:
        codes = list(language_codes)
        for code in codes:
            for transcripts in those:
                if code in transcripts:
                    return transcripts[code]
        raise NoTranscriptFound(self.video_id, codes, self)

    def __str__(self) -> str:
        def lines(items: Iterable[str]) -> str:
            return "\n".join(f" - {item}" for item in items) or "None"

        translations = (f'{known.language_code} ("{known.language}")' for known in self._translation_languages)
        return (
            f"The video {self.video_id} has transcripts in these languages:\n\n"
            f"(MANUALLY CREATED)\n{lines(map(str, self._manually_created_transcripts.values()))}\n\n"
            f"(GENERATED)\n{lines(map(str, self._generated_transcripts.values()))}\n\n"
            f"(TRANSLATION LANGUAGES)\n{lines(translations)}"
        )


def _name(name: dict[str, Any]) -> str:
    """A name, in either of the forms that players have."""
    if "runs" in name:
        return "".join(run.get("text", "") for run in name["runs"])
    return str(name.get("simpleText", ""))
