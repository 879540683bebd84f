from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from os import PathLike
from typing import TYPE_CHECKING, Any, ClassVar, Literal, SupportsIndex, final, overload

from ._chunk import Chunk, Word
from ._video import Chapter, Language, VideoMetadata

if TYPE_CHECKING:
    import pandas

__all__ = [
    "Batch",
    "Connection",
    "Engine",
    "MemoryStore",
    "PageTransport",
    "PendingCall",
    "SearchParams",
    "Segment",
    "Segments",
    "SupplyRequest",
    "Transcript",
    "__version__",
    "_after_fork",
    "_after_fork_in_child",
    "_at_exit",
    "_before_fork",
    "_cases",
    "_check_call",
    "_content_digest",
    "_deliver_events",
    "_linked_video",
    "_list_address",
    "_mark_loop_thread",
    "_parse_raw_timedtext",
    "_run_case",
    "_search_address",
    "_verify_webhook",
]

__version__: str

@final
class Segment:
    """A text with its start and duration.

    `text` is unchanged from the supplier; `start`, `duration` and `end` are in seconds from the start of the video,
    with millisecond precision. `words` are those of the text with their times, if the source has them. Segments are
    immutable, compare by value, match `case Segment(text, start, duration)` and unpack like a tuple of these three.

    >>> from verbatim_transcripts import Segment
    >>> Segment("Hello there.", 1.5, 2.0).end
    3.5
    >>> text, start, duration = Segment("Hello there.", 1.5, 2.0)
    """
    __match_args__: ClassVar[tuple[Literal["text"], Literal["start"], Literal["duration"]]]
    _fields: ClassVar[tuple[Literal["text"], Literal["start"], Literal["duration"]]]
    def __new__(
        cls,
        text: str,
        start: float,
        duration: float = 0.0,
        words: Iterable[Word | tuple[str, float, float] | Mapping[str, Any]] | None = None,
    ) -> Segment: ...
    @property
    def text(self) -> str:
        """The text, unchanged from the supplier."""
    @property
    def start(self) -> float:
        """Start, in seconds from the start of the video."""
    @property
    def duration(self) -> float:
        """Duration, in seconds."""
    @property
    def words(self) -> list[Word]:
        """The words with their times: a list of `Word`, empty if the source has none."""
    @property
    def end(self) -> float:
        """End, in seconds from the start of the video."""
    def __eq__(self, value: object, /) -> bool: ...
    def __ne__(self, value: object, /) -> bool: ...
    def __hash__(self) -> int: ...
    def __len__(self) -> int: ...
    def __iter__(self) -> Iterator[Any]: ...
    def __getitem__(self, key: SupportsIndex | slice, /) -> Any: ...
    def _asdict(self) -> dict[str, Any]: ...
    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: Any) -> Any: ...

@final
class Segments(Sequence[Segment]):
    """The segments of a transcript in order of their start: a `collections.abc.Sequence` of `Segment`.

    Items are created on access, and a slice is a view. Iteration over all segments creates all objects, and the
    transcript keeps them for the next iteration.
    """
    @overload
    def __getitem__(self, key: SupportsIndex, /) -> Segment: ...
    @overload
    def __getitem__(self, key: slice, /) -> Segments: ...
    def __len__(self) -> int: ...
    def __iter__(self) -> Iterator[Segment]: ...
    def __reversed__(self) -> Iterator[Segment]: ...
    def __contains__(self, key: object, /) -> bool: ...
    def index(self, value: object, start: SupportsIndex = 0, stop: SupportsIndex | None = None) -> int:
        """The index of the first equal segment.

        Raises `ValueError` if there is none.
        """
    def count(self, value: object) -> int:
        """The number of equal segments."""
    def __eq__(self, value: object, /) -> bool: ...
    def __hash__(self) -> int: ...
    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: Any) -> Any: ...

