//! Conversions of transcripts for data tools: chunks, files, dictionaries and tables.

use std::{path::Path, sync::Arc};

use pyo3::{
    exceptions::{PyImportError, PyTypeError, PyValueError},
    prelude::*,
    types::{PyDict, PyFloat, PyList, PyString, PyTuple},
};
use transcript_core::{
    transcript::{self, Chapter, Chunk, ChunkOptions, ChunkUnit, TrackKind},
    video::{VideoId, VideoLink},
};

use crate::{
    exceptions::core_exception,
    options,
    segment::{Segment, SegmentStore, Segments, millis, seconds},
    word,
};

/// The track kind with this name.
pub(crate) fn kind(name: &str) -> PyResult<TrackKind> {
    TrackKind::from_name(name).ok_or_else(|| {
        PyValueError::new_err(format!("kind must be 'human', 'generated' or 'translated', not {name:?}"))
    })
}

/// The video of a link; short links are rejected, because they must be resolved first.
pub(crate) fn video(py: Python<'_>, link: &str) -> PyResult<VideoId> {
    match VideoLink::parse(link) {
        Ok(VideoLink::Video(video)) => Ok(video),
        Ok(VideoLink::Short(_)) => {
            Err(PyValueError::new_err("short links are not supported here: use the link of the video"))
        }
        Err(error) => Err(core_exception(py, &error.into())),
    }
}

/// The platform and the id of the video that a link names, or the code of a short link; `None` if it names none.
#[pyfunction]
pub(crate) fn _linked_video(link: &str) -> Option<(&'static str, String)> {
    match VideoLink::parse(link).ok()? {
        VideoLink::Video(video) => Some((video.platform().name(), video.id().to_owned())),
        VideoLink::Short(short) => Some((short.platform().name(), short.code().to_owned())),
    }
}

/// The size of chunks from the keywords of `Transcript.chunks`.
///
/// # Errors
/// `TypeError` unless one size is given; `ValueError` if it or the overlap is out of range.
pub(crate) fn chunk_options(
    seconds: Option<f64>,
    tokens: Option<u64>,
    overlap: f64,
) -> PyResult<ChunkOptions> {
    match (seconds, tokens) {
        (Some(seconds), None) => {
            let size = u64::try_from(options::duration("seconds", seconds)?.as_millis())?;
            let overlap = millis(overlap, "overlap")?;
            Ok(ChunkOptions { unit: ChunkUnit::Milliseconds, size, overlap })
        }
        (None, Some(size)) => {
            // Half of the size is the maximum in any case.
            if !(overlap >= 0.0 && overlap.fract() == 0.0) {
                return Err(PyValueError::new_err(format!(
                    "overlap must be a number of tokens, not {overlap}"
                )));
            }
            let overlap = overlap as u64;
            Ok(ChunkOptions { unit: ChunkUnit::Tokens, size, overlap })
        }
        _ => Err(PyTypeError::new_err("chunks() takes one size: seconds=60 or tokens=200")),
    }
}

/// Chunks as a list of the Python class `Chunk`.
pub(crate) fn chunk_list<'py>(
    py: Python<'py>,
    store: &Arc<SegmentStore>,
    chunks: Vec<Chunk>,
) -> PyResult<Bound<'py, PyList>> {
    let class = py.import("verbatim_transcripts._chunk")?.getattr("Chunk")?;
    let list = PyList::empty(py);
    for Chunk { start_ms, end_ms, text, segments } in chunks {
        let url = store.transcript.video.address_at(start_ms / 1_000);
        let view = Segments::range(Arc::clone(store), segments)?;
        list.append(class.call1((text, seconds(start_ms), seconds(end_ms), url, view))?)?;
    }
    Ok(list)
}

/// The chunks of these segments.
///
/// # Errors
/// `InvalidInput` for sizes out of range.
pub(crate) fn chunks(
    py: Python<'_>,
    segments: &[transcript::Segment],
    chapters: &[Chapter],
    options: ChunkOptions,
) -> PyResult<Vec<Chunk>> {
    py.detach(|| transcript::chunks(segments, chapters, options)).map_err(|error| core_exception(py, &error))
}

/// The pages of a transcript, as a list of the Python class `Chunk`.
///
/// # Errors
/// `InvalidInput` for a size out of range.
pub(crate) fn pages<'py>(
    py: Python<'py>,
    store: &Arc<SegmentStore>,
    chars_max: u32,
) -> PyResult<Bound<'py, PyList>> {
    let pages = py.detach(|| transcript::pages(&store.transcript.segments, chars_max));
    chunk_list(py, store, pages.map_err(|error| core_exception(py, &error))?)
}

/// Writes a text to a file as UTF-8, with its line ends unchanged.
///
/// # Errors
/// `OSError` with the path.
pub(crate) fn write_file(py: Python<'_>, path: &Path, text: &str) -> PyResult<()> {
    let keywords = PyDict::new(py);
    keywords.set_item("encoding", "utf-8")?;
    keywords.set_item("newline", "")?;
    let file = py.import("builtins")?.getattr("open")?.call((path, "w"), Some(&keywords))?;
    let written = file.call_method1("write", (text,));
    file.call_method0("close")?;
    written.map(drop)
}

/// The path of a file, and its suffix in lower case.
pub(crate) fn suffix(path: &Path) -> String {
    path.extension().and_then(|suffix| suffix.to_str()).unwrap_or_default().to_ascii_lowercase()
}

