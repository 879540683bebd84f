//! Verbatim for Kotlin and Swift: a thin layer over the facade, without further rules.
//!
//! It exports plain records, objects with async calls, and interfaces that an app can implement: suppliers, stores, a
//! chat model, a mailer, progress listeners. The idiomatic layers are in the folders `kotlin` and `swift`.

#![allow(
    clippy::result_large_err,
    reason = "a failure crosses the boundary by value, with all its details, and is rare"
)]

mod archive_list;
#[cfg(feature = "search")]
mod archive_search;
mod batch;
mod call;
#[cfg(feature = "chat")]
mod chat;
mod chunks;
#[cfg(any(feature = "local-service", feature = "service"))]
mod client;
#[cfg(feature = "testing")]
mod conformance;
mod error;
mod lazy_open;
#[cfg(feature = "local-service")]
mod local_service;
mod metadata;
mod options;
mod ports;
mod progress;
mod runtime;
#[cfg(feature = "chat")]
mod search;
mod transcript;
mod transcripts;
mod video_list;

pub use archive_list::ArchivedPage;
#[cfg(feature = "search")]
pub use archive_search::{MatchRange, VideoHit, VideoMoment, VideoSearchPage};
pub use batch::Batch;
pub use call::{CallOptions, CancelToken};
#[cfg(feature = "chat")]
pub use chat::{ChatAnswer, ChatRole, ChatTurn, Citation};
pub use chunks::{Chunk, chunks_by_time, chunks_by_tokens, pages_by_chars};
#[cfg(any(feature = "local-service", feature = "service"))]
pub use client::{
    AccountInfo, CheckoutSession, Client, ClientOptions, CreateKeyRequest, CreateKeyResponse, KeyStatus,
    KeyUsage, LookupResponse, PurchasedTranscript, TextResponse, VerifyResponse,
};
#[cfg(feature = "testing")]
pub use conformance::{
    conformance_cases, memory_archive, memory_directory, memory_ledger, run_archive_case, run_directory_case,
    run_ledger_case,
};
pub use error::{Failure, FailureKind, VerbatimError};
pub use metadata::{Chapter, VideoDetails, VideoMetadata, language_name, merge_metadata};
pub use options::{ModelService, RemoteServer, Storage, SupplierSpec, TranscriptsOptions};
#[cfg(feature = "local-service")]
pub use ports::{
    AccountPage, BalancePage, DirectoryStore, EntryPage, KeyOwner, KeyPage, LedgerStore, MailMessage, Mailer,
    UpdateOutcome,
};
pub use ports::{
    ArchiveStore, FindOutcome, PutRequest, ShortLink, StoredTranscript, Supplier, SupplyFailure,
    SupplyMonitor, SupplyReason, SupplyRequest, TrackPage, Video, VideoPage,
};
#[cfg(feature = "chat")]
pub use ports::{ChatMessage, ChatModel, EmbedPurpose, EmbeddingModel};
pub use progress::{ProgressListener, Stage};
#[cfg(feature = "chat")]
pub use search::SearchHit;
pub use transcript::{Segment, Transcript, TranscriptFormat, Word, parse_captions, render};
pub use transcripts::{BatchResult, ImportEffect, ImportOutcome, ImportRequest, RefreshOutcome, Transcripts};
pub use video_list::{ListedVideo, TimeRange, VideoListPage, youtube_search_address};

uniffi::setup_scaffolding!();

/// Version of the library.
#[uniffi::export]
pub fn version() -> String {
    env!("CARGO_PKG_VERSION").to_owned()
}
