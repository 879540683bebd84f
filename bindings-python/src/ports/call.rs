//! Asking a Python object, whose methods may be plain or async.
//!
//! A plain method runs on a thread of the package's (`verbatim/_calls.py`), since it may block; what an async one
//! returns is awaited in the package's own event loop: who asks may have no loop, or one that ends before others who
//! wait for the same answer. Both are threads of Python's, so that the interpreter can leave them at its exit.
//! Dropping the future cancels what is awaited.

use std::sync::{Arc, Mutex, PoisonError};

use pyo3::{exceptions::PyRuntimeError, prelude::*, types::PyTuple};
use tokio::sync::oneshot;

use crate::ends::attached;

/// A Python object that is asked.
#[derive(Clone)]
pub(crate) struct Asked {
    object: Arc<Py<PyAny>>,
}

/// Reads an answer and tells it.
type Tell = Box<dyn FnOnce(Result<&Bound<'_, PyAny>, PyErr>) + Send>;

/// Called by the package's threads with what a method returned, or raised.
#[pyclass(frozen, module = "verbatim._native")]
struct Ended {
    tell: Mutex<Option<Tell>>,
}

#[pymethods]
impl Ended {
    fn __call__(&self, value: &Bound<'_, PyAny>, error: &Bound<'_, PyAny>) {
        if let Some(tell) = self.tell.lock().unwrap_or_else(PoisonError::into_inner).take() {
            match error.is_none() {
                true => tell(Ok(value)),
                false => tell(Err(PyErr::from_value(error.clone()))),
            }
        }
    }
}

/// A call that is under way; dropping it cancels it.
struct Calling(Option<Py<PyAny>>);

impl Drop for Calling {
    fn drop(&mut self) {
        if let Some(call) = self.0.take() {
            // Whatever is left of it ends with the interpreter.
            let _gone = attached(|py| call.call_method0(py, "cancel").map(drop));
        }
    }
}

fn on_its_way_out() -> PyErr {
    PyRuntimeError::new_err("the interpreter is on its way out")
}

impl Asked {
    pub(crate) fn new(object: Bound<'_, PyAny>) -> Self {
        Self { object: Arc::new(object.unbind()) }
    }

    /// Calls a method and reads its answer.
    ///
    /// # Errors
    /// Whatever it raised, or `read` did.
    pub(crate) async fn call<T: Send + 'static>(
        &self,
        method: &'static str,
        arguments: impl for<'py> FnOnce(Python<'py>) -> PyResult<Bound<'py, PyTuple>> + Send + 'static,
        read: impl FnOnce(&Bound<'_, PyAny>) -> PyResult<T> + Send + 'static,
    ) -> PyResult<T> {
        let object = Arc::clone(&self.object);
        let (tell, told) = oneshot::channel();
        let tell = Box::new(move |ended: Result<&Bound<'_, PyAny>, PyErr>| {
            // Whoever asked may have left.
            let _ = tell.send(ended.and_then(read));
        });
        let begin = move || {
            let begun = attached(|py| {
                let method = object.bind(py).getattr(method)?;
                let ended = Ended { tell: Mutex::new(Some(tell)) };
                let calls = py.import("verbatim._calls")?;
                calls.call_method1("begin", (method, arguments(py)?, ended)).map(Bound::unbind)
            });
            begun.unwrap_or_else(|| Err(on_its_way_out()))
        };
        // The interpreter may be held for long: nobody else waits for it meanwhile.
        let begun = tokio::task::spawn_blocking(begin).await;
        let mut calling = Calling(Some(begun.map_err(|_| PyRuntimeError::new_err("the call broke down"))??));
        let answer = told.await.unwrap_or_else(|_| Err(on_its_way_out()));
        // It has ended, so nothing is left to be cancelled.
        calling.0 = None;
        answer
    }
}
