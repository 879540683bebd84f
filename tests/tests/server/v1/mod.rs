//! The v1 API over HTTP, with real mail (specification 2.5 to 2.8, 4.4 to 4.12, 5 to 8).

mod account_jobs;
mod account_keys;
mod account_pages;
pub(crate) mod credits;
mod journey;
mod links;
mod mail;
pub(crate) mod mail_client;
mod payments;
mod readme;
#[path = "../../../smtp/smtpd.rs"]
pub(crate) mod smtpd;