@final
class Transcript(Sequence[Segment]):
    r"""The transcript of one video in one language.

    Transcripts are immutable and compare by their content. They are also sequences of their segments:
    `len(transcript)`, `transcript[0]`, `for segment in transcript`.

    >>> from verbatim_transcripts import Segment, Transcript
    >>> transcript = Transcript("https://youtu.be/dQw4w9WgXcQ", [Segment("Hello there.", 0, 1.5)], language="en")
    >>> transcript.text
    'Hello there.\n'
    >>> transcript.to_dicts()
    [{'text': 'Hello there.', 'start': 0.0, 'duration': 1.5}]
    """
    __match_args__: ClassVar[tuple[Literal["title"], Literal["language"], Literal["segments"]]]
    def __new__(
        cls,
        link: str,
        segments: Sequence[Segment],
        *,
        language: str = "und",
        kind: str = "human",
        title: str | None = None,
        author: str | None = None,
        duration: float | None = None,
        track_name: str | None = None,
        original: bool = False,
        source: str = "import",
        metadata: VideoMetadata | None = None,
        chapters: Iterable[Chapter | tuple[str, float]] | None = None,
    ) -> Transcript: ...
    @property
    def platform(self) -> str:
        """The platform: `YouTube`, `TikTok`, `Instagram` or `X`."""
    @property
    def video_id(self) -> str:
        """The id of the video on its platform."""
    @property
    def url(self) -> str:
        """The URL of the video."""
    @property
    def title(self) -> str | None:
        """The title of the video, or None if the supplier does not know it."""
    @property
    def author(self) -> str | None:
        """The publisher of the video, or None if the supplier does not know it."""
    @property
    def duration(self) -> float | None:
        """The length of the video in seconds, or None if the supplier does not know it."""
    @property
    def language(self) -> str:
        """The language of the transcript, as a BCP 47 tag."""
    @property
    def kind(self) -> str:
        """The kind of the track: `human`, `generated` (recognised from speech) or `translated` (by a machine)."""
    @property
    def is_generated(self) -> bool:
        """Whether the transcript was generated: recognised from speech, or translated by a machine."""
    @property
    def track_name(self) -> str | None:
        """The name of the track, or None if it has none besides its language."""
    @property
    def original(self) -> bool:
        """Whether the language is the spoken language, as far as the supplier knows."""
    @property
    def source(self) -> str:
        """The name of the supplier: `youtube-captions`, `speech-to-text`, …"""
    @property
    def from_cache(self) -> bool:
        """Whether the transcript was archived before the call."""
    @property
    def revision(self) -> int:
        """The version of the archived transcript: 1 for the first one; 0 if it does not come from an archive."""
    @property
    def metadata(self) -> VideoMetadata:
        """The metadata of the video: a `VideoMetadata`, with title, author and length; what is unknown is None."""
    @property
    def chapters(self) -> list[Chapter]:
        """The chapters of the video in order of their start: a list of `Chapter`, empty if none is known."""
    @property
    def languages(self) -> list[Language]:
        """The languages of the video, fetched or not, as far as known: a list of `Language`."""
    @property
    def segments(self) -> Segments:
        """The segments in order of their start: a lazy sequence, which creates its items on access."""
    @property
    def text(self) -> str:
        """The text as prose in paragraphs, without times."""
    def to_markdown(self) -> str:
        """The transcript as Markdown: title, author, and paragraphs with links to their start."""
    def to_srt(self) -> str:
        """The transcript as SRT subtitles."""
    def to_vtt(self) -> str:
        """The transcript as WebVTT subtitles."""
    def to_dicts(self, *, words: bool = True) -> list[dict[str, Any]]:
        """The segments as dictionaries with `text`, `start` and `duration` (seconds), which `Transcript.from_dicts` loads.

        A segment whose words have times also has `words`, a list of such dictionaries, unless `words` is False.
        """
    def to_dict(self) -> dict[str, Any]:
        """The transcript as a dictionary: the object of `to_json`."""
    def to_pandas(self) -> pandas.DataFrame:
        """The segments as a `pandas.DataFrame` with the columns `text`, `start` and `duration`.

        Raises `ImportError` without pandas: `pip install verbatim-transcripts[pandas]`.
        """
    def to_json(self) -> str:
        """The transcript as a JSON object, which `Transcript.from_json` loads."""
    def paragraphs(self) -> list[Chunk]:
        """The text in paragraphs: a list of `Chunk`. A paragraph ends at a pause, or at a sentence once it is long enough."""
    def chunks(
        self, *, seconds: float | None = None, tokens: int | None = None, overlap: float | None = None
    ) -> list[Chunk]:
        """The text in parts by `seconds`, or of about `tokens` of a language model: a list of `Chunk`.

        Segments are never split. The last one of a part begins less than `seconds` after the first. The last `overlap`
        seconds or tokens of a part, at most half of its size, are repeated in the next one. Tokens are estimated,
        rather too many.

        >>> from verbatim_transcripts import Segment, Transcript
        >>> segments = [Segment(f"Word {number}.", number * 10, 10) for number in range(5)]
        >>> [chunk.text for chunk in Transcript("dQw4w9WgXcQ", segments).chunks(seconds=30, overlap=10)]
        ['Word 0. Word 1. Word 2.', 'Word 2. Word 3. Word 4.']

        Raises `TypeError` unless one size is given, and `ValueError` for a size or an overlap out of range.
        """
    def pages(self, *, max_chars: int = 20_000) -> list[Chunk]:
        """The text in pages of at most `max_chars` characters, to read a long transcript in parts: a list of `Chunk`.

        Every segment is in one page. Segments are never split: a longer one is the only one of its page.

        Raises `ValueError` for a size of 0 or more than 1,000,000.
        """
    def save(self, path: str | PathLike[str]) -> None:
        """Writes the transcript to a file; `~` is the home folder. The suffix selects the format: `.txt`, `.md`,
        `.srt`, `.vtt` or `.json`.

        Raises `ValueError` for another suffix, and `OSError` if the file cannot be written.
        """
    @classmethod
    def from_dicts(
        cls,
        link: str,
        dicts: Iterable[Mapping[str, Any] | tuple[Any, ...] | Segment],
        *,
        language: str = "und",
        kind: str = "human",
        title: str | None = None,
        author: str | None = None,
        metadata: VideoMetadata | None = None,
        chapters: Iterable[Chapter | tuple[str, float]] | None = None,
    ) -> Transcript:
        """Creates a transcript from dictionaries with `text`, `start` and `duration` in seconds, as `to_dicts` and
        youtube-transcript-api return them, from tuples of these, or from segments. Dictionaries can have `words`,
        and `end` in place of `duration`.

        Raises `ValueError` if an item is none of these, or a time is out of range.
        """
    @classmethod
    def from_dict(cls, document: Mapping[str, Any]) -> Transcript:
        """Loads a transcript from the dictionary of `to_dict`.

        Raises `ValueError` for any other dictionary.
        """
    @classmethod
    def from_json(cls, json: str | bytes) -> Transcript:
        """Loads a transcript from the JSON of `to_json`.

        Raises `ValueError` for any other text.
        """
    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: Any) -> Any: ...
    def __len__(self) -> int: ...
    def __bool__(self) -> bool: ...
    def __iter__(self) -> Iterator[Segment]: ...
    @overload
    def __getitem__(self, key: SupportsIndex, /) -> Segment: ...
    @overload
    def __getitem__(self, key: slice, /) -> Segments: ...
    def __reversed__(self) -> Iterator[Segment]: ...
    def index(self, value: object, start: SupportsIndex = 0, stop: SupportsIndex | None = None) -> int:
        """The index of the first equal segment.

        Raises `ValueError` if there is none.
        """
    def count(self, value: object) -> int:
        """The number of equal segments."""
    def __eq__(self, value: object, /) -> bool: ...
    def __hash__(self) -> int: ...