/// The exception for a file name without a known suffix.
pub(crate) fn unknown_suffix(path: &Path) -> PyErr {
    PyValueError::new_err(format!(
        "{}: the suffix selects the format: .txt, .md, .srt, .vtt or .json",
        path.display()
    ))
}

/// Reads text, start and duration in milliseconds from a dictionary, or from a tuple of these in seconds.
///
/// A dictionary of a speech recognizer has the `end` in place of the duration, and for a word also `word` in place of
/// `text`.
///
/// # Errors
/// An exception that names the missing or invalid part.
pub(crate) fn read_timed(item: &Bound<'_, PyAny>) -> PyResult<(String, u64, u64)> {
    let (text, start, duration) = if let Ok(tuple) = item.cast::<PyTuple>() {
        (tuple.get_item(0)?, tuple.get_item(1)?, tuple.get_item(2).ok())
    } else {
        let text = item.get_item("text").or_else(|error| item.get_item("word").map_err(|_| error))?;
        (text, item.get_item("start")?, item.get_item("duration").ok())
    };
    let text = text.cast::<PyString>()?.to_str()?.to_owned();
    let start = millis(start.extract()?, "start")?;
    let duration = match duration {
        Some(duration) => millis(duration.extract()?, "duration")?,
        None => match item.get_item("end").ok().filter(|end| !end.is_none()) {
            Some(end) => millis(end.extract()?, "end")?
                .checked_sub(start)
                .ok_or_else(|| PyValueError::new_err("end must not be before start"))?,
            None => 0,
        },
    };
    Ok((text, start, duration))
}

/// Reads segments from `Segment` objects, dictionaries with `text`, `start`, `duration` and optionally `words`, or
/// tuples of the first three. `None` and NaN, which pandas writes for a missing value, are no words.
///
/// # Errors
/// `ValueError` with the index of an item that is none of these.
pub(crate) fn read_dicts(items: &Bound<'_, PyAny>) -> PyResult<Vec<transcript::Segment>> {
    let read = |item: &Bound<'_, PyAny>| -> PyResult<transcript::Segment> {
        if let Ok(segment) = item.cast::<Segment>() {
            return segment.get().to_core(item.py());
        }
        let (text, start, duration) = read_timed(item)?;
        let words = if item.is_instance_of::<PyTuple>() { None } else { item.get_item("words").ok() };
        let words = words.filter(|words| !words.is_none() && !is_nan(words));
        let words = words.map(|words| word::read(&words)).transpose()?.unwrap_or_default();
        Ok(transcript::Segment { words, ..transcript::Segment::new(text, start, duration) })
    };
    let mut segments = Vec::new();
    for (index, item) in items.try_iter()?.enumerate() {
        let item = item?;
        segments.push(read(&item).map_err(|error| {
            PyValueError::new_err(format!(
                "item {index} is no segment with text, start and duration: {error}"
            ))
        })?);
        if segments.len() > transcript::SEGMENTS_MAX {
            break;
        }
    }
    Ok(segments)
}

fn is_nan(value: &Bound<'_, PyAny>) -> bool {
    value.cast::<PyFloat>().is_ok_and(|number| number.value().is_nan())
}

/// The table of a transcript as a `pandas.DataFrame`.
///
/// # Errors
/// `ImportError` without pandas.
pub(crate) fn to_pandas<'py>(
    py: Python<'py>,
    segments: &[transcript::Segment],
) -> PyResult<Bound<'py, PyAny>> {
    let pandas = py.import("pandas").map_err(|error| {
        if !error.is_instance_of::<PyImportError>(py) {
            return error;
        }
        let named =
            PyImportError::new_err("pandas cannot be imported: pip install 'verbatim-transcripts[pandas]'");
        named.set_cause(py, Some(error));
        named
    })?;
    let columns = PyDict::new(py);
    let texts = segments.iter().map(|segment| segment.text.as_str());
    columns.set_item("text", PyList::new(py, texts.collect::<Vec<_>>())?)?;
    let starts = segments.iter().map(|segment| seconds(segment.start_ms));
    columns.set_item("start", PyList::new(py, starts.collect::<Vec<_>>())?)?;
    let durations = segments.iter().map(|segment| seconds(segment.duration_ms));
    columns.set_item("duration", PyList::new(py, durations.collect::<Vec<_>>())?)?;
    pandas.call_method1("DataFrame", (columns,))
}

/// Segments in the dictionary format of youtube-transcript-api: `text`, `start` and `duration`, in seconds.
///
/// `with_words` adds `words` to those that have any.
pub(crate) fn dicts<'py>(
    py: Python<'py>,
    segments: &[transcript::Segment],
    with_words: bool,
) -> PyResult<Bound<'py, PyList>> {
    let list = PyList::empty(py);
    for segment in segments {
        let dict = timed_dict(py, &segment.text, segment.start_ms, segment.duration_ms)?;
        if with_words && !segment.words.is_empty() {
            dict.set_item(pyo3::intern!(py, "words"), word::dicts(py, &segment.words)?)?;
        }
        list.append(dict)?;
    }
    Ok(list)
}

/// A dictionary with `text`, `start` and `duration`, in seconds.
pub(crate) fn timed_dict<'py>(
    py: Python<'py>,
    text: &str,
    start_ms: u64,
    duration_ms: u64,
) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    dict.set_item(pyo3::intern!(py, "text"), PyString::new(py, text))?;
    dict.set_item(pyo3::intern!(py, "start"), seconds(start_ms))?;
    dict.set_item(pyo3::intern!(py, "duration"), seconds(duration_ms))?;
    Ok(dict)
}
