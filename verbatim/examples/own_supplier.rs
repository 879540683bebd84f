//! Supplies transcripts from a folder of caption files, before any platform is contacted.
//!
//! ```sh
//! cargo run -p verbatim-transcripts --example own_supplier
//! ```

use std::{error::Error, path::PathBuf, sync::Arc};

use async_trait::async_trait;
use verbatim::{
    ErrorCause, GetOutcome, Options, Verbatim,
    transcript_core::{
        captions,
        supplier::{
            Supplier, SupplierInfo, SupplyError, SupplyMonitor, SupplyOutput, SupplyReason, SupplyRequest,
        },
        transcript::{LanguageTag, TrackInfo, TrackKind, Transcript},
        video::Platform,
    },
};

/// English captions in files named after the video: `dQw4w9WgXcQ.srt`.
#[derive(Debug)]
struct CaptionFolder(PathBuf);

#[async_trait]
impl Supplier for CaptionFolder {
    fn info(&self) -> SupplierInfo {
        SupplierInfo::captions("caption-folder", &[Platform::YouTube])
    }

    fn is_custom(&self) -> bool {
        true
    }

    async fn supply(
        &self,
        request: SupplyRequest,
        _: Arc<dyn SupplyMonitor>,
    ) -> Result<SupplyOutput, SupplyError> {
        // Ids of videos have letters, digits, `-` and `_` only.
        let file = self.0.join(request.video.id()).with_extension("srt");
        let file = match tokio::task::spawn_blocking(|| std::fs::read(file)).await {
            Ok(Ok(file)) => file,
            Ok(Err(error)) if error.kind() == std::io::ErrorKind::NotFound => {
                // The next supplier of the platform is called.
                return Err(SupplyError::declined(SupplyReason::NoCaptions, "There is no caption file."));
            }
            Ok(Err(error)) => return Err(failure("The caption file cannot be read.", error)),
            Err(error) => return Err(failure("The read was interrupted.", error)),
        };
        let segments =
            captions::parse(&file).map_err(|error| failure("The caption file is no caption file.", error))?;
        let transcript = Transcript {
            video: request.video,
            title: None,
            author: None,
            duration_ms: None,
            track: TrackInfo::new(LanguageTag::english(), TrackKind::Human),
            source: self.info().name,
            segments,
        };
        Ok(SupplyOutput { transcripts: vec![transcript], ..SupplyOutput::default() })
    }
}

fn failure(message: &str, cause: impl Error + Send + Sync + 'static) -> SupplyError {
    SupplyError::new(SupplyReason::Unreadable, message).with_cause(ErrorCause::new(cause))
}

#[expect(clippy::print_stdout, reason = "its purpose is to print")]
#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let folder = tempfile::tempdir()?;
    std::fs::write(
        folder.path().join("dQw4w9WgXcQ.srt"),
        "1\n00:00:01,500 --> 00:00:03,000\nIt is so quiet here.\n",
    )?;
    // Without `without_suppliers`, the built-in suppliers are called first.
    let supplier = Arc::new(CaptionFolder(folder.path().to_owned()));
    let verbatim = Verbatim::open(Options::default().without_suppliers().with_supplier(supplier)).await?;

    let transcript = verbatim.get("https://youtu.be/dQw4w9WgXcQ").await?.into_transcript()?;
    assert_eq!((transcript.source.as_str(), transcript.segments.len()), ("caption-folder", 1));
    println!("{transcript}");
    if let GetOutcome::Missing(missing) = verbatim.get("https://youtu.be/aaaaaaaaaaa").await? {
        println!("{}", missing.message);
    }
    verbatim.close().await;
    Ok(())
}

#[cfg(test)]
mod tests {
    #[test]
    fn example_runs() {
        super::main().unwrap();
    }
}
