//! `verbatim import`: captions from a file into the archive.

use std::{
    fs::File,
    io::{self, Read},
    path::Path,
};

use transcript_core::captions::BODY_BYTES_MAX;
use verbatim::{Effect, Import, Imported};

use super::{Failure, arguments, open, print};
use crate::config::Settings;

/// Imports the captions and tells what became of them.
pub(super) async fn run(settings: &Settings, ask: arguments::Import) -> Result<(), Failure> {
    let captions = read(&ask.file)
        .map_err(|error| Failure::Wrong(format!("{} cannot be read: {error}", ask.file.display())))?;
    let verbatim = open(settings).await?;
    let imported = verbatim
        .import(Import {
            link: ask.video,
            captions,
            language: ask.lang,
            title: ask.title,
            author: ask.author,
            generated: ask.generated,
            replace: ask.replace,
        })
        .await;
    verbatim.close().await;
    print(&told(&imported?))
}

/// The file, or standard input.
fn read(file: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let limit = BODY_BYTES_MAX as u64 + 1;
    if file == Path::new("-") {
        io::stdin().lock().take(limit).read_to_end(&mut bytes)?;
    } else {
        File::open(file)?.take(limit).read_to_end(&mut bytes)?;
    }
    if bytes.len() > BODY_BYTES_MAX {
        return Err(io::Error::other(format!("it is larger than {BODY_BYTES_MAX} bytes")));
    }
    Ok(bytes)
}

/// What was imported, and what became of each wish.
fn told(imported: &Imported) -> String {
    let mut text = format!("{}: {} segments read\n", imported.video, imported.segments);
    for wish in &imported.wishes {
        let name = match wish.wish.as_str() {
            "default" => "default transcript".to_owned(),
            "und" => "transcript in an unnamed language".to_owned(),
            tag => format!("transcript in {tag}"),
        };
        let effect = match wish.effect {
            Effect::Added => "imported",
            Effect::Replaced => "replaced",
            Effect::Kept => "kept as it was archived; --replace replaces it",
            Effect::Unchanged => "archived already, with the same words",
        };
        text.push_str(&format!("{name}: {effect}\n"));
    }
    text
}
