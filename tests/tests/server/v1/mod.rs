//! Surface B over HTTP, with real mail (specification 2.5 to 2.8, 4 to 8; design 4).

mod credits;
mod journey;
mod links;
mod mail;
mod payments;
pub(crate) mod post;
mod readme;
#[path = "../../../smtp/smtpd.rs"]
mod smtpd;
