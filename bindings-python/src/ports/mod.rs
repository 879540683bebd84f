//! Python objects that answer for ports.

mod call;
mod supplier;

pub(crate) use supplier::{Ask, PySupplier};
