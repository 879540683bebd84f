//! One segment, and the lazy sequence of a transcript's segments.

use std::{
    hash::{DefaultHasher, Hash as _, Hasher as _},
    sync::Arc,
};

use pyo3::{
    exceptions::{PyIndexError, PyOverflowError, PyValueError},
    prelude::*,
    sync::PyOnceLock,
    types::{PyDict, PyFloat, PyList, PySlice, PyString, PyTuple},
};
use transcript_core::{captions::TIME_MAX_MS, transcript};

/// A piece of text with the time in which it was spoken.
///
/// `text` is as the supplier gave it; `start`, `duration` and `end` are seconds from the video's beginning, to the
/// millisecond. Segments are immutable, compare by value, and match `case Segment(text, start, duration)`.
///
/// >>> from verbatim import Segment
/// >>> Segment("Hello there.", 1.5, 2.0).end
/// 3.5
#[pyclass(frozen, module = "verbatim._native")]
pub(crate) struct Segment {
    // Fields that are objects are read by the interpreter itself, without a call.
    /// The text, as the supplier gave it.
    #[pyo3(get)]
    text: Py<PyString>,
    /// When it starts, in seconds from the video's beginning.
    #[pyo3(get)]
    start: Py<PyFloat>,
    /// How long it lasts, in seconds.
    #[pyo3(get)]
    duration: Py<PyFloat>,
    start_ms: u64,
    duration_ms: u64,
}

impl Segment {
    /// The object for a segment.
    fn of(py: Python<'_>, segment: &transcript::Segment) -> Self {
        Self {
            text: PyString::new(py, &segment.text).unbind(),
            start: PyFloat::new(py, seconds(segment.start_ms)).unbind(),
            duration: PyFloat::new(py, seconds(segment.duration_ms)).unbind(),
            start_ms: segment.start_ms,
            duration_ms: segment.duration_ms,
        }
    }

    /// The segment itself.
    ///
    /// # Errors
    /// None that its text can cause: it was made of one.
    pub(crate) fn plain(&self, py: Python<'_>) -> PyResult<transcript::Segment> {
        Ok(transcript::Segment::new(self.text.bind(py).to_str()?, self.start_ms, self.duration_ms))
    }

    fn is(&self, py: Python<'_>, other: &transcript::Segment) -> bool {
        (self.start_ms, self.duration_ms) == (other.start_ms, other.duration_ms)
            && self.text.bind(py).to_str().is_ok_and(|text| text == other.text)
    }
}

/// Milliseconds as seconds, exact as decimals.
pub(crate) fn seconds(millis: u64) -> f64 {
    millis as f64 / 1_000.0
}

/// Seconds as whole milliseconds.
///
/// # Errors
/// `ValueError` for what is no time in a video.
pub(crate) fn millis(seconds: f64, what: &str) -> PyResult<u64> {
    let millis = (seconds * 1_000.0).round();
    // Neither comparison holds for what is no number.
    if (0.0..=TIME_MAX_MS as f64).contains(&millis) {
        return Ok(millis as u64);
    }
    let most = TIME_MAX_MS / 1_000;
    Err(PyValueError::new_err(format!("{what} must be seconds from 0 to {most}, not {seconds}")))
}

#[pymethods]
impl Segment {
    #[classattr]
    fn __match_args__() -> (&'static str, &'static str, &'static str) {
        ("text", "start", "duration")
    }

    #[new]
    #[pyo3(signature = (text, start, duration=0.0))]
    fn new(py: Python<'_>, text: &str, start: f64, duration: f64) -> PyResult<Self> {
        let (start, duration) = (millis(start, "start")?, millis(duration, "duration")?);
        Ok(Self::of(py, &transcript::Segment::new(text, start, duration)))
    }

    /// When it ends, in seconds from the video's beginning.
    #[getter]
    fn end(&self) -> f64 {
        seconds(self.start_ms.saturating_add(self.duration_ms))
    }

    fn __eq__(&self, py: Python<'_>, other: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        let Ok(other) = other.cast::<Self>() else { return Ok(py.NotImplemented()) };
        let is_same = self.is(py, &other.get().plain(py)?);
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
        self.plain(py)?.hash(&mut hasher);
        Ok(hasher.finish())
    }

    fn __getnewargs__(&self, py: Python<'_>) -> (Py<PyString>, f64, f64) {
        (self.text.clone_ref(py), seconds(self.start_ms), seconds(self.duration_ms))
    }
}

