//! What Verbatim reaches over HTTP: the platforms' captions, where their short links lead, and payments.
//!
//! [`Http`] is the transport that every supplier of this crate uses: it decides where a request may go,
//! through which proxy, how often and how long it is tried, and how much of an answer is read.
//! [`YouTubeCaptions`] is the supplier of the long-form site, [`TikTokCaptions`] that of the short-video site and
//! [`XCaptions`] that of the microblog site. [`InstagramVideos`] finds what can be listened to where there are no
//! captions; the suppliers of TikTok and X do so too ([`MediaSource`]). [`ShortLinks`] follows the short links of
//! all but the first.
//!
//! With the feature `ytdlp`, `YtDlp` asks the program of that name, for all four, and `YtDlpSound` has it find what
//! can be listened to.
//! `SpeechToText` (feature `speech`, on Unix) hears what is said where nobody wrote it down.
//!
//! `OpenAiChat` (feature `chat_model`) has any OpenAI-compatible model answer questions about videos.
//!
//! With the feature `service`, `service` asks other Verbatim servers: as a typed client, and as a supplier.
//!
//! [`StripeCheckout`] is how credits and plans are paid for. It is no platform and has a client of its own.

#[cfg(feature = "chat_model")]
mod chat;
mod http;
mod instagram;
mod links;
#[cfg(any(feature = "ytdlp", feature = "speech"))]
mod program;
#[cfg(feature = "service")]
pub mod service;
mod social;
#[cfg(all(feature = "speech", unix))]
mod speech;
mod stripe;
mod tiktok;
mod x;
mod youtube;
#[cfg(feature = "ytdlp")]
mod ytdlp;

#[cfg(feature = "chat_model")]
pub use chat::{ChatModelOptions, OpenAiChat};
pub use http::{Http, HttpOptions, Page, PageAsk, PageHeader, Pages, PagesOptions};
pub use instagram::InstagramVideos;
pub use links::ShortLinks;
#[cfg(any(feature = "ytdlp", feature = "speech"))]
pub use program::find_program;
pub use social::{Media, MediaAddress, MediaSource};
#[cfg(all(feature = "speech", unix))]
pub use speech::{SoundFormat, SpeechOptions, SpeechToText};
pub use stripe::{StripeCheckout, StripeOptions};
pub use tiktok::TikTokCaptions;
pub use x::{XCaptions, XOptions};
pub use youtube::{ClientIdentity, YouTubeCaptions, YouTubeOptions};
#[cfg(feature = "ytdlp")]
pub use ytdlp::{YtDlp, YtDlpSound};
