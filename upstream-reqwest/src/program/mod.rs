//! Other programs, run as children that cannot outlive, outgrow or surprise us.
//!
//! [`Group`] ends a program with those that it started, and limits what they take. `Program` runs one to its end
//! that only prints.

mod group;
#[cfg(feature = "ytdlp")]
mod run;

use std::path::{Path, PathBuf};

#[cfg(feature = "speech")]
pub(crate) use group::Group;
pub(crate) use group::Room;
#[cfg(feature = "ytdlp")]
pub(crate) use run::{Ended, Program, ProgramFault};

/// The place of a program: a path as it is, a bare name as the `PATH` has it.
pub fn find_program(name: &Path) -> Option<PathBuf> {
    let is_bare = name.components().count() == 1 && !name.is_absolute();
    if !is_bare {
        return name.is_file().then(|| std::path::absolute(name).unwrap_or_else(|_| name.to_owned()));
    }
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|folder| folder.join(name)).find(|place| place.is_file())
}
