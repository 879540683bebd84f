//! Calls of Python methods, plain or async.
//!
//! A plain method runs on a thread of `verbatim_transcripts/_callbacks.py`, because it may block. The awaitable of an
//! async method runs in the package's event loop: the caller may have no event loop, or one that stops while others
//! wait for the same result. Both are Python daemon threads, which the interpreter leaves behind at its exit.
//! Dropping the future cancels the awaitable.

use std::sync::{Arc, Mutex, PoisonError};

use pyo3::{exceptions::PyRuntimeError, prelude::*, types::PyTuple};
use tokio::sync::oneshot;
use transcript_core::Error;

use crate::{
    components::{ComponentSlot, Components},
    events, exception_cause,
    exceptions::interrupted,
    lifecycle::attached,
};

/// A Python object whose methods are called.
#[derive(Clone)]
pub(crate) struct PyTarget {
    object: Arc<ComponentSlot>,
}

/// Reads the result of a method and sends it.
type CallbackSender = Box<dyn FnOnce(Result<&Bound<'_, PyAny>, PyErr>) + Send>;

/// Callback that receives the value or the exception of a method.
#[pyclass(frozen, module = "verbatim_transcripts._native")]
struct CallFinished {
    sender: Mutex<Option<CallbackSender>>,
}

#[pymethods]
impl CallFinished {
    fn __call__(&self, value: &Bound<'_, PyAny>, error: &Bound<'_, PyAny>) {
        if let Some(sender) = self.sender.lock().unwrap_or_else(PoisonError::into_inner).take() {
            match error.is_none() {
                true => sender(Ok(value)),
                false => sender(Err(PyErr::from_value(error.clone()))),
            }
        }
    }
}

/// A running call; drop cancels it.
struct CallHandle(Option<Py<PyAny>>);

impl Drop for CallHandle {
    fn drop(&mut self) {
        if let Some(call) = self.0.take() {
            // Without an interpreter there is nothing to cancel.
            let _exiting = attached(|py| call.call_method0(py, "cancel").map(drop));
        }
    }
}

fn exiting_error() -> PyErr {
    PyRuntimeError::new_err("the interpreter is exiting")
}

fn deleted_error() -> PyErr {
    PyRuntimeError::new_err("the object was deleted with its owner")
}

/// The exception of a model's method as an error of the service; it is also reported as an event.
pub(super) fn unavailable(part: &'static str, method: &'static str, error: PyErr) -> Error {
    let error = attached(|py| {
        let message = format!("the {part} raised {error}");
        events::record_exception(py, part, method, &error);
        Error::unavailable(message).with_cause(Some(exception_cause::to_cause(py, &error)))
    });
    error.unwrap_or_else(|| Error::unavailable("the interpreter is exiting"))
}

impl PyTarget {
    pub(crate) fn new(object: Bound<'_, PyAny>, components: &mut Components) -> Self {
        Self { object: ComponentSlot::new(object, components) }
    }

    /// Calls a method and reads its result.
    ///
    /// # Errors
    /// Its exception, or an error of `read`.
    pub(crate) async fn call<T: Send + 'static>(
        &self,
        method: &'static str,
        arguments: impl for<'py> FnOnce(Python<'py>) -> PyResult<Bound<'py, PyTuple>> + Send + 'static,
        read: impl FnOnce(&Bound<'_, PyAny>) -> PyResult<T> + Send + 'static,
    ) -> PyResult<T> {
        let object = Arc::clone(&self.object);
        let (sender, receiver) = oneshot::channel();
        let sender = Box::new(move |result: Result<&Bound<'_, PyAny>, PyErr>| {
            // The receiver is gone if the caller was cancelled.
            let _ = sender.send(result.and_then(read));
        });
        let start_call = move || {
            let started = attached(|py| -> PyResult<CallHandle> {
                let method = object.get(py).ok_or_else(deleted_error)?.bind(py).getattr(method)?;
                let on_done = CallFinished { sender: Mutex::new(Some(sender)) };
                let callbacks = py.import("verbatim_transcripts._callbacks")?;
                let call = callbacks.call_method1("start", (method, arguments(py)?, on_done))?;
                // Made here: a caller that leaves before it receives the call cancels it, too.
                Ok(CallHandle(Some(call.unbind())))
            });
            started.unwrap_or_else(|| Err(exiting_error()))
        };
        // Attaching can block for long: not on a runtime thread.
        let started = tokio::task::spawn_blocking(start_call).await;
        let mut handle = started.map_err(|_| interrupted())??;
        let result = receiver.await.unwrap_or_else(|_| Err(exiting_error()));
        // The call has ended: disarm the cancellation.
        handle.0 = None;
        result
    }
}
