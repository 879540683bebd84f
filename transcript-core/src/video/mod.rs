//! What a video is, and every form in which people name one.
//!
//! [`VideoLink::parse`] is pure and total: any text gives a video, a short link that must be resolved,
//! or an error that says what was wrong. Hosts are compared whole, so look-alike hosts are refused.

mod address;
mod error;
mod hosts;
mod id;
mod instagram;
mod link;
mod platform;
mod short_link;
mod text;
mod tiktok;
mod x;
mod youtube;

#[cfg(test)]
mod cases;
#[cfg(test)]
mod properties;

pub use error::{LinkError, LinkProblem};
pub use id::VideoId;
pub use link::VideoLink;
pub use platform::Platform;
pub use short_link::ShortLink;
