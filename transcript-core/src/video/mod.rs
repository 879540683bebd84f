//! What a video is, and every form in which people name one.
//!
//! [`VideoLink::parse`] is pure and total: any text gives a video, a short link that must be resolved,
//! or an error that says what was wrong. Hosts are compared whole, so look-alike hosts are refused.

mod error;
mod id;
mod link;
mod platform;

pub use error::{LinkError, LinkProblem};
pub use id::VideoId;
pub use link::{ShortLink, VideoLink};
pub use platform::Platform;
