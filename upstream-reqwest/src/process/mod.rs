//! Runs external programs with limits on time, output and resources.
//!
//! [`ProcessGroup`] stops a program with its child processes, and limits their resources. `ProgramCommand` runs a
//! program to its end and collects its output.

mod group;
#[cfg(feature = "ytdlp")]
mod run;

use std::path::{Path, PathBuf};

#[cfg(feature = "speech")]
pub(crate) use group::ProcessGroup;
pub(crate) use group::ResourceLimits;
#[cfg(feature = "ytdlp")]
pub(crate) use run::{ProgramCommand, ProgramError, ProgramExit};

/// Finds a program: a path as it is, a bare name in `PATH`.
pub fn find_program(name: &Path) -> Option<PathBuf> {
    let is_bare = name.components().count() == 1 && !name.is_absolute();
    if !is_bare {
        return name.is_file().then(|| std::path::absolute(name).unwrap_or_else(|_| name.to_owned()));
    }
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|folder| folder.join(name)).find(|candidate| candidate.is_file())
}
