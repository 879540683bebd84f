//! Verbatim for Kotlin and Swift: a thin layer over the facade, without further rules.
//!
//! It exports plain records, objects with async calls, and interfaces that an app can implement: suppliers, stores, a
//! chat model, a mailer, progress listeners. The idiomatic layers are in the folders `kotlin` and `swift`.

#![allow(
    clippy::result_large_err,
    reason = "a failure crosses the boundary by value, with all its details, and is rare"
)]

mod call;
mod client;
#[cfg(feature = "testing")]
mod conformance;
mod error;
mod lazy_open;
mod options;
mod ports;
mod progress;
mod redacted_debug;
mod runtime;
mod transcript;
mod transcripts;

pub use call::{CallOptions, CancelToken};
pub use client::{
    AccountInfo, ChatAnswer, ChatRole, ChatTurn, CheckoutSession, Citation, Client, ClientOptions,
    CreateKeyRequest, CreateKeyResponse, KeyStatus, KeyUsage, LookupResponse, PurchasedTranscript,
    TextResponse, VerifyResponse,
};
#[cfg(feature = "testing")]
pub use conformance::{
    conformance_cases, memory_archive, memory_directory, memory_ledger, run_archive_case, run_directory_case,
    run_ledger_case,
};
pub use error::{Failure, FailureKind, VerbatimError};
pub use options::{ModelService, RemoteServer, Storage, SupplierSpec, TranscriptsOptions};
pub use ports::{
    AccountPage, ArchiveStore, BalancePage, ChatMessage, ChatModel, DirectoryStore, EntryPage, FindOutcome,
    KeyOwner, KeyPage, LedgerStore, MailMessage, Mailer, PutRequest, RedeemOutcome, ShortLink,
    StoredTranscript, Supplier, SupplyFailure, SupplyMonitor, SupplyReason, SupplyRequest, TrackPage,
    UpdateOutcome, Video, VideoPage,
};
pub use progress::{ProgressListener, Stage};
pub use transcript::{Segment, Transcript, TranscriptFormat, parse_captions, render};
pub use transcripts::{
    BatchResult, ImportEffect, ImportOutcome, ImportRequest, RefreshOutcome, SearchHit, Transcripts,
};

uniffi::setup_scaffolding!();

/// Version of the library.
#[uniffi::export]
pub fn version() -> String {
    env!("CARGO_PKG_VERSION").to_owned()
}
