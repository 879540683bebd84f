//! `verbatim archive export`: writes archived transcripts to files.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use transcript_core::{
    page::{PAGE_LIMIT, PageRequest},
    video::VideoId,
};
use verbatim::{TranscriptExport, UnreadableTrack, Verbatim, withdrawal_to_json};

use super::{
    CommandError, WITHDRAWN,
    archive::unknown_video,
    archive_arguments::ExportArgs,
    arguments::OutputFormat,
    ignore_closed,
    output_file::{cannot_write, has_text, write_file},
    print, print_stderr,
    progress::ProgressLine,
};

/// Number of files by result.
#[derive(Debug, Default)]
struct WriteCounts {
    new: u64,
    same: u64,
    kept: u64,
    /// Transcripts that cannot be read.
    damaged: u64,
    /// Videos that no list has.
    unlisted: u64,
}

/// Writes the files and prints the name of each.
pub(super) async fn run(verbatim: &Verbatim, args: &ExportArgs) -> Result<(), CommandError> {
    let mut written = WriteCounts::default();
    let mut missing = None;
    if args.all {
        export_all(verbatim, args, &mut written).await?;
    } else {
        let mut progress = ProgressLine::new("exported", Some(args.links.len() as u64));
        for link in &args.links {
            let video = verbatim.tools().show(link).await?;
            if video.withdrawn && args.format == OutputFormat::Json {
                export_withdrawal(args, &video.video, &mut written, &progress)?;
            } else if video.archived.is_empty() && video.unreadable.is_empty() {
                progress.note(&format!("nothing is archived of {}", video.video));
                missing.get_or_insert_with(|| unknown_video(&video));
            }
            export(args, &video.video, &video.archived, &mut written, &progress)?;
            note_damage(&video.unreadable, &mut written, &progress);
            progress.step(&video.video.to_string());
        }
    }
    print_stderr(&format!("{} files written, {} were already there", written.new, written.same));
    if written.unlisted > 0 {
        return Err(CommandError::Fault(format!(
            "{} videos cannot be listed and were not exported: their rows are damaged, or of a later version of this \
             program; restore a backup",
            written.unlisted
        )));
    }
    if written.kept > 0 {
        return Err(CommandError::Fault(format!(
            "{} files exist with different content and were kept; --force overwrites them",
            written.kept
        )));
    }
    if written.damaged > 0 {
        return Err(CommandError::Fault(format!(
            "{} transcripts are damaged and were not exported; `verbatim archive verify` lists and repairs them",
            written.damaged
        )));
    }
    missing.map_or(Ok(()), Err)
}

/// Exports all videos, page by page.
///
/// Withdrawals follow: only Verbatim's JSON records them, and without them an import would serve withdrawn videos.
async fn export_all(
    verbatim: &Verbatim,
    args: &ExportArgs,
    written: &mut WriteCounts,
) -> Result<(), CommandError> {
    let stats = verbatim.tools().stats().await.ok();
    let mut progress = ProgressLine::new("exported", stats.map(|stats| stats.videos));
    let mut page = PageRequest::first();
    let mut last: Option<VideoId> = None;
    loop {
        let tracks = verbatim.archive().list_tracks(page).await?;
        for track in tracks.items {
            if last.as_ref() == Some(&track.video) {
                continue;
            }
            let found = verbatim.tools().read_video(&track.video).await?;
            export(args, &track.video, &found.archived, written, &progress)?;
            note_damage(&found.unreadable, written, &progress);
            progress.step(&track.video.to_string());
            last = Some(track.video);
        }
        match tracks.next {
            Some(next) => page = PageRequest { after: Some(next), limit: PAGE_LIMIT },
            None => break,
        }
    }
    written.unlisted = verbatim.tools().unlisted_videos().await?;
    if args.format != OutputFormat::Json {
        return Ok(());
    }
    let mut page = PageRequest::first();
    loop {
        let withdrawn = verbatim.archive().list_withdrawn(page).await?;
        for video in withdrawn.items {
            export_withdrawal(args, &video, written, &progress)?;
        }
        match withdrawn.next {
            Some(next) => page = PageRequest { after: Some(next), limit: PAGE_LIMIT },
            None => return Ok(()),
        }
    }
}

/// Reports transcripts that cannot be read; the export continues.
fn note_damage(unreadable: &[UnreadableTrack], written: &mut WriteCounts, progress: &ProgressLine) {
    for track in unreadable {
        written.damaged += 1;
        progress.note(&track.error.to_string());
    }
}

/// Writes the file that marks a video as withdrawn, without text.
fn export_withdrawal(
    args: &ExportArgs,
    video: &VideoId,
    written: &mut WriteCounts,
    progress: &ProgressLine,
) -> Result<(), CommandError> {
    let folder = create_folder(args, video)?;
    let is_transcript = |file: io::Result<fs::DirEntry>| {
        file.is_ok_and(|file| {
            file.file_name() != WITHDRAWN && !file.file_name().as_encoded_bytes().starts_with(b".")
        })
    };
    if fs::read_dir(&folder).is_ok_and(|mut files| files.any(is_transcript)) {
        progress.note(&format!("{} has files from before the withdrawal of {video}", folder.display()));
    }
    put(args, &folder, WITHDRAWN, &withdrawal_to_json(video)?, written, progress)
}

fn export(
    args: &ExportArgs,
    video: &VideoId,
    archived: &[TranscriptExport],
    written: &mut WriteCounts,
    progress: &ProgressLine,
) -> Result<(), CommandError> {
    if archived.is_empty() {
        return Ok(());
    }
    let folder = create_folder(args, video)?;
    let withdrawal = folder.join(WITHDRAWN);
    if args.force && withdrawal.is_file() {
        fs::remove_file(&withdrawal).map_err(|error| cannot_write(&withdrawal, &error))?;
    } else if withdrawal.is_file() {
        written.kept += 1;
        progress.note(&format!(
            "{} says that {video} is withdrawn, which is no longer true",
            withdrawal.display()
        ));
    }
    for one in archived {
        let name = format!("{}.{}", one.name(), args.format.extension());
        put(args, &folder, &name, &render(one, args.format)?, written, progress)?;
    }
    Ok(())
}

/// Creates the folder of a video's files.
fn create_folder(args: &ExportArgs, video: &VideoId) -> Result<PathBuf, CommandError> {
    // Both consist of letters, digits, `-` and `_`.
    let folder = args.to.join(video.platform().as_str()).join(video.id());
    fs::create_dir_all(&folder).map_err(|error| cannot_write(&folder, &error))?;
    Ok(folder)
}

/// Writes one file unless it exists.
fn put(
    args: &ExportArgs,
    folder: &Path,
    name: &str,
    text: &str,
    written: &mut WriteCounts,
    progress: &ProgressLine,
) -> Result<(), CommandError> {
    let file = folder.join(name);
    if !args.force && file.symlink_metadata().is_ok() {
        if has_text(&file, text) {
            written.same += 1;
        } else {
            written.kept += 1;
            progress.note(&format!("{} exists with different content", file.display()));
        }
        return Ok(());
    }
    write_file(&file, text, args.force).map_err(|error| cannot_write(&file, &error))?;
    written.new += 1;
    ignore_closed(progress.suspend(|| print(&format!("{}\n", file.display()))))
}

fn render(archived: &TranscriptExport, format: OutputFormat) -> Result<String, CommandError> {
    Ok(match format.text_format() {
        None => archived.to_json()?,
        Some(format) => format.format(&archived.stored.transcript),
    })
}
