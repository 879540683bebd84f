//! A Python object as an embedding model.

use async_trait::async_trait;
use pyo3::{exceptions::PyTypeError, prelude::*};
use transcript_core::{
    Result,
    chat::{EmbedPurpose, Embedder},
};

use super::call::{PyTarget, unavailable};
use crate::components::Components;

/// A Python object with a method `embed(texts, purpose)` and an attribute `model`.
pub(crate) struct PyEmbedder {
    target: PyTarget,
    model: String,
}

transcript_core::debug_fields!(PyEmbedder { model });

impl PyEmbedder {
    /// Reads the attributes of the model.
    ///
    /// # Errors
    /// `TypeError`, naming the missing attribute.
    pub(crate) fn new(object: Bound<'_, PyAny>, components: &mut Components) -> PyResult<Self> {
        let model = object.getattr("model").and_then(|model| model.extract::<String>());
        let Some(model) = model.ok().filter(|model| !model.trim().is_empty()) else {
            return Err(PyTypeError::new_err(
                "an embedding model must have an attribute model: its name and version, a str",
            ));
        };
        Ok(Self { target: PyTarget::new(object, components), model })
    }
}

#[async_trait]
impl Embedder for PyEmbedder {
    fn model(&self) -> &str {
        &self.model
    }

    async fn embed(&self, texts: Vec<String>, purpose: EmbedPurpose) -> Result<Vec<Vec<f32>>> {
        let vectors =
            self.target.call("embed", move |py| (texts, purpose.as_str()).into_pyobject(py), vectors);
        vectors.await.map_err(|error| unavailable("embedding model", "embed", error))
    }
}

fn to_list<'py>(value: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    if value.hasattr("tolist")? { value.call_method0("tolist") } else { Ok(value.clone()) }
}

/// Vectors as lists of numbers, or as what has a method `tolist`, such as an array of `NumPy`.
fn vectors(value: &Bound<'_, PyAny>) -> PyResult<Vec<Vec<f32>>> {
    let wrong = || {
        let kind = value.get_type();
        PyTypeError::new_err(format!("an embedding model must return a list of lists of numbers, not {kind}"))
    };
    let list = to_list(value)?;
    if let Ok(vectors) = list.extract::<Vec<Vec<f32>>>() {
        return Ok(vectors);
    }
    list.try_iter()
        .map_err(|_| wrong())?
        .map(|vector| to_list(&vector?)?.extract::<Vec<f32>>().map_err(|_| wrong()))
        .collect()
}
