#![doc = include_str!("../README.md")]

mod facade;
mod get;
mod housekeeping;
mod import;
mod options;
mod storage;
mod suppliers;
mod system;

pub use facade::Verbatim;
pub use get::{Found, Get, GetOutcome, Missing};
pub use import::{Effect, Import, Imported, ImportedWish};
pub use options::{Options, StorageOptions, SupplierOptions, UpstreamOptions, YouTubeOptions};
pub use system::{SystemClock, SystemRandom};

/// The core, whose types this facade takes and gives.
pub use transcript_core as core;
