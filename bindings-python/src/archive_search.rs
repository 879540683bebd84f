//! Search in the whole archive.

use pyo3::{exceptions::PyValueError, prelude::*};
use transcript_core::{
    search::{self, SearchPage, SearchSort},
    transcript::LanguageTag,
    video::Platform,
};

use crate::{exceptions::core_exception, segment::seconds, transcript::Transcript};

/// The checked parameters of a search, for all of its pages.
#[pyclass(frozen, module = "verbatim_transcripts._native")]
pub(crate) struct SearchParams(search::SearchParams);

impl SearchParams {
    /// The parameters of the page at a cursor; `None`: the first one.
    pub(crate) fn at(&self, cursor: Option<String>) -> search::SearchParams {
        search::SearchParams { cursor, ..self.0.clone() }
    }
}

#[pymethods]
impl SearchParams {
    /// Checks the parameters.
    ///
    /// # Errors
    /// `InvalidInput` for a malformed language, `ValueError` for an unknown platform or order.
    #[new]
    fn new(
        py: Python<'_>,
        query: String,
        language: Option<String>,
        platform: Option<String>,
        sort: &str,
        limit: u32,
    ) -> PyResult<Self> {
        let language = language.as_deref().map(LanguageTag::parse).transpose();
        let platform_of = |name: String| {
            let names = || Platform::input_names().join(", ");
            Platform::parse(&name).ok_or_else(|| {
                PyValueError::new_err(format!("platform must be one of {}, not {name:?}", names()))
            })
        };
        Ok(Self(search::SearchParams {
            query,
            language: language.map_err(|error| core_exception(py, &error))?,
            platform: platform.map(platform_of).transpose()?,
            sort: SearchSort::from_wire(sort).ok_or_else(|| {
                PyValueError::new_err(format!("sort must be 'relevance' or 'date', not {sort:?}"))
            })?,
            limit,
            ..search::SearchParams::default()
        }))
    }
}

/// A page as `([(transcript, score, [(start, end, text, [(start, end)], url)])], total, whether it is exact, cursor of
/// the next page or None, suggestion or None)`.
pub(crate) fn page_object(py: Python<'_>, page: &SearchPage) -> PyResult<Py<PyAny>> {
    let hits: PyResult<Vec<_>> = page
        .hits
        .iter()
        .map(|hit| {
            let video = &hit.stored.transcript.video;
            let transcript = Bound::new(py, Transcript::from_stored(&hit.stored, true))?;
            let moments: Vec<_> = hit
                .moments
                .iter()
                .map(|moment| {
                    let (start, end) = (seconds(moment.start_ms), seconds(moment.end_ms));
                    let url = video.address_at(moment.start_ms / 1_000);
                    (start, end, moment.text.clone(), moment.matches.clone(), url)
                })
                .collect();
            (transcript, hit.score, moments).into_pyobject(py)
        })
        .collect();
    let total = page.total;
    let parts = (hits?, total.value, total.is_exact, page.next.clone(), page.suggestion.clone());
    Ok(parts.into_pyobject(py)?.into_any().unbind())
}
