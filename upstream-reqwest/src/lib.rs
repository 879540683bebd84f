//! What Verbatim reaches over HTTP: the platforms' captions.
//!
//! [`Http`] is the transport that every supplier of this crate uses: it decides where a request may go,
//! through which proxy, how often and how long it is tried, and how much of an answer is read.
//! [`YouTubeCaptions`] is the supplier of the long-form site.

mod http;
mod youtube;

pub use http::{Http, HttpOptions};
pub use youtube::{ClientIdentity, YouTubeCaptions, YouTubeOptions};
