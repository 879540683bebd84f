//! What an app implements: suppliers, stores, a chat model, who sends mails.
//!
//! What the app's code throws, returns as nonsense or never returns is a fault of that part alone.

mod archive;
mod chat_model;
mod directory;
mod ledger;
mod mailer;
mod records;
mod supplier;

use std::{fmt, future::Future, sync::Arc, time::Duration};

use transcript_core::{Error, Result};

pub use archive::{ArchiveFind, ArchiveKeep, ArchiveStore, StoredRecord, TrackPage, VideoPage};
pub use chat_model::{ChatMessage, ChatModel};
pub use directory::{AccountChange, AccountPage, DirectoryStore, KeyOwner, KeyPage, Redemption};
pub use ledger::{BalancePage, EntryPage, LedgerStore};
pub use mailer::{Mail, Mailer};
pub use records::{ShortLinkName, Video};
pub use supplier::{Supplier, SupplierAsk, SupplyFailure, SupplyReason, Watcher};

#[cfg(feature = "testing")]
pub(crate) use archive::{archive_find, stored_record};
pub(crate) use chat_model::ForeignChatModel;
pub(crate) use mailer::ForeignMailer;
pub(crate) use supplier::ForeignSupplier;

use crate::error::{VerbatimError, to_core};

/// A store of the app's as the core's port. It is waited for, but not for ever.
pub(crate) struct Foreign<S: ?Sized> {
    store: Arc<S>,
    what: &'static str,
    patience: Duration,
}

impl<S: ?Sized> fmt::Debug for Foreign<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Foreign").field("what", &self.what).finish_non_exhaustive()
    }
}

impl<S: ?Sized + Send + Sync> Foreign<S> {
    /// This store, called `what` where people read of it, each of whose calls may take as long as `patience`.
    pub(crate) fn new(what: &'static str, store: Arc<S>, patience: Duration) -> Self {
        Self { store, what, patience }
    }

    async fn ask<T: Send>(
        &self,
        call: impl Future<Output = std::result::Result<T, VerbatimError>> + Send,
    ) -> Result<T> {
        match tokio::time::timeout(self.patience, call).await {
            Ok(answer) => answer.map_err(to_core),
            Err(_) => Err(Error::unavailable(format!("the app's {} did not answer in time", self.what))),
        }
    }
}
