//! What is known of a video besides its segments, as Python objects.

use pyo3::{
    exceptions::{PyTypeError, PyValueError},
    intern,
    prelude::*,
    types::{PyDict, PyList},
};
use transcript_core::{
    time::Timestamp,
    transcript::{CHAPTERS_MAX, Chapter, LiveStatus, Transcript, VideoDetails, VideoMetadata},
    wire,
};

use crate::{
    exceptions::core_exception,
    options,
    segment::{millis, seconds},
};

/// The module with the Python classes.
const CLASSES: &str = "verbatim_transcripts._video";

/// The metadata of a video as the Python class `VideoMetadata`.
pub(crate) fn metadata_object<'py>(
    py: Python<'py>,
    transcript: &Transcript,
    details: &VideoDetails,
) -> PyResult<Bound<'py, PyAny>> {
    let metadata = &details.metadata;
    let fields = PyDict::new(py);
    fields.set_item("title", transcript.title.as_deref())?;
    fields.set_item("author", transcript.author.as_deref())?;
    fields.set_item("author_id", metadata.author_id.as_deref())?;
    fields.set_item("author_url", metadata.author_url.as_deref())?;
    fields.set_item("duration", transcript.duration_ms.map(seconds))?;
    fields.set_item("thumbnail_url", metadata.thumbnail_url.as_deref())?;
    fields.set_item("live", metadata.live.map(LiveStatus::as_str))?;
    fields.set_item("description", metadata.description.as_deref())?;
    if let Some(time) = metadata.published_at {
        let time = py.import(CLASSES)?.call_method1("_to_datetime", (time.as_millis(),))?;
        fields.set_item("published_at", time)?;
    }
    py.import(CLASSES)?.getattr("VideoMetadata")?.call((), Some(&fields))
}

/// The chapters of a video as a list of the Python class `Chapter`.
pub(crate) fn chapter_list<'py>(py: Python<'py>, details: &VideoDetails) -> PyResult<Bound<'py, PyList>> {
    let class = py.import(CLASSES)?.getattr("Chapter")?;
    let list = PyList::empty(py);
    for Chapter { title, start_ms } in &details.metadata.chapters {
        list.append(class.call1((title, seconds(*start_ms)))?)?;
    }
    Ok(list)
}

/// The languages of a video as a list of the Python class `Language`.
pub(crate) fn language_list<'py>(
    py: Python<'py>,
    transcript: &Transcript,
    details: &VideoDetails,
) -> PyResult<Bound<'py, PyList>> {
    let class = py.import(CLASSES)?.getattr("Language")?;
    let list = PyList::empty(py);
    for wire::LanguageObject { tag, name, kind, original } in wire::languages(transcript, details) {
        list.append(class.call1((tag, name, kind, original))?)?;
    }
    Ok(list)
}

/// Adds what a caller knows of the video to a transcript, and returns its details.
///
/// `metadata` is a `VideoMetadata` of Python, `chapters` are tuples of title and start.
///
/// # Errors
/// `TypeError` or `ValueError` for an invalid field.
pub(crate) fn read_details(
    transcript: &mut Transcript,
    metadata: Option<&Bound<'_, PyAny>>,
    chapters: Option<&Bound<'_, PyAny>>,
) -> PyResult<VideoDetails> {
    let mut read = VideoMetadata::default();
    if let Some(metadata) = metadata {
        let py = metadata.py();
        if !metadata.hasattr(intern!(py, "published_at"))? {
            let kind = metadata.get_type();
            return Err(PyTypeError::new_err(format!("metadata must be a VideoMetadata, not {kind}")));
        }
        let text = |name: &str| metadata.getattr(name)?.extract::<Option<String>>();
        let missing = |known: &mut Option<String>, name: &str| {
            if known.is_none() {
                *known = text(name)?;
            }
            PyResult::Ok(())
        };
        missing(&mut transcript.title, "title")?;
        missing(&mut transcript.author, "author")?;
        if transcript.duration_ms.is_none() {
            let duration: Option<f64> = options::extract(&metadata.getattr(intern!(py, "duration"))?)?;
            transcript.duration_ms = duration.map(|duration| millis(duration, "duration")).transpose()?;
        }
        let time = metadata.getattr(intern!(py, "published_at"))?;
        if !time.is_none() {
            let time = py.import(CLASSES)?.call_method1("_to_millis", (time,))?;
            read.published_at = Some(Timestamp::from_millis(time.extract()?));
        }
        read.live = text("live")?.map(|name| live_status(&name)).transpose()?;
        (read.author_id, read.author_url) = (text("author_id")?, text("author_url")?);
        (read.thumbnail_url, read.description) = (text("thumbnail_url")?, text("description")?);
    }
    if let Some(chapters) = chapters {
        read.chapters = read_chapters(chapters)?;
        read.chapters.sort_by_key(|chapter| chapter.start_ms);
    }
    if let Some(object) = metadata.or(chapters) {
        read.check().map_err(|error| core_exception(object.py(), &error))?;
    }
    Ok(VideoDetails { metadata: read, tracks: Vec::new() })
}

fn live_status(name: &str) -> PyResult<LiveStatus> {
    LiveStatus::from_name(name).ok_or_else(|| {
        let names = LiveStatus::ALL.map(LiveStatus::as_str).join(", ");
        PyValueError::new_err(format!("live must be one of {names}, not {name:?}"))
    })
}

fn read_chapters(chapters: &Bound<'_, PyAny>) -> PyResult<Vec<Chapter>> {
    // One more than the limit, which the check reports.
    let items = chapters.try_iter()?.take(CHAPTERS_MAX + 1);
    let chapter = |item: PyResult<Bound<'_, PyAny>>| {
        let (title, start): (String, f64) = options::extract(&item?)?;
        Ok(Chapter { title, start_ms: millis(start, "start")? })
    };
    items.map(chapter).collect()
}
