//! The Python objects that an engine calls, as the garbage collector sees them.
//!
//! A hook or a supplier may refer back to its `Transcripts`. The collector finds such a cycle only if the engine shows
//! it the references of the native code.

use std::sync::{Arc, Mutex, PoisonError};

use pyo3::{
    prelude::*,
    pyclass::{PyTraverseError, PyVisit},
};

/// The objects that an engine calls.
pub(crate) type Components = Vec<Arc<ComponentSlot>>;

/// The only reference of the native code to a Python object, until the garbage collector clears it.
///
/// It is locked briefly and only while attached; no code of Python runs under it.
pub(crate) struct ComponentSlot(Mutex<Option<Py<PyAny>>>);

impl ComponentSlot {
    /// A slot with this object, which becomes one of the components.
    pub(crate) fn new(object: Bound<'_, PyAny>, components: &mut Components) -> Arc<Self> {
        let slot = Arc::new(Self(Mutex::new(Some(object.unbind()))));
        components.push(Arc::clone(&slot));
        slot
    }

    /// The object; `None` once the garbage collector has cleared the slot.
    pub(crate) fn get(&self, py: Python<'_>) -> Option<Py<PyAny>> {
        let object = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        object.as_ref().map(|object| object.clone_ref(py))
    }

    /// Shows the reference to the garbage collector, which must not wait. A locked slot is in use.
    pub(crate) fn traverse(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        self.0.try_lock().map_or(Ok(()), |object| visit.call(&*object))
    }

    /// Drops the reference, for the garbage collector.
    pub(crate) fn clear(&self) {
        let object = self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
        // Not under the lock: it may run code of Python.
        drop(object);
    }
}
