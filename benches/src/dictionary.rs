//! Trains the dictionary of the compact form; what was published is never trained again
//! (`storage-sqlx/dictionaries/README.md`).

use std::path::Path;

use anyhow::Result;
use storage_sqlx::cold;

use crate::talk::{Surprise, Talk};

/// A larger one makes little smaller, and is part of the program.
const BYTES: usize = 64 << 10;
/// From which number on videos are those of training: those that are measured have smaller ones.
const FIRST: u64 = 9_000_000;
const COUNT: u64 = 600;

/// Writes the dictionary into a file.
pub(crate) fn train(file: &Path) -> Result<()> {
    let talk = Talk::new();
    let samples = (FIRST..FIRST + COUNT).map(|number| {
        // From half a minute to half an hour.
        let captions = [12, 40, 120, 690][(number / 4 % 4) as usize];
        anyhow::Ok(cold::texts(&talk.transcript(number, captions, Surprise::Few)?)?)
    });
    let samples = samples.collect::<Result<Vec<_>>>()?;
    let dictionary = zstd::dict::from_samples(&samples, BYTES)?;
    println!("{} samples, {} bytes: {}", samples.len(), dictionary.len(), file.display());
    Ok(std::fs::write(file, dictionary)?)
}
