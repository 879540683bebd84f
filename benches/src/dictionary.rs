//! Trains the dictionary of the compact form. A published one is never trained again
//! (`storage-sqlx/dictionaries/README.md`).

use std::path::Path;

use anyhow::Result;
use storage_sqlx::cold;

use crate::markov_text::{MarkovText, TalkSurprise};

/// A larger dictionary saves little, and it is part of the program.
const BYTES: usize = 64 << 10;
/// Number of the first training video; measured videos have smaller numbers.
const FIRST: u64 = 9_000_000;
const COUNT: u64 = 600;

/// Trains the dictionary and writes it to a file.
pub(crate) fn train(file: &Path) -> Result<()> {
    let talk = MarkovText::new();
    let samples = (FIRST..FIRST + COUNT).map(|number| {
        // From half a minute to half an hour.
        let captions = [12, 40, 120, 690][(number / 4 % 4) as usize];
        anyhow::Ok(cold::texts(&talk.transcript(number, captions, TalkSurprise::Few)?)?)
    });
    let samples = samples.collect::<Result<Vec<_>>>()?;
    let dictionary = zstd::dict::from_samples(&samples, BYTES)?;
    println!("{} samples, {} bytes: {}", samples.len(), dictionary.len(), file.display());
    Ok(std::fs::write(file, dictionary)?)
}
