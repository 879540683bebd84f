//! A segment, and the lazy sequence of the segments of a transcript.

use std::{
    hash::{DefaultHasher, Hash as _, Hasher as _},
    ops::Range,
    sync::Arc,
};

use pyo3::{
    exceptions::{PyIndexError, PyOverflowError, PyValueError},
    prelude::*,
    sync::PyOnceLock,
    types::{PyDict, PyFloat, PyIterator, PyList, PySlice, PyString, PyTuple, PyType},
};
pub(crate) use transcript_core::body::segments::seconds;
use transcript_core::{
    body::segments,
    transcript,
    transcript::{LanguageTag, TIME_MAX_MS, TrackInfo, TrackKind, VideoDetails},
    video::VideoId,
};

use crate::{
    options,
    word::{self, SegmentWords},
};

/// A text with its start and duration.
///
/// `text` is unchanged from the supplier; `start`, `duration` and `end` are in seconds from the start of the video,
/// with millisecond precision. `words` are those of the text with their times, if the source has them. Segments are
/// immutable, compare by value, match `case Segment(text, start, duration)` and unpack like a tuple of these three.
///
/// >>> from verbatim_transcripts import Segment
/// >>> Segment("Hello there.", 1.5, 2.0).end
/// 3.5
/// >>> text, start, duration = Segment("Hello there.", 1.5, 2.0)
#[pyclass(frozen, module = "verbatim_transcripts._native")]
pub(crate) struct Segment {
    // The interpreter reads fields that are objects without a call.
    /// The text, unchanged from the supplier.
    #[pyo3(get)]
    text: Py<PyString>,
    /// Start, in seconds from the start of the video.
    #[pyo3(get)]
    start: Py<PyFloat>,
    /// Duration, in seconds.
    #[pyo3(get)]
    duration: Py<PyFloat>,
    start_ms: u64,
    duration_ms: u64,
    words: SegmentWords,
}

impl Segment {
    /// The object of a segment.
    fn from_core(py: Python<'_>, segment: &transcript::Segment, words: SegmentWords) -> Self {
        Self {
            text: PyString::new(py, &segment.text).unbind(),
            start: PyFloat::new(py, seconds(segment.start_ms)).unbind(),
            duration: PyFloat::new(py, seconds(segment.duration_ms)).unbind(),
            start_ms: segment.start_ms,
            duration_ms: segment.duration_ms,
            words,
        }
    }

    /// The segment as the core's type.
    ///
    /// # Errors
    /// None in practice: the text was created from UTF-8.
    pub(crate) fn to_core(&self, py: Python<'_>) -> PyResult<transcript::Segment> {
        Ok(transcript::Segment {
            words: self.words.as_slice().to_vec(),
            ..transcript::Segment::new(self.text.bind(py).to_str()?, self.start_ms, self.duration_ms)
        })
    }

    fn as_tuple<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        (&self.text, &self.start, &self.duration).into_pyobject(py)
    }

    fn is_same_as(&self, py: Python<'_>, other: &transcript::Segment) -> bool {
        (self.start_ms, self.duration_ms) == (other.start_ms, other.duration_ms)
            && self.text.bind(py).to_str().is_ok_and(|text| text == other.text)
            && self.words.as_slice() == other.words
    }
}

/// Seconds as whole milliseconds.
///
/// # Errors
/// `ValueError` for a time outside of 0 to the maximum.
pub(crate) fn millis(seconds: f64, what: &str) -> PyResult<u64> {
    segments::millis(seconds).ok_or_else(|| {
        let most = TIME_MAX_MS / 1_000;
        PyValueError::new_err(format!("{what} must be seconds from 0 to {most}, not {seconds}"))
    })
}

#[pymethods]
impl Segment {
    #[classattr]
    fn __match_args__() -> (&'static str, &'static str, &'static str) {
        ("text", "start", "duration")
    }

    #[new]
    #[pyo3(signature = (text, start, duration=0.0, words=None))]
    fn new(
        py: Python<'_>,
        text: &str,
        #[pyo3(from_py_with = options::extract::<f64>)] start: f64,
        #[pyo3(from_py_with = options::extract::<f64>)] duration: f64,
        words: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Self> {
        let (start, duration) = (millis(start, "start")?, millis(duration, "duration")?);
        let words = words.map_or(Ok(SegmentWords::None), SegmentWords::read)?;
        Ok(Self::from_core(py, &transcript::Segment::new(text, start, duration), words))
    }

    /// The names of the three fields; data tools use them as columns.
    #[classattr]
    fn _fields() -> (&'static str, &'static str, &'static str) {
        Self::__match_args__()
    }

    /// The words with their times: a list of `Word`, empty if the source has none.
    #[getter]
    fn words<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        word::objects(py, self.words.as_slice())
    }

