//! A Python object as a chat model.

use std::sync::Arc;

use async_trait::async_trait;
use pyo3::{
    exceptions::{PyTypeError, PyValueError},
    prelude::*,
    types::{PyDict, PyList, PyTuple},
};
use transcript_core::{
    Result,
    chat::{CONTEXT_TOKENS_DEFAULT, ChatModel, DeltaSink, ModelReply, ModelRequest},
};

use super::{
    call::{PyTarget, unavailable},
    has_method,
};
use crate::components::Components;

/// A Python object with a method `complete(messages, tokens_max)` and an optional `context_tokens`.
pub(crate) struct PyChatModel {
    target: PyTarget,
    context_tokens: u32,
}

transcript_core::debug_fields!(PyChatModel { context_tokens });

impl PyChatModel {
    /// Reads the attributes of the model.
    ///
    /// # Errors
    /// `TypeError` or `ValueError`, naming the missing or invalid attribute.
    pub(crate) fn new(object: Bound<'_, PyAny>, components: &mut Components) -> PyResult<Self> {
        if !has_method(&object, "complete") {
            return Err(PyTypeError::new_err(
                "a chat model must have a method complete(messages, tokens_max)",
            ));
        }
        let context_tokens = match object.getattr("context_tokens") {
            Ok(tokens) => tokens.extract::<u32>()?,
            Err(_) => CONTEXT_TOKENS_DEFAULT,
        };
        if context_tokens == 0 {
            return Err(PyValueError::new_err("context_tokens must be more than 0"));
        }
        Ok(Self { target: PyTarget::new(object, components), context_tokens })
    }
}

#[async_trait]
impl ChatModel for PyChatModel {
    fn context_tokens(&self) -> u32 {
        self.context_tokens
    }

    async fn complete(
        &self,
        request: ModelRequest,
        deltas: Option<Arc<dyn DeltaSink>>,
    ) -> Result<ModelReply> {
        let (messages, tokens_max) = (request.messages(), request.output_tokens_max);
        let arguments = move |py: Python<'_>| {
            let list = PyList::empty(py);
            for message in messages {
                let dict = PyDict::new(py);
                dict.set_item("role", message.role.as_str())?;
                dict.set_item("content", message.content)?;
                list.append(dict)?;
            }
            PyResult::Ok((list, tokens_max).into_pyobject(py)?.into_any().unbind())
        };
        let text = self.target.call(
            "complete",
            move |py| Ok(arguments(py)?.into_bound(py).cast_into::<PyTuple>()?),
            |value| {
                value.extract::<String>().map_err(|_| {
                    let kind = value.get_type();
                    PyTypeError::new_err(format!("a chat model must return a str, not {kind}"))
                })
            },
        );
        let text = text.await.map_err(|error| unavailable("chat model", "complete", error))?;
        if let Some(deltas) = deltas {
            deltas.push(&text);
        }
        Ok(ModelReply { text, usage: None })
    }
}
