// The first definition of a link is used: the files that the README names are not part of the documentation.
//! [own_archive]: guide#a-custom-archive
//! [own_supplier]: guide#a-custom-supplier
//! [ledger]: guide#the-ledger-in-your-program
//! [ask_a_server]: guide#both-apis
//! [own_axum_app]: guide#a-server-in-your-axum-program
//!
#![doc = include_str!("../README.md")]
//!
//! ## Parts
//!
//! The [`guide`] introduces them in this order.
//!
//! | item | purpose |
//! |---|---|
//! | [`Options`] | plain structures: storage, suppliers, platform access, limits; methods that begin with `with_` |
//! | [`Verbatim::open`] | opens the storage and assembles all parts |
//! | [`Verbatim::get`] | an archived transcript, or a fetched and archived one; otherwise the failure reason |
//! | [`Verbatim::get_many`], [`Batch`] | many transcripts, as a stream with progress; waits for paused sources, and for servers |
//! | [`Verbatim::videos`], [`Verbatim::video_page`] | the videos of a playlist, channel or search, as a stream or page by page |
//! | [`Verbatim::tools`] | [`ArchiveTools`]: import, export, search, refresh and operator functions |
//! | [`ArchiveTools::import`] | imports caption files (WebVTT, SRT, TTML, …) |
//! | [`ImportDraft::read`], [`ArchiveTools::import_draft`] | imports transcripts of other programs, JSON too |
//! | [`ArchiveTools::archived`], [`TranscriptExport::to_json`] | exports the newest revision of each transcript of a video |
//! | [`ArchiveTools::show`], [`ArchiveTools::stats`] | what is archived |
//! | [`ArchiveTools::delete`], [`ArchiveTools::withdraw`] | deletes a video, or takes it down |
//! | [`ArchiveTools::refresh`] | fetches a transcript again |
//! | [`Verbatim::search`] | search in the whole archive, by relevance, with an index |
//! | [`ArchiveTools::search`] | passages of archived transcripts that contain some words |
//! | [`Options::with_supplier`], [`Options::with_archive`] | a supplier or archive of the caller |
//! | [`Options::with_ledger`], [`Options::with_directory`] | stores of credits and keys of the caller |
//! | [`Options::with_chat_model`] | a chat model of the caller |
//! | [`Options::with_embedder`] | an embedding model of the caller |
//! | [`TranscriptCache`] | transcripts of repeated requests, ready in memory |
//! | [`Verbatim::service`] | both APIs as one [`service::Service`] within the process, with keys and charges |
//! | [`service::ArchiveService`] | the same trait over the user's archive, without payment |
//! | [`service::ServiceClient`] | the same trait for a server |
//! | [`PageClient`] | YouTube pages, for programs with their own parsing |
//! | [`Verbatim::ledger`], [`Verbatim::audit`] | the ledger; compares every balance with its entries |
//! | [`Verbatim::directory`] | keys and accounts |
//! | [`Verbatim::lookup`] | the lookup API: keys and allowances |
//! | [`Verbatim::accounts`] | the v1 API: accounts, credits, transcripts and answers for credits |
//! | [`Verbatim::chat`] | questions about a transcript, with verified quotes and citations |
//! | [`Verbatim::payments`], [`Verbatim::sandbox`] | credit packs, plans, refunds; the sandbox checkout |
//! | [`Verbatim::start_mail`] | sends registration mails through a custom `Mailer` |
//! | [`Verbatim::start_jobs`] | works on the jobs of accounts |
//! | [`Verbatim::start_webhooks`] | sends the events of jobs to the addresses of accounts |
//! | [`Verbatim::start_sweep`] | polls open orders every half hour, if anything is for sale |
//! | [`Verbatim::transcripts`], [`Verbatim::archive`] | the engine and the archive below the facade |
//! | [`Verbatim::close`] | waits for running work |

#![cfg_attr(docsrs, feature(doc_cfg))]

