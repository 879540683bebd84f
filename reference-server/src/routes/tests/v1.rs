//! Tests of the v1 API.

mod account;
mod chat;
mod errors;
mod payments;
mod register;
mod transcript;
mod verify;
mod webhook;
