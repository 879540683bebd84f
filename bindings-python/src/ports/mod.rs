//! Ports implemented by Python objects.

mod call;
mod chat_model;
mod embedder;
mod key_value;
mod mailer;
mod store;
mod supplier;

pub(crate) use chat_model::PyChatModel;
pub(crate) use embedder::PyEmbedder;
pub(crate) use mailer::PyMailer;
pub(crate) use store::{archive, directory, ledger};
pub(crate) use supplier::{PySupplier, SupplyRequest};

use pyo3::prelude::*;

/// Whether an object has a method with this name.
pub(crate) fn has_method(object: &Bound<'_, PyAny>, method: &str) -> bool {
    object.getattr(method).is_ok_and(|method| method.is_callable())
}
