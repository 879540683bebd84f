#![doc = include_str!("../README.md")]

#[cfg(feature = "entitlement")]
mod entitlement;
mod facade;
mod get;
mod housekeeping;
mod import;
mod options;
mod storage;
mod suppliers;
mod system;

#[cfg(feature = "entitlement")]
pub use entitlement::TokenEntitlements;
pub use facade::Verbatim;
pub use get::{Found, Get, GetOutcome, Missing};
pub use import::{Effect, Import, Imported, ImportedWish};
pub use options::{
    EntitlementOptions, Options, StorageOptions, SupplierOptions, UpstreamOptions, YouTubeOptions,
};
pub use system::{SystemClock, SystemRandom};

/// The core, whose types this facade takes and gives.
pub use transcript_core as core;
