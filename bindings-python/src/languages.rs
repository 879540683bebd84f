//! The argument `lang`.

use pyo3::{
    exceptions::{PyTypeError, PyValueError},
    prelude::*,
    types::PyString,
};

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
}
