//! Checks that every port of the caller is called.

use transcript_core::{
    Error, Result, supplier::Supplier, text::head, transcript::SOURCE_BYTES_MAX, video::Platform,
};

use super::{Options, StorageOptions};

impl Options {
    /// Checks that no port of the caller is left unused, and that no supplier is named twice for a platform.
    pub(crate) fn check_registration(&self) -> Result<()> {
        self.check_supplier_names()?;
        for (position, supplier) in self.custom.suppliers.iter().enumerate() {
            let earlier = self.custom.suppliers.iter().take(position);
            self.check_supplier(supplier.as_ref(), earlier.map(AsRef::as_ref))?;
        }
        if self.custom.archive.is_some()
            && matches!(self.storage, StorageOptions::ArchiveFile(_) | StorageOptions::ArchivePostgres(_))
        {
            return Err(Error::invalid(
                "the storage options and a custom archive both select an archive: remove one of them",
            ));
        }
        #[cfg(feature = "chat-model")]
        if self.custom.chat_model.is_some() && self.chat.is_some() {
            return Err(Error::invalid(
                "the option chat and a custom chat model both select a chat model: remove one of them",
            ));
        }
        #[cfg(feature = "chat")]
        if self.embedding_sources() > 1 {
            return Err(Error::invalid(
                "the options select several embedding models: keep one of embeddings, embedding_model and a custom \
                 model",
            ));
        }
        Ok(())
    }

    /// Logs which options of suppliers are set, but never used.
    pub(crate) fn warn_of_unused_suppliers(&self) {
        for supplier in self.unused_suppliers() {
            tracing::warn!(
                supplier,
                "options of a supplier are set, but it is never called: no platform names it (Options::suppliers)"
            );
        }
    }

