"""Transcripts and lists of transcripts."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from html import unescape
from typing import Any
from xml.etree import ElementTree
from xml.parsers import expat

from verbatim_transcripts._native import _parse_raw_timedtext

from ._errors import (
    CaptionsUnparsable,
    NoTranscriptFound,
    NotTranslatable,
    PoTokenRequired,
    TranslationLanguageNotAvailable,
    YouTubeDataUnparsable,
)
from ._transport import as_transport

#: Tags that are kept with `preserve_formatting`.
KEPT_TAGS = ("strong", "em", "b", "i", "mark", "small", "del", "ins", "sub", "sup")
#: Tags; a < that starts none is text.
TAG = re.compile(r"</?[a-zA-Z][^<>]*>")
UNKEPT_TAG = re.compile(rf"</?(?!(?:{'|'.join(KEPT_TAGS)})\b)[a-zA-Z][^<>]*>", re.IGNORECASE)


@dataclass
class FetchedTranscriptSnippet:
    text: str
    #: Start, in seconds from the start of the video.
    start: float
    #: Duration on screen, in seconds; the next snippet may start earlier.
    duration: float


@dataclass
class FetchedTranscript:
    """A transcript: a sequence of snippets."""

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
        """Returns the snippets as dictionaries with `text`, `start` and `duration`."""
        return [asdict(snippet) for snippet in self]


@dataclass
class _TranslationLanguage:
    language: str
    language_code: str


class Transcript:
    """An available transcript of a video; `fetch` loads it."""

    def __init__(
        self,
        http_client: Any,
        video_id: str,
        url: str,
        language: str,
        language_code: str,
        is_generated: bool,
        translation_languages: list[_TranslationLanguage],
    ) -> None:
        self._transport = as_transport(http_client)
        self.video_id = video_id
        self._url = url
        self.language = language
        self.language_code = language_code
        self.is_generated = is_generated
        self.translation_languages = translation_languages

    @property
    def _http_client(self) -> Any:
        """The session of the caller, or else one that sends all later requests; programs use it with `_url`."""
        return self._transport.http_client

    @_http_client.setter
    def _http_client(self, http_client: Any) -> None:
        self._transport = as_transport(http_client)

    @property
    def _translation_languages_dict(self) -> dict[str, str]:
        return {language.language_code: language.language for language in self.translation_languages}

    def fetch(self, preserve_formatting: bool = False) -> FetchedTranscript:
        """Fetches the transcript."""
        from ._fetcher import check_response

        if "&exp=xpe" in self._url:
            raise PoTokenRequired(self.video_id)
        body = check_response(self._transport.request(self.video_id, self._url), self.video_id)
        try:
            snippets = parse(body, preserve_formatting)
        except ElementTree.ParseError as error:
            raise CaptionsUnparsable(self.video_id, error) from None
        except ValueError:
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
        """Returns the transcript in a language into which YouTube translates it."""
        if not self.is_translatable:
            raise NotTranslatable(self.video_id)
        for language in self.translation_languages:
            if language.language_code == language_code:
                url = f"{self._url}&tlang={language_code}"
                return Transcript(self._transport, self.video_id, url, language.language, language_code, True, [])
        raise TranslationLanguageNotAvailable(self.video_id)

    def __str__(self) -> str:
        mark = "[TRANSLATABLE]" if self.is_translatable else ""
        return f'{self.language_code} ("{self.language}"){mark}'


def parse(body: bytes, preserve_formatting: bool = False) -> list[FetchedTranscriptSnippet]:
    """Parses the cues of YouTube's XML; raises `ParseError` for any other body, also an empty one."""
    tags = UNKEPT_TAG if preserve_formatting else TAG

    def clean(text: str) -> str:
        text = unescape(text)
        return tags.sub("", text) if "<" in text else text

    # The native parser reads the one form that YouTube writes, in a tenth of the time of ElementTree, which reads all
    # others.
    plain = _parse_raw_timedtext(body)
    if plain is not None:
        texts, starts, durations, marked = plain
        for index in marked:
            texts[index] = clean(texts[index])
        return list(map(FetchedTranscriptSnippet, texts, starts, durations))
    _refuse_entities(body)
    return [
        FetchedTranscriptSnippet(clean(cue.text), float(cue.attrib["start"]), float(cue.attrib.get("dur", "0.0")))
        for cue in ElementTree.fromstring(body)
        if cue.text
    ]


