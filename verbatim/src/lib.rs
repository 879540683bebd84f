#![doc = include_str!("../README.md")]

mod at_hand;
mod audit;
mod charged;
mod chat;
mod copying;
mod draft;
#[cfg(feature = "entitlement")]
mod entitlement;
mod export;
mod facade;
mod get;
mod housekeeping;
mod import;
mod mail;
mod operate;
mod options;
mod payments;
mod ready;
mod search;
mod servers;
mod storage;
mod suppliers;
mod sweep;
mod system;
mod watched;

pub use at_hand::{AtHand, Shelved};
pub use audit::{Audit, Disagreement};
pub use charged::{BoughtAnswer, BoughtTranscript, Charged, Payer};
pub use chat::ChatModelOptions;
pub use copying::{Copied, CopyStep, copy_storage};
pub use draft::{DRAFT_BYTES_MAX, Draft};
#[cfg(feature = "entitlement")]
pub use entitlement::TokenEntitlements;
pub use export::{Archived, withdrawal_to_json};
pub use facade::Verbatim;
pub use get::{Found, Get, GetOutcome, Missing};
pub use import::{Admit, Effect, Import, Imported, ImportedWish};
pub use operate::{Refreshed, Shown};
pub use options::{
    AtOnceOptions, DatabaseOptions, EntitlementOptions, Options, OwnParts, ServiceOptions, SoundFormat,
    SpeechOptions, StorageOptions, SupplierOptions, UpstreamOptions, XOptions, YouTubeOptions, YtDlpOptions,
};
pub use payments::{CheckoutOptions, SAMPLE_PRICES, StripeAccount};
pub use ready::Ready;
pub use search::{Search, SearchHit};
pub use sweep::RunningSweep;
pub use system::{SystemClock, SystemRandom};
#[cfg(any(feature = "speech", feature = "ytdlp"))]
pub use upstream_reqwest::find_program;

/// A client of other Verbatim servers, for programs that have none of the parts above.
#[cfg(feature = "service")]
pub use upstream_reqwest::service;
/// YouTube's pages, for programs that follow a way of their own.
#[cfg(feature = "upstream")]
pub use upstream_reqwest::{Page, PageAsk, PageHeader, Pages, PagesOptions};

/// The core, whose types this facade takes and gives.
pub use transcript_core as core;
