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

use std::{future::Future, time::Duration};

use transcript_core::{Error, Result};

pub use archive::{ArchiveFind, ArchiveKeep, ArchiveStore, StoredRecord, TrackPage, VideoPage};
pub use chat_model::{ChatMessage, ChatModel};
pub use directory::{AccountChange, AccountPage, DirectoryStore, KeyOwner, KeyPage, Redemption};
pub use ledger::{BalancePage, EntryPage, LedgerStore};
pub use mailer::{Mail, Mailer};
pub use records::{ShortLinkName, Video};
pub use supplier::{Supplier, SupplierAsk, SupplyFailure, SupplyReason, Watcher};

pub(crate) use archive::ForeignArchive;
#[cfg(feature = "testing")]
pub(crate) use archive::{archive_find, stored_record};
pub(crate) use chat_model::ForeignChatModel;
pub(crate) use directory::ForeignDirectory;
pub(crate) use ledger::ForeignLedger;
pub(crate) use mailer::ForeignMailer;
pub(crate) use supplier::ForeignSupplier;

use crate::error::{VerbatimError, to_core};

/// Waits for a store of the app's, but not for ever.
async fn within<T>(
    patience: Duration,
    what: &str,
    call: impl Future<Output = std::result::Result<T, VerbatimError>>,
) -> Result<T> {
    match tokio::time::timeout(patience, call).await {
        Ok(answer) => answer.map_err(to_core),
        Err(_) => Err(Error::unavailable(format!("the app's {what} did not answer in time"))),
    }
}