    /// Built-in suppliers whose options are set although no platform names them.
    fn unused_suppliers(&self) -> Vec<&'static str> {
        let is_named = |name: &str| {
            let mut lists = Platform::ALL.into_iter().map(|platform| self.suppliers.for_platform(platform));
            lists.any(|names| names.iter().any(|named| named == name))
        };
        let configured = [
            #[cfg(feature = "service")]
            (self.service.is_some(), "verbatim-service"),
            #[cfg(feature = "speech")]
            (self.speech.is_some(), "speech-to-text"),
            // It also finds the media for speech-to-text.
            (self.ytdlp.program.is_some() && !is_named("speech-to-text"), "yt-dlp"),
        ];
        let unused = configured.into_iter().filter(|&(is_set, name)| is_set && !is_named(name));
        unused.map(|(_, name)| name).collect()
    }

    /// Number of options that select an embedding model.
    #[cfg(feature = "chat")]
    fn embedding_sources(&self) -> usize {
        let selected = [
            self.custom.embedder.is_some(),
            #[cfg(feature = "chat-model")]
            self.embeddings.is_some(),
            #[cfg(feature = "static-embeddings")]
            self.embedding_model.is_some(),
        ];
        selected.into_iter().filter(|is_selected| *is_selected).count()
    }

    /// Checks that no platform has a supplier twice, which would be called twice for each video.
    fn check_supplier_names(&self) -> Result<()> {
        for platform in Platform::ALL {
            let names = self.suppliers.for_platform(platform);
            let is_repeated =
                |(index, name): &(usize, &String)| names.iter().take(*index).any(|one| one == *name);
            if let Some((_, name)) = names.iter().enumerate().find(is_repeated) {
                let message =
                    format!("the supplier {name:?} is named twice for {}: name it once", platform.name());
                return Err(Error::invalid(message));
            }
        }
        Ok(())
    }

    fn check_supplier<'a>(
        &self,
        supplier: &dyn Supplier,
        mut earlier: impl Iterator<Item = &'a dyn Supplier>,
    ) -> Result<()> {
        let info = supplier.info();
        if !(1..=SOURCE_BYTES_MAX).contains(&info.name.len()) || info.name.contains(char::is_control) {
            return Err(Error::invalid(format!(
                "a supplier is named {:?}: a name has 1 to {SOURCE_BYTES_MAX} bytes without control characters",
                head(&info.name, SOURCE_BYTES_MAX)
            )));
        }
        let is_same = |other: &dyn Supplier| {
            let other = other.info();
            other.name == info.name && other.platforms.iter().any(|one| info.platforms.contains(one))
        };
        if earlier.any(is_same) {
            let message = format!("two suppliers are named {:?}: give each a different name", info.name);
            return Err(Error::invalid(message));
        }
        let is_named = |platform| self.suppliers.for_platform(platform).contains(&info.name);
        match info.platforms.iter().copied().any(is_named) {
            true => Ok(()),
            false => Err(Error::invalid(format!(
                "the supplier {:?} is never called, because Options::suppliers does not name it for one of its \
                 platforms: add it with Options::with_supplier",
                info.name
            ))),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use async_trait::async_trait;
    use transcript_core::{
        ErrorKind,
        archive::Archive,
        memory::MemoryArchive,
        supplier::{SupplierInfo, SupplyError, SupplyMonitor, SupplyOutput, SupplyReason, SupplyRequest},
    };

    use super::*;
    use crate::Verbatim;

    #[derive(Debug)]
    struct EmptySupplier(&'static str, Vec<Platform>);

    #[async_trait]
    impl Supplier for EmptySupplier {
        fn info(&self) -> SupplierInfo {
            SupplierInfo::captions(self.0, &self.1)
        }

        async fn supply(
            &self,
            _: SupplyRequest,
            _: Arc<dyn SupplyMonitor>,
        ) -> Result<SupplyOutput, SupplyError> {
            Err(SupplyError::new(SupplyReason::NoCaptions, "This video has no captions."))
        }
    }

    fn empty(name: &'static str, platforms: &[Platform]) -> Arc<dyn Supplier> {
        Arc::new(EmptySupplier(name, platforms.to_vec()))
    }

    async fn check(options: Options, message: &str) {
        for error in [options.check().unwrap_err(), Verbatim::open(options).await.unwrap_err()] {
            assert_eq!(error.kind(), ErrorKind::Invalid);
            assert!(error.message().contains(message), "{error}");
        }
    }

    #[tokio::test]
    async fn unused_ports_are_errors() {
        let mut unnamed = Options::default();
        unnamed.custom.suppliers.push(empty("mine", &[Platform::X]));
        check(unnamed.clone(), "the supplier \"mine\" is never called").await;
        unnamed.suppliers.youtube.push("mine".to_owned());
        check(unnamed.clone(), "does not name it for one of its platforms").await;
        unnamed.suppliers.youtube.pop();
        unnamed.suppliers.x.push("mine".to_owned());
        unnamed.check().unwrap();

        let nowhere = Options::default().with_supplier(empty("mine", &[]));
        check(nowhere, "never called").await;
        let twice = Options::default()
            .with_supplier(empty("mine", &[Platform::X, Platform::TikTok]))
            .with_supplier(empty("mine", &[Platform::X]));
        check(twice, "two suppliers are named").await;
        let mut repeated = Options::default().with_supplier(empty("mine", &[Platform::X]));
        repeated.suppliers.x.push("mine".to_owned());
        check(repeated, "the supplier \"mine\" is named twice for X").await;
        let long: &'static str = "x".repeat(257).leak();
        for name in ["", "line\nfeed", long] {
            check(Options::default().with_supplier(empty(name, &[Platform::X])), "1 to 256 bytes").await;
        }

        let both = Options::default()
            .with_storage(StorageOptions::ArchiveFile("archive.db".into()))
            .with_archive(Arc::new(MemoryArchive::default()));
        check(both, "both select an archive").await;
    }

    #[cfg(all(feature = "service", feature = "speech", feature = "ytdlp"))]
    #[test]
    fn options_of_unnamed_suppliers_are_unused() {
        use upstream_reqwest::service::ServiceOptions;

        let mut options = Options::default();
        assert!(options.unused_suppliers().is_empty());
        options.service = Some(ServiceOptions::new("https://verbatim.example").with_key("vbk_key"));
        options.speech = Some(crate::SpeechOptions::default());
        options.ytdlp.program = Some("yt-dlp".into());
        assert_eq!(options.unused_suppliers(), ["verbatim-service", "speech-to-text", "yt-dlp"]);
        options.suppliers.tiktok.push("speech-to-text".to_owned());
        assert_eq!(options.unused_suppliers(), ["verbatim-service"]);
        options.add_named_sources();
        assert!(options.unused_suppliers().is_empty());
    }

    #[tokio::test]
    async fn registered_suppliers_are_called() {
        let options = Options::default()
            .without_suppliers()
            .with_supplier(empty("first", &[Platform::X]))
            .with_supplier(empty("second", &[Platform::X, Platform::YouTube]));
        assert_eq!(options.suppliers.x, ["first", "second"]);
        assert_eq!(options.suppliers.youtube, ["second"]);
        let verbatim = Verbatim::open(options).await.unwrap();
        let missing = verbatim.get("https://x.com/someone/status/1").await.unwrap().into_transcript();
        assert_eq!(missing.unwrap_err().message(), "X 1: This video has no captions.");
    }

    #[test]
    fn added_supplier_is_named_once() {
        let mut suppliers = crate::SupplierOptions::default();
        assert!(suppliers.add(["youtube-captions", "yt-dlp", "yt-dlp"]));
        assert_eq!(suppliers.youtube, ["youtube-captions", "yt-dlp"]);
    }

    #[tokio::test]
    async fn short_links_of_platform_without_own_supplier_are_not_followed() {
        let options =
            Options::default().without_suppliers().with_supplier(empty("mine", &[Platform::YouTube]));
        let verbatim = Verbatim::open(options).await.unwrap();
        let missing = verbatim.get("https://vm.tiktok.com/ZMabcdef/").await.unwrap().into_transcript();
        let missing = missing.unwrap_err();
        assert_eq!(missing.kind(), ErrorKind::Unsupported);
        assert!(missing.message().contains("Short links of TikTok are not followed"), "{missing}");
        verbatim.close().await;
    }

    #[tokio::test]
    async fn custom_archive_is_released_after_close() {
        let archive: Arc<dyn Archive> = Arc::new(MemoryArchive::default());
        let released = Arc::downgrade(&archive);
        let verbatim =
            Verbatim::open(Options::default().without_suppliers().with_archive(archive)).await.unwrap();
        assert!(verbatim.get("https://youtu.be/aaaaaaaaaaa").await.unwrap().transcript().is_none());
        verbatim.close().await;
        drop(verbatim);
        assert!(released.upgrade().is_none());
    }

    /// The task of a fetch may end on another thread than the call that waits for it.
    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn custom_archive_is_released_after_close_that_waits_for_fetch() {
        for round in 0..100 {
            let archive: Arc<dyn Archive> = Arc::new(MemoryArchive::default());
            let released = Arc::downgrade(&archive);
            let supplier = Arc::new(EmptySupplier("empty", vec![Platform::YouTube]));
            let options =
                Options::default().without_suppliers().with_archive(archive).with_supplier(supplier);
            let verbatim = Verbatim::open(options).await.unwrap();
            assert!(verbatim.get("https://youtu.be/aaaaaaaaaaa").await.unwrap().transcript().is_none());
            verbatim.close().await;
            drop(verbatim);
            assert!(released.upgrade().is_none(), "round {round}");
        }
    }

    #[cfg(all(feature = "sqlite", feature = "lookup"))]
    #[tokio::test]
    async fn custom_archive_leaves_archive_file_out() {
        let folder = tempfile::tempdir().unwrap();
        let options = Options::default()
            .with_storage(StorageOptions::in_folder(folder.path()))
            .with_archive(Arc::new(MemoryArchive::default()));
        let verbatim = Verbatim::open(options).await.unwrap();
        assert!(folder.path().join("verbatim.db").exists() && !folder.path().join("archive.db").exists());
        assert_eq!(verbatim.store_figures().len(), 1);
        verbatim.close().await;
    }
}
