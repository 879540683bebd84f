//! Surface B.

mod account;
mod chat;
mod errors;
mod payments;
mod register;
mod transcript;
mod verify;
mod webhook;
