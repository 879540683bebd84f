//! What Verbatim reaches over HTTP: the platforms' captions, and where their short links lead.
//!
//! [`Http`] is the transport that every supplier of this crate uses: it decides where a request may go,
//! through which proxy, how often and how long it is tried, and how much of an answer is read.
//! [`YouTubeCaptions`] is the supplier of the long-form site, [`TikTokCaptions`] that of the short-video site,
//! [`XCaptions`] that of the microblog site.
//! [`ShortLinks`] follows the short links of the
//! other sites.

mod http;
mod links;
mod social;
mod tiktok;
mod x;
mod youtube;

pub use http::{Http, HttpOptions};
pub use links::ShortLinks;
pub use tiktok::TikTokCaptions;
pub use x::{XCaptions, XOptions};
pub use youtube::{ClientIdentity, YouTubeCaptions, YouTubeOptions};
