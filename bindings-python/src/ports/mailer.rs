//! A Python object that sends mails.

use async_trait::async_trait;
use pyo3::{prelude::*, types::PyTuple};
use transcript_core::{
    Error, Result,
    accounts::mail::{MailMessage, Mailer},
};

use super::call::PyTarget;

/// A Python object with a method `send(to, subject, text, html)`.
#[derive(derive_more::Debug)]
#[debug("PyMailer")]
pub(crate) struct PyMailer(PyTarget);

impl PyMailer {
    pub(crate) fn new(object: Bound<'_, PyAny>) -> Self {
        Self(PyTarget::new(object))
    }
}

#[async_trait]
impl Mailer for PyMailer {
    async fn send(&self, mail: MailMessage) -> Result<()> {
        let MailMessage { to, subject, text, html } = mail;
        let sent = self.0.call("send", move |py| PyTuple::new(py, [to, subject, text, html]), |_| Ok(()));
        // The exception may contain the recipient.
        sent.await.map_err(|_| Error::unavailable("the mailer raised an exception"))
    }
}
