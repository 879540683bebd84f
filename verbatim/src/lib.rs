#![doc = include_str!("../README.md")]

mod admin;
mod audit;
mod chat;
#[cfg(feature = "entitlement")]
mod entitlement;
mod export;
mod facade;
mod get;
mod health;
mod housekeeping;
mod import;
mod import_draft;
#[cfg(feature = "mail")]
mod mail;
mod observed_ledger;
mod options;
#[cfg(feature = "payments")]
mod payment_sweep;
#[cfg(feature = "payments")]
mod payments;
pub mod read_cache;
mod search;
mod server_group;
pub mod service;
mod storage;
mod storage_copy;
mod suppliers;
mod system;
mod transcript_cache;

pub use admin::{RefreshOutcome, VideoReport};
pub use audit::{AuditFinding, AuditReport};
pub use chat::ChatModelOptions;
#[cfg(feature = "entitlement")]
pub use entitlement::TokenEntitlements;
pub use export::{TranscriptExport, withdrawal_to_json};
pub use facade::Verbatim;
pub use get::{FoundTranscript, GetOutcome, GetRequest, UnavailableTranscript};
pub use health::StoreHealth;
pub use import::{ImportDraftRequest, ImportEffect, ImportOutcome, ImportRequest, SelectorImport};
pub use import_draft::{DRAFT_BYTES_MAX, ImportDraft};
pub use options::{
    ConcurrencyOptions, CustomPorts, DatabaseOptions, EntitlementOptions, Options, ServiceOptions,
    SoundFormat, SpeechOptions, StorageOptions, SupplierOptions, UpstreamOptions, XOptions, YouTubeOptions,
    YtDlpOptions,
};
#[cfg(feature = "payments")]
pub use payment_sweep::PaymentSweepHandle;
#[cfg(feature = "payments")]
pub use payments::{PaymentOptions, SAMPLE_PRICES, StripeAccount};
pub use search::{SearchHit, SearchRequest};
pub use storage_copy::{CopyProgress, CopySummary, copy_storage};
pub use system::{SystemClock, SystemRandom};
pub use transcript_cache::{ArchivedTranscript, TranscriptCache};
#[cfg(any(feature = "speech", feature = "ytdlp"))]
pub use upstream_reqwest::find_program;

/// Page client of YouTube, for programs with a fetching flow different from the suppliers'.
#[cfg(feature = "upstream")]
pub use upstream_reqwest::{PageClient, PageClientOptions, PageFetch, PageHeader, PageResponse};

/// The core, whose types this facade uses.
pub use transcript_core as core;

/// Doc tests of the repository's README.
#[cfg(doctest)]
#[doc = include_str!("../../README.md")]
mod repository_readme {}
