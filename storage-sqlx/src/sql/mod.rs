//! Values, rows and transactions in a form that does not name a database.

mod database;
mod row;
mod session;
mod statement;
mod value;

pub(crate) use database::Database;
pub(crate) use row::{FromValue, Row};
pub(crate) use session::{Session, WriteTx};
pub(crate) use statement::{Statement, sql};
pub(crate) use value::{Value, values};