#[cfg(feature = "lookup")]
mod api_deps;
#[cfg(feature = "search")]
mod archive_search;
mod archive_tools;
#[cfg(feature = "lookup")]
mod audit;
mod batch;
#[cfg(all(feature = "lookup", feature = "upstream"))]
mod cache_purge;
#[cfg(feature = "chat")]
mod chat;
#[cfg(feature = "lookup")]
mod compaction;
#[cfg(feature = "entitlement")]
mod entitlement;
mod export;
mod facade;
mod get;
pub mod guide;
mod health;
#[cfg(feature = "lookup")]
mod housekeeping;
mod import;
mod import_draft;
#[cfg(feature = "lookup")]
mod job;
#[cfg(all(test, feature = "mail"))]
mod mail_tests;
#[cfg(feature = "lookup")]
mod main_stores;
#[cfg(feature = "lookup")]
mod observed_ledger;
mod options;
#[cfg(feature = "payments")]
mod payment_sweep;
#[cfg(feature = "payments")]
mod payments;
pub mod read_cache;
mod runtime;
#[cfg(feature = "chat")]
mod search;
#[cfg(feature = "lookup")]
mod server_group;
#[cfg(any(feature = "local-service", feature = "service"))]
pub mod service;
mod storage;
mod storage_copy;
mod storage_report;
mod suppliers;
mod system;
mod transcript_cache;
mod transcript_stream;
mod video_stream;

#[cfg(feature = "search")]
pub use archive_search::{IndexObserver, SearchService};
pub use archive_tools::{ArchiveTools, RefreshOutcome, VideoReport};
#[cfg(feature = "lookup")]
pub use audit::{AuditFinding, AuditReport};
pub use batch::Batch;
#[cfg(all(feature = "lookup", feature = "upstream"))]
pub use cache_purge::{PurgeObserver, surrogate_key};
#[cfg(feature = "lookup")]
pub use compaction::CompactionObserver;
#[cfg(feature = "entitlement")]
pub use entitlement::TokenEntitlements;
pub use export::{ArchivedVideo, TranscriptExport, UnreadableTrack, withdrawal_to_json};
pub use facade::Verbatim;
pub use get::{FoundTranscript, GetOutcome, GetRequest, LANGUAGES_MAX, UnavailableTranscript};
pub use health::StoreHealth;
pub use import::{ImportDraftRequest, ImportEffect, ImportOutcome, ImportRequest, SelectorImport};
pub use import_draft::{DRAFT_BYTES_MAX, ImportDraft};
#[cfg(feature = "lookup")]
pub use job::JobHandle;
#[cfg(feature = "lookup")]
pub use options::EntitlementOptions;
#[cfg(feature = "payments")]
pub use options::PaymentOptions;
pub use options::{
    ConcurrencyOptions, CustomPorts, DatabaseOptions, Options, StorageOptions, SupplierOptions, XOptions,
    YouTubeOptions, YtDlpOptions,
};
#[cfg(feature = "payments")]
pub use payments::SAMPLE_PRICES;
#[cfg(feature = "chat")]
pub use search::{SearchHit, SearchRequest};
pub use storage::StoreFigures;
pub use storage_copy::{CopyProgress, CopySummary, copy_storage};
pub use storage_report::{StorageReport, inspect_storage};
pub use system::{SystemClock, SystemRandom};
pub use transcript_cache::{ArchivedTranscript, TranscriptCache};
pub use transcript_stream::{StreamProgress, StreamedOutcome, TranscriptStream};
#[cfg(all(feature = "payments", feature = "upstream"))]
pub use upstream_reqwest::StripeOptions;
#[cfg(any(feature = "speech", feature = "ytdlp"))]
pub use upstream_reqwest::find_program;
#[cfg(feature = "ytdlp")]
pub use upstream_reqwest::ytdlp_metadata;
#[cfg(feature = "speech")]
pub use upstream_reqwest::{AudioFormat, SpeechOptions};
#[cfg(feature = "chat-model")]
pub use upstream_reqwest::{ChatModelOptions, EmbeddingsOptions};
#[cfg(feature = "upstream")]
pub use upstream_reqwest::{HttpOptions, ProxyVariables, PurgeHookOptions};

pub use video_stream::{ListInfo, UnavailableList, VideoStream};

/// Page client of YouTube, for programs with a fetching flow different from the suppliers'.
#[cfg(feature = "upstream")]
pub use upstream_reqwest::{PageClient, PageClientOptions, PageFetch, PageHeader, PageResponse};

// `Result` is not among these: a glob import would hide that of the standard library. The core keeps its own name, as
// a name such as `core` would hide the crate of the standard library.
pub use transcript_core::{Error, ErrorCause, ErrorKind, Retry};

/// The core, whose types this facade uses.
pub use transcript_core;

/// Doc tests of the repository's README.
#[cfg(doctest)]
#[doc = include_str!("../../README.md")]
mod repository_readme {}
