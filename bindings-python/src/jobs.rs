//! Jobs of a server, and their webhooks.

use std::{sync::Arc, time::Duration};

use pyo3::{exceptions::PyValueError, prelude::*};
use transcript_core::{
    Clock as _, Error,
    accounts::webhooks::verify_signature,
    headers::VERBATIM_SIGNATURE,
    wire::v1::{JobRequest, JobResult, JobResults, VideoTranscript},
};
use verbatim::{
    SystemClock,
    service::{SERVICE_SUPPLIER, ServiceError, ServiceErrorKind},
};

use crate::{
    connection::json_object,
    exceptions::{core_exception, exception},
    options,
    transcript::Transcript,
};

/// The request of a new job.
///
/// # Errors
/// `InvalidInput`.
pub(crate) fn read_request(py: Python<'_>, json: &str) -> PyResult<JobRequest> {
    serde_json::from_str(json).map_err(|error| core_exception(py, &Error::invalid(error.to_string())))
}

/// A page of results, with their transcripts.
pub(crate) struct ReadResults {
    next: Option<String>,
    items: Vec<(JobResult, Option<Transcript>)>,
}

/// Reads the transcripts of a page.
///
/// # Errors
/// [`ServiceErrorKind::Unreadable`] for a transcript that violates the API.
pub(crate) fn read_results(page: JobResults) -> Result<ReadResults, ServiceError> {
    let items = page.items.into_iter().map(|mut item| {
        let transcript = item.take_transcript().map(read_transcript).transpose()?;
        Ok((item, transcript))
    });
    Ok(ReadResults { next: page.next_cursor, items: items.collect::<Result<_, ServiceError>>()? })
}

fn read_transcript(body: VideoTranscript) -> Result<Transcript, ServiceError> {
    let details = Arc::new(body.details());
    let transcript = body.into_transcript(SERVICE_SUPPLIER).map_err(|problem| {
        let message = format!("The server's response is invalid: {problem}.");
        ServiceError::new(ServiceErrorKind::Unreadable, message)
    })?;
    Ok(Transcript::from_core(transcript, details, false))
}

/// A page as `([(item without its transcript, transcript or None)], cursor of the next page or None)`.
pub(crate) fn results_object(py: Python<'_>, page: ReadResults) -> PyResult<Py<PyAny>> {
    let items = page.items.into_iter().map(|(item, transcript)| {
        let transcript = transcript.map(|transcript| Bound::new(py, transcript)).transpose()?;
        PyResult::Ok((json_object(py, &item)?, transcript))
    });
    Ok((items.collect::<PyResult<Vec<_>>>()?, page.next).into_pyobject(py)?.into_any().unbind())
}

/// Verifies that one of the secrets signed the body of a webhook, at most `tolerance` seconds before or after now.
///
/// # Errors
/// `InvalidSignature` if the signature is not accepted; `ValueError` for a tolerance that is no number of seconds.
#[pyfunction]
pub(crate) fn _verify_webhook(
    py: Python<'_>,
    body: &[u8],
    header: Option<&str>,
    secrets: Vec<String>,
    #[pyo3(from_py_with = options::extract::<f64>)] tolerance: f64,
) -> PyResult<()> {
    let tolerance = Duration::try_from_secs_f64(tolerance)
        .map_err(|_| PyValueError::new_err("tolerance must be a number of seconds from 0"))?;
    verify_signature(header, body, &secrets, SystemClock::default().now(), tolerance)
        .map_err(|error| exception(py, "InvalidSignature", &error.message(VERBATIM_SIGNATURE), []))
}
