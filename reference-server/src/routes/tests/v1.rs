//! Surface B.

mod errors;
mod register;