@final
class SupplyRequest:
    """A request to a supplier written in Python: video, language and remaining time."""
    @property
    def platform(self) -> str:
        """The platform: `YouTube`, `TikTok`, `Instagram` or `X`."""
    @property
    def video_id(self) -> str:
        """The id of the video on its platform."""
    @property
    def url(self) -> str:
        """The URL of the video."""
    @property
    def lang(self) -> str | None:
        """The requested language as a BCP 47 tag; None for the default track: English, otherwise the spoken language."""
    @property
    def translated(self) -> bool:
        """Whether a machine translation into the language is accepted if the video has no other transcript in it."""
    @property
    def seconds(self) -> float:
        """Seconds until the deadline, measured at the start of the call."""
    @property
    def cancelled(self) -> bool:
        """Whether no caller waits any more. A long call polls it between its steps."""
    def stage(self, name: str, done: int = 0, of: int = 0) -> None:
        """Reports that a stage has reached `done` of `of`; `of` is 0 if unknown."""

@final
class PendingCall:
    def wait(self) -> Any: ...
    def __await__(self) -> Generator[Any, None, Any]: ...

@final
class Batch:
    def __new__(cls, max_wait: float | None) -> Batch: ...
    def start(self, number: int, pending: PendingCall) -> None: ...
    def next(self) -> PendingCall: ...
    def cancel(self) -> None: ...

@final
class SearchParams:
    def __new__(
        cls, query: str, language: str | None, platform: str | None, sort: str, limit: int
    ) -> SearchParams: ...

