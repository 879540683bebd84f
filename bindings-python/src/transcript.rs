//! A transcript as Python sees it.

use std::{
    hash::{DefaultHasher, Hash as _, Hasher as _},
    sync::{Arc, OnceLock},
};

use pyo3::{
    exceptions::{PyRuntimeError, PyValueError},
    prelude::*,
    types::{PyBytes, PyList, PyString, PyType},
};
use transcript_core::{
    archive::StoredTranscript,
    transcript::{self, LanguageTag, TrackInfo, TrackKind},
    video::{VideoId, VideoLink},
};
use verbatim::Shelved;

use crate::{
    document::Document,
    fault::of_core,
    segment::{Segment, Segments, Words, dicts, millis, seconds},
};

/// The words of one video in one language, with the time of each.
///
/// Transcripts are immutable and compare by their content. They are sequences of their segments too: `len(transcript)`,
/// `transcript[0]`, `for segment in transcript`.
///
/// >>> from verbatim import Segment, Transcript
/// >>> transcript = Transcript("https://youtu.be/dQw4w9WgXcQ", [Segment("Hello there.", 0, 1.5)], language="en")
/// >>> transcript.text
/// 'Hello there.\n'
/// >>> transcript.to_dicts()
/// [{'text': 'Hello there.', 'start': 0.0, 'duration': 1.5}]
#[pyclass(frozen, module = "verbatim._native")]
pub(crate) struct Transcript {
    words: OnceLock<Arc<Words>>,
    /// Whence its words come once somebody looks at them; none: they are there.
    archived: Option<Shelved>,
    from_cache: bool,
    revision: u32,
}

impl Transcript {
    pub(crate) fn of(stored: &StoredTranscript, from_cache: bool) -> Self {
        Self::made(Arc::clone(&stored.transcript), from_cache, stored.revision)
    }

    pub(crate) fn plain(transcript: transcript::Transcript, from_cache: bool) -> Self {
        Self::made(Arc::new(transcript), from_cache, 0)
    }

    /// What is archived, unread until somebody looks at it.
    pub(crate) fn archived(archived: Shelved) -> Self {
        let revision = archived.revision();
        Self { words: OnceLock::new(), archived: Some(archived), from_cache: true, revision }
    }

    fn made(transcript: Arc<transcript::Transcript>, from_cache: bool, revision: u32) -> Self {
        let words = Arc::new(Words::new(transcript)).into();
        Self { words, archived: None, from_cache, revision }
    }

    fn words(&self, py: Python<'_>) -> PyResult<&Arc<Words>> {
        if let Some(words) = self.words.get() {
            return Ok(words);
        }
        let read = self.archived.as_ref().map(|archived| py.detach(|| archived.read()));
        let read = read.transpose().map_err(|error| of_core(py, &error))?;
        let stored = read.ok_or_else(|| PyRuntimeError::new_err("this transcript has no words"))?;
        // Whoever looks at the same time has found the same.
        Ok(self.words.get_or_init(|| Arc::new(Words::new(Arc::clone(&stored.transcript)))))
    }

    /// The transcript itself.
    ///
    /// # Errors
    /// `StorageError` when it is archived, was not read yet, and is damaged.
    pub(crate) fn inner(&self, py: Python<'_>) -> PyResult<&transcript::Transcript> {
        Ok(&self.words(py)?.transcript)
    }

    /// The same as JSON.
    fn document(&self, py: Python<'_>) -> PyResult<Document> {
        Ok(Document::of(self.inner(py)?, self.from_cache, self.revision))
    }

    fn restored(json: &[u8]) -> Result<Self, String> {
        let document: Document = serde_json::from_slice(json).map_err(|error| error.to_string())?;
        let (from_cache, revision) = (document.from_cache, document.revision);
        let transcript = document.into_transcript()?;
        transcript.check().map_err(|error| error.to_string())?;
        Ok(Self::made(Arc::new(transcript), from_cache, revision))
    }
}

