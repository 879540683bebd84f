//! Programs that the tests install.

use std::{
    collections::BTreeMap,
    path::PathBuf,
    process::{Command, Stdio},
    sync::{Arc, Mutex, OnceLock, PoisonError},
};

use anyhow::{Error, Result};

/// The path that `install.sh` in a folder of the tests prints. The first call runs it.
pub(crate) fn installed(folder: &'static str) -> Result<PathBuf> {
    type InstalledPath = Arc<OnceLock<Result<PathBuf, String>>>;
    static PATHS: Mutex<BTreeMap<&str, InstalledPath>> = Mutex::new(BTreeMap::new());
    let path = Arc::clone(PATHS.lock().unwrap_or_else(PoisonError::into_inner).entry(folder).or_default());
    let path = path.get_or_init(|| {
        let script = format!("{}/{folder}/install.sh", env!("CARGO_MANIFEST_DIR"));
        let output = Command::new(&script).stderr(Stdio::inherit()).output();
        let output = output.map_err(|error| format!("{script}: {error}"))?;
        let printed = String::from_utf8_lossy(&output.stdout);
        match output.status.success() {
            true => Ok(PathBuf::from(printed.trim())),
            false => Err(format!("{script}: {}: {printed}", output.status)),
        }
    });
    path.clone().map_err(Error::msg)
}