@final
class Connection:
    def __new__(
        cls,
        base_url: str,
        key: str | None,
        timeout: float,
        retries: int,
        ca_file: str | PathLike[str] | None,
    ) -> Connection: ...
    @property
    def is_closed(self) -> bool: ...
    def close(self) -> None: ...
    def use_key(self, key: str) -> None: ...
    def lookup(
        self,
        link: str,
        languages: str | Sequence[str] | None,
        src: str | None,
        batch: Batch | None = None,
    ) -> PendingCall: ...
    def get_text(
        self, link: str, format: str, languages: str | Sequence[str] | None, src: str | None
    ) -> PendingCall: ...
    def search(self, params: SearchParams, cursor: str | None) -> PendingCall: ...
    def create_key(self, label: str | None, email: str | None, entitlement: str | None) -> PendingCall: ...
    def key_status(self, entitlement: str | None) -> PendingCall: ...
    def register(self, email: str) -> PendingCall: ...
    def verify(self, token: str, confirmed: bool) -> PendingCall: ...
    def me(self) -> PendingCall: ...
    def rotate_key(self) -> PendingCall: ...
    def transcript(
        self,
        link: str,
        languages: str | Sequence[str] | None,
        idempotency_key: str | None,
        batch: Batch | None = None,
    ) -> PendingCall: ...
    def chat(
        self, link: str, message: str, history: Sequence[tuple[str, str]], idempotency_key: str | None
    ) -> PendingCall: ...
    def subscribe(self, plan: str, idempotency_key: str | None) -> PendingCall: ...
    def buy_credits(self, pack: str, idempotency_key: str | None) -> PendingCall: ...
    def start_job(self, request: str, idempotency_key: str | None) -> PendingCall: ...
    def job(self, id: str) -> PendingCall: ...
    def jobs(self, after: str | None, limit: int) -> PendingCall: ...
    def job_results(self, id: str, after: str | None, limit: int) -> PendingCall: ...
    def cancel_job(self, id: str) -> PendingCall: ...
    def job_deliveries(self, id: str) -> PendingCall: ...
    def webhook_secret(self) -> PendingCall: ...
    def rotate_webhook_secret(self) -> PendingCall: ...

@final
class Engine:
    def __new__(cls, keywords: dict[str, Any]) -> Engine: ...
    @property
    def is_closed(self) -> bool: ...
    def get(
        self,
        link: str,
        languages: str | Sequence[str] | None,
        translated: bool,
        fetch: bool,
        timeout: float | None,
        batch: Batch | None = None,
    ) -> PendingCall: ...
    def get_now(
        self,
        link: str,
        languages: str | Sequence[str] | None,
        translated: bool,
        fetch: bool,
        timeout: float | None,
    ) -> Transcript: ...
    def languages(self, link: str, fetch: bool, timeout: float | None) -> PendingCall: ...
    def refresh(self, link: str, language: str | None, translated: bool) -> PendingCall: ...
    def import_(
        self,
        link: str,
        captions: bytes,
        language: str | None,
        title: str | None,
        author: str | None,
        generated: bool,
        replace: bool,
    ) -> PendingCall: ...
    def search(self, query: str, language: str | None, limit: int) -> PendingCall: ...
    def search_videos(self, params: SearchParams, cursor: str | None) -> PendingCall: ...
    def video_page(
        self, address: str, since_ms: int | None, position: str | None, batch: Batch | None
    ) -> PendingCall: ...
    def archived(self, after: str | None, limit: int) -> PendingCall: ...
    def exports(self, after: str | None, limit: int) -> PendingCall: ...
    def withdrawals(self, after: str | None, limit: int) -> PendingCall: ...
    def unlisted_videos(self) -> PendingCall: ...
    def import_all(self, body: bytes, replace: bool) -> PendingCall: ...
    def delete(self, link: str) -> PendingCall: ...
    def stats(self) -> PendingCall: ...
    def grant(self, account: str, credits: int, id: str, memo: str) -> PendingCall: ...
    def connect(self, key: str | None) -> Connection: ...
    def close(self) -> PendingCall: ...

@final
class PageTransport:
    def __new__(cls, proxy: str | None, ca_file: str | PathLike[str] | None) -> PageTransport: ...
    def fetch(
        self, url: str, headers: Sequence[tuple[str, str]], json: str | None, until: str | None = None
    ) -> tuple[int, bytes, float | None]: ...

def _parse_raw_timedtext(body: bytes) -> tuple[list[str], list[float], list[float], list[int]] | None: ...

def _before_fork() -> None: ...
def _after_fork() -> None: ...
def _after_fork_in_child() -> None: ...
def _at_exit() -> None: ...
def _deliver_events() -> None: ...
def _mark_loop_thread() -> None: ...
def _check_call(
    languages: str | Sequence[str] | None, translated: bool, fetch: bool, timeout: float | None
) -> None: ...
def _linked_video(link: str) -> tuple[str, str] | None: ...
def _list_address(link: str, is_channel: bool, tab: str | None) -> str: ...
def _search_address(words: str) -> str: ...
def _verify_webhook(
    body: bytes, header: str | None, secrets: Sequence[str], tolerance: float
) -> None: ...

def _cases(port: str) -> list[str]: ...
def _content_digest(transcript: str) -> bytes: ...
def _run_case(port: str, name: str, store: Any) -> PendingCall: ...
@final
class MemoryStore:
    def __new__(cls, port: str) -> MemoryStore: ...
    def call(self, method: str, arguments: str) -> PendingCall: ...
