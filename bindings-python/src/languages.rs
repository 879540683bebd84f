//! The argument `lang`.

use pyo3::{
    exceptions::{PyTypeError, PyValueError},
    prelude::*,
    types::PyString,
};
use transcript_core::{Error, transcript::LanguageTag};
use verbatim::LANGUAGES_MAX;

use crate::exceptions::core_exception;

/// Languages in order of preference: one, or several.
pub(crate) struct Languages(Vec<String>);

impl FromPyObject<'_, '_> for Languages {
    type Error = PyErr;

    fn extract(value: Borrowed<'_, '_, PyAny>) -> PyResult<Self> {
        if let Ok(one) = value.cast::<PyString>() {
            return Ok(Self(vec![one.to_str()?.to_owned()]));
        }
        value.extract().map(Self).map_err(|_| {
            let kind = value.get_type();
            PyTypeError::new_err(format!("lang must be a language, a list of languages, or None, not {kind}"))
        })
    }
}

impl Languages {
    /// The languages in order.
    ///
    /// # Errors
    /// `ValueError` if there is none.
    pub(crate) fn into_list(self) -> PyResult<Vec<String>> {
        if self.0.is_empty() {
            return Err(PyValueError::new_err("lang must be a language, a list of at least one, or None"));
        }
        Ok(self.0)
    }

    /// The languages of a lookup in order; none for its default track.
    ///
    /// # Errors
    /// `ValueError` if there is none, `InvalidInput` for a malformed one.
    pub(crate) fn parse_tags(py: Python<'_>, languages: Option<Self>) -> PyResult<Vec<LanguageTag>> {
        let languages = languages.map_or(Ok(Vec::new()), Self::into_list)?;
        if languages.len() > LANGUAGES_MAX {
            let message = format!("lang: it has {} languages; at most {LANGUAGES_MAX}", languages.len());
            return Err(core_exception(py, &Error::invalid(message)));
        }
        let parse = |tag: &String| LanguageTag::parse(tag).map_err(|error| core_exception(py, &error));
        languages.iter().map(parse).collect()
    }
}
