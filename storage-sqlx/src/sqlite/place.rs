//! The file and its folder, before SQLite sees them.
//!
//! SQLite's own answer to most of what can be wrong here is "unable to open database file". People
//! deserve to hear which file, and what to do.

use std::{
    fs::{self, OpenOptions},
    io,
    path::{Path, PathBuf},
};

use transcript_core::{Error, ErrorKind, Result, Retry};

/// What lies at the place of a database.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Content {
    /// Nothing yet: the file was missing or empty.
    Fresh,
    /// Something that must be looked at.
    Something,
}

/// Makes the file ready to be opened and returns its full path.
///
/// A missing file is made, empty, with its folder: both are their owner's only, whatever the umask allows others,
/// and SQLite gives the files that it puts beside a database the rights of the database. An empty file that
/// somebody made before becomes so too when it is a `private` one: it will hold addresses and digests.
pub(crate) fn prepare(path: &Path, private: bool) -> Result<(PathBuf, Content)> {
    // A full path is also never taken for a URI: SQLite would take one that begins with `file:`.
    let file = std::path::absolute(path).map_err(|error| cannot("find", path, &error))?;
    if file.to_str().is_none() {
        return Err(Error::invalid("the path of a SQLite database must be text in UTF-8"));
    }
    let folder = file.parent().unwrap_or(&file);
    make_folder(folder)?;
    match fs::metadata(&file) {
        Ok(there) if there.is_dir() => {
            Err(Error::invalid(format!("{} is a folder: name the file of a database in it", file.display())))
        }
        Ok(there) if there.permissions().readonly() => Err(read_only(&file)),
        Ok(there) if there.len() == 0 => {
            check_folder(folder)?;
            keep_private(&file, private).map_err(|error| cannot("protect", &file, &error))?;
            Ok((file, Content::Fresh))
        }
        Ok(there) => {
            check_folder(folder)?;
            warn_if_open(&file, &there, private);
            Ok((file, Content::Something))
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            check_folder(folder)?;
            make_file(&file).map_err(|error| cannot("make", &file, &error))?;
            Ok((file, Content::Fresh))
        }
        Err(error) => Err(cannot("open", &file, &error)),
    }
}

fn make_folder(folder: &Path) -> Result<()> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(folder).map_err(|error| cannot("make the folder", folder, &error))
}

/// SQLite keeps its write-ahead log beside the file, so the folder must be writable too.
fn check_folder(folder: &Path) -> Result<()> {
    let there = fs::metadata(folder).map_err(|error| cannot("open the folder", folder, &error))?;
    // Elsewhere the attribute says nothing about what may be made inside.
    if cfg!(unix) && there.permissions().readonly() { Err(read_only(folder)) } else { Ok(()) }
}

fn make_file(file: &Path) -> io::Result<()> {
    let mut options = OpenOptions::new();
    // Another process may make it at the same moment: both open the same file then.
    options.write(true).create(true).truncate(false);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let made = options.open(file)?;
    // A umask that takes rights from the owner too is meant for others' files.
    #[cfg(unix)]
    made.set_permissions(std::os::unix::fs::PermissionsExt::from_mode(0o600))?;
    made.sync_all()?;
    // The file's name must survive a power cut as well as its content.
    #[cfg(unix)]
    if let Some(folder) = file.parent() {
        fs::File::open(folder)?.sync_all()?;
    }
    Ok(())
}

#[cfg(unix)]
fn keep_private(file: &Path, private: bool) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt;
    if private { fs::set_permissions(file, fs::Permissions::from_mode(0o600)) } else { Ok(()) }
}

#[cfg(not(unix))]
fn keep_private(_: &Path, _: bool) -> io::Result<()> {
    Ok(())
}

/// An operator may have opened a file to a backup's group on purpose, so it is not closed again.
fn warn_if_open(file: &Path, there: &fs::Metadata, private: bool) {
    #[cfg(unix)]
    if private && std::os::unix::fs::PermissionsExt::mode(&there.permissions()) & 0o077 != 0 {
        tracing::warn!(file = %file.display(), "others may read this database, which holds e-mail addresses");
    }
    #[cfg(not(unix))]
    let _ = (file, there, private);
}

#[cold]
fn read_only(path: &Path) -> Error {
    Error::new(
        ErrorKind::Unsupported,
        Retry::Never,
        format!("{} is read-only: allow this user to write it, or choose another place", path.display()),
    )
}

#[cold]
fn cannot(what: &str, path: &Path, error: &io::Error) -> Error {
    let kind = match error.kind() {
        io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => ErrorKind::Unsupported,
        _ => ErrorKind::Unavailable,
    };
    Error::new(kind, Retry::Never, format!("cannot {what} {}: {error}", path.display()))
}