    /// The segment as a dictionary with `text`, `start` and `duration`, and `words` if it has any.
    fn _asdict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let dict = PyDict::new(py);
        dict.set_item("text", &self.text)?;
        dict.set_item("start", &self.start)?;
        dict.set_item("duration", &self.duration)?;
        if !self.words.as_slice().is_empty() {
            dict.set_item("words", word::dicts(py, self.words.as_slice())?)?;
        }
        Ok(dict)
    }

    fn __len__(&self) -> usize {
        3
    }

    fn __iter__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyIterator>> {
        self.as_tuple(py)?.try_iter()
    }

    fn __getitem__<'py>(&self, py: Python<'py>, key: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        self.as_tuple(py)?.as_any().get_item(key)
    }

    /// Schema of pydantic: an object with `text`, `start` and `duration`, optionally with `words`.
    #[classmethod]
    fn __get_pydantic_core_schema__<'py>(
        class: &Bound<'py, PyType>,
        source: &Bound<'py, PyAny>,
        handler: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let _ = (source, handler);
        class.py().import("verbatim_transcripts._pydantic")?.call_method1("segment_schema", (class,))
    }

    /// End, in seconds from the start of the video.
    #[getter]
    fn end(&self) -> f64 {
        seconds(self.start_ms.saturating_add(self.duration_ms))
    }

    fn __eq__(&self, py: Python<'_>, other: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        let Ok(other) = other.cast::<Self>() else { return Ok(py.NotImplemented()) };
        let is_same = self.is_same_as(py, &other.get().to_core(py)?);
        Ok(is_same.into_pyobject(py)?.to_owned().into_any().unbind())
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        let text = self.text.bind(py).repr()?;
        Ok(format!(
            "Segment({}, {:?}, {:?})",
            text.to_str()?,
            seconds(self.start_ms),
            seconds(self.duration_ms)
        ))
    }

    fn __hash__(&self, py: Python<'_>) -> PyResult<u64> {
        let mut hasher = DefaultHasher::new();
        self.to_core(py)?.hash(&mut hasher);
        Ok(hasher.finish())
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<(Bound<'py, PyType>, Bound<'py, PyTuple>)> {
        let Self { text, start, duration, words, .. } = slf.get();
        let words: Vec<_> = words.as_slice().iter().map(word::fields).collect();
        Ok((slf.get_type(), (text, start, duration, words).into_pyobject(slf.py())?))
    }
}

/// A transcript, what is known of its video, and the Python objects of its segments once they exist.
pub(crate) struct SegmentStore {
    pub(crate) transcript: Arc<transcript::Transcript>,
    pub(crate) details: Arc<VideoDetails>,
    /// Created together on the first full iteration, since a second one often follows.
    objects: PyOnceLock<Py<PyTuple>>,
}

impl SegmentStore {
    pub(crate) fn new(transcript: Arc<transcript::Transcript>, details: Arc<VideoDetails>) -> Self {
        Self { transcript, details, objects: PyOnceLock::new() }
    }

    fn new_object<'py>(
        &self,
        py: Python<'py>,
        index: usize,
        segment: &transcript::Segment,
    ) -> PyResult<Bound<'py, Segment>> {
        let words = SegmentWords::of_transcript(&self.transcript, index);
        Bound::new(py, Segment::from_core(py, segment, words))
    }

    fn objects<'py>(&self, py: Python<'py>) -> PyResult<&Bound<'py, PyTuple>> {
        let objects = self.objects.get_or_try_init(py, || {
            let segments = self.transcript.segments.iter().enumerate();
            let objects = segments.map(|(index, segment)| self.new_object(py, index, segment));
            let objects = objects.collect::<PyResult<Vec<_>>>()?;
            PyTuple::new(py, objects).map(Bound::unbind)
        });
        objects.map(|objects| objects.bind(py))
    }

    /// The object of one segment: the stored one, or a temporary one.
    fn object<'py>(&self, py: Python<'py>, index: usize) -> PyResult<Option<Bound<'py, PyAny>>> {
        if let Some(objects) = self.objects.get(py) {
            return if index < self.transcript.segments.len() {
                objects.bind(py).get_item(index).map(Some)
            } else {
                Ok(None)
            };
        }
        let segment = self.transcript.segments.get(index);
        segment.map(|segment| Ok(self.new_object(py, index, segment)?.into_any())).transpose()
    }
}

