//! Lists of videos, page by page.

use pyo3::{exceptions::PyValueError, prelude::*};
use transcript_core::{
    Error, ErrorCause, ErrorKind, Timestamp,
    supplier::{ListPosition, ListedVideo, SupplyError, VideoListPage},
    transcript::LiveStatus,
    video::{ChannelTab, VideoList},
};
use verbatim::{Batch, UnavailableList, Verbatim};

use crate::{
    exceptions::{AttributeValue, BindingError, core_exception, exception_of_reason},
    wording::for_python,
};

/// The canonical address of the list that a text names: a playlist, or a channel with a tab.
///
/// # Errors
/// `InvalidInput` if the text names no list, or one of the other kind; `ValueError` for an unknown tab.
#[pyfunction]
pub(crate) fn _list_address(
    py: Python<'_>,
    link: &str,
    is_channel: bool,
    tab: Option<&str>,
) -> PyResult<String> {
    let list = VideoList::parse(link).map_err(|error| core_exception(py, &error.into()))?;
    let other = match (list.playlist_id(), list.query()) {
        (Some(_), _) => is_channel.then_some("this is a playlist: read it with playlist()"),
        (None, Some(_)) => Some("this is a search: read it with youtube_search()"),
        (None, None) => (!is_channel).then_some("this is a channel: read it with channel()"),
    };
    if let Some(message) = other {
        return Err(core_exception(py, &Error::invalid(message)));
    }
    let Some(name) = tab else { return Ok(list.address()) };
    let tab = ChannelTab::from_name(name).ok_or_else(|| {
        let names = ChannelTab::ALL.map(ChannelTab::as_str).join(", ");
        PyValueError::new_err(format!("tab must be one of {names}, not {name:?}"))
    })?;
    Ok(list.with_tab(tab).address())
}

/// The canonical address of the search for these words.
///
/// # Errors
/// `InvalidInput` without words, or if there are too many.
#[pyfunction]
pub(crate) fn _search_address(py: Python<'_>, words: &str) -> PyResult<String> {
    let list = VideoList::search(words);
    list.map(|list| list.address()).map_err(|error| core_exception(py, &error.into()))
}

/// A list that was not read, and its address.
#[derive(Debug)]
pub(crate) struct ListFailure {
    error: Error,
    address: String,
}

/// Reads the page at a position of the list with this canonical address.
pub(crate) async fn read_page(
    verbatim: &Verbatim,
    waits: &Batch,
    address: String,
    since_ms: Option<i64>,
    position: Option<String>,
) -> Result<VideoListPage, BindingError> {
    let read = async {
        let list = VideoList::parse(&address)?;
        let too_long = || Error::invalid("the position of the page is too long");
        let position = position.map(|text| ListPosition::new(text).ok_or_else(too_long)).transpose()?;
        let since = since_ms.map(Timestamp::from_millis);
        waits.video_page(verbatim, &list, position.as_ref(), since).await
    };
    read.await.map_err(|error| BindingError::List(Box::new(ListFailure { error, address })))
}

/// A page as `(title, stated number, number of hidden videos, position of the next page or None, videos)`.
///
/// A video is `(id, address, title, author, seconds, (earliest, latest), live, members only, unavailable)`.
pub(crate) fn page_object(py: Python<'_>, page: VideoListPage) -> PyResult<Py<PyAny>> {
    let videos: Vec<_> = page.videos.into_iter().map(video_tuple).collect();
    let next = page.next.as_ref().map(ListPosition::as_str);
    let page = (page.title, page.stated_count, page.hidden_count, next, videos);
    Ok(page.into_pyobject(py)?.into_any().unbind())
}

type VideoTuple = (
    String,
    String,
    Option<String>,
    Option<String>,
    Option<u64>,
    Option<(i64, i64)>,
    Option<&'static str>,
    bool,
    bool,
);

fn video_tuple(listed: ListedVideo) -> VideoTuple {
    (
        listed.video.id().to_owned(),
        listed.video.address(),
        listed.title,
        listed.author,
        listed.duration_s,
        listed.published.map(|range| (range.earliest.as_millis(), range.latest.as_millis())),
        listed.live.map(LiveStatus::as_str),
        listed.members_only,
        listed.is_unavailable,
    )
}

/// The exception of a list that was not read. The Python function selects the class.
pub(crate) fn list_exception(py: Python<'_>, failure: &ListFailure) -> PyErr {
    let ListFailure { error, address } = failure;
    let cause = error.cause().map(ErrorCause::error);
    let absence = cause.and_then(|cause| cause.downcast_ref::<UnavailableList>());
    let fault = cause.and_then(|cause| cause.downcast_ref::<SupplyError>());
    let reason = match (absence, fault, error.kind()) {
        (Some(absence), ..) => absence.reason().as_str(),
        (None, Some(fault), ErrorKind::Unavailable) => fault.reason().as_str(),
        _ => return core_exception(py, error),
    };
    let retry_after = error.retry_after().map(|wait| AttributeValue::Seconds(wait.as_secs_f64()));
    let attributes = [
        ("reason", Some(AttributeValue::Text(reason))),
        ("url", Some(AttributeValue::Text(address))),
        ("retry_after", retry_after),
    ];
    exception_of_reason(py, "list_unavailable", &for_python(error.message()), attributes)
}
