//! An open database file: its path, its identity and its failures.
//!
//! An open file that is deleted still accepts writes, which are lost with the process. So the path must still lead to
//! the file that was opened.

use std::{
    ffi::OsString,
    io,
    path::{Path, PathBuf},
};

use transcript_core::Error;

use crate::{
    error::{DbError, DbResult},
    monitor::{StoreMonitor, StoreOperation},
};

/// Distinguishes a file from a later one with the same path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FileIdentity(u64, u64);

impl FileIdentity {
    #[cfg(unix)]
    pub(super) fn read(path: &Path) -> io::Result<Self> {
        use std::os::unix::fs::MetadataExt;
        let metadata = std::fs::metadata(path)?;
        Ok(Self(metadata.dev(), metadata.ino()))
    }

    /// On these systems an open file cannot be deleted or replaced.
    #[cfg(not(unix))]
    pub(super) fn read(_path: &Path) -> io::Result<Self> {
        Ok(Self(0, 0))
    }
}

/// The path of the write-ahead log of a database.
pub(super) fn log_path(file: &Path) -> PathBuf {
    let mut path = OsString::from(file);
    path.push("-wal");
    path.into()
}

/// An open database file.
#[derive(Debug)]
pub(super) struct DatabaseFile {
    path: PathBuf,
    log: PathBuf,
    identity: FileIdentity,
    monitor: StoreMonitor,
}

impl DatabaseFile {
    /// The file at this path, which exists. `store` is the name of its data in logs.
    pub(super) fn new(path: &Path, store: &'static str) -> io::Result<Self> {
        let (path, log, identity) = (path.to_owned(), log_path(path), FileIdentity::read(path)?);
        let monitor = StoreMonitor::new(store);
        monitor.start();
        Ok(Self { path, log, identity, monitor })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    pub(super) fn monitor(&self) -> &StoreMonitor {
        &self.monitor
    }

    /// Checks that the path still leads to the file.
    ///
    /// # Errors
    /// [`DbError::Replaced`] also if the path cannot be read.
    pub(super) fn check(&self) -> DbResult<()> {
        match FileIdentity::read(&self.path) {
            Ok(identity) if identity == self.identity => Ok(()),
            _ => Err(DbError::Replaced),
        }
    }

    /// The identity of the log; `None` if there is no log.
    pub(super) fn log_identity(&self) -> Option<FileIdentity> {
        FileIdentity::read(&self.log).ok()
    }

    /// Converts a failure to the error of the port, and counts it.
    pub(super) fn error(&self, operation: StoreOperation, fault: DbError) -> Error {
        let kind = fault.store_error_kind();
        let error = fault.into_error(&self.path);
        if let Some(kind) = kind {
            self.monitor.failed(operation, kind, &error);
        }
        error
    }

    /// Free space of the disk for this user, in bytes; `None` if the system does not report it.
    #[cfg(unix)]
    pub(super) fn free_bytes(&self) -> Option<u64> {
        let disk = rustix::fs::statvfs(self.path.parent()?).ok()?;
        Some(disk.f_bavail.saturating_mul(disk.f_frsize))
    }

    #[cfg(not(unix))]
    pub(super) fn free_bytes(&self) -> Option<u64> {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(unix)]
    #[test]
    fn database_file_deleted_or_replaced_is_detected() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("small.db");
        std::fs::write(&path, "first").unwrap();
        let file = DatabaseFile::new(&path, "main").unwrap();
        file.check().unwrap();
        assert!(file.free_bytes().unwrap() > 0);
        let moved = folder.path().join("moved.db");
        std::fs::rename(&path, &moved).unwrap();
        assert!(matches!(file.check(), Err(DbError::Replaced)));
        std::fs::write(&path, "second").unwrap();
        assert!(matches!(file.check(), Err(DbError::Replaced)));
        std::fs::rename(&moved, &path).unwrap();
        file.check().unwrap();
    }
}