/// The kind of a track by its name.
pub(crate) fn kind(name: &str) -> PyResult<TrackKind> {
    TrackKind::from_name(name).ok_or_else(|| {
        PyValueError::new_err(format!("kind must be 'human', 'generated' or 'translated', not {name:?}"))
    })
}

/// The video that a link names; a short link must be followed first.
pub(crate) fn video(py: Python<'_>, link: &str) -> PyResult<VideoId> {
    match VideoLink::parse(link) {
        Ok(VideoLink::Video(video)) => Ok(video),
        Ok(VideoLink::Short(_)) => Err(PyValueError::new_err("this is a short link: give the video's own")),
        Err(error) => Err(of_core(py, &transcript_core::Error::invalid(error.to_string()))),
    }
}

#[pymethods]
impl Transcript {
    #[classattr]
    fn __match_args__() -> (&'static str, &'static str, &'static str) {
        ("title", "language", "segments")
    }

    #[new]
    #[pyo3(signature = (link, segments, *, language="und", kind="human", title=None, author=None, duration=None, track_name=None, original=false, source="import"))]
    #[expect(clippy::too_many_arguments, reason = "they are keywords in Python")]
    fn new(
        py: Python<'_>,
        link: &str,
        segments: Vec<Bound<'_, Segment>>,
        language: &str,
        kind: &str,
        title: Option<String>,
        author: Option<String>,
        duration: Option<f64>,
        track_name: Option<String>,
        original: bool,
        source: &str,
    ) -> PyResult<Self> {
        let language = LanguageTag::parse(language).map_err(|error| of_core(py, &error))?;
        let transcript = transcript::Transcript {
            video: video(py, link)?,
            title,
            author,
            duration_ms: duration.map(|duration| millis(duration, "duration")).transpose()?,
            track: TrackInfo { language, kind: self::kind(kind)?, name: track_name, original },
            source: source.to_owned(),
            segments: segments.iter().map(|segment| segment.get().plain(py)).collect::<PyResult<_>>()?,
        };
        transcript.check().map_err(|error| of_core(py, &error))?;
        Ok(Self::plain(transcript, false))
    }

