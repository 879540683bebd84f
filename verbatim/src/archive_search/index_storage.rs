//! Where the index is.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use transcript_core::{Error, Result, memory::MemorySearchIndex, search::ArchiveIndex};

use super::watched_index::WatchedIndex;

/// Where the index is.
#[derive(Clone, Debug)]
pub(crate) enum IndexStorage {
    /// In memory, or in the database of the archive.
    Shared(Arc<dyn ArchiveIndex>),
    /// In a file.
    #[cfg_attr(not(feature = "sqlite"), allow(dead_code, reason = "there are no files"))]
    File(PathBuf),
}

impl Default for IndexStorage {
    fn default() -> Self {
        Self::Shared(Arc::new(MemorySearchIndex::default()))
    }
}

#[derive(Debug)]
pub(super) struct OpenIndex {
    pub(super) index: Arc<WatchedIndex>,
    #[cfg(feature = "sqlite")]
    file: Option<OpenFile>,
}

#[cfg(feature = "sqlite")]
#[derive(Debug)]
struct OpenFile {
    index: Arc<storage_sqlx::SqliteSearchIndex>,
    path: PathBuf,
    identity: Option<(u64, u64)>,
}

impl IndexStorage {
    /// The file beside an archive: `search/index.db` in its folder.
    ///
    /// An archive that is not called `archive.db` may have others beside it, so its index has its name.
    #[cfg_attr(not(feature = "sqlite"), allow(dead_code, reason = "there are no files"))]
    pub(crate) fn beside(archive: &Path) -> Self {
        let stem = archive.file_stem().and_then(|name| name.to_str()).unwrap_or("archive");
        let name = if stem == "archive" { "index" } else { stem };
        let folder = archive.parent().unwrap_or_else(|| Path::new(""));
        Self::File(folder.join("search").join(format!("{name}.db")))
    }

    /// Opens the index. A damaged file, or one of a newer version, is deleted and created again; one that is no index
    /// stays.
    #[cfg(feature = "sqlite")]
    pub(super) async fn open(&self) -> Result<OpenIndex> {
        let path = match self {
            Self::Shared(index) => return Ok(OpenIndex { index: watched(index), file: None }),
            Self::File(path) => path,
        };
        check_archive_folder(path)?;
        let options = || storage_sqlx::SqliteOptions::new(path);
        let index = match storage_sqlx::SqliteSearchIndex::open(options()).await {
            Err(error) if error.is_unreadable() => {
                self.delete_damaged(&error)?;
                storage_sqlx::SqliteSearchIndex::open(options()).await?
            }
            opened => opened?,
        };
        let index = Arc::new(index);
        let file = OpenFile { index: Arc::clone(&index), path: path.clone(), identity: identity(path) };
        let index: Arc<dyn ArchiveIndex> = index;
        Ok(OpenIndex { index: watched(&index), file: Some(file) })
    }

    #[cfg(not(feature = "sqlite"))]
    pub(super) async fn open(&self) -> Result<OpenIndex> {
        match self {
            Self::Shared(index) => Ok(OpenIndex { index: watched(index) }),
            Self::File(_) => {
                Err(Error::unsupported("this build cannot store in files: it lacks the feature sqlite"))
            }
        }
    }

    /// Deletes a damaged file. It holds nothing that the archive does not have.
    ///
    /// # Errors
    /// [`transcript_core::ErrorKind::Unavailable`]: it cannot be deleted.
    pub(super) fn delete_damaged(&self, error: &Error) -> Result<()> {
        let Self::File(path) = self else { return Ok(()) };
        for suffix in ["", "-wal", "-shm"] {
            let mut name = path.clone().into_os_string();
            name.push(suffix);
            match std::fs::remove_file(&name) {
                Err(failure) if failure.kind() != std::io::ErrorKind::NotFound => {
                    return Err(Error::unavailable(format!(
                        "the search index is unreadable ({error}), and {} cannot be deleted ({failure}): give it and \
                         its folder to the user of this process, or delete them",
                        Path::new(&name).display()
                    )));
                }
                _ => {}
            }
        }
        tracing::warn!(file = %path.display(), %error, "search index unreadable; it is deleted and built again");
        Ok(())
    }
}

/// Checks that the folder of the archive exists, in which the index has its own.
///
/// While it is moved away, a new index would create it again, and what is moved back would end in it.
#[cfg(feature = "sqlite")]
fn check_archive_folder(index: &Path) -> Result<()> {
    let folder = index.parent().and_then(Path::parent).filter(|folder| !folder.as_os_str().is_empty());
    match folder.filter(|folder| !folder.is_dir()) {
        Some(folder) => Err(Error::unavailable(format!(
            "the search index cannot be opened: the folder {} does not exist; move it back",
            folder.display()
        ))),
        None => Ok(()),
    }
}

fn watched(index: &Arc<dyn ArchiveIndex>) -> Arc<WatchedIndex> {
    Arc::new(WatchedIndex::new(Arc::clone(index)))
}

/// Device and number of a file; `None` if there is none, and on systems where an open file cannot be replaced.
#[cfg(feature = "sqlite")]
fn identity(path: &Path) -> Option<(u64, u64)> {
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt;
        std::fs::metadata(path).ok().map(|file| (file.dev(), file.ino()))
    }
    #[cfg(not(unix))]
    {
        let _ = path;
        None
    }
}

impl OpenIndex {
    /// Whether the path still leads to the open file.
    pub(super) fn is_current(&self) -> bool {
        #[cfg(feature = "sqlite")]
        if let Some(file) = &self.file {
            return identity(&file.path) == file.identity;
        }
        true
    }

    pub(super) async fn close(self) {
        #[cfg(feature = "sqlite")]
        if let Some(file) = self.file {
            file.index.close().await;
        }
    }
}