/// The segments of a transcript in order of their start: a `collections.abc.Sequence` of `Segment`.
///
/// Items are created on access, and a slice is a view. Iteration over all segments creates all objects, and the
/// transcript keeps them for the next iteration.
#[pyclass(frozen, module = "verbatim_transcripts._native", sequence)]
pub(crate) struct Segments {
    store: Arc<SegmentStore>,
    view: SegmentView,
}

/// The function that restores segments, the name of their video, and the segments.
type PickledSegments<'py> = (Bound<'py, PyAny>, (String, Bound<'py, PyTuple>));

/// A view of the segments: the range and order of a slice.
#[derive(Clone)]
struct SegmentView {
    from: isize,
    step: isize,
    length: usize,
}

impl Segments {
    pub(crate) fn all(store: Arc<SegmentStore>) -> Self {
        let length = store.transcript.segments.len();
        Self { store, view: SegmentView { from: 0, step: 1, length } }
    }

    /// The segments with these indexes.
    pub(crate) fn range(store: Arc<SegmentStore>, range: Range<usize>) -> PyResult<Self> {
        let view = SegmentView { from: isize::try_from(range.start)?, step: 1, length: range.len() };
        Ok(Self { store, view })
    }

    /// The transcript index of an index in this view.
    fn resolve_index(&self, index: usize) -> Option<usize> {
        if index >= self.view.length {
            return None;
        }
        let index = self.view.from + self.view.step * isize::try_from(index).ok()?;
        usize::try_from(index).ok()
    }

    fn at(&self, index: usize) -> Option<&transcript::Segment> {
        self.store.transcript.segments.get(self.resolve_index(index)?)
    }

    fn object<'py>(&self, py: Python<'py>, index: usize) -> PyResult<Option<Bound<'py, PyAny>>> {
        self.resolve_index(index).map_or(Ok(None), |index| self.store.object(py, index))
    }

    /// Whether the view contains all segments in order.
    fn covers_all(&self) -> bool {
        let SegmentView { from, step, length } = self.view;
        (from, step, length) == (0, 1, self.store.transcript.segments.len())
    }

    /// The segments as a tuple, which is equal to them.
    fn as_tuple<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        if self.covers_all() {
            return self.store.objects(py).cloned();
        }
        let items = (0..self.view.length).filter_map(|index| self.object(py, index).transpose());
        PyTuple::new(py, items.collect::<PyResult<Vec<_>>>()?)
    }

    fn iter(&self) -> impl Iterator<Item = &transcript::Segment> {
        (0..self.view.length).filter_map(|index| self.at(index))
    }

    fn equals(&self, other: &Self) -> bool {
        self.view.length == other.view.length && self.iter().eq(other.iter())
    }
}

#[pymethods]
impl Segments {
    fn __len__(&self) -> usize {
        self.view.length
    }

