//! Search in the whole archive of a server, or of the service in the process.

use pyo3::prelude::*;
use transcript_core::search::SearchParams;

use crate::{archive_search, connection::Connection, pending::PendingCall};

/// One page of a search: its JSON as Python objects, and the metadata of the reply.
#[pyfunction]
#[allow(clippy::too_many_arguments, reason = "they are keywords in Python")]
pub(crate) fn _search_service(
    py: Python<'_>,
    connection: &Bound<'_, Connection>,
    query: String,
    language: Option<String>,
    platform: Option<String>,
    sort: &str,
    limit: u32,
    cursor: Option<String>,
) -> PyResult<PendingCall> {
    let params = archive_search::params(py, query, language, platform, sort, limit, cursor)?;
    let params = SearchParams { with_segments: false, ..params };
    let connection = connection.get();
    connection
        .json(py, connection.caller(), |service, caller| async move { service.search(&caller, params).await })
}
