//! Videos, and every form of text that names one.
//!
//! [`VideoLink::parse`] is pure and total: any text results in a video, a short link that must be resolved, or an
//! error that says what is wrong. Hosts are compared as a whole, so look-alike hosts are rejected.
//! [`VideoList::parse`] does the same for playlists, channels and profiles.

mod error;
mod hosts;
mod id;
mod instagram;
mod link;
mod link_finder;
mod list;
mod platform;
mod platform_url;
mod short_link;
mod tiktok;
mod x;
mod youtube;
mod youtube_list;

#[cfg(test)]
mod cases;
#[cfg(test)]
mod properties;

pub use error::{LinkError, LinkErrorKind};
pub use id::VideoId;
pub use link::VideoLink;
pub use list::{ChannelTab, VideoList};
pub use platform::Platform;
pub use short_link::ShortLink;
