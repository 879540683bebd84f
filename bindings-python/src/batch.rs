//! Several pieces of work at once, whose results are taken as they come.

use std::sync::{Arc, Mutex, PoisonError};

use pyo3::{exceptions::PyRuntimeError, prelude::*};
use tokio::{sync, task::AbortHandle};

use crate::{
    fault::Fault,
    pending::{Done, Pending},
    runtime::{self, OfProcess},
};

type Ended = (u64, Done);

/// Work that was begun; all of it ends with this.
struct Begun {
    tasks: Mutex<Vec<AbortHandle>>,
    tell: sync::mpsc::UnboundedSender<Ended>,
    told: Arc<sync::Mutex<sync::mpsc::UnboundedReceiver<Ended>>>,
}

impl Drop for Begun {
    fn drop(&mut self) {
        self.tasks.get_mut().unwrap_or_else(PoisonError::into_inner).iter().for_each(AbortHandle::abort);
    }
}

/// Several pieces of work at once. Dropping it ends those that are under way.
#[pyclass(frozen, module = "verbatim._native")]
pub(crate) struct Batch {
    begun: OfProcess<Begun>,
}

#[pymethods]
impl Batch {
    #[new]
    fn new() -> Self {
        let (tell, told) = sync::mpsc::unbounded_channel();
        let told = Arc::new(sync::Mutex::new(told));
        Self { begun: OfProcess::new(Begun { tasks: Mutex::default(), tell, told }) }
    }

    /// Begins a piece of work under a number.
    fn start(&self, py: Python<'_>, number: u64, pending: &Pending) -> PyResult<()> {
        let begun = self.begun()?;
        let work = pending.take()?;
        let mut ended = Told { tell: begun.tell.clone(), number, done: None };
        let task = runtime::begin(py, async move {
            let ended = &mut ended;
            ended.done = Some(work.await);
        })?;
        let mut tasks = begun.tasks.lock().unwrap_or_else(PoisonError::into_inner);
        // What has ended by itself need not be kept.
        tasks.retain(|task| !task.is_finished());
        tasks.push(task);
        Ok(())
    }

    /// The next result, as `(number, object or None, exception or None)`. Only as many as were begun come.
    fn next(&self) -> PyResult<Pending> {
        let told = Arc::clone(&self.begun()?.told);
        let next = async move { told.lock().await.recv().await.ok_or(Fault::Stopped) };
        Ok(Pending::new(next, |py, (number, done)| {
            let (value, error) = match done(py) {
                Ok(value) => (Some(value), None),
                Err(error) => (None, Some(error.into_value(py))),
            };
            Ok((number, value, error).into_pyobject(py)?.into_any().unbind())
        }))
    }
}

impl Batch {
    fn begun(&self) -> PyResult<&Begun> {
        self.begun.get().ok_or_else(|| PyRuntimeError::new_err("this was begun by another process"))
    }
}

/// Tells of the end of a piece of work, however it ends.
struct Told {
    tell: sync::mpsc::UnboundedSender<Ended>,
    number: u64,
    done: Option<Done>,
}

impl Drop for Told {
    fn drop(&mut self) {
        let broken = || Box::new(|_: Python<'_>| Err(PyRuntimeError::new_err("the work broke down"))) as Done;
        // Nobody is left who takes it where the whole batch was dropped.
        let _ = self.tell.send((self.number, self.done.take().unwrap_or_else(broken)));
    }
}
