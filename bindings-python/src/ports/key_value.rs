//! Adapter from a Python object with three methods to an archive.

use async_trait::async_trait;
use pyo3::{
    exceptions::PyTypeError,
    prelude::*,
    types::{PyBytes, PyDict, PyTuple},
};
use transcript_core::{
    Result,
    archive::{KeyValueChange, KeyValueStore},
};

use super::{call::PyTarget, store::to_error};
use crate::components::Components;

/// A Python object with the methods `get`, `write` and `list`.
#[derive(derive_more::Debug)]
#[debug("PyKeyValueStore")]
pub(crate) struct PyKeyValueStore(PyTarget);

impl PyKeyValueStore {
    pub(crate) fn new(object: Bound<'_, PyAny>, components: &mut Components) -> Self {
        Self(PyTarget::new(object, components))
    }

    async fn call<T: Send + 'static>(
        &self,
        method: &'static str,
        arguments: impl for<'py> FnOnce(Python<'py>) -> PyResult<Bound<'py, PyTuple>> + Send + 'static,
        read: impl FnOnce(&Bound<'_, PyAny>) -> PyResult<T> + Send + 'static,
    ) -> Result<T> {
        let result = self.0.call(method, arguments, read).await;
        result.map_err(|error| to_error("store", method, error))
    }
}

/// The exception for a result of another type.
fn wrong(method: &str, expected: &str, value: &Bound<'_, PyAny>) -> PyErr {
    PyTypeError::new_err(format!("{method} must return {expected}, not {}", value.get_type()))
}

#[async_trait]
impl KeyValueStore for PyKeyValueStore {
    async fn get(&self, key: &str) -> Result<Option<Vec<u8>>> {
        let key = key.to_owned();
        let read =
            |value: &Bound<'_, PyAny>| value.extract().map_err(|_| wrong("get", "bytes or None", value));
        self.call("get", move |py| PyTuple::new(py, [key]), read).await
    }

    async fn write(&self, changes: Vec<KeyValueChange>) -> Result<()> {
        self.call(
            "write",
            move |py| {
                let dict = PyDict::new(py);
                for KeyValueChange { key, value } in changes {
                    dict.set_item(key, value.map(|value| PyBytes::new(py, &value)))?;
                }
                PyTuple::new(py, [dict])
            },
            |_| Ok(()),
        )
        .await
    }

    async fn list(&self, prefix: &str, after: &str, limit: usize) -> Result<Vec<(String, Vec<u8>)>> {
        let (prefix, after) = (prefix.to_owned(), after.to_owned());
        self.call(
            "list",
            move |py| (prefix, after, limit).into_pyobject(py),
            move |value| {
                let expected = "pairs of a key and its bytes";
                let items = value.try_iter().map_err(|_| wrong("list", expected, value))?;
                let read = |item: PyResult<Bound<'_, PyAny>>| {
                    let item = item?;
                    item.extract().map_err(|_| wrong("list", expected, &item))
                };
                items.take(limit).map(read).collect::<PyResult<Vec<(String, Vec<u8>)>>>()
            },
        )
        .await
    }
}
