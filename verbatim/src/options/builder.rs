//! Methods that set options.

#[cfg(feature = "ytdlp")]
use std::path::PathBuf;
use std::{sync::Arc, time::Duration};

#[cfg(feature = "chat")]
use transcript_core::chat::{ChatModel, Embedder};
use transcript_core::{archive::Archive, supplier::Supplier};
#[cfg(feature = "lookup")]
use transcript_core::{directory::Directory, ledger::Ledger};
#[cfg(feature = "service")]
use upstream_reqwest::service::ServiceOptions;

use super::{Options, StorageOptions, SupplierOptions};

impl Options {
    /// Sets where data is stored.
    #[must_use]
    pub fn with_storage(self, storage: StorageOptions) -> Self {
        Self { storage, ..self }
    }

    /// Sets how long a call waits for a new transcript.
    #[must_use]
    pub fn with_wait(self, wait: Duration) -> Self {
        Self { wait, ..self }
    }

    /// Removes all suppliers: no platform is contacted, and only archived transcripts are found.
    ///
    /// Suppliers that are added afterwards are the only ones. With custom suppliers alone, a platform is contacted only
    /// to follow its short links (`vm.tiktok.com/…`), and only if one of them is for it.
    #[must_use]
    pub fn without_suppliers(mut self) -> Self {
        self.suppliers = SupplierOptions::none();
        self.custom.suppliers.clear();
        self
    }

    /// Adds a supplier of the caller, called after the present ones of its platforms.
    #[must_use]
    pub fn with_supplier(mut self, supplier: Arc<dyn Supplier>) -> Self {
        self.suppliers.add_custom(supplier.as_ref());
        self.custom.suppliers.push(supplier);
        self
    }

    /// Adds the yt-dlp program as a supplier, called after the present ones; a path, or a name in `PATH`.
    #[cfg(feature = "ytdlp")]
    #[must_use]
    pub fn with_ytdlp(mut self, program: impl Into<PathBuf>) -> Self {
        self.ytdlp.program = Some(program.into());
        self.suppliers.add(["yt-dlp"]);
        self
    }

    /// Adds another Verbatim server as a supplier, called after the present ones.
    #[cfg(feature = "service")]
    #[must_use]
    pub fn with_service(mut self, service: ServiceOptions) -> Self {
        self.service = Some(service);
        self.suppliers.add(["verbatim-service"]);
        self
    }

    /// Adds speech-to-text as a supplier, called after the present ones.
    #[cfg(feature = "speech")]
    #[must_use]
    pub fn with_speech(mut self, speech: crate::SpeechOptions) -> Self {
        self.speech = Some(speech);
        self.suppliers.add(["speech-to-text"]);
        self
    }

    /// Sets the archive, in place of that of the storage.
    ///
    /// A search index reads what changed from [`Archive::unindexed_videos`] and
    /// [`Archive::delete_unindexed_videos`], which a [`KeyValueArchive`](transcript_core::archive::KeyValueArchive)
    /// has. Over an archive that keeps their defaults, searches find nothing that was stored after the index was built.
    #[must_use]
    pub fn with_archive(mut self, archive: Arc<dyn Archive>) -> Self {
        self.custom.archive = Some(archive);
        self
    }

    /// Sets the ledger, in place of that of the storage.
    ///
    /// [The guide](crate::guide#a-custom-ledger) describes how to write one.
    #[cfg(feature = "lookup")]
    #[must_use]
    pub fn with_ledger(mut self, ledger: Arc<dyn Ledger>) -> Self {
        self.custom.ledger = Some(ledger);
        self
    }

    /// Sets the store of keys and accounts, in place of that of the storage.
    #[cfg(feature = "lookup")]
    #[must_use]
    pub fn with_directory(mut self, directory: Arc<dyn Directory>) -> Self {
        self.custom.directory = Some(directory);
        self
    }

    /// Sets the model that answers questions about videos.
    #[cfg(feature = "chat")]
    #[must_use]
    pub fn with_chat_model(mut self, model: Arc<dyn ChatModel>) -> Self {
        self.custom.chat_model = Some(model);
        self
    }

    /// Sets the embedding model that finds passages by their meaning.
    #[cfg(feature = "chat")]
    #[must_use]
    pub fn with_embedder(mut self, embedder: Arc<dyn Embedder>) -> Self {
        self.custom.embedder = Some(embedder);
        self
    }
}
