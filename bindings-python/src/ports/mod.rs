//! Python objects that answer for ports.

mod call;
mod mailer;
mod supplier;

pub(crate) use mailer::PyMailer;
pub(crate) use supplier::{Ask, PySupplier};
