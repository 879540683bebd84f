//! Prepares a database file and its folder before SQLite opens them.
//!
//! SQLite reports most problems here as "unable to open database file". These checks return an error that names
//! the file and the remedy.

use std::{
    fs::{self, OpenOptions},
    io,
    path::{Path, PathBuf},
};

use transcript_core::{Error, ErrorKind, Result, Retry};

/// Content of a database file before it is opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FileContent {
    /// Nothing: the file was missing or empty.
    Fresh,
    /// Some content, still unchecked.
    Something,
}

/// Prepares the file and returns its full path.
///
/// A missing file is created empty, with its folder. Both are accessible to their owner only, whatever the umask
/// allows, and SQLite gives the files beside a database the permissions of the database. An existing empty file
/// gets the same permissions if it is `private`: it will hold addresses and digests.
pub(crate) fn prepare(path: &Path, private: bool) -> Result<(PathBuf, FileContent)> {
    // A full path is also never parsed as a URI: SQLite would treat one that begins with `file:` as one.
    let file = std::path::absolute(path).map_err(|error| io_error("find", path, &error))?;
    if file.to_str().is_none() {
        return Err(Error::invalid("the path of a SQLite database must be text in UTF-8"));
    }
    let folder = file.parent().unwrap_or(&file);
    create_folder(folder)?;
    match fs::metadata(&file) {
        Ok(metadata) if metadata.is_dir() => {
            Err(Error::invalid(format!("{} is a folder: name a database file in it", file.display())))
        }
        Ok(metadata) if metadata.permissions().readonly() || is_mounted_read_only(&file, &metadata) => {
            Err(read_only(&file))
        }
        Ok(metadata) if metadata.len() == 0 => {
            check_folder(folder)?;
            restrict_permissions(&file, private).map_err(|error| io_error("protect", &file, &error))?;
            Ok((file, FileContent::Fresh))
        }
        Ok(metadata) => {
            check_folder(folder)?;
            warn_if_readable(&file, &metadata, private);
            Ok((file, FileContent::Something))
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            check_folder(folder)?;
            create_file(&file).map_err(|error| io_error("make", &file, &error))?;
            Ok((file, FileContent::Fresh))
        }
        Err(error) => Err(io_error("open", &file, &error)),
    }
}

fn create_folder(folder: &Path) -> Result<()> {
    let is_missing = |path: &&Path| matches!(path.try_exists(), Ok(false));
    let missing: Vec<&Path> = folder.ancestors().take_while(is_missing).collect();
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(folder).map_err(|error| io_error("make the folder", folder, &error))?;
    #[cfg(unix)]
    for made in missing.into_iter().rev() {
        use rustix::fs::{Mode, OFlags};
        // Never through a link, which the owner of the folder around it may have placed.
        let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        if let Ok(opened) = rustix::fs::open(made, flags, Mode::empty()) {
            give_to_owner_of_folder(&fs::File::from(opened), made);
        }
    }
    #[cfg(not(unix))]
    drop(missing);
    Ok(())
}

/// Gives a new file or folder to the owner of the folder that it is in.
///
/// Otherwise a command that root runs would keep the file from the server, which runs as the owner of the data folder.
/// Other users may not give anything away. It takes the opened file: the owner of the folder may replace what is at
/// `path`.
#[cfg(unix)]
fn give_to_owner_of_folder(made: &fs::File, path: &Path) {
    use std::os::unix::fs::{MetadataExt as _, fchown};
    let Some(folder) = path.parent() else { return };
    if let (Ok(new), Ok(around)) = (made.metadata(), fs::metadata(folder))
        && new.uid() != around.uid()
    {
        let _ = fchown(made, Some(around.uid()), Some(around.gid()));
    }
}

/// Whether the file system is read-only, which the permissions do not show.
///
/// It sets the permissions that the file has. Closing a file that was opened for this would end the locks that other
/// connections of this process have on it.
fn is_mounted_read_only(file: &Path, metadata: &fs::Metadata) -> bool {
    let unchanged = fs::set_permissions(file, metadata.permissions());
    unchanged.is_err_and(|error| error.kind() == io::ErrorKind::ReadOnlyFilesystem)
}

/// SQLite creates its write-ahead log beside the file, so the folder must be writable too.
fn check_folder(folder: &Path) -> Result<()> {
    let metadata = fs::metadata(folder).map_err(|error| io_error("open the folder", folder, &error))?;
    // On other systems the attribute does not say whether files can be created in the folder.
    if cfg!(unix) && metadata.permissions().readonly() { Err(read_only(folder)) } else { Ok(()) }
}

fn create_file(file: &Path) -> io::Result<()> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let (made, is_new) = match options.open(file) {
        // Another process creates it at the same time, or a link names a missing file.
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            (options.create_new(false).create(true).truncate(false).open(file)?, false)
        }
        opened => (opened?, true),
    };
    #[cfg(unix)]
    if is_new {
        // A umask that removes the owner's permissions is not meant for this file.
        made.set_permissions(std::os::unix::fs::PermissionsExt::from_mode(0o600))?;
        give_to_owner_of_folder(&made, file);
    }
    #[cfg(not(unix))]
    let _ = is_new;
    made.sync_all()?;
    // The directory entry must survive a power cut as well as the content.
    #[cfg(unix)]
    if let Some(folder) = file.parent() {
        fs::File::open(folder)?.sync_all()?;
    }
    Ok(())
}

#[cfg(unix)]
fn restrict_permissions(file: &Path, private: bool) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt;
    if private { fs::set_permissions(file, fs::Permissions::from_mode(0o600)) } else { Ok(()) }
}

#[cfg(not(unix))]
fn restrict_permissions(_: &Path, _: bool) -> io::Result<()> {
    Ok(())
}

/// Logs a warning only: an operator may have opened a file to a backup's group on purpose.
fn warn_if_readable(file: &Path, metadata: &fs::Metadata, private: bool) {
    #[cfg(unix)]
    if private && std::os::unix::fs::PermissionsExt::mode(&metadata.permissions()) & 0o077 != 0 {
        tracing::warn!(file = %file.display(), "database with email addresses is readable by other users");
    }
    #[cfg(not(unix))]
    let _ = (file, metadata, private);
}

#[cold]
fn read_only(path: &Path) -> Error {
    Error::unsupported(format!(
        "{} is read-only: allow this user to write it and its file system, or choose another location",
        path.display()
    ))
}

#[cold]
fn io_error(what: &str, path: &Path, error: &io::Error) -> Error {
    let kind = match error.kind() {
        io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => ErrorKind::Unsupported,
        _ => ErrorKind::Unavailable,
    };
    Error::new(kind, Retry::Never, format!("cannot {what} {}: {error}", path.display()))
}
