//! A Python object that sends mails.

use async_trait::async_trait;
use pyo3::{exceptions::PyTypeError, prelude::*, types::PyTuple};
use transcript_core::{
    Error, Result,
    accounts::mail::{MailMessage, Mailer},
};

use super::{call::PyTarget, has_method};
use crate::{components::Components, events, lifecycle::attached};

/// A Python object with a method `send(to, subject, text, html)`.
#[derive(derive_more::Debug)]
#[debug("PyMailer")]
pub(crate) struct PyMailer(PyTarget);

impl PyMailer {
    /// Wraps the mailer.
    ///
    /// # Errors
    /// `TypeError`, naming the missing method.
    pub(crate) fn new(object: Bound<'_, PyAny>, components: &mut Components) -> PyResult<Self> {
        if !has_method(&object, "send") {
            return Err(PyTypeError::new_err("a mailer must have a method send(to, subject, text, html)"));
        }
        Ok(Self(PyTarget::new(object, components)))
    }
}

#[async_trait]
impl Mailer for PyMailer {
    async fn send(&self, mail: MailMessage) -> Result<()> {
        let MailMessage { to, subject, text, html } = mail;
        let sent = self.0.call("send", move |py| PyTuple::new(py, [to, subject, text, html]), |_| Ok(()));
        // The exception may contain the recipient: only the logger of the program gets it.
        sent.await.map_err(|error| {
            attached(|py| events::record_exception(py, "mailer", "send", &error));
            Error::unavailable("the mailer raised an exception")
        })
    }
}
