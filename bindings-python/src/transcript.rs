//! A transcript as a Python object.

mod content;

use std::{
    hash::{DefaultHasher, Hash as _, Hasher as _},
    path::PathBuf,
    sync::{Arc, OnceLock},
};

use pyo3::{
    exceptions::PyValueError,
    prelude::*,
    types::{PyBytes, PyList, PyString, PyType},
};
use transcript_core::{
    captions,
    transcript::{self, LanguageTag, TrackInfo},
};
use verbatim::ArchivedTranscript;

use crate::{
    data,
    exceptions::core_exception,
    metadata, options,
    segment::{Segment, SegmentStore, Segments, SegmentsIterator, millis, seconds},
};

/// The transcript of one video in one language.
///
/// Transcripts are immutable and compare by their content. They are also sequences of their segments:
/// `len(transcript)`, `transcript[0]`, `for segment in transcript`.
///
/// >>> from verbatim_transcripts import Segment, Transcript
/// >>> transcript = Transcript("https://youtu.be/dQw4w9WgXcQ", [Segment("Hello there.", 0, 1.5)], language="en")
/// >>> transcript.text
/// 'Hello there.\n'
/// >>> transcript.to_dicts()
/// [{'text': 'Hello there.', 'start': 0.0, 'duration': 1.5}]
#[pyclass(frozen, module = "verbatim_transcripts._native")]
pub(crate) struct Transcript {
    store: OnceLock<Arc<SegmentStore>>,
    /// The archived form, decoded on first access; `None` if the segments exist already.
    archived: Option<ArchivedTranscript>,
    from_cache: bool,
    revision: u32,
}

#[pymethods]
impl Transcript {
    #[classattr]
    fn __match_args__() -> (&'static str, &'static str, &'static str) {
        ("title", "language", "segments")
    }

    #[new]
    #[pyo3(signature = (link, segments, *, language="und", kind="human", title=None, author=None, duration=None, track_name=None, original=false, source="import", metadata=None, chapters=None))]
    #[expect(clippy::too_many_arguments, reason = "keyword arguments in Python")]
    fn new(
        py: Python<'_>,
        link: &str,
        segments: Vec<Bound<'_, Segment>>,
        language: &str,
        kind: &str,
        title: Option<String>,
        author: Option<String>,
        #[pyo3(from_py_with = options::extract::<Option<f64>>)] duration: Option<f64>,
        track_name: Option<String>,
        original: bool,
        source: &str,
        metadata: Option<&Bound<'_, PyAny>>,
        chapters: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Self> {
        let language = LanguageTag::parse(language).map_err(|error| core_exception(py, &error))?;
        let transcript = transcript::Transcript {
            video: data::video(py, link)?,
            title,
            author,
            duration_ms: duration.map(|duration| millis(duration, "duration")).transpose()?,
            track: TrackInfo { language, kind: data::kind(kind)?, name: track_name, original },
            source: source.to_owned(),
            segments: segments.iter().map(|segment| segment.get().to_core(py)).collect::<PyResult<_>>()?,
        };
        Self::checked(py, transcript, metadata, chapters)
    }

    /// The platform: `YouTube`, `TikTok`, `Instagram` or `X`.
    #[getter]
    fn platform(&self, py: Python<'_>) -> PyResult<&'static str> {
        Ok(self.inner(py)?.video.platform().name())
    }

    /// The id of the video on its platform.
    #[getter]
    fn video_id(&self, py: Python<'_>) -> PyResult<&str> {
        Ok(self.inner(py)?.video.id())
    }

    /// The URL of the video.
    #[getter]
    fn url(&self, py: Python<'_>) -> PyResult<String> {
        Ok(self.inner(py)?.video.address())
    }

    /// The title of the video, or None if the supplier does not know it.
    #[getter]
    fn title(&self, py: Python<'_>) -> PyResult<Option<&str>> {
        Ok(self.inner(py)?.title.as_deref())
    }

    /// The publisher of the video, or None if the supplier does not know it.
    #[getter]
    fn author(&self, py: Python<'_>) -> PyResult<Option<&str>> {
        Ok(self.inner(py)?.author.as_deref())
    }

    /// The length of the video in seconds, or None if the supplier does not know it.
    #[getter]
    fn duration(&self, py: Python<'_>) -> PyResult<Option<f64>> {
        Ok(self.inner(py)?.duration_ms.map(seconds))
    }

    /// The language of the transcript, as a BCP 47 tag.
    #[getter]
    fn language(&self, py: Python<'_>) -> PyResult<&str> {
        Ok(self.inner(py)?.track.language.as_str())
    }

    /// The kind of the track: `human`, `generated` (recognised from speech) or `translated` (by a machine).
    #[getter]
    fn kind(&self, py: Python<'_>) -> PyResult<&'static str> {
        Ok(self.inner(py)?.track.kind.as_str())
    }

    /// Whether the transcript was generated: recognised from speech, or translated by a machine.
    #[getter]
    fn is_generated(&self, py: Python<'_>) -> PyResult<bool> {
        Ok(self.inner(py)?.track.is_generated())
    }

    /// The name of the track, or None if it has none besides its language.
    #[getter]
    fn track_name(&self, py: Python<'_>) -> PyResult<Option<&str>> {
        Ok(self.inner(py)?.track.name.as_deref())
    }

    /// Whether the language is the spoken language, as far as the supplier knows.
    #[getter]
    fn original(&self, py: Python<'_>) -> PyResult<bool> {
        Ok(self.inner(py)?.track.original)
    }

    /// The name of the supplier: `youtube-captions`, `speech-to-text`, …
    #[getter]
    fn source(&self, py: Python<'_>) -> PyResult<&str> {
        Ok(&self.inner(py)?.source)
    }

    /// Whether the transcript was archived before the call.
    #[getter]
    #[expect(clippy::wrong_self_convention, reason = "a property with the name of the wire field")]
    fn from_cache(&self) -> bool {
        self.from_cache
    }

    /// The version of the archived transcript: 1 for the first one; 0 if it does not come from an archive.
    #[getter]
    fn revision(&self) -> u32 {
        self.revision
    }

    /// The metadata of the video: a `VideoMetadata`, with title, author and length; what is unknown is None.
    #[getter]
    fn metadata<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        metadata::metadata_object(py, self.inner(py)?, self.details(py)?)
    }

    /// The chapters of the video in order of their start: a list of `Chapter`, empty if none is known.
    #[getter]
    fn chapters<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        metadata::chapter_list(py, self.details(py)?)
    }

    /// The languages of the video, fetched or not, as far as known: a list of `Language`.
    #[getter]
    fn languages<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        metadata::language_list(py, self.inner(py)?, self.details(py)?)
    }

