//! Verbatim for Kotlin and Swift: a thin layer over the facade. No rule lives in it.
//!
//! What is exported are plain records, objects whose calls are async, and interfaces that an app may implement:
//! suppliers, stores, a chat model, whoever hears of progress. The idiomatic layers are beside it, in `kotlin` and `swift`.

#![allow(
    clippy::result_large_err,
    reason = "a failure crosses by value, with all that is known of it, and is rare"
)]

mod call;
mod client;
#[cfg(feature = "testing")]
mod conformance;
mod error;
mod opener;
mod options;
mod ports;
mod progress;
mod runtime;
mod transcript;
mod transcripts;
mod unsaid;

pub use call::{CallOptions, CancelToken};
pub use client::{
    Allowance, ChatAnswer, ChatTurn, Citation, Client, ClientOptions, CreditsPage, KeyCreated, KeyStatus,
    Lookup, Me, NewKeyRequest, Purchase, Role, TextLookup, Verified,
};
#[cfg(feature = "testing")]
pub use conformance::{
    conformance_cases, memory_archive, memory_directory, memory_ledger, run_archive_case, run_directory_case,
    run_ledger_case,
};
pub use error::{Failure, FailureKind, VerbatimError};
pub use options::{ModelService, ServerSource, Storage, SupplierChoice, TranscriptsOptions};
pub use ports::{
    AccountChange, AccountPage, ArchiveFind, ArchiveKeep, ArchiveStore, BalancePage, ChatMessage, ChatModel,
    DirectoryStore, EntryPage, KeyOwner, KeyPage, LedgerStore, Mail, Mailer, Redemption, ShortLinkName,
    StoredRecord, Supplier, SupplierAsk, SupplyFailure, SupplyReason, TrackPage, Video, VideoPage, Watcher,
};
pub use progress::{ProgressListener, Stage};
pub use transcript::{Format, Segment, Transcript, parse_captions, render};
pub use transcripts::{
    Answer, ArchiveSize, ImportEffect, ImportRequest, Imported, Refreshed, SearchHit, Transcripts,
};

uniffi::setup_scaffolding!();

/// The version of the library.
#[uniffi::export]
pub fn version() -> String {
    env!("CARGO_PKG_VERSION").to_owned()
}
