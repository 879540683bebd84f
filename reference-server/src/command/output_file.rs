//! Files that commands write: complete or not there.

use std::{
    fs,
    io::{self, Write},
    path::Path,
};

use tempfile::NamedTempFile;

use super::CommandError;

/// Whether a file has this content.
pub(super) fn has_text(file: &Path, text: &str) -> bool {
    let same_length = file.metadata().is_ok_and(|found| found.is_file() && found.len() == text.len() as u64);
    same_length && fs::read(file).is_ok_and(|found| found == text.as_bytes())
}

/// Writes a file in an existing folder under a temporary name, then gives it its own.
pub(super) fn write_file(file: &Path, text: &str, overwrite: bool) -> io::Result<()> {
    let mut draft = new_file(file.parent().unwrap_or(Path::new(".")))?;
    draft.write_all(text.as_bytes())?;
    let done = if overwrite { draft.persist(file) } else { draft.persist_noclobber(file) };
    done.map(drop).map_err(|error| error.error)
}

/// Creates a temporary file with the permissions of an ordinary file.
fn new_file(folder: &Path) -> io::Result<NamedTempFile> {
    let mut builder = tempfile::Builder::new();
    builder.prefix(".verbatim-").suffix(".part");
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        builder.permissions(fs::Permissions::from_mode(0o666));
    }
    builder.tempfile_in(folder)
}

pub(super) fn cannot_write(path: &Path, error: &io::Error) -> CommandError {
    CommandError::Fault(format!("{} cannot be written: {error}", path.display()))
}
