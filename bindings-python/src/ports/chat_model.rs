//! A Python object as the model that answers questions.

use std::{fmt, sync::Arc};

use async_trait::async_trait;
use pyo3::{
    exceptions::{PyTypeError, PyValueError},
    prelude::*,
    types::{PyDict, PyList, PyTuple},
};
use transcript_core::{
    Error, Result,
    chat::{ChatModel, ChatReply, ChatRequest, Deltas},
};

use super::call::Asked;
use crate::{ends::attached, raised};

/// The tokens that a model takes which does not say.
const CONTEXT_TOKENS: u32 = 32_000;

/// A Python object with a method `complete(messages, tokens_max)`, and perhaps `context_tokens`.
pub(crate) struct PyChatModel {
    asked: Asked,
    context_tokens: u32,
}

impl fmt::Debug for PyChatModel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PyChatModel").field("context_tokens", &self.context_tokens).finish_non_exhaustive()
    }
}

impl PyChatModel {
    /// Reads what the model is.
    ///
    /// # Errors
    /// `TypeError` or `ValueError`, saying what it lacks.
    pub(crate) fn new(object: Bound<'_, PyAny>) -> PyResult<Self> {
        if !object.getattr("complete").is_ok_and(|method| method.is_callable()) {
            return Err(PyTypeError::new_err(
                "a chat model must have a method complete(messages, tokens_max)",
            ));
        }
        let context_tokens = match object.getattr("context_tokens") {
            Ok(tokens) => tokens.extract::<u32>()?,
            Err(_) => CONTEXT_TOKENS,
        };
        if context_tokens == 0 {
            return Err(PyValueError::new_err("context_tokens must be more than 0"));
        }
        Ok(Self { asked: Asked::new(object), context_tokens })
    }
}

#[async_trait]
impl ChatModel for PyChatModel {
    fn context_tokens(&self) -> u32 {
        self.context_tokens
    }

    async fn complete(&self, ask: ChatRequest, deltas: Option<Arc<dyn Deltas>>) -> Result<ChatReply> {
        let (messages, tokens_max) = (ask.messages(), ask.output_tokens_max);
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
        let text = self.asked.call(
            "complete",
            move |py| Ok(arguments(py)?.into_bound(py).cast_into::<PyTuple>()?),
            |given| {
                given.extract::<String>().map_err(|_| {
                    let what = given.get_type();
                    PyTypeError::new_err(format!("a chat model returns a str, not {what}"))
                })
            },
        );
        let text = text.await.map_err(fault)?;
        if let Some(deltas) = deltas {
            deltas.push(&text);
        }
        Ok(ChatReply { text, usage: None })
    }
}

fn fault(error: PyErr) -> Error {
    let read = attached(|py| {
        let message = format!("the chat model raised {error}");
        raised::keep(&message, error.clone_ref(py));
        Error::unavailable(message)
    });
    read.unwrap_or_else(|| Error::unavailable("the program is on its way out"))
}
