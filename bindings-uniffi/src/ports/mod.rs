//! Interfaces that an app implements: suppliers, stores, models for chat, a mailer.
//!
//! Errors, invalid values and missing responses of the app's code affect only the call that uses it.

mod archive;
#[cfg(feature = "chat")]
mod chat_model;
#[cfg(feature = "local-service")]
mod directory;
#[cfg(feature = "chat")]
mod embedder;
#[cfg(feature = "local-service")]
mod ledger;
#[cfg(feature = "local-service")]
mod mailer;
mod records;
mod supplier;

use std::{fmt, future::Future, sync::Arc, time::Duration};

use transcript_core::{Error, Page, Result, ids::Cursor};

pub use archive::{ArchiveStore, FindOutcome, PutRequest, StoredTranscript, TrackPage, VideoPage};
#[cfg(feature = "chat")]
pub use chat_model::{ChatMessage, ChatModel};
#[cfg(feature = "local-service")]
pub use directory::{AccountPage, DirectoryStore, KeyOwner, KeyPage, UpdateOutcome};
#[cfg(feature = "chat")]
pub use embedder::{EmbedPurpose, EmbeddingModel};
#[cfg(feature = "local-service")]
pub use ledger::{BalancePage, EntryPage, LedgerStore};
#[cfg(feature = "local-service")]
pub use mailer::{MailMessage, Mailer};
pub use records::{ShortLink, Video};
pub use supplier::{Supplier, SupplyFailure, SupplyMonitor, SupplyReason, SupplyRequest};

#[cfg(feature = "chat")]
pub(crate) use chat_model::ForeignChatModel;
#[cfg(feature = "chat")]
pub(crate) use embedder::ForeignEmbedder;
#[cfg(feature = "local-service")]
pub(crate) use mailer::ForeignMailer;
pub(crate) use supplier::ForeignSupplier;

use crate::error::{VerbatimError, to_core};

/// A store of the app as a port of the core, with a timeout per call.
pub(crate) struct ForeignStore<S: ?Sized> {
    store: Arc<S>,
    name: &'static str,
    timeout: Duration,
}

impl<S: ?Sized> fmt::Debug for ForeignStore<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ForeignStore").field("name", &self.name).finish_non_exhaustive()
    }
}

impl<S: ?Sized> ForeignStore<S> {
    /// The page that the store returned for the cursor `after`.
    ///
    /// # Errors
    /// `Corrupt` if its next page is the same page: a caller would read it without end.
    fn page<T>(&self, after: Option<Cursor>, items: Vec<T>, next: Option<Cursor>) -> Result<Page<T>> {
        if next.is_some() && next == after {
            return Err(Error::corrupt(format!("the app's {} returned the same cursor twice", self.name)));
        }
        Ok(Page { items, next })
    }
}

impl<S: ?Sized + Send + Sync> ForeignStore<S> {
    /// Wraps a store; `name` appears in error messages, `timeout` applies to each call.
    pub(crate) fn new(name: &'static str, store: Arc<S>, timeout: Duration) -> Self {
        Self { store, name, timeout }
    }

    async fn call<T: Send>(
        &self,
        call: impl Future<Output = std::result::Result<T, VerbatimError>> + Send,
    ) -> Result<T> {
        match tokio::time::timeout(self.timeout, call).await {
            Ok(result) => result.map_err(to_core),
            Err(_) => Err(Error::unavailable(format!("the app's {} did not answer in time", self.name))),
        }
    }
}
