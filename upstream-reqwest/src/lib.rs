//! Adapters of Verbatim for HTTP services.
//!
//! They connect platforms, short links, speech-to-text services, chat models and Stripe.
//!
//! [`HttpTransport`] is the transport that every supplier of this crate uses. It checks the host of a request,
//! selects the egress route, limits attempts and time, and bounds the size of a response.
//! [`YouTubeCaptions`], [`TikTokCaptions`] and [`XCaptions`] are the caption suppliers of their platforms.
//! [`InstagramMedia`] finds the media of a video for speech-to-text; the suppliers of TikTok and X do so too
//! ([`MediaSource`]). [`HttpShortLinkResolver`] follows the short links of TikTok, Instagram and X.
//!
//! [`YouTubeLists`] reads the playlists and channels of YouTube.
//!
//! With the feature `ytdlp`, `YtDlp` runs the program of that name for all four platforms, and `YtDlpMedia` uses it
//! to find media. `YtDlpLists` reads the profiles of TikTok by it, and YouTube's lists where [`YouTubeLists`] fails.
//! `SpeechToText` (feature `speech`, on Unix) transcribes videos without captions.
//!
//! `OpenAiChat` (feature `chat_model`) answers questions about videos with any OpenAI-compatible model;
//! `EmbeddingsService` searches transcripts by meaning with any such embedding model.
//!
//! With the feature `service`, `service` calls other Verbatim servers, as a typed client and as a supplier.
//!
//! [`PurgeHook`] removes responses from the caches in front of the servers. With the feature `webhooks`,
//! `HttpWebhookClient` sends the events of jobs to the addresses of accounts.
//!
//! With the feature `payments`, `StripeProvider` is the payment provider of credits and plans. It has a separate HTTP
//! client.

#![cfg_attr(docsrs, feature(doc_cfg))]
#![cfg_attr(
    not(all(feature = "chat_model", feature = "payments", feature = "service", feature = "speech", unix)),
    allow(dead_code, unused_imports, reason = "helpers of modules that are not compiled")
)]

mod base_url;
#[cfg(feature = "chat_model")]
mod chat;
mod deadline;
#[cfg(feature = "chat_model")]
mod embeddings;
#[cfg(feature = "fuzzing")]
#[doc(hidden)]
pub mod fuzzing;
mod http;
mod instagram;
mod json;
#[cfg(any(feature = "chat_model", all(feature = "speech", unix)))]
mod openai;
#[cfg(any(feature = "ytdlp", feature = "speech"))]
mod process;
mod purge_hook;
#[cfg(feature = "service")]
pub mod service;
mod short_links;
mod social;
#[cfg(all(feature = "speech", unix))]
mod speech;
#[cfg(feature = "speech")]
mod speech_options;
#[cfg(feature = "payments")]
mod stripe;
mod tiktok;
#[cfg(feature = "webhooks")]
mod webhook_client;
mod x;
mod youtube;
#[cfg(feature = "ytdlp")]
mod ytdlp;

#[cfg(feature = "chat_model")]
pub use chat::{ChatModelOptions, OpenAiChat};
#[cfg(feature = "chat_model")]
pub use embeddings::{EmbeddingsOptions, EmbeddingsService};
pub use http::{
    HttpOptions, HttpTransport, PageClient, PageClientOptions, PageFetch, PageHeader, PageResponse,
    ProxyVariables,
};
pub use instagram::InstagramMedia;
#[cfg(any(feature = "ytdlp", feature = "speech"))]
pub use process::find_program;
pub use purge_hook::{PurgeHook, PurgeHookOptions};
pub use short_links::HttpShortLinkResolver;
pub use social::{Media, MediaAddress, MediaSource};
#[cfg(all(feature = "speech", unix))]
pub use speech::SpeechToText;
#[cfg(feature = "speech")]
pub use speech_options::{AudioFormat, SpeechOptions};
#[cfg(feature = "payments")]
pub use stripe::{StripeOptions, StripeProvider};
pub use tiktok::TikTokCaptions;
#[cfg(feature = "webhooks")]
pub use webhook_client::HttpWebhookClient;
pub use x::{XCaptions, XOptions};
pub use youtube::{ClientIdentity, YouTubeCaptions, YouTubeLists, YouTubeOptions};
#[cfg(feature = "ytdlp")]
pub use ytdlp::{YtDlp, YtDlpLists, YtDlpMedia, ytdlp_metadata};

/// Doc tests of the crate's README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
mod readme {}