    pub(crate) fn __getitem__<'py>(
        &self,
        py: Python<'py>,
        key: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let length = isize::try_from(self.view.length)?;
        if let Ok(slice) = key.cast::<PySlice>() {
            let range = slice.indices(length)?;
            let view = SegmentView {
                from: self.view.from + self.view.step * range.start,
                step: self.view.step * range.step,
                length: range.slicelength,
            };
            return Ok(Bound::new(py, Self { store: Arc::clone(&self.store), view })?.into_any());
        }
        let index: isize = key.extract().map_err(|error: PyErr| {
            // An index that overflows is out of range.
            match error.is_instance_of::<PyOverflowError>(py) {
                true => PyIndexError::new_err("segment index out of range"),
                false => error,
            }
        })?;
        let index = if index < 0 { index + length } else { index };
        let found = usize::try_from(index).ok().map_or(Ok(None), |index| self.object(py, index))?;
        found.ok_or_else(|| PyIndexError::new_err("segment index out of range"))
    }

    pub(crate) fn __iter__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        if self.covers_all() {
            return Ok(self.store.objects(py)?.try_iter()?.into_any());
        }
        let segments = Self { store: Arc::clone(&self.store), view: self.view.clone() };
        Ok(Bound::new(py, SegmentsIterator { segments, next: 0.into() })?.into_any())
    }

    pub(crate) fn __reversed__(&self) -> SegmentsIterator {
        let length = isize::try_from(self.view.length).unwrap_or_default();
        let from = self.view.from + self.view.step * (length - 1);
        let view = SegmentView { from, step: -self.view.step, length: self.view.length };
        SegmentsIterator { segments: Self { store: Arc::clone(&self.store), view }, next: 0.into() }
    }

    fn __contains__(&self, item: &Bound<'_, PyAny>) -> bool {
        let py = item.py();
        item.cast::<Segment>().is_ok_and(|item| self.iter().any(|segment| item.get().is_same_as(py, segment)))
    }

    /// The index of the first equal segment.
    ///
    /// Raises `ValueError` if there is none.
    #[pyo3(signature = (value, start=0, stop=None))]
    pub(crate) fn index(
        &self,
        value: &Bound<'_, PyAny>,
        start: isize,
        stop: Option<isize>,
    ) -> PyResult<usize> {
        let length = isize::try_from(self.view.length)?;
        let bound = |at: isize| usize::try_from(if at < 0 { (at + length).max(0) } else { at.min(length) });
        let (start, stop) = (bound(start)?, bound(stop.unwrap_or(length))?);
        let wanted = value.cast::<Segment>().ok();
        (start..stop)
            .find(|index| {
                let segment = self.at(*index);
                segment
                    .zip(wanted)
                    .is_some_and(|(segment, wanted)| wanted.get().is_same_as(value.py(), segment))
            })
            .ok_or_else(|| PyValueError::new_err("segment not found"))
    }

    /// The number of equal segments.
    pub(crate) fn count(&self, value: &Bound<'_, PyAny>) -> usize {
        let Ok(wanted) = value.cast::<Segment>() else { return 0 };
        self.iter().filter(|segment| wanted.get().is_same_as(value.py(), segment)).count()
    }

    fn __eq__(&self, py: Python<'_>, other: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        if let Ok(other) = other.cast::<Self>() {
            return Ok(self.equals(other.get()).into_pyobject(py)?.to_owned().into_any().unbind());
        }
        // Lists and tuples of equal segments are equal, too.
        if other.cast::<PyList>().is_err() && other.cast::<PyTuple>().is_err() {
            return Ok(py.NotImplemented());
        }
        let mut is_same = other.len()? == self.view.length;
        for (segment, item) in self.iter().zip(other.try_iter()?) {
            is_same = is_same && item?.cast::<Segment>().is_ok_and(|item| item.get().is_same_as(py, segment));
        }
        Ok(is_same.into_pyobject(py)?.to_owned().into_any().unbind())
    }

    /// The hash of the equal tuple.
    fn __hash__(&self, py: Python<'_>) -> PyResult<isize> {
        self.as_tuple(py)?.as_any().hash()
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        const REPR_ITEMS: usize = 3;
        let shown: PyResult<Vec<_>> = self
            .iter()
            .take(REPR_ITEMS)
            .map(|segment| Segment::from_core(py, segment, SegmentWords::None).__repr__(py))
            .collect();
        let more = self.view.length.saturating_sub(REPR_ITEMS);
        let more = if more == 0 { String::new() } else { format!(", … {more} more") };
        Ok(format!("<Segments [{}{more}]>", shown?.join(", ")))
    }

    /// Schema of pydantic: a list of segments, which is equal to them.
    #[classmethod]
    fn __get_pydantic_core_schema__<'py>(
        class: &Bound<'py, PyType>,
        source: &Bound<'py, PyAny>,
        handler: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let _ = (source, handler);
        class.py().import("verbatim_transcripts._pydantic")?.call_method1("segments_schema", (class,))
    }

    /// Restores pickled segments of the video with this name.
    #[classmethod]
    fn _restore(
        _: &Bound<'_, PyType>,
        py: Python<'_>,
        video: &str,
        segments: Vec<Bound<'_, Segment>>,
    ) -> PyResult<Self> {
        let video = VideoId::from_name(video).ok_or_else(|| PyValueError::new_err("not pickled segments"))?;
        let transcript = transcript::Transcript {
            video,
            title: None,
            author: None,
            duration_ms: None,
            track: TrackInfo::new(LanguageTag::english(), TrackKind::Human),
            source: String::new(),
            segments: segments.iter().map(|segment| segment.get().to_core(py)).collect::<PyResult<_>>()?,
        };
        Ok(Self::all(Arc::new(SegmentStore::new(Arc::new(transcript), Arc::default()))))
    }

    /// Pickles these segments only, without the rest of their transcript.
    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<PickledSegments<'py>> {
        let video = slf.get().store.transcript.video.to_string();
        Ok((slf.get_type().getattr("_restore")?, (video, slf.get().as_tuple(slf.py())?)))
    }
}

/// Iterates over the segments once.
#[pyclass(frozen, module = "verbatim_transcripts._native")]
pub(crate) struct SegmentsIterator {
    segments: Segments,
    next: std::sync::atomic::AtomicUsize,
}

#[pymethods]
impl SegmentsIterator {
    fn __iter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    fn __next__<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        let index = self.next.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        self.segments.object(py, index)
    }

    fn __length_hint__(&self) -> usize {
        self.segments.view.length.saturating_sub(self.next.load(std::sync::atomic::Ordering::Relaxed))
    }
}