/// A transcript, and the objects of its segments once there are any.
pub(crate) struct Words {
    pub(crate) transcript: Arc<transcript::Transcript>,
    /// Whoever goes through the segments once does so again: the objects are made once, all together.
    objects: PyOnceLock<Py<PyTuple>>,
}

impl Words {
    pub(crate) fn new(transcript: Arc<transcript::Transcript>) -> Self {
        Self { transcript, objects: PyOnceLock::new() }
    }

    fn objects<'py>(&self, py: Python<'py>) -> PyResult<&Bound<'py, PyTuple>> {
        let made = self.objects.get_or_try_init(py, || {
            let objects =
                self.transcript.segments.iter().map(|segment| Bound::new(py, Segment::of(py, segment)));
            let objects = objects.collect::<PyResult<Vec<_>>>()?;
            PyTuple::new(py, objects).map(Bound::unbind)
        });
        made.map(|made| made.bind(py))
    }

    /// The object of one segment: the one that was made before, or one made for now.
    fn object<'py>(&self, py: Python<'py>, place: usize) -> PyResult<Option<Bound<'py, PyAny>>> {
        if let Some(objects) = self.objects.get(py) {
            return if place < self.transcript.segments.len() {
                objects.bind(py).get_item(place).map(Some)
            } else {
                Ok(None)
            };
        }
        let segment = self.transcript.segments.get(place);
        segment.map(|segment| Ok(Bound::new(py, Segment::of(py, segment))?.into_any())).transpose()
    }
}

/// A transcript's segments, in order of their start: a `collections.abc.Sequence` of [`Segment`].
///
/// Nothing is copied before it is looked at: an item is made when it is asked for, and a slice is a view. Going through
/// all of them makes all their objects, which the transcript keeps for the next time.
#[pyclass(frozen, module = "verbatim._native", sequence)]
pub(crate) struct Segments {
    of: Arc<Words>,
    view: View,
}

/// Which of them, in which order.
#[derive(Clone)]
struct View {
    from: isize,
    step: isize,
    length: usize,
}

impl Segments {
    pub(crate) fn all(of: Arc<Words>) -> Self {
        let length = of.transcript.segments.len();
        Self { of, view: View { from: 0, step: 1, length } }
    }

    /// The place in the transcript of a place in this view.
    fn place(&self, place: usize) -> Option<usize> {
        if place >= self.view.length {
            return None;
        }
        let place = self.view.from + self.view.step * isize::try_from(place).ok()?;
        usize::try_from(place).ok()
    }

    fn at(&self, place: usize) -> Option<&transcript::Segment> {
        self.of.transcript.segments.get(self.place(place)?)
    }

