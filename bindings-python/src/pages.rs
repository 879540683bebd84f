//! Pages of YouTube, for the drop-in replacement of youtube-transcript-api.

use std::{
    path::PathBuf,
    sync::{Mutex, PoisonError},
};

use pyo3::{
    prelude::*,
    types::{PyBytes, PyFloat, PyList, PyString},
};
use transcript_core::captions::parse_raw_timedtext;
use verbatim::{PageClientOptions, PageFetch, PageHeader};

use crate::{exceptions::core_exception, pending::block_on, runtime::PerProcess};

/// A client for pages of YouTube.
#[pyclass(frozen, module = "verbatim_transcripts._native")]
pub(crate) struct PageTransport {
    options: PageClientOptions,
    /// Locked briefly and only while attached to the interpreter; a forked child creates its own.
    pages: Mutex<Option<PerProcess<verbatim::PageClient>>>,
}

#[pymethods]
impl PageTransport {
    #[new]
    fn new(proxy: Option<String>, ca_file: Option<PathBuf>) -> Self {
        Self { options: PageClientOptions { proxy, ca_file, timeout: None }, pages: Mutex::new(None) }
    }

    /// Sends one request: `(status, body, retry-after seconds of a 429 or 5xx)`. The body may end soon after the text
    /// `until`.
    ///
    /// The call drives the connection on this thread, which would only wait otherwise.
    #[pyo3(signature = (url, headers, json, until=None))]
    fn fetch<'py>(
        &self,
        py: Python<'py>,
        url: String,
        headers: Vec<(String, String)>,
        json: Option<String>,
        until: Option<String>,
    ) -> PyResult<(u16, Bound<'py, PyBytes>, Option<f64>)> {
        let pages = self.pages(py)?;
        let headers = headers.into_iter().map(|(name, value)| PageHeader { name, value }).collect();
        let request = PageFetch { url, headers, json, until };
        let page = block_on(py, async { Ok(pages.fetch(request).await?) })?;
        Ok((page.status, PyBytes::new(py, &page.body), page.retry_after.map(|wait| wait.as_secs_f64())))
    }
}

impl PageTransport {
    fn pages(&self, py: Python<'_>) -> PyResult<verbatim::PageClient> {
        let mut pages = self.pages.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(pages) = pages.as_ref().and_then(PerProcess::get) {
            return Ok(pages.clone());
        }
        let created =
            verbatim::PageClient::new(self.options.clone()).map_err(|error| core_exception(py, &error))?;
        *pages = Some(PerProcess::new(created.clone()));
        Ok(created)
    }
}

/// The cues of YouTube's first XML format, still escaped: `(texts, starts, durations, indexes)`.
///
/// The indexes are those of texts with markup or HTML entities. `None` if the body needs an XML parser.
#[pyfunction]
pub(crate) fn _parse_raw_timedtext(py: Python<'_>, body: &[u8]) -> PyResult<Option<Py<PyAny>>> {
    let Some(cues) = py.detach(|| parse_raw_timedtext(body)) else { return Ok(None) };
    let texts = PyList::new(py, cues.iter().map(|cue| PyString::new(py, &cue.text)))?;
    let starts = PyList::new(py, cues.iter().map(|cue| PyFloat::new(py, cue.start)))?;
    let durations = PyList::new(py, cues.iter().map(|cue| PyFloat::new(py, cue.duration)))?;
    let escaped = cues.iter().enumerate().filter(|(_, cue)| cue.text.contains(['&', '<']));
    let escaped = PyList::new(py, escaped.map(|(index, _)| index).collect::<Vec<_>>())?;
    Ok(Some((texts, starts, durations, escaped).into_pyobject(py)?.into_any().unbind()))
}
