//! YouTube's pages, for the package that stands in for youtube-transcript-api.

use std::{
    path::PathBuf,
    sync::{Mutex, PoisonError},
};

use pyo3::{
    prelude::*,
    types::{PyBytes, PyFloat, PyList, PyString},
};
use transcript_core::captions::plain_cues;
use verbatim::{PageAsk, PageHeader, PagesOptions};

use crate::{fault::of_core, pending::drive, runtime::OfProcess};

/// A client of YouTube's pages.
#[pyclass(frozen, module = "verbatim._native")]
pub(crate) struct Pages {
    options: PagesOptions,
    /// Locked for moments only, by who holds the interpreter; a forked child has its own.
    pages: Mutex<Option<OfProcess<verbatim::Pages>>>,
}

#[pymethods]
impl Pages {
    #[new]
    fn new(proxy: Option<String>, ca_file: Option<PathBuf>) -> Self {
        Self { options: PagesOptions { proxy, ca_file, timeout: None }, pages: Mutex::new(None) }
    }

    /// Asks once: `(status, body, seconds that a 429 or 5xx wants)`. Soon after the text `until` the body may end.
    ///
    /// It waits for the answer, and drives the connection meanwhile: there is nothing else that this thread could do.
    #[pyo3(signature = (url, headers, json, until=None))]
    fn ask<'py>(
        &self,
        py: Python<'py>,
        url: String,
        headers: Vec<(String, String)>,
        json: Option<String>,
        until: Option<String>,
    ) -> PyResult<(u16, Bound<'py, PyBytes>, Option<f64>)> {
        let pages = self.pages(py)?;
        let headers = headers.into_iter().map(|(name, value)| PageHeader { name, value }).collect();
        let ask = PageAsk { url, headers, json, until };
        let page = drive(py, async { Ok(pages.ask(ask).await?) })?;
        Ok((page.status, PyBytes::new(py, &page.body), page.retry_after.map(|wait| wait.as_secs_f64())))
    }
}

impl Pages {
    fn pages(&self, py: Python<'_>) -> PyResult<verbatim::Pages> {
        let mut pages = self.pages.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(pages) = pages.as_ref().and_then(OfProcess::get) {
            return Ok(pages.clone());
        }
        let made = verbatim::Pages::new(self.options.clone()).map_err(|error| of_core(py, &error))?;
        *pages = Some(OfProcess::new(made.clone()));
        Ok(made)
    }
}

/// The cues of YouTube's first XML format as they are written: `(texts, starts, durations, those of the texts, by their
/// place, that have markup or entities of HTML's)`. None where an XML parser must read them.
#[pyfunction]
pub(crate) fn _plain_cues(py: Python<'_>, body: &[u8]) -> PyResult<Option<Py<PyAny>>> {
    let Some(cues) = py.detach(|| plain_cues(body)) else { return Ok(None) };
    let texts = PyList::new(py, cues.iter().map(|cue| PyString::new(py, &cue.text)))?;
    let starts = PyList::new(py, cues.iter().map(|cue| PyFloat::new(py, cue.start)))?;
    let durations = PyList::new(py, cues.iter().map(|cue| PyFloat::new(py, cue.duration)))?;
    let marked = cues.iter().enumerate().filter(|(_, cue)| cue.text.contains(['&', '<']));
    let marked = PyList::new(py, marked.map(|(place, _)| place).collect::<Vec<_>>())?;
    Ok(Some((texts, starts, durations, marked).into_pyobject(py)?.into_any().unbind()))
}
