//! Words of a segment as Python objects.

use std::sync::Arc;

use pyo3::{exceptions::PyValueError, prelude::*, types::PyList};
use transcript_core::transcript::{Transcript, WORDS_MAX, Word};

use crate::{
    data::{read_timed, timed_dict},
    segment::seconds,
};

/// The words of a segment.
pub(crate) enum SegmentWords {
    /// The source has no times of words.
    None,
    /// Those of the segment with this index: texts of a transcript are not copied.
    Shared(Arc<Transcript>, usize),
    /// Those of a segment that the caller created.
    Owned(Box<[Word]>),
}

impl SegmentWords {
    /// The words of a segment of a transcript.
    pub(crate) fn of_transcript(transcript: &Arc<Transcript>, index: usize) -> Self {
        match transcript.segments.get(index) {
            Some(segment) if !segment.words.is_empty() => Self::Shared(Arc::clone(transcript), index),
            _ => Self::None,
        }
    }

    /// Reads words from `Word` objects, tuples of their fields, or dictionaries.
    ///
    /// # Errors
    /// `ValueError` with the index of an item that is none of these.
    pub(crate) fn read(items: &Bound<'_, PyAny>) -> PyResult<Self> {
        Ok(match read(items)? {
            words if words.is_empty() => Self::None,
            words => Self::Owned(words.into()),
        })
    }

    pub(crate) fn as_slice(&self) -> &[Word] {
        match self {
            Self::None => &[],
            Self::Shared(transcript, index) => {
                transcript.segments.get(*index).map_or(&[], |segment| &segment.words)
            }
            Self::Owned(words) => words,
        }
    }
}

/// Reads words from `Word` objects, tuples of their fields, or dictionaries, without the white space around them.
///
/// # Errors
/// `ValueError` with the index of an item that is none of these.
pub(crate) fn read(items: &Bound<'_, PyAny>) -> PyResult<Vec<Word>> {
    let mut words = Vec::new();
    for (index, item) in items.try_iter()?.enumerate() {
        if index == WORDS_MAX {
            return Err(PyValueError::new_err(format!("a segment has at most {WORDS_MAX} words")));
        }
        let (text, start_ms, duration_ms) = read_timed(&item?).map_err(|error| {
            PyValueError::new_err(format!("word {index} has no text, start and duration: {error}"))
        })?;
        words.push(Word::new(text.trim(), start_ms, duration_ms));
    }
    Ok(words)
}

/// Text, start and duration in seconds.
pub(crate) fn fields(word: &Word) -> (String, f64, f64) {
    (word.text.clone(), seconds(word.start_ms), seconds(word.duration_ms))
}

/// Words as a list of the Python class `Word`.
pub(crate) fn objects<'py>(py: Python<'py>, words: &[Word]) -> PyResult<Bound<'py, PyList>> {
    let class = py.import("verbatim_transcripts._chunk")?.getattr("Word")?;
    let list = PyList::empty(py);
    for word in words {
        list.append(class.call1(fields(word))?)?;
    }
    Ok(list)
}

/// Words as dictionaries with `text`, `start` and `duration`.
pub(crate) fn dicts<'py>(py: Python<'py>, words: &[Word]) -> PyResult<Bound<'py, PyList>> {
    let list = PyList::empty(py);
    for word in words {
        list.append(timed_dict(py, &word.text, word.start_ms, word.duration_ms)?)?;
    }
    Ok(list)
}
