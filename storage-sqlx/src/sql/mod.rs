//! Values, rows and transactions in a form that does not name a database.

mod row;
mod session;
mod value;

pub(crate) use row::Row;
pub(crate) use session::{Session, WriteTx};
pub(crate) use value::{Value, values};