    fn object<'py>(&self, py: Python<'py>, place: usize) -> PyResult<Option<Bound<'py, PyAny>>> {
        self.place(place).map_or(Ok(None), |place| self.of.object(py, place))
    }

    /// Whether this is the whole transcript, in its order.
    fn is_all(&self) -> bool {
        let View { from, step, length } = self.view;
        (from, step, length) == (0, 1, self.of.transcript.segments.len())
    }

    fn iter(&self) -> impl Iterator<Item = &transcript::Segment> {
        (0..self.view.length).filter_map(|place| self.at(place))
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
            let asked = slice.indices(length)?;
            let view = View {
                from: self.view.from + self.view.step * asked.start,
                step: self.view.step * asked.step,
                length: asked.slicelength,
            };
            return Ok(Bound::new(py, Self { of: Arc::clone(&self.of), view })?.into_any());
        }
        let place: isize = key.extract().map_err(|error: PyErr| {
            // A number beyond all places is one that no segment has.
            match error.is_instance_of::<PyOverflowError>(py) {
                true => PyIndexError::new_err("there is no such segment"),
                false => error,
            }
        })?;
        let place = if place < 0 { place + length } else { place };
        let found = usize::try_from(place).ok().map_or(Ok(None), |place| self.object(py, place))?;
        found.ok_or_else(|| PyIndexError::new_err("there is no such segment"))
    }

    pub(crate) fn __iter__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        if self.is_all() {
            return Ok(self.of.objects(py)?.try_iter()?.into_any());
        }
        let of = Self { of: Arc::clone(&self.of), view: self.view.clone() };
        Ok(Bound::new(py, SegmentsIterator { of, next: 0.into() })?.into_any())
    }

    fn __reversed__(&self) -> SegmentsIterator {
        let length = isize::try_from(self.view.length).unwrap_or_default();
        let from = self.view.from + self.view.step * (length - 1);
        let view = View { from, step: -self.view.step, length: self.view.length };
        SegmentsIterator { of: Self { of: Arc::clone(&self.of), view }, next: 0.into() }
    }

    fn __contains__(&self, item: &Bound<'_, PyAny>) -> bool {
        let py = item.py();
        item.cast::<Segment>().is_ok_and(|item| self.iter().any(|known| item.get().is(py, known)))
    }

    /// The first place of a segment.
    ///
    /// Raises `ValueError` where it is not there.
    #[pyo3(signature = (value, start=0, stop=None))]
    fn index(&self, value: &Bound<'_, PyAny>, start: isize, stop: Option<isize>) -> PyResult<usize> {
        let length = isize::try_from(self.view.length)?;
        let bound = |at: isize| usize::try_from(if at < 0 { (at + length).max(0) } else { at.min(length) });
        let (start, stop) = (bound(start)?, bound(stop.unwrap_or(length))?);
        let wanted = value.cast::<Segment>().ok();
        (start..stop)
            .find(|place| {
                let known = self.at(*place);
                known.zip(wanted).is_some_and(|(known, wanted)| wanted.get().is(value.py(), known))
            })
            .ok_or_else(|| PyValueError::new_err("there is no such segment"))
    }

    /// How often a segment is there.
    fn count(&self, value: &Bound<'_, PyAny>) -> usize {
        let Ok(wanted) = value.cast::<Segment>() else { return 0 };
        self.iter().filter(|known| wanted.get().is(value.py(), known)).count()
    }

    fn __eq__(&self, py: Python<'_>, other: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        if let Ok(other) = other.cast::<Self>() {
            return Ok(self.equals(other.get()).into_pyobject(py)?.to_owned().into_any().unbind());
        }
        // A list or tuple of segments is one as well.
        if other.cast::<PyList>().is_err() && other.cast::<PyTuple>().is_err() {
            return Ok(py.NotImplemented());
        }
        let mut is_same = other.len()? == self.view.length;
        for (known, item) in self.iter().zip(other.try_iter()?) {
            is_same = is_same && item?.cast::<Segment>().is_ok_and(|item| item.get().is(py, known));
        }
        Ok(is_same.into_pyobject(py)?.to_owned().into_any().unbind())
    }

    fn __hash__(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        self.iter().for_each(|segment| segment.hash(&mut hasher));
        hasher.finish()
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        const SHOWN: usize = 3;
        let shown: PyResult<Vec<_>> =
            self.iter().take(SHOWN).map(|segment| Segment::of(py, segment).__repr__(py)).collect();
        let more = self.view.length.saturating_sub(SHOWN);
        let more = if more == 0 { String::new() } else { format!(", … {more} more") };
        Ok(format!("<Segments [{}{more}]>", shown?.join(", ")))
    }

    /// Pickled, they are the list of segments that they equal.
    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<(Bound<'py, PyAny>, (Bound<'py, PyList>,))> {
        let restore = slf.py().import("builtins")?.getattr("list")?;
        let items = PyList::empty(slf.py());
        for item in slf.get().__iter__(slf.py())?.try_iter()? {
            items.append(item?)?;
        }
        Ok((restore, (items,)))
    }
}

/// Goes through the segments, once.
#[pyclass(frozen, module = "verbatim._native")]
pub(crate) struct SegmentsIterator {
    of: Segments,
    next: std::sync::atomic::AtomicUsize,
}

#[pymethods]
impl SegmentsIterator {
    fn __iter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    fn __next__<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        let place = self.next.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        self.of.object(py, place)
    }

    fn __length_hint__(&self) -> usize {
        self.of.view.length.saturating_sub(self.next.load(std::sync::atomic::Ordering::Relaxed))
    }
}

/// Segments as the dictionaries of youtube-transcript-api: `text`, `start` and `duration`, times in seconds.
pub(crate) fn dicts<'py>(py: Python<'py>, segments: &[transcript::Segment]) -> PyResult<Bound<'py, PyList>> {
    let (text, start, duration) =
        (pyo3::intern!(py, "text"), pyo3::intern!(py, "start"), pyo3::intern!(py, "duration"));
    let list = PyList::empty(py);
    for segment in segments {
        let dict = PyDict::new(py);
        dict.set_item(text, PyString::new(py, &segment.text))?;
        dict.set_item(start, seconds(segment.start_ms))?;
        dict.set_item(duration, seconds(segment.duration_ms))?;
        list.append(dict)?;
    }
    Ok(list)
}