def _refuse_entities(body: bytes) -> None:
    """Raises `ParseError` for XML that declares entities, which ElementTree expands up to the hundredfold."""

    def refuse(name: str, *_: object) -> None:
        error = ElementTree.ParseError(f"the entity {name!r} is declared: captions have none")
        error.code = expat.errors.codes[expat.errors.XML_ERROR_ABORTED]
        error.position = (parser.CurrentLineNumber, parser.CurrentColumnNumber)
        raise error

    parser = expat.ParserCreate()
    parser.EntityDeclHandler = refuse
    try:
        parser.Parse(body, True)
    except expat.ExpatError:
        pass  # ElementTree raises the same error.


class _TranscriptParser:
    """Parses captions that a program has fetched; programs import it."""

    def __init__(self, preserve_formatting: bool = False) -> None:
        self._preserve_formatting = preserve_formatting

    def parse(self, raw_data: str) -> list[FetchedTranscriptSnippet]:
        return parse(raw_data.encode(), self._preserve_formatting)


class TranscriptList:
    """The transcripts of a video: manually created ones, then generated ones."""

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
    def build(http_client: Any, video_id: str, captions_json: dict[str, Any]) -> TranscriptList:
        """Builds the list from the tracks of a player response."""
        languages = [
            _TranslationLanguage(_name(language["languageName"]), language["languageCode"])
            for language in captions_json.get("translationLanguages", [])
        ]
        transport = as_transport(http_client)
        manual: dict[str, Transcript] = {}
        generated: dict[str, Transcript] = {}
        for track in captions_json["captionTracks"]:
            is_generated = track.get("kind", "") == "asr"
            code = track["languageCode"]
            (generated if is_generated else manual)[code] = Transcript(
                transport,
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
        """Returns the transcript in the first available language, manually created or otherwise generated."""
        return self._find(language_codes, self._manually_created_transcripts, self._generated_transcripts)

    def find_generated_transcript(self, language_codes: Iterable[str]) -> Transcript:
        """Returns the generated transcript in the first available language."""
        return self._find(language_codes, self._generated_transcripts)

    def find_manually_created_transcript(self, language_codes: Iterable[str]) -> Transcript:
        """Returns the manually created transcript in the first available language."""
        return self._find(language_codes, self._manually_created_transcripts)

    def _find(self, language_codes: Iterable[str], *groups: dict[str, Transcript]) -> Transcript:
        codes = language_codes if isinstance(language_codes, (list, tuple)) else list(language_codes)
        for code in codes:
            for transcripts in groups:
                if code in transcripts:
                    return transcripts[code]
        raise NoTranscriptFound(self.video_id, codes, self)

    def __str__(self) -> str:
        def lines(items: Iterable[str]) -> str:
            return "\n".join(f" - {item}" for item in items) or "None"

        translations = (f'{language.language_code} ("{language.language}")' for language in self._translation_languages)
        return (
            f"The video {self.video_id} has transcripts in these languages:\n\n"
            f"(MANUALLY CREATED)\n{lines(map(str, self._manually_created_transcripts.values()))}\n\n"
            f"(GENERATED)\n{lines(map(str, self._generated_transcripts.values()))}\n\n"
            f"(TRANSLATION LANGUAGES)\n{lines(translations)}"
        )


def _name(name: dict[str, Any]) -> str:
    """Returns a name, in either format of player responses."""
    if "runs" in name:
        return "".join(run.get("text", "") for run in name["runs"])
    return str(name.get("simpleText", ""))


def __getattr__(name: str) -> Any:
    """Returns the class that programs import from here; its module imports this one."""
    if name == "TranscriptListFetcher":
        from ._fetcher import TranscriptListFetcher

        return TranscriptListFetcher
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