    /// The segments in order of their start: a lazy sequence, which creates its items on access.
    #[getter]
    fn segments(&self, py: Python<'_>) -> PyResult<Segments> {
        Ok(Segments::all(Arc::clone(self.store(py)?)))
    }

    /// The text as prose in paragraphs, without times.
    #[getter]
    fn text(&self, py: Python<'_>) -> PyResult<String> {
        let inner = self.inner(py)?;
        Ok(py.detach(|| transcript::prose(&inner.segments)))
    }

    /// The transcript as Markdown: title, author, and paragraphs with links to their start.
    fn to_markdown(&self, py: Python<'_>) -> PyResult<String> {
        let inner = self.inner(py)?;
        Ok(py.detach(|| transcript::markdown(inner)))
    }

    /// The transcript as SRT subtitles.
    fn to_srt(&self, py: Python<'_>) -> PyResult<String> {
        let inner = self.inner(py)?;
        Ok(py.detach(|| captions::write_srt(&inner.segments)))
    }

    /// The transcript as WebVTT subtitles.
    fn to_vtt(&self, py: Python<'_>) -> PyResult<String> {
        let inner = self.inner(py)?;
        Ok(py.detach(|| captions::write_webvtt(&inner.segments)))
    }

    /// The segments as dictionaries with `text`, `start` and `duration` (seconds), which `Transcript.from_dicts` loads.
    ///
    /// A segment whose words have times also has `words`, a list of such dictionaries, unless `words` is False.
    #[pyo3(signature = (*, words=true))]
    fn to_dicts<'py>(&self, py: Python<'py>, words: bool) -> PyResult<Bound<'py, PyList>> {
        data::dicts(py, &self.inner(py)?.segments, words)
    }

    /// The transcript as a dictionary: the object of `to_json`.
    fn to_dict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        py.import("json")?.call_method1("loads", (self.to_json(py)?,))
    }

    /// The segments as a `pandas.DataFrame` with the columns `text`, `start` and `duration`.
    ///
    /// Raises `ImportError` without pandas: `pip install verbatim-transcripts[pandas]`.
    fn to_pandas<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        data::to_pandas(py, &self.inner(py)?.segments)
    }

    /// The text in paragraphs: a list of `Chunk`. A paragraph ends at a pause, or at a sentence once it is long enough.
    fn paragraphs<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let store = self.store(py)?;
        let paragraphs = py.detach(|| transcript::paragraphs(&store.transcript.segments));
        data::chunk_list(py, store, paragraphs)
    }

    /// The text in parts by `seconds`, or of about `tokens` of a language model: a list of `Chunk`.
    ///
    /// Segments are never split. The last one of a part begins less than `seconds` after the first. The last `overlap`
    /// seconds or tokens of a part, at most half of its size, are repeated in the next one. Tokens are estimated,
    /// rather too many.
    ///
    /// >>> from verbatim_transcripts import Segment, Transcript
    /// >>> segments = [Segment(f"Word {number}.", number * 10, 10) for number in range(5)]
    /// >>> [chunk.text for chunk in Transcript("dQw4w9WgXcQ", segments).chunks(seconds=30, overlap=10)]
    /// ['Word 0. Word 1. Word 2.', 'Word 2. Word 3. Word 4.']
    ///
    /// Raises `TypeError` unless one size is given, and `ValueError` for a size or an overlap out of range.
    #[pyo3(signature = (*, seconds=None, tokens=None, overlap=None))]
    fn chunks<'py>(
        &self,
        py: Python<'py>,
        #[pyo3(from_py_with = options::extract::<Option<f64>>)] seconds: Option<f64>,
        #[pyo3(from_py_with = options::extract::<Option<u64>>)] tokens: Option<u64>,
        #[pyo3(from_py_with = options::extract::<Option<f64>>)] overlap: Option<f64>,
    ) -> PyResult<Bound<'py, PyList>> {
        let options = data::chunk_options(seconds, tokens, overlap.unwrap_or_default())?;
        let store = self.store(py)?;
        let chunks = data::chunks(py, &store.transcript.segments, &store.details.metadata.chapters, options)?;
        data::chunk_list(py, store, chunks)
    }

    /// The text in pages of at most `max_chars` characters, to read a long transcript in parts: a list of `Chunk`.
    ///
    /// Every segment is in one page. Segments are never split: a longer one is the only one of its page.
    ///
    /// Raises `ValueError` for a size of 0 or more than 1,000,000.
    #[pyo3(signature = (*, max_chars=20_000))]
    fn pages<'py>(
        &self,
        py: Python<'py>,
        #[pyo3(from_py_with = options::extract::<u32>)] max_chars: u32,
    ) -> PyResult<Bound<'py, PyList>> {
        data::pages(py, self.store(py)?, max_chars)
    }

    /// Writes the transcript to a file; `~` is the home folder. The suffix selects the format: `.txt`, `.md`,
    /// `.srt`, `.vtt` or `.json`.
    ///
    /// Raises `ValueError` for another suffix, and `OSError` if the file cannot be written.
    fn save(
        &self,
        py: Python<'_>,
        #[pyo3(from_py_with = options::expand_user)] path: PathBuf,
    ) -> PyResult<()> {
        let text = match data::suffix(&path).as_str() {
            "txt" => self.text(py)?,
            "md" => self.to_markdown(py)?,
            "srt" => self.to_srt(py)?,
            "vtt" => self.to_vtt(py)?,
            "json" => self.to_json(py)? + "\n",
            _ => return Err(data::unknown_suffix(&path)),
        };
        data::write_file(py, &path, &text)
    }

    /// The transcript as a JSON object, which `Transcript.from_json` loads.
    fn to_json(&self, py: Python<'_>) -> PyResult<String> {
        let document = self.document(py)?;
        let json = py.detach(|| serde_json::to_string(&document));
        json.map_err(|error| PyValueError::new_err(error.to_string()))
    }

    /// Creates a transcript from dictionaries with `text`, `start` and `duration` in seconds, as `to_dicts` and
    /// youtube-transcript-api return them, from tuples of these, or from segments. Dictionaries can have `words`,
    /// and `end` in place of `duration`.
    ///
    /// Raises `ValueError` if an item is none of these, or a time is out of range.
    #[classmethod]
    #[pyo3(signature = (link, dicts, *, language="und", kind="human", title=None, author=None, metadata=None, chapters=None))]
    #[expect(clippy::too_many_arguments, reason = "keyword arguments in Python")]
    fn from_dicts(
        _: &Bound<'_, PyType>,
        py: Python<'_>,
        link: &str,
        dicts: &Bound<'_, PyAny>,
        language: &str,
        kind: &str,
        title: Option<String>,
        author: Option<String>,
        metadata: Option<&Bound<'_, PyAny>>,
        chapters: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Self> {
        let language = LanguageTag::parse(language).map_err(|error| core_exception(py, &error))?;
        let transcript = transcript::Transcript {
            video: data::video(py, link)?,
            title,
            author,
            duration_ms: None,
            track: TrackInfo::new(language, data::kind(kind)?),
            source: "import".to_owned(),
            segments: data::read_dicts(dicts)?,
        };
        Self::checked(py, transcript, metadata, chapters)
    }

    /// Loads a transcript from the dictionary of `to_dict`.
    ///
    /// Raises `ValueError` for any other dictionary.
    #[classmethod]
    fn from_dict(class: &Bound<'_, PyType>, py: Python<'_>, document: &Bound<'_, PyAny>) -> PyResult<Self> {
        Self::from_json(class, py, &py.import("json")?.call_method1("dumps", (document,))?)
    }

    /// Loads a transcript from the JSON of `to_json`.
    ///
    /// Raises `ValueError` for any other text.
    #[classmethod]
    fn from_json(_: &Bound<'_, PyType>, py: Python<'_>, json: &Bound<'_, PyAny>) -> PyResult<Self> {
        let bytes = match json.cast::<PyString>() {
            Ok(text) => text.to_str()?.as_bytes().to_vec(),
            Err(_) => json.extract::<Vec<u8>>()?,
        };
        py.detach(|| Self::parse_document(&bytes))
            .map_err(|error| PyValueError::new_err(format!("not a transcript: {error}")))
    }

    /// Schema of pydantic: the object of `to_dict`. A web framework can therefore return a transcript.
    #[classmethod]
    fn __get_pydantic_core_schema__<'py>(
        class: &Bound<'py, PyType>,
        source: &Bound<'py, PyAny>,
        handler: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let _ = (source, handler);
        class.py().import("verbatim_transcripts._pydantic")?.call_method1("transcript_schema", (class,))
    }

    fn __len__(&self, py: Python<'_>) -> PyResult<usize> {
        Ok(self.inner(py)?.segments.len())
    }

    fn __bool__(&self) -> bool {
        true
    }

    fn __getitem__<'py>(&self, py: Python<'py>, key: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        self.segments(py)?.__getitem__(py, key)
    }

    fn __iter__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.segments(py)?.__iter__(py)
    }

    fn __reversed__(&self, py: Python<'_>) -> PyResult<SegmentsIterator> {
        Ok(self.segments(py)?.__reversed__())
    }

    /// The index of the first equal segment.
    ///
    /// Raises `ValueError` if there is none.
    #[pyo3(signature = (value, start=0, stop=None))]
    fn index(
        &self,
        py: Python<'_>,
        value: &Bound<'_, PyAny>,
        start: isize,
        stop: Option<isize>,
    ) -> PyResult<usize> {
        self.segments(py)?.index(value, start, stop)
    }

    /// The number of equal segments.
    fn count(&self, py: Python<'_>, value: &Bound<'_, PyAny>) -> PyResult<usize> {
        Ok(self.segments(py)?.count(value))
    }

    fn __eq__(&self, py: Python<'_>, other: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        match other.cast::<Self>() {
            Ok(other) => {
                let is_same = self.inner(py)? == other.get().inner(py)?;
                Ok(is_same.into_pyobject(py)?.to_owned().into_any().unbind())
            }
            Err(_) => Ok(py.NotImplemented()),
        }
    }

    fn __hash__(&self, py: Python<'_>) -> PyResult<u64> {
        let inner = self.inner(py)?;
        let mut hasher = DefaultHasher::new();
        (inner.video.id(), inner.track.language.as_str(), inner.segments.len()).hash(&mut hasher);
        inner.segments.first().hash(&mut hasher);
        Ok(hasher.finish())
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        let inner = self.inner(py)?;
        let title = match &inner.title {
            Some(title) => format!(" {}", PyString::new(py, title).repr()?.to_str()?),
            None => String::new(),
        };
        let (platform, video) = (inner.video.platform().name(), inner.video.id());
        let (language, count) = (&inner.track.language, inner.segments.len());
        Ok(format!("<Transcript {platform} {video}{title} {language}, {count} segments>"))
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<(Bound<'py, PyAny>, (Bound<'py, PyBytes>,))> {
        let json = serde_json::to_vec(&slf.get().document(slf.py())?);
        let json = json.map_err(|error| PyValueError::new_err(error.to_string()))?;
        Ok((slf.get_type().getattr("from_json")?, (PyBytes::new(slf.py(), &json),)))
    }
}
