//! Surface B.

mod account;
mod errors;
mod payments;
mod register;
mod transcript;
mod verify;
mod webhook;