    /// The platform: `video_site` (YouTube), `short_video` (TikTok), `reels` (Instagram) or `microblog` (X).
    #[getter]
    fn platform(&self, py: Python<'_>) -> PyResult<&'static str> {
        Ok(self.inner(py)?.video.platform().as_str())
    }

    /// The video's id on its platform.
    #[getter]
    fn video_id(&self, py: Python<'_>) -> PyResult<&str> {
        Ok(self.inner(py)?.video.id())
    }

    /// The video's address.
    #[getter]
    fn url(&self, py: Python<'_>) -> PyResult<String> {
        Ok(self.inner(py)?.video.address())
    }

    /// The video's title, or None where the supplier does not know it.
    #[getter]
    fn title(&self, py: Python<'_>) -> PyResult<Option<&str>> {
        Ok(self.inner(py)?.title.as_deref())
    }

    /// Who published the video, or None where the supplier does not know it.
    #[getter]
    fn author(&self, py: Python<'_>) -> PyResult<Option<&str>> {
        Ok(self.inner(py)?.author.as_deref())
    }

    /// The video's length in seconds, or None where the supplier does not know it.
    #[getter]
    fn duration(&self, py: Python<'_>) -> PyResult<Option<f64>> {
        Ok(self.inner(py)?.duration_ms.map(seconds))
    }

    /// The language of the words, as a BCP 47 tag.
    #[getter]
    fn language(&self, py: Python<'_>) -> PyResult<&str> {
        Ok(self.inner(py)?.track.language.as_str())
    }

    /// How the words came to be: `human`, `generated` (recognised from speech) or `translated` (by a machine).
    #[getter]
    fn kind(&self, py: Python<'_>) -> PyResult<&'static str> {
        Ok(self.inner(py)?.track.kind.as_str())
    }

    /// Whether the words come from a machine: recognised from speech, or translated.
    #[getter]
    fn is_generated(&self, py: Python<'_>) -> PyResult<bool> {
        Ok(self.inner(py)?.track.is_generated())
    }

    /// The track's own name, or None where it has none beside its language.
    #[getter]
    fn track_name(&self, py: Python<'_>) -> PyResult<Option<&str>> {
        Ok(self.inner(py)?.track.name.as_deref())
    }

    /// Whether this is the language that is spoken in the video, as far as the supplier knows.
    #[getter]
    fn original(&self, py: Python<'_>) -> PyResult<bool> {
        Ok(self.inner(py)?.track.original)
    }

    /// The name of the supplier that gave the words: `youtube-captions`, `speech-to-text`, …
    #[getter]
    fn source(&self, py: Python<'_>) -> PyResult<&str> {
        Ok(&self.inner(py)?.source)
    }

    /// Whether it was archived already.
    #[getter]
    #[expect(clippy::wrong_self_convention, reason = "it is a property, whose name is that of the wire")]
    fn from_cache(&self) -> bool {
        self.from_cache
    }

    /// Counts the refreshes: 1 for the first that was archived; 0 where it does not come from an archive.
    #[getter]
    fn revision(&self) -> u32 {
        self.revision
    }

    /// The segments by start: a lazy sequence, of which nothing is copied before it is looked at.
    #[getter]
    fn segments(&self, py: Python<'_>) -> PyResult<Segments> {
        Ok(Segments::all(Arc::clone(self.words(py)?)))
    }

    /// The words as prose in paragraphs, without times.
    #[getter]
    fn text(&self, py: Python<'_>) -> PyResult<String> {
        let inner = self.inner(py)?;
        Ok(py.detach(|| transcript::prose(&inner.segments)))
    }

    /// The transcript as Markdown: title, author, and paragraphs with links to their moments.
    fn markdown(&self, py: Python<'_>) -> PyResult<String> {
        let inner = self.inner(py)?;
        Ok(py.detach(|| transcript::markdown(inner)))
    }

    /// The transcript as SRT subtitles.
    fn srt(&self, py: Python<'_>) -> PyResult<String> {
        let inner = self.inner(py)?;
        Ok(py.detach(|| transcript::srt(&inner.segments)))
    }

    /// The transcript as WebVTT subtitles.
    fn vtt(&self, py: Python<'_>) -> PyResult<String> {
        let inner = self.inner(py)?;
        Ok(py.detach(|| transcript::webvtt(&inner.segments)))
    }

    /// The segments as dictionaries with `text`, `start` and `duration` (seconds): what `pandas.DataFrame` takes.
    fn to_dicts<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        dicts(py, &self.inner(py)?.segments)
    }

    /// Everything as a JSON object, from which `Transcript.from_json` gives it back.
    fn to_json(&self, py: Python<'_>) -> PyResult<String> {
        let document = self.document(py)?;
        let json = py.detach(|| serde_json::to_string(&document));
        json.map_err(|error| PyValueError::new_err(error.to_string()))
    }

    /// The transcript that `to_json` wrote.
    ///
    /// Raises `ValueError` for any other text.
    #[classmethod]
    fn from_json(_: &Bound<'_, PyType>, py: Python<'_>, json: &Bound<'_, PyAny>) -> PyResult<Self> {
        let bytes = match json.cast::<PyString>() {
            Ok(text) => text.to_str()?.as_bytes().to_vec(),
            Err(_) => json.extract::<Vec<u8>>()?,
        };
        py.detach(|| Self::restored(&bytes))
            .map_err(|error| PyValueError::new_err(format!("this is no transcript: {error}")))
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
        let (video, language, count) = (&inner.video, &inner.track.language, inner.segments.len());
        Ok(format!("<Transcript {video}{title} {language}, {count} segments>"))
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<(Bound<'py, PyAny>, (Bound<'py, PyBytes>,))> {
        let json = serde_json::to_vec(&slf.get().document(slf.py())?);
        let json = json.map_err(|error| PyValueError::new_err(error.to_string()))?;
        Ok((slf.get_type().getattr("from_json")?, (PyBytes::new(slf.py(), &json),)))
    }
}
