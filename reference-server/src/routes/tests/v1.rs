//! Surface B.

mod account;
mod errors;
mod register;
mod transcript;
mod verify;
